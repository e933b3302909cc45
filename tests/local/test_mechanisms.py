from __future__ import annotations

import dataclasses
import json
import math
import sys
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from jaxcd.data import Binned, Dataset, Domain, Numeric, Ordinal, read_csv
from jaxcd.errors import DataError, DomainError, JaxcdError, OptionError, PrivacyError
from jaxcd.local import (
    BoundedGeometric,
    ClippedGeometric,
    CombinedGeometric,
    CombinedKaryResponse,
    Distance,
    KaryResponse,
    LocalMechanism,
    calibrate,
    channels,
    discretise,
    discretise_columns,
    joint_channel,
    pair_bins,
    privatize,
    randomise,
)
from jaxcd.local.base import ColumnwiseMechanism
from jaxcd.local.kary_response import kept
from jaxcd.local.uniforms import Table, Uniforms
from jaxcd.privacy import Budget, Ledger, SecureNoise
from tests.helpers import refused, simulated

BY_COLUMN = [
    KaryResponse(3.0),
    BoundedGeometric(0.55),
    BoundedGeometric((0.5, 0.3, 0.4, 0.9)),
    ClippedGeometric(0.7),
]


def ordinal(*cardinalities: int, declared: bool = True) -> Domain:
    return Domain(
        {f"x{i}": Ordinal(tuple(range(k))) for i, k in enumerate(cardinalities)}, declared=declared
    )


def every_cell(cardinalities, repeats: int) -> Dataset:
    cells = np.repeat(np.arange(math.prod(cardinalities)), repeats)
    return Dataset.from_codes(
        np.stack(np.unravel_index(cells, cardinalities), axis=1), domain=ordinal(*cardinalities)
    )


def goodness_of_fit(mechanism, cardinalities, *, repeats: int, noise) -> float:
    """p-value of the chi-square test of randomised records against the enumerated channel, over all
    true records.
    """
    probabilities = joint_channel(mechanism, ordinal(*cardinalities))
    out = randomise(every_cell(cardinalities, repeats), mechanism, noise=noise).codes
    reported = np.ravel_multi_index(tuple(out.T), cardinalities).reshape(
        len(probabilities), repeats
    )
    observed = np.stack([np.bincount(row, minlength=len(probabilities)) for row in reported])
    expected = probabilities * repeats
    keep = expected >= 5
    rest_observed, rest = (observed * ~keep).sum(1), (expected * ~keep).sum(1)
    statistic = ((observed - expected) ** 2 / expected)[keep].sum()
    pooled = rest >= 5  # cells too rare for a test of their own are tested together
    statistic += ((rest_observed - rest) ** 2 / np.where(pooled, rest, 1))[pooled].sum()
    return float(stats.chi2.sf(statistic, keep.sum() + pooled.sum() - len(probabilities)))


# Uniforms and tables
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [SecureNoise(), simulated(1)], ids=["secure", "simulated"])
def test_uniforms_are_uniform(noise):
    draws = Uniforms(noise).uniform(200_000)
    assert 0 < draws.min() and draws.max() < 1
    assert stats.kstest(draws, "uniform").pvalue > 1e-6
    small = draws[draws < 2.0**-8] * 2.0**8  # the small ones are as evenly spread as all
    assert stats.binomtest(small.size, draws.size, 2.0**-8).pvalue > 1e-6
    assert stats.kstest(small, "uniform").pvalue > 1e-6
    assert (np.mod(small * 2.0**45, 1.0) > 0).any()  # finer than a grid of 2**-53


def test_words_of_zeros_go_on_to_the_next_word(monkeypatch):
    uniforms = Uniforms(simulated())
    words = iter(
        [
            np.array([0, 4], np.uint64),
            np.array([2], np.uint64),
            np.array([2**63, 2**64 - 1], np.uint64),
        ]
    )
    monkeypatch.setattr(uniforms, "_words", lambda size: next(words))
    assert uniforms.uniform(2).tolist() == [1.5 * 2.0**-66, (2 - 2.0**-52) * 2.0**-3]


