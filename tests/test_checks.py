"""One numpy policy: NumPy's whole numbers are whole numbers everywhere, truth values nowhere; and
what was made with them can be saved.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxcd
from jaxcd.checks import is_number, is_whole
from jaxcd.errors import DataError, DomainError, JaxcdError, OptionError

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


def doors(data: jaxcd.Dataset) -> dict[str, Any]:
    """By the argument: the doors that take it."""
    budget = jaxcd.Budget(1.0, 1e-6)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=budget, noise=NOISE)
    graph = jaxcd.MixedGraph.from_edges(data.names, [])
    levelwise, covariances = jaxcd.LevelwiseGaussian(), jaxcd.CovarianceNorm()

    def plan(**options: Any) -> Any:
        return jaxcd.plan(data.domain, 500, budget=budget, **options)

    return {
        "test": [
            lambda wrong: jaxcd.discover(data, budget=budget, test=wrong),
            lambda wrong: jaxcd.pc(data, budget=budget, test=wrong, decider=levelwise),
            lambda wrong: jaxcd.falsify(bought, graph, test=wrong),
            lambda wrong: plan(test=wrong, decider=levelwise),
        ],
        "decider": [
            lambda wrong: jaxcd.discover(data, budget=budget, decider=wrong),
            lambda wrong: jaxcd.pc(data, budget=budget, test=covariances, decider=wrong),
            lambda wrong: plan(test=covariances, decider=wrong),
        ],
        "tree": [lambda wrong: plan(test=covariances, tree=wrong)],
        "kind": [
            lambda wrong: jaxcd.release(data, wrong, budget=budget),
            lambda wrong: jaxcd.edge_confidence(bought, n_draws=1, kind=wrong),
        ],
        "search": [lambda wrong: jaxcd.edge_confidence(bought, n_draws=1, search=wrong)],
    }


@pytest.mark.parametrize("argument", ["test", "decider", "tree", "kind", "search"])
def test_a_name_or_a_class_is_no_test_decider_or_kind(argument: str) -> None:
    data = jaxcd.networks.load("cancer").sample(500, key=KEY)
    classes = {
        "test": jaxcd.ChiSquare,
        "decider": jaxcd.SparseVector,
        "tree": jaxcd.decisions.TreeOptions,
        "kind": jaxcd.Histogram,
        "search": None,
    }
    given = classes[argument]
    for wrong in ("chi", 3, jaxcd.BIC(), *(() if given is None else (given,))):
        for door in doors(data)[argument]:
            with pytest.raises(OptionError, match=f"^{argument} = {re.escape(repr(wrong))} is n"):
                door(wrong)


def test_what_is_ignored_is_told_with_a_reason() -> None:
    columns = {"a": jaxcd.Categorical((0, 1))}
    for wrong in ("note", ["note"], {"note"}, None):
        with pytest.raises(JaxcdError, match="ignored = .* write {column: the reason}"):
            jaxcd.Domain(columns, ignored=wrong)


NUMPYS = [
    lambda whole, real: jaxcd.Features(n_features=whole(4), decay=real(0.3), anchor=real(0.3)),
    lambda whole, real: jaxcd.Marginals(shares=(real(0.6), real(0.1), real(0.3)), max_parents=3),
    lambda whole, real: jaxcd.LogLinear(least_cell=real(9), selected=whole(4)),
    lambda whole, real: jaxcd.SecondMoments(scale_share=real(0.1)),
    lambda whole, real: jaxcd.Tetrachoric(selected=whole(4)),
    lambda whole, real: jaxcd.Discretised(bins=whole(4), share=real(0.1)),
    lambda whole, real: jaxcd.StratifiedRanks(
        strata=(whole(9), whole(4)), map_levels=whole(9), map_share=real(0.1)
    ),
    lambda whole, real: jaxcd.StratifiedTau(rows_per_cell=whole(6)),
    lambda whole, real: jaxcd.BoundedRCIT(penalty=real(0.1), n_features=whole(50)),
    lambda whole, real: jaxcd.citests.BoughtBandwidths(share=real(0.1), grid=(real(0.1), 1.0)),
    lambda whole, real: jaxcd.LevelwiseGaussian(alpha=real(0.01), selection_share=real(0.1)),
    lambda whole, real: jaxcd.SparseVector(alpha=real(0.01), n_rounds=whole(3)),
    lambda whole, real: jaxcd.decisions.TreeOptions(alpha=real(0.01), grow_size=whole(2)),
    lambda whole, real: jaxcd.pairwise.BoundedPolynomial(degree=whole(2), truncation=real(0.3)),
    lambda whole, real: jaxcd.pairwise.HSICScore(cause_bandwidth=real(0.3)),
    lambda whole, real: jaxcd.pairwise.LogIQRScore(width=real(0.3), resolution=whole(40)),
    lambda whole, real: jaxcd.federated.Federation(
        sites=("north", "south", "east"), budget=jaxcd.Budget(1.0), dropouts=whole(1)
    ),
]


@pytest.mark.parametrize("make", NUMPYS, ids=lambda make: inspect.getsource(make).strip()[:60])
def test_options_hold_pythons_numbers(make) -> None:
    """In 32 bits a sensitivity is rounded, and may be below the one that was proved."""
    for real in (np.float32, np.float64):
        given, plain = make(np.int64, real), make(int, lambda value, real=real: float(real(value)))
        assert given == plain and repr(given) == repr(plain)


def test_a_sensitivity_is_never_of_32_bits() -> None:
    domain = jaxcd.Domain({name: jaxcd.Numeric(0, 1) for name in "xy"})
    budget = jaxcd.Budget(1.0, 1e-6)
    for anchor in np.linspace(0.1, 1.9, 7, dtype=np.float32):
        given, plain = (
            jaxcd.plan_release(domain, 1000, kind=kind, budget=budget).noise
            for kind in (jaxcd.Features(anchor=anchor), jaxcd.Features(anchor=float(anchor)))
        )
        assert float(given) == float(plain)


def test_rank_maps_of_numpys_depth_are_bought() -> None:
    values = np.random.default_rng(0).uniform(size=(200, 3))
    domain = jaxcd.Domain({name: jaxcd.Numeric(0, 1) for name in "xyz"})
    run = jaxcd.pc(
        jaxcd.Dataset.from_array(values, domain=domain),
        test=jaxcd.StratifiedRanks(map_levels=np.int64(6)),
        decider=jaxcd.NoisyThreshold(),
        budget=jaxcd.Budget(1.0, 1e-6),
        noise=NOISE,
        max_level=0,
    )
    assert not run.exhausted


def test_features_of_numpys_numbers_can_be_saved(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(size=(200, 2))
    data = jaxcd.Dataset.from_array(
        values, domain=jaxcd.Domain({name: jaxcd.Numeric(0, 1) for name in "xy"})
    )
    kind = jaxcd.Features(n_features=np.int64(2), anchor=np.float32(0.3))
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(1.0, 1e-6), noise=NOISE)
    assert jaxcd.Release.load(bought.save(tmp_path / "bought.npz")).bought == kind


def test_owners_may_count_who_is_absent_in_numpys_numbers() -> None:
    data = jaxcd.networks.load("cancer").sample(300, key=KEY)
    sites = {name: data for name in ("north", "south", "east")}
    options = {"budget": jaxcd.Budget(1.0), "dropouts": np.int64(1), "colluding": np.int64(1)}
    bought = jaxcd.federate(sites, jaxcd.Histogram(), noise=NOISE, **options)
    assert bought.n_samples == 900


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


def test_an_array_without_dimensions_is_no_collection() -> None:
    """It is an Iterable by its class, and ended with a bare error."""
    one = np.array(1)
    for error, make in (
        (OptionError, lambda: jaxcd.Knowledge(tiers=one)),
        (OptionError, lambda: jaxcd.Knowledge(forbidden=one)),
        (DomainError, lambda: jaxcd.Categorical(one)),
        (DomainError, lambda: jaxcd.Binned(one)),
        (DomainError, lambda: jaxcd.Numeric(missing=one)),
        (DataError, lambda: jaxcd.Dataset.from_array(np.eye(3), names=one)),
    ):
        with pytest.raises(error, match="array"):
            make()


@pytest.mark.parametrize("flag", ["strict", "clip"])
@pytest.mark.parametrize("value", ["no", "False", 0, np.array([])])
def test_reading_takes_truth_values_only(tmp_path: Path, flag: str, value: object) -> None:
    """The text "no" counted as True."""
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,1\n")
    frame = pandas.DataFrame({"a": [1, 2], "b": [2, 1]})
    domain = jaxcd.Domain({"a": jaxcd.Ordinal((1, 2)), "b": jaxcd.Ordinal((1, 2))})
    for read in (
        lambda **more: jaxcd.read_csv(tmp_path / "t.csv", domain=domain, **more),
        lambda **more: jaxcd.Dataset.from_frame(frame, domain=domain, **more),
        lambda **more: jaxcd.Dataset.from_array([[1, 2], [2, 1]], domain=domain, **more),
    ):
        with pytest.raises(OptionError, match=f"{flag} = .* is not True or False"):
            read(**{flag: value})


def test_what_is_no_domain_or_kind_is_named() -> None:
    with pytest.raises(DomainError, match="bool is not a Domain"):
        jaxcd.Dataset.from_array(np.eye(3), domain=True)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no kind of release"):
        jaxcd.Discretised(of={})  # type: ignore[arg-type]
