"""One thread inside each operation, several operations side by side: answers independent of the number of threads.

A library that shares one product among its threads cuts it differently for each number of them, and so rounds it
differently. Inside `one_thread` no operation of torch or of NumPy's BLAS is shared. Large work is cut into pieces by
its shape alone, and `side_by_side` runs the pieces on the threads that are free.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class _Process:
    """What all threads of a process share: its BLAS, and the number of threads that torch gives to new ones."""

    def __init__(self):
        self.lock, self.holders = threading.Lock(), 0
        self.n_threads = 1
        self.blas_threads: list[int] = []

    def hold(self) -> None:
        """Hold the process to one thread, from the first caller on."""
        with self.lock:
            if self.holders == 0:
                self.n_threads = torch.get_num_threads()
                self.blas_threads = [library.num_threads or 1 for library in blas().lib_controllers]
            self.holders += 1
            _hold_this_thread()

    def release(self) -> None:
        """Set the process free after the last caller."""
        with self.lock:
            torch.set_num_threads(self.n_threads)
            self.holders -= 1
            if self.holders == 0:
                _share_blas(self.blas_threads)


class _Here(threading.local):
    """The state of a thread: whether it is held to one, and its pool; threads of a pool have none."""

    held = False
    pool: ThreadPoolExecutor | None = None


_process, _here = _Process(), _Here()


def _hold_this_thread() -> None:
    """One thread for what the calling thread does, and for threads that begin later."""
    torch.get_num_threads()  # a thread takes over the number of its process when it first asks for it, not later
    torch.set_num_threads(1)
    _share_blas([1] * len(blas().lib_controllers))


@cache
def blas() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas")


def _share_blas(n_threads: list[int]) -> None:
    """Set how many threads each library has; some versions of threadpoolctl listen to one thread of ours only."""
    for library, number in zip(blas().lib_controllers, n_threads, strict=True):
        listen_to_all = getattr(library, "clear_controlling_thread", lambda **_: None)
        listen_to_all(force=True)
        library.set_num_threads(number)
        listen_to_all(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold every operation of torch and of NumPy's BLAS to one thread; also a decorator, and may be nested.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    if _here.held:
        yield
        return
    _process.hold()
    try:
        with ThreadPoolExecutor(_process.n_threads, initializer=_begin) as pool:  # begins threads when it needs them
            _here.held, _here.pool = True, pool
            yield
    finally:
        _here.held, _here.pool = False, None
        _process.release()


def _begin() -> None:
    """What a thread of a pool does first."""
    _hold_this_thread()
    _here.held = True


def side_by_side(task: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """The task done for each piece: on as many threads as torch had before `one_thread`, else one after the other.

    >>> side_by_side(abs, [-1, 2])
    [1, 2]
    """
    pieces = list(pieces)
    if _here.pool is None or len(pieces) < 2 or _process.n_threads < 2:
        return [task(piece) for piece in pieces]
    return list(_here.pool.map(task, pieces))
