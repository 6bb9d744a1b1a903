"""What every test may rely on: no screen, and randomness from a generator of its own."""

import matplotlib
import pytest
import torch

matplotlib.use("Agg")


@pytest.fixture
def generator() -> torch.Generator:
    """The same stream of numbers in every run of every test."""
    return torch.Generator().manual_seed(20250101)


@pytest.fixture(autouse=True)
def threads_left_as_they_were():
    """Put torch's number of threads back: another one would change the bits of trainings in later tests."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def no_figures_left():
    """Close what a test drew, so that pictures do not pile up."""
    yield
    import sys

    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
