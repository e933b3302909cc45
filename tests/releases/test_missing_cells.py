"""Searches and tests on data and releases with missing cells, in both readings."""

from __future__ import annotations

import copy
import itertools
import pickle

import jax
import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.citests import Query
from jaxcd.data import Missing
from jaxcd.errors import OptionError
from jaxcd.ops.moments import contrast_basis
from jaxcd.ops.tilted_moments import pack
from jaxcd.queries import Door, Session
from jaxcd.releases import Release
from jaxcd.releases.features.feature_covariances import feature_sensitivity
from jaxcd.releases.features.rare_levels import level_shares
from jaxcd.releases.tables.available_interactions import levels_by_known_rows

KINDS = [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear()]


def holes(data: jaxcd.Dataset, rate: float, seed: int = 0) -> jaxcd.Dataset:
    """The data with cells missing completely at random."""
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical(c.levels, missing=True) for name, c in data.domain.columns.items()}
    )
    codes = np.array(data.codes)
    gone = np.random.default_rng(seed).random(codes.shape) < rate
    codes[gone] = np.array([c.missing_code for c in domain.columns.values()])[np.nonzero(gone)[1]]
    return jaxcd.Dataset.from_codes(codes, domain=domain)


def sample(name: str, n: int, seed: int = 0) -> jaxcd.Dataset:
    return jaxcd.networks.load(name).sample(n, key=jax.random.key(seed))


@pytest.mark.parametrize("name", ["cancer", "asia"])
def test_searches_on_data_find_what_complete_data_tell(name) -> None:
    data = sample(name, 40_000)
    truth = jaxcd.exact_search(data, budget=jaxcd.NO_PRIVACY).graph
    found = jaxcd.exact_search(holes(data, 0.2), budget=jaxcd.NO_PRIVACY).graph
    assert jaxcd.metrics.arc_f1(found, truth) > 0.95


def test_what_is_complete_is_scored_as_ever() -> None:
    data = sample("survey", 2_000)
    for score in (jaxcd.BIC(), jaxcd.BIC(2.0)):
        before = score.prepare(data, max_parents=3)
        after = score.prepare(holes(data, 0.0), max_parents=3)
        for node in range(6):
            families = before.families(node)
            assert after.families(node) == families
            assert np.allclose(after.locals(node, families), before.locals(node, families))


def test_numeric_columns_with_holes() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 3))
    x[:, 1] += x[:, 0]
    x[:, 2] += x[:, 1]
    names = ("a", "b", "c")
    domain = jaxcd.Domain({name: jaxcd.Numeric(-20, 20, missing=True) for name in names})
    x[rng.random(x.shape) < 0.3] = np.nan
    data = jaxcd.Dataset.from_array(x, names=names, domain=domain)
    for graph in (
        jaxcd.ges(data, budget=jaxcd.NO_PRIVACY).graph,
        jaxcd.pc(
            data,
            test=jaxcd.FisherZ(),
            decider=jaxcd.Threshold(0.01),
            budget=jaxcd.NO_PRIVACY,
            key=None,
        ).graph,
    ):
        assert graph.adjacent("a", "b") and graph.adjacent("b", "c")
        assert not graph.adjacent("a", "c")


@pytest.mark.parametrize(
    "test", [jaxcd.ChiSquare(), jaxcd.GTest(), jaxcd.KendallTau()], ids=lambda test: test.name
)
def test_a_test_on_data_is_the_test_on_the_complete_rows(test) -> None:
    data = holes(sample("asia", 3_000), 0.15)
    session = Session(Door(data, jaxcd.NO_PRIVACY), test, alpha=0.05)
    queries = [Query(0, 1, ()), Query(2, 3, (4,)), Query(5, 7, (3, 4)), Query(0, 6, (1, 5))]
    found = session.evaluate(queries)
    for i, query in enumerate(queries):
        asked = sorted((query.x, query.y, *query.given))
        rows = data.complete_cases([data.names[j] for j in asked])
        assert rows.n_samples < data.n_samples and not rows.domain.has_missing
        alone = Session(Door(rows, jaxcd.NO_PRIVACY), test, alpha=0.05)
        place = [asked.index(j) for j in (query.x, query.y, *query.given)]
        expected = alone.evaluate([Query(place[0], place[1], tuple(place[2:]))])
        assert found.statistic[i] == pytest.approx(expected.statistic[0], rel=1e-9)
        assert found.log_pvalue[i] == pytest.approx(expected.log_pvalue[0], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS[:2], ids=lambda kind: kind.word)
