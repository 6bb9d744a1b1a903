"""The chain that bounds what is possible leaves the posterior as it is: late draws are distributed like truths."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from measureflow.measures import wasserstein2
from measureflow.measures.priors import paper_test_prior
from measureflow.training.config import seeded

FILE = Path(__file__).parents[2] / "benchmarks" / "mixtures" / "posterior.py"


@pytest.fixture(scope="module")
def posterior():
    spec = importlib.util.spec_from_file_location("posterior", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def facts(points: np.ndarray, centers: np.ndarray, masses: np.ndarray, labels: np.ndarray) -> list[float]:
    """Numbers that wrong centres, wrong proportions or a wrong noise would change."""
    scatter = masses @ ((centers - masses @ centers) ** 2).sum(1)
    left = ((points - centers[labels]) ** 2).sum(1).mean()
    return [np.log1p(scatter), masses.max(), (centers**2).sum(), np.log(left), np.log(left) - np.log(scatter + 0.1)]


def test_late_draws_are_distributed_like_the_truth(posterior):
    """Truth and draw are exchangeable given the rows, so that their numbers differ by nothing on average."""
    generator, rng, gaps = seeded(4, "posterior"), np.random.default_rng(0), []
    for _ in range(400):
        mixtures = paper_test_prior(5.0).sample(1, 30, generator)
        points, labels = mixtures.points[0].double().numpy(), mixtures.labels[0].numpy()
        there = mixtures.proportions[0] > 0
        truth = mixtures.centers[0][there].double().numpy(), mixtures.mixing.weights[0][there].double().numpy(), labels
        draw = posterior.Posterior(mixtures, 0, rng).draws(1, 40)[0]
        gaps.append(np.subtract(facts(points, *draw), facts(points, *truth)))
    gaps = np.array(gaps)
    assert (np.abs(gaps).mean(0) > 0.02).all()  # draws do move
    assert (np.abs(gaps.mean(0)) < 3.5 * gaps.std(0) / len(gaps) ** 0.5).all()


def test_the_barycentre_is_nearer_than_a_draw(posterior):
    generator, rng, errors = seeded(5, "posterior"), np.random.default_rng(0), []
    for _ in range(10):
        mixtures = paper_test_prior(5.0).sample(1, 200, generator)
        draws = posterior.Posterior(mixtures, 0, rng).draws(20, 20)
        near = mixtures.points.new_tensor(posterior.barycentre(draws))[None].double()
        truth = (mixtures.mixing.points.double(), mixtures.mixing.weights.double())
        at, masses, _ = draws[-1]
        draw = wasserstein2(
            near.new_tensor(at)[None], truth[0], weights=near.new_tensor(masses)[None], atom_weights=truth[1]
        )
        errors.append([wasserstein2(near, truth[0], atom_weights=truth[1]).cost.item(), draw.cost.item()])
    best, drawn = np.mean(errors, 0)
    assert 0 < best < 0.8 * drawn
