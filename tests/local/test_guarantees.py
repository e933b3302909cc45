from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jaxcd.data import Domain, Ordinal
from jaxcd.errors import DomainError, OptionError, PrivacyError
from jaxcd.local import (
    BoundedGeometric,
    ClippedGeometric,
    CombinedGeometric,
    CombinedKaryResponse,
    Distance,
    KaryResponse,
    LocalMechanism,
    calibrate,
    combined_geometric,
    joint_channel,
)
from jaxcd.local.base import ROUNDING
from jaxcd.local.bounded_geometric import column_rates
from jaxcd.local.combined_geometric import combined_d_privacy, combined_epsilon
from jaxcd.local.distances import Layout
from jaxcd.privacy import Relation
from tests.helpers import levelled, refused

KINDS = [
    (KaryResponse, None),
    (CombinedKaryResponse, None),
    (BoundedGeometric, None),
    (ClippedGeometric, None),
]
KINDS += [(CombinedGeometric, distance) for distance in Distance]


ordinal = functools.partial(levelled, name="x")


def brute_force(matrix, cardinalities, distance):
    """(epsilon_LDP, d-privacy, smallest and largest P[x | x]) over all (x, x', y), from nothing but
    the channel.
    """
    cells = np.array(list(itertools.product(*map(range, cardinalities))), dtype=float)
    logs = np.log(matrix)
    order = {Distance.MANHATTAN: 1, Distance.EUCLIDEAN: 2, Distance.CHEBYSHEV: np.inf}[distance]
    epsilon = d_privacy = 0.0
    for x in range(len(cells)):
        for other in range(len(cells)):
            if x != other:
                loss = (logs[x] - logs[other]).max()
                epsilon = max(epsilon, loss)
                d_privacy = max(d_privacy, loss / np.linalg.norm(cells[x] - cells[other], order))
    return epsilon, d_privacy, np.diag(matrix).min(), np.diag(matrix).max()


def check_against_brute_force(mechanism, cardinalities):
    domain = ordinal(*cardinalities)
    guarantee = mechanism.guarantee(domain)
    epsilon, d_privacy, smallest, largest = brute_force(
        joint_channel(mechanism, domain), cardinalities, guarantee.distance
    )
    assert guarantee.proved and guarantee.epsilon_ldp_exact and guarantee.d_privacy_exact
    # never below the truth (the matrix itself is rounded), and above it by rounding only
    assert epsilon - 1e-10 <= guarantee.epsilon_ldp <= epsilon * (1 + 1e-9) + 1e-8
    assert d_privacy - 1e-10 <= guarantee.d_privacy <= d_privacy * (1 + 1e-9) + 1e-8
    assert guarantee.p_truth_smallest == pytest.approx(smallest, rel=1e-10)
    assert guarantee.p_truth_largest == pytest.approx(largest, rel=1e-10)


SMALL = st.lists(st.integers(1, 5), min_size=1, max_size=3).filter(
    lambda ks: 1 < math.prod(ks) <= 48
)


@settings(max_examples=25, derandomize=True)
@given(SMALL, st.floats(0.01, 12.0))
def test_mechanisms_with_an_epsilon_equal_brute_force(cardinalities, epsilon):
    for kind in (KaryResponse, CombinedKaryResponse, ClippedGeometric):
        check_against_brute_force(kind(epsilon), cardinalities)


@settings(max_examples=25, derandomize=True)
@given(SMALL, st.floats(0.02, 0.98))
def test_the_bounded_geometric_equals_brute_force(cardinalities, share):
    least = max(1 / k for k in cardinalities if k > 1)
    check_against_brute_force(BoundedGeometric(least + share * (1 - least)), cardinalities)
    check_against_brute_force(
        BoundedGeometric(
            tuple(1 / k + share * (1 - 1 / k) if k > 1 else 0.5 for k in cardinalities)
        ),
        cardinalities,
    )


