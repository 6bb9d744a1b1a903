"""Weights survive crashes, and nothing a stranger writes into a weight file can hurt."""

import errno
import json
import os
import stat

import pytest
import torch

from measureflow.models import (
    FlowTransformer,
    FlowTransformerConfig,
    InContextClusterer,
    InContextConfig,
    checkpoints,
    load_model,
    load_pretrained,
    save_model,
)
from measureflow.models.checkpoints import load_tensors, save_tensors, write_atomically

TINY = FlowTransformerConfig(width=4, n_heads=1, hidden=4, n_layers=2)


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    model = FlowTransformer(TINY)
    save_model(model, tmp_path / "model", {"why": "test"})
    return model, tmp_path / "model"


def test_model_comes_back_to_the_bit(saved):
    model, folder = saved
    again = load_model(folder)
    assert again.config == TINY
    assert not again.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


@pytest.mark.parametrize("options", [{}, {"n_classes": 3, "dimension": 2, "averaged_heads": True, "context": True}])
def test_an_in_context_clusterer_comes_back_to_the_bit(tmp_path, options):
    model = InContextClusterer(width=8, layer_norm=False, **options)
    again = load_model(save_model(model, tmp_path / "model"))
    assert again.config == model.config == InContextConfig(width=8, layer_norm=False, **options)
    assert model.state_dict().keys() == again.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_a_model_of_no_kind_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"model must be one of FlowTransformer, .* got Linear"):
        save_model(torch.nn.Linear(2, 2), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_that_lacks_a_file_is_named(saved, name):
    _, folder = saved
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"no model in .* no file {name}"):
        load_model(folder)


def test_failed_write_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new and longer")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]  # no litter


def test_folder_that_cannot_be_written_raises(tmp_path):
    missing = tmp_path / "not-there"
    with pytest.raises(OSError, match="not-there"):
        write_atomically(missing / "file", b"x")


def test_mutated_weight_files_never_crash(saved):
    """Flip, cut and insert bytes anywhere: a clear ValueError, or tensors of the declared shapes."""
    _, folder = saved
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    generator = torch.Generator().manual_seed(0)
    draw = lambda high: int(torch.randint(high, (), generator=generator))  # noqa: E731
    refused = 0
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(1 + draw(4)):
            where = draw(min(len(data), 700)) if draw(2) else draw(len(data))  # the header more often
            data[where] = draw(256)
        if draw(4) == 0:
            data = data[: draw(len(data))]
        path.write_bytes(bytes(data))
        try:
            load_model(folder)
        except ValueError:  # anything else fails the test
            refused += 1
    assert refused > 500


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"kind": "pickle", "settings": {}}, "kind"),
        ({"kind": ["flow-transformer"], "settings": {}}, "kind"),
        ({"kind": "in-context", "settings": {"width": 0}}, "width"),
        ({"kind": "flow-transformer"}, "settings"),
        ({"kind": "flow-transformer", "settings": {"hiden": 3}}, "hiden"),
        ({"kind": "flow-transformer", "settings": {"hidden": "3"}}, "hidden"),
        ({"kind": "flow-transformer", "settings": {"hidden": True}}, "hidden"),
        ({"kind": "flow-transformer", "settings": {"hidden": 8, "width": 4, "n_heads": 1}}, "ffn|fit|should be"),
    ],
)
def test_wrong_configs_are_named(saved, table, word):
    _, folder = saved
    (folder / "config.json").write_text(json.dumps(table))
    with pytest.raises(ValueError, match=word):
        load_model(folder)


@pytest.mark.parametrize("text", ["", "[", "[1]", '"x"', "[" * 5000, "\x00", "{" * 70000])
def test_garbage_configs_are_refused(saved, text):
    _, folder = saved
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json"):
        load_model(folder)


def test_limits_hold(saved, monkeypatch):
    _, folder = saved
    monkeypatch.setattr(checkpoints, "MAX_TENSORS", 3)
    with pytest.raises(ValueError, match="limit of 3"):
        load_model(folder)
    monkeypatch.setattr(checkpoints, "MAX_BYTES", 100)
    with pytest.raises(ValueError, match="limit of 100"):
        load_model(folder)


def test_values_that_are_not_finite_are_refused(tmp_path):
    path = save_tensors(tmp_path / "x.safetensors", {"a": torch.tensor([1.0, torch.nan])})
    with pytest.raises(ValueError, match="not finite, in a"):
        load_tensors(path)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="name must be one of"):
        load_pretrained("../../secrets")


def test_files_are_written_for_all_to_read_only_by_the_umask(tmp_path):
    path = write_atomically(tmp_path / "file", b"x")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
