r"""The algorithms of Clarkson 2025 in plain NumPy, as its boxes state them: oracles for the transformers.

Nothing of this library is imported here. Each function does one iteration for points X (n, d) and centres C
(k, d) and returns the shares Y (n, k) of the points and the new centres. Conventions the boxes leave open:

- **Ties.** A point tied between m centres has a share of 1/m in each. The members of a cluster are the points
  of the *largest* share of it, so a tied point moves no centre that has a point of its own.
- **Empty clusters.** If no point has a share of a cluster, all points are its members: with Lloyd's update
  the centre moves to the mean of all points (``empty="mean"``, the bare circuit). ``"keep"`` leaves it
  where it is, ``"relocate"`` moves it to the point farthest from its nearest centre (see `relocate`).
  The decoders that see distances (trimmed, robust, medoids) as L2 attention differ here, see `members`.
- **Weights.** A weight of 2 is a point twice, a weight of 0 no point.
- **Sphere.** With ``spherical`` similarity is the inner product and new centres are divided by their
  length; a mean of length below 1.5e-8 (half the digits) has no direction and becomes zero.
"""

import numpy as np


def similarities(X, C, spherical=False):
    """-|x - c|^2, or x . c on the sphere."""
    if spherical:
        return (X[:, None, :] * C[None, :, :]).sum(-1)
    return -((X[:, None, :] - C[None, :, :]) ** 2).sum(-1)


def shares(S):
    """1/m for each of the m best centres of a point."""
    best = S.max(1, keepdims=True) == S
    return best / best.sum(1, keepdims=True)


def members(Y, j, w, l2=False):
    """The points of the largest share of cluster j, among those that have a weight.

    A decoder that sees |y - e_j|^2 (``l2``) agrees while some point has a share; if none has, it takes the points with
    most ties.
    """
    closeness = -((Y - np.eye(Y.shape[1])[j]) ** 2).sum(1) if l2 else Y[:, j]
    column = np.where(w > 0, closeness, -np.inf)
    return np.flatnonzero(column >= column.max() - 1e-9)


def onto_sphere(C, spherical):
    """Rows divided by their length."""
    if not spherical:
        return C
    length = np.sqrt((C**2).sum(1, keepdims=True))
    return np.where(length > np.finfo(C.dtype).eps ** 0.5, C / np.maximum(length, 1e-30), 0.0)


def ones(X, w):
    """The weights, one for each point where none are given."""
    return np.ones(len(X)) if w is None else np.asarray(w, dtype=float)


def centers(X, Y, w, weigh, spherical, l2=False):
    """For each cluster the mean of its members, weighed."""
    C = np.zeros((Y.shape[1], X.shape[1]))
    for j in range(Y.shape[1]):
        i = members(Y, j, w, l2)
        z = weigh(i, j) * w[i]
        C[j] = (z[:, None] * X[i]).sum(0) / z.sum()
    return onto_sphere(C, spherical)


def lloyd(X, C, w=None, spherical=False, empty="mean"):
    """Algorithm 1, and Algorithm 3 if ``spherical``."""
    w = ones(X, w)
    S = similarities(X, C, spherical)
    Y = shares(S)
    new = centers(X, Y, w, lambda i, j: np.ones(len(i)), spherical)
    empties = [j for j in range(len(C)) if Y[w > 0, j].max() == 0]
    if empty == "keep":
        new[empties] = C[empties]
    if empty == "relocate":
        new[empties] = relocate(X, S, w, C, empties)
    return Y, new


def relocate(X, S, w, C, empties):
    """Points farthest from their nearest centre, one distinct place for each empty cluster in order.

    Equal distances go by the lexicographic order of the points. Where there are too few places, a centre stays.
    """
    rows = sorted(np.flatnonzero(w > 0), key=lambda i: (S[i].max(), *X[i]))
    places = []
    for i in rows:
        if not any(np.array_equal(X[i], place) for place in places):
            places.append(X[i])
    return np.array([places[r] if r < len(places) else C[j] for r, j in enumerate(empties)]).reshape(-1, X.shape[1])


def soft(X, C, gamma, w=None, spherical=False):
    """Algorithm 2."""
    w = ones(X, w)
    S = gamma * similarities(X, C, spherical)
    E = np.exp(S - S.max(1, keepdims=True))
    Y = E / E.sum(1, keepdims=True)
    new = np.zeros_like(C)
    for j in range(len(C)):
        z = w * Y[:, j] if (w * Y[:, j]).sum() > 0 else w
        new[j] = (z[:, None] * X).sum(0) / z.sum()
    return Y, onto_sphere(new, spherical)