@settings(max_examples=15, derandomize=True)
@given(SMALL, st.floats(0.02, 0.98), st.sampled_from(Distance))
def test_the_combined_geometric_equals_brute_force(cardinalities, share, distance):
    least = 1 / math.prod(cardinalities)
    check_against_brute_force(
        CombinedGeometric(least + share * (1 - least), distance), cardinalities
    )


@pytest.mark.parametrize("cardinalities", [(9, 3), (2, 12), (7, 7), (3, 3, 3, 3)])
@pytest.mark.parametrize("distance", Distance)
def test_the_combined_geometric_equals_brute_force_on_larger_domains(cardinalities, distance):
    for p_max in (0.05, 0.6):
        check_against_brute_force(CombinedGeometric(p_max, distance), cardinalities)


@settings(max_examples=40, derandomize=True)
@given(SMALL, st.floats(0.02, 0.98), st.sampled_from(Distance))
def test_the_bounds_of_large_domains_hold_on_small_ones(cardinalities, share, distance):
    least = 1 / math.prod(cardinalities)
    mechanism = CombinedGeometric(least + share * (1 - least), distance)
    assume(mechanism.p_max < 1)
    epsilon, d_privacy, _, _ = brute_force(
        joint_channel(mechanism, ordinal(*cardinalities)), cardinalities, distance
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combined_geometric, "ENUMERATED_CELLS", 0)
        bound, exact = combined_d_privacy(tuple(cardinalities), distance, mechanism.p_max)
        assert d_privacy <= bound + 1e-9 and exact == (distance is Distance.MANHATTAN)
        patch.setattr(combined_geometric, "TABLE_SIZE", 0)
        assert (
            d_privacy
            <= combined_d_privacy(tuple(cardinalities), distance, mechanism.p_max)[0] + 1e-9
        )
        crude, exact = combined_epsilon(tuple(cardinalities), distance, mechanism.p_max)
        assert epsilon <= crude + 1e-9 and not exact


# Huge domains
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", Distance)
def test_no_record_of_a_huge_domain_beats_the_reported_epsilon(distance):
    cardinalities = (10,) * 11
    guarantee = CombinedGeometric(0.1, distance).guarantee(ordinal(*cardinalities))
    layout = Layout(cardinalities, distance)
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 10, (400, 11), dtype=np.int32)
    # from the centre to the corner
    codes[:11] = np.where(np.arange(11) < np.arange(11)[:, None], 0, 4)
    classes = layout.classes_of(codes)[0]
    losses = layout.rates(classes, 0.1) * layout.eccentricities(classes)
    assert guarantee.epsilon_ldp_exact and (losses <= guarantee.epsilon_ldp).all()
    assert guarantee.epsilon_ldp < 1.2 * losses.max()
    assert guarantee.d_privacy <= guarantee.epsilon_ldp
    assert guarantee.d_privacy_exact == (distance is Distance.MANHATTAN)


def test_a_pair_of_a_huge_domain_attains_the_reported_d_privacy():
    """Steepest ascent over neighbouring records and the farthest answers finds the reported
    Manhattan d-privacy.
    """
    cardinalities, p_max = (10,) * 4, 0.1
    layout = Layout(cardinalities, Distance.MANHATTAN)
    cells = np.array(list(itertools.product(range(10), repeat=4)), dtype=np.int32)
    rates = layout.rates(layout.classes_of(cells)[0], p_max).reshape(cardinalities)
    worst = 0.0
    for x in itertools.product(range(5), repeat=4):
        for j in range(4):
            step = list(x)
            step[j] += 1
            # The loss is linear in the distance on either side of the step: its ends, for the other
            # columns nearest and farthest.
            for level in (0, x[j], x[j] + 1, 9):
                for others in (0, sum(max(a, 9 - a) for i, a in enumerate(x) if i != j)):
                    near, far = others + abs(level - x[j]), others + abs(level - step[j])
                    worst = max(worst, abs(rates[x] * near - rates[tuple(step)] * far))
    guarantee = CombinedGeometric(p_max, Distance.MANHATTAN).guarantee(ordinal(*cardinalities))
    assert guarantee.d_privacy == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("distance", Distance)
