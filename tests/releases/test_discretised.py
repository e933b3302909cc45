"""Numeric columns cut at private quantiles, and tables of their bins."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.data import Missing
from jaxcd.data.column_types import Binned
from jaxcd.errors import BudgetExhausted, DomainError, OptionError
from jaxcd.privacy import Accountant, Ledger, Unit
from jaxcd.privacy.rank_maps import RankMaps
from jaxcd.queries import Door
from jaxcd.releases import LogLinear, Marginals, ReleasedMarginals
from jaxcd.releases.bought_ranks import bought_ranks, quantiles
from tests.helpers import measured, refused, simulated

BUDGET = jaxcd.Budget(4.0, 1e-6)


def mixed(n: int = 4_000, *, seed: int = 0, **options: Any) -> jaxcd.Dataset:
    """group -> dose -> response, and a number beside them, without bounds."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    dose = group + rng.normal(size=n)
    response = dose + rng.normal(size=n)
    beside = rng.normal(0, 100, size=n)
    domain = jaxcd.Domain(
        {
            "group": jaxcd.Categorical((0, 1, 2)),
            "dose": jaxcd.Numeric(-10, 12),
            "response": jaxcd.Numeric(-20, 20),
            "beside": jaxcd.Numeric(),
        },
        **options,
    )
    return jaxcd.Dataset.from_array(
        np.column_stack([group, dose, response, beside]), names=list(domain), domain=domain
    )


def test_the_chain_is_found_and_the_bins_hold_equal_shares() -> None:
    data = mixed(20_000)
    bought = jaxcd.release(data, jaxcd.Discretised(), budget=BUDGET, noise=simulated())
    assert isinstance(bought, ReleasedMarginals)
    assert str(jaxcd.search(bought).graph) == "group --- dose\ndose --- response"
    for name in ("dose", "response", "beside"):
        column = bought.domain[name]
        assert isinstance(column, Binned) and len(column.levels) == 6
        counts = np.bincount(column.bins_of(data.values(name)), minlength=6)
        assert np.abs(counts / 20_000 - 1 / 6).max() < 0.03
    assert bought.domain["group"] == data.domain["group"]


def test_the_price_is_the_budget_and_the_quantiles_have_their_share() -> None:
    ledger = Ledger(BUDGET)
    bought = jaxcd.release(
        mixed(), jaxcd.Discretised(share=0.25), budget=BUDGET, noise=simulated(), ledger=ledger
    )
    whole = Ledger(BUDGET).remaining_rho
    prices = [row["rho"] for row in bought.charges]
    assert bought.charges[0]["label"] == "rank maps"
    assert prices[0] == pytest.approx(whole / 4, rel=1e-9)
    assert math.fsum(prices) <= whole and math.fsum(prices) == pytest.approx(whole, rel=1e-6)
    assert bought.spent.epsilon <= bought.cost.epsilon == BUDGET.epsilon
    assert len(ledger.entries) == len(bought.charges)


@pytest.mark.parametrize("kind", [Marginals(), LogLinear()])
def test_what_is_bought_of_bins_is_what_is_bought_of_declared_ones(kind: Any) -> None:
    """Without privacy: the tables of the bins, as if these had been declared."""
    data = mixed()
    bought = jaxcd.release(data, jaxcd.Discretised(kind, bins=3), budget=jaxcd.NO_PRIVACY)
    declared = data.in_bins({v: bought.domain[v] for v in ("dose", "response", "beside")})  # type: ignore[misc]
    same = jaxcd.release(declared, kind, budget=jaxcd.NO_PRIVACY)
    assert bought.domain == same.domain == declared.domain
    assert bought.interactions.keys() == same.interactions.keys()
    for columns, numbers in bought.interactions.items():
        assert np.array_equal(numbers, same.interactions[columns])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60),
    st.sampled_from([(-1e6, 1e6), None, (-3.0, 2.0)]),
    st.integers(2, 8),
)
def test_without_noise_the_cuts_are_quantiles_to_a_leaf(
    values: list[float], bounds: tuple[float, float] | None, n_bins: int
) -> None:
    column = jaxcd.Numeric(*(bounds or ()))
    low, high = bounds or (-math.sinh(16), math.sinh(16))
    x = np.clip(np.array(values), low, high)
    domain = jaxcd.Domain({"x": column, "y": jaxcd.Numeric()})
    data = jaxcd.Dataset.from_array(np.column_stack([x, x]), names=["x", "y"], domain=domain)
    maps = bought_ranks(
        Door(data, jaxcd.NO_PRIVACY),
        Accountant(jaxcd.privacy.Ledger(jaxcd.NO_PRIVACY)),
        ["x"],
        rho=math.inf,
        log_range=16.0,
        n_levels=10,
    )
    shares = np.arange(1, n_bins) / n_bins
    cuts = quantiles(maps, 0, column, shares)
    assert (np.diff(cuts) >= 0).all() and (cuts >= low).all() and (cuts <= high).all()
    # the edges of the leaf of a cut, between which the share of the rows must be reached
    if bounds is None:
        step = 32 / 1024
        below, above = np.sinh(np.arcsinh(cuts) - step), np.sinh(np.arcsinh(cuts) + step)
    else:
        step = (high - low) / 1024
        below, above = cuts - step, cuts + step
    for share, under, over in zip(shares, below, above, strict=True):
        assert np.mean(x < under) <= share + 1e-12 and np.mean(x <= over) >= share - 1e-12


