"""Bytes broken in the ways that files break: bits flipped, parts cut, doubled, swapped, replaced by words that hurt."""

import numpy as np

WORDS = (
    b"NaN",
    b"inf",
    b"-1",
    b"1e999",
    b"1e308",
    b"9" * 40,
    b"null",
    b"true",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"'",
    b",",
)
WORDS += (
    b";",
    b"\t",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"__import__('os')",
    b"=1+1",
    b"../..",
    b"\\u0000",
    b"0x10",
)


def mutated(whole: bytes, rng: np.random.Generator, front: int | None = None) -> bytes:
    """A broken copy; with ``front``, half of the wounds lie in so many first bytes."""
    data = bytearray(whole)
    for _ in range(int(rng.integers(1, 6))):
        size = max(len(data), 1)
        at = int(rng.integers(min(front, size) if front and rng.random() < 0.5 else size))
        match int(rng.integers(7)):
            case 0:
                data[at : at + 1] = bytes([int(rng.integers(256))])
            case 1:
                data[at : at + 1] = bytes([(data[at] if data else 0) ^ (1 << int(rng.integers(8)))])
            case 2:
                data[at:at] = WORDS[int(rng.integers(len(WORDS)))]
            case 3:
                word = WORDS[int(rng.integers(len(WORDS)))]
                data[at : at + len(word)] = word
            case 4:
                del data[at : at + int(rng.integers(1, 40))]
            case 5:
                data[at:at] = data[at : at + int(rng.integers(1, 40))]
            case _:
                if rng.random() < 0.3:
                    del data[at:]
    return bytes(data)