def test_a_release_without_noise_tests_the_complete_cells(kind) -> None:
    data = holes(sample("cancer", 5_000), 0.2)
    bought = jaxcd.release(data, kind, budget=jaxcd.NO_PRIVACY)
    query = Query(1, 2, ())
    on_data = Session(Door(data, jaxcd.NO_PRIVACY), jaxcd.ChiSquare(), alpha=0.05)
    on_release = Session(Door(bought, jaxcd.NO_PRIVACY), jaxcd.ChiSquare(), alpha=0.05)
    assert on_release.evaluate([query]).statistic[0] == pytest.approx(
        on_data.evaluate([query]).statistic[0], rel=1e-6
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)
def test_releases_without_noise_find_what_complete_data_tell(kind, tmp_path) -> None:
    data = sample("cancer", 50_000)
    truth = jaxcd.exact_search(data, budget=jaxcd.NO_PRIVACY).graph
    bought = jaxcd.release(holes(data, 0.2), kind, budget=jaxcd.NO_PRIVACY)
    assert jaxcd.metrics.skeleton_f1(jaxcd.search(bought).graph, truth) > 0.9
    again = Release.load(bought.save(tmp_path / "r.npz"))
    assert again.domain == bought.domain and again.missing is Missing.IGNORE
    assert jaxcd.search(again).graph == jaxcd.search(bought).graph
    for other in (pickle.loads(pickle.dumps(bought)), copy.deepcopy(bought)):  # scored before
        assert jaxcd.search(other).graph == jaxcd.search(bought).graph


def test_tables_are_as_large_as_the_rows_that_know_their_columns_allow() -> None:
    data = holes(sample("cancer", 4_000), 0.3)
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=jaxcd.NO_PRIVACY)
    known = (np.array(data.codes) < 2).mean(axis=0)
    assert levels_by_known_rows(bought) == pytest.approx(2 / known)
    assert levels_by_known_rows(bought.reading("level")) == (3,) * 5
    complete = jaxcd.release(sample("cancer", 400), jaxcd.Marginals(), budget=jaxcd.NO_PRIVACY)
    assert levels_by_known_rows(complete) == (2,) * 5


@pytest.mark.parametrize("reading, measured", [("ignore", True), ("level", False)])
def test_codes_that_are_left_out_make_no_table_too_large(reading, measured) -> None:
    """A table of four columns is measured where its cells of known levels are few enough."""
    rng = np.random.default_rng(0)
    n = 4_000
    causes = rng.integers(0, 2, (n, 3))
    effect = (causes.sum(axis=1) + (rng.random(n) < 0.1)) % 2
    codes = np.column_stack([causes, effect | (causes[:, 0] & causes[:, 1])]).astype(np.int32)
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1), missing=True) for name in "abcd"})
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    kind = jaxcd.Marginals(max_cells=20 / n)
    bought = jaxcd.release(data, kind, missing=reading, budget=jaxcd.NO_PRIVACY)
    assert bought.is_measured((0, 1, 2, 3)) == measured


def _missing_by_another(n: int, seed: int) -> jaxcd.Dataset:
    """w -> z, and x apart; whether x is missing depends on z, which is seen."""
    rng = np.random.default_rng(seed)
    w = rng.random(n) < 0.5
    z = rng.random(n) < np.where(w, 0.8, 0.3)
    x = (rng.random(n) < 0.3).astype(int)
    x[rng.random(n) < np.where(z, 0.6, 0.05)] = 2
    domain = jaxcd.Domain(
        {
            "w": jaxcd.Categorical((0, 1)),
            "z": jaxcd.Categorical((0, 1)),
            "x": jaxcd.Categorical((0, 1), missing=True),
        }
    )
    return jaxcd.Dataset.from_codes(np.column_stack([w, z, x]).astype(np.int32), domain=domain)