def test_where_classes_are_too_many_bounds_are_marked(distance):
    guarantee = CombinedGeometric(0.1, distance).guarantee(ordinal(*range(5, 16)))
    assert not guarantee.epsilon_ldp_exact and not guarantee.d_privacy_exact and guarantee.proved


# The published table
# --------------------------------------------------------------------------------------------------

# k, p_max, rate at the edge, at the centre, d-privacy, epsilon_LDP, k-ary response at the same
# p_max
TABLE = [
    (5, 0.3, 0.229, 0.371, 0.413, 0.98, 0.54),
    (10, 0.3, 0.343, 0.584, 0.646, 3.71, 1.35),
    (10, 0.5, 0.692, 1.093, 1.468, 7.70, 2.20),
    (20, 0.3, 0.356, 0.618, 1.543, 9.24, 2.10),
    (20, 0.5, 0.693, 1.099, 4.154, 17.98, 2.94),
    (50, 0.5, 0.693, 1.099, 12.23, 49.9, 3.89),
    (100, 0.5, 0.693, 1.099, 25.70, 104.0, 4.60),
]


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_the_table_of_the_specification(row):
    k, p_max, edge, centre, d_privacy, epsilon, response = row
    domain, rates = ordinal(k), column_rates(k, p_max)
    guarantee = BoundedGeometric(p_max).guarantee(domain)
    assert rates[0] == pytest.approx(edge, abs=6e-4) and rates[(k - 1) // 2] == pytest.approx(
        centre, abs=6e-4
    )
    assert guarantee.d_privacy == pytest.approx(d_privacy, rel=1e-3, abs=6e-4)
    assert guarantee.epsilon_ldp == pytest.approx(epsilon, rel=3e-3, abs=6e-3)
    assert guarantee.d_privacy > rates.max()  # private, but with none of the rates
    assert calibrate(KaryResponse, domain, p_max=p_max).epsilon == pytest.approx(response, abs=6e-3)
    check_against_brute_force(BoundedGeometric(p_max), (k,))


def test_clipped_geometric_is_what_its_name_says():
    guarantee = ClippedGeometric(0.4).guarantee(ordinal(5, 1, 3))
    assert guarantee.d_privacy == pytest.approx(0.4, abs=2 * ROUNDING)
    assert guarantee.epsilon_ldp == pytest.approx(0.4 * 6, abs=2 * ROUNDING)


def test_guarantees_turn_into_costs():
    guarantee = KaryResponse(1.5).guarantee(ordinal(2, 3))
    cost = guarantee.cost
    assert (cost.epsilon, cost.delta, cost.relation, cost.proven) == (
        1.5,
        0.0,
        Relation.REPLACE_ONE,
        True,
    )


# Calibration
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "distance"), KINDS, ids=str)
@pytest.mark.parametrize("cardinalities", [(3, 4), (2, 10, 1), (8,), (6, 6, 6, 6)], ids=str)
def test_calibrated_mechanisms_have_the_property(kind, distance, cardinalities):
    domain = ordinal(*cardinalities)
    for epsilon in (0.01, 1.0, 8.0):
        guarantee = calibrate(kind, domain, epsilon_ldp=epsilon, distance=distance).guarantee(
            domain
        )
        assert guarantee.epsilon_ldp <= epsilon and guarantee.epsilon_ldp == pytest.approx(
            epsilon, rel=1e-9
        )
    for d_privacy in (0.05, 0.7):
        guarantee = calibrate(kind, domain, d_privacy=d_privacy, distance=distance).guarantee(
            domain
        )
        assert guarantee.d_privacy <= d_privacy and guarantee.d_privacy == pytest.approx(
            d_privacy, rel=1e-9
        )
    p_max = 0.6
    guarantee = calibrate(kind, domain, p_max=p_max, distance=distance).guarantee(domain)
    assert guarantee.p_truth_largest == pytest.approx(p_max, rel=1e-9)


