"""Many clients at once get answers, all of them (how fast is for ``load.py`` to say)."""

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("load", Path(__file__).with_name("load.py"))
script = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(script)


@pytest.mark.slow
def test_sixty_four_clients_see_no_error():
    with script.server() as address:
        times, troubles = script.load(address, clients=64, seconds=3)
    assert not troubles
    assert sum(map(len, times.values())) > 0