@pytest.mark.parametrize("kind", [None, *KINDS], ids=["data", *(kind.word for kind in KINDS)])
def test_missing_at_random_joins_nothing_where_it_is_ignored(kind) -> None:
    joined = {"ignore": 0, "level": 0}
    for seed in range(5):
        data = _missing_by_another(20_000, seed)
        for reading in joined:
            if kind is None:
                graph = jaxcd.exact_search(data.reading(reading), budget=jaxcd.NO_PRIVACY).graph
            else:
                noise = jaxcd.SimulatedNoise(jax.random.key(seed))
                bought = jaxcd.release(
                    data, kind, missing=reading, budget=jaxcd.Budget(2.0, 1e-6), noise=noise
                )
                graph = jaxcd.search(bought, missing=reading).graph
            joined[reading] += graph.adjacent("x", "z") or graph.adjacent("x", "w")
    assert joined == {"ignore": 0, "level": 5}


def test_what_is_missing_for_its_own_reason_is_seen_by_the_level() -> None:
    """y makes people leave x out, and nothing else joins them."""
    rng = np.random.default_rng(0)
    n = 20_000
    y = rng.random(n) < 0.4
    x = (rng.random(n) < 0.5).astype(int)
    x[rng.random(n) < np.where(y, 0.5, 0.1)] = 2
    domain = jaxcd.Domain(
        {"x": jaxcd.Categorical((0, 1), missing=True), "y": jaxcd.Categorical((0, 1))}
    )
    data = jaxcd.Dataset.from_codes(np.column_stack([x, y]).astype(np.int32), domain=domain)
    graphs = {
        reading: jaxcd.ges(data.reading(reading), budget=jaxcd.NO_PRIVACY).graph.n_edges
        for reading in ("ignore", "level")
    }
    assert graphs == {"ignore": 0, "level": 1}


def test_readings_that_do_not_exist() -> None:
    data = holes(sample("cancer", 100), 0.2)
    with pytest.raises(OptionError, match='"ignore"'):
        data.reading("drop")
    with pytest.raises(OptionError, match="BDeu has no form"):
        jaxcd.ges(data, score=jaxcd.BDeu(), budget=jaxcd.NO_PRIVACY)
    assert jaxcd.ges(data.reading("level"), score=jaxcd.BDeu(), budget=jaxcd.NO_PRIVACY).graph


def test_confidence_draws_missing_cells_again() -> None:
    data = holes(sample("cancer", 20_000), 0.2)
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=jaxcd.Budget(2.0, 1e-6), noise=noise)
    found = jaxcd.search(bought)
    sure = jaxcd.edge_confidence(bought, found, n_draws=3, seed=1)
    assert sure is not None


