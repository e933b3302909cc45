"""Private tests that condition on numeric columns: level and power of one answer at one price.

``python -m benchmarks.private_tests [--quick] [--resume] [--sizes N ...] [--laws NAME ...]
[--tests NAME ...] [--epsilon E ...] [--runs R] [--out FILE]``

Data: x and y given Z under the null, and off it with errors of y that share .3 of those of x ("no
direction": of their square; "weak": .1); columns have declared bounds.  Each data set has a seed of
its own, and all tests meet the same data sets.  One query at (epsilon, 1e-6), as ``jaxcd.ci_test``
answers it: PrivGCM and PrivCRT as published (``jaxcd.published``; lambda = 1 unless said; PrivCRT
is given the true law of x), StratifiedTau with its noise in the null, StratifiedRanks and
BoundedRCIT by a noisy margin.  Type I: the share of R data sets under the null that are called
dependent at level .05; power: the same off it; exact 95% intervals.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.calibration import ALPHA, interval, verdict
from benchmarks.searches import DELTA
from jaxcd.citests import CITest, PreparedTest, Query
from jaxcd.privacy import laplace, open_account

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
SIZES = (1_000, 10_000)
FIRST_SEED = 90_000
Rng = np.random.Generator
#: at rows of Z (n, k) or one of them (k,), with numpy or jax.numpy
Trend = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Law:
    """x = f(Z) + spread(Z) e, y = g(Z) + spread(Z) e', Z uniform on (-1, 1)^k or clipped normal.

    Args:
        name: of its rows.
        size: k.
        f: of Z, at a row.
        g: of Z, at a row.
        bound: of x and y, on either side of 0.
        spread: of the errors, at a row.
        errors: "normal", "uniform" (on (-1, 1)) or "cauchy".
        share: of x's error in y's, off the null.
        square: whether off the null y has the square of x's error.
        normal: whether Z is normal, declared on (-4, 4).
    """

    name: str
    size: int
    f: Trend
    g: Trend
    bound: float
    spread: Trend
    errors: str = "normal"
    share: float = 0.3
    square: bool = False
    normal: bool = False

    @property
    def reach(self) -> float:
        """The bound of Z."""
        return 4.0 if self.normal else 1.0

    def draw(self, rng: Rng, n: int, dependent: bool) -> np.ndarray:
        """Columns x, y, z_1, ..., clipped to their bounds."""
        z = rng.normal(size=(n, self.size)) if self.normal else rng.uniform(-1, 1, (n, self.size))
        uniform = rng.uniform(size=(2, n))
        e, f = (np.asarray(_at(self.errors, u, np)) for u in uniform)
        if dependent:
            shared = (e**2 - 1) if self.square else e
            f = self.share * shared + np.sqrt(1 - self.share**2) * f
        rows = np.clip(z, -self.reach, self.reach).T
        spread = self.spread(rows, np)
        x, y = self.f(rows, np) + spread * e, self.g(rows, np) + spread * f
        return np.column_stack([*np.clip([x, y], -self.bound, self.bound), *rows])

    def quantile(self, z: Any, u: Any) -> Any:
        """The law of x at a row of Z."""
        return self.f(z, jnp) + self.spread(z, jnp) * _at(self.errors, u, jnp)

    def dataset(self, values: np.ndarray) -> jaxcd.Dataset:
        """With the declared bounds."""
        bounds = [self.bound] * 2 + [self.reach] * self.size
        names = ["x", "y", *(f"z{j + 1}" for j in range(self.size))]
        columns = {n: jaxcd.Numeric(-b, b) for n, b in zip(names, bounds, strict=True)}
        return jaxcd.Dataset.from_array(values, names=names, domain=jaxcd.Domain(columns))


def _at(errors: str, u: Any, numpy: Any) -> Any:
    """The u-quantile of the errors."""
    if errors == "uniform":
        return 2 * u - 1
    if errors == "cauchy":
        return numpy.tan(numpy.pi * (u - 0.5))
    from jax.scipy.special import ndtri
    from scipy import special

    return special.ndtri(u) if numpy is np else ndtri(u)


def _even(size: float) -> Trend:
    return lambda z, numpy: size + 0 * z[0]


def _wide(z: Any, numpy: Any) -> Any:
    return 0.1 + numpy.abs(z[0])


def _sum(z: Any) -> Any:
    return sum(z[j] for j in range(len(z)))


_ONE = Law(
    "one column",
    1,
    lambda z, numpy: numpy.sin(3 * z[0]),
    lambda z, numpy: numpy.tanh(2 * z[0]),
    3.0,
    _even(0.5),
)
LAWS = (
    _ONE,
    replace(_ONE, name="one column, weak", share=0.1),
    Law(
        "spread depends on Z",
        1,
        lambda z, numpy: z[0],
        lambda z, numpy: numpy.sin(2 * z[0]),
        4.0,
        _wide,
    ),
    Law(
        "Cauchy errors",
        1,
        lambda z, numpy: z[0],
        lambda z, numpy: numpy.tanh(2 * z[0]),
        10.0,
        _even(0.5),
        errors="cauchy",
    ),
    Law(
        "two normal columns",
        2,
        lambda z, numpy: numpy.sin(_sum(z)),
        lambda z, numpy: numpy.tanh(_sum(z)),
        5.0,
        _even(1.0),
        normal=True,
    ),
    Law(
        "sum of three",
        3,
        lambda z, numpy: numpy.sin(_sum(z)),
        lambda z, numpy: numpy.sin(_sum(z)),
        2.0,
        _even(0.5),
        errors="uniform",
    ),
    replace(_ONE, name="no direction", square=True),
)
TESTS: dict[str, Callable[[Law], CITest]] = {
    "StratifiedTau": lambda law: jaxcd.StratifiedTau(),
    "StratifiedRanks": lambda law: jaxcd.StratifiedRanks(),
    "BoundedRCIT": lambda law: jaxcd.BoundedRCIT(),
    "PrivGCM": lambda law: jaxcd.published.PrivGCM(),
    "PrivGCM, lambda .1": lambda law: jaxcd.published.PrivGCM(penalty=0.1),
    "PrivCRT": lambda law: jaxcd.published.PrivCRT(column="x", quantile=law.quantile),
}


@lru_cache(maxsize=2_048)
def _prepared(law: Law, n: int, name: str, run: int, off: bool) -> tuple[PreparedTest, list[float]]:
    """A test on a data set, kept for the next epsilon, with its margin once it is known."""
    rng = np.random.default_rng((FIRST_SEED + run, n, off))
    data = law.dataset(law.draw(rng, n, off))
    return TESTS[name](law).prepare(data, key=jax.random.key(run)), []


def _by_door(law: Law, n: int, name: str, epsilon: float, run: int, off: bool) -> bool:
    rng = np.random.default_rng((FIRST_SEED + run, n, off))
    answer = jaxcd.ci_test(
        law.dataset(law.draw(rng, n, off)),
        "x",
        "y",
        given=[f"z{j + 1}" for j in range(law.size)],
        test=TESTS[name](law),
        budget=jaxcd.Budget(epsilon, DELTA),
        key=jax.random.key(run),
        noise=jaxcd.SimulatedNoise(jax.random.key(run)),
    )
    return not answer.independent


def _dependent(law: Law, n: int, name: str, epsilon: float, run: int, off: bool) -> bool:
    """As :func:`jaxcd.ci_test` answers; what does not depend on epsilon is computed once."""
    test = TESTS[name](law)
    if test.buys_preparation:
        return _by_door(law, n, name, epsilon, run, off)
    prepared, known = _prepared(law, n, name, run, off)
    query = Query.of(0, 1, range(2, 2 + law.size))
    noise = jaxcd.SimulatedNoise(jax.random.fold_in(jax.random.key(run), round(1000 * epsilon)))
    accountant = open_account(jaxcd.Budget(epsilon, DELTA), noise)
    if test.buys_answers:
        return bool(prepared.buy(query, accountant, epsilon=epsilon, alpha=ALPHA).margin[0] > 0)
    if not known:
        known.append(float(prepared.evaluate(query.given, [query], alpha=ALPHA).margin[0]))
    bound = test.margin_sensitivity(alpha=ALPHA, n_samples=n, relation=jaxcd.Budget(1.0).relation)
    assert bound is not None
    noisy = laplace(
        accountant,
        np.array(known),
        sensitivity=bound.value,
        pad=bound.pad,
        epsilon=epsilon,
        label="margin",
    )
    return bool(noisy[0] > 0)


def measure(law: Law, n: int, name: str, epsilon: float, runs: int) -> dict[str, Any]:
    """Rates of "dependent" under the null and off it, with exact 95% intervals."""
    found: dict[str, Any] = {}
    with ex.Clock() as clock:
        for rate, off in (("type_1", False), ("power", True)):
            hits = sum(_dependent(law, n, name, epsilon, run, off) for run in range(runs))
            found |= {rate: hits / runs, f"{rate}_interval": interval(hits, runs)}
    return found | {
        "n_data_sets": runs,
        "verdict": verdict(found["type_1"], runs),
        "processor_seconds": clock.processor_seconds / (2 * runs),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """One row a law, a size, a test and an epsilon."""
    for n in chosen.sizes:
        for law in LAWS:
            for name in chosen.tests if not chosen.laws or law.name in chosen.laws else ():
                for epsilon in chosen.epsilon:
                    yield (law.name, n, name, epsilon), measure, law, n, name, epsilon, chosen.runs


def draw(rows: Sequence[ex.Row], path: Path) -> None:
    """Type I (dashed) and power by epsilon: a line a test, a row of panels a size."""
    sizes = sorted({row.n_samples for row in rows})
    laws = [law.name for law in LAWS if any(row.law == law.name for row in rows)]
    figure, axes = ex.panels(len(sizes), len(laws), width=2.6 * len(laws), height=2.5 * len(sizes))
    for line, n in zip(axes, sizes, strict=True):
        for axis, law in zip(line, laws, strict=True):
            for place, name in enumerate(TESTS):
                mine = [r for r in rows if (r.law, r.n_samples, r.test) == (law, n, name)]
                mine.sort(key=lambda row: row.epsilon)
                at = [row.epsilon for row in mine]
                axis.plot(at, [r.power for r in mine], color=f"C{place}", label=name)
                axis.plot(at, [r.type_1 for r in mine], color=f"C{place}", ls="--", lw=0.8)
            axis.set_xscale("log", base=2)
            axis.set_ylim(-0.02, 1.02)
            axis.axhline(ALPHA, color="grey", lw=0.5)
            axis.set_title(f"{law}, n = {n:,}", size=8)
            axis.tick_params(labelsize=6)
    axes[0][0].legend(fontsize=6)
    axes[-1][0].set_xlabel("epsilon (power; dashed: type I error)", size=7)
    ex.save_picture(figure, path)


def _ends(rate: str) -> ex.Column:
    return ex.Column("95%", lambda row: "{:.3f}-{:.3f}".format(*row[f"{rate}_interval"]))


EXPERIMENT = ex.Experiment(
    "private_tests",
    __doc__,
    ("law", "n_samples", "test", "epsilon"),
    jobs,
    columns=ex.columns_of(
        "law; test; epsilon:g; type I=type_1:.3f",
        _ends("type_1"),
        "power:.3f",
        _ends("power"),
        ".03-.075=verdict; processor s=processor_seconds:.3f",
    ),
    title=lambda row: f"n = {row.n_samples:,}, alpha = {ALPHA}, {row.n_data_sets} data sets",
    options=(
        ex.counts("--sizes", "records", SIZES, (1_000,)),
        ex.names("--laws", "laws", [law.name for law in LAWS], None, ["one column"]),
        ex.names("--tests", "tests", list(TESTS), list(TESTS), list(TESTS)),
        ex.numbers("--epsilon", "prices", EPSILONS, (1.0, 8.0)),
        ex.one_count("--runs", "data sets under the null, and off it", 200, 10),
    ),
    settings=ex.kept(alpha=ALPHA, delta=DELTA),
    known=lambda row, chosen: row.n_data_sets >= chosen.runs,
    draw=draw,
    width=140,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
