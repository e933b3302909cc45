"""Several choices at one charge: the law of the draws, their order, the price, the rows of ledgers
and certificates, refusals.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import jaxcd
from jaxcd.errors import BudgetExhausted, FormatError, OptionError, SensitivityError
from jaxcd.privacy import (
    NO_PRIVACY,
    Accountant,
    Accounting,
    Budget,
    ExponentialMechanismEvent,
    Ledger,
    LedgerFile,
    OneDraw,
    PureEvent,
    SecureNoise,
    select_max,
    select_top,
)
from jaxcd.privacy.certificate import certificate_digest
from jaxcd.privacy.noise import NoiseSampler
from jaxcd.privacy.sensitive import Sensitive
from tests.helpers import Quick, independent, simulated

SCORES = np.array([0.0, 3.0, 1.0, 2.5])
N_DRAWS = 600


def room(noise: Any, budget: Budget | None = None) -> Accountant:
    return Accountant(Ledger(budget or Budget(1e6, 1e-6)), noise)


def law(weights: np.ndarray, size: int) -> dict[tuple[int, ...], float]:
    """Plackett and Luce: each in proportion to its weight among those that are left."""
    found = {}
    for order in itertools.permutations(range(len(weights)), size):
        left, probability = float(weights.sum()), 1.0
        for i in order:
            probability *= weights[i] / left
            left -= weights[i]
        found[order] = probability
    return found


def fits(draws: list[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> bool:
    """Chi-square of the ordered draws against their law."""
    assert set(draws) <= set(expected)
    observed = [draws.count(order) for order in expected]
    return stats.chisquare(observed, len(draws) * np.array(list(expected.values()))).pvalue > 1e-5


class OneAtATime(NoiseSampler):
    """A sampler from before there were several choices: the base class draws them one by one."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.seen: list[int] = []

    @property
    def secure(self) -> bool:
        return False

    def gumbel_max(self, scores: np.ndarray, scale: float, *, index: int) -> int:
        self.seen.append(len(scores))
        return int(np.argmax(scores / scale + self._rng.gumbel(size=len(scores))))

    discrete_laplace = discrete_gaussian = geometric = subset = None  # type: ignore[assignment]


OneAtATime.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]

SAMPLERS: dict[str, Any] = {
    "secure": lambda: SecureNoise(),
    "simulated": lambda: simulated(5),
    "one draw": lambda: OneDraw(SecureNoise(), lambda words: words),
    "one draw of simulated noise": lambda: OneDraw(simulated(6), lambda words: words),
    "base class": lambda: OneAtATime(7),
    "quick": lambda: Quick(8),
}


