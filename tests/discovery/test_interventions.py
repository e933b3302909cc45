"""Interventions: scores by definition, interventional classes by trying all DAGs, knowledge, PC and
FCI, releases.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import jax
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.special import gammaln

import jaxcd
from benchmarks.interventions import INT, drawn_targets, intervened, read_as, told, variables_only
from jaxcd.citests import Query
from jaxcd.data.intervention_knowledge import with_interventions
from jaxcd.data.interventions import Interventions, rows_of
from jaxcd.discovery import ordering_search, sample_orders
from jaxcd.discovery.confidence import member_adjacency
from jaxcd.discovery.score.exact_search import exact_search as best_dag
from jaxcd.discovery.score.ges import FamilyCache
from jaxcd.discovery.score.limits import Limits
from jaxcd.discovery.score.mmhc import climb_hills
from jaxcd.errors import DataError, DomainError, OptionError
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.scores import LocalScore
from jaxcd.scores.bge import BGe, BGeScore
from jaxcd.scores.interventional import with_known_targets
from tests.brute_force import all_dags
from tests.helpers import PLAIN, SEEDS, designed, simulated

BINARY = jaxcd.Categorical((0, 1))
FREE = jaxcd.NO_PRIVACY
STRICT: dict[str, Any] = {**PLAIN, "decider": jaxcd.Threshold(0.0001)}


def some_targets(rng: np.random.Generator, names: tuple[str, ...]) -> dict[int, tuple[str, ...]]:
    """Targets of levels 1 and 2 of three; level 0 sets nothing."""
    return {
        k: tuple(sorted(rng.choice(names, size=rng.integers(1, len(names)), replace=False)))
        for k in (1, 2)
    }


def drawn(
    seed: int, d: int, n: int = 60, targets: dict[int, tuple[str, ...]] | None = None
) -> jaxcd.Dataset:
    """Dependent binary columns, and a column of three conditions somewhere between them."""
    rng = np.random.default_rng(seed)
    names = tuple(f"x{j}" for j in range(d))
    chosen = some_targets(rng, names) if targets is None else targets
    place = int(rng.integers(d + 1))
    columns = [*names[:place], "INT", *names[place:]]
    codes = np.zeros((n, d + 1), dtype=np.int32)
    for j, name in enumerate(columns):
        if name == "INT":
            codes[:, j] = rng.integers(0, 3, n)
        else:
            copied = codes[:, rng.integers(d + 1)] % 2
            codes[:, j] = np.where(rng.random(n) < 0.6, copied, rng.integers(0, 2, n))
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical((0, 1, 2)) if name == "INT" else BINARY for name in columns},
        interventions={"INT": chosen},
    )
    return jaxcd.Dataset.from_codes(codes, domain=domain)


def with_settings(graph: np.ndarray, domain: jaxcd.Domain) -> np.ndarray:
    """A DAG over the variables, with the intervention column and the arcs to its targets."""
    names = [name for name in domain.names if name != "INT"]
    place = [domain.names.index(name) for name in names]
    full = np.zeros((len(domain.names),) * 2, dtype=bool)
    full[np.ix_(place, place)] = graph
    for targets in domain.interventions["INT"].values():
        full[domain.names.index("INT"), [domain.names.index(t) for t in targets]] = True
    return full


def by_definition(data: jaxcd.Dataset, graph: np.ndarray, *, bdeu: float | None = None) -> float:
    """The score of a DAG over the variables: every factor from the rows that did not set it, row by
    row.
    """
    names = [name for name in data.names if name != "INT"]
    targets, total = data.domain.interventions["INT"], 0.0
    rows = [
        {name: int(code) for name, code in zip(data.names, row, strict=True)} for row in data.codes
    ]
    for j, name in enumerate(names):
        natural = [row for row in rows if name not in targets.get(row["INT"], ())]
        held = {each: len({row[each] for row in natural}) or 1 for each in names}
        parents = [names[i] for i in np.flatnonzero(graph[:, j])]
        counts: dict[tuple[int, ...], list[int]] = {
            cell: [0, 0] for cell in itertools.product((0, 1), repeat=len(parents))
        }
        for row in natural:
            counts[tuple(row[parent] for parent in parents)][row[name]] += 1
        for pair in counts.values():
            if bdeu is None:
                total += sum(k * math.log(k / sum(pair)) for k in pair if k)
            else:
                weight = bdeu / math.prod(held[parent] for parent in parents)
                cell = weight / held[name]
                total += gammaln(weight) - gammaln(weight + sum(pair))
                total += sum(gammaln(cell + k) - gammaln(cell) for k in pair)
        if bdeu is None:
            numbers = (held[name] - 1) * math.prod(held[parent] for parent in parents)
            total -= math.log(len(natural)) / 2 * numbers
    return total


# ---- scores


@given(seed=SEEDS)
@settings(max_examples=15)
def test_scores_with_targets_by_definition(seed):
    data = drawn(seed, 3)
    for config, weight in ((jaxcd.BIC(), None), (jaxcd.BDeu(equivalent_sample_size=2.0), 2.0)):
        score = config.prepare(data)
        for graph in all_dags(3):
            full = with_settings(graph, data.domain)
            expected = by_definition(data, graph, bdeu=weight)
            assert score.total(full) == pytest.approx(expected, abs=1e-8)


def test_numeric_columns_beside_an_intervention():
    rng = np.random.default_rng(0)
    conditions = rng.integers(0, 2, 200).astype(str)
    frame = {"a": rng.normal(size=200), "b": rng.normal(size=200), "INT": conditions}
    domain = jaxcd.Domain(
        {"a": jaxcd.Numeric(), "b": jaxcd.Numeric(), "INT": jaxcd.Categorical(("0", "1"))},
        interventions={"INT": {"1": ("b",)}},
    )
    data = jaxcd.Dataset.from_frame(pd.DataFrame(frame), domain=domain)
    natural = data.where(conditions == "0").select(["a", "b"])
    whole = data.select(["a", "b"])
    for config in (BGe(standardised=False), jaxcd.BIC()):
        score = config.prepare(data)
        assert score.local(1, (0, 2)) == pytest.approx(config.prepare(natural).local(1, (0,)))
        assert score.local(0, (1,)) == pytest.approx(config.prepare(whole).local(0, (1,)))
    assert BGeScore.of_data(whole, standardised=False).local(0, ()) == pytest.approx(
        BGe(standardised=False).prepare(data).local(0, ())
    )


def test_a_setting_has_no_parents_and_no_other_children():
    data = drawn(1, 3, targets={1: ("x0",), 2: ("x0", "x1")})
    score, place = jaxcd.BIC().prepare(data), data.names.index
    inter = place("INT")
    assert score.local(inter, ()) == 0
    assert score.local(inter, (place("x0"),)) == -math.inf
    assert score.local(place("x2"), (inter,)) == -math.inf
    assert math.isfinite(score.local(place("x0"), (inter,)))
    assert score.candidates(inter) == ()


# ---- interventional classes


def characterised(graph: np.ndarray, names: list[str], targets: Any) -> tuple[bytes, ...]:
    """Hauser and Buehlmann's theorem: adjacencies, v-structures, and edges with one end in a
    target set.
    """
    joined = graph | graph.T
    structures = [
        (i, j, k)
        for i, j, k in itertools.permutations(range(len(graph)), 3)
        if i < k and graph[i, j] and graph[k, j] and not joined[i, k]
    ]
    directed = [
        (i, j)
        for i, j in np.argwhere(graph).tolist()
        if any((names[i] in found) != (names[j] in found) for found in targets.values())
    ]
    return joined.tobytes(), repr(structures).encode(), repr(directed).encode()


def agreed(graphs: list[np.ndarray], names: list[str]) -> MixedGraph:
    """What DAGs with the same adjacencies agree on: arcs that all have, else undirected."""
    every = np.logical_and.reduce(graphs)
    some = np.logical_or.reduce(graphs)
    edges = [f"{names[i]} --> {names[j]}" for i, j in np.argwhere(every)]
    edges += [f"{names[i]} --- {names[j]}" for i, j in np.argwhere(some & some.T) if i < j]
    return MixedGraph.from_edges(names, edges)


class DrawnSets(LocalScore):
    """value(node and parents) - value(parents), with values of sets drawn anew for each part: equal
    for equivalent DAGs, and for no others.
    """

    def __init__(
        self, names: tuple[str, ...], rng: np.random.Generator, max_parents: int | None = None
    ) -> None:
        self._names = names
        self._most = len(names) - 1 if max_parents is None else max_parents
        sets = itertools.product((0, 1), repeat=len(names))
        self._values = {tuple(np.flatnonzero(s).tolist()): float(rng.normal()) for s in sets}

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def max_parents(self) -> int:
        return self._most

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        return self._values[tuple(sorted((node, *parents)))] - self._values[parents]


@given(seed=SEEDS)
@settings(max_examples=8, deadline=None)
def test_equal_scores_are_interventional_classes(seed):
    """Neither more nor fewer DAGs are told apart than those of different classes of the theorem."""
    domain = drawn(seed, 4).domain
    names = [name for name in domain.names if name != "INT"]
    rng = np.random.default_rng(seed)
    score = with_known_targets(domain, lambda names, rows: DrawnSets(names, rng))
    totals = score.totals(np.array([with_settings(graph, domain) for graph in all_dags(4)]))
    classes = defaultdict(list)
    for graph, total in zip(all_dags(4), totals, strict=True):
        classes[characterised(graph, names, domain.interventions["INT"])].append(total)
    assert max(np.ptp(found) for found in classes.values()) < 1e-9
    assert np.diff(np.sort([found[0] for found in classes.values()])).min() > 1e-9


@given(seed=SEEDS)
@settings(max_examples=10, deadline=None)
def test_the_found_graph_is_what_the_best_dags_agree_on(seed):
    data = drawn(seed, 4, n=200)
    names = [name for name in data.names if name != "INT"]
    score = jaxcd.BIC().prepare(data)
    totals = [score.total(with_settings(graph, data.domain)) for graph in all_dags(4)]
    best = [g for g, total in zip(all_dags(4), totals, strict=True) if total > max(totals) - 1e-7]
    run = jaxcd.exact_search(data, budget=FREE)
    assert run.info["score"] == pytest.approx(max(totals))
    assert variables_only(run.graph).reordered(names) == agreed(best, names)
    set_somewhere = {t for found in data.domain.interventions["INT"].values() for t in found}
    assert set(run.graph.children("INT")) == set_somewhere
    assert not run.graph.parents("INT") and not run.graph.undirected[data.names.index("INT")].any()


@given(seed=SEEDS)
@settings(max_examples=6, deadline=None)
def test_other_searches_find_the_same(seed):
    data = drawn(seed, 4, n=400)
    exact = jaxcd.exact_search(data, budget=FREE, score=jaxcd.BDeu(10.0))
    chain = jaxcd.order_mcmc(
        data, budget=FREE, key=jax.random.key(seed % 1000), n_steps=400, burn_in=100
    )
    assert chain.info["score"] <= exact.info["score"] + 1e-7
    if chain.info["score"] == pytest.approx(exact.info["score"], abs=1e-7):
        assert chain.graph == exact.graph
    assert chain.confidence.directed[:, data.names.index("INT")].max() == 0
    hills = jaxcd.mmhc(data, budget=FREE, score=jaxcd.BIC())
    assert not hills.graph.parents("INT")


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_the_columns_that_set_a_node_are_no_parents_that_count(most):
    """The best of all DAGs whose nodes have so many variables as parents, whatever sets them."""
    for seed in range(4):
        domain = drawn(seed, 4).domain
        rng, known = np.random.default_rng(seed), with_interventions(None, domain)
        score = with_known_targets(domain, lambda names, rows: DrawnSets(names, rng, most))  # noqa: B023
        graphs = [graph for graph in all_dags(4) if graph.sum(axis=0).max() <= most]
        best = max(score.total(with_settings(graph, domain)) for graph in graphs)
        assert score.total(best_dag(score, knowledge=known)) == pytest.approx(best)
        ordered = ordering_search(score, knowledge=known).adjacency
        assert score.total(ordered) == pytest.approx(best)
        chains = sample_orders(score, n_steps=60, burn_in=60, thin=10, seed=0, knowledge=known)
        assert chains.score == pytest.approx(best)
        limits = Limits.of(known, domain.names)
        _, hill = climb_hills(
            FamilyCache(limits.within(score)),
            ~np.eye(5, dtype=bool),
            most_parents=limits.most_parents(score),
            patience=200,
            limits=limits,
        )
        assert hill == pytest.approx(best)


def set_in_half(n: int, *, numeric: bool = False) -> jaxcd.Dataset:
    """a --> b <-- d, and b set in the rows of which cond says so."""
    rng = np.random.default_rng(0)
    cond = rng.integers(0, 2, n)
    if numeric:
        a, d, noise = rng.normal(size=(3, n))
        b = np.where(cond == 1, noise, a + d + noise)
    else:
        a, d, noise = rng.integers(0, 2, (3, n))
        b = np.where((cond == 1) | (rng.random(n) < 0.1), noise, a | d)
    columns: dict[str, Any] = dict.fromkeys("abd", jaxcd.Numeric(-9, 9) if numeric else BINARY)
    domain = jaxcd.Domain(
        {"cond": jaxcd.Categorical(("0", "1")), **columns},
        interventions={"cond": {"1": ("b",)}},
        declared=True,
    )
    frame = {"cond": cond.astype(str), "a": a, "b": b, "d": d}
    return jaxcd.Dataset.from_frame(pd.DataFrame(frame), domain=domain)


def test_searches_of_data_find_all_parents_of_a_column_that_was_set():
    expected = {"cond --> b", "a --> b", "d --> b"}
    discrete, numeric = set_in_half(2_000), set_in_half(2_000, numeric=True)
    for data in discrete, numeric:
        assert {
            str(edge) for edge in jaxcd.exact_search(data, budget=FREE).graph.edges()
        } == expected
    chain = jaxcd.order_mcmc(discrete, budget=FREE, key=jax.random.key(0), n_steps=50, burn_in=50)
    hills = jaxcd.mmhc(discrete, budget=FREE)
    for run in chain, hills:
        assert {str(edge) for edge in run.graph.edges()} == expected


@pytest.mark.parametrize(
    "kind",
    [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear(), jaxcd.Features()],
    ids=lambda kind: type(kind).__name__,
)
def test_one_parent_beside_what_sets_a_column(kind):
    data = set_in_half(20_000, numeric=isinstance(kind, jaxcd.Features))
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(20.0, 1e-6), noise=simulated())
    known, searches = Knowledge(tiers=[["a", "d"], ["b"]]), [jaxcd.exact_search]
    if isinstance(kind, jaxcd.Features):
        searches.append(jaxcd.ges)
    for search in searches:
        graph = search(bought, max_parents=1, knowledge=known).graph
        assert set(graph.parents("b")) in ({"cond", "a"}, {"cond", "d"})


def test_greedy_equivalence_search_is_refused():
    with pytest.raises(OptionError, match="exact_search"):
        jaxcd.ges(drawn(0, 3), budget=FREE)


# ---- knowledge


def test_contexts_are_exogenous():
    domain = jaxcd.Domain(
        {"a": BINARY, "site": BINARY, "b": BINARY, "arm": BINARY},
        interventions={"site": {}, "arm": {}},
    )
    known = with_interventions(None, domain)
    assert known is not None
    for context in ("site", "arm"):
        assert all(known.forbids(v, context) for v in "ab")
        assert not any(known.forbids(context, v) for v in "ab")
    assert known.adjacency_forbidden("site", "arm")
    assert not known.required and not known.adjacency_forbidden("a", "b")
    assert with_interventions(None, domain.select(["a", "b"])) is None


def test_known_targets_are_required_and_nothing_else():
    domain = drawn(0, 3, targets={1: ("x0",), 2: ("x2",)}).domain
    known = with_interventions(None, domain)
    assert known is not None
    assert known.required == (("INT", "x0"), ("INT", "x2"))
    assert known.adjacency_forbidden("INT", "x1")
    asked = with_interventions(None, domain, by_tests=True)
    assert asked is not None and asked.required == known.required
    assert not asked.forbids("INT", "x1") and asked.forbids("x1", "INT")
    asked.check(domain.names, ancestral=True)


def test_what_the_user_knows_is_kept():
    domain = drawn(0, 4, targets={1: ("x0",)}).domain
    given_by_user = Knowledge(
        tiers=[["x1"], ["INT", "x0"]], forbidden=[("x2", "x0")], required=[("x1", "x0")]
    )
    known = with_interventions(given_by_user, domain)
    assert known is not None
    assert known.forbids("x0", "x1") and known.forbids("x2", "x0") and known.requires("x1", "x0")
    assert known.requires("INT", "x0") and known.forbids("INT", "x1")
    assert all(known.forbids(v, "INT") for v in ("x0", "x1", "x2", "x3"))
    within = with_interventions(Knowledge(tiers=[["x1", "x2"]], forbidden_within_tier=True), domain)
    assert within is not None
    assert within.adjacency_forbidden("x1", "x2") and not within.adjacency_forbidden("x0", "x3")
    for wrong in (
        Knowledge(required=[("x1", "INT")]),
        Knowledge(forbidden=[("INT", "x0")]),
        Knowledge(required=[("INT", "x3")]),
    ):
        with pytest.raises(OptionError, match="interventions that the domain declares"):
            with_interventions(wrong, domain)


def test_a_column_that_is_always_set_is_refused():
    with pytest.raises(DomainError, match="'x0' is set at every level"):
        drawn(0, 3, targets={0: ("x0",), 1: ("x0",), 2: ("x0", "x1")})


@pytest.mark.parametrize("search", [jaxcd.exact_search, jaxcd.mmhc])
def test_data_without_a_natural_row_are_refused_in_words(search):
    data = drawn(0, 3, targets={1: ("x0",), 2: ("x0", "x1")})
    set_in_all = data.where(data.column("INT") > 0)
    said = "'x0' was set in every row, as INT says, .* causes it; leave it out, or add rows"
    with pytest.raises(DataError, match=said):
        search(set_in_all, budget=FREE)
    alone = data.select(["INT", "x0"])
    with pytest.raises(DataError, match="beside INT, which says what was set, there is only 'x0'"):
        search(alone, budget=FREE)


def test_natural_rows():
    domain = jaxcd.Domain(
        {
            "a": BINARY,
            "b": BINARY,
            "first": jaxcd.Categorical((0, 1), missing=True),
            "second": jaxcd.Categorical((0, 1, 2)),
        },
        interventions={"first": {1: ("a",)}, "second": {1: ("a", "b")}},
    )
    known = Interventions.of(domain)
    assert known.columns == ("first", "second")
    assert {name: dict(rows) for name, rows in known.natural.items()} == {
        "a": {"first": (0,), "second": (0, 2)},  # where first is missing, a may have been set
        "b": {"second": (0, 2)},
    }
    assert known.told_apart(("a", "b")).tolist() == [[False, True], [True, False]]
    codes = np.array(list(itertools.product((0, 1), (0, 1), (0, 1, 2), (0, 1, 2))), dtype=np.int32)
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    kept = rows_of(data, known.natural["a"]).codes
    assert kept.tolist() == [row for row in codes.tolist() if row[2] == 0 and row[3] != 1]


# ---- tests of independence


TRUE = nx.DiGraph([("x", "y"), ("y", "z")])


def chain_after_setting(n: int, *, known: bool, seed: int = 0) -> jaxcd.Dataset:
    """x --> y --> z, and y set in half of the rows: observation alone leaves all open."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)

    def copy(column: np.ndarray) -> np.ndarray:
        return np.where(rng.random(n) < 0.8, column, 1 - column)

    x = (rng.random(n) < 0.4).astype(int)
    y = np.where(arm == 1, rng.random(n) < 0.9, copy(x)).astype(int)
    z = copy(y)
    domain = jaxcd.Domain(
        {name: BINARY for name in ("z", "arm", "y", "x")},
        interventions={"arm": {1: ("y",)} if known else {}},
    )
    codes = np.column_stack([z, arm, y, x]).astype(np.int32)
    return jaxcd.Dataset.from_codes(codes, domain=domain)