def _mixed_table(n: int, rate: float, seed: int) -> jaxcd.Dataset:
    """group -> dose -> age, and noise apart; cells missing completely at random."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    dose = group + rng.normal(size=n)
    age = dose + rng.normal(size=n)
    apart = rng.normal(size=n)
    rows = np.column_stack([group, dose, age, apart]).astype(object)
    rows[rng.random(rows.shape) < rate] = None
    domain = jaxcd.Domain(
        {
            "group": jaxcd.Categorical((0, 1, 2), missing=True),
            "dose": jaxcd.Numeric(-6, 9, missing=True),
            "age": jaxcd.Numeric(-9, 12, missing=True),
            "apart": jaxcd.Numeric(-6, 6, missing=True),
        }
    )
    return jaxcd.Dataset.from_array(rows, domain=domain)


@pytest.mark.parametrize("budget", [jaxcd.NO_PRIVACY, jaxcd.Budget(1.0, 1e-6)], ids=str)
def test_features_count_in_the_rows_that_know_a_pair(budget) -> None:
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    bought = jaxcd.release(
        _mixed_table(20_000, 0.3, 0), jaxcd.Features(), budget=budget, noise=noise
    )
    assert bought.sizes[0] == 3 and bought.counted.sizes[0] == 2
    assert bought.counted.n_samples == pytest.approx(0.49 * 20_000, rel=0.05)
    graph = jaxcd.search(bought).graph
    assert graph.adjacent("group", "dose") and graph.adjacent("dose", "age")
    assert not any(graph.adjacent("apart", name) for name in ("group", "dose", "age"))
    assert not graph.adjacent("group", "age")


def _features_of(data: jaxcd.Dataset) -> tuple[jaxcd.releases.ReleasedFeatures, np.ndarray]:
    """A release of discrete columns without noise, and its features row by row."""
    vectors = []
    for name in data.names:
        column = data.domain[name]
        k = len(column.levels)
        levels = contrast_basis(k) / np.sqrt(1 - 1 / k)
        codes = data.codes[:, data.names.index(name)]
        known = codes < k
        mark = (~known)[:, None].astype(float)
        vectors.append(np.hstack([mark, known[:, None] * levels[np.minimum(codes, k - 1)]]))
    return jaxcd.release(data, jaxcd.Features(), budget=jaxcd.NO_PRIVACY), np.hstack(vectors)


def test_covariances_without_noise_are_those_of_the_rows_that_know_both() -> None:
    """Cells are missing together, apart, and where another column says so."""
    rng, n = np.random.default_rng(0), 900
    values = rng.integers(0, 3, (n, 4)).astype(object)
    values[:, 1] = np.where(rng.random(n) < 0.5, values[:, 0], values[:, 1])
    values[rng.random(n) < 0.3, :2] = None
    values[(values[:, 3] == 0) & (rng.random(n) < 0.6), 2] = None
    values[rng.random(n) < 0.1, 3] = None
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1, 2), missing=True) for name in "abcd"})
    frame = pd.DataFrame(values, columns=list("abcd"))
    bought, vectors = _features_of(jaxcd.Dataset.from_frame(frame, domain=domain))
    np.testing.assert_allclose((vectors**2).sum(axis=1), 4.0, rtol=1e-12)  # of one length
    counted = bought.counted
    for j, k in itertools.combinations(range(4), 2):
        both = (vectors[:, 3 * j] == 0) & (vectors[:, 3 * k] == 0)
        x, y = (vectors[both, 3 * i + 1 : 3 * i + 3] for i in (j, k))
        truth = (x - x.mean(axis=0)).T @ (y - y.mean(axis=0)) / both.sum()
        found = counted.covariance[np.ix_(counted.blocks[j], counted.blocks[k])]
        np.testing.assert_allclose(found, truth, atol=1e-4)  # features lie on a grid
    for j in range(4):
        own = vectors[vectors[:, 3 * j] == 0, 3 * j + 1 : 3 * j + 3]
        np.testing.assert_allclose(counted.means[counted.blocks[j]], own.mean(axis=0), atol=1e-4)
        found = counted.covariance[np.ix_(counted.blocks[j], counted.blocks[j])]
        np.testing.assert_allclose(found, np.cov(own.T, bias=True), atol=1e-4)


@pytest.mark.parametrize("lost", [(0, 1, 2), (0, 2)])
def test_columns_that_are_missing_together_get_no_false_edge(lost) -> None:
    """a -> b -> d.  When cells were taken to be missing independently, a and d were joined in each
    of these runs.
    """
    domain = jaxcd.Domain({name: jaxcd.Numeric(-9, 9, missing=True) for name in "abd"})
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(10_000, 3))
        for child in (1, 2):
            values[:, child] += 0.7 * values[:, child - 1]
        values[np.ix_(rng.random(10_000) < 0.3, lost)] = np.nan
        data = jaxcd.Dataset.from_array(values, names=list("abd"), domain=domain)
        noise = jaxcd.SimulatedNoise(jax.random.key(seed))
        budget = jaxcd.Budget(4.0, 1e-6)
        graph = jaxcd.search(
            jaxcd.release(data, jaxcd.Features(), budget=budget, noise=noise)
        ).graph
        assert graph.adjacent("a", "b") and graph.adjacent("b", "d")
        assert not graph.adjacent("a", "d")


@pytest.mark.parametrize(("known", "together"), [(5, 5), (20, 20), (50, 0)])
def test_columns_that_hardly_any_row_knows_are_not_joined(known, together) -> None:
    domain = jaxcd.Domain({name: jaxcd.Numeric(-9, 9, missing=True) for name in "abc"})
    for seed in range(3):
        values = np.random.default_rng(seed).normal(size=(2_000, 3))
        values[known:, 0] = np.nan
        first = known - together
        values[:first, 1] = values[first + known :, 1] = np.nan
        data = jaxcd.Dataset.from_array(values, names=list("abc"), domain=domain)
        bought = jaxcd.release(data, jaxcd.Features(), budget=jaxcd.NO_PRIVACY)
        assert not jaxcd.search(bought).graph.adjacent("a", "b"), seed


@pytest.mark.parametrize("epsilon", [0.05, 8.0, np.inf])
@pytest.mark.parametrize("n", [16, 60])
def test_searches_of_features_end_whatever_is_missing_and_however_noise_falls(n, epsilon) -> None:
    """What was paid for is searched: counts that noise drowns, columns that nobody filled in."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rates = rng.permutation([0.0, 0.1, 0.5, 0.95, 1.0])[:4]
        names = ["kind", "one", "dose", "age"]
        kinds = {
            "kind": jaxcd.Categorical((0, 1, 2), missing=True),
            "one": jaxcd.Categorical((0,), missing=True),
            "dose": jaxcd.Numeric(-4, 4, missing=True),
            "age": jaxcd.Numeric(-4, 4),
        }
        values = np.column_stack([rng.integers(0, 3, n), np.zeros(n), rng.normal(size=(n, 2))])
        values[:, :3][rng.random((n, 3)) < rates[:3]] = np.nan
        data = jaxcd.Dataset.from_array(values, names=names, domain=jaxcd.Domain(kinds))
        budget = jaxcd.NO_PRIVACY if epsilon == np.inf else jaxcd.Budget(epsilon, 1e-6)
        noise = None if epsilon == np.inf else jaxcd.SimulatedNoise(jax.random.key(seed))
        bought = jaxcd.release(data, jaxcd.Features(n_features=2), budget=budget, noise=noise)
        for reading in ("ignore", "level"):
            run = jaxcd.search(bought, missing=reading)
            assert np.isfinite(jaxcd.edge_confidence(bought, run, n_draws=2).adjacency).all()
            tested = jaxcd.pc(
                bought,
                test=jaxcd.CanonicalCorrelation(),
                decider=jaxcd.Threshold(),
                budget=jaxcd.NO_PRIVACY,
                missing=reading,
            )
            assert tested.graph.names == run.graph.names == tuple(names)


