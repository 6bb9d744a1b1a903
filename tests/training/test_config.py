"""A config says what a training draws and how fast it goes; wrong ones are named."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from measureflow.models import load_pretrained
from measureflow.models.pretrained import build
from measureflow.training import Training
from measureflow.training.config import Stage, TrainingConfig, read_config, seeded
from measureflow.training.loop import data_of

ROOT = Path(__file__).parents[2]
TINY = read_config(ROOT / "configs" / "tiny.toml")
SHORT = replace(TINY, stages=[replace(TINY.stages[0], steps=6)])


@pytest.mark.parametrize("path", sorted((ROOT / "configs").rglob("*.toml")), ids=lambda path: path.stem)
def test_every_config_makes_a_model_and_its_data(path):
    config = read_config(path)
    build(config.kind, config.model)
    known = not config.start or config.start in load_pretrained.available()
    assert known or (ROOT / config.start / "config.json").is_file()
    stage, _ = config.stage_of(config.steps - 1)
    sets, points = data_of(config, config.steps - 1).points.shape[:2]
    assert (stage.n_least or stage.n) <= points <= stage.n
    assert sets == stage.batch * stage.n // points


def test_smaller_sets_come_in_larger_batches():
    stage = Stage(steps=60, n=90, batch=2, rate=1e-3, n_least=10)
    config = TrainingConfig(kind="flow-transformer", stages=[stage])
    shapes = [data_of(config, step).points.shape for step in range(60)]
    points = [n for _, n, _ in shapes]
    assert 10 <= min(points) < 20
    assert 70 < max(points) <= 90
    assert 20 < sum(points) / 60 < 60  # even in the logarithm: the mean is 36, not 50
    assert all(180 - n < sets * n <= 180 for sets, n, _ in shapes)


def test_a_step_goes_down_the_mean_gradient_of_its_draws(tmp_path):
    """Draws have sizes of their own; a step on two of them is one on their mean loss."""
    stage = Stage(steps=1, n=40, n_least=10, batch=2, rate=1e-2, draws=2)
    config = TrainingConfig("flow-transformer", [stage], model=TINY.model, evaluate_sets=1, evaluate_n=10)
    batches = [data_of(config, 0, draw) for draw in range(2)]
    assert batches[0].points.shape != batches[1].points.shape
    one, two = (Training(config, tmp_path / name) for name in ("one", "two"))
    facts = one.take_step(0, batches)
    losses = [config.aim.loss(two.model, batch, slice(None), seeded(0)) for batch in batches]
    two.descent.step(0, [sum(losses) / 2])
    assert facts["loss"] == pytest.approx(sum(loss.item() for loss in losses) / 2)
    for name, parameter in one.model.named_parameters():
        torch.testing.assert_close(parameter, two.model.get_parameter(name), atol=1e-5, rtol=1e-5)
    run = Training(config, tmp_path / "run")
    run.run()
    assert all(torch.equal(tensor, one.model.state_dict()[name]) for name, tensor in run.model.state_dict().items())


def test_one_draw_a_step_is_as_before_there_were_more():
    """So older checkpoints go on."""
    assert SHORT.fingerprint(6) == replace(SHORT, stages=[replace(s, draws=1) for s in SHORT.stages]).fingerprint(6)
    assert SHORT.fingerprint(6) != replace(SHORT, stages=[replace(s, draws=2) for s in SHORT.stages]).fingerprint(6)


def test_data_of_a_step_depend_on_nothing_else():
    config = TrainingConfig(kind="flow-transformer", stages=[Stage(steps=10, n=8, batch=2, rate=1e-3)])
    assert torch.equal(data_of(config, 7).points, data_of(config, 7).points)
    assert not torch.equal(data_of(config, 7).points, data_of(config, 8).points)
    assert seeded(1, "test", 5).initial_seed() != seeded(1, "train", 5).initial_seed()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("kind = ", "TOML"),
        ('kind = "flow-transformer"', "stages"),
        ('kind = "flow-transformer"\nsped = 1\n[[stages]]\nsteps=1\nn=8\nbatch=1\nrate=0.1', "sped"),
        ('kind = "flow-transformer"\n[[stages]]\nsteps=1\nn=8\nbatch=1', "rate"),
        ("[[stages]]\nsteps=1\nn=8\nbatch=1\nrate=0.1", "kind"),
        ('kind = "flow-transformer"\n[[stages]]\nsteps=1\nn=8\nn_least=9\nbatch=1\nrate=0.1', "n_least"),
        ('kind = "flow-transformer"\n[[stages]]\nsteps=1\nn=8\ndraws=0\nbatch=1\nrate=0.1', "draws"),
    ],
)
def test_wrong_configs_are_named(tmp_path, text, word):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=word):
        read_config(path)


def test_rates_rise_and_fall():
    stage = Stage(steps=100, n=8, batch=1, rate=1.0, rate_end=0.1, warmup=10)
    rates = [stage.rate_at(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == rates[10] == 1.0
    assert rates[-1] == pytest.approx(0.1, abs=1e-3)
