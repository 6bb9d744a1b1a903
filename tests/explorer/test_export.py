"""What the browser runs is what torch runs, up to the rounding of float32, and is up to date."""

import json

import pytest

import export_models as export
from measureflow.models import load_pretrained
from onnx_graphs import assert_same_function, session


@pytest.mark.parametrize("entry", json.loads((export.MODELS / "models.json").read_text()), ids=lambda e: e["name"])
def test_the_shipped_export_is_the_shipped_model(entry):
    model = load_pretrained(entry["name"])
    assert entry == export.describe(entry["name"], model), "run `python tools/export_models.py`"
    run = session((export.MODELS / f"{entry['name']}.onnx").read_bytes())
    ratios = (entry["snr_low"], (entry["snr_low"] + entry["snr_high"]) / 2, entry["snr_high"])
    for n in (2, 100, 700):
        assert_same_function(model, run, n, (2,) if entry["d"] else (1, 3, 8), ratios)


def test_what_is_exported_is_what_the_page_lists():
    exported = [entry["name"] for entry in json.loads((export.MODELS / "models.json").read_text())]
    assert exported == list(export.EXPORTED)
    assert set(exported) <= set(load_pretrained.available())


def test_exporting_again_writes_nothing_new(monkeypatch):
    monkeypatch.setattr(export, "to_onnx", lambda model: pytest.fail("exported a model that has not changed"))
    assert export.export() == []
