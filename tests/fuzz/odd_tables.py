"""Tables and weights as no one should give them, and as people do: each by name, made fresh for every case."""

import datetime
import decimal
import fractions
import pathlib
import tempfile
import types

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch


def blobs(n: int = 30, d: int = 2, seed: int = 0) -> np.ndarray:
    """Three round clusters."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(0, 6, (3, d))
    return centers[np.arange(n) % 3] + rng.normal(size=(n, d))


def with_cell(value) -> np.ndarray:
    """A table of floats with one odd cell."""
    X = blobs()
    X[4, 1] = value
    return X


def with_object(value) -> np.ndarray:
    """A table of objects with one odd cell."""
    X = blobs().astype(object)
    X[4, 1] = value
    return X


def mapped() -> np.ndarray:
    """A table on disk, read where it is touched."""
    folder = pathlib.Path(tempfile.mkdtemp())
    np.save(folder / "X.npy", blobs())
    X = np.load(folder / "X.npy", mmap_mode="r")
    (folder / "X.npy").unlink()
    folder.rmdir()
    return X


def read_only() -> np.ndarray:
    """A table that may not be written to."""
    X = blobs()
    X.flags.writeable = False
    return X


def framed(**columns) -> pd.DataFrame:
    """A frame of two columns of numbers and more."""
    return pd.DataFrame({"a": blobs()[:, 0], "b": blobs()[:, 1], **columns})


def dask_array(X):
    """The rows in blocks of ten."""
    import dask.array as da

    return da.from_array(X, chunks=(10, -1))


class Answering:
    """An object whose conversion to an array does what it is told."""

    def __init__(self, answer):
        self.answer = answer

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


FLOATS = ("float16", "float32", "float64", "longdouble", ">f8", "<f4")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4")
SHAPES = ((0, 2), (30, 0), (0, 0), (0,), (1,), (30,), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (30, 1, 2), (2, 3, 4, 5))
CELLS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e141, 1e100, 1e39, 1e-320, 5e-324, -0.0)
OBJECTS = (
    None, "3.5", "three", "", b"3", 3 + 1j, 10**400, -(10**400), 2**70, [1], [1, 2], {}, object(), pd.NA, pd.NaT, True,
    float("nan"), decimal.Decimal("1.5"), decimal.Decimal("NaN"), fractions.Fraction(1, 3), np.datetime64("2020-01-01"),
    datetime.date(2020, 1, 1), torch.tensor(1.0), torch.tensor(1.0, requires_grad=True), np.array([1.0]), len,
)  # fmt: skip
SCALES = (
    1e-320,
    1e-308,
    1e-200,
    1e-150,
    1e-100,
    1e-46,
    1e-30,
    1e-10,
    1e10,
    1e30,
    1e38,
    1e60,
    1e100,
    1e139,
    1e150,
    1e300,
)
SHIFTS = (1e3, 1e8, 1e12, 1e15, 1e16, 1e100, 1e138, -1e12)
SPARSE = ("csr_matrix", "csc_matrix", "coo_matrix", "lil_matrix", "dok_matrix", "csr_array")
TORCH = ("float16", "bfloat16", "float32", "float64", "int64", "bool", "complex64")
NULLABLE = ("Int64", "Float64", "boolean", "string", "category")


def odd_tables() -> dict:
    """Functions that make an X, by name."""
    made: dict = {"plain": blobs, "list": lambda: blobs().tolist(), "tuple": lambda: tuple(map(tuple, blobs()))}
    made |= {f"dtype {t}": lambda t=t: blobs().astype(t) for t in FLOATS}
    made |= {f"dtype {t}": lambda t=t: np.abs(10 * blobs()).astype(t) for t in INTEGERS}
    made |= {f"dtype {t}": lambda t=t: blobs().astype(t) for t in ("complex128", "bool", "object", "U8", "S8")}
    made |= {f"shape {s}": lambda s=s: np.random.default_rng(0).normal(size=s) for s in SHAPES}
    made |= {f"cell {c!r}": lambda c=c: with_cell(c) for c in CELLS}
    made |= {f"object {i}: {str(c)[:12]}": lambda c=c: with_object(c) for i, c in enumerate(OBJECTS)}
    made |= {f"scale {s:g}": lambda s=s: blobs() * s for s in SCALES}
    made |= {f"shift {s:g}": lambda s=s: blobs() + s for s in SHIFTS}
    made |= {f"sparse {k}": lambda k=k: getattr(sp, k)(np.maximum(blobs(), 0)) for k in SPARSE}
    made |= {f"torch {t}": lambda t=t: torch.as_tensor(blobs()).to(getattr(torch, t)) for t in TORCH}
    made |= {
        f"frame of {t}": lambda t=t: framed().round().astype(t) for t in ("Int64", "Float64", "string", "category")
    }
    made |= {f"column of {t}": lambda t=t: framed(c=pd.array([0, 1, 1] * 10).astype(t)) for t in NULLABLE}
    return made | MORE_TABLES


MORE_TABLES = {
    "all equal": lambda: np.ones((30, 2)),
    "all zero": lambda: np.zeros((30, 2)),
    "a constant column": lambda: blobs() * [1, 0],
    "two distinct rows": lambda: np.repeat([[0.0, 0], [1, 1]], 15, 0),
    "one distinct column": lambda: np.repeat(blobs()[:, :1], 5, 1),
    "more columns than rows": lambda: blobs(12, 40),
    "300 columns": lambda: blobs(20, 300),
    "columns of wild scales": lambda: blobs() * [1e-120, 1e120],
    "columns of uneven scales": lambda: blobs() * [1e-6, 1e6],
    "an outlier": lambda: np.vstack([blobs(), [[1e15, 0]]]),
    "a far outlier": lambda: np.vstack([blobs(), [[1e130, 0]]]),
    "denormal gaps": lambda: 1 + np.arange(30.0)[:, None] * 2.3e-16,
    "all NaN": lambda: np.full((30, 2), np.nan),
    "a column of NaN": lambda: blobs() * [1, np.nan],
    "all infinite": lambda: np.full((30, 2), np.inf),
    "integers beyond 2**64": lambda: [[2**70 * i, 2**65] for i in range(30)],
    "integers beyond floats": lambda: [[10**400 * i, 1] for i in range(30)],
    "integers at the limit": lambda: np.full((30, 2), 2**63 - 1),
    "ragged lists": lambda: [[1.0, 2.0], [3.0], [4.0, 5.0]],
    "nested lists": lambda: [[[1.0], [2.0]]] * 5,
    "empty list": list,
    "list of empty lists": lambda: [[], [], []],
    "list of strings": lambda: [["1", "2"], ["3", "4"], ["a", "b"]],
    "list of numeric strings": lambda: [["1", "2"], ["3", "4"], ["5", "7"], ["5", "6"], ["0", "1"]],
    "list of None": lambda: [[None, None]] * 5,
    "list of dicts": lambda: [{"a": 1.0, "b": 2.0}] * 5,
    "list of tensors": lambda: list(torch.as_tensor(blobs())),
    "list of arrays": lambda: list(blobs()),
    "None": lambda: None,
    "a number": lambda: 3.0,
    "a string": lambda: "table.csv",
    "bytes": lambda: b"table",
    "a dict": lambda: {"a": [1, 2, 3], "b": [1, 2, 3]},
    "a set": lambda: {1.0, 2.0},
    "a generator": lambda: (row for row in blobs()),
    "a range": lambda: range(10),
    "a function": lambda: blobs,
    "a class": lambda: np.ndarray,
    "a path": lambda: pathlib.Path("table.csv"),
    "an ellipsis": lambda: ...,
    "0-d": lambda: np.array(3.0),
    "0-d object": lambda: np.array(None, dtype=object),
    "a matrix": lambda: np.matrix(blobs()),
    "masked, nothing hidden": lambda: np.ma.array(blobs()),
    "masked, a cell hidden": lambda: np.ma.masked_greater(blobs(), 5.0),
    "masked, all hidden": lambda: np.ma.array(blobs(), mask=True),
    "record array": lambda: np.rec.fromarrays([np.arange(5.0), np.arange(5.0)], names="a,b"),
    "dates": lambda: np.arange("2020-01-01", "2020-01-31", dtype="datetime64[D]").reshape(-1, 1),
    "time differences": lambda: np.arange(30).astype("timedelta64[s]").reshape(-1, 1),
    "void": lambda: np.zeros((5, 2), dtype="V8"),
    "Fortran order": lambda: np.asfortranarray(blobs()),
    "every second row": lambda: blobs(60)[::2],
    "backwards": lambda: blobs()[::-1, ::-1],
    "transposed": lambda: np.ascontiguousarray(blobs().T).T,
    "broadcast": lambda: np.broadcast_to(np.array([1.0, 2.0]), (30, 2)),
    "read-only": read_only,
    "memory-mapped": mapped,
    "unaligned": lambda: np.frombuffer(b"\0" + blobs().tobytes(), np.uint8)[1:].view(np.float64).reshape(30, 2),
    "torch, requires grad": lambda: torch.as_tensor(blobs()).requires_grad_(),
    "torch, conjugate": lambda: torch.as_tensor(blobs() + 0j).conj(),
    "torch, negative view": lambda: torch.as_tensor(blobs() + 1j).conj().imag,
    "torch, on meta": lambda: torch.zeros(30, 2, device="meta"),
    "torch, sparse": lambda: torch.as_tensor(np.maximum(blobs(), 0)).to_sparse(),
    "torch, empty": lambda: torch.zeros(0, 2),
    "torch, 0-d": lambda: torch.tensor(1.0),
    "torch, a parameter": lambda: torch.nn.Parameter(torch.as_tensor(blobs())),
    "sparse, with NaN": lambda: sp.csr_matrix(with_cell(np.nan)),
    "sparse, empty": lambda: sp.csr_matrix((0, 2)),
    "frame": framed,
    "frame, no columns": lambda: pd.DataFrame(index=range(5)),
    "frame, no rows": lambda: framed().head(0),
    "frame, duplicated names": lambda: pd.DataFrame(blobs(), columns=["a", "a"]),
    "frame, numbers as names": lambda: pd.DataFrame(blobs(), columns=[3, 1]),
    "frame, names of two types": lambda: pd.DataFrame(blobs(), columns=["a", 1]),
    "frame, levels of names": lambda: pd.DataFrame(blobs(), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
    "frame, odd index": lambda: framed().set_index(pd.Index(["r"] * 30)),
    "frame, words": lambda: framed(c=["x", "y", "z"] * 10),
    "frame, mixed cells": lambda: framed(c=[1, "y", None] * 10),
    "frame, dates": lambda: framed(c=pd.date_range("2020", periods=30)),
    "frame, dates with zones": lambda: framed(c=pd.date_range("2020", periods=30, tz="UTC")),
    "frame, periods": lambda: framed(c=pd.period_range("2020", periods=30, freq="D")),
    "frame, time differences": lambda: framed(c=pd.to_timedelta(np.arange(30), "s")),
    "frame, intervals": lambda: framed(c=pd.interval_range(0, 30)),
    "frame, categories": lambda: framed(c=pd.Categorical(["x", "y", "z"] * 10)),
    "frame, bools": lambda: framed(c=[True, False, True] * 10),
    "frame, nullable with NA": lambda: framed(c=pd.array([1, 2, None] * 10, dtype="Int64")),
    "frame, sparse column": lambda: framed(c=pd.arrays.SparseArray([0.0, 0.0, 1.0] * 10)),
    "frame, complex": lambda: framed(c=np.full(30, 1j)),
    "frame, lists in cells": lambda: framed(c=[[1, 2]] * 30),
    "frame, all NA": lambda: framed(c=pd.array([None] * 30, dtype="Float64")),
    "frame, float32 and int8": lambda: framed(c=np.arange(30, dtype=np.int8)).astype({"a": np.float32}),
    "series": lambda: pd.Series(blobs()[:, 0]),
    "index": lambda: pd.Index(blobs()[:, 0]),
    "array protocol": lambda: Answering(blobs()),
    "array protocol, fails": lambda: Answering(RuntimeError("lost")),
    "array protocol, strings": lambda: Answering(np.array([["a", "b"]])),
    "length only": lambda: types.SimpleNamespace(__len__=lambda: 3),
    "shape only": lambda: types.SimpleNamespace(shape=(30, 2)),
    "dask": lambda: dask_array(blobs()),
    "dask, one axis": lambda: dask_array(blobs())[:, 0],
    "dask, unknown length": lambda: dask_array(blobs())[dask_array(blobs())[:, 0] > 0],
    "dask, NaN": lambda: dask_array(with_cell(np.nan)),
    "dask, huge": lambda: dask_array(with_cell(1e200)),
    "dask, complex": lambda: dask_array(blobs() + 1j),
    "dask, words": lambda: dask_array(blobs().astype("U5")),
    "dask, strings that are no numbers": lambda: dask_array(np.full((30, 2), "x", dtype=object)),
    "dask, no rows": lambda: dask_array(blobs())[:0],
    "dask, no columns": lambda: dask_array(blobs())[:, :0],
}


WEIGHT_SCALES = (5e-324, 1e-320, 1e-308, 1e-300, 1e-100, 1e-46, 1e-45, 1e-38, 1e-20, 1e-6, 1e-3, 0.5)
WEIGHT_SCALES += (3.0, 1e6, 1e12, 1e18, 1e20, 1e30, 1e35, 1e38, 1e39, 1e100, 1e300, 1e306)


def odd_weights() -> dict:
    """Functions that make sample weights for thirty rows, by name."""
    ones, rng = np.ones(30), np.random.default_rng(0)
    mixed = lambda *parts: np.resize(parts, 30).astype(float)  # noqa: E731
    made = {f"all {s:g}": lambda s=s: np.full(30, s) for s in WEIGHT_SCALES}
    made |= {f"uneven, {s:g}": lambda s=s: rng.uniform(0.5, 2, 30) * s for s in (1e-310, 1e-40, 1e40, 1e305)}
    made |= {f"one of {c!r}": lambda c=c: np.where(np.arange(30) == 4, c, 1.0) for c in CELLS}
    made |= {f"dtype {t}": lambda t=t: ones.astype(t) for t in (*FLOATS, *INTEGERS, "bool", "complex128", "U3", "S3")}
    made |= {f"shape {s}": lambda s=s: np.ones(s) for s in ((29,), (31,), (0,), (), (1,), (30, 1), (1, 30), (30, 2))}
    made |= {f"objects, {i}": lambda c=c: with_object(c)[:, 1] for i, c in enumerate(OBJECTS)}
    return made | {
        "none": lambda: None,
        "zeros": lambda: 0 * ones,
        "one row counts": lambda: np.eye(30)[3],
        "two rows count": lambda: np.eye(30)[3] + np.eye(30)[4],
        "negative": lambda: -ones,
        "some negative": lambda: mixed(1, -1),
        "huge and tiny": lambda: mixed(1e300, 1e-300),
        "one and tiny": lambda: mixed(1, 1e-300),
        "one and denormal": lambda: mixed(1, 5e-324),
        "huge and one": lambda: mixed(1e300, 1),
        "a number": lambda: 2.0,
        "a huge number": lambda: 1e300,
        "zero": lambda: 0,
        "a list": lambda: ones.tolist(),
        "a string": lambda: "balanced",
        "a dict": lambda: {0: 1.0},
        "a series": lambda: pd.Series(ones),
        "nullable": lambda: pd.Series([1, 2, None] * 10, dtype="Int64"),
        "torch": lambda: torch.ones(30),
        "torch, requires grad": lambda: torch.ones(30).requires_grad_(),
        "integers beyond floats": lambda: [10**400] * 30,
        "sparse": lambda: sp.csr_matrix(ones),
        "fails": lambda: Answering(RuntimeError("lost")),
    }