def test_tables_keep_the_relative_precision_of_small_probabilities(monkeypatch):
    table = Table(np.array([[0.5, 3e-40, 0.5, 0.0, 1e-40]]))
    uniforms = Uniforms(simulated())
    for u, outcome in [
        (0.99e-40, 4),
        (1.01e-40, 1),
        (3.99e-40, 1),
        (4.01e-40, 0),
        (0.49, 0),
        (0.51, 2),
        (1 - 2.0**-53, 2),
    ]:
        monkeypatch.setattr(uniforms, "uniform", lambda size, u=u: np.full(size, u))
        assert table.draw(np.zeros(1, np.int64), uniforms) == outcome


# Laws
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [*BY_COLUMN, CombinedKaryResponse(4.0)], ids=repr)
def test_samplers_follow_their_channels(mechanism):
    assert goodness_of_fit(mechanism, (2, 5, 3, 1), repeats=4_000, noise=simulated(2)) > 1e-4


@pytest.mark.parametrize(
    "mechanism", [KaryResponse(3.0), BoundedGeometric(0.6), CombinedKaryResponse(2.0)], ids=repr
)
def test_secure_draws_follow_the_channels_too(mechanism):
    assert goodness_of_fit(mechanism, (2, 4), repeats=4_000, noise=None) > 1e-6


def test_the_fit_would_see_another_channel():
    class Wrong(LocalMechanism):  # the channel of one epsilon, the draws of another
        is_combined = False
        check = staticmethod(KaryResponse(2.0).check)
        guarantee = staticmethod(KaryResponse(2.0).guarantee)
        attribute_channels = staticmethod(KaryResponse(2.0).attribute_channels)
        cell_channel = staticmethod(KaryResponse(2.0).cell_channel)
        randomised_codes = staticmethod(KaryResponse(2.4).randomised_codes)

    assert goodness_of_fit(Wrong(), (2, 4), repeats=4_000, noise=simulated(3)) < 1e-6


@pytest.mark.parametrize("mechanism", BY_COLUMN, ids=repr)
def test_channels_are_stochastic_matrices_and_their_product_is_the_joint_one(mechanism):
    domain = ordinal(2, 5, 3, 1)
    matrices = channels(mechanism, domain)
    assert [matrix.shape for matrix in matrices] == [(2, 2), (5, 5), (3, 3), (1, 1)]
    for matrix in matrices:
        assert (matrix > 0).all() and np.allclose(matrix.sum(axis=1), 1, atol=1e-14)
        assert not matrix.flags.writeable
    joint = joint_channel(mechanism, domain)
    x, y = (1, 3, 0, 0), (0, 4, 2, 0)
    expected = math.prod(matrix[a, b] for matrix, a, b in zip(matrices, x, y, strict=True))
    assert joint[
        np.ravel_multi_index(x, (2, 5, 3, 1)), np.ravel_multi_index(y, (2, 5, 3, 1))
    ] == pytest.approx(expected, rel=1e-13)


def test_channels_have_the_stated_forms():
    first, second = channels(KaryResponse(2.0), ordinal(2, 3))
    for matrix, k in ((first, 2), (second, 3)):
        weight = math.exp(2.0 * k / 5)
        assert np.allclose(
            matrix, (np.ones((k, k)) + (weight - 1) * np.eye(k)) / (weight + k - 1), rtol=1e-11
        )
    matrix = channels(BoundedGeometric(0.5), ordinal(5, 2))[0]
    assert np.allclose(np.diag(matrix), 0.5, rtol=1e-13)
    ratios = matrix[1, 2:] / matrix[1, 1:-1]  # one rate a row
    assert np.allclose(ratios, ratios[0], rtol=1e-12) and matrix[1, 0] == pytest.approx(
        matrix[1, 2], rel=1e-13
    )
    clipped = channels(ClippedGeometric(0.7), ordinal(4, 2))[0]
    noise = np.arange(-400, 401)
    q = math.exp(-0.7)
    for x in range(4):
        law = np.bincount(
            np.clip(x + noise, 0, 3), weights=(1 - q) / (1 + q) * q ** np.abs(noise), minlength=4
        )
        assert np.allclose(clipped[x], law, rtol=1e-11)


