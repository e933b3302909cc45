"""Replay: a run on a neighbouring data set, forced to give the same noisy answers, must look the
same from outside.

A first run draws its noise at random and keeps a tape.  In the second run, on other data, the noise
is set so that every mechanism gives the answer that it gave in the first: Laplace and Gaussian
noise is moved by the difference of the values, an AboveThreshold's threshold by d and the noise of
its hit by 2 d (the coupling of its proof).  Then

* everything that leaves a run (result, text, pickle, reports, progress, output, warnings) must be
  the same, byte for byte: whatever differs has reached the outside past the mechanisms;
* the logarithm of the ratio of the two tapes' probabilities is what the events really cost on this
  pair of data sets, and must be within what the ledger was charged.

Nothing here is statistical: no draw of the noise may break it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import jaxcd
from jaxcd.audit import replaying
from jaxcd.audit.neighbours import LEVELS, random_codes
from jaxcd.audit.replaying import Drawing, Given, Replaying, Tape, Tapping, outside
from jaxcd.citests import Evaluation, PreparedTest, Query, Sensitivity
from jaxcd.citests.tables import DiscreteTest
from jaxcd.decisions import Noise
from jaxcd.privacy import GRID, NoiseSampler, integer_sensitivity
from jaxcd.report import graph_json
from tests.catalogue import MARGIN_TESTS
from tests.helpers import coded, levelled, numbers, stated

DOMAIN = levelled(*LEVELS)


@pytest.fixture
def tapping() -> Iterator[Tapping]:
    with replaying.tapping() as tap:
        yield tap


def dataset(codes: np.ndarray) -> jaxcd.Dataset:
    return coded(codes, DOMAIN)


def run(
    data: Any, sampler: NoiseSampler, folder: Any = None, door: Any = jaxcd.pc, **options: Any
) -> tuple[Any, list]:
    """A run, and everything of it that can be seen."""
    data = dataset(data) if isinstance(data, np.ndarray) else data
    records: list = []
    if door is jaxcd.pc:
        options["progress"] = records.append
    result, seen = outside(
        lambda: door(data, noise=Given(sampler), **{"key": None, **options}), folder
    )
    if isinstance(result, jaxcd.DiscoveryResult):
        seen += [list(result.separating_sets), graph_json(result)]
    return result, [*seen, records]


def charged(result: jaxcd.DiscoveryResult, index: int, what: str) -> float:
    row = result.info["ledger"][index]
    assert row["index"] == index
    return row[what]


def real_costs(
    result: jaxcd.DiscoveryResult, first: Tape, second: Tape, *, shift: int, rate: float
) -> list[float]:
    """What each event cost on this pair, as a share of what it was charged.

    For one AboveThreshold this is the bound of the coupling, the same for all pairs of data sets.
    """
    shares = []
    for index, calls in first.calls.items():
        kinds = {kind for kind, *_ in calls}
        moved = [part for part in second.calls[index] if part[0] != "subset"]
        if "geometric" in kinds:
            scales = [scale for kind, scale, *_ in calls if kind == "geometric"]
            inner = Fraction(shift) / Fraction(scales[0])
            if len(scales) > 1:
                inner += Fraction(2 * shift) / Fraction(scales[1])
            whole = math.log1p(rate * math.expm1(float(inner)))
            shares.append(whole / charged(result, index, "epsilon"))
            continue
        (kind, scale, difference, _), *rest = moved
        assert not rest
        steps = [int(x) for x in difference]
        if kind == "laplace":
            shares.append(
                float(Fraction(sum(map(abs, steps))) / Fraction(scale))
                / charged(result, index, "epsilon")
            )
        elif kind == "gaussian":
            spent = Fraction(sum(x * x for x in steps)) / (2 * Fraction(scale) ** 2)
            shares.append(float(spent) / charged(result, index, "rho"))
        else:
            shares.append(
                float(Fraction(max(steps) - min(steps)) / Fraction(scale))
                / charged(result, index, "epsilon")
            )
    return shares


#: decider, further options of the run
RUNS = [
    (jaxcd.SparseVector(), {}),
    (jaxcd.SparseVector(n_rounds=2), {"stable": False}),
    (jaxcd.SieveAndExamine(rate=1.0), {}),
    (jaxcd.SieveAndExamine(rate=0.5), {"stable": False}),
    (jaxcd.SieveAndExamine(), {}),
    (jaxcd.NoisyThreshold(), {"colliders": jaxcd.discovery.ColliderRule.MAJORITY}),
    (jaxcd.NoisyThreshold(n_queries=7), {"stable": False}),
    (jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN), {}),
    (jaxcd.LevelwiseGaussian(), {}),
    (jaxcd.LevelwiseGaussian(level_shares=(1.0, 5.0), mean_weight=0.3), {"max_level": 1}),
]
N_PAIRS = 14
IDS = [f"{decider.name}{i}" for i, (decider, _) in enumerate(RUNS)]


def shift_of(test: jaxcd.citests.CITest, n: int) -> int:
    bound = stated(test, n)
    return int(integer_sensitivity(bound.value, grid=GRID, pad=bound.pad))


def rate_of(first: Tape) -> float:
    rates = {
        scale for calls in first.calls.values() for kind, scale, *_ in calls if kind == "subset"
    }
    assert len(rates) <= 1
    return rates.pop() if rates else 1.0


@pytest.mark.parametrize(("decider", "options"), RUNS, ids=IDS)
def test_neighbours_look_the_same_at_the_price_that_was_charged(
    decider: Any, options: dict, tapping: Tapping
):
    """Also of the deciders in ``test_replayed_schedules.py``."""
    rng = np.random.default_rng(11)
    worst: list[float] = []
    different, separated, untouched = 0, 0, 0
    for trial in range(N_PAIRS):
        n, test = (26, 200)[trial % 2], MARGIN_TESTS[trial % 4]
        budget = jaxcd.Budget(float(rng.choice([0.5, 4.0, 60.0])), 1e-3)
        codes = random_codes(rng, n)
        neighbour, record = codes.copy(), int(rng.integers(n))
        neighbour[record] = [rng.integers(k) for k in LEVELS]
        different += bool((codes != neighbour).any())
        settings = {"test": test, "decider": decider, "budget": budget, **options}

        tapping.tape = first = Tape()
        result, seen = run(codes, Drawing(tapping, trial), **settings)
        separated += len(result.separating_sets)
        tapping.tape = second = Tape()
        shift = shift_of(test, round(rate_of(first) * n))
        _, seen_there = run(neighbour, Replaying(tapping, first, shift=shift), **settings)
        assert seen == seen_there
        assert first.hits == second.hits
        for index, calls in first.calls.items():
            # never looked at
            if any(kind == "subset" and not mask[record] for kind, _, mask, _ in calls):
                untouched += 1
                assert all(map(np.array_equal, first.asked[index], second.asked[index]))
        worst += real_costs(result, first, second, shift=shift, rate=rate_of(first))
    assert different > N_PAIRS / 2 and separated > 5  # the pairs differ, and the deciders decide
    inner = getattr(decider, "decider", decider)
    assert (untouched > 5) == (isinstance(inner, jaxcd.SieveAndExamine) and inner.rate != 1)
    # The coupling of an AboveThreshold fills its price; other mechanisms are charged for the worst
    # pair.  The scale of Gaussian noise is a float: squares are compared to one unit in the last
    # place.
    assert max(worst) <= 1 + 1e-12
    assert max(worst) > 0.05


@pytest.mark.parametrize(("decider", "options"), RUNS, ids=IDS)
def test_any_two_data_sets_look_the_same_under_the_same_answers(
    decider: Any, options: dict, tapping: Tapping, tmp_path: Any
):
    """Not only neighbours: constant columns, equal rows and independent columns, with reports
    written to files.
    """
    rng, n = np.random.default_rng(5), 200
    constant = np.zeros((n, len(LEVELS)), dtype=np.int64)
    copies = np.tile(rng.integers(0, 2, (n, 1)), (1, len(LEVELS)))
    independent = np.stack([rng.integers(0, k, n) for k in LEVELS], axis=1)
    wide = 2**50  # no margin is that many steps away from another
    for trial, (here, there) in enumerate(
        [(constant, copies), (copies, independent), (independent, constant)]
    ):
        settings = {
            "test": MARGIN_TESTS[trial],
            "decider": decider,
            "budget": jaxcd.Budget(3.0, 1e-3),
            **options,
        }
        tapping.tape = first = Tape()
        _, seen = run(here, Drawing(tapping, trial), tmp_path / f"{trial}a", **settings)
        tapping.tape = Tape()
        _, seen_there = run(
            there, Replaying(tapping, first, shift=wide), tmp_path / f"{trial}b", **settings
        )
        assert seen == seen_there


NUMERIC = numbers("abcd", -4, 4)


def random_columns(rng: np.random.Generator, n: int) -> np.ndarray:
    """Numeric columns, some of them functions of others, constant, or full of ties."""
    columns = rng.normal(size=(n, 4))
    for j in range(1, 4):
        kind = rng.integers(4)
        if kind == 0:
            columns[:, j] = np.sin(2 * columns[:, rng.integers(j)]) + 0.1 * columns[:, j]
        elif kind == 1:
            columns[:, j] = np.round(columns[:, j])
        elif kind == 2 and rng.random() < 0.5:
            columns[:, j] = 1.5
    return np.clip(columns, -4, 4)


def one_test(data: Any, **options: Any) -> Any:
    return jaxcd.ci_test(data, "a", "c", given=("b",), **options)


#: door, options; the first two on discrete columns
DOORS: list[tuple[Any, dict]] = [
    (jaxcd.tree_pc, {"test": jaxcd.CovarianceNorm()}),
    (jaxcd.pc, {"test": jaxcd.StratifiedRanks(strata=(6, 3)), "decider": jaxcd.SparseVector()}),
    (
        jaxcd.pc,
        {"test": jaxcd.StratifiedRanks(strata=(6, 3)), "decider": jaxcd.SieveAndExamine(rate=0.5)},
    ),
    (
        jaxcd.pc,
        {"test": jaxcd.StratifiedRanks(strata=(6, 3)), "decider": jaxcd.LevelwiseGaussian()},
    ),
    (jaxcd.tree_pc, {"test": jaxcd.StratifiedRanks(strata=(6, 3), map_levels=5)}),
    (
        jaxcd.pc,
        {
            "test": jaxcd.BoundedRCIT(n_features=20, n_permutations=19),
            "decider": jaxcd.SparseVector(),
            "max_level": 1,
        },
    ),
    (one_test, {"test": jaxcd.BoundedRCIT(n_features=20, null=jaxcd.citests.Null.ANALYTIC)}),
    (one_test, {"test": jaxcd.KendallTau()}),
]


@pytest.mark.parametrize(
    ("door", "options"),
    DOORS,
    ids=[f"{i}-{door.__name__}-{options['test'].name}" for i, (door, options) in enumerate(DOORS)],
)
def test_other_doors(door: Any, options: dict, tapping: Tapping):
    """The same for tree-guided PC, single tests, and the tests that buy a preparation or look at
    numbers.
    """
    import jax

    rng, key = np.random.default_rng(2), jax.random.key(4)
    discrete = options["test"].name in ("CovarianceNorm", "KendallTau")
    domain = (
        jaxcd.Domain([(name, jaxcd.Ordinal((0, 1, 2))) for name in "abcd"]) if discrete else NUMERIC
    )
    worst: list[float] = []
    for trial in range(6):
        n = (60, 60 if options["test"].name == "BoundedRCIT" else 300)[trial % 2]
        columns = random_columns(rng, n)
        if discrete:
            columns = np.digitize(columns, (-0.5, 0.5))
        other, record = columns.copy(), int(rng.integers(n))
        other[record] = rng.choice([0, 1, 2] if discrete else [-4.0, 0.0, 4.0], 4)
        here, there = (
            jaxcd.Dataset.from_array(part, names=list("abcd"), domain=domain)
            for part in (columns, other)
        )
        settings = {
            "door": door,
            "budget": jaxcd.Budget(float(rng.choice([1.0, 30.0])), 1e-3),
            "key": key,
            **options,
        }
        tapping.tape = first = Tape()
        result, seen = run(here, Drawing(tapping, trial), **settings)
        tapping.tape = second = Tape()
        shift = shift_of(options["test"], round(rate_of(first) * n))
        _, seen_there = run(there, Replaying(tapping, first, shift=shift), **settings)
        assert seen == seen_there
        if isinstance(result, jaxcd.DiscoveryResult):
            worst += real_costs(result, first, second, shift=shift, rate=rate_of(first))
        else:
            ((_, scale, steps, _),) = second.calls[0]
            worst.append(
                float(
                    Fraction(abs(int(steps[0])))
                    / Fraction(scale)
                    / Fraction(settings["budget"].epsilon)
                )
            )
    # The Gaussian's scale is a float: squares are compared to one unit in the last place.
    assert 0 < max(worst) <= 1 + 1e-12


class _Moving(PreparedTest):
    def __init__(self, data: jaxcd.Dataset, rises: Any) -> None:
        self._data, self._codes, self._rises = data, data.codes, rises
        self.n_samples = data.n_samples

    def bucket(self, query: Query) -> None:
        return None

    def batch_size(self, bucket: Any) -> int:
        return 1 << 10

    def evaluate(self, bucket: Any, queries: Any, *, alpha: float) -> Evaluation:
        ones = int((self._codes[:, 0] > 0).sum())
        margins = np.array(
            [float(ones if self._rises(query.given) else -ones) for query in queries]
        )
        return Evaluation(margins, margins, margins)

    def pooled_covariances(self, queries: Any) -> list[np.ndarray]:
        # <U, C> moves by 4 for both matrices U of norm 1 whose rows and columns sum to 0
        ones = int((self._codes[:, 0] > 0).sum())
        return [2.0 * ones * np.array([[1, -1], [-1, 1]]) for _ in queries]

    def view_counts(self, sets: Any) -> list[np.ndarray]:
        return self._data.counts(sets)


class Moving(DiscreteTest):
    """The worst test of sensitivity 1: every margin moves by 1, up for the sets that rise and down
    for the others.
    """

    def __init__(self, rises: Any) -> None:
        self._rises = rises

    def prepare(self, data: Any, **_: Any) -> PreparedTest:
        return _Moving(data, self._rises)

    def margin_sensitivity(self, **_: Any) -> Sensitivity:
        return Sensitivity(1.0, 0.0, "by construction")


@pytest.mark.parametrize(
    ("door", "options"),
    [
        (jaxcd.pc, {"decider": jaxcd.LevelwiseGaussian(alpha=0.9, false_edges=9.0)}),
        (jaxcd.pc, {"decider": jaxcd.NoisyThreshold(n_queries=9)}),
        (jaxcd.pc, {"decider": jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN, n_queries=9)}),
        (jaxcd.tree_pc, {"options": jaxcd.decisions.TreeOptions(alpha=0.9, false_edges=9.0)}),
    ],
    ids=["LevelwiseGaussian", "Laplace", "Gaussian", "tree"],
)
def test_the_worst_test_fills_every_price_and_overfills_none(
    door: Any, options: dict, tapping: Tapping
):
    """Batches of N numbers, differences of two minima, selections: what is charged is what the
    worst pair costs.
    """
    # Selections cost most between sets that rise and sets that fall, contrasts between the empty
    # set and the others.
    test = Moving(bool if door is jaxcd.tree_pc else lambda given: 0 in given)
    shares: dict[str, float] = {}
    domain = jaxcd.Domain([(f"v{j}", jaxcd.Ordinal((0, 1))) for j in range(5)])
    here, there = np.zeros((2, 40, 5), dtype=np.int32)
    there[7, :3] = 1  # as many changed columns as level 0 pays for
    sides = [coded(codes, domain) for codes in (here, there)]
    for trial in range(30):
        settings = {"door": door, "test": test, "budget": jaxcd.Budget(0.5, 1e-3), **options}
        tapping.tape = first = Tape()
        result, seen = run(sides[trial % 2], Drawing(tapping, trial), **settings)
        tapping.tape = second = Tape()
        _, seen_there = run(sides[1 - trial % 2], Replaying(tapping, first, shift=0), **settings)
        assert seen == seen_there
        for row, share in zip(
            result.info["ledger"], real_costs(result, first, second, shift=0, rate=1.0), strict=True
        ):
            label = row["label"].split(":")[0]
            shares[label] = max(shares.get(label, 0.0), share)
    assert all(0.95 < share <= 1 + 1e-12 for share in shares.values()), shares
    expected = {"tree_pc": {"level 0", "grow", "shrink", "orient"}, "pc": {"noisy margin"}}
    levelwise = {"level 0", "level 1", "level 2"}
    assert shares.keys() == (
        levelwise if "LevelwiseGaussian" in repr(options) else expected[door.__name__]
    )


def test_a_swapped_subset_is_a_neighbour(tapping: Tapping):
    """The other half of the amplification's proof: on one data set, exchanging one record of the
    subset moves every margin of the sieve by no more than one record does, so a sieve's answers can
    be coupled across the exchange.
    """
    rng = np.random.default_rng(3)
    decider, n = jaxcd.SieveAndExamine(rate=0.5, n_rounds=4), 200
    hits = 0
    for trial in range(12):
        codes, test = random_codes(rng, n), MARGIN_TESTS[trial % 4]

        def exchanged(mask: np.ndarray, rng: np.random.Generator = rng) -> np.ndarray:
            other = mask.copy()
            other[rng.choice(np.flatnonzero(mask))] = False
            other[rng.choice(np.flatnonzero(~mask))] = True
            assert other.sum() == mask.sum() and (other != mask).sum() == 2
            return other

        settings = {"test": test, "decider": decider, "budget": jaxcd.Budget(20.0)}
        tapping.tape = first = Tape()
        _, seen = run(codes, Drawing(tapping, trial), **settings)
        hits += len(first.hits)
        tapping.tape = Tape()
        shift = shift_of(test, n // 2)
        _, seen_there = run(
            codes, Replaying(tapping, first, shift=shift, subsets=exchanged), **settings
        )
        assert seen == seen_there
    assert hits > 12


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize(
    "decider", [jaxcd.SparseVector(), jaxcd.SieveAndExamine(rate=0.5)], ids=lambda d: d.name
)
def test_blocks_are_walked_in_sequence(decider: Any, stable: bool, tapping: Tapping):
    """Looking ahead changes nothing: query j of a round meets draw j of its noise, and the first to
    reach the threshold ends it.

    A subset belongs to one round, and a round to one subset.
    """
    rng = np.random.default_rng(8)
    longest, n, d = 0, 200, 11
    domain = jaxcd.Domain([(f"v{j}", jaxcd.Categorical((0, 1))) for j in range(d)])
    for trial in range(4):
        share = 0.5 if trial % 2 else 0.15
        common = rng.integers(0, 2, (n, 1))
        codes = np.where(rng.random((n, d)) < share, rng.integers(0, 2, (n, d)), common).astype(
            np.int32
        )
        tapping.tape = tape = Tape()
        jaxcd.pc(
            coded(codes, domain),
            test=jaxcd.CovarianceNorm(),
            decider=decider,
            budget=jaxcd.Budget(float(rng.choice([300.0, 3000.0]))),
            key=None,
            noise=Given(Drawing(tapping, trial)),
            stable=stable,
            max_level=2,
        )
        rounds = [index for index, calls in tape.calls.items() if calls[0][0] == "geometric"]
        for index in rounds:
            draws = [part for kind, _, part, _ in tape.calls[index] if kind == "geometric"]
            threshold, noise = (
                int(draws[0][0]),
                np.concatenate([np.zeros(0, dtype=np.int64), *draws[1:]]),
            )
            hit = tape.hits.get(index)
            asked = np.concatenate(tape.asked[index]) if tape.asked[index] else np.zeros(0)
            length = len(asked) if hit is None else hit + 1
            longest = max(longest, length)
            values = np.rint(asked[:length] / GRID).astype(np.int64)
            limit = round(tape.thresholds[index] / GRID) + threshold if length else 0
            above = values + noise[:length] >= limit
            assert not above[:-1].any() if hit is not None else not above.any()
            assert hit is None or above[-1]
            subsets = [part for kind, _, part, _ in tape.calls[index] if kind == "subset"]
            assert len(subsets) == (isinstance(decider, jaxcd.SieveAndExamine))
            assert all(part.sum() == n // 2 for part in subsets)
        # Only the last round can be without a hit: a round is drawn anew after every hit, and not
        # before.
        assert all(index in tape.hits for index in rounds[:-1])
    assert longest > 32  # longer than the first block of noise