# ---- the law


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_law_of_ordered_draws(name: str):
    accountant = room(SAMPLERS[name](), Budget(1e9, 1e-6))
    draws = [
        tuple(select_top(accountant, SCORES, size=2, sensitivity=1.5, epsilon=2.0, label="x"))
        for _ in range(N_DRAWS)
    ]
    assert fits(draws, law(np.exp(2.0 * SCORES / (2 * 1.5)), 2))


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("size", [1, 3])
def test_samplers_draw_on_integers(name: str, size: int):
    """One choice has the law of ``gumbel_max``; as many as there are scores are an order of all."""
    source = SAMPLERS[name]()
    sampler = source if isinstance(source, NoiseSampler) else source.start()
    scores, scale = np.array([-4, 3, 1], dtype=np.int64), 5.0
    draws = [tuple(sampler.gumbel_top(scores, scale, size, index=0)) for _ in range(N_DRAWS // 2)]
    assert fits(draws, law(np.exp(scores / scale), size))
    far = np.array([2**60, -(2**61), 2**61, 0], dtype=np.int64)
    assert list(sampler.gumbel_top(far, 1.0, 4, index=1)) == [2, 0, 3, 1]
    assert far.tolist() == [2**60, -(2**61), 2**61, 0]  # the caller's scores are left alone


@pytest.mark.parametrize("name", SAMPLERS)
def test_what_is_drawn_is_an_ordered_choice_without_repeats(name: str):
    accountant = room(SAMPLERS[name](), Budget(1e9, 1e-6))
    scores = np.repeat([0.0, 1.0, 1e4], 20)
    found = select_top(accountant, scores, size=50, sensitivity=1.0, epsilon=1.0, label="x")
    assert type(found) is list and all(type(i) is int for i in found)
    assert len(set(found)) == 50 and set(found) <= set(range(60))
    assert set(found[:20]) == set(range(40, 60))


def test_the_base_class_draws_among_what_is_left():
    noise = OneAtATime(0)
    select_top(room(noise), np.arange(6.0), size=4, sensitivity=1.0, epsilon=1.0, label="x")
    assert noise.seen == [6, 5, 4, 3]


def test_processes_that_share_one_draw_choose_alike():
    words: list[np.ndarray] = []

    def first(told: np.ndarray) -> np.ndarray:
        words.append(told)
        return told

    def second(told: np.ndarray) -> np.ndarray:
        heard = words.pop(0)
        assert heard.shape == told.shape and heard.dtype == told.dtype == np.int64
        return heard

    found = [
        select_top(
            room(OneDraw(SecureNoise(), tell)),
            np.zeros(200),
            size=20,
            sensitivity=1.0,
            epsilon=1.0,
            label="x",
        )
        for tell in (first, second)
    ]
    assert found[0] == found[1] and len(set(found[0])) == 20 and words == []


def test_simulated_draws_repeat_and_secure_ones_do_not():
    def drawn(noise: Any) -> list[int]:
        return select_top(
            room(noise), np.zeros(300), size=30, sensitivity=1.0, epsilon=1.0, label="x"
        )

    assert drawn(simulated(1)) == drawn(simulated(1)) != drawn(simulated(2))
    assert drawn(SecureNoise()) != drawn(SecureNoise())


# ---- the price


class Scales(Quick):
    """Notes the scale and the scores that it is asked with."""

    def __init__(self) -> None:
        super().__init__(0)
        self.asked: list[tuple[float, list[int]]] = []

    def gumbel_max(self, scores: np.ndarray, scale: float, *, index: int) -> int:
        self.asked.append((scale, list(scores)))
        return int(np.argmax(scores))

    def gumbel_top(self, scores: np.ndarray, scale: float, size: int, *, index: int) -> list[int]:
        self.asked.append((scale, list(scores)))
        return np.argsort(-scores)[:size].tolist()


@given(
    sensitivity=st.floats(1e-3, 1e3),
    epsilon=st.floats(1e-3, 5.0),
    pad=st.floats(0.0, 1.0),
    power=st.integers(-30, -8),
    size=st.integers(1, 5),
)
def test_each_choice_has_the_noise_of_one(
    sensitivity: float, epsilon: float, pad: float, power: int, size: int
):
    options = {
        "sensitivity": sensitivity,
        "epsilon": epsilon,
        "pad": pad,
        "grid": 2.0**power,
        "label": "x",
    }
    one, several = Scales(), Scales()
    scores = np.random.default_rng(size).normal(size=7) * sensitivity
    accountant = room(several)
    assert select_max(room(one), scores, **options) == int(
        np.argmax(np.round(scores * 2.0**-power))
    )
    select_top(accountant, scores, size=size, **options)
    assert several.asked == one.asked
    scale = several.asked[0][0] * 2.0**power
    assert Fraction(scale) * Fraction(epsilon) >= 2 * Fraction(sensitivity)
    (entry,) = accountant.ledger.entries
    assert entry.event.n_choices == size and Fraction(entry.event.epsilon) >= size * Fraction(
        epsilon
    )
    assert entry.event.epsilon == pytest.approx(size * epsilon, rel=1e-12)


@given(epsilon=st.floats(1e-6, 20.0), k=st.integers(1, 1000))
def test_k_choices_cost_k_times_one_and_never_less(epsilon: float, k: int):
    one = ExponentialMechanismEvent(epsilon)
    total = (
        float(np.nextafter(k * epsilon, np.inf))
        if Fraction(k * epsilon) < k * Fraction(epsilon)
        else k * epsilon
    )
    several = ExponentialMechanismEvent(total, n_choices=k)
    assert Fraction(several.rho) >= k * (Fraction(total) / k) ** 2 / 8
    assert several.rho == pytest.approx(k * epsilon**2 / 8, rel=1e-12)
    assert Fraction(several.gdp_rho) >= k * Fraction(one.gdp_rho) * (1 - Fraction(1, 2**44))
    assert several.gdp_rho == pytest.approx(k * one.gdp_rho, rel=1e-6)
    if k == 1:
        assert (several.rho, several.gdp_rho) == (one.rho, one.gdp_rho) and several == one
    else:
        assert several.rho < ExponentialMechanismEvent(total).rho


def test_ordered_draws_keep_both_promises():
    """Renyi divergences and hockey sticks of the exact law of ordered draws, worst neighbours of 4
    scores, 2 and 3 choices: below rho of zCDP and below the curve of GDP, and near to both.
    """
    epsilon, tightest, widest = 1.3, [0.0, 0.0], 0.0
    for size in (2, 3):
        event = ExponentialMechanismEvent(size * epsilon, n_choices=size)
        mu = math.sqrt(2 * event.gdp_rho)
        for base in ((0, 0, 0, 0), (0, 2, 5, 5), (4, 4, 0, 0), (0, 6, 12, 18)):
            for shift in itertools.product((-1.0, 1.0), repeat=4):
                p, q = (
                    np.array(list(law(np.exp(epsilon * np.array(v) / 2), size).values()))
                    for v in (base, np.array(base) + np.array(shift))
                )
                ratios = np.log(p / q)
                assert np.abs(ratios).max() <= event.epsilon + 1e-12
                widest = max(widest, np.ptp(ratios) / event.epsilon)
                for order in (1.001, 2.0, 8.0):
                    divergence = math.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
                    assert divergence <= event.rho * order + 1e-12
                    tightest[0] = max(tightest[0], divergence / (event.rho * order))
                for t in np.linspace(-3.0, 3.0, 13):
                    stick = np.maximum(p - math.exp(t) * q, 0.0).sum()
                    bound = stats.norm.cdf(mu / 2 - t / mu) - math.exp(t) * stats.norm.cdf(
                        -mu / 2 - t / mu
                    )
                    assert stick <= bound + 1e-12
                    tightest[1] = max(tightest[1], stick / bound if stick > 1e-3 else 0.0)
    assert min(tightest) > 0.6
    assert widest > 1.1  # several are not one mechanism of the range that their epsilons add up to


def test_the_filter_refuses_what_one_choice_more_would_break():
    for accounting in Accounting:
        budget = Budget(1.0, 1e-6, accounting=accounting)
        accountant, size = room(Quick(0), budget), 0
        with pytest.raises(BudgetExhausted):
            while True:
                select_top(
                    accountant, np.zeros(9), size=7, sensitivity=1.0, epsilon=0.05, label="x"
                )
                size += 7
        single = room(Quick(0), budget)
        for _ in range(size):
            select_max(single, np.zeros(9), sensitivity=1.0, epsilon=0.05, label="x")
        assert single.ledger.spent.epsilon == pytest.approx(accountant.ledger.spent.epsilon, 1e-9)
        assert accountant.ledger.spent.epsilon <= 1.0 and size > 20


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", None, math.nan, math.inf])
def test_a_number_of_choices_is_a_positive_integer(wrong: Any):
    with pytest.raises(OptionError, match="n_choices"):
        ExponentialMechanismEvent(1.0, n_choices=wrong)


# ---- the charge


def test_the_charge_comes_before_the_draw():
    noise = Scales()
    accountant = room(noise, Budget(0.4, 1e-9))
    with pytest.raises(BudgetExhausted):
        select_top(accountant, SCORES, size=4, sensitivity=1.0, epsilon=0.5, label="x")
    assert noise.asked == [] and accountant.ledger.entries == () and accountant.ledger.exhausted


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        (OptionError, "size", {"size": 0}),
        (OptionError, "size", {"size": -1}),
        (OptionError, "size", {"size": 5}),
        (OptionError, "size", {"size": 2.5}),
        (OptionError, "size", {"size": None}),
        (OptionError, "epsilon", {"epsilon": 0.0}),
        (OptionError, "epsilon", {"epsilon": -1.0}),
        (OptionError, "epsilon", {"epsilon": math.nan}),
        (OptionError, "sensitivity", {"sensitivity": 0.0}),
        (OptionError, "sensitivity", {"sensitivity": math.inf}),
        (OptionError, "pad", {"pad": -1.0}),
        (OptionError, "grid", {"grid": 0.3}),
        (OptionError, "scores", {"scores": np.zeros((2, 2))}),
        (OptionError, "scores", {"scores": 1.0}),
        (SensitivityError, "NaN", {"scores": [1.0, math.nan, 2.0, 3.0]}),
        (SensitivityError, "NaN", {"scores": [math.nan] * 4}),
    ],
)
def test_what_is_wrong_is_refused_with_nothing_charged(error: Any, match: str, options: Any):
    noise = Scales()
    accountant = room(noise)
    usual = {"scores": SCORES, "size": 2, "sensitivity": 1.0, "epsilon": 0.5, "label": "x"}
    call = {**usual, **options}
    with pytest.raises(error, match=match):
        select_top(accountant, call.pop("scores"), **call)
    assert noise.asked == [] and accountant.ledger.entries == ()


