"""Tables from outside: numbers, or a reason."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measureflow.explorer import tables


def test_numeric_columns_and_complete_rows():
    table = tables.read_csv(b"name,x,y\na,1,2\nb,,4\nc,5,6\n")
    assert table.columns == ["x", "y"]
    assert table.values.tolist() == [[1, 2], [5, 6]]
    assert table.dropped == 1


def test_a_first_line_of_numbers_is_data():
    table = tables.read_csv(b"1,2\n3,4\n5,6\n")
    assert table.columns == ["x0", "x1"]
    assert len(table.values) == 3


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b"  \n ", "empty"),
        (b"\xff\xfe\x00\x80", "UTF-8"),
        (b"a,b\x00\n1,2", "not a table"),
        (b"a,b\nx,y\nz,w\n", "no column"),
        (b"a,b\n1,2\n1,2,3,4\n", "not a CSV"),
        (b"a,b\n1,2\n", "fewer than two rows"),
        (b"a,b\n1,inf\n2,3\n", "fewer than two rows"),
    ],
)
def test_a_bad_csv_is_refused_with_a_reason(body, reason):
    with pytest.raises(ValueError, match=reason):
        tables.read_csv(body)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"points": 3}', b'{"points": [[1], [2, 3]]}', b"[" * 9999])
def test_bad_json_is_refused_with_a_reason(body):
    with pytest.raises(ValueError, match=r"the body|points"):
        tables.read_json(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_a_reason(body):
    for read in (tables.read_csv, tables.read_json):
        with contextlib.suppress(ValueError):
            read(body)


def test_json_carries_options():
    table, said = tables.read_json(b'{"points": [[1, 2], [3, 4]], "n_clusters": 2}')
    assert np.array_equal(table.values, [[1, 2], [3, 4]])
    assert said == {"n_clusters": 2}
