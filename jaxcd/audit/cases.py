"""The runs that an audit replays: every door, with every mechanism, on small neighbouring data
sets, extreme ones among them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

import jaxcd
from jaxcd.audit.findings import Check, Checks, Finding
from jaxcd.audit.replaying import Tape, Tapping, costs, replay, tapping
from jaxcd.audit.table import Facts, stated
from jaxcd.citests import Query
from jaxcd.decisions import Noise
from jaxcd.pairwise import Protect, ScoreRelease
from jaxcd.pairwise.anm_columns import split_rows
from jaxcd.pairwise.anm_scores import IQRMechanism
from jaxcd.privacy import GRID, NoiseSource
from jaxcd.privacy.verifying import price_again, verify
from jaxcd.queries import Queue

__all__ = ["CASES", "REPLAYS", "Case", "run_case"]

Pairs = Callable[[np.random.Generator, int], tuple[Any, Any]]

LEVELS = (2, 3, 2, 4)
_DISCRETE = jaxcd.Domain({f"v{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(LEVELS)})
_NUMERIC = jaxcd.Domain({name: jaxcd.Numeric(-4, 4) for name in "abcd"})
_OPEN = jaxcd.Domain({name: jaxcd.Numeric() for name in "abc"})
_MIXED = jaxcd.Domain(
    {
        "a": jaxcd.Numeric(-4, 4),
        "b": jaxcd.Categorical((0, 1)),
        "c": jaxcd.Numeric(),
        "d": jaxcd.Ordinal((0, 1, 2)),
    }
)
_UNIT = ((-1.0, 1.0), (-1.0, 1.0))
_KEY_SEED = 4

# What a private run may say of itself beside its ledger; counts of tests or batches are not among
# it.
_ALWAYS = {"n_samples", "n_variables", "domain", "budget", "secure_noise", "ledger", "warnings"}
_BY_TESTS = _ALWAYS | {
    "test",
    "decider",
    "levels",
    "stable",
    "max_level",
    "colliders",
    "algorithm",
    "ambiguous_triples",
    "knowledge_conflicts",
    "released_margins",
    "conflicts",
    "background",
    "knowledge",
    "possible_d_sep",
    "max_path_length",
    "rule_counts",
    "selection_bias",
}
_TREE = _ALWAYS | {"algorithm", "test", "options", "forest", "released_margins"}
_PAIR = {
    "method",
    "score",
    "release",
    "protect",
    "bounds",
    "domain",
    "n_samples",
    "n_test",
    "n_training",
    "joint",
    "noise_scale",
    "ledger",
    "sensitivity",
    "mechanism",
    "answered",
    "quartile_epsilon",
    "regressor",
}


@dataclass(frozen=True)
class Case:
    """A run to be replayed.

    Args:
        name: of the case.
        entries: classes of the registry whose claims take part.
        run: data and noise to a result.
        pairs: neighbours of a trial.
        facts: public facts of a trial's first data set, for the independent table.
        info: what a result may say; None where it has no info.
        trials: how many pairs.
        least: the share of its price that some event must reach, or the search is blind.
    """

    name: str
    entries: tuple[str, ...]
    run: Callable[[Any, NoiseSource], Any] = field(repr=False)
    pairs: Pairs = field(repr=False)
    facts: Callable[[Any], Facts] = field(repr=False)
    info: frozenset[str] | None = field(default=None, repr=False)
    trials: int = 6
    least: float = 0.0


def run_case(
    case: Case, tap: Tapping, *, trials: int | None = None, seed: int = 0
) -> list[Finding]:
    """Replays a case on its pairs of neighbours; one finding for each kind of event.

    Checked of each pair: the two runs look the same from outside; no event costs more than it was
    charged; each event says what the independent table says; the noise had the scale that the event
    states, and the price follows from it; the certificate verifies; nothing is said but what may be
    said.
    """
    reached: dict[str, float] = {}
    wrong: dict[str, dict[str, None]] = {}

    def note(label: str, words: str) -> None:
        wrong.setdefault(label, {})[words] = None

    for trial in range(case.trials if trials is None else trials):
        rng = np.random.default_rng([seed, trial, len(case.name)])
        here, there = case.pairs(rng, trial)
        facts = case.facts(here)

        def shift(tape: Tape, facts: Facts = facts) -> int:
            return _shift(facts, tape)

        found = replay(tap, case.run, here, there, seed=trial, shift=shift)
        for part in found.different:
            note("the run", f"differs between neighbours that were given the same answers: {part}")
        rows = found.rows
        for row in rows:
            label = _kind(row["label"])
            reached.setdefault(label, 0.0)
            for words in _row_faults(row, facts, found.first):
                note(label, words)
        if unpaid := [index for index in found.first.calls if index >= len(rows)]:
            note("the run", f"draws noise for {len(unpaid)} events that no ledger shows")
            continue
        info = getattr(found.result, "info", None)
        if case.info is not None and info is not None and not set(info) <= case.info:
            note("the run", f"says {sorted(set(info) - case.info)}, which may depend on the data")
        if not verify(found.result.certificate()).holds:
            note("the run", "its certificate does not verify")
        if found.different:
            continue  # the second tape is not the first's coupling
        for index, share in costs(
            rows, found.first, found.second, shift=shift(found.first)
        ).items():
            label = _kind(rows[index]["label"])
            if label.endswith(": value") and not all(info["answered"]):  # type: ignore[index]
                # the value was not released: that it moves by more than its noise is for is why
                continue
            reached[label] = max(reached[label], share)
            if not share <= 1 + 1e-9:
                note(label, f"costs {share:.4g} times what it was charged")
            moved = _margins_moved(found.first.asked[index], found.second.asked[index])
            if not moved <= shift(found.first):
                note(
                    label,
                    f"a query moves by {moved} steps, more than the {shift(found.first)} that the "
                    "noise is for",
                )
    if reached and case.least > max(reached.values()) and not wrong:
        note(
            "the run",
            f"no pair of neighbours reached {case.least:.0%} of a price: the search is blind",
        )
    labels = dict.fromkeys([*reached, *wrong])
    return [
        Finding(
            f"replay: {case.name}", label, 1.0, reached.get(label, 0.0), tuple(wrong.get(label, ()))
        )
        for label in labels
    ]


def _kind(label: str) -> str:
    """A label without its numbers and names of columns."""
    words = "".join("#" if c.isdigit() else c for c in label)
    for start in ("bandwidth of", "quartile of"):
        if words.startswith(start):
            return start
    return words


def _shift(facts: Facts, tape: Tape) -> int:
    """d of the sparse vectors of a run, in steps of the grid."""
    if not facts.test or not any(
        kind == "geometric" for calls in tape.calls.values() for kind, *_ in calls
    ):
        return 0
    label = "sieve" if tape.rate < 1 else "sparse vector round"
    there = stated(label, facts if tape.rate == 1 else _with_subset(facts, tape), 1)
    assert there is not None
    return math.ceil((there.sensitivity + 2 * there.pad) / GRID) + 1


def _with_subset(facts: Facts, tape: Tape) -> Facts:
    size = round(tape.rate * facts.n)
    return Facts(
        facts.n, facts.levels, facts.test, facts.alpha, size, facts.record, facts.map_levels
    )


def _margins_moved(first: list[np.ndarray], second: list[np.ndarray]) -> int:
    if not first or len(first) != len(second):
        return 0
    here, there = np.concatenate(first), np.concatenate(second)
    n = min(len(here), len(there))
    return int(np.abs(np.rint(here[:n] / GRID) - np.rint(there[:n] / GRID)).max(initial=0))


def _row_faults(row: Any, facts: Facts, tape: Tape) -> Iterator[str]:
    """What of an event is not as the table, the noise or the price formula says."""
    calls = [call for call in tape.calls.get(row["index"], ()) if call[0] != "subset"]
    scales = list(dict.fromkeys(call[1] for call in calls))
    if "law" not in row:
        yield "does not say what its price follows from"
        return
    if row["law"] != "failure probability" and (
        not scales or [float(s) for s in row["scales"]][: len(scales)] != scales
    ):
        yield f"states the scales {row['scales']}, and the noise had {scales}"
    if row["rate"] < 1 and (
        drawn := [call[1] for call in tape.calls.get(row["index"], ()) if call[0] == "subset"]
    ) != [row["rate"]]:
        yield f"is priced for a subset of {row['rate']:.3g} of the records, and {drawn} were drawn"
    price = price_again(row)
    if price.epsilon > row.get("epsilon", math.inf) * (1 + 1e-9) or price.rho > row.get(
        "rho", math.inf
    ) * (1 + 1e-9):
        yield (
            f"has the price {row.get('epsilon')}, {row.get('rho')}, and its scale gives "
            f"{price.epsilon}, {price.rho}"
        )
    there = stated(
        row["label"], _with_subset(facts, tape) if tape.rate < 1 else facts, row["dimension"]
    )
    if there is None or row["law"] == "failure probability":
        return
    law = there.law
    if "gdp_rho" in row:  # of a ledger with Gaussian accounting
        law = law.replace("discrete Gaussian", "rounded Gaussian")
        if price.gdp_rho > float(row["gdp_rho"]) * (1 + 1e-9):
            yield f"is counted as {row['gdp_rho']} of GDP, and its scale gives {price.gdp_rho}"
    # "discrete": of a mechanism that has Laplace or Gaussian noise
    rounded = law == "discrete" and "gdp_rho" in row and row["law"] == "rounded Gaussian"
    if not (rounded or row["law"].startswith(law)):
        yield f"has the law {row['law']}, not {law}"
    if not math.isnan(there.sensitivity) and not there.sensitivity * (1 - 1e-6) <= row[
        "sensitivity"
    ] <= there.sensitivity * (1 + 2e-3):
        yield (
            f"claims the sensitivity {row['sensitivity']:.9g}, and the table says "
            f"{there.sensitivity:.9g}"
        )
    if not row["pad"] >= there.pad * (1 - 1e-9) or (there.integral and not row["integral"]):
        yield (
            f"has the pad {row['pad']:g} (integers: {row['integral']}), and the table says "
            f"{there.pad:g} ({there.integral})"
        )


# ---- data
# --------------------------------------------------------------------------------------------------


def _codes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Columns that depend on each other, or are constant, or nearly so."""
    codes = np.zeros((n, len(LEVELS)), dtype=np.int64)
    for j, k in enumerate(LEVELS):
        kind = rng.random()
        if kind < 0.4 and j:
            codes[:, j] = np.where(
                rng.random(n) < 0.15, rng.integers(0, k, n), codes[:, rng.integers(j)] % k
            )
        elif kind < 0.9:
            codes[:, j] = rng.choice(k, n, p=rng.dirichlet(np.full(k, rng.choice([0.05, 1.0]))))
    return codes


