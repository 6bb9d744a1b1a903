"""Random mixtures have the distribution that Zimin 2025, D.2 prints, and depend on nothing but their generator."""

import math

import pytest
import torch

from measureflow.measures.priors import (
    Between,
    Fixed,
    MixturePrior,
    TruncatedPoisson,
    WholeBetween,
    paper_test_prior,
    signal_to_noise,
)
from problems import seeded

PAPER = MixturePrior(d=2, components=WholeBetween(2, 20), snr_db=Between(3.0, 15.0))  # trained on in Zimin 2025, D.1


def test_snr_is_what_was_drawn():
    m = PAPER.sample(200, 5, seeded())
    snr_db = 10 * torch.log10(signal_to_noise(m.centers, m.proportions, m.noise_variance))
    torch.testing.assert_close(snr_db, m.snr_db, rtol=0, atol=1e-4)  # float32
    assert m.snr_db.min() >= 3
    assert m.snr_db.max() <= 15


def test_counts_of_components_follow_their_law():
    m = PAPER.sample(4000, 1, seeded())
    counts = torch.bincount(m.n_components, minlength=21)[2:]
    assert counts.sum() == 4000
    expected = 4000 / 19
    assert ((counts - expected).square() / expected).sum() < 42.3  # chi squared, 18 degrees, 0.1 %


def test_truncated_poisson_matches_its_probabilities():
    draws = TruncatedPoisson(5.0, 3, 7)(100_000, seeded())
    p = torch.tensor([5.0**k / math.factorial(k) for k in range(3, 8)])
    seen = torch.bincount(draws, minlength=8)[3:] / len(draws)
    torch.testing.assert_close(seen, p / p.sum(), rtol=0, atol=0.006)  # four standard errors
    assert torch.bincount(draws).numel() == 8


def test_proportions_are_dirichlet_of_ones():
    m = MixturePrior(d=1, components=Fixed(3), snr_db=Fixed(10.0)).sample(50_000, 1, seeded())
    p = m.proportions
    torch.testing.assert_close(p.sum(-1), torch.ones(50_000))
    torch.testing.assert_close(p.mean(0), torch.full((3,), 1 / 3), rtol=0, atol=0.005)
    torch.testing.assert_close(p.var(0), torch.full((3,), 1 / 18), rtol=0, atol=0.002)  # (1/3)(2/3)/4


def test_points_have_the_noise_and_the_labels_the_proportions():
    m = MixturePrior(d=3, components=WholeBetween(2, 5), snr_db=Fixed(8.0)).sample(20, 5000, seeded())
    residual = m.points - m.centers.gather(1, m.labels[..., None].expand(-1, -1, 3))
    torch.testing.assert_close(residual.square().mean((1, 2)), m.noise_variance, rtol=0.06, atol=0)  # 15,000 numbers
    torch.testing.assert_close(m.mixing.weights, m.proportions, rtol=0, atol=0.035)  # five standard errors
    assert (m.mixing.weights[m.proportions == 0] == 0).all()


def test_one_component_has_no_signal():
    m = MixturePrior(d=2, components=Fixed(1), snr_db=Fixed(10.0)).sample(4, 50, seeded())
    assert (m.snr_db == -math.inf).all()
    torch.testing.assert_close(m.noise_variance, torch.full((4,), 0.1))


def test_a_seed_fixes_the_draw():
    first, again = (paper_test_prior(5.0).sample(3, 20, seeded(7)) for _ in range(2))
    assert torch.equal(first.points, again.points)
    assert not torch.equal(first.points, paper_test_prior(5.0).sample(3, 20, seeded(8)).points)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: MixturePrior(d=0), "d must"),
        (lambda: MixturePrior().sample(0, 5, seeded()), "batch"),
        (lambda: MixturePrior().sample(1, 0, seeded()), "n must|batch and n"),
        (lambda: Between(5, 3), "low"),
        (lambda: WholeBetween(5, 3), "low"),
    ],
)
def test_bad_input_is_named(call, word):
    with pytest.raises(ValueError, match=word):
        call()