def test_a_share_that_no_row_reaches_first_is_cut_where_rows_are() -> None:
    flat = RankMaps(8.0, (np.array([0.0, 0.0, 0.5, 0.5, 1.0]),), 0.0)
    cuts = quantiles(flat, 0, jaxcd.Numeric(0, 4), [0.25, 0.5, 0.75])
    assert np.allclose(cuts, [1.5, 2.0, 3.5])


def test_a_column_of_one_value_and_one_of_two() -> None:
    rng = np.random.default_rng(0)
    two = rng.integers(2, size=2_000)
    columns = np.column_stack([np.full(2_000, 3.0), two, two + rng.normal(size=2_000)])
    domain = jaxcd.Domain({v: jaxcd.Numeric(-5, 5) for v in "abc"})
    data = jaxcd.Dataset.from_array(columns, names=list("abc"), domain=domain)
    for budget in (BUDGET, jaxcd.NO_PRIVACY):
        noise = simulated() if budget is BUDGET else None
        bought = jaxcd.release(data, jaxcd.Discretised(bins=4), budget=budget, noise=noise)
        assert str(jaxcd.search(bought).graph) == "b --- c"


def test_missing_cells_stay_missing() -> None:
    data = mixed(10_000)
    rng = np.random.default_rng(4)
    frame = data.to_frame()
    frame.loc[rng.random(10_000) < 0.3, "dose"] = np.nan
    columns = {**data.domain.columns, "dose": jaxcd.Numeric(-10, 12, missing=True)}
    holes = jaxcd.Dataset.from_frame(frame, domain=jaxcd.Domain(columns))
    bought = jaxcd.release(holes, jaxcd.Discretised(bins=3), budget=BUDGET, noise=simulated())
    assert bought.domain["dose"].missing == () and bought.domain["dose"].cardinality == 4
    known = ~holes.is_missing("dose")
    codes = bought.domain["dose"].bins_of(holes.values("dose")[known])
    assert np.abs(np.bincount(codes, minlength=3) / known.sum() - 1 / 3).max() < 0.05
    assert str(jaxcd.search(bought).graph) == "group --- dose\ndose --- response"
    assert jaxcd.search(bought, missing=Missing.LEVEL).graph.names == data.names


def test_people_with_several_rows() -> None:
    rng = np.random.default_rng(1)
    one = mixed(3_000)
    rows = np.repeat(np.arange(3_000), rng.integers(1, 6, size=3_000))
    domain = jaxcd.Domain(one.domain.columns, person="pid")
    part = one.where(np.ones(3_000, dtype=bool))
    many = jaxcd.Dataset(domain, part.discrete[rows], part.numeric[rows], people=rows)
    budget = jaxcd.Budget(8.0, 1e-6, unit=Unit.PERSON)
    bought = jaxcd.release(many, jaxcd.Discretised(), budget=budget, noise=simulated())
    assert bought.n_samples == 3_000
    assert str(jaxcd.search(bought).graph) == "group --- dose\ndose --- response"


def test_a_table_that_stays_where_it_is_gives_the_same_numbers(tmp_path: Path) -> None:
    data = mixed(30_000)
    frame = polars.from_pandas(data.to_frame())
    frame.write_parquet(tmp_path / "t.parquet")
    lazy = jaxcd.Table(frame.lazy(), domain=data.domain, n_samples=30_000, snapshot="v1")
    files = jaxcd.Table.parquet(
        tmp_path / "t.parquet", domain=data.domain, n_samples=30_000, snapshot="v1"
    )
    releases = [
        jaxcd.release(rows, jaxcd.Discretised(), budget=BUDGET, noise=simulated())
        for rows in (data, lazy, files)
    ]
    for other in releases[1:]:
        assert other.domain == releases[0].domain and other.snapshot == "v1"
        for columns, numbers in releases[0].interactions.items():
            assert np.array_equal(numbers, other.interactions[columns])


def test_rows_on_devices_give_the_same_numbers() -> None:
    data = mixed(3_000)
    mesh = jax.make_mesh((jax.device_count(),), ("rows",))
    here, there = (
        jaxcd.release(rows, jaxcd.Discretised(), budget=BUDGET, noise=simulated())
        for rows in (data, data.on(mesh))
    )
    assert here.domain == there.domain
    for columns, numbers in here.interactions.items():
        assert np.array_equal(numbers, there.interactions[columns])