def test_constant_columns_stay_and_take_no_share_of_epsilon():
    data = every_cell((1, 2, 1), 50)
    out = randomise(data, KaryResponse(1.0), noise=simulated(4))
    assert (out.column("x0") == 0).all() and (out.column("x2") == 0).all()
    assert np.array_equal(
        channels(KaryResponse(1.0), ordinal(1, 2))[1], channels(KaryResponse(1.0), ordinal(2))[0]
    )
    for mechanism in (
        CombinedGeometric(0.5, Distance.MANHATTAN),
        CombinedKaryResponse(1.0),
        BoundedGeometric(0.2),
    ):
        constant = every_cell((1, 1), 3)
        assert np.array_equal(randomise(constant, mechanism).codes, constant.codes)


@pytest.mark.parametrize("n_values", [2, 3, 10, 10**11, 10**200])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0, 600.0, 5000.0])
def test_the_float_that_k_ary_response_uses_keeps_epsilon_exactly(epsilon, n_values):
    getcontext().prec = 80
    keep = Fraction(kept(epsilon, n_values))
    # whole numbers below k are uniform to far better than this
    least_lie = (1 - keep) * (1 - Fraction(1, 2**44)) / n_values
    ratio = 1 + keep / least_lie
    assert Decimal(ratio.numerator) / Decimal(ratio.denominator) <= Decimal(epsilon).exp()
    if epsilon < 20:  # and gives nothing away
        assert math.log1p(float(keep / least_lie)) == pytest.approx(epsilon, rel=1e-6)


# Randomness
# --------------------------------------------------------------------------------------------------


def test_keys_reproduce_and_the_default_does_not():
    data = every_cell((4, 5), 200)
    for mechanism in (KaryResponse(1.0), CombinedGeometric(0.2, Distance.EUCLIDEAN)):
        first, again = (randomise(data, mechanism, noise=simulated(5)).codes for _ in range(2))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, randomise(data, mechanism, noise=simulated(6)).codes)
        assert not np.array_equal(
            randomise(data, mechanism).codes, randomise(data, mechanism).codes
        )
    assert data.domain == randomise(data, KaryResponse(1.0)).domain


# Bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "1", None, True])
@pytest.mark.parametrize("kind", [KaryResponse, CombinedKaryResponse, ClippedGeometric])
def test_epsilon_out_of_range(kind, epsilon):
    refused(OptionError, r"epsilon must be positive and finite, got .*: give", kind, epsilon)


@pytest.mark.parametrize("p_max", [0.0, 1.0, 1.5, -0.1, math.nan, "half", None])
def test_p_max_out_of_range(p_max):
    for build in (
        BoundedGeometric,
        lambda p: BoundedGeometric((0.5, p)),
        lambda p: CombinedGeometric(p, Distance.MANHATTAN),
    ):
        refused(OptionError, "p_max must be above 0 and below 1, got", build, p_max)


def test_p_max_below_uniform():
    with pytest.raises(
        OptionError, match=r"at least 1/4 = 0.25 for column 'x1' with 4 levels, got 0.24"
    ):
        randomise(every_cell((5, 4), 2), BoundedGeometric((0.2, 0.24)))
    with pytest.raises(OptionError, match="p_max must be at least 1/20"):
        randomise(every_cell((5, 4), 2), CombinedGeometric(0.049, Distance.CHEBYSHEV))
    with pytest.raises(OptionError, match="p_max holds 3 numbers for 2 columns"):
        channels(BoundedGeometric((0.5, 0.5, 0.5)), ordinal(5, 4))
    # 1/k itself is uniform
    assert np.allclose(channels(BoundedGeometric(0.25), ordinal(4, 4))[0], 0.25)
    assert np.allclose(
        joint_channel(CombinedGeometric(0.05, Distance.CHEBYSHEV), ordinal(5, 4)), 0.05
    )


