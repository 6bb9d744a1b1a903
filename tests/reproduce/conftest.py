"""One folder of runs at size tiny for all tests of the reproductions: an artefact is made once."""

import pytest


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("out")