def percentile(r, w, percent):
    """The least r at or below which lies ``percent`` % of the weight (1e-9: 30 % of 10 points are 3)."""
    order = np.argsort(r, kind="stable")
    filled = np.cumsum(w[order])
    return r[order][np.searchsorted(filled, filled[-1] * (percent / 100 - 1e-9))]


def trimmed(X, C, percent, w=None, spherical=False, l2=True):
    """Algorithm 4: the mean of the members within the percentile of their distances."""
    w = ones(X, w)
    S = similarities(X, C, spherical)
    Y = shares(S)

    def inliers(i, j):
        return (-S[i, j] <= percentile(-S[i, j], w[i], percent)).astype(float)

    return Y, centers(X, Y, w, inliers, spherical, l2 and not spherical)


def trimmed_by_norm(X, C, gamma, w=None, spherical=False, l2=True):
    """Algorithm 4 with the threshold of the norm-max (30) at alpha = inf in place of a percentile."""
    w = ones(X, w)
    S = similarities(X, C, spherical)
    Y = shares(S)

    def inliers(i, j):
        return (sparsemax_weights(gamma)(S[i, j], w[i]) > 0).astype(float)

    return Y, centers(X, Y, w, inliers, spherical, l2 and not spherical)


def robust(X, C, weigh, w=None, spherical=False, l2=True):
    """Algorithm 5 with ``weigh`` as its NAct: `softmax_weights`, `sparsemax_weights` or `topk_weights`.

    Line 7 prints the centre it is about to compute; the weights are of the distances to the previous one.
    """
    w = ones(X, w)
    S = similarities(X, C, spherical)
    Y = shares(S)
    return Y, centers(X, Y, w, lambda i, j: weigh(S[i, j], w[i]), spherical, l2 and not spherical)


def softmax_weights(gamma):
    """exp(gamma s), to be normalised."""
    return lambda s, w: np.exp(gamma * (s - s.max()))


def sparsemax_weights(gamma):
    """(gamma s - tau)_+ with total weight one, tau found by sorting."""

    def weigh(s, w):
        order = np.argsort(-s, kind="stable")
        s_, w_ = gamma * s[order], w[order]
        tau = (np.cumsum(w_ * s_) - 1) / np.cumsum(w_)
        support = np.flatnonzero(s_ > tau)[-1]
        return np.maximum(gamma * s - tau[support], 0)

    return weigh


def topk_weights(n_nearest, gamma):
    """exp(gamma s) for the nearest n_nearest in weight; points tied at the edge share what is left."""

    def weigh(s, w):
        k = min(n_nearest, w.sum())
        edge = -percentile(-s, w, 100 * k / w.sum())
        above, tied = w[s > edge].sum(), w[s == edge].sum()
        part = np.where(s > edge, 1.0, np.where(s == edge, (k - above) / tied, 0.0))
        return part * np.exp(gamma * (s - s.max()))

    return weigh


def medoids(X, C, delta, gumbel, w=None, spherical=False, l2=True):
    """Algorithm 6: each centre becomes a point drawn with log-probability S - 2 delta [not its cluster].

    ``gumbel`` (k, n) are standard Gumbel numbers: the largest of log p + gumbel is a draw from p. Shares y of tied
    points have the gap delta |y - e_j|^2, or 2 delta (1 - y_j) where attention is a dot product.
    """
    w = ones(X, w)
    S = similarities(X, C, spherical)
    Y = shares(S)
    log_p = np.empty_like(S)
    for i in range(len(X)):
        for j in range(len(C)):
            e = np.eye(len(C))[j]
            gap = delta * ((Y[i] - e) ** 2).sum() if l2 and not spherical else 2 * delta * (1 - Y[i, j])
            log_p[i, j] = S[i, j] - gap + (np.log(w[i]) if w[i] > 0 else -np.inf)
    drawn = np.argmax(log_p.T + gumbel, axis=1)
    return Y, onto_sphere(X[drawn], spherical)


def inertia(X, C, w=None):
    """The k-means objective (3)."""
    return float((ones(X, w) * -similarities(X, C).max(1)).sum())


def run(step, X, C, n_layers, *args, **options):
    """``n_layers`` iterations of one of the above: the list of (Y, C)."""
    out = []
    for _ in range(n_layers):
        Y, C = step(X, C, *args, **options)
        out.append((Y, C))
    return out
