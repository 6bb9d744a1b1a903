"""Odd input to the three estimators: every table, weight, parameter and order of calls that someone may try.

Each case must be answered with labels that make sense, or refused in clear words: a ValueError, a TypeError or a
NotFittedError that names the argument or the problem. ``PYTHONPATH=tests python -m fuzz.inputs`` tries all of them;
a number after it tries every so-manieth.
"""

import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from rich.progress import track

from fuzz.limits import TooSlow, guarded
from fuzz.odd_parameters import odd_parameters
from fuzz.odd_tables import blobs, dask_array, odd_tables, odd_weights, with_cell
from measureflow import FlowMixture, TransformerKMeans
from measureflow.estimators.in_context import InContextClustering

ESTIMATORS = {
    "FlowMixture": FlowMixture,
    "TransformerKMeans": lambda **options: TransformerKMeans(**{"n_clusters": 3, "random_state": 0} | options),
    "InContextClustering": lambda **options: InContextClustering(
        **{"n_clusters": 3, "n_steps": 1, "random_state": 0} | options
    ),
}
METHODS = {
    "FlowMixture": ("predict", "predict_proba", "score_samples", "score", "transform"),
    "TransformerKMeans": ("predict", "score", "transform"),
    "InContextClustering": ("predict",),
}
# How scikit-learn and NumPy say what is wrong with a table, where they do not call it X.
WORDS = (
    "Expected 2D array", "Found array with", "Found input variables", "could not convert string to float",
    "Complex data not supported", "Sparse data was passed", "feature names", "dtype='numeric' is not compatible",
    "not fitted yet", "setting an array element with a sequence", "float() argument must be", "n_samples",
    "Expected sequence or array-like", "Singleton array", "cannot be considered a valid collection", "0 feature(s)",
    "Unable to convert array of bytes/strings", "Expected unique column names", "Expected a 2-dimensional container",
    "n_clusters must", "sample_weight must",
)  # fmt: skip
SECONDS = 60


@dataclass(frozen=True)
class Case:
    """One odd call: which argument is odd, and a function that makes it and returns (labels, number of clusters)."""

    name: str
    argument: str
    call: Callable


def all_cases() -> Iterator[Case]:
    """Every case, the same in every run."""
    for kind in ESTIMATORS:
        yield from _fits(kind)
        yield from _parameters(kind)
        yield from _methods(kind)
    yield from _sequences()


def _fits(kind: str) -> Iterator[Case]:
    make = ESTIMATORS[kind]
    for name, X in odd_tables().items():
        yield Case(f"{kind}.fit(X), X: {name}", "X", lambda X=X: _fitted(make(), X()))
        if kind == "FlowMixture":
            yield Case(f"missing='drop', X: {name}", "X", lambda X=X: _fitted(make(missing="drop"), X()))
    if kind == "InContextClustering":
        return
    for name, w in odd_weights().items():
        yield Case(
            f"{kind}.fit(X, sample_weight), weights: {name}",
            "sample_weight",
            lambda w=w: _fitted(make(), blobs(), w()),
        )
        if name.startswith(("all", "one", "huge", "zeros", "shape", "negative")):
            yield Case(
                f"{kind}.fit(dask, sample_weight), weights: {name}",
                "sample_weight",
                lambda w=w: _fitted(make(), dask_array(blobs()), w()),
            )


def _parameters(kind: str) -> Iterator[Case]:
    for name, values in odd_parameters(kind).items():
        for value in values:
            yield Case(
                f"{kind}({name}={str(value)[:30]!r})",
                name,
                lambda name=name, value=value: _fitted(ESTIMATORS[kind](**{name: value}), blobs()),
            )


def _methods(kind: str) -> Iterator[Case]:
    tables = odd_tables()
    for method in METHODS[kind]:
        yield Case(f"{kind}.{method} before fit", "fitted", lambda m=method: _asked(ESTIMATORS[kind](), m, blobs()))
        for d in (1, 3):
            yield Case(
                f"{kind}.{method}, {d} columns", "X", lambda m=method, d=d: _asked(_ready(kind), m, blobs(30, d))
            )
        for name in list(tables)[:: 1 if method == "predict" else 4]:
            yield Case(
                f"{kind}.{method}, X: {name}", "X", lambda m=method, X=tables[name]: _asked(_ready(kind), m, X())
            )