ALL = [
    *BY_COLUMN[:2],
    ClippedGeometric(1.0),
    CombinedKaryResponse(1.0),
    CombinedGeometric(0.5, Distance.MANHATTAN),
]


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_domains_that_are_refused(mechanism):
    numeric = Dataset.from_array(
        [[0.5, 1.0], [0.1, 2.0]], domain=Domain({"a": Numeric(0, 1), "b": Ordinal((1, 2))})
    )
    with pytest.raises(
        DomainError, match="column 'a' is numeric; declare bounds and cut it into bins"
    ):
        randomise(numeric, mechanism)
    with pytest.raises(PrivacyError, match="its levels were taken from the data"):
        mechanism.guarantee(ordinal(2, 3, declared=False))


def test_other_refusals():
    with pytest.raises(DomainError, match="no channel for a single column; use joint_channel"):
        channels(CombinedGeometric(0.5, Distance.EUCLIDEAN), ordinal(2, 3))
    with pytest.raises(
        DomainError, match="10,000 cells are too many for a joint channel, at most 4,096"
    ):
        joint_channel(CombinedKaryResponse(1.0), ordinal(100, 100))
    with pytest.raises(DomainError, match="column 'x1' has 2000 levels, more than 1024"):
        channels(BoundedGeometric(0.5), ordinal(3, 2000))
    refused(
        DomainError, "cells together", CombinedKaryResponse(1.0).guarantee, ordinal(*[10] * 260)
    )
    with pytest.raises(DomainError, match="different euclidean distances"):
        CombinedGeometric(0.5, Distance.EUCLIDEAN).guarantee(ordinal(1000, 1000))
    with pytest.raises(OptionError, match="distance must be a Distance, got 'euclidean'"):
        CombinedGeometric(0.5, "euclidean")
    with pytest.raises(OptionError, match="mechanism must be a local mechanism"):
        randomise(every_cell((2, 2), 1), KaryResponse)
    with pytest.raises(OptionError, match="noise must be None"):
        randomise(every_cell((2, 2), 1), KaryResponse(1.0), noise=0)
    with pytest.raises(DataError, match="outside 0 to 1"):
        Dataset.from_codes(np.array([[0, 2], [0, 0]]), domain=ordinal(2, 2), strict=True)


# Bins
# --------------------------------------------------------------------------------------------------


def test_bins_agree_with_numpy():
    values = np.concatenate([np.random.default_rng(0).uniform(-2, 3, 500), np.linspace(-2, 3, 11)])
    cut = discretise(values, lower=-2, upper=3, bins=10)
    assert np.array_equal(
        np.bincount(cut.codes, minlength=10), np.histogram(values, bins=10, range=(-2, 3))[0]
    )
    assert cut.codes[-1] == 9 and cut.codes[-11] == 0
    assert np.allclose(cut.column.levels, np.arange(-1.75, 3, 0.5))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"lower": None},
            PrivacyError,
            "lower and upper must be declared: a range taken from private data",
        ),
        ({"upper": None}, PrivacyError, "lower and upper must be declared"),
        ({"bins": 0}, OptionError, "bins must be a whole number from 1 to 1,048,576, got 0"),
        ({"bins": 2.5}, OptionError, "bins must be a whole number"),
        ({"bins": 10**9}, OptionError, "bins must be a whole number .* got 1000000000"),
        ({"bins": 10**5000}, OptionError, "bins must be a whole number .* very many digits"),
        ({"upper": 0.0}, DomainError, "must be below upper bound"),
        ({"upper": math.nan}, DomainError, "must be finite"),
        ({"values": [0.5, 1.5]}, DataError, "row 2: 1.5 is outside the declared bins from 0 to 1"),
        ({"values": [math.nan]}, DataError, "row 1: nan is outside"),
        ({"values": ["tall"]}, DataError, "values: a list holds what is no number"),
        ({"values": [10**400]}, DataError, "values: a list holds what is no number"),
        ({"lower": 1.0, "upper": math.nextafter(1.0, 2.0)}, OptionError, "cannot be told apart"),
    ],
)
def test_bins_that_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        discretise(**{"values": [0.1, 0.9], "lower": 0.0, "upper": 1.0, "bins": 4, **change})