@pytest.mark.parametrize("share", [0.0, 0.02])
@pytest.mark.parametrize(("full", "empty"), [(2, 2), (6, 3)])
def test_columns_that_nobody_filled_in_do_not_empty_the_others(full, empty, share) -> None:
    """Of all pairs most are hardly known, and yet they are not what is usual."""
    names = [f"x{j}" for j in range(full + empty)]
    domain = jaxcd.Domain({name: jaxcd.Numeric(-9, 9, missing=True) for name in names})
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5_000, full + empty))
    for j in range(1, full):
        values[:, j] += values[:, j - 1]
    values /= values.std(axis=0)
    values[:, full:][rng.random((5_000, empty)) >= share] = np.nan
    data = jaxcd.Dataset.from_array(values, names=names, domain=domain)
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    budget = jaxcd.Budget(4.0, 1e-6)
    graph = jaxcd.search(jaxcd.release(data, jaxcd.Features(), budget=budget, noise=noise)).graph
    assert all(graph.adjacent(f"x{j}", f"x{j + 1}") for j in range(full - 1))
    assert not graph.adjacency[full:].any()


@pytest.mark.parametrize(
    "kind",
    [jaxcd.Features(), jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear()],
    ids=lambda kind: kind.word,
)
def test_confidence_reads_missing_cells_as_the_run_did(kind) -> None:
    """Edges of cells that are missing for the sick were given .00."""
    rng, n = np.random.default_rng(0), 4_000
    sick, group = rng.integers(0, 2, (2, n))
    codes = np.column_stack([sick, np.where((sick == 1) & (rng.random(n) < 0.6), 2, group)])
    domain = jaxcd.Domain(
        {"sick": jaxcd.Categorical((0, 1)), "group": jaxcd.Categorical((0, 1), missing=True)}
    )
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    noise = jaxcd.SimulatedNoise(jax.random.key(1))
    budget = jaxcd.Budget(4.0, 1e-6)
    bought = jaxcd.release(data, kind, budget=budget, noise=noise, missing="level")
    run = jaxcd.search(bought, missing="level")
    assert run.graph.adjacent("sick", "group")
    for release in (bought, bought.reading("level")):
        shares = jaxcd.edge_confidence(release, run, n_draws=8, calibrated=False)
        assert shares.of("sick", "group").adjacent == 1.0
    own = jaxcd.edge_confidence(bought.reading("level"), n_draws=8, calibrated=False)
    assert own.of("sick", "group").adjacent == 1.0