def test_words_of_a_refusal_do_not_depend_on_the_scores():
    said = set()
    for scores in ([math.nan, 1.0, 2.0], [5.0, 7.0, math.nan], [math.nan] * 3):
        with pytest.raises(SensitivityError) as caught:
            select_top(room(Quick(0)), scores, size=2, sensitivity=1.0, epsilon=0.5, label="x")
        said.add(str(caught.value))
    assert len(said) == 1


def test_sensitive_scores_are_taken_as_they_are():
    found = select_top(
        room(Scales()), Sensitive(SCORES), size=3, sensitivity=1.0, epsilon=0.5, label="x"
    )
    assert found == [1, 3, 2]


@pytest.mark.parametrize("noise", [None, "quick"])
def test_without_privacy_the_largest_come_in_order(noise: Any):
    accountant = Accountant(Ledger(NO_PRIVACY), Quick(0) if noise else None)
    scores = np.random.default_rng(0).permutation(50).astype(float)
    found = select_top(accountant, scores, size=50, sensitivity=1.0, epsilon=math.inf, label="x")
    assert found == np.argsort(-scores).tolist()
    with pytest.raises(BudgetExhausted):
        select_top(room(Quick(0)), scores, size=2, sensitivity=1.0, epsilon=math.inf, label="x")
    (entry,) = accountant.ledger.entries
    assert entry.event.n_choices == 50 and not accountant.guarantee.proven