@pytest.mark.parametrize("known", [True, False], ids=["targets", "context"])
def test_pc_on_rows_and_on_a_release(known):
    data = chain_after_setting(40_000, known=known)
    expected = {"arm --> y", "x --> y", "y --> z"}
    run = jaxcd.pc(data, test=jaxcd.ChiSquare(), **STRICT)
    assert {str(edge) for edge in run.graph.edges()} == expected
    budget = jaxcd.Budget(2.0)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=budget, noise=simulated())
    by_tests = jaxcd.pc(bought, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(0.001), key=None)
    assert {str(edge) for edge in by_tests.graph.edges()} == expected
    assert {str(edge) for edge in jaxcd.search(bought).graph.edges()} == expected


def test_without_the_intervention_the_directions_stay_open():
    data = chain_after_setting(40_000, known=True).select(["x", "y", "z"])
    assert not jaxcd.pc(data, test=jaxcd.ChiSquare(), **STRICT).graph.directed.any()


@pytest.mark.parametrize("known", [True, False], ids=["targets", "context"])
def test_fci_writes_the_marks(known):
    data = chain_after_setting(40_000, known=known)
    run = jaxcd.fci(data, test=jaxcd.ChiSquare(), **STRICT)
    arm = "arm --> y" if known else "arm o-> y"
    assert {str(edge) for edge in run.graph.edges()} == {arm, "x o-> y", "y --> z"}


