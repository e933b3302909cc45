"""The released histogram: sensitivity by brute force, the price, an audit, the file, and
refusals.
"""

from __future__ import annotations

import functools
import itertools
import json
import math

import numpy as np
import pytest

import jaxcd
from jaxcd.errors import DataError, DomainError, FormatError, OptionError, PrivacyError
from jaxcd.privacy import NO_PRIVACY, Budget, epsilon_lower_bound
from jaxcd.releases import Histogram, Release, ReleasedHistogram
from jaxcd.releases.tables.histogram import HISTOGRAM_SENSITIVITY
from tests.helpers import coded, levelled, refused, simulated

domain = functools.partial(levelled, kind=jaxcd.Categorical)
dataset = functools.partial(coded, kind=jaxcd.Categorical)


def counts(rows: np.ndarray, *cardinalities: int) -> np.ndarray:
    return Histogram().release(dataset(rows, *cardinalities), budget=NO_PRIVACY).values


EIGHT = dataset(np.zeros((10, 3)), 2, 2, 2)


def test_without_privacy_it_is_the_table():
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, r, 500) for r in (2, 3, 4)], axis=1)
    expected = np.zeros((2, 3, 4), dtype=np.int64)
    for row in rows:
        expected[tuple(row)] += 1
    release = Histogram().release(dataset(rows, 2, 3, 4), budget=NO_PRIVACY)
    assert np.array_equal(release.values, expected)
    assert release.scale == 0 and release.variance == 0 and math.isinf(release.cost.epsilon)


@pytest.mark.parametrize("cardinalities", [(2, 2), (2, 3)])
def test_the_sensitivity_is_two_and_no_more(cardinalities: tuple[int, ...]):
    """All pairs of neighbouring data sets of three rows."""
    records = list(itertools.product(*map(range, cardinalities)))
    tables = {
        rows: counts(np.array(rows), *cardinalities)
        for rows in itertools.product(records, repeat=3)
    }
    changes = [
        np.abs(tables[rows] - tables[(other, *rows[1:])]).sum()
        for rows in tables
        for other in records
    ]
    assert max(changes) == HISTOGRAM_SENSITIVITY


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1 / 3, 1.0, 2.5, 40.0])
def test_the_price_is_the_budget_exactly(epsilon: float):
    release = Histogram().release(EIGHT, budget=Budget(epsilon))
    assert release.cost.epsilon == epsilon and release.cost.delta == 0 and release.cost.proven
    assert release.spent.epsilon == epsilon
    assert release.scale >= 2 / epsilon  # never less noise than paid for
    assert release.scale == pytest.approx(2 / epsilon, rel=1e-12)


def test_simulated_noise_is_not_called_proved():
    release = Histogram().release(EIGHT, budget=Budget(1.0), noise=simulated())
    assert not release.cost.proven


def test_noise_falls_on_every_cell_with_the_stated_law():
    data = dataset(np.zeros((5, 2)), 64, 64)
    release = Histogram().release(data, budget=Budget(0.5))
    noise = release.values - counts(np.zeros((5, 2)), 64, 64)
    q = math.exp(-1 / release.scale)
    support = np.arange(-2000, 2001)
    law = (1 - q) / (1 + q) * q ** np.abs(support)
    assert release.variance == pytest.approx(float(law @ support**2), rel=1e-9)
    # Kolmogorov-Smirnov at 4,096 draws: the distance exceeds 0.035 with probability below 1e-4.
    distance = max(abs((noise <= k).mean() - law[support <= k].sum()) for k in range(-30, 31))
    assert distance < 0.035
    assert abs(noise.mean()) < 5 * math.sqrt(release.variance / noise.size)


def test_the_variance_of_little_noise():
    for scale in (0.1, 0.5, 3.0):
        q = math.exp(-1 / scale)
        release = ReleasedHistogram(
            domain(2),
            1,
            np.zeros(2),
            scale,
            *[Histogram().release(EIGHT, budget=Budget(1)).cost] * 2,
        )
        assert release.variance == pytest.approx(2 * q / (1 - q) ** 2, rel=1e-9)


def audit(epsilon: float, *, runs: int) -> float:
    """A lower bound on epsilon from runs on two neighbouring data sets, on events fixed before."""
    here, there = np.zeros((6, 3)), np.zeros((6, 3))
    there[0] = 1
    tables = [
        np.array(
            [
                Histogram().release(dataset(rows, 2, 2, 2), budget=Budget(epsilon)).values
                for _ in range(runs)
            ]
        )
        for rows in (here, there)
    ]
    # The likelihood ratio of the two data sets depends on the first and the last cell only.
    gaps = [np.clip(table[:, 0, 0, 0], 5, 6) - np.clip(table[:, 1, 1, 1], 0, 1) for table in tables]
    return epsilon_lower_bound(
        *([int((gap >= 6).sum()), int((gap <= 4).sum())] for gap in gaps), runs, confidence=1 - 1e-6
    )