# ---- rows


def test_rows_say_how_many_where_there_are_several():
    accountant = room(Quick(0))
    for size in (1, 3):
        select_top(accountant, SCORES, size=size, sensitivity=1.0, epsilon=0.5, label="x")
    accountant.charge(PureEvent(0.5, "y"))
    rows = accountant.ledger.to_table()
    assert [row.get("n_choices") for row in rows] == [None, 3, None]
    assert ["n_choices" in row for row in rows] == [False, True, False]
    assert [row["epsilon"] for row in rows] == [0.5, 1.5, 0.5]
    json.dumps(rows[1], allow_nan=False)


@pytest.mark.parametrize("accounting", Accounting)
def test_ledger_files_keep_them(accounting: Accounting, tmp_path: Path):
    budget = Budget(5.0, 1e-6, accounting=accounting)
    path = tmp_path / "people.ledger"
    total = LedgerFile(path, data_set="people", budget=budget)
    for size in (4, 1):
        select_top(
            Accountant(total, Quick(0)), SCORES, size=size, sensitivity=1.0, epsilon=0.2, label="x"
        )
    again = LedgerFile(path)
    assert again.spent == total.spent and again.remaining_rho == total.remaining_rho
    assert again.remaining_epsilon == total.remaining_epsilon
    rows = again.certificate()["ledger"]
    assert [row.get("n_choices", 1) for row in rows] == [4, 1]
    for _ in range(3):
        select_top(
            Accountant(again, Quick(0)), SCORES, size=4, sensitivity=1.0, epsilon=0.2, label="x"
        )
    single = Ledger(budget)
    for _ in range(17):
        select_max(Accountant(single, Quick(0)), SCORES, sensitivity=1.0, epsilon=0.2, label="x")
    assert LedgerFile(path).spent.epsilon == pytest.approx(single.spent.epsilon, rel=1e-9)
    assert jaxcd.verify(path).holds