def test_a_saved_release_is_read_and_redrawn(tmp_path: Path) -> None:
    kind = jaxcd.Discretised(LogLinear(alpha=0.02), bins=3, share=0.1)
    bought = jaxcd.release(mixed(), kind, budget=BUDGET, noise=simulated())
    bought.save(tmp_path / "release.npz")
    read = jaxcd.Release.load(tmp_path / "release.npz")
    assert read.bought == kind == bought.bought and read.domain == bought.domain
    found = jaxcd.edge_confidence(read, n_draws=5)
    assert found.adjacency[0, 1] > 0.8 and found.adjacency[1, 2] > 0.8


def test_a_stranger_kind_of_bins_is_refused() -> None:
    cases: list[Callable[[], Any]] = [
        lambda: jaxcd.Discretised(jaxcd.Features()),
        lambda: jaxcd.Discretised(jaxcd.Histogram()),
        lambda: jaxcd.Discretised("marginals"),  # type: ignore[arg-type]
        lambda: jaxcd.Discretised(bins=1),
        lambda: jaxcd.Discretised(share=1.0),
    ]
    for case in cases:
        with pytest.raises(OptionError):
            case()
    with pytest.raises(OptionError, match="delta"):
        jaxcd.release(mixed(100), jaxcd.Discretised(), budget=jaxcd.Budget(1.0))
    with pytest.raises(DomainError, match="not numeric"):
        mixed(10).in_bins({"group": Binned((0, 1, 2))})


def test_a_ledger_without_room_refuses_and_keeps_what_was_paid() -> None:
    ledger = Ledger(jaxcd.Budget(0.5, 1e-6))
    with pytest.raises(BudgetExhausted):
        jaxcd.release(
            mixed(100), jaxcd.Discretised(), budget=BUDGET, noise=simulated(), ledger=ledger
        )


@pytest.mark.parametrize(
    ("n", "epsilon", "bins"), [(300, 1.0, 2), (3_000, 1.0, 3), (12_000, 1.0, 4), (10**6, 4, 6)]
)
def test_the_number_of_bins_follows_public_facts(n: int, epsilon: float, bins: int) -> None:
    budget = jaxcd.Budget(epsilon, 1e-6)
    chosen = jaxcd.Discretised().chosen(mixed(10).domain, n, budget=budget)
    assert chosen.bins == bins
    planned = jaxcd.plan_release(mixed(10).domain, n, kind=jaxcd.Discretised(), budget=budget)
    same = jaxcd.plan_release(mixed(10).domain, n, kind=chosen, budget=budget)
    assert planned == same and planned.noise > 0


def test_the_planned_noise_and_the_bought_one_follow_the_share() -> None:
    data = mixed(5_000)

    def of(share: float) -> tuple[float, np.ndarray]:
        kind = jaxcd.Discretised(bins=3, share=share)
        bought = jaxcd.release(data, kind, budget=BUDGET, noise=simulated())
        planned = jaxcd.plan_release(data.domain, 5_000, kind=kind, budget=BUDGET)
        return planned.noise, np.asarray(bought.variances[0, 1])

    (few, of_few), (many, of_many) = of(0.2), of(0.6)
    assert many / few == pytest.approx(math.sqrt(2), rel=1e-9)
    assert np.allclose(of_many / of_few, 2, rtol=1e-6)
    in_levels = jaxcd.Discretised(bins=3).in_levels(data.domain)
    tables = jaxcd.plan_release(in_levels, 5_000, kind=Marginals(), budget=BUDGET)
    assert few == pytest.approx(tables.noise / math.sqrt(0.8), rel=1e-9)


def test_large_numbers_need_no_bounds() -> None:
    """Incomes, without declared bounds, and what follows from them."""
    rng = np.random.default_rng(3)
    income = np.exp(rng.normal(10.5, 0.6, size=8_000))
    rent = 0.2 * income * np.exp(rng.normal(0, 0.3, size=8_000))
    domain = jaxcd.Domain({"income": jaxcd.Numeric(), "rent": jaxcd.Numeric()})
    data = jaxcd.Dataset.from_array(
        np.column_stack([income, rent]), names=list(domain), domain=domain
    )
    bought = jaxcd.release(data, jaxcd.Discretised(), budget=BUDGET, noise=simulated())
    assert str(jaxcd.search(bought).graph) == "income --- rent"
    counts = np.bincount(bought.domain["income"].bins_of(income))
    assert np.abs(counts / 8_000 - 1 / len(counts)).max() < 0.03