def _dataset(codes: np.ndarray) -> jaxcd.Dataset:
    return jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=_DISCRETE)


def _discrete_pairs(sizes: tuple[int, ...] = (26, 200)) -> Pairs:
    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        codes = _codes(rng, sizes[trial % len(sizes)])
        other = codes.copy()
        other[int(rng.integers(len(codes)))] = [rng.integers(k) for k in LEVELS]
        return _dataset(codes), _dataset(other)

    return pairs


_ROWS = list(itertools.product(*map(range, LEVELS)))


def _between(
    test: Any, here: np.ndarray, there: np.ndarray, decides: Callable[[Any], bool]
) -> tuple[Any, Any]:
    """Neighbours on the way from one data set to another, between which what ``decides`` says of
    the margins changes.
    """

    def rows(k: int) -> np.ndarray:
        return np.vstack([there[:k], here[k:]])

    low, high = 0, len(here)
    at = decides(rows(low))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if decides(rows(middle)) == at else (low, middle)
    return _dataset(rows(low)), _dataset(rows(high))


def _deciding_pairs(test: Any) -> Pairs:
    """Random neighbours, and in turn neighbours between which an exact margin changes its sign, or
    the best separating set changes.
    """
    random = _discrete_pairs()

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        if trial % 3 == 0:
            return random(rng, trial // 3)
        n = 400
        noise = rng.random((n, 4))

        def margins(codes: np.ndarray) -> np.ndarray:
            queries = [Query(0, 1, ()), Query(0, 1, (2,)), Query(0, 1, (3,))]
            return Queue(test.prepare(_dataset(codes)), alpha=0.05).evaluate(queries).margin

        cause = rng.integers(0, 2, n)
        free = np.column_stack([rng.integers(0, k, n) for k in LEVELS])
        if trial % 3 == 1:  # v0, v1 go from independent to dependent
            tied = free.copy()
            tied[:, 1] = tied[:, 0] * 2
            return _between(test, free, tied, lambda codes: bool(margins(codes)[0] <= 0))
        # v0 and v1 have a common cause, of which first v2 and then v3 is the better copy.
        free[:, 0], free[:, 1] = (
            np.where(noise[:, 0] < 0.1, 1 - cause, cause),
            np.where(noise[:, 1] < 0.1, 1, 2 * cause),
        )
        first, second = free.copy(), free.copy()
        first[:, 2], first[:, 3] = cause, np.where(noise[:, 2] < 0.1, 1 - cause, cause)
        second[:, 2], second[:, 3] = np.where(noise[:, 3] < 0.1, 1 - cause, cause), cause
        return _between(test, first, second, lambda codes: bool(np.argmin(margins(codes)[1:]) == 0))

    return pairs


def _every_record(n: int) -> Pairs:
    """One record replaced by any other: all 48 in turn, against each corner."""

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        codes = _codes(np.random.default_rng(1), n)
        codes[0] = _ROWS[(trial // len(_ROWS)) * 7 % len(_ROWS)]
        other = codes.copy()
        other[0] = _ROWS[trial % len(_ROWS)]
        return _dataset(codes), _dataset(other)

    return pairs


def _columns(rng: np.random.Generator, n: int, p: int = 4) -> np.ndarray:
    """Numeric columns, some of them functions of others, constant, or full of ties."""
    columns = rng.normal(size=(n, p))
    for j in range(1, p):
        kind = rng.integers(4)
        if kind == 0:
            columns[:, j] = np.sin(2 * columns[:, rng.integers(j)]) + 0.1 * columns[:, j]
        elif kind == 1:
            columns[:, j] = np.round(columns[:, j])
        elif kind == 2 and rng.random() < 0.5:
            columns[:, j] = 1.5
    return np.clip(columns, -4, 4)


def _tables(domain: jaxcd.Domain, columns: np.ndarray, other: np.ndarray) -> tuple[Any, Any]:
    here, there = (
        jaxcd.Dataset.from_array(part, names=list(domain.names), domain=domain)
        for part in (columns, other)
    )
    return here, there


def _numeric_pairs(n: int) -> Pairs:
    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        columns = _columns(rng, n)
        other = columns.copy()
        other[int(rng.integers(n))] = rng.choice([-4.0, 0.0, 4.0], 4)
        return _tables(_NUMERIC, columns, other)

    return pairs


def _moved_between_cells(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """Rows that agree in order in one cell, and disagree in another; the record leaves the first,
    where it disagrees, and enters the second, where it agrees."""
    if trial % 2:
        return _numeric_pairs(300)(rng, trial)
    n = 61
    columns = np.full((n, 4), -3.9)
    columns[:, 0] = np.linspace(-3, 3, n)
    columns[:, 1] = columns[:, 0]
    second = np.arange(n) > n // 2
    columns[second, 1] *= -1
    columns[second, 2:] = 3.9
    other = columns.copy()
    columns[0], other[0] = [4, -4, -3.9, -3.9], [4, 4, 3.9, 3.9]
    return _tables(_NUMERIC, columns, other)


def _turned_product(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """Z constant, all others at one end, and a record whose product of residuals turns."""
    if trial % 2:
        return _numeric_pairs(60)(rng, trial)
    columns = np.full((40, 4), -4.0)
    other = columns.copy()
    columns[0, :2], other[0, :2] = [4, 4], [4, -4]
    return _tables(_NUMERIC, columns, other)


def _moment_pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """Rows near 0, and one record that goes from far out on one axis to as far out on another: the
    worst case of tilted moments; far outliers, which would move exact means."""
    columns = rng.normal(scale=0.3, size=(60, 3))
    other = columns.copy()
    size = np.geomspace(0.2, 30, 12)[trial % 12] if trial % 4 else 1e6
    first, second = rng.permutation(3)[:2]
    columns[0], other[0] = np.eye(3)[first] * size, np.eye(3)[second] * size * rng.choice([-1, 1])
    return _tables(_OPEN, columns, other)


def _mixed_pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    n = 80
    columns = np.column_stack(
        [rng.uniform(-4, 4, n), rng.integers(0, 2, n), rng.normal(size=n), rng.integers(0, 3, n)]
    )
    # everyone else agrees in b and d: a rank that followed the record would move them all
    if trial % 4 == 0:
        columns[:, 1], columns[:, 3] = 1, 2
        other = columns.copy()
        columns[0], other[0] = [-4, 0, -1e4, 0], [4, 0, 1e4, 0]
        return _tables(_MIXED, columns, other)
    other = columns.copy()
    columns[0] = [-4, 0, rng.choice([-1e4, 0.0]), rng.integers(3)]
    other[0] = [rng.choice([0.0, 4.0]), 1, rng.choice([1e4, 1.0]), rng.integers(3)]
    return _tables(_MIXED, columns, other)


def _pair_of_columns(n: int, protect: Protect = Protect.BOTH) -> Pairs:
    """Two columns, and one record replaced: of the half that is protected."""
    training, test = split_rows(_key(), n, n_test=n // 2, joint=False)
    rows = {
        Protect.BOTH: np.arange(n),
        Protect.TEST: np.flatnonzero(test),
        Protect.TRAIN: np.flatnonzero(training),
    }[protect]

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        x = rng.choice([-1.0, -0.2, 0.3, 1.0], n) if trial % 2 else rng.uniform(-1, 1, n)
        y = np.clip(x**3 + rng.normal(scale=0.2, size=n), -1, 1)
        other = np.stack([x, y])
        other[:, int(rng.choice(rows))] = rng.choice([-1.0, 1.0, np.nan], 2)
        return (x, y), tuple(other)

    return pairs


def _line(n: int) -> Pairs:
    """Two columns in which one record decides a difference of regression errors."""

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        x, y = -np.ones((2, n))
        other = np.stack([x, y])
        x[0], other[1, 0] = 1.0, 1.0
        if trial % 2:
            return _pair_of_columns(n)(rng, trial)
        return (x, y), tuple(other)

    return pairs


# ---- doors
# --------------------------------------------------------------------------------------------------


def _key() -> jax.Array:
    return jax.random.key(_KEY_SEED)


def _search(
    door: Callable[..., Any], budget: jaxcd.Budget, **options: Any
) -> Callable[[Any, NoiseSource], Any]:
    return lambda data, noise: door(data, budget=budget, noise=noise, key=_key(), **options)


def _discrete_facts(test: str) -> Callable[[Any], Facts]:
    return lambda data: Facts(data.n_samples, LEVELS, test)


def _numeric_facts(test: str, map_levels: int = 11) -> Callable[[Any], Facts]:
    return lambda data: Facts(data.n_samples, (None,) * 4, test, map_levels=map_levels)


def _plain_facts(data: Any) -> Facts:
    return Facts(data.n_samples, data.domain.cardinalities)


def _pure_facts(data: Any) -> Facts:
    return Facts(data.n_samples, data.domain.cardinalities, pure=True)


def _by_tests() -> Iterator[Case]:
    tests = {
        "CovarianceNorm": jaxcd.CovarianceNorm(),
        "PooledCovariance": jaxcd.PooledCovariance(),
        "KendallTau": jaxcd.KendallTau(),
        "Spearman": jaxcd.Spearman(),
    }
    budget, wide = jaxcd.Budget(4.0, 1e-3), jaxcd.Budget(60.0, 1e-3)
    deciders: tuple[tuple[Any, dict[str, Any]], ...] = (
        (jaxcd.SparseVector(), {}),
        (jaxcd.SparseVector(n_rounds=2), {"stable": False}),
        (jaxcd.SieveAndExamine(), {}),
        (jaxcd.SieveAndExamine(rate=0.5), {"stable": False}),
        (jaxcd.NoisyThreshold(), {"colliders": jaxcd.discovery.ColliderRule.MAJORITY}),
        (jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN, n_queries=7), {}),
        (jaxcd.ExponentialSelect(), {}),
        (jaxcd.LevelwiseGaussian(), {}),
        (jaxcd.Scheduled(jaxcd.SparseVector(), split=(1.0, 5.0)), {}),
        (jaxcd.Scheduled(jaxcd.NoisyThreshold(n_queries=4)), {"max_level": 1}),
    )
    names = itertools.cycle(tests)
    for place, (decider, options) in enumerate(deciders):
        test = next(names)
        kind = type(decider).__name__
        inner = getattr(decider, "decider", None)
        entries = (kind, *(() if inner is None else (type(inner).__name__,)), test)
        run = _search(
            jaxcd.pc, wide if place % 2 else budget, test=tests[test], decider=decider, **options
        )
        # the coupling of a sparse vector is the same for all pairs
        least = 0.3 if hasattr(decider, "n_rounds") else 0.02
        pairs = _deciding_pairs(tests[test])
        yield Case(
            f"pc, {decider.name} {place}, {test}",
            entries,
            run,
            pairs,
            _discrete_facts(test),
            frozenset(_BY_TESTS),
            trials=12,
            least=least,
        )
    run = _search(
        jaxcd.pc,
        dataclasses.replace(budget, accounting=jaxcd.privacy.Accounting.ZCDP),
        test=tests["Spearman"],
        decider=jaxcd.LevelwiseGaussian(),
    )
    yield Case(
        "pc, zCDP, Spearman",
        ("LevelwiseGaussian", "Spearman"),
        run,
        _deciding_pairs(tests["Spearman"]),
        _discrete_facts("Spearman"),
        frozenset(_BY_TESTS),
        trials=12,
        least=0.02,
    )
    run = _search(jaxcd.fci, wide, test=tests["CovarianceNorm"], decider=jaxcd.SparseVector())
    yield Case(
        "fci, SparseVector, CovarianceNorm",
        ("SparseVector", "CovarianceNorm"),
        run,
        _discrete_pairs(),
        _discrete_facts("CovarianceNorm"),
        frozenset(_BY_TESTS),
    )
    run = _search(jaxcd.tree_pc, wide, test=tests["CovarianceNorm"])
    yield Case(
        "tree_pc, CovarianceNorm",
        ("TreeOptions", "CovarianceNorm"),
        run,
        _discrete_pairs((200,)),
        _discrete_facts("CovarianceNorm"),
        frozenset(_TREE),
    )
    for test in tests:
        run = functools.partial(_one_test, test=tests[test], names=("v0", "v3", ("v1",)))
        yield Case(
            f"ci_test, {test}",
            (test,),
            run,
            _discrete_pairs((60,)),
            _discrete_facts(test),
            frozenset(_ALWAYS),
        )
    ranks = jaxcd.StratifiedRanks(strata=(6, 3), map_levels=5)
    run = _search(jaxcd.pc, wide, test=ranks, decider=jaxcd.SparseVector())
    yield Case(
        "pc, StratifiedRanks",
        ("StratifiedRanks", "SparseVector"),
        run,
        _numeric_pairs(300),
        _numeric_facts("StratifiedRanks", 5),
        frozenset(_BY_TESTS),
        trials=4,
    )
    run = _search(jaxcd.tree_pc, wide, test=ranks)
    yield Case(
        "tree_pc, StratifiedRanks",
        ("StratifiedRanks", "TreeOptions"),
        run,
        _numeric_pairs(300),
        _numeric_facts("StratifiedRanks", 5),
        frozenset(_TREE),
        trials=3,
    )
    tau = jaxcd.StratifiedTau()
    run = _search(jaxcd.pc, wide, test=tau, decider=jaxcd.SparseVector(), max_level=2)
    yield Case(
        "pc, StratifiedTau",
        ("StratifiedTau", "SparseVector"),
        run,
        _numeric_pairs(300),
        _numeric_facts("StratifiedTau"),
        frozenset(_BY_TESTS),
        trials=4,
    )
    # Nine tenths of the price are for the score, which one and two columns of Z move by 3 and 5.
    for given, record in ((("c",), 10 / 3), (("c", "d"), 50 / 9)):
        yield Case(
            f"ci_test, StratifiedTau, {len(given)}",
            ("StratifiedTau",),
            functools.partial(_one_test, test=tau, names=("a", "b", given)),
            _moved_between_cells,
            _released_facts(record),
            frozenset(_ALWAYS),
            least=0.4,
        )
    yield Case(
        "ci_test, PrivGCM",
        ("PrivGCM",),
        functools.partial(
            _one_test, test=jaxcd.published.PrivGCM(n_features=20), names=("a", "b", ("c",))
        ),
        _turned_product,
        _released_facts(_privgcm_record(1.0)),
        frozenset(_ALWAYS),
        least=0.3,
    )
    kernel = jaxcd.BoundedRCIT(
        n_features=20, n_permutations=19, scales=jaxcd.citests.BoughtBandwidths()
    )
    run = _search(jaxcd.pc, wide, test=kernel, decider=jaxcd.SparseVector(), max_level=1)
    yield Case(
        "pc, BoundedRCIT, bought bandwidths",
        ("BoundedRCIT", "BoughtBandwidths", "SparseVector"),
        run,
        _numeric_pairs(60),
        _numeric_facts("BoundedRCIT"),
        frozenset(_BY_TESTS),
        trials=3,
    )
    kernel = jaxcd.BoundedRCIT(n_features=20, n_permutations=19)
    run = _search(jaxcd.pc, wide, test=kernel, decider=jaxcd.NoisyRank(n_queries=6), max_level=1)
    yield Case(
        "pc, NoisyRank, BoundedRCIT",
        ("NoisyRank", "BoundedRCIT"),
        run,
        _numeric_pairs(60),
        _numeric_facts("BoundedRCIT"),
        frozenset(_BY_TESTS),
        trials=3,
    )


def _released_facts(record: float) -> Callable[[Any], Facts]:
    return lambda data: Facts(data.n_samples, (None,) * 4, record=record)


def _privgcm_record(penalty: float) -> float:
    """L1 of the products of residuals by PRIVACY.md E1, E3, E4, without a norm bound."""
    w = 1 / math.sqrt(2 * penalty)
    c = (math.sqrt(1 + 8 * w * w) - 1) / (4 * w)
    limacon = 2 * (1 + w * c) * math.sqrt(1 - c * c)
    return 2 * (1 + w) ** 2 + 2 * limacon / math.sqrt(2 * penalty)


def _one_test(
    data: Any, noise: NoiseSource, *, test: Any, names: tuple[str, str, tuple[str, ...]]
) -> Any:
    x, y, given = names
    return jaxcd.ci_test(
        data, x, y, given=given, test=test, budget=jaxcd.Budget(1.0), key=_key(), noise=noise
    )


def _releases() -> Iterator[Case]:
    def bought(kind: Any, budget: jaxcd.Budget) -> Callable[[Any, NoiseSource], Any]:
        return lambda data, noise: jaxcd.release(data, kind, budget=budget, noise=noise)

    every, n_every = _every_record(20), 4 * len(_ROWS)
    yield Case(
        "release, Histogram",
        ("Histogram",),
        bought(jaxcd.Histogram(), jaxcd.Budget(1.0)),
        every,
        _plain_facts,
        trials=n_every,
        least=0.999,
    )
    for budget in (jaxcd.Budget(8.0, 1e-3), jaxcd.Budget(40.0)):
        law = "Gaussian" if budget.delta else "Laplace"
        yield Case(
            f"release, Marginals, {law}",
            ("Marginals",),
            bought(jaxcd.Marginals(), budget),
            every,
            _plain_facts if budget.delta else _pure_facts,
            trials=n_every,
            least=0.9,
        )
    yield Case(
        "release, Marginals, zCDP",
        ("Marginals",),
        bought(
            jaxcd.Marginals(), jaxcd.Budget(8.0, 1e-3, accounting=jaxcd.privacy.Accounting.ZCDP)
        ),
        every,
        _plain_facts,
        trials=n_every,
        least=0.9,
    )
    # Many rows and columns that depend on each other: later rounds buy triples and tables too.
    for budget in (jaxcd.Budget(20.0, 1e-3), jaxcd.Budget(300.0)):
        law = "Gaussian" if budget.delta else "Laplace"
        yield Case(
            f"release, Marginals, {law}, all rounds",
            ("Marginals",),
            bought(jaxcd.Marginals(), budget),
            _dependent_pairs,
            _plain_facts if budget.delta else _pure_facts,
            trials=n_every,
            least=0.8,
        )
    for budget in (jaxcd.Budget(20.0, 1e-3), jaxcd.Budget(300.0)):
        law = "Gaussian" if budget.delta else "Laplace"
        yield Case(
            f"release, LogLinear, {law}",
            ("LogLinear",),
            bought(jaxcd.LogLinear(), budget),
            _dependent_pairs,
            _plain_facts if budget.delta else _pure_facts,
            trials=12,
            least=0.8,
        )
    given = jaxcd.SecondMoments(centres=dict.fromkeys("abc", 0.0), scales=dict.fromkeys("abc", 1.0))
    for name, kind in (("bought units", jaxcd.SecondMoments()), ("public units", given)):
        yield Case(
            f"release, SecondMoments, {name}",
            ("SecondMoments",),
            bought(kind, jaxcd.Budget(4.0, 1e-3)),
            _moment_pairs,
            _plain_facts,
            trials=24,
            least=0.5,
        )
    yield Case(
        "release, Features",
        ("Features",),
        bought(jaxcd.Features(), jaxcd.Budget(4.0, 1e-3)),
        _mixed_pairs,
        _plain_facts,
        trials=12,
        least=0.5,
    )


def _by_person() -> Iterator[Case]:
    """Releases where the unit is a person: neighbours differ in one person, of 1 or 50 rows."""

    def bought(kind: Any, budget: jaxcd.Budget) -> Callable[[Any, NoiseSource], Any]:
        return lambda data, noise: jaxcd.release(data, kind, budget=budget, noise=noise)

    def budget(epsilon: float, delta: float = 1e-3) -> jaxcd.Budget:
        return jaxcd.Budget(epsilon, delta, unit=jaxcd.privacy.Unit.PERSON)

    discrete = _people_pairs(_DISCRETE, 7, _ROWS)
    corners = _people_pairs(_DISCRETE, 1, [_ROWS[0], _ROWS[-1], _ROWS[len(_ROWS) // 2]])
    ends = np.array(
        list(itertools.product((-4.0, 0.5, 4.0), (0.0, 1.0), (-1e4, 0.3, 1e4), (0.0, 2.0)))
    )
    far = np.array([row for r in (2.0, 0.5, 8.0) for row in (*np.eye(3) * r, *-np.eye(3) * r)])
    units = jaxcd.SecondMoments(centres=dict.fromkeys("abc", 0.0), scales=dict.fromkeys("abc", 1.0))
    for kind, price, pairs, trials, least in (
        (jaxcd.Histogram(), budget(1.0), discrete, 2 * len(_ROWS), 0.999),
        (jaxcd.Marginals(), budget(8.0), discrete, 2 * len(_ROWS), 0.9),
        (jaxcd.LogLinear(), budget(20.0), corners, 6, 0.8),
        (units, budget(4.0), _people_pairs(_OPEN, 7, far), 24, 0.8),
        (jaxcd.Features(), budget(40.0), _people_pairs(_MIXED, 9, ends), 40, 0.9),
    ):
        name = type(kind).__name__
        yield Case(
            f"release by person, {name}",
            (name,),
            bought(kind, price),
            pairs,
            _person_facts,
            trials=trials,
            least=least,
        )
    yield Case(
        "release by person, Marginals, Laplace",
        ("Marginals",),
        bought(jaxcd.Marginals(), budget(40.0, 0.0)),
        discrete,
        lambda data: dataclasses.replace(_person_facts(data), pure=True),
        trials=2 * len(_ROWS),
        least=0.9,
    )
    yield Case(
        "release by person, SecondMoments, bought units",
        ("SecondMoments",),
        bought(jaxcd.SecondMoments(), budget(4.0)),
        _people_pairs(_OPEN, 7, far),
        _person_facts,
        trials=12,
        least=0.3,
    )


def _person_facts(data: Any) -> Facts:
    return Facts(data.n_people, data.domain.cardinalities, by_person=True)


def _people_pairs(domain: jaxcd.Domain, step: int, rows: Any) -> Pairs:
    """40 people with 1 to 4 rows, and one who has one row in the first table and 50 in the other:
    50 times the same one, each in turn, and then any ones.
    """

    def table(parts: list[np.ndarray]) -> jaxcd.Dataset:
        people = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        # anywhere in the table; everybody's own rows stay in their order
        order = np.argsort(np.random.default_rng(3).random(len(people)))
        named = dict(zip(domain.names, np.concatenate(parts)[order].T, strict=True))
        read = jaxcd.Dataset.from_array(
            np.column_stack(list(named.values())), names=list(domain.names), domain=domain
        )
        return jaxcd.Dataset(domain, read.discrete, read.numeric, people=people[order])

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        each = np.asarray(rows, dtype=np.float64)
        others = [each[rng.integers(len(each), size=rng.integers(1, 5))] for _ in range(40)]
        one = each[[trial // len(each) * step % len(each)]]
        same = np.repeat(each[[trial % len(each)]], 50, axis=0)
        many = same if trial < len(each) else each[rng.integers(len(each), size=50)]
        return table([*others, one]), table([*others, many])

    return pairs


def _dependent_pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """A chain of strong dependences, one record replaced by any other in turn."""
    fixed, n = np.random.default_rng(2), 2_000
    codes = np.zeros((n, len(LEVELS)), dtype=np.int64)
    codes[:, 0] = fixed.integers(0, 2, n)
    for j in range(1, len(LEVELS)):
        sure = (codes[:, j - 1] * (LEVELS[j] - 1)) // max(LEVELS[j - 1] - 1, 1)
        codes[:, j] = np.where(fixed.random(n) < 0.1, fixed.integers(0, LEVELS[j], n), sure)
    codes[0] = _ROWS[(trial // len(_ROWS)) * 11 % len(_ROWS)]
    other = codes.copy()
    other[0] = _ROWS[trial % len(_ROWS)]
    return _dataset(codes), _dataset(other)


_N_PAIR = 40


def _hsic_record(
    protect: Protect, joint: bool, penalty: float = 0.03, bandwidth: float = 0.25
) -> float:
    """Delta of the kernel score of 40 rows by PRIVACY.md D1, E1 to E4, for the norm bound 1."""
    n_test = n_training = _N_PAIR if joint else _N_PAIR // 2
    w = min(1.0, 1 / math.sqrt(2 * penalty))
    c = (math.sqrt(1 + 8 * w * w) - 1) / (4 * w)
    limacon = 2 * (1 + w * c) * math.sqrt(1 - c * c)
    record = math.sqrt(6) * (n_test - 1) / n_test**2
    at_most = 0.5
    if protect is Protect.TEST:
        return min(record, at_most)
    everywhere = min(2 * limacon / (penalty * n_training), 2.0) / bandwidth
    if joint:
        return min(
            record + min(limacon / math.sqrt(2 * penalty) / n_training, 2.0) / bandwidth, at_most
        )
    training = min(everywhere, at_most)
    return training if protect is Protect.TRAIN else max(record, training)


def _pairs_of_columns() -> Iterator[Case]:
    n = _N_PAIR

    def anm(score: Any, budget: jaxcd.Budget, **options: Any) -> Callable[[Any, NoiseSource], Any]:
        def run(columns: Any, noise: NoiseSource) -> Any:
            return jaxcd.anm(
                *columns,
                budget=budget,
                noise=noise,
                key=_key(),
                bounds=_UNIT,
                score=score,
                **options,
            )

        return run

    def facts(record: float) -> Callable[[Any], Facts]:
        return lambda columns: Facts(n, record=record)

    def case(
        name: str,
        score: Any,
        record: float,
        *,
        budget: jaxcd.Budget = jaxcd.Budget(1.0),  # noqa: B008 - frozen
        **options: Any,
    ) -> Case:
        pairs = _pair_of_columns(n, options.get("protect", Protect.BOTH))
        return Case(
            f"anm, {name}",
            (type(score).__name__,),
            anm(score, budget, **options),
            pairs,
            facts(record),
            frozenset(_PAIR),
        )

    hsic, both = jaxcd.pairwise.HSICScore(), ScoreRelease.SCORES
    yield case("HSIC, both halves", hsic, _hsic_record(Protect.BOTH, True))
    yield case("HSIC, both halves, scores", hsic, _hsic_record(Protect.BOTH, True), release=both)
    yield case("HSIC, split", hsic, _hsic_record(Protect.BOTH, False), test_share=0.5)
    wide = jaxcd.pairwise.HSICScore(residual_bandwidth=1.0)
    large = _hsic_record(Protect.BOTH, False, penalty=1.0, bandwidth=1.0)
    yield case(
        "HSIC, split, large penalty", wide, large, test_share=0.5, penalty=1.0, norm_bound=1.0
    )
    yield case("HSIC, test half", hsic, _hsic_record(Protect.TEST, False), protect=Protect.TEST)
    yield case(
        "HSIC, training half", hsic, _hsic_record(Protect.TRAIN, False), protect=Protect.TRAIN
    )
    half = n // 2
    yield case(
        "Spearman, test half", jaxcd.pairwise.SpearmanScore(), 6 / (half + 1), protect=Protect.TEST
    )
    yield case("Kendall, test half", jaxcd.pairwise.KendallScore(), 4 / half, protect=Protect.TEST)
    delta = jaxcd.Budget(2.0, 1e-3)
    yield case(
        "Spearman, training half",
        jaxcd.pairwise.SpearmanScore(stability_release=True),
        1.0,
        budget=delta,
        protect=Protect.TRAIN,
    )
    iqr = jaxcd.pairwise.LogIQRScore()
    for protect in (Protect.BOTH, Protect.TEST, Protect.TRAIN):
        yield case(f"IQR, flip distance, {protect.value}", iqr, 0.0, protect=protect)
        stable = jaxcd.pairwise.LogIQRScore(mechanism=IQRMechanism.PROPOSE_TEST_RELEASE)
        yield case(
            f"IQR, propose-test-release, {protect.value}",
            stable,
            stable.width,
            budget=delta,
            protect=protect,
        )
    yield case(
        "IQR, quartiles",
        jaxcd.pairwise.LogIQRScore(mechanism=IQRMechanism.EXPONENTIAL),
        0.0,
        protect=Protect.TEST,
        release=both,
    )

    def reci(columns: Any, noise: NoiseSource) -> Any:
        return jaxcd.reci(*columns, budget=jaxcd.Budget(1.0), bounds=_UNIT, noise=noise)

    # A residual beyond 1/2 counts as 1/2: in steps of 1 / (2 R), R = 64, its square is 64^2.
    yield Case(
        "reci",
        ("BoundedPolynomial",),
        reci,
        _line(400),
        facts(64.0**2),
        frozenset(_PAIR),
        least=0.7,
    )


CASES: tuple[Case, ...] = (*_by_tests(), *_releases(), *_by_person(), *_pairs_of_columns())
"""Every door with every mechanism."""


def _check(case: Case) -> Check:
    def found(quick: bool) -> Iterator[Finding]:
        with tapping() as tap:
            yield from run_case(case, tap, trials=case.trials if quick else 2 * case.trials)

    return found


REPLAYS: Checks = {f"replay: {case.name}": _check(case) for case in CASES}
"""The cases as checks, by name."""
