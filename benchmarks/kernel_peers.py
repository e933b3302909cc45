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
from rich.table import Table

import jaxcd
from benchmarks import common
from jaxcd.citests import CITest, Query

PERMUTATIONS = 100
# The shortest of so many runs; a peer has two, of seconds each, in which the noise of a shared
# machine averages out.
_OUR_RUNS = 20
_FEW_ROWS = 60


@dataclass(frozen=True)
class PeerRow:
    """Seconds of a peer and of ours on the same data; pvalue and our_pvalue show that both ran."""

    peer: str
    version: str
    ours: str
    n_samples: int
    n_given: int
    seconds: float
    our_seconds: float
    ratio: float
    pvalue: float
    our_pvalue: float


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
class _Match:
    """A peer and the test of ours that answers the same question."""

    label: str
    package: str
    module: str
    load: Callable[[], Peer]
    test: CITest
    n_samples: int
    n_given: int


_MATCHES = (
    _Match(
        "KCI",
        "causal-learn",
        "causallearn",
        lambda: _causal_learn("kci"),
        jaxcd.RCIT(n_permutations=PERMUTATIONS),
        2000,
        5,
    ),
    _Match(
        "RCIT",
        "causal-learn",
        "causallearn",
        lambda: _causal_learn("rcit"),
        jaxcd.RCIT(n_permutations=PERMUTATIONS),
        2000,
        5,
    ),
    _Match("Hsic", "hyppo", "hyppo", _hyppo, jaxcd.HSIC(n_permutations=PERMUTATIONS), 1000, 0),
    _Match(
        "distance covariance",
        "dcor",
        "dcor",
        _dcor,
        jaxcd.HSIC(n_permutations=PERMUTATIONS),
        1000,
        0,
    ),
)


def _row(match: _Match, n: int) -> PeerRow:
    values = columns(n, match.n_given)
    data, query = dataset(values), Query.of(0, 1, range(2, match.n_given + 2))
    answers: dict[str, Any] = {}

    def ours() -> None:
        prepared = match.test.prepare(data, key=jax.random.key(0))
        answers["ours"] = prepared.evaluate(query.given, [query], alpha=0.05)

    peer = match.load()

    def theirs() -> None:
        answers["theirs"] = peer(values)

    our_seconds = common.best(ours, n_runs=_OUR_RUNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer(columns(_FEW_ROWS, match.n_given))
        seconds = common.best(theirs, n_runs=2, first=False)
    return PeerRow(
        f"{match.package} {match.label}",
        importlib.metadata.version(match.package),
        repr(match.test),
        n,
        match.n_given,
        seconds,
        our_seconds,
        seconds / our_seconds,
        answers["theirs"],
        float(np.exp(answers["ours"].log_pvalue[0])),
    )


def peer_rows(*, quick: bool) -> list[PeerRow]:
    """Every peer that is installed, on a fifth of the rows where ``quick``."""
    rows = []
    for match in _MATCHES:
        if importlib.util.find_spec(match.module) is None:
            print(f"{match.package} {match.label} is left out: pip install {match.package}")
            continue
        rows.append(_row(match, match.n_samples // (5 if quick else 1)))
    return rows


def peer_table(rows: list[PeerRow]) -> Table:
    """The rows for the screen."""
    table = Table(title="peers: seconds a test, same data, same run")
    for i, column in enumerate(
        ("peer", "rows", "|Z|", "peer", "ours", "ratio", "p-value", "our p-value")
    ):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(
            f"{row.peer} {row.version}",
            f"{row.n_samples:,}",
            str(row.n_given),
            f"{row.seconds:.3f}",
            f"{row.our_seconds:.4f}",
            f"{row.ratio:.0f}",
            f"{row.pvalue:.3f}",
            f"{row.our_pvalue:.3f}",
        )
    return table
