"""The tool that compares two sets of weights on the same test sets."""

import importlib.util
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("compare_row", ROOT / "tools" / "compare_row.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_error_of_a_difference_is_that_of_the_pairs(tool, tmp_path):
    table = tool.compared("flow-transformer", "flow-transformer-unit", 3, 30, tmp_path)
    kept = {path.name.split("_")[0]: np.load(path) for path in tmp_path.glob("*-tokens_15db_n30.npy")}
    assert len(kept) == 2
    one, other = kept.values()
    high = table.loc["High SNR"]
    assert abs(high["difference"]) == pytest.approx(abs((one - other).mean()))
    assert high["difference"] == pytest.approx(high["after"] - high["before"])
    assert high["paired error"] == pytest.approx((one - other).std(ddof=1) / 3**0.5)


def test_a_folder_is_taken_for_what_it_holds(tool, tmp_path):
    folder = files("measureflow") / "weights" / "flow-transformer"
    table = tool.compared("flow-transformer", str(folder), 2, 30, tmp_path)
    assert (table["difference"] == 0).all()
    assert (table["before"] > 0).all()