# ---- certificates


@pytest.fixture(scope="module", params=list(Accounting), ids=str)
def certificate(request: pytest.FixtureRequest) -> dict[str, Any]:
    bought = jaxcd.release(
        independent(300, *(2,) * 8),
        jaxcd.Marginals(selected=24),
        budget=Budget(2.0, 1e-5, accounting=request.param),
        noise=simulated(),
    )
    return json.loads(json.dumps(bought.certificate(), allow_nan=False))


def several(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in content["ledger"] if row.get("n_choices", 1) > 1]


def failing(content: dict[str, Any]) -> set[str]:
    """The checks that a certificate fails whose digest fits; "format" where it cannot be read."""
    content["digest"] = certificate_digest(content)
    try:
        return {check.what for check in jaxcd.verify(content).checks if not check.holds}
    except FormatError:
        return {"format"}


def test_a_certificate_of_several_choices_holds(certificate: dict[str, Any]):
    assert several(certificate) and jaxcd.verify(certificate).holds
    assert failing(copy.deepcopy(certificate)) == set()


@pytest.mark.parametrize(
    "wrong",
    [
        1, -1, 0, 2.5, 1e300, 10**400, "3", None, True, [3], {}, "missing",
        lambda k: k - 1, lambda k: k + 1, lambda k: 10 * k, lambda k: -k, lambda k: k + 0.5,
        lambda k: k * (1 + 1e-6), lambda k: str(k),
    ],
)  # fmt: skip
def test_another_number_of_choices_is_found_out(certificate: dict[str, Any], wrong: Any):
    content = copy.deepcopy(certificate)
    row = several(content)[0]
    k = row.pop("n_choices")
    if wrong != "missing":
        row["n_choices"] = wrong(k) if callable(wrong) else wrong
    assert row.get("n_choices") != k
    assert failing(content) & {"format", f"event {row['index']}"}


@pytest.mark.parametrize("factor", [0.999, 0.5])
@pytest.mark.parametrize("entry", ["epsilon", "rho", "gdp_rho", "scales", "sensitivity"])
def test_another_price_of_several_choices_is_found_out(
    certificate: dict[str, Any], entry: str, factor: float
):
    (place, *_) = (i for i, r in enumerate(certificate["ledger"]) if r.get("n_choices", 1) > 1)
    content = copy.deepcopy(certificate)
    row = content["ledger"][place]
    if entry not in row:
        pytest.skip("of the other accounting")
    row[entry] = [factor * s for s in row[entry]] if entry == "scales" else factor * row[entry]
    if entry == "sensitivity":  # noise for more than was said: another price
        row[entry] = original = certificate["ledger"][place][entry] / factor
        assert original > certificate["ledger"][place][entry]
    found = failing(content)
    # a rho of the other accounting is checked as well
    assert found & {"format", f"event {row['index']}"}, entry


def test_fewer_choices_with_the_price_of_one_each_do_not_fit_the_noise(certificate: dict[str, Any]):
    """Epsilon of all shared by fewer: the noise would have to be smaller than it is."""
    content = copy.deepcopy(certificate)
    row = several(content)[0]
    k = row["n_choices"]
    cheaper = ExponentialMechanismEvent(row["epsilon"], n_choices=2 * k)
    row["n_choices"] = 2 * k
    for entry in ("rho", "gdp_rho"):
        if entry in row:
            row[entry] = getattr(cheaper, entry)
    assert f"event {row['index']}" in failing(content)


@pytest.mark.parametrize("value", [2, 7, 0, "x"])
def test_one_value_of_another_mechanism_is_no_choice(certificate: dict[str, Any], value: Any):
    """The number is of exponential mechanisms: elsewhere it changes no price."""
    content = copy.deepcopy(certificate)
    row = next(r for r in content["ledger"] if "Gaussian" in r["law"])
    before = jaxcd.verify(certificate)
    row["n_choices"] = value
    content["digest"] = certificate_digest(content)
    try:
        after = jaxcd.verify(content)
    except FormatError:
        return
    assert not after.holds or str(after).splitlines()[1:] == str(before).splitlines()[1:]