def test_cuts_are_short_numbers() -> None:
    rng = np.random.default_rng(2)
    years = 2010 + 5 * rng.random(5_000)
    tiny = 1e-9 * rng.random(5_000)
    domain = jaxcd.Domain(
        {
            "year": jaxcd.Numeric(2010, 2015),
            "tiny": jaxcd.Numeric(0, 1e-9),
            "free": jaxcd.Numeric(),
            "huge": jaxcd.Numeric(-1e300, 1e300),
        }
    )
    columns = np.column_stack([years, tiny, 100 * years, 1e300 * (2 * rng.random(5_000) - 1)])
    data = jaxcd.Dataset.from_array(columns, names=list(domain), domain=domain)
    bought = jaxcd.release(data, jaxcd.Discretised(bins=4), budget=BUDGET, noise=simulated())
    for name in ("year", "tiny", "huge"):
        column = bought.domain[name]
        assert isinstance(column, Binned) and len(column.edges) == 5
        counts = np.bincount(column.bins_of(data.values(name)), minlength=4)
        assert np.abs(counts / 5_000 - 1 / 4).max() < 0.05
    assert all(len(repr(edge)) <= 8 for edge in bought.domain["year"].edges)


@pytest.mark.parametrize("kind", [jaxcd.Discretised(), jaxcd.Features()], ids=str)
@pytest.mark.parametrize("bounds", [(), (0.0, 1000.0)])
def test_quantiles_are_found_where_noise_hides_a_fifth_of_the_rows(
    kind: Any, bounds: tuple[float, ...]
) -> None:
    """Ten columns of mean 50, 2,000 rows: with nodes divided evenly below four standard deviations
    of noise all rows were in one bin, and a chain of strong effects had no edge.
    """
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        chain = [rng.normal(size=2_000)]
        for _ in range(9):
            chain.append(chain[-1] + 0.6 * rng.normal(size=2_000))
            chain[-1] /= chain[-1].std()
        domain = jaxcd.Domain({f"x{i}": jaxcd.Numeric(*bounds) for i in range(10)})
        data = jaxcd.Dataset.from_array(50 + 10 * np.stack(chain, axis=1), domain=domain)
        budget = jaxcd.Budget(1.0, 1e-6)
        graph = jaxcd.search(
            jaxcd.release(data, kind, budget=budget, noise=simulated(seed))
        ).graph.reordered(domain.names)
        found.append(np.diag(graph.adjacency, 1).mean())
    assert np.mean(found) > 0.7


def test_the_share_of_the_quantiles_follows_public_facts() -> None:
    domain = jaxcd.Domain({f"x{i}": jaxcd.Numeric() for i in range(10)})
    kind = jaxcd.Discretised()
    assert kind.share_of(domain, 10**6, rho=0.01) == 0.05
    assert kind.share_of(domain, 100, rho=0.01) == 0.15
    middle = kind.share_of(domain, 5_000, rho=0.02)
    assert middle == pytest.approx(2 * 12 * 10 / (0.05 * 5_000) ** 2 / 0.04, rel=1e-6)
    assert jaxcd.Discretised(share=0.4).share_of(domain, 100, rho=0.01) == 0.4
    levels = jaxcd.Domain({"a": jaxcd.Categorical((0, 1))})
    assert kind.share_of(levels, 100, rho=0.01) == 0


@pytest.mark.parametrize(
    "kind", [jaxcd.Discretised(), jaxcd.Features(n_features=2)], ids=["bins", "features"]
)
def test_a_budget_that_buys_nothing_is_refused(kind: Any) -> None:
    """Its rho is too small for a float: a division by zero."""
    budget, data = jaxcd.Budget(1e-200, 1e-300), measured(np.zeros((20, 3)), -1, 1)
    refused(OptionError, "positive", jaxcd.release, data, kind, budget=budget, noise=simulated())


def test_edges_that_were_bought_are_not_called_declared(tmp_path: Path) -> None:
    """In the certificate, the report and what is read back; and nothing of the kind elsewhere."""
    data, budget = mixed(), jaxcd.Budget(1.0, 1e-6)
    released = jaxcd.release(data, jaxcd.Discretised(), budget=budget)
    words = "the edges of the bins of columns that were declared numeric"
    assert released.certificate()["bought_in_domain"] == words
    run = jaxcd.search(released)
    page = (run.save(tmp_path / "made") / "report.html").read_text()
    assert f"bought, and not declared: {words}" in page
    assert run.certificate()["settings"]["bought_in_domain"] == words
    assert jaxcd.DiscoveryResult.load(tmp_path / "made") == run
    again = jaxcd.Release.load(released.save(tmp_path / "bought.npz"))
    assert again.certificate() == released.certificate()
    other = jaxcd.search(jaxcd.release(data, jaxcd.Features(), budget=budget))
    page = (other.save(tmp_path / "other") / "report.html").read_text()
    assert "not declared" not in page