def test_columns_are_cut_by_their_declared_bounds():
    domain = Domain({"a": Numeric(0, 1), "b": Ordinal(("no", "yes")), "c": Numeric(-1, 1)})
    frame = pd.DataFrame({"a": [0.0, 0.49, 1.0], "b": ["yes", "no", "yes"], "c": [-1.0, 0.0, 0.9]})
    data = discretise_columns(Dataset.from_frame(frame, domain=domain), bins={"a": 2, "c": 4})
    assert data.codes.tolist() == [
        [0, 1, 0],
        [0, 0, 2],
        [1, 1, 3],
    ] and data.domain.cardinalities == (2, 2, 4)
    open_bounds = Domain({"a": Numeric(), "b": Ordinal(("no", "yes"))})
    with pytest.raises(PrivacyError, match="column 'a': lower and upper must be declared"):
        discretise_columns(Dataset.from_frame(frame[["a", "b"]], domain=open_bounds), bins=3)
    with pytest.raises(PrivacyError, match="taken from the data"):
        discretise_columns(Dataset.from_frame(frame[["a", "b"]]), bins=3)
    with pytest.raises(DomainError, match="bins must name the numeric columns"):
        discretise_columns(Dataset.from_frame(frame, domain=domain), bins={"a": 2})


def test_what_was_set_is_still_known_of_columns_that_were_cut():
    domain = Domain(
        {"arm": Ordinal((0, 1)), "dose": Numeric(0, 1)},
        interventions={"arm": {1: ("dose",)}},
        ignored={"visit": "a date"},
    )
    data = Dataset.from_frame(pd.DataFrame({"arm": [0, 1], "dose": [0.1, 0.9]}), domain=domain)
    cut = discretise_columns(data, bins=2).domain
    assert cut.interventions == domain.interventions and cut.ignored == domain.ignored


@pytest.mark.parametrize("wrong", [None, 3, "x", KaryResponse])
def test_doors_name_what_is_no_mechanism_and_no_domain(wrong):
    for door in (channels, joint_channel):
        refused(OptionError, "mechanism must be", door, wrong, ordinal(2, 3))
        refused(DomainError, "is not a Domain", door, KaryResponse(1.0), wrong)
    refused(DomainError, "is not a Domain", BoundedGeometric(0.5).guarantee, wrong)
    refused(DomainError, "is not a Domain", calibrate, KaryResponse, wrong, epsilon_ldp=1.0)
    refused(OptionError, "kind must be", calibrate, [], ordinal(2, 3), epsilon_ldp=1.0)


@pytest.mark.parametrize("kind", [KaryResponse, CombinedKaryResponse])
@pytest.mark.parametrize(("epsilon", "exact"), [(4.0, True), (12.0, True), (44.0, False)])
def test_an_epsilon_that_the_response_does_not_reach_is_no_exact_one(kind, epsilon, exact):
    """It keeps a value with a probability of at most 1 - 2^-40."""
    domain = ordinal(1, 5)
    losses = np.log(joint_channel(kind(epsilon), domain))
    reached = (losses.max(axis=0) - losses.min(axis=0)).max()
    found = kind(epsilon).guarantee(domain)
    assert reached <= found.epsilon_ldp and found.epsilon_ldp == epsilon
    assert (reached > epsilon * (1 - 1e-6)) == exact
    assert (found.epsilon_ldp_exact, found.d_privacy_exact) == (exact, exact)


