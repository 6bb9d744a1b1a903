"""What can be done with a flow once it is there."""

import math

import numpy as np
import pytest
import torch

from measureflow.attention import Attention, NegativeSquaredDistance, Relative, Softmax
from measureflow.flows import Trajectory, Uniform, dopri5, integrate, rk4
from measureflow.flows.pictures import colour
from measureflow.measures import Empirical, Gaussian
from problems import LINES, normal, starts

PULL = Relative(Attention(NegativeSquaredDistance(), Softmax(0.5)))


@pytest.mark.parametrize("kind", starts())
def test_indexing_and_slicing(kind):
    field = Attention() if kind == "gaussian" else PULL
    path = integrate(field, starts()[kind], Uniform(0.1, 5), rk4)
    assert len(path) == 6
    assert path[0] is starts()[kind] or type(path[0]) is type(starts()[kind])
    assert path[-1] is path[5]
    assert [id(state) for state in path] == [id(path[i]) for i in range(6)]
    part = path[1:6:2]
    assert isinstance(part, Trajectory)
    assert len(part) == 3
    assert part[0] is path[1]
    assert part.times == [path.times[i] for i in (1, 3, 5)]
    with pytest.raises(IndexError):
        path[6]
    assert "6 states" in repr(path)


def test_points_and_covariances_have_layers_first():
    batch = Empirical(normal(3, 5, 2, seed=1))
    path = integrate(PULL, batch, [0.5] * 4)
    assert path.points.shape == (5, 3, 5, 2)
    assert torch.equal(path.points[2], path[2].points)
    gaussians = integrate(Attention(), Gaussian(torch.zeros(3, 2), 0.1 * torch.eye(2)), [0.1] * 2)
    assert gaussians.covariances.shape == (3, 3, 2, 2)
    assert gaussians.points.shape == (3, 3, 2)


def test_table_of_a_batch_of_weighted_points():
    w = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    mu = Empirical(torch.arange(8.0).reshape(2, 2, 2), w)
    table = integrate(PULL, mu, [torch.tensor([0.5, 1.0])]).to_pandas()
    assert list(table.columns) == ["layer", "time", "batch", "point", "mass", "x0", "x1"]
    assert len(table) == 2 * 2 * 2
    start, end = table[table.layer == 0], table[table.layer == 1]
    assert start.x0.tolist() == [0, 2, 4, 6]
    assert start.x1.tolist() == [1, 3, 5, 7]
    assert start.batch.tolist() == [0, 0, 1, 1]
    assert start.point.tolist() == [0, 1, 0, 1]
    assert end.mass.tolist() == w.flatten().tolist()
    assert end.time.tolist() == [0.5, 0.5, 1.0, 1.0]


def test_table_of_a_gaussian_has_its_mean_and_covariance():
    mu = Gaussian(torch.tensor([1.0, 2.0]), torch.tensor([[3.0, 0.5], [0.5, 4.0]]))
    table = integrate(Attention(), mu, [0.0]).to_pandas()
    assert table.row.tolist() == ["mean", "covariance0", "covariance1"] * 2
    assert table.x0.tolist()[:3] == [1.0, 3.0, 0.5]
    assert table.x1.tolist()[:3] == [2.0, 0.5, 4.0]


def test_table_of_an_adaptive_flow_has_its_times():
    table = integrate(PULL, normal(3, 2, seed=1), [0.25, 0.5], dopri5).to_pandas()
    assert table.groupby("layer").time.first().tolist() == [0.0, 0.25, 0.75]
    np.testing.assert_allclose(table.mass, 1 / 3)


def test_blow_up_words_of_one_and_of_many():
    line = LINES["spreads"]
    one = integrate(line.field, line.start, [2.0], dopri5)
    assert one.divergence == "finite time"
    assert one.blow_up_time.shape == ()
    many = integrate(
        line.field, Gaussian(torch.zeros(3, 1), torch.tensor([[[0.8]], [[0.08]], [[0.0]]]).double()), [2.0], dopri5
    )
    assert many.divergence == ["finite time", "none", "none"]
    assert integrate(line.field, line.start, [0.1]).blow_up_time.item() == math.inf


@pytest.mark.parametrize("d", [1, 2, 3])
def test_plot_draws_paths_from_start_to_end(d, tmp_path):
    path = integrate(PULL, normal(2, 30, d, seed=1), [0.5] * 10)
    axes = path.plot(element=1)
    if d == 1:
        assert len(axes.lines) == 30
        assert axes.get_xlabel() == "layer"
        assert axes.get_aspect() == "auto"  # layers and positions have no common unit
    else:
        start, end = (scatter.get_offsets() for scatter in axes.collections)
        np.testing.assert_allclose(start, path[0][1, :, :2])
        np.testing.assert_allclose(end, path[-1][1, :, :2])
        np.testing.assert_allclose(axes.lines[3].get_xydata(), path.points[:, 1, 3, :2])
    axes.figure.savefig(tmp_path / "flow.png")
    assert (tmp_path / "flow.png").stat().st_size > 5000  # an empty canvas has less


def test_plot_chooses_coordinates_and_axes():
    import matplotlib.pyplot as plt

    path = integrate(PULL, normal(30, 3, seed=1), [0.5])
    given = plt.subplots()[1]
    assert path.plot(given, coordinates=(2, 0)) is given
    assert path.plot(ax=given) is given
    np.testing.assert_allclose(given.collections[0].get_offsets(), path[0][:, [2, 0]])


def test_plot_colours_paths_by_their_labels():
    mu = Empirical(torch.randn(4, 2, generator=torch.Generator().manual_seed(0)))
    path = integrate(Attention(), mu, [0.1] * 2)
    axes = path.plot(labels=[0, 1, 0, -1])
    colours = [line.get_color() for line in axes.lines]
    assert colours == [colour(0), colour(1), colour(0), colour(-1)]
    with pytest.raises(ValueError, match=r"labels must have shape \(4,\)"):
        path.plot(labels=[0, 1])


def test_axes_of_different_units_are_not_drawn_to_one_scale():
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    assert integrate(Attention(), Empirical(x), [0.01]).plot().get_aspect() == 1.0
    stretched = x * torch.tensor([1.0, 100.0])
    assert integrate(Attention(), Empirical(stretched), [1e-9]).plot().get_aspect() == "auto"


def test_plot_of_a_gaussian_draws_one_standard_deviation():
    S = torch.diag(torch.tensor([4.0, 1.0]))
    axes = integrate(Attention(), Gaussian(torch.tensor([1.0, 0.0]), S), [0.01] * 3).plot()
    assert len(axes.lines) == 4
    first = axes.lines[0].get_xydata()
    # a hundred points around the ellipse come within 1 - cos(pi/99) of its ends
    np.testing.assert_allclose([first[:, 0].min(), first[:, 0].max(), first[:, 1].max()], [-1, 3, 1], atol=2e-3)


def test_plot_of_a_gaussian_on_a_line_draws_its_band():
    path = integrate(LINES["clusters"].field, LINES["clusters"].start, [0.1] * 3)
    axes = path.plot()
    np.testing.assert_allclose(axes.lines[0].get_ydata(), path.points[:, 0])
    assert len(axes.collections) == 1
