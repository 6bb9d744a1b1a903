"""The number of threads changes no bit of an answer: not of torch, not of NumPy's BLAS, not of our own."""

import hashlib
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from clusters import any_data, blobs, digest
from measureflow import FlowMixture, TransformerKMeans
from measureflow.models import load_pretrained


@contextmanager
def threads(number: int):
    """So many threads for torch and for BLAS."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(number, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def wide(n, d, K=5):
    """Clusters in many columns, whose products BLAS would share among threads."""
    rng = np.random.default_rng(0)
    return 3 * rng.standard_normal((K, d))[rng.integers(K, size=n)] + rng.standard_normal((n, d))


def answers(make) -> set[str]:
    """What an estimator answers on one, two, three threads, and on one again."""
    found = set()
    for number in (1, 2, 3, 1):
        with threads(number):
            found.add(make())
    return found


@any_data
@pytest.mark.parametrize(
    "X", [blobs(1500, noise=1.5)[0], wide(2500, 100), wide(12_000, 30)], ids=["few columns", "projected", "many rows"]
)
def test_flow_mixture_gives_the_same_bits(X):
    def answer():
        mixture = FlowMixture(random_state=0).fit(X)
        cut = mixture.flow_.cut(8.0)
        parts = (mixture.predict_proba(X), mixture.covariances_, mixture.sample(5)[0], cut.labels, cut.centers)
        bits = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
        return digest(mixture) + hashlib.sha256(bits).hexdigest()

    assert len(answers(answer)) == 1


@any_data
def test_many_rows_of_unequal_clusters_give_the_same_bits():
    """Blocks of rows run side by side, both where shapes are fitted and where rows are labelled."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (70_000, 2)), rng.normal(20, 4, (70_000, 2))])

    def answer():
        mixture = FlowMixture().fit(X)
        assert mixture.n_clusters_ == 2
        return hashlib.sha256(mixture.covariances_.tobytes() + mixture.predict_proba(X).tobytes()).hexdigest()

    assert len(answers(answer)) == 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("algorithm", ["lloyd", "soft", "spherical", "trimmed", "robust", "medoids"])
def test_transformer_kmeans_gives_the_same_bits(algorithm, weighted):
    X = wide(12_000, 30)
    w = np.random.default_rng(1).random(len(X)) if weighted else None

    def answer():
        model = TransformerKMeans(5, algorithm=algorithm, max_iter=4, random_state=0).fit(X, sample_weight=w)
        parts = (model.cluster_centers_, model.labels_, np.float64(model.inertia_), model.transform(X[:100]))
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()

    assert len(answers(answer)) == 1


def test_the_transformer_itself_gives_the_same_bits():
    X = wide(600, 30)

    def answer():
        model = TransformerKMeans(5, engine="transformer", max_iter=4, random_state=0).fit(X)
        return hashlib.sha256(model.cluster_centers_.tobytes() + model.labels_.tobytes()).hexdigest()

    assert len(answers(answer)) == 1


def test_no_operation_of_the_flow_is_shared_among_threads():
    """On this processor the products may happen to round alike; that they run on one thread holds on all."""
    model, seen = load_pretrained("any-dimension"), set()

    def look(*_):
        blas = {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}
        seen.add((torch.get_num_threads(), *blas))

    model.update.register_forward_hook(look)
    with threads(3):
        mixture = FlowMixture(model=model).fit(blobs(300)[0])
        mixture.flow_.cut(5.0)
        assert torch.get_num_threads() == 3
    assert seen == {(1, 1)}