def test_bins_for_pairs():
    assert [pair_bins(u) for u in (2, 25, 99, 100, 999, 1000, 10**6)] == [2, 2, 9, 10, 99, 100, 100]
    assert pair_bins(10**400) == 100  # no float holds a tenth of it
    refused(OptionError, "n_distinct must be a whole number", pair_bins, 1)


# Files
# --------------------------------------------------------------------------------------------------


def test_files_hold_the_randomised_rows_and_the_guarantee(tmp_path):
    domain = Domain({"smoke": Ordinal(("no", "yes")), "stage": Ordinal((1, 2, 3))})
    data = Dataset.from_codes(np.random.default_rng(0).integers(0, 2, (300, 2)), domain=domain)
    mechanism, out, promise = BoundedGeometric(0.6), tmp_path / "out.csv", tmp_path / "out.json"
    guarantee = privatize(data, mechanism, out=out, guarantee_out=promise)
    assert guarantee == mechanism.guarantee(domain)
    back = Dataset.from_frame(pd.read_csv(out), domain=domain)
    assert back.n_samples == 300 and 0.4 < np.mean(back.codes == data.codes) < 0.8
    content = json.loads(promise.read_text())
    assert content["mechanism"] == {"kind": "BoundedGeometric", "p_max": 0.6}
    assert content["secure_noise"] is True
    assert content["guarantee"]["epsilon_ldp"] == guarantee.epsilon_ldp
    assert content["guarantee"]["proved"] is True
    assert content["columns"]["stage"] == {"type": "ordinal", "levels": [1, 2, 3]}
    assert content["n_samples"] == 300
    for arguments in (
        {"out": out, "guarantee_out": tmp_path / "b"},
        {"out": tmp_path / "b", "guarantee_out": promise},
    ):
        refused(OptionError, "exists; give another name", privatize, data, mechanism, **arguments)
    assert not privatize(
        data, mechanism, out=out, guarantee_out=promise, noise=simulated(), force=True
    ).proved
    assert json.loads(promise.read_text())["secure_noise"] is False


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (Ordinal(("", "yes"), missing=True), "column 'a': a missing cell"),
        pytest.param(
            Ordinal(("low\rhigh", "yes")),
            "column 'a': level 'low\\\\rhigh'",
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 13), reason="Python quotes such a cell from 3.13 on"
            ),
        ),
        (Ordinal((1.5, 2**60 + 1)), "column 'a': level 1152921504606846977"),
    ],
)
def test_levels_that_no_csv_gives_back_are_refused_before_a_draw(tmp_path, column, message):
    domain = Domain({"a": column, "b": Ordinal((0, 1))})
    data = Dataset.from_codes(np.zeros((20, 2), dtype=np.int32), domain=domain)
    ledger = Ledger(Budget(5.0))
    out, promise = tmp_path / "out.csv", tmp_path / "out.json"
    with pytest.raises(DomainError, match=message):
        privatize(data, KaryResponse(1.0), out=out, guarantee_out=promise, ledger=ledger)
    assert not list(tmp_path.iterdir()) and ledger.spent.epsilon == 0


def test_every_level_that_is_written_is_read_again(tmp_path):
    texts = ("NA", " a", "a", 'q"uote', "com,ma", "new\nline", "tab\t", "#x", "1", "1.0", "true")
    domain = Domain(
        {
            'te"xt': Ordinal(texts, missing=True),
            "num,ber": Ordinal((0, 1.5, 1e16, 1e-7, 1 / 3), missing=True),
            "bin": Binned((0, 0.1, 1e6), missing=True),
        }
    )
    codes = np.random.default_rng(0).integers(0, domain.cardinalities, (300, 3))
    data = Dataset.from_codes(codes, domain=domain)
    out, reads = tmp_path / "out.csv", tmp_path / "domain.json"
    files = {"out": out, "guarantee_out": tmp_path / "out.json", "domain_out": reads}
    privatize(data, KaryResponse(400.0), **files)  # keeps all but one record in 2^40
    assert np.array_equal(read_csv(out, domain=reads).codes, codes)


