"""A flow for clusters of any shape, and the probability that two rows belong together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from measureflow.attention import Layers
from measureflow.flows import euler, integrate
from measureflow.measures import checks
from measureflow.models.any_shape.config import AnyShapeConfig
from measureflow.models.any_shape.features import (
    N_FACTS,
    PATH_SHARES,
    density_of,
    landmark_features,
    local_facts,
    path_facts,
    squared_distances,
)
from measureflow.models.any_shape.layer import ShapeLayer
from measureflow.models.any_shape.merges import MergeJudge, zero_linear
from measureflow.models.any_shape.tokens import ColouredTokens, LimitedGradient, all_but_own, on_sphere
from measureflow.models.any_shape.trees import SUREST, MergeTrees, pair_trees, path_trees

MOST_CLUSTERS = 100  # numbers of clusters that the flow can tell apart
PARTS = (0.02, 0.05, 0.1, 0.2)  # of the rows: the likeliest split off of a part of that many is a fact
N_COUNT_FACTS = 10 + len(PARTS)  # what the number of clusters is read from
COUNT_PARTS = 3  # logistic distributions that make up the one of the number of clusters
SHARPER = 3.0  # by how much P is sharpened for one of the counts of clusters that it implies
PAIR_CODES = 32  # numbers in which two rows are compared beyond position and colour


class Together(NamedTuple):
    """What the flow says of a set."""

    logits: Tensor  # (B, n, n): of the probability that two rows belong together
    noise: Tensor  # (B, n): logits of the probability that a row belongs to nothing
    n_clusters: Tensor  # (B, 100): logits of the numbers of clusters from one on
    count_facts: Tensor  # (B, 14): what they were read from ...
    pooled: Tensor  # (B, 2 p): ... beside these means and deviations of the features
    one_noise: Tensor  # (B,): logits of the probability that all rows are Gaussian in one round noise
    path: list[ColouredTokens]  # the tokens at every layer


class AnyShapeFlow(nn.Module):
    r"""Tokens gather into clusters of any shape: positions flow in R^d, colours on a sphere, along the same attention.

    The answer is :math:`P_{ij}`, the probability that rows i and j belong together, read off where the tokens ended:

    .. math:: \operatorname{logit} P_{ij} = b + a_i + a_j - s \log(1 + |y_i - y_j|^2 / w_i w_j)
        + \gamma_{ij}\, c_i \cdot c_j + e_i \cdot e_j + g(v_{ij}) + g'(v'_{ij}) + g''(v''_{ij})

    where v is the merge at which two rows meet in the tree of paths between rows (`path_trees`), v' and v'' those in
    the trees of what the terms before say (`pair_trees`), and g what a network says of a merge (`MergeJudge`). The
    last tree is nearly the one that is cut, so its judge can mend what the others have left. Everything but
    positions is invariant, so rotating, shifting, scaling or permuting the rows changes nothing in P.

    Layers are steps along one field, whose weights they share, or each along a field of its own (``distinct``). After
    ``reshape_after`` of them, what lies between rows and their tokens is what the flow takes for noise; space is
    reshaped so that this noise becomes rounder, as far as the flow judges it right.

    >>> model = AnyShapeFlow()
    >>> x = torch.randn(2, 30, 5, generator=torch.Generator().manual_seed(0))
    >>> model(x).shape
    torch.Size([2, 30, 30])
    """

    def __init__(self, config: AnyShapeConfig | None = None):
        super().__init__()
        self.config = c = config or AnyShapeConfig()
        self.start = nn.Sequential(nn.Linear(N_FACTS, c.n_features), nn.GELU(), nn.Linear(c.n_features, c.n_features))
        self.connect = zero_linear(len(PATH_SHARES), c.n_features)
        self.of_paths, self.of_pairs, self.again = (MergeJudge(c.n_features, c.judge_hidden) for _ in range(3))
        self.restart = nn.Sequential(nn.Linear(N_FACTS, c.n_features), nn.GELU(), nn.Linear(c.n_features, c.n_features))
        judge = nn.Linear(c.n_features, 1)
        nn.init.constant_(judge.bias, -2.0)  # space begins nearly as it is
        self.reshape = nn.Sequential(nn.LayerNorm(c.n_features), judge)
        self.layers = nn.ModuleList(ShapeLayer(c) for _ in range(c.n_layers if c.distinct else 1))
        self.pair = nn.Sequential(nn.LayerNorm(c.n_features), nn.Linear(c.n_features, 3 + PAIR_CODES))
        self.bias = nn.Parameter(torch.tensor([0.0, 1.0, 1.0]))
        self.noise = nn.Sequential(nn.LayerNorm(c.n_features), nn.Linear(c.n_features, 1))
        self.count = nn.Sequential(nn.Linear(N_COUNT_FACTS, 32), nn.GELU(), zero_linear(32, 3 * COUNT_PARTS + 1))
        n_pooled = 2 * c.n_features
        n_read = n_pooled + N_COUNT_FACTS
        self.single = nn.Sequential(nn.LayerNorm(n_read), nn.Linear(n_read, 64), nn.GELU(), zero_linear(64, 1))
        self.one_noise = nn.Sequential(nn.LayerNorm(n_pooled), nn.Linear(n_pooled, 32), nn.GELU(), zero_linear(32, 1))

    def forward(self, points: Tensor) -> Tensor:
        """Probabilities (B, n, n) that rows of points (B, n, d) belong together."""
        return torch.sigmoid(self.together(points).logits)

    def together(self, points: Tensor) -> Together:
        """Everything the flow says of points (B, n, d), with at least two rows."""
        if points.ndim != 3 or points.shape[1] < 2 or points.shape[2] < 1:
            raise ValueError(f"points must have shape (B, n, d) with at least two rows, got {tuple(points.shape)}")
        checks.finite("points", points)
        first, trees = self._first(points)
        path = self._flow(first)
        logits, merges, trees = self._logits(path[-1], trees)
        features = path[-1].features
        facts, means = self.count_facts(logits, merges, trees), pooled(features)
        noise, one_noise = self.noise(features).squeeze(-1), self.one_noise(means).squeeze(-1)
        return Together(logits, noise, self.count_logits(facts, means), facts, means, one_noise, path)

    def _flow(self, first: ColouredTokens) -> list[ColouredTokens]:
        """The tokens at every layer, a step of Euler's method each; space is reshaped between two of them."""
        before, n_layers = self.config.reshape_after, self.config.n_layers
        layers = [cast(ShapeLayer, self.layers[step % len(self.layers)]) for step in range(n_layers)]
        if not 0 < before < n_layers:
            return moved(first, layers)
        path = moved(first, layers[:before])
        return [*path, *moved(self._reshaped(path[-1]), layers[before:])[1:]]

    def _first(self, points: Tensor) -> tuple[ColouredTokens, MergeTrees]:
        """The first tokens, and the trees of paths between the rows."""
        x = points.double() - points.double().mean(1, keepdim=True)
        x = x / x.square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-12)
        facts, log_scale, gaps = local_facts(x, points.dtype)
        x = x.to(points)
        (trees, paths), m = path_trees(gaps), self.config.n_colours
        density = density_of(gaps, log_scale)
        marks = [landmark_features(squares, density, m) for squares in (gaps, torch.exp(2 * paths))]
        features = self.start(facts) + self.connect(path_facts(paths, log_scale))
        tokens = ColouredTokens(x, x, on_sphere(torch.cat(marks, -1)), features, log_scale, all_but_own(x))
        return tokens, trees

    def _reshaped(self, tokens: ColouredTokens) -> ColouredTokens:
        r"""Space in which noise of covariance W, that of rows minus tokens, looks rounder: :math:`x \to L^{-1} x` with
        :math:`L L^T = (1 - \alpha) I + \alpha W / \tau`, where tau is the mean of W's diagonal and the features say
        alpha."""
        x, y, _, f, *_ = tokens
        d = x.shape[-1]
        noise = (x - y).detach()  # gradients through a matrix root are wild, and teach little
        W = noise.mT @ noise / x.shape[1]
        mean = W.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None].clamp_min(1e-12)
        alpha = torch.sigmoid(self.reshape(f.mean(1, keepdim=True)))
        shape = (1 - alpha + 1e-3) * torch.eye(d, dtype=x.dtype, device=x.device) + alpha * W / mean
        root = torch.linalg.cholesky(shape)
        x, y = (torch.linalg.solve_triangular(root, t.mT, upper=False).mT for t in (x, y))
        size = x.square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-12)
        x, y = x / size, y / size
        facts, log_scale, _ = local_facts(x)
        return tokens._replace(rows=x, positions=y, features=f + self.restart(facts), log_scale=log_scale)

    def _pair_logits(self, tokens: ColouredTokens) -> Tensor:
        _, y, colours, f, log_scale, _ = tokens
        alone, width, affinity, codes = self.pair(f).split([1, 1, 1, PAIR_CODES], -1)
        width = width + log_scale
        gaps = squared_distances(y) * torch.exp(-(width + width.mT))
        base, far, hue = self.bias
        agreement = 4 * nn.functional.softplus(hue + affinity + affinity.mT) * (colours @ colours.mT)
        codes = codes @ codes.mT / math.sqrt(PAIR_CODES)
        return base + alone + alone.mT - 2 * nn.functional.softplus(far) * torch.log1p(gaps) + agreement + codes

    def _logits(self, tokens: ColouredTokens, trees: MergeTrees) -> tuple[Tensor, list[Tensor], MergeTrees]:
        """Logits (B, n, n) that rows belong together, logits (B, n - 1) that merges of the first tree and of the last
        one are right, and the last tree."""
        x, f, log_scale = tokens.rows, tokens.features, tokens.log_scale
        of_paths = self.of_paths(trees, f, x, log_scale)
        logits = self._pair_logits(tokens) + trees.of_pairs(of_paths)
        right = of_paths
        for judge in (self.of_pairs, self.again):
            trees = pair_trees(logits)
            said = judge(trees, f, x, log_scale)
            logits, right = logits + trees.of_pairs(said), said - trees.heights
        return logits, [of_paths, right], trees

    def count_facts(self, logits: Tensor, merges: list[Tensor], trees: MergeTrees) -> Tensor:
        """What the number of clusters is read from, (B, 14); no gradient flows into it.

        These are the logs of the numbers of clusters that P implies as it is, sharpened, and cut at one half; of the
        mean shares of the rows in a cluster, likewise; of the numbers that the merges imply which are not right; of
        the number of rows; and how right the most doubtful merge is, of those in the last tree whose smaller child has
        a share of `PARTS` of the rows.
        """
        n, logits = logits.shape[1], logits.detach()
        P = torch.stack([torch.sigmoid(logits), torch.sigmoid(SHARPER * logits), (logits > 0).to(logits)], 1)
        sizes = 1 + P.sum(-1) - P.diagonal(dim1=-2, dim2=-1)  # rows whose cluster has s rows count 1/s each
        of_paths, of_pairs = (merge.detach() for merge in merges)
        splits = [torch.sigmoid(-merge).sum(-1) for merge in (of_paths, of_pairs, SHARPER * of_pairs)]
        facts = [(1 / sizes).sum(-1).log(), (sizes.mean(-1) / n).log(), torch.log1p(torch.stack(splits, -1))]
        part = trees.sizes.amin(-1) / n
        doubtful = [of_pairs.masked_fill(part < least, SUREST).amin(-1).clamp_min(-SUREST) for least in PARTS]
        rows = logits.new_full((len(logits), 1), math.log(n / 100))
        return torch.cat([*facts, rows, torch.stack(doubtful, -1) / SUREST], -1)

    def count_logits(self, facts: Tensor, means: Tensor) -> Tensor:
        """Logits (B, 100) of the numbers of clusters. One head says from `count_facts` how far to go from the number
        that P implies when it is sharpened, another from the `pooled` features as well whether there is only one."""
        parts, single = self.count(facts).split([3 * COUNT_PARTS, 1], -1)
        single = single + self.single(torch.cat([means, facts], -1))
        weight, offset, width = parts.unflatten(-1, (3, COUNT_PARTS)).unbind(1)
        return log_counts(weight, facts[:, 1:2] + offset, width - 1, single)


