"""A training run is a function of its config, however often it is interrupted."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from measureflow.models import FlowTransformer, FlowTransformerConfig, save_model
from measureflow.models.checkpoints import load_tensors
from measureflow.models.pretrained import build, load_model
from measureflow.training import Training
from measureflow.training.config import Stage, TrainingConfig, read_config
from measureflow.training.loop import data_of
from measureflow.training.losses import snr_scaled_w2
from measureflow.training.objectives import OBJECTIVES

ROOT = Path(__file__).parents[2]
TINY = read_config(ROOT / "configs" / "tiny.toml")
SHORT = replace(TINY, stages=[replace(TINY.stages[0], steps=6)])
SHORT_RUN = """
import sys
from dataclasses import replace
from measureflow.training import Training
from measureflow.training.config import read_config
config = read_config(sys.argv[1])
short = replace(config, stages=[replace(config.stages[0], steps=6)])
Training(short, sys.argv[2], resume=True).run()
"""


def weights(folder: Path) -> dict:
    return load_tensors(folder / "checkpoint.safetensors")[0]


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    Training(SHORT, folder).run()
    return folder


def test_interrupted_and_resumed_ends_with_the_same_bits(whole, tmp_path):
    first = Training(SHORT, tmp_path)

    def interrupt(facts):
        first.stopping = facts["step"] == 2

    first.run(interrupt)
    assert first.done == 3
    Training(SHORT, tmp_path, resume=True).run()
    assert same(weights(whole), weights(tmp_path))
    steps = [line.split(",")[0] for line in (tmp_path / "log.csv").read_text().splitlines()]
    assert steps == ["step", *map(str, range(6))]


def test_kill_9_resumes_to_the_same_bits(whole, tmp_path):
    """Kill a real process while it trains (it writes a checkpoint after every step), then go on."""
    command = [sys.executable, "-c", SHORT_RUN, str(ROOT / "configs" / "tiny.toml"), str(tmp_path)]
    process = subprocess.Popen(command)
    while not (tmp_path / "checkpoint.safetensors").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    Training(SHORT, tmp_path, resume=True).run()
    assert same(weights(whole), weights(tmp_path))


def test_training_lowers_the_loss_on_data_it_never_saw(tmp_path):
    config = TrainingConfig(kind="any-dimension", stages=[Stage(steps=40, n=32, batch=8, rate=3e-3)], evaluate_sets=1)
    training = Training(config, tmp_path)
    unseen = [data_of(replace(config, seed=99), step) for step in range(8)]

    def loss() -> float:
        with torch.no_grad():
            return sum(snr_scaled_w2(training.model(m.points, m.snr_db), m).item() for m in unseen)

    before = loss()
    training.run()
    assert loss() < 0.9 * before


def test_two_processes_see_together_what_one_sees(whole, tmp_path):
    """torchrun with two gloo processes: the same data, the same average gradient up to rounding."""
    script = tmp_path / "entry.py"
    script.write_text(SHORT_RUN)
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", str(script)]
    result = subprocess.run(
        [*command, str(ROOT / "configs" / "tiny.toml"), str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    one, two = weights(whole), weights(folder)
    for name in one:
        # Adam divides by the root of a squared gradient: where that is near zero, rounding grows to the step itself
        torch.testing.assert_close(one[name], two[name], rtol=1e-2, atol=2e-3, msg=name)


def test_checkpoint_of_another_config_is_refused(whole):
    with pytest.raises(ValueError, match="another config"):
        Training(replace(SHORT, seed=5), whole, resume=True)


def test_a_finished_run_is_lengthened_by_more_stages(whole, tmp_path):
    """What was done stays as it was, and the run goes on; a change of what was done is refused."""
    longer = replace(SHORT, stages=[*SHORT.stages, replace(SHORT.stages[0], steps=3)])
    other = replace(longer, stages=[replace(SHORT.stages[0], rate=1e-4), *longer.stages[1:]])
    shutil.copytree(whole, tmp_path / "run")
    with pytest.raises(ValueError, match="another config"):
        Training(other, tmp_path / "run", resume=True)
    training = Training(longer, tmp_path / "run", resume=True)
    assert training.done == 6
    training.run()
    assert training.done == 9
    Training(longer, tmp_path / "at once").run()
    assert same(weights(tmp_path / "run"), weights(tmp_path / "at once"))


def test_folder_in_use_is_not_overwritten(whole):
    with pytest.raises(ValueError, match="resume it"):
        Training(SHORT, whole)


def test_unwritable_folder_raises_and_keeps_the_old_checkpoint(whole, tmp_path, monkeypatch):
    training = Training(SHORT, tmp_path)
    training.run()
    before = (tmp_path / "checkpoint.safetensors").read_bytes()

    def refuse(*_, **__):
        raise PermissionError("read-only file system")

    monkeypatch.setattr("measureflow.models.checkpoints.tempfile.mkstemp", refuse)
    with pytest.raises(PermissionError, match="read-only"):
        training.save()
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


@pytest.fixture
def teacher(tmp_path):
    """A folder with a tiny model, to start others from."""
    torch.manual_seed(1)
    return save_model(FlowTransformer(FlowTransformerConfig(**TINY.model)), tmp_path / "teacher")


def started(teacher: Path, folder: Path, **settings) -> Training:
    return Training(replace(SHORT, start=str(teacher), model=TINY.model | settings), folder)


def test_a_deeper_model_starts_as_the_one_it_is_made_from(teacher, tmp_path):
    model = started(teacher, tmp_path / "run", n_layers=6).model
    assert same(model.state_dict(), load_tensors(teacher / "model.safetensors")[0])


def test_the_average_starts_from_the_same_weights(teacher, tmp_path):
    assert same(started(teacher, tmp_path / "run").average, load_tensors(teacher / "model.safetensors")[0])


def test_distinct_layers_start_as_copies_of_the_shared_one(teacher, tmp_path):
    """So at first the two models say the same."""
    training = started(teacher, tmp_path / "run", distinct=True)
    mixtures = data_of(SHORT, 0)
    shared = started(teacher, tmp_path / "other").model
    ours, theirs = (m(mixtures.points, mixtures.snr_db) for m in (training.model, shared))
    torch.testing.assert_close(ours, theirs)


def test_tensors_that_do_not_fit_stay_fresh(teacher, tmp_path):
    torch.manual_seed(SHORT.seed)
    fresh = build("flow-transformer", TINY.model | {"hidden": 8}).state_dict()
    model = started(teacher, tmp_path / "run", hidden=8).model.state_dict()
    given = load_tensors(teacher / "model.safetensors")[0]
    for name, tensor in model.items():
        fits = given[name].shape == tensor.shape
        assert torch.equal(tensor, given[name] if fits else fresh[name]), name


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_run_resumes_under_every_optimiser(optimiser, tmp_path):
    config = replace(SHORT, optimiser=optimiser)
    Training(config, tmp_path / "whole").run()
    parts = Training(config, tmp_path / "parts")

    def interrupt(facts):
        parts.stopping = facts["step"] == 2

    parts.run(interrupt)
    Training(config, tmp_path / "parts", resume=True).run()
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


def test_an_unknown_optimiser_is_named(tmp_path):
    with pytest.raises(ValueError, match="optimiser must be one of adamw, muon, got 'sgd'"):
        Training(replace(SHORT, optimiser="sgd"), tmp_path)


def test_a_wider_model_starts_as_the_same_map(teacher, tmp_path):
    wide = started(teacher, tmp_path / "run", hidden=2 * TINY.model["hidden"]).model
    mixtures, given = data_of(SHORT, 0), load_model(teacher)
    torch.testing.assert_close(wide(mixtures.points, mixtures.snr_db), given(mixtures.points, mixtures.snr_db))
    new = wide.state_dict()["blocks.0.ffn.0.weight"][TINY.model["hidden"] :]
    assert (new.abs().sum(1) > 0).all()  # new units read something, so they can learn


def test_other_first_weights_make_another_run(teacher):
    config = replace(SHORT, start=str(teacher))
    before = config.fingerprint(6)
    assert before != SHORT.fingerprint(6)
    save_model(FlowTransformer(FlowTransformerConfig(**TINY.model)), teacher)
    assert config.fingerprint(6) != before


def test_a_start_that_is_no_model_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"start must be a shipped model .* got 'nowhere'"):
        Training(replace(SHORT, start="nowhere"), tmp_path)


def test_the_in_context_model_is_trained_by_the_same_loop(tmp_path):
    stage = Stage(steps=6, n=8, batch=4, rate=1e-2)
    objective = OBJECTIVES["named-clusters"](n_classes=2, dimension=2)
    settings = {"n_classes": 2, "dimension": 2, "n_layers": 1, "width": 8}
    config = TrainingConfig("in-context", [stage], objective, settings, evaluate_sets=4, evaluate_n=8)
    first = Training(config, tmp_path / "whole").run()
    longer = Training(replace(config, stages=[stage, stage]), tmp_path / "whole", resume=True)
    assert longer.done == 6
    assert load_model(longer.export(tmp_path / "model")).config == first.config
    losses = [objective.evaluate(model, 64, 8)["naming"] for model in (build("in-context", settings), longer.run())]
    assert losses[1] < losses[0]