class _Own(ColumnwiseMechanism):
    """Warner's response of another author, and no dataclass."""

    def check(self, domain):
        return KaryResponse(1.0).check(domain)

    def guarantee(self, domain):
        return KaryResponse(1.0).guarantee(domain)

    def attribute_channels(self, cardinalities):
        return KaryResponse(1.0).attribute_channels(cardinalities)


def test_a_mechanism_of_ones_own_is_written_as_any_other(tmp_path):
    out, promise = tmp_path / "out.csv", tmp_path / "out.json"
    found = privatize(every_cell((2, 3), 2), _Own(), out=out, guarantee_out=promise)
    assert not found.proved and len(pd.read_csv(out)) == 12
    assert json.loads(promise.read_text())["mechanism"] == {"kind": "_Own"}


def test_an_option_that_is_no_number_of_json_is_written_after_the_charge(tmp_path):
    """It failed there, and what had been charged was lost."""

    @dataclasses.dataclass(frozen=True)
    class Wide(_Own):
        width: float = math.nan
        ends: tuple = (-math.inf, np.float64(2.0))

    promise = tmp_path / "out.json"
    privatize(every_cell((2, 3), 2), Wide(), out=tmp_path / "out.csv", guarantee_out=promise)
    written = {"kind": "Wide", "width": "nan", "ends": ["-inf", 2.0]}
    assert json.loads(promise.read_text())["mechanism"] == written


def test_one_person_randomises_her_own_record(tmp_path):
    domain = Domain({"smoke": Ordinal(("no", "yes")), "stage": Ordinal((1, 2, 3))})
    record = Dataset.from_frame(pd.DataFrame({"smoke": ["yes"], "stage": [2]}), domain=domain)
    mechanism = KaryResponse(epsilon=2.0)
    out, promise = tmp_path / "out.csv", tmp_path / "out.json"
    privatize(record, mechanism, out=out, guarantee_out=promise)
    assert len(pd.read_csv(out)) == 1 and json.loads(promise.read_text())["n_samples"] == 1
    # many people, each by herself, are the table of all of them
    codes = np.concatenate([randomise(record, mechanism).codes for _ in range(2_000)])
    everybody = Dataset.from_codes(np.repeat(record.codes, 2_000, axis=0), domain=domain)
    together = randomise(everybody, mechanism).codes
    for column, cells in zip(codes.T, together.T, strict=True):
        table = [np.bincount(rows, minlength=3) for rows in (column, cells)]
        kept = np.array(table)[:, np.sum(table, axis=0) > 0]
        assert stats.chi2_contingency(kept).pvalue > 1e-6


def test_nothing_is_written_where_something_is_wrong(tmp_path):
    data = every_cell((2, 2), 2)
    for arguments in (
        {
            "mechanism": BoundedGeometric(0.1),
            "out": tmp_path / "a",
            "guarantee_out": tmp_path / "b",
        },
        {"mechanism": KaryResponse(1.0), "out": tmp_path / "a", "guarantee_out": tmp_path / "a"},
        {
            "mechanism": KaryResponse(1.0),
            "out": tmp_path / "a",
            "guarantee_out": tmp_path / "no" / "b",
        },
        {"mechanism": KaryResponse(1.0), "out": tmp_path, "guarantee_out": tmp_path / "b"},
        {
            "mechanism": KaryResponse(1.0),
            "out": tmp_path / "a",
            "guarantee_out": tmp_path / "b",
            "noise": 1,
        },
    ):
        pytest.raises(JaxcdError, privatize, data, **arguments)
    places = {"out": tmp_path / "a", "guarantee_out": tmp_path / "b"}
    for table in (pd.DataFrame({"x": [1, 2]}), None, "rows.csv"):
        refused(OptionError, "data", privatize, table, KaryResponse(1.0), **places)
    assert not list(tmp_path.iterdir())