def test_no_more_cosines_count_than_the_rows_that_know_a_pair_would_have_got() -> None:
    kept = {}
    for share in (0.0, 0.6):
        domain = jaxcd.Domain({f"x{j}": jaxcd.Numeric(-4, 4, missing=True) for j in range(8)})
        rng = np.random.default_rng(0)
        values = rng.normal(size=(10_000, 8))
        values[rng.random(values.shape) < share] = np.nan
        data = jaxcd.Dataset.from_array(values, names=list(domain.names), domain=domain)
        noise = jaxcd.SimulatedNoise(jax.random.key(0))
        bought = jaxcd.release(data, jaxcd.Features(), budget=jaxcd.Budget(1.0, 1e-6), noise=noise)
        kept[share] = bought.counted.sizes[0]
        assert bought.sizes[0] == 1 + kept[0.0]
        assert bought.counted.moments.shape == (1 + 8 * kept[share],) * 2
    assert kept == {0.0: 6, 0.6: 2}


def test_missing_as_a_level_of_features_is_seen_and_left_out_where_it_is_rare() -> None:
    rng, n = np.random.default_rng(0), 5_000
    frame = pd.DataFrame(
        {
            "sick": rng.integers(0, 2, n),
            "dose": rng.normal(size=n),
            "kind": rng.choice(["p", "q", "r"], n),
            "never": rng.normal(size=n),
        }
    )
    frame.loc[(frame["sick"] == 1) & (rng.random(n) < 0.6), "dose"] = np.nan
    frame.loc[(frame["sick"] == 1) & (rng.random(n) < 0.6), "kind"] = None
    domain = jaxcd.Domain(
        {
            "sick": jaxcd.Categorical((0, 1)),
            "dose": jaxcd.Numeric(missing=True),
            "kind": jaxcd.Categorical(("p", "q", "r"), missing=True),
            "never": jaxcd.Numeric(missing=True),
        }
    )
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    bought = jaxcd.release(data, jaxcd.Features(), budget=jaxcd.NO_PRIVACY)
    assert not jaxcd.search(bought).graph.adjacency.any()
    run = jaxcd.search(bought, missing="level")
    assert run.graph.adjacent("sick", "dose") and run.graph.adjacent("sick", "kind")
    assert run.info["pooled_levels"] == {"never": ["missing"]}
    shares = [float((frame["kind"] == level).mean()) for level in "pqr"]
    expected = [*shares, float(frame["kind"].isna().mean())]
    np.testing.assert_allclose(level_shares(bought, 2), expected, atol=1e-3)


def test_a_row_that_goes_missing_moves_the_features_as_far_as_any_other() -> None:
    """All rows have one length, missing cells or not: p + a^2 bounds the distance."""
    rng = np.random.default_rng(0)
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1, 2), missing=True) for name in "abcd"})
    rest = rng.integers(0, 4, (60, 4))  # 3 is the code of a missing cell
    moments, largest = {}, 0.0
    for row in itertools.product(range(4), repeat=4):
        data = jaxcd.Dataset.from_codes(np.vstack([rest, row]), domain=domain)
        bought = jaxcd.release(data, jaxcd.Features(), budget=jaxcd.NO_PRIVACY)
        moments[row] = pack(bought.moments)
    whole = np.array([*moments.values()])
    for one in whole:
        largest = max(largest, float(np.linalg.norm(whole - one, axis=1).max()))
    bound = feature_sensitivity(bought.sizes, anchor=bought.anchor)
    assert 4 < largest <= bound and bound == pytest.approx(4.25, abs=1e-3)


def test_what_has_no_place_for_missing_numbers_says_so() -> None:
    data = _mixed_table(1_000, 0.1, 0).select(("dose", "age"))
    with pytest.raises(jaxcd.errors.DomainError, match="missing cells"):
        jaxcd.release(data, jaxcd.SecondMoments(), budget=jaxcd.NO_PRIVACY)
    advice = jaxcd.recommend(data.domain, 20_000, budget=jaxcd.Budget(1.0, 1e-6))
    assert isinstance(advice.kind, jaxcd.Features)


