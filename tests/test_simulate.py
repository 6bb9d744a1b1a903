"""`simulate`: every attention by name, from Python and from the command line."""

import re

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from measureflow.cli import main
from measureflow.measures import Gaussian
from measureflow.simulate import ATTENTIONS, field_named, save, simulate


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_attention_flows(attention, masked):
    if attention == "sinkhorn" and masked:
        with pytest.raises(ValueError, match="couples all queries"):
            simulate(attention, n=12, masked=True)
        return
    path = simulate(attention, n=12, V=-torch.eye(2), time=0.3, n_layers=3, masked=masked)
    assert path.points.shape == (4, 12, 2 + masked)
    assert torch.isfinite(path.points).all()
    assert (path.points[-1] - path.points[0]).abs().max() > 1e-3


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) + shape[0]), dtype=torch.float64)


def test_heads_share_the_rows_of_q_k_and_v():
    Q, V, x = drawn(4, 4), drawn(4, 4).T, drawn(6, 4)
    two = field_named("softmax", 4, Q=Q, V=V, heads=2)(x)
    for rows in (slice(0, 2), slice(2, 4)):
        weights = torch.softmax(x @ Q[rows].T @ x[:, rows].T, -1)
        assert torch.allclose(two[:, rows], weights @ x @ V[rows].T)


def test_heads_matter_to_a_gaussian():
    Q, V = drawn(4, 4), -torch.eye(4, dtype=torch.float64)
    mu = Gaussian(drawn(4), drawn(4, 4) @ drawn(4, 4).T)
    M, c = field_named("softmax", 4, Q=Q, V=V, heads=2)(mu)
    for rows in (slice(0, 2), slice(2, 4)):  # Lemma 4.1 for each head, whose K is rows of the identity
        assert torch.allclose(M[rows], -(mu.covariance[:, rows] @ Q[rows])[rows])
    assert torch.allclose(c, -mu.mean)
    one, two = (simulate("softmax", d=4, gaussian=True, Q=Q, V=V, time=1.0, heads=h).covariances[-1] for h in (1, 2))
    assert (one - two).abs().max() > 1e-2


@pytest.mark.parametrize("attention", ["softmax", "l2", "sinkhorn", "linear"])
def test_heads_that_would_act_as_one_on_a_gaussian_are_refused(attention):
    with pytest.raises(ValueError, match="all heads act as one"):
        simulate(attention, d=4, gaussian=True, heads=2, V=-torch.eye(4))
    mu = Gaussian(torch.zeros(4).double(), torch.eye(4).double())  # because it is so
    one, two = (field_named(attention, 4, V=-torch.eye(4), heads=h)(mu).M for h in (1, 2))
    assert torch.allclose(one, two)


@pytest.mark.parametrize("relative", [False, True])
def test_positions_of_masked_tokens_stay(relative):
    path = simulate("l2", n=20, masked=True, relative=relative, V=0.5 * torch.eye(2), time=1.0, n_layers=4)
    assert torch.equal(path.points[-1, :, 0], path.points[0, :, 0])
    first = path.points[:, 0, 1:]  # sees itself alone: x' = x / 2, or that minus x
    assert torch.allclose(first[-1], first[0] * torch.tensor(-0.5 if relative else 0.5).exp(), rtol=1e-5)


def test_a_gaussian_and_the_sphere():
    assert simulate("softmax", gaussian=True, V=-torch.eye(2), time=5.0).divergence == "none"
    path = simulate("exp", n=30, sphere=True, time=1.0, n_layers=10)
    assert torch.allclose(path.points.norm(dim=-1), torch.ones(11, 30).double())


def test_progress_tells_the_time():
    seen = []
    simulate("l2", n=10, V=-torch.eye(2), time=1.0, n_layers=2, progress=seen.append)
    assert seen[0] == 0.0
    assert max(seen) <= 1.0 + 1e-9
    assert len(seen) > 5


@pytest.mark.parametrize(
    ("options", "word"),
    [({"attention": "soft"}, "attention"), ({"n": 0}, "n must"), ({"heads": 3}, "heads"), ({"V": [[1.0]]}, "V must"),
     ({"sphere": True, "gaussian": True}, "sphere"), ({"fast": 1e-3, "masked": True}, "fast goes with"),
     ({"time": -1.0}, "time")],
)  # fmt: skip
def test_bad_input_is_named(options, word):
    with pytest.raises(ValueError, match=word):
        simulate(**options)


def test_files(tmp_path):
    files = save(simulate("l2", n=15, time=0.5, n_layers=3), tmp_path)
    assert [file.name for file in files] == ["trajectory.csv", "flow.png", "flow.gif"]
    assert len(pd.read_csv(files[0])) == 4 * 15


def test_command_line(tmp_path):
    run = CliRunner().invoke(
        main, ["simulate", "--attention", "linear", "--gaussian", "--time", "9", "--out", str(tmp_path)]
    )
    assert run.exit_code == 0, run.output
    assert "Blow-up in finite time, at t = 0.5" in run.output
    bad = CliRunner().invoke(main, ["simulate", "--attention", "soft"])
    assert bad.exit_code == 2


def test_command_line_lists_artefacts():
    run = CliRunner().invoke(main, ["reproduce", "--list"])
    assert run.exit_code == 0
    assert re.search(r"^castin2025 +fig1 ", run.output, re.MULTILINE)
    assert CliRunner().invoke(main, ["reproduce", "castin2025", "fig9"]).exit_code == 2


def test_given_points_are_what_flows():
    points = [[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]]
    path = simulate("l2", points=points, time=0.5, n_layers=2)
    assert path.points[0].tolist() == points
    assert path.points.shape == (3, 3, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"points": [[1.0, 2.0, 3.0]]}, "shape"),
        ({"points": [[float("nan"), 1.0]]}, "finite"),
        ({"points": [[1.0, 2.0]], "gaussian": True}, "gaussian"),
    ],
)
def test_points_that_cannot_flow_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        simulate("l2", **options)


def test_positions_of_masked_tokens_stay_when_the_flow_is_relative():
    path = simulate("softmax", n=12, masked=True, relative=True, time=1.0, n_layers=3)
    assert bool((path.points[-1][:, 0] == path.points[0][:, 0]).all())