# ---- known truths


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_targets_tell_what_they_can(seed):
    network = jaxcd.networks.load("asia")
    targets = drawn_targets(network, seed)
    frame = intervened(network, targets, 100_000, key=jax.random.key(1))
    truth = told(network, targets)
    assert truth.directed.sum() > network.cpdag().directed.sum()
    data = read_as(frame, network.domain, targets, "targets")
    score = jaxcd.BDeu(equivalent_sample_size=1.0)
    found = jaxcd.exact_search(data, score=score, budget=FREE).graph
    assert variables_only(found).reordered(truth.names) == truth
    assert INT in found.names


def test_a_randomised_network():
    network = jaxcd.networks.load("asia")
    cut = network.randomised(["either", "lung"])
    assert set(network.dag.edges) - set(cut.dag.edges) == {
        ("tub", "either"),
        ("lung", "either"),
        ("smoke", "lung"),
    }
    with pytest.raises(OptionError, match="'nothing' is no node"):
        network.randomised(["nothing"])
    sample = cut.sample(20_000, key=jax.random.key(0))
    assert abs(sample.column("lung").mean() - 0.5) < 0.02


# ---- what a release does not tell


def set_by_some(n_settings: int, n_variables: int, *, n: int, **options: bool) -> jaxcd.Dataset:
    """Columns s0, s1, ... that all set v0 and v1, and a chain v0 --> v1 --> ... in other rows."""
    rng = np.random.default_rng(0)
    settings = rng.integers(0, 2, (n, n_settings))
    variables = np.zeros((n, n_variables), dtype=int)
    for j in range(n_variables):
        drawn = rng.integers(0, 2, n)
        copied = variables[:, j - 1] if j else drawn
        is_set = settings.any(axis=1) & (j < 2)
        variables[:, j] = np.where(is_set | (rng.random(n) < 0.2), drawn, copied)
    names = [f"s{j}" for j in range(n_settings)]
    columns = dict.fromkeys(names, BINARY)
    columns |= {f"v{j}": jaxcd.Categorical((0, 1), **options) for j in range(n_variables)}
    domain = jaxcd.Domain(columns, interventions={name: {1: ("v0", "v1")} for name in names})
    codes = np.column_stack([settings, variables]).astype(np.int32)
    return jaxcd.Dataset.from_codes(codes, domain=domain)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (set_by_some(1, 62, n=3_000), jaxcd.Marginals()),  # of so many pairs some are chosen
        (set_by_some(2, 62, n=3_000), jaxcd.Marginals()),
        (set_by_some(3, 8, n=300), jaxcd.Marginals()),
        pytest.param(
            set_by_some(7, 3, n=1_000, missing=True),
            jaxcd.Histogram(max_cells=10_000),
            marks=pytest.mark.slow,
        ),
        (set_by_some(6, 4, n=60), jaxcd.LogLinear()),
    ],
    ids=["one of many", "two of many", "three", "seven", "six"],
)
def test_a_release_that_does_not_tell_where_a_column_was_set_is_searched(data, kind):
    """It was paid for: what is not told has no edges, and the result says so."""
    budget = jaxcd.Budget(1.0, 1e-6)
    bought = jaxcd.release(data, kind, budget=budget, noise=simulated())
    run = jaxcd.search(bought)
    settings = [name for name in data.names if name.startswith("s")]
    for name in settings:
        edges = {str(edge) for edge in run.graph.edges() if name in str(edge).split()}
        assert edges == {f"{name} --> v0", f"{name} --> v1"}
    said = " ".join(run.info.get("warnings", ()))
    for name in ("v0", "v1"):
        joined = {other for other in run.graph.names if run.graph.adjacent(name, other)}
        if repr(name) in said:
            assert joined == set(settings)
    assert run.info["targets"].keys() == set(settings)
    assert jaxcd.edge_confidence(bought, run, n_draws=1, calibrated=False).n_draws == 1


