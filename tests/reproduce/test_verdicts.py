"""Every verdict of every artefact is moved by some change of the data: one that cannot fail says nothing."""

import pytest

from measureflow.reproduce import PAPERS, artefacts, reproduce
from measureflow.reproduce.run import module_of
from reproduce.tables import read, unmoved

ALL = [(paper, name) for paper in PAPERS for name in artefacts(paper)]


@pytest.mark.parametrize(("paper", "name"), ALL)
def test_some_change_of_the_data_moves_each_verdict(paper, name, out):
    reproduce(paper, name, "tiny", out)
    stuck = unmoved(module_of(paper, name), read(out / paper / name))
    assert stuck == []