def moved(tokens: ColouredTokens, layers: Sequence[ShapeLayer]) -> list[ColouredTokens]:
    """The tokens before and after each of the layers."""
    return integrate(Layers(*layers), tokens, [1.0] * len(layers), LimitedGradient(euler)).states


def pooled(features: Tensor) -> Tensor:
    """Means and standard deviations (B, 2 p) of features (B, n, p) over the rows."""
    return torch.cat([features.mean(1), (features.var(1) + 1e-6).sqrt()], -1)


def log_counts(weight: Tensor, mean: Tensor, log_width: Tensor, single: Tensor) -> Tensor:
    r"""Logits (B, 100) of the numbers of clusters, whose logarithm has a mixture of logistic distributions:

    .. math:: p(K) \propto e^{s\, 1[K = 1]} \sum_m \omega_m \left[\sigma\left(\frac{\log(K + 1/2) - \mu_m}{w_m}\right)
        - \sigma\left(\frac{\log(K - 1/2) - \mu_m}{w_m}\right)\right]

    so near numbers have near probabilities. Weights omega are given by their logits (B, m), s has shape (B, 1).
    """
    edges = torch.arange(1, MOST_CLUSTERS, dtype=mean.dtype, device=mean.device).add(0.5).log()
    below = torch.sigmoid((edges[:, None] - mean[:, None]) * torch.exp(-log_width[:, None]).clamp_max(50.0))
    ends = torch.zeros_like(below[:, :1])
    shares = torch.cat([ends, below, ends + 1], 1).diff(dim=1)  # (B, K, m)
    logits = torch.log((shares * torch.softmax(weight, -1)[:, None]).sum(-1) + 1e-5)
    return torch.cat([logits[:, :1] + single, logits[:, 1:]], -1)
