"""Other libraries' kernel tests beside ours: the same data, the same process, one after the other.

Run by ``python -m benchmarks.kernels --peers``; each peer is optional
(``pip install causal-learn hyppo dcor``).  Ours are timed from the data set to the p-value,
preparation included, after compilation; theirs after one run on few rows, which compiles and
imports.  KCI and the random-feature RCIT of causal-learn have an asymptotic null, no permutations;
ours has 100.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import jaxcd
from benchmarks.experiment import Column, LeftOut, best, columns_of
from jaxcd.citests import CITest, Query

PERMUTATIONS = 100
# The shortest of so many runs; a peer has two, of seconds each, in which the noise of a shared
# machine averages out.
_OUR_RUNS = 20
_FEW_ROWS = 60


def columns(n: int, n_given: int) -> np.ndarray:
    """x = sin(index) + e, y = tanh(index) + e', then Z standard normal; index = sum of Z /
    sqrt(number): (n, 2 + n_given).
    """
    rng = np.random.default_rng(n)
    z = rng.normal(size=(n, n_given))
    index = z.sum(axis=1) / np.sqrt(max(n_given, 1))
    return np.column_stack(
        [np.sin(index) + rng.normal(size=n), np.tanh(index) + rng.normal(size=n), z]
    )


def dataset(values: np.ndarray) -> jaxcd.Dataset:
    """Numeric columns x0, x1, ..."""
    names = [f"x{j}" for j in range(values.shape[1])]
    return jaxcd.Dataset.from_array(
        values, names=names, domain=jaxcd.Domain({name: jaxcd.Numeric() for name in names})
    )


Peer = Callable[[np.ndarray], float]


def _causal_learn(method: str) -> Peer:
    from causallearn.utils.cit import CIT

    return lambda values: float(CIT(values, method)(0, 1, list(range(2, values.shape[1]))))


def _hyppo() -> Peer:
    from hyppo.independence import Hsic

    return lambda values: float(
        Hsic().test(values[:, 0], values[:, 1], reps=PERMUTATIONS, workers=1, auto=False).pvalue
    )


def _dcor() -> Peer:
    from dcor.independence import distance_covariance_test

    return lambda values: float(
        distance_covariance_test(values[:, 0], values[:, 1], num_resamples=PERMUTATIONS).pvalue
    )


@dataclass(frozen=True)
class Match:
    """A peer and the test of ours that answers the same question."""

    label: str
    package: str
    module: str
    load: Callable[[], Peer]
    test: CITest
    n_samples: int
    n_given: int

    @property
    def peer(self) -> str:
        """The package and its test."""
        return f"{self.package} {self.label}"


def _rcit(label: str, n_samples: int) -> Match:
    test = jaxcd.RCIT(n_permutations=PERMUTATIONS)
    load = lambda: _causal_learn(label.lower())  # noqa: E731
    return Match(label, "causal-learn", "causallearn", load, test, n_samples, 5)


_HSIC = jaxcd.HSIC(n_permutations=PERMUTATIONS)
# KCI's time grows with the cube of n, so its ratio is shown at several.
MATCHES = (
    *(_rcit("KCI", n) for n in (1_000, 2_000, 4_000, 6_000)),
    *(_rcit("RCIT", n) for n in (2_000, 6_000)),
    Match("Hsic", "hyppo", "hyppo", _hyppo, _HSIC, 1000, 0),
    Match("distance covariance", "dcor", "dcor", _dcor, _HSIC, 1000, 0),
)


def measure(match: Match, n: int) -> dict[str, Any]:
    """Seconds of a peer and of ours on the same data; pvalue and our_pvalue show that both ran."""
    if importlib.util.find_spec(match.module) is None:
        raise LeftOut(f"pip install {match.package}")
    values = columns(n, match.n_given)
    data, query = dataset(values), Query.of(0, 1, range(2, match.n_given + 2))
    answers: dict[str, Any] = {}

    def ours() -> None:
        prepared = match.test.prepare(data, key=jax.random.key(0))
        answers["ours"] = prepared.evaluate(query.given, [query], alpha=0.05)

    peer = match.load()

    def theirs() -> None:
        answers["theirs"] = peer(values)

    our_seconds = best(ours, n_runs=_OUR_RUNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer(columns(_FEW_ROWS, match.n_given))
        seconds = best(theirs, n_runs=2, first=False)
    return {
        "version": importlib.metadata.version(match.package),
        "ours": repr(match.test),
        "n_given": match.n_given,
        "seconds": seconds,
        "our_seconds": our_seconds,
        "ratio": seconds / our_seconds,
        "pvalue": answers["theirs"],
        "our_pvalue": float(np.exp(answers["ours"].log_pvalue[0])),
    }


PEER_COLUMNS = columns_of(
    Column("peer", lambda row: f"{row.what} {row.version}"),
    "rows=n_samples:,",
    Column("|Z|", "n_given", "d"),
    "peer=seconds:.3f; ours=our_seconds:.4f; ratio:.0f; p-value=pvalue:.3f; "
    "our p-value=our_pvalue:.3f",
)
