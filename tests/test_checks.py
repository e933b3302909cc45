"""One numpy policy: NumPy's whole numbers are whole numbers everywhere, truth values nowhere; and
what was made with them can be saved.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxcd
from jaxcd.checks import is_number, is_whole
from jaxcd.errors import JaxcdError, OptionError

KEY = jax.random.key(0)
NOISE = jaxcd.SimulatedNoise(KEY)


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5))
def test_whole_numbers_are_pythons_and_numpys(value: int, least: int, most: int) -> None:
    for kind in (int, np.int8, np.int64):
        assert is_whole(kind(value), least, most) == (least <= value <= most)
        assert is_whole(kind(value)) and is_number(kind(value))
    assert not is_whole(float(value)) and is_number(float(value)) and is_number(np.float32(value))


@pytest.mark.parametrize(
    "value", [True, np.True_, "3", None, 1j, [1], float("nan"), float("inf"), np.float64("nan")]
)
def test_what_is_no_number(value: object) -> None:
    assert not is_number(value) and not is_whole(value)


@pytest.mark.parametrize(
    "make",
    [
        jaxcd.local.KaryResponse,
        jaxcd.local.BoundedGeometric,
        lambda n: jaxcd.pairwise.HSICScore(cause_bandwidth=n),
        lambda n: jaxcd.pairwise.LogIQRScore(width=n),
        lambda n: jaxcd.published.PrivGCM(penalty=n),
    ],
)
@pytest.mark.parametrize("huge", [10**400, -(10**400)], ids=["large", "small"])
def test_a_whole_number_that_no_float_holds_is_refused(make, huge: int) -> None:
    assert is_whole(huge) and not is_number(huge) and not is_number(huge, 0, 1)
    pytest.raises(JaxcdError, make, huge)


WHOLE = [
    lambda n: jaxcd.SparseVector(n_rounds=n),
    lambda n: jaxcd.NoisyThreshold(n_queries=n),
    lambda n: jaxcd.Histogram(max_cells=n),
    lambda n: jaxcd.Marginals(max_candidates=n),
    lambda n: jaxcd.Features(n_features=n),
    lambda n: jaxcd.LevelwiseGaussian() if n is not True else jaxcd.SieveAndExamine(n_rounds=n),
    lambda n: jaxcd.pairwise.LogIQRScore(resolution=10 * n if n is not True else n),
    lambda n: jaxcd.networks.load("cancer").sample(n, key=KEY),
]


@pytest.mark.parametrize("make", WHOLE, ids=lambda make: inspect.getsource(make).strip()[:40])
def test_numpys_whole_numbers_are_taken_and_truth_values_are_not(make) -> None:
    assert repr(type(make(np.int64(4)))) == repr(type(make(4)))
    pytest.raises(JaxcdError, make, True)


def test_choices_are_taken_as_text() -> None:
    """As unit="person" and missing="level" are."""
    zcdp = jaxcd.privacy.Accounting.ZCDP
    assert jaxcd.Budget(1.0, 1e-6, accounting="zcdp") == jaxcd.Budget(1.0, 1e-6, accounting=zcdp)
    data = jaxcd.networks.load("cancer").sample(500, key=KEY)
    options = {"budget": jaxcd.Budget(1.0), "key": KEY, "noise": NOISE}
    by_name, by_member = (
        jaxcd.discover(data, algorithm=algorithm, **options)
        for algorithm in ("pc", jaxcd.Algorithm.PC)
    )
    assert by_name.graph == by_member.graph and by_name.info["ledger"] == by_member.info["ledger"]
    for wrong in ("PC!", "ZCDP", 3, "RELEASE"):
        with pytest.raises(JaxcdError, match=f"algorithm = {wrong!r} is no Algorithm; use .*PC"):
            jaxcd.discover(data, algorithm=wrong, **options)
        with pytest.raises(
            JaxcdError, match=f"accounting = {wrong!r} is no Accounting; use .*ZCDP"
        ):
            jaxcd.Budget(1.0, 1e-6, accounting=wrong)


def test_columns_to_condition_on_may_come_one_by_one() -> None:
    """A generator is read once."""
    data = jaxcd.networks.load("cancer").sample(2_000, key=KEY)
    ask = {"test": jaxcd.ChiSquare(), "budget": jaxcd.NO_PRIVACY}
    names = ["Cancer", "Smoker"]
    expected = jaxcd.ci_test(data, "Xray", "Dyspnoea", given=names, **ask)
    for several in (map(str, names), filter(None, names), dict.fromkeys(names)):
        found = jaxcd.ci_test(data, "Xray", "Dyspnoea", given=several, **ask)
        assert found.statistic == expected.statistic
    assert expected.statistic != jaxcd.ci_test(data, "Xray", "Dyspnoea", **ask).statistic
    for wrong in (None, 3, "Cancer"):
        with pytest.raises(OptionError, match="given is a collection of names"):
            jaxcd.ci_test(data, "Xray", "Dyspnoea", given=wrong, **ask)


def test_what_was_made_with_them_can_be_saved(tmp_path: Path) -> None:
    data = jaxcd.networks.load("cancer").sample(np.int64(500), key=KEY)
    kind = jaxcd.Histogram(max_cells=np.int64(100))
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(np.float64(1.0)), noise=NOISE)
    loaded = jaxcd.Release.load(bought.save(tmp_path / "bought.npz"))
    assert loaded.bought == kind and type(loaded.bought.max_cells) is int
    run = jaxcd.ges(loaded, max_parents=np.int64(2))
    run = run.with_confidence(jaxcd.edge_confidence(loaded, run, n_draws=np.int64(2)))
    run.save(tmp_path / "report")
    assert jaxcd.verify(tmp_path / "report" / "privacy.json").holds
    search = jaxcd.pc(
        data,
        test=jaxcd.CovarianceNorm(),
        decider=jaxcd.SparseVector(n_rounds=np.int64(3)),
        budget=jaxcd.Budget(2.0),
        key=None,
        max_level=np.int64(1),
        noise=NOISE,
    )
    search.save(tmp_path / "search")
    assert jaxcd.verify(search.certificate()).holds


@pytest.mark.parametrize(
    ("held", "words"),
    [((), "data: 3 rows are too few for FisherZ of 'a' and 'b'"), (("c",), "given: FisherZ")],
)
def test_a_single_test_names_what_is_too_few(held, words):
    data = jaxcd.Dataset.from_array(np.eye(3), names=list("abc"))
    with pytest.raises(OptionError, match=re.escape(words)):
        jaxcd.ci_test(
            data, "a", "b", given=held, test=jaxcd.FisherZ(), budget=jaxcd.NO_PRIVACY, key=None
        )