@pytest.mark.parametrize(
    "kind", [*KINDS, jaxcd.Features(), jaxcd.Discretised()], ids=lambda kind: kind.word
)
def test_a_release_is_read_as_it_was_bought_also_from_its_file(kind, tmp_path) -> None:
    data = holes(sample("cancer", 2_000), 0.1)
    for reading, found in ((None, "ignore"), ("ignore", "ignore"), ("level", "level")):
        bought = jaxcd.release(data, kind, missing=reading, budget=jaxcd.NO_PRIVACY)
        for release in (bought, Release.load(bought.save(tmp_path / "r.npz"))):
            assert release.missing is Missing.of(found)
            assert jaxcd.search(release).info["missing"] == found
            assert jaxcd.search(release, missing="ignore").info["missing"] == "ignore"


@pytest.mark.parametrize("reading", ["ignore", "level"])
def test_every_door_takes_the_reading(reading) -> None:
    data = holes(sample("cancer", 2_000), 0.1)
    off = jaxcd.NO_PRIVACY
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=off)
    plain = {"decider": jaxcd.Threshold(), "budget": off, "missing": reading}
    for graph in (
        jaxcd.search(bought, missing=reading).graph,
        jaxcd.ges(data, budget=off, missing=reading).graph,
        jaxcd.exact_search(data, budget=off, missing=reading).graph,
        jaxcd.pc(data, test=jaxcd.ChiSquare(), **plain).graph,
        jaxcd.fci(bought, test=jaxcd.ChiSquare(), **plain).graph,
        jaxcd.mmhc(data, score=jaxcd.BIC(), budget=off, missing=reading).graph,
    ):
        assert graph.names == data.names
    one, two = (
        jaxcd.ges(data, budget=off, missing=reading).graph,
        jaxcd.ges(data.reading(reading), budget=off).graph,
    )
    assert one == two
    with pytest.raises(OptionError, match="no reading of missing cells"):
        jaxcd.search(bought, missing="drop")


def test_a_column_that_is_missing_everywhere_is_joined_to_nothing() -> None:
    codes = np.array([[2, 0, 1], [2, 1, 0], [2, 0, 0], [2, 1, 1]] * 5, dtype=np.int32)
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1), missing=True) for name in "abc"})
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    run = jaxcd.pc(data, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY)
    assert run.graph.n_edges == 0


def test_a_mediator_with_missing_cells_still_explains_a_pair() -> None:
    """In the rows where the middle of a chain is missing its ends depend on each other; they are no
    candidates for that.
    """
    rng = np.random.default_rng(3)
    flips = rng.random((100_000, 5)) < 0.2
    codes = np.cumsum(flips, axis=1) % 2  # a chain of five columns
    data = holes(
        jaxcd.Dataset.from_codes(
            codes, domain=jaxcd.Domain({f"c{j}": jaxcd.Categorical(("0", "1")) for j in range(5)})
        ),
        0.3,
    )
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    budget = jaxcd.Budget(1.0, 1e-6)
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=budget, noise=noise)
    distances = {abs(j - k) for j, partners in enumerate(bought.candidates) for k in partners}
    assert 1 in distances and not distances & {3, 4}


@pytest.mark.parametrize("share", [0.95, 1.0])
def test_a_column_that_hardly_anybody_filled_in_does_not_drown_the_others(share) -> None:
    """Its noise is its own: what others show of each other stays."""
    rng, n = np.random.default_rng(0), 5_000
    values = rng.normal(size=(n, 6))
    for j in range(1, 5):
        values[:, j] += values[:, j - 1]
    values /= values.std(axis=0)
    values[rng.random(n) < share, 5] = np.nan
    bounded = {f"x{j}": jaxcd.Numeric(-5, 5, missing=j == 5) for j in range(6)}
    domain = jaxcd.Domain(bounded)
    data = jaxcd.Dataset.from_array(values, names=list(bounded), domain=domain)
    found = {}
    for name, rows in (("all", data), ("complete", data.select(list(bounded)[:5]))):
        noise = jaxcd.SimulatedNoise(jax.random.key(0))
        bought = jaxcd.release(rows, jaxcd.Features(), budget=jaxcd.Budget(4.0, 1e-6), noise=noise)
        found[name] = bought.default_score().effective_samples
        graph = jaxcd.search(bought).graph
        assert all(graph.has_edge(f"x{j}", f"x{j + 1}") for j in range(4)), name
        if name == "all":
            assert not graph.adjacency[5].any()
    assert found["all"] > found["complete"] / 2