def _sequences() -> Iterator[Case]:
    """partial_fit and sample, in odd orders."""
    huge, tiny = np.full(30, 1e300), np.full(30, 1e-300)
    later: dict[str, Callable] = {
        "one row at a time": lambda m: [m.partial_fit(row[None]) for row in blobs(6)][-1],
        "other columns later": lambda m: m.partial_fit(blobs()).partial_fit(blobs(30, 3)),
        "NaN later": lambda m: m.partial_fit(blobs()).partial_fit(with_cell(np.nan)),
        "no rows later": lambda m: m.partial_fit(blobs()).partial_fit(blobs()[:0]),
        "dask later": lambda m: m.partial_fit(blobs()).partial_fit(dask_array(blobs())),
        "huge weights later": lambda m: m.partial_fit(blobs()).partial_fit(blobs(), sample_weight=huge),
        "huge weights first": lambda m: m.partial_fit(blobs(), sample_weight=huge).partial_fit(blobs()),
        "tiny weights first": lambda m: m.partial_fit(blobs(), sample_weight=tiny).partial_fit(blobs()),
        "tiny weights twice": lambda m: m.partial_fit(blobs(), None, tiny).partial_fit(blobs(), None, tiny),
        "huge weights thrice": lambda m: [m.partial_fit(blobs(), sample_weight=1e7 * huge) for _ in range(3)][-1],
        "zero weights later": lambda m: m.partial_fit(blobs()).partial_fit(blobs(), sample_weight=np.zeros(30)),
        "after fit": lambda m: m.fit(blobs()).partial_fit(blobs(20)),
        "fit after it": lambda m: m.partial_fit(blobs(20)).fit(blobs(30, 3)),
        "far away later": lambda m: m.partial_fit(blobs()).partial_fit(blobs() + 1e12),
        "scales apart": lambda m: m.partial_fit(blobs() * 1e-100).partial_fit(blobs() * 1e100),
    }
    for name, run in later.items():
        yield Case(f"partial_fit, {name}", "X", lambda run=run: _labelled(run(FlowMixture()), None))
    for count in (0, -1, 1, 2.5, "3", None, np.int64(4), True, float("nan")):
        yield Case(f"sample({count!r})", "n_samples", lambda count=count: _drawn(count))
    for device in ("meta", "cuda", "no-such-device"):  # a model that was moved must not be found by who comes next
        yield Case(f"fit after device={device!r}", "device", lambda device=device: _after(device))


def _fitted(estimator, X, weights=None):
    if weights is None:
        return _labelled(estimator.fit(X), X)
    return _labelled(estimator.fit(X, sample_weight=weights), X)


def _labelled(estimator, X):
    labels, K = estimator.labels_, len(estimator.cluster_centers_)
    n = len(labels) if X is None or not hasattr(X, "shape") or np.isnan(X.shape[0]) else X.shape[0]
    assert labels.shape == (n,), f"labels of shape {labels.shape} for {n} rows"
    least = -1 if getattr(estimator, "missing", "error") == "drop" else 0
    _sound(labels, least, K)
    assert np.isfinite(estimator.cluster_centers_).all(), "a centre is not finite"
    if hasattr(estimator, "weights_"):
        assert np.isclose(estimator.weights_.sum(), 1), "weights of the clusters do not sum to one"


def _asked(estimator, method: str, X) -> None:
    answer = getattr(estimator, method)(X)
    if method == "predict":
        _sound(answer, 0, len(estimator.cluster_centers_))
    assert not np.isnan(answer).any(), f"NaN in the answer of {method}"
    if method == "predict_proba":
        assert np.allclose(np.sum(answer, 1), 1), "probabilities do not sum to one"


def _sound(labels: np.ndarray, least: int, K: int) -> None:
    assert np.issubdtype(labels.dtype, np.integer), f"labels are {labels.dtype}"
    assert ((labels >= least) & (labels < K)).all(), f"labels {labels.min()}..{labels.max()} for {K} clusters"


def _drawn(count) -> None:
    X, labels = _ready("FlowMixture").sample(count)
    _sound(labels, 0, _ready("FlowMixture").n_clusters_)
    assert len(X) == len(labels) == count


def _after(device: str) -> None:
    refused = tried(Case("", "device", lambda: FlowMixture(device=device).fit(blobs())))
    _fitted(FlowMixture(), blobs())
    assert refused[0] != "crashed", refused[1]


@cache
def _ready(kind: str):
    return ESTIMATORS[kind]().fit(blobs())


def _clear(error: Exception, argument: str) -> bool:
    """Whether an error names the argument or the problem."""
    text = str(error)
    return argument in text or any(word in text for word in WORDS)


def tried(case: Case) -> tuple[str, str]:
    """What became of a case, and why if it was a crash."""
    try:
        with guarded(SECONDS, pickles=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.call()
    except TooSlow as error:
        return "crashed", f"hangs: {error}"
    except (ValueError, TypeError) as error:  # NotFittedError is a ValueError
        return ("refused", "") if _clear(error, case.argument) else ("crashed", f"unclear: {_short(error)}")
    except Exception as error:  # whatever else comes out is what this looks for
        return "crashed", _short(error)
    return "answered", ""


def _short(error: Exception) -> str:
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error)[:160]} ({at.filename.rsplit('/', 1)[-1]}:{at.lineno})"


def fuzz(every: int = 1) -> tuple[Counter, list[str]]:
    """How many cases were answered, refused and crashed, and a line for each crash."""
    outcomes, crashes = Counter(answered=0, refused=0, crashed=0), []
    for case in track(list(all_cases())[::every], transient=True):
        outcome, why = tried(case)
        outcomes[outcome] += 1
        if outcome == "crashed":
            crashes.append(f"{case.name}: {why}")
    return outcomes, crashes


if __name__ == "__main__":
    outcomes, crashes = fuzz(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    print("\n".join(crashes))
    print(f"{outcomes.total()} odd inputs: {dict(outcomes)}")
    sys.exit(bool(crashes))