def test_what_sets_a_column_is_measured_with_it_where_pairs_are_chosen():
    data = set_by_some(1, 62, n=3_000)
    kind, price = jaxcd.Marginals(), jaxcd.Budget(1.0)
    assert kind.n_selected(data.domain, data.n_samples, budget=price) > 0
    bought = jaxcd.release(data, kind, budget=price, noise=simulated())
    assert bought.is_measured((0, 1)) and bought.is_measured((0, 2))
    assert "warnings" not in jaxcd.search(bought).info


# ---- bookkeeping


def test_the_search_of_a_dag_alone_takes_the_same_score():
    data = drawn(5, 4, n=200)
    score = jaxcd.BIC().prepare(data)
    assert score.total(best_dag(score)) == pytest.approx(
        jaxcd.exact_search(data, budget=FREE).info["score"]
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_confidence_of_a_graph_with_targets(seed):
    data = chain_after_setting(5_000, known=True, seed=seed)
    kind = jaxcd.Marginals()
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(4.0, 1e-6), noise=simulated(seed))
    run = jaxcd.search(bought)
    shares = jaxcd.edge_confidence(bought, run, n_draws=3, calibrated=False)
    assert shares.of("arm", "y").forward == 1.0 or shares.of("arm", "y").adjacent == 1.0


