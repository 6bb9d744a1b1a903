"""The door of simulate: every attention by name, from Python and from the command line."""

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from measureflow.cli import main
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


def test_heads_share_the_rows_of_q_and_k():
    g = torch.Generator().manual_seed(0)
    Q, x = torch.randn(4, 4, generator=g, dtype=torch.float64), torch.randn(6, 4, generator=g, dtype=torch.float64)
    two = field_named("softmax", 4, Q=Q, heads=2)
    one = sum(
        field_named("softmax", 4).attend(x @ Q[rows].T @ torch.eye(4).double()[rows], x, None)
        for rows in (slice(0, 2), slice(2, 4))
    )
    assert torch.allclose(two(x), one)


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
     ({"sphere": True, "gaussian": True}, "sphere"), ({"time": -1.0}, "time")],
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
    assert "castin2025: fig1" in run.output
    assert CliRunner().invoke(main, ["reproduce", "castin2025", "fig9"]).exit_code == 2