def two_questionnaires(n_both: int, n: int = 1_000) -> jaxcd.Dataset:
    """b <- a -> c, of which one half of the rows knows b and the other c; a few know both."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    b, c = a + 0.5 * rng.normal(size=(2, n))
    b[n // 2 + n_both :], c[: n // 2] = np.nan, np.nan
    names = ("a", "b", "c")
    domain = jaxcd.Domain({name: jaxcd.Numeric(-20, 20, missing=True) for name in names})
    return jaxcd.Dataset.from_array(np.column_stack([a, b, c]), names=names, domain=domain)


@pytest.mark.parametrize("n_both", [0, 3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "test", [jaxcd.FisherZ(), jaxcd.KCI(), jaxcd.GCM(), jaxcd.RCIT()], ids=lambda test: test.name
)
def test_columns_that_no_rows_know_together_take_no_edge_from_others(test, n_both) -> None:
    """Of a and b given c no row tells anything, and nothing is known of b and c."""
    data = two_questionnaires(n_both)
    options = {"test": test, "budget": jaxcd.NO_PRIVACY, "key": jax.random.key(0)}
    found = jaxcd.pc(data, decider=jaxcd.Threshold(), **options)
    assert [str(edge) for edge in found.graph.edges()] == ["a --- b", "a --- c"]
    assert found.separating_sets == {}
    assert any("1 of 3 pairs was not measured" in words for words in found.info["warnings"])
    latent = jaxcd.fci(data, decider=jaxcd.Threshold(), **options)
    assert [str(edge) for edge in latent.graph.edges()] == ["a o-o b", "a o-o c"]
    with pytest.raises(OptionError, match="too few rows know"):
        jaxcd.ci_test(data, "a", "b", given=["c"], **options)


@pytest.mark.parametrize("test", [jaxcd.ChiSquare(), jaxcd.GTest(), jaxcd.KendallTau()])
def test_a_set_that_one_row_knows_separates_nothing(test: jaxcd.citests.CITest) -> None:
    names = tuple("abc")
    domain = jaxcd.Domain({name: jaxcd.Ordinal((0, 1), missing=True) for name in names})
    codes = np.zeros((400, 3), dtype=int)
    codes[:, 0] = codes[:, 1] = np.arange(400) % 2
    codes[1:, 2] = 2  # missing
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    options = {"test": test, "budget": jaxcd.NO_PRIVACY, "key": None}
    with pytest.raises(OptionError, match="too few rows know"):
        jaxcd.ci_test(data, "a", "b", given=["c"], **options)
    found = jaxcd.pc(data, decider=jaxcd.Threshold(), **options)
    assert [str(edge) for edge in found.graph.edges()] == ["a --- b"]


def test_the_columns_of_mmhc_that_no_rows_know_together_are_no_candidates() -> None:
    data = two_questionnaires(0)
    found = jaxcd.mmhc(data, score=jaxcd.BIC(), test=jaxcd.FisherZ(), budget=jaxcd.NO_PRIVACY)
    assert found.graph.skeleton().n_edges == 2 and not found.graph.adjacent("b", "c")


@pytest.mark.parametrize("missing", [0.9, 0.97, 0.997])
def test_a_numeric_column_that_few_rows_know_is_not_joined_to_all_others(missing) -> None:
    """A tenth of the rows was taken for all; of 80 pairs 31 were joined at 0.9, and 76 at 0.99."""
    names, edges = tuple("abcde"), 0
    domain = jaxcd.Domain({name: jaxcd.Numeric(-20, 20, missing=True) for name in names})
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(1_000, 5))
        x[rng.random(1_000) < missing, 4] = np.nan
        data = jaxcd.Dataset.from_array(x, names=names, domain=domain)
        edges += jaxcd.ges(data, budget=jaxcd.NO_PRIVACY).graph.n_edges
    assert edges <= 20


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_numeric_columns_with_holes_have_any_scale(scale) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    x[:, 1] += x[:, 0]
    x[rng.random(x.shape) < 0.2] = np.nan
    domain = jaxcd.Domain({name: jaxcd.Numeric(missing=True) for name in "ab"})
    data = jaxcd.Dataset.from_array(x * [scale, 1.0], names=("a", "b"), domain=domain)
    assert jaxcd.ges(data, budget=jaxcd.NO_PRIVACY).graph.adjacent("a", "b")