def test_how_contexts_depend_on_each_other_does_not_change_what_a_histogram_is_worth():
    """The likelihood of the noisy cells is that of all columns: contexts taken for independent cost
    4,400 nats here, and x -> y, whose 110 nats were not seen.
    """
    bought = jaxcd.release(
        designed(20_000, 0), jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated(0)
    )
    run = jaxcd.search(bought)
    assert {str(edge) for edge in run.graph.edges()} == {"arm --> x", "site --> y", "x --> y"}
    score = jaxcd.releases.MeasurementErrorScore(bought)
    edges = ["arm --> x", "site --> y", "x --> y"]
    values = [
        jaxcd.discovery.score_graph(score, MixedGraph.from_edges(bought.names, [*edges, *more]))
        for more in ([], ["arm --> site"], ["site --> arm"])
    ]
    assert values[0] == pytest.approx(values[1]) == pytest.approx(values[2])
    assert run.info["score"] == pytest.approx(values[0])


@pytest.mark.parametrize(
    "kind", [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear(), jaxcd.Features()]
)
def test_contexts_depend_on_each_other_in_releases_drawn_anew(kind):
    data = designed(20_000, 1)
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(4.0, 1e-6), noise=simulated(1))
    graph = MixedGraph.from_edges(bought.names, ["arm --> x", "site --> y", "x --> y"])
    fresh = bought.redraw(member_adjacency(bought, graph))(jax.random.key(0))
    test = next(iter(fresh.tests()))()
    prepared, query = fresh.prepare_test(test), Query.of(0, 1, ())
    found = prepared.evaluate(prepared.bucket(query), [query], alpha=0.05)
    assert float(found.log_pvalue[0]) < -100