def test_calibration_by_column_keeps_the_shares_of_k_ary_response():
    domain = ordinal(2, 8)
    mechanism = calibrate(BoundedGeometric, domain, epsilon_ldp=5.0)
    parts = [
        BoundedGeometric(p).guarantee(ordinal(k)).epsilon_ldp
        for p, k in zip(mechanism.p_max, (2, 8), strict=True)
    ]
    assert parts == pytest.approx([1.0, 4.0], abs=1e-8)
    # none below 1/k
    assert calibrate(BoundedGeometric, ordinal(2, 10), p_max=0.2).p_max == pytest.approx((0.5, 0.4))
    assert calibrate(BoundedGeometric, ordinal(4, 10), p_max=0.16).p_max == pytest.approx(
        (0.4, 0.4)
    )


def test_calibration_on_a_huge_domain():
    domain = ordinal(*[10] * 11)
    for distance in (Distance.MANHATTAN, Distance.CHEBYSHEV):
        mechanism = calibrate(CombinedGeometric, domain, epsilon_ldp=5.0, distance=distance)
        assert mechanism.guarantee(domain).epsilon_ldp == pytest.approx(5.0, abs=1e-8)
    assert calibrate(CombinedKaryResponse, domain, p_max=0.5).epsilon == pytest.approx(
        math.log(10**11 - 1)
    )


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (KaryResponse, {}, "give exactly one of p_max, epsilon_ldp and d_privacy, got none"),
        (KaryResponse, {"p_max": 0.5, "d_privacy": 1.0}, "give exactly one"),
        (KaryResponse, {"epsilon_ldp": 0.0}, "epsilon_ldp must be finite and above"),
        (KaryResponse, {"epsilon_ldp": math.nan}, "epsilon_ldp must be finite and above"),
        (ClippedGeometric, {"d_privacy": "1"}, "d_privacy must be finite and above"),
        (ClippedGeometric, {"p_max": 0.2}, r"above 2\*\*-2"),
        (BoundedGeometric, {"p_max": 0.05}, "p_max must be at least 1/12"),
        (KaryResponse, {"p_max": 1 / 12}, "p_max must be clearly above 1/12"),
        (CombinedKaryResponse, {"p_max": 1 / 12 + 1e-17}, "p_max must be above 1/12"),
        (BoundedGeometric, {"p_max": 1.0}, "p_max must be above 0 and below 1"),
        (BoundedGeometric, {"epsilon_ldp": 1e4}, "out of reach"),
        (CombinedGeometric, {"p_max": 0.5}, "distance must be given for CombinedGeometric"),
        (KaryResponse, {"p_max": 0.5, "distance": Distance.MANHATTAN}, "and only there"),
        (KaryResponse(1.0), {"p_max": 0.5}, "kind must be one of the classes KaryResponse"),
    ],
)
def test_calibrations_that_are_refused(kind, options, message):
    refused(OptionError, message, calibrate, kind, ordinal(3, 4), **options)


def test_domains_that_calibration_refuses():
    with pytest.raises(DomainError, match="every column has one level"):
        calibrate(KaryResponse, ordinal(1, 1), epsilon_ldp=1.0)
    with pytest.raises(PrivacyError, match="taken from the data"):
        calibrate(KaryResponse, Domain({"a": Ordinal((0, 1))}, declared=False), epsilon_ldp=1.0)


@pytest.mark.parametrize(
    "mechanism",
    [
        BoundedGeometric(0.99),
        CombinedGeometric(0.99, Distance.MANHATTAN),
        ClippedGeometric(6.0),
        BoundedGeometric(0.5),
    ],
)
def test_a_raised_probability_is_told(mechanism: LocalMechanism) -> None:
    """Beyond 650 nats the channel promises more than what is reported, which is then not exact."""
    domain = Domain({"x": Ordinal(tuple(range(200))), "y": Ordinal((0,))})
    guarantee, logs = mechanism.guarantee(domain), np.log(joint_channel(mechanism, domain))
    lost = float((logs.max(axis=0) - logs.min(axis=0)).max())
    assert lost <= guarantee.epsilon_ldp
    reached = guarantee.epsilon_ldp <= lost + 1e-6
    assert guarantee.epsilon_ldp_exact == guarantee.d_privacy_exact == reached
