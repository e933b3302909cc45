"""The stated constants against the farthest that a search, or a known extremal family, moves what
they bound.

A share of 1 says that the constant is the best possible; a share above 1 refutes it.  What has a
closed form is computed again from the formula of its proof.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import jaxcd
from jaxcd.audit.findings import Checks, Finding
from jaxcd.audit.replaying import Drawing, Replaying, Tapping, tapping
from jaxcd.citests import CITest, Query
from jaxcd.citests.bought_bandwidths import buy_scales, scale_utilities
from jaxcd.citests.bounded_rcit import residual_shift
from jaxcd.citests.spearman import spearman_rho_sensitivity
from jaxcd.decisions.measurements import openings
from jaxcd.local import (
    BoundedGeometric,
    ClippedGeometric,
    CombinedGeometric,
    CombinedKaryResponse,
    Distance,
    KaryResponse,
    joint_channel,
)
from jaxcd.pairwise import anm_release
from jaxcd.pairwise.anm_columns import DirectionColumns, Plan
from jaxcd.pairwise.anm_hsic import hsic_pairs, hsic_record_sensitivity, series
from jaxcd.pairwise.anm_quartiles import QuartileRange, Reach, flip_distance
from jaxcd.pairwise.anm_scores import KendallScore, SpearmanScore
from jaxcd.privacy import VECTOR_GRID, Accountant, Ledger, Relation
from jaxcd.privacy.rank_maps import release_rank_maps
from jaxcd.queries import Door, Queue, Session

__all__ = ["CONSTANTS"]

_ALPHA = 0.05
Record = tuple[int, int, int]


# ---- margins of tests on tables
# --------------------------------------------------------------------------------------------------


def _codes(*blocks: tuple[int, Record]) -> np.ndarray:
    return np.concatenate([np.tile(record, (count, 1)) for count, record in blocks])


def _discrete(codes: np.ndarray, levels: Sequence[int]) -> jaxcd.Dataset:
    domain = jaxcd.Domain({f"c{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(levels)})
    return jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=domain)


def _margin(test: CITest, codes: np.ndarray, levels: Record) -> float:
    query = Query(0, 1, (2,) if levels[2] > 1 else ())
    return float(
        Queue(test.prepare(_discrete(codes, levels)), alpha=_ALPHA).evaluate([query]).margin[0]
    )


def _bound(test: CITest, n: int) -> float:
    stated = test.margin_sensitivity(alpha=_ALPHA, n_samples=n, relation=Relation.REPLACE_ONE)
    assert stated is not None
    return stated.value


def _two_tables(size: int) -> tuple[np.ndarray, Record, Record]:
    """Even 2 x 2 tables of which the record leaves one and enters the other: the norm moves towards
    2 sqrt 2.
    """
    b = round(size**0.72)
    t = round(b * b / size)
    blocks = [
        (1, (1, 1, 1)),
        (size - t, (0, 0, 0)),
        (t, (1, 1, 0)),
        (size - 2 * b - 1, (0, 0, 1)),
        (b, (1, 0, 1)),
        (b, (0, 1, 1)),
    ]
    return _codes(*blocks), (1, 1, 0), (2, 2, 2)  # type: ignore[arg-type]


def _pooled(size: int) -> tuple[np.ndarray, Record, Record]:
    """A record leaves (1, 0) in a stratum of (0, 1) and enters (1, 1) in a stratum of (0, 0): both
    push the same way, towards 4.
    """
    return (
        _codes(
            (1, (1, 0, 1)),
            (size, (0, 1, 1)),
            (size, (0, 0, 0)),
            (max(10, round(size**0.3)), (1, 1, 0)),
        ),
        (1, 1, 0),
        (2, 2, 2),
    )


def _all_tied(size: int) -> tuple[np.ndarray, Record, Record]:
    """All tied at (1, 1) but one at (0, 0); the record goes from (2, 2) to (2, 0): towards 2."""
    return _codes((1, (2, 2, 0)), (1, (0, 0, 0)), (size - 2, (1, 1, 0))), (2, 0, 0), (3, 3, 1)


def _margins(quick: bool) -> Iterator[Finding]:
    families: tuple[tuple[CITest, Callable[[int], Any], int, float], ...] = (
        (jaxcd.CovarianceNorm(), _two_tables, 20_000 if quick else 200_000, 0.8),
        (jaxcd.PooledCovariance(), _pooled, 5_000 if quick else 100_000, 0.8),
        (jaxcd.KendallTau(), _all_tied, 2_000 if quick else 20_000, 0.9),
        (jaxcd.Spearman(), _all_tied, 2_000 if quick else 20_000, 0.8),
    )
    for test, family, size, least in families:
        codes, record, levels = family(size)
        other = codes.copy()
        other[0] = record
        found = abs(_margin(test, codes, levels) - _margin(test, other, levels))
        yield Finding.of(
            "margin", test.name, claimed=_bound(test, len(codes)), found=found, least=least
        )
    for test, statistic_moves in (
        (jaxcd.CovarianceNorm(), 2 * math.sqrt(2)),
        (jaxcd.PooledCovariance(), 4.0),
    ):
        yield _threshold(test, _bound(test, 100) - statistic_moves, 60 if quick else 600)


def _threshold(test: CITest, claimed: float, trials: int) -> Finding:
    """What the critical value adds: the statistic less the margin, on random neighbours, nearly
    constant ones among them.
    """
    rng, worst, levels = np.random.default_rng(11), 0.0, (3, 3, 2)
    for _ in range(trials):
        n = int(10 ** rng.uniform(0.7, 3.7))
        codes = np.stack(
            np.unravel_index(
                rng.choice(18, n, p=rng.dirichlet(np.full(18, rng.choice([0.05, 2.0])))), levels
            ),
            axis=-1,
        )
        other = codes.copy()
        other[0] = [rng.integers(k) for k in levels]
        found = [
            Queue(test.prepare(_discrete(part, levels)), alpha=_ALPHA).evaluate([Query(0, 1, (2,))])
            for part in (codes, other)
        ]
        thresholds = [float(each.statistic[0] - each.margin[0]) for each in found]
        worst = max(worst, abs(thresholds[0] - thresholds[1]))
    return Finding.of("critical value", test.name, claimed=claimed, found=worst)


def _stratified_ranks(quick: bool) -> Iterator[Finding]:
    """The maps are public: any codes may stand in any stratum; the family of the pooled covariance,
    and random data.
    """
    test, worst, claimed, trials = (
        jaxcd.StratifiedRanks(strata=(2, 2), effect=0.0),
        0.0,
        math.inf,
        20 if quick else 200,
    )
    rng = np.random.default_rng(5)
    for trial in range(trials):
        if trial == 0:
            codes, record, _ = _pooled(5_000)
            ranks = [np.array([0.1, 0.9])[codes[:, j]] for j in range(3)]
            changed = [(0.1, 0.9)[k] for k in record]
            place = 0
        else:
            n = int(rng.integers(20, 400))
            ranks = [
                np.round(rng.beta(rng.uniform(0.05, 1), rng.uniform(0.05, 1), size=n), 2)
                for _ in range(3)
            ]
            changed, place = list(rng.choice([0.0, 0.3, 0.6, 0.99], 3)), int(rng.integers(n))
        other = [rank.copy() for rank in ranks]
        for rank, value in zip(other, changed, strict=True):
            rank[place] = value
        query = Query.of(0, 1, (2,))
        margins = [
            Queue(test._prepared(each), alpha=_ALPHA).evaluate([query]).margin[0]
            for each in (ranks, other)
        ]
        claimed = min(claimed, _bound(test, len(ranks[0])))
        worst = max(worst, abs(float(margins[0] - margins[1])))
    yield Finding.of("margin", test.name, claimed=claimed, found=worst, least=0.8)


def _numeric(columns: np.ndarray) -> jaxcd.Dataset:
    names = [f"x{j}" for j in range(columns.shape[1])]
    return jaxcd.Dataset.from_array(
        columns, names=names, domain=jaxcd.Domain({name: jaxcd.Numeric(-1, 1) for name in names})
    )


def _turning(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A record leaves a cell whose rows agree in order, while it disagrees with all, and enters one
    where it is the other way round.  With two columns of Z all but 20 rows of both lie in the fine
    cell beside, where everything is the other way round once more.
    """
    rows, first = np.empty((n, 2 + k)), np.arange(n) < 3 * n // 4
    place = np.arange(n) / n
    rows[:, 0] = place
    rows[:, 2:] = np.where(first, -0.99, 0.99)[:, None]
    near = np.full(n, True)
    if k == 2:
        near[21 : 3 * n // 4] = near[3 * n // 4 + 20 :] = False
        rows[~near, 2] *= 0.75
    agree = first == near
    rows[:, 1] = np.where(agree, 0.4 * place - 0.4, -0.55 - 0.4 * place)
    rows[0, :2] = 1, -0.5
    other = rows.copy()
    other[0, 2:] = 0.99
    return rows, other


def _stratified_tau(quick: bool) -> Iterator[Finding]:
    """The pair of :func:`_turning`, and random ones."""
    test, rng = jaxcd.StratifiedTau(), np.random.default_rng(11)
    for k in (1, 2):
        worst, query = 0.0, Query.of(0, 1, range(2, 2 + k))
        for trial in range(10 if quick else 200):
            rows, other = _turning(800, k)
            if trial:
                rows = np.round(rng.uniform(-1, 1, (60, 2 + k)), int(rng.integers(0, 3)))
                other = rows.copy()
                other[0] = rng.choice([-1.0, 0.0, 1.0], 2 + k)
            margins = [
                test.prepare(_numeric(each)).evaluate(query.given, [query], alpha=_ALPHA).margin
                for each in (rows, other)
            ]
            worst = max(worst, abs(float(margins[0][0] - margins[1][0])))
        yield Finding.of(
            "margin", f"{test.name}, {k}", claimed=_bound(test, 800), found=worst, least=0.8
        )


def _kernel_margin(quick: bool) -> Iterator[Finding]:
    import jax

    test, worst, rng = (
        jaxcd.BoundedRCIT(n_features=20, n_permutations=19),
        0.0,
        np.random.default_rng(7),
    )
    for trial in range(8 if quick else 60):
        n = 24
        columns = rng.choice([-1.0, 0.0, 1.0], (n, 3)) if trial % 2 else rng.uniform(-1, 1, (n, 3))
        if trial % 3 == 0:
            columns[:, 1] = columns[:, 0]
        other = columns.copy()
        other[0] = rng.choice([-1.0, 1.0], 3)
        queries = [Query.of(0, 1, ()), Query.of(0, 1, (2,))]
        margins = [
            Queue(test.prepare(_numeric(each), key=jax.random.key(trial)), alpha=_ALPHA)
            .evaluate(queries)
            .margin
            for each in (columns, other)
        ]
        worst = max(worst, float(np.abs(margins[0] - margins[1]).max()))
    yield Finding.of("margin", test.name, claimed=_bound(test, 24), found=worst)


def _kernel_formula(quick: bool) -> Iterator[Finding]:
    """m q moves by 4 + sqrt 6, and by 2 e / bandwidth for the residuals of each column (PRIVACY.md
    E3, E4).
    """
    test = jaxcd.BoundedRCIT()
    w = min(1 / math.sqrt(2 * test.penalty), test.norm_bound)
    # Two points of length 1 and w on a limacon: the farthest that the ridge solution is pulled, 2
    # max (1 + w cos t) sin t.
    angles = np.linspace(0, math.pi, 1_000_001)
    shift = (
        2 * float(((1 + w * np.cos(angles)) * np.sin(angles)).max()) / math.sqrt(2 * test.penalty)
    )
    formula = 4 + math.sqrt(6) + 4 * shift / test.bandwidth
    stated = test.record_sensitivity(conditional=True, n_samples=1_000)
    bare = test.record_sensitivity(conditional=False, n_samples=1_000)
    worst = max(
        formula / stated,
        (4 + math.sqrt(6)) / bare,
        shift / residual_shift(test.penalty, test.norm_bound) / (1 + 1e-9),
    )
    yield Finding.of(
        "formula", "BoundedRCIT: unit of its margin", claimed=1.0, found=worst, least=0.99
    )


def _bandwidths(quick: bool) -> Iterator[Finding]:
    """All values alike; one goes to the other end: the mean of the kernel falls by nearly 2 / n, so
    the utility moves by 2 records.
    """
    n, choice = 400, jaxcd.citests.BoughtBandwidths()
    column = np.full(n, -1.0)
    other = column.copy()
    other[0] = 1.0
    moved = np.abs(
        scale_utilities(column, choice, bandwidth=0.3)
        - scale_utilities(other, choice, bandwidth=0.3)
    ).max()
    rows = _charged(
        lambda accountant: buy_scales([column], ["x"], choice, accountant, bandwidth=0.3)
    )
    yield Finding.of(
        "utility",
        choice.__class__.__name__,
        claimed=float(rows[0]["sensitivity"]),
        found=float(moved),
        least=0.95,
    )


def _accountant(tap: Tapping) -> Accountant:
    return Accountant(Ledger(jaxcd.Budget(4.0, 1e-3)), Drawing(tap, 0))


def _charged(buy: Callable[[Accountant], Any]) -> list[Any]:
    """The ledger's rows after a purchase."""
    with tapping() as tap:
        accountant = _accountant(tap)
        buy(accountant)
    return accountant.ledger.to_table()


def _rank_maps(quick: bool) -> Iterator[Finding]:
    """A record at one end of all columns goes to the other: every level of every map moves."""
    n, p, levels = 50, 2, 5
    here, there = np.zeros((p, n)), np.zeros((p, n))
    here[:, 0], there[:, 0] = -1e6, 1e6
    seen: list[np.ndarray] = []
    with tapping() as tap:
        for columns in (here, there):
            accountant = _accountant(tap)
            release_rank_maps(list(columns), accountant, rho=0.1, log_range=12.0, n_levels=levels)
            seen.append(tap.last.ravel() * VECTOR_GRID)
    claimed = float(str(accountant.ledger.to_table()[0]["sensitivity"]))
    yield from _codes_of_others()
    yield Finding.of(
        "differences",
        "rank maps",
        claimed=claimed,
        found=float(np.linalg.norm(seen[0] - seen[1])),
        least=0.5,
    )


def _codes_of_others() -> Iterator[Finding]:
    """With the same map, replacing a record leaves all others where they were: the statistics see
    the data through the map alone.
    """
    here = np.random.default_rng(0).normal(size=(60, 2))
    there = here.copy()
    here[0], there[0] = -1e6, 1e6
    domain = jaxcd.Domain({"a": jaxcd.Numeric(), "b": jaxcd.Numeric()})
    ranks, budget, tables = jaxcd.StratifiedRanks(map_levels=5), jaxcd.Budget(4.0, 1e-3), []
    with tapping() as tap:
        first = tap.tape
        for columns in (here, there):
            data = jaxcd.Dataset.from_array(columns, domain=domain)
            noise = Drawing(tap, 0) if columns is here else Replaying(tap, first, shift=0)
            prepared = ranks.prepare_privately(data, Accountant(Ledger(budget), noise))
            tables.append(prepared.view_counts([(0, 1)])[0])
    changed = int(np.abs(tables[0] - tables[1]).sum()) // 2
    yield Finding.of(
        "records that move", "StratifiedRanks", claimed=1.0, found=float(changed), least=0.5
    )


def _openings(quick: bool) -> Iterator[Finding]:
    """Half a difference of two margins, and a projection, of the family that moves a pooled
    covariance by nearly 4.
    """
    codes, record, levels = _pooled(5_000)
    other = codes.copy()
    other[0] = record
    test, query = jaxcd.PooledCovariance(), Query(0, 1, (2,))
    claimed = math.inf
    for name in ("projection", "half a difference"):
        seen = []
        with tapping() as tap:
            for rows in (codes, other):
                session = Session(
                    Door(_discrete(rows, levels), jaxcd.Budget(4.0, 1e-3)), test, alpha=_ALPHA
                )
                accountant = _accountant(tap)
                session.open(accountant)
                sign = np.array([[1.0, -1.0], [-1.0, 1.0]]) / 2
                margins = session.margins([query])
                pairs = [(margins, margins.map(np.negative))] if name != "projection" else []
                openings(
                    session,
                    accountant,
                    pairs,
                    [(query, sign)] if name == "projection" else [],
                    rho=0.1,
                    label="orient",
                )
                seen.append(tap.last.ravel() * VECTOR_GRID)
        claimed = float(str(accountant.ledger.to_table()[-1]["sensitivity"]))
        yield Finding.of(
            "orient",
            name,
            claimed=claimed,
            found=float(np.linalg.norm(seen[0] - seen[1])),
            least=0.8,
        )


# ---- scores of pairs of columns
# --------------------------------------------------------------------------------------------------


def _scores_of_pairs(quick: bool) -> Iterator[Finding]:
    # One record against a concordant row of all others turns from the top to the bottom: each
    # product of ranks turns.
    for score, stated in (
        (SpearmanScore(), spearman_rho_sensitivity),
        (KendallScore(), lambda m: KendallScore().test_sensitivity(m)),
    ):
        best = 0.0
        for m in (5, 12, 40):
            x = np.arange(m, dtype=float)
            for y in (x, np.append(x[m // 2 :], x[: m // 2])):
                base = np.delete(np.column_stack([x, y]), -1, axis=0)
                values = []
                for record in itertools.product((-1.0, m / 2 + 0.5, m + 1.0), repeat=2):
                    columns = np.vstack([base, record])
                    values.append(score.value(columns[:, 0], columns[:, 1]))
                best = max(best, (max(values) - min(values)) / stated(m))
        yield Finding.of("score", score.name, claimed=1.0, found=best, least=0.4)
    best, kernel = 0.0, series(reach=1.0, bandwidth=0.05)
    for m, share in itertools.product((8, 40), (0.1, 1 / 3, 0.5)):
        k = max(1, round(share * m))
        # Three far points: the record joins two clusters at once, or leaves both.
        u = np.where(np.arange(m) < k, -1.0, 1.0)
        v = np.where(np.arange(m) < 2 * k, 0.0, 1.0)
        values = []
        for record in itertools.product((-1.0, 0.0, 1.0), repeat=2):
            a, b = u.copy(), v.copy()
            a[-1], b[-1] = record
            values.append(
                float(
                    hsic_pairs(
                        a[None],
                        b[None],
                        np.ones((1, m), bool),
                        series_u=[kernel],
                        series_v=[kernel],
                    )[0, ...].ravel()[0]
                )
            )
        best = max(best, (max(values) - min(values)) / hsic_record_sensitivity(m))
    yield Finding.of("score", "HSIC, one record", claimed=1.0, found=best, least=0.4)
    m = 40
    formula = math.sqrt(6) * (m - 1) / m**2
    yield Finding.of(
        "formula", "HSIC, one record", claimed=hsic_record_sensitivity(m), found=formula, least=0.99
    )
    plan = Plan(80, 40, 40, False, jaxcd.pairwise.Protect.TRAIN, 0.3, 1.0)
    w = min(1.0, 1 / math.sqrt(0.6))
    angles = np.linspace(0, math.pi, 1_000_001)
    limacon = 2 * float(((1 + w * np.cos(angles)) * np.sin(angles)).max())
    yield Finding.of(
        "formula",
        "predictions: farthest move",
        claimed=plan.sup_shift,
        found=min(2 * limacon / (0.3 * 40), 2.0),
        least=0.99,
    )
    rms = min(limacon / math.sqrt(0.6) / 40, 2.0)
    yield Finding.of(
        "formula", "predictions: root mean square", claimed=plan.rms_shift, found=rms, least=0.99
    )


def _stable_distance(quick: bool) -> Iterator[Finding]:
    """The distance to an unstable data set: 0 where one record can close the gap, and at most one
    more for each 2 shifts.
    """
    shift, worst = 0.01, 0.0

    def distance(gap: float) -> int:
        zero = np.zeros(2)
        column = DirectionColumns(zero, zero, np.array([0.0, gap]), None, None, 1.0)
        return anm_release.stable_distance((column, column), shift)

    for steps in np.arange(0.1, 12, 0.3):
        worst = max(
            worst,
            distance((steps + 2) * shift) - distance(steps * shift),
            float(2 * distance(min(steps, 2.0) * shift)),
        )
    yield Finding.of("distance", "stable order of residuals", claimed=1.0, found=worst, least=0.99)


def _flip_distance(quick: bool) -> Iterator[Finding]:
    """Twice the number of records to turn the answer over, when one record of the columns is
    replaced: at most 2.
    """
    rng, worst = np.random.default_rng(3), 0
    for _ in range(40 if quick else 400):
        n = 9
        columns = rng.choice([-1.0, -0.3, 0.2, 0.9, 1.0], (4, n))
        other = columns.copy()
        other[:, int(rng.integers(n))] = rng.choice([-1.0, 1.0], 4)
        found = []
        for here in (columns, other):
            a, b, c, d = (QuartileRange(column, Reach.VALUES, 0.0) for column in here)
            found.append(flip_distance((a, b), (c, d)))
        worst = max(worst, abs(found[0] - found[1]))
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, 40)
    y = np.clip(x**3 + rng.normal(scale=0.2, size=40), -1, 1)
    score = jaxcd.pairwise.LogIQRScore()
    result = jaxcd.anm(
        x,
        y,
        budget=jaxcd.Budget(1.0),
        noise=jaxcd.SimulatedNoise(_key()),
        key=_key(),
        bounds=((-1, 1), (-1, 1)),
        score=score,
    )
    claimed = float(str(result.certificate()["ledger"][0]["sensitivity"]))
    yield Finding.of("distance", "flip distance", claimed=claimed, found=float(worst), least=0.5)


def _key() -> Any:
    import jax

    return jax.random.key(0)


# ---- channels
# --------------------------------------------------------------------------------------------------


def _channels(quick: bool) -> Iterator[Finding]:
    """All pairs of records and all reports, from nothing but the channel."""
    domain = jaxcd.Domain({f"c{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate((3, 4))})
    mechanisms = (
        KaryResponse(1.5),
        CombinedKaryResponse(1.5),
        BoundedGeometric(0.4),
        ClippedGeometric(0.7),
        CombinedGeometric(0.2, Distance.MANHATTAN),
    )
    for mechanism in mechanisms:
        matrix = np.asarray(joint_channel(mechanism, domain))
        losses = np.log(matrix[:, None, :] / matrix[None, :, :]).max(axis=2)
        claimed = mechanism.guarantee(domain)
        places = np.array(list(itertools.product(range(3), range(4))))
        far = np.abs(places[:, None] - places).sum(axis=2)
        per_unit = float((losses / np.where(far > 0, far, np.inf)).max())
        name = type(mechanism).__name__
        yield Finding.of(
            "epsilon of a record",
            name,
            claimed=claimed.epsilon_ldp,
            found=float(losses.max()),
            least=0.999,
        )
        yield Finding.of("d-privacy", name, claimed=claimed.d_privacy, found=per_unit, least=0.999)


CONSTANTS: Checks = {
    "constants: margins on tables": _margins,
    "constants: stratified ranks": _stratified_ranks,
    "constants: stratified tau": _stratified_tau,
    "constants: kernel margin": _kernel_margin,
    "constants: kernel formula": _kernel_formula,
    "constants: bandwidths": _bandwidths,
    "constants: rank maps": _rank_maps,
    "constants: openings": _openings,
    "constants: scores of pairs": _scores_of_pairs,
    "constants: stable order": _stable_distance,
    "constants: flip distance": _flip_distance,
    "constants: channels": _channels,
}
"""The checks of this file by name; the argument says whether to be quick."""
