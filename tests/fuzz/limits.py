"""A limit of time for one case, and a witness that nothing in it was run as code."""

import contextlib
import signal
import sys

FORBIDDEN = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "socket.connect",
    "pickle.find_class",
)
_watching = False
_seen: list[str] = []


class TooSlow(Exception):
    """A case took longer than its limit."""


def _witness(event: str, _arguments) -> None:
    if _watching and event in FORBIDDEN:
        _seen.append(event)


sys.addaudithook(_witness)


def refusal(error: ValueError) -> str:
    """An error must say what is wrong."""
    assert len(str(error)) > 10, f"{error!r} says nothing"
    return "refused"


@contextlib.contextmanager
def guarded(seconds: int, pickles: bool = False):
    """Raise TooSlow after so many seconds, and AssertionError if a process, a connection or a pickle was opened.

    ``pickles`` are let through where compiled code is fetched from numba's own cache.
    """
    global _watching

    def ring(*_):
        raise TooSlow(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    _watching = True
    try:
        yield
    finally:
        _watching = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        seen = [event for event in _seen if not (pickles and event.startswith("pickle"))]
        _seen.clear()
        assert not seen, f"the file made us do {seen}"