def test_an_audit_stays_below_the_claim_and_is_not_blind():
    bound = audit(1.0, runs=1200)
    assert 0.2 < bound <= 1.0


def test_the_audit_would_catch_a_third_of_the_noise():
    """A release with the noise of epsilon = 3 that claimed 1."""
    assert audit(3.0, runs=500) > 1.0


def test_a_file_gives_the_release_back(tmp_path):
    release = Histogram().release(dataset(np.ones((9, 2)), 2, 3), budget=Budget(0.7))
    path = release.save(tmp_path / "asia.release")
    assert path.name == "asia.release"
    for loaded in (Release.load(path), ReleasedHistogram.load(path, names=["v0", "v1"])):
        assert np.array_equal(loaded.values, release.values) and loaded.values.dtype == np.int64
        assert loaded.domain == release.domain and loaded.scale == release.scale
        assert (loaded.n_samples, loaded.cost, loaded.spent) == (9, release.cost, release.spent)
        assert not loaded.values.flags.writeable


def test_a_file_without_privacy_keeps_its_infinity(tmp_path):
    path = Histogram().release(EIGHT, budget=NO_PRIVACY).save(tmp_path / "h")
    assert math.isinf(Release.load(path).cost.epsilon)


def test_a_release_of_other_variables_is_refused(tmp_path):
    path = Histogram().release(EIGHT, budget=Budget(1.0)).save(tmp_path / "h")
    with pytest.raises(DomainError, match="other variables.*missing.*v2.*unknown.*z"):
        Release.load(path, names=["v0", "v1", "z"])
    refused(DomainError, "another order", Release.load, path, names=["v1", "v0", "v2"])


def _rewritten(path, tmp_path, **changes):
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays.pop("header"))) | changes.pop("header", {})
    target = tmp_path / "changed"
    with target.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **(arrays | changes))
    return target


def test_damaged_files_are_named(tmp_path):
    path = Histogram().release(EIGHT, budget=Budget(1.0)).save(tmp_path / "h")
    refused(DataError, "does not exist", Release.load, tmp_path / "nothing")
    text = tmp_path / "text"
    text.write_text("a,b\n1,2\n")
    refused(FormatError, "not a release", Release.load, text)
    np.savez(tmp_path / "arrays.npz", x=np.zeros(3))
    refused(FormatError, "no header", Release.load, tmp_path / "arrays.npz")
    for changes, words in (
        ({"header": {"format": "other"}}, "format 'other'"),
        ({"header": {"version": 99}}, "version 99"),
        ({"header": {"kind": "unknown"}}, "kind 'unknown'"),
        ({"header": {"n_samples": -3}}, "n_samples is -3"),
        ({"header": {"own": {}}}, "damaged"),
        ({"header": {"own": {"scale": -1.0}}}, "scale"),
        ({"values": np.zeros((2, 2), dtype=np.int64)}, "shape"),
        ({"values": np.zeros((2, 2, 2))}, "float64"),
    ):
        refused(FormatError, words, Release.load, _rewritten(path, tmp_path, **changes))


def test_a_file_of_objects_is_not_unpickled(tmp_path):
    with (tmp_path / "evil").open("wb") as file:
        np.savez(file, header=np.array([{"format": "jaxcd-release"}], dtype=object))
    pytest.raises(FormatError, Release.load, tmp_path / "evil")


def test_too_large_a_domain_says_how_large_and_what_to_use():
    data = dataset(np.zeros((4, 3)), 20, 20, 21)
    refused(
        DomainError, r"8,400 cells.*8,192.*Marginals", Histogram().release, data, budget=Budget(1.0)
    )
    assert Histogram(max_cells=8400).release(data, budget=Budget(1.0)).values.size == 8400


def test_refusals():
    numeric = jaxcd.Domain([("a", jaxcd.Categorical((0, 1))), ("height", jaxcd.Numeric(0.0, 2.0))])
    with pytest.raises(DomainError, match="'height'.*numeric"):
        Histogram().release(
            jaxcd.Dataset.from_array([[0, 1.0], [1, 1.5]], domain=numeric), budget=Budget(1.0)
        )
    inferred = jaxcd.Dataset.from_array([["x", "y"], ["y", "x"]], names=["a", "b"])
    refused(PrivacyError, "declare", Histogram().release, inferred, budget=Budget(1.0))
    refused(TypeError, "budget", Histogram().release, EIGHT)
    refused(OptionError, "budget = None", Histogram().release, EIGHT, budget=None)
    refused(OptionError, "epsilon", Budget, -1.0)
    refused(OptionError, "noise", Histogram().release, EIGHT, budget=Budget(1.0), noise=7)
    refused(DataError, "ndarray", Histogram().release, np.zeros((3, 2)), budget=Budget(1.0))
    for wrong in (0, -5, 1.5, True):
        refused(OptionError, "max_cells", Histogram, max_cells=wrong)
