"""Muon: orthogonal steps for matrices, AdamW's for all else."""

import pytest
import torch
from torch import nn

from measureflow.training.muon import NARROWEST, Muon, orthogonal_factor


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(20, 20), (16, 50), (50, 16), (3, 20, 30)])
def test_the_factor_keeps_directions_and_evens_out_lengths(shape):
    G = random(*shape)
    U, _, V = torch.linalg.svd(G, full_matrices=False)
    inside = U.mT @ orthogonal_factor(G) @ V.mT  # diagonal in the bases of G
    values = inside.diagonal(dim1=-2, dim2=-1)
    assert (inside - torch.diag_embed(values)).abs().max() < 1e-9  # a polynomial of G keeps its bases
    assert values.min() > 0.6  # what the quintic promises for singular values that are not tiny
    assert values.max() < 1.3


def test_the_size_of_the_gradient_does_not_matter():
    G = random(20, 30)
    assert torch.allclose(orthogonal_factor(G), orthogonal_factor(1e3 * G), atol=1e-6)  # the 1e-7 in the norm


def moved(weight: nn.Parameter, gradient: torch.Tensor, optimiser: torch.optim.Optimizer, steps: int) -> torch.Tensor:
    for _ in range(steps):
        weight.grad = gradient.clone()
        optimiser.step()
    return weight.detach()


@pytest.mark.parametrize("shape", [(7,), (NARROWEST - 1, 40)])
def test_vectors_and_narrow_matrices_move_as_under_adamw(shape):
    start, gradient = random(*shape), random(*shape).flip(0)
    settings = {"lr": 0.01, "betas": (0.9, 0.99), "weight_decay": 0.1}
    a, b = (nn.Parameter(start.clone()) for _ in range(2))
    ours = moved(a, gradient, Muon([a], **settings), 5)
    theirs = moved(b, gradient, torch.optim.AdamW([b], **settings), 5)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def test_a_matrix_moves_as_far_whatever_its_gradient_is():
    def length(gradient):
        weight = nn.Parameter(torch.zeros(32, 64, dtype=torch.float64))
        return float(moved(weight, gradient, Muon([weight], lr=0.5), 1).square().mean().sqrt())

    small, large = length(1e-4 * random(32, 64)), length(1e4 * random(32, 64))
    assert small == pytest.approx(large, rel=1e-3)
    # 0.2 sqrt(64) times orthonormal rows: a root mean square of 0.2, but for the spread of the singular values
    assert large == pytest.approx(0.5 * 0.2, rel=0.3)


def test_it_finds_the_least_squares():
    A, W = random(200, 20), random(24, 20)
    weight = nn.Parameter(torch.zeros(24, 20, dtype=torch.float64))
    optimiser = Muon([weight], lr=0.1)
    for step in range(400):
        optimiser.param_groups[0]["lr"] = 0.1 * (1 - step / 400)
        optimiser.zero_grad()
        (A @ (weight - W).mT).square().mean().backward()
        optimiser.step()
    assert (weight - W).abs().max() < 0.01
