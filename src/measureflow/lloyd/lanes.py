"""The nearest two of many centres for a few rows at once, in the vector registers of the processor.

A tile is `ROWS` rows, coordinate by coordinate: one row a lane. The scores of `CENTERS` centres are summed together,
so that a coordinate is read once for all of them, and they are compared in registers: no score is written to memory. A
plain loop is compiled to a fraction of the speed, and on some makes to half-filled registers, so the instructions are
given one by one.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen, config
from numba.extending import intrinsic

GIVEN = getattr(config, "CPU_FEATURES")  # noqa: B009, set when numba is imported
FEATURES = codegen.get_host_cpu_features() if GIVEN is None else GIVEN  # numba's own rule
ROWS = 16  # one register of AVX-512, two of AVX2, four of SSE or NEON
CENTERS = 8 if "+avx512f" in FEATURES else 4  # eight sums hide the latency of one, and fit the registers
FAR = 3e38  # the score of a dummy centre

LANE, PLACE = ir.FloatType(), ir.IntType(32)
LANES, PLACES = ir.VectorType(LANE, ROWS), ir.VectorType(PLACE, ROWS)


def _two_nearest(typingctx, tile, T, lift, near, second, where):
    """The least and second least ``lift_j + sum_t x_t T_jt`` of every row x of a tile, and the place j of the least.

    ``tile`` (d, ROWS) and T (k / CENTERS, d, CENTERS) are flat, as all arrays, and float32; ``where`` is int32.
    """
    given = (tile, T, lift, near, second, where)
    reals, wholes = types.Array(types.float32, 1, "C"), types.Array(types.int32, 1, "C")
    return (types.void(*given), _emit) if given == (reals,) * 5 + (wholes,) else None


two_nearest: Callable[..., None] = intrinsic(_two_nearest)


def _emit(context, build, signature, arguments):
    """The instructions of `two_nearest`."""
    arrays = [context.make_array(kind)(context, build, a) for kind, a in zip(signature.args, arguments, strict=True)]
    tile, T, lift, near, second, where = (array.data for array in arrays)
    d, groups = build.udiv(arrays[0].nitems, _whole(ROWS)), build.udiv(arrays[2].nitems, _whole(CENTERS))
    held = [cgutils.alloca_once_value(build, _constant(kind)) for kind in (LANES, LANES, PLACES)]
    sums = [cgutils.alloca_once(build, LANES) for _ in range(CENTERS)]
    with cgutils.for_range(build, groups) as group:
        center = [build.add(build.mul(group.index, _whole(CENTERS)), _whole(q)) for q in range(CENTERS)]
        for j, total in zip(center, sums, strict=True):
            build.store(_to_all(build, _load(build, lift, j), LANES), total)
        with cgutils.for_range(build, d) as t:
            x = _load(build, tile, build.mul(t.index, _whole(ROWS)), LANES)
            start = build.mul(build.add(build.mul(group.index, d), t.index), _whole(CENTERS))
            for q, total in enumerate(sums):
                c = _to_all(build, _load(build, T, build.add(start, _whole(q))), LANES)
                build.store(_multiply_add(build, x, c, build.load(total)), total)
        for j, total in zip(center, sums, strict=True):
            _keep_two(build, build.load(total), _to_all(build, build.trunc(j, PLACE), PLACES), held)
    for slot, out in zip(held, (near, second, where), strict=True):
        build.store(build.load(slot), build.bitcast(out, slot.type), align=4)
    return context.get_dummy_value()


def _keep_two(build, score, place, held) -> None:
    """Replace the least or the second least score in the lanes where this one is less."""
    least, second, where = (build.load(slot) for slot in held)
    nearer = build.fcmp_ordered("<", score, least)
    rest = build.select(nearer, least, score)
    build.store(build.select(nearer, score, least), held[0])
    build.store(build.select(build.fcmp_ordered("<", rest, second), rest, second), held[1])
    build.store(build.select(nearer, place, where), held[2])


def _multiply_add(build, a, b, c):
    """a b + c in every lane, in one instruction where the processor has it."""
    kind = ir.FunctionType(LANES, [LANES] * 3)
    name = f"llvm.fmuladd.v{ROWS}f32"
    return build.call(cgutils.get_or_insert_function(build.module, kind, name), [a, b, c])


def _load(build, data, index, kind: ir.Type = LANE):
    """One number at an index, or as many as there are lanes from there on."""
    return build.load(build.bitcast(build.gep(data, [index]), kind.as_pointer()), align=4)


def _to_all(build, value, kind):
    """A number in every lane."""
    blank = ir.Constant(kind, ir.Undefined)
    one = build.insert_element(blank, value, ir.Constant(PLACE, 0))
    return build.shuffle_vector(one, blank, ir.Constant(PLACES, [0] * ROWS))


def _constant(kind):
    """Where the search begins: nothing near, at place zero."""
    return ir.Constant(kind, [FAR if kind is LANES else 0] * ROWS)


def _whole(n: int):
    return ir.Constant(ir.IntType(64), n)
