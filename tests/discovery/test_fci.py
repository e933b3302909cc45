"""FCI as a search: what it asks, what it pays for, what it does not depend on, and that it finds
the PAG.

The PAGs of small graphs by brute force are tested elsewhere; here the truth is the PAG of the MAG,
found without any question.
"""

from __future__ import annotations

import functools
import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.discovery import DiscoveryResult, SearchPass, dag_to_pag, fci
from jaxcd.discovery.constraint.search import ConstraintSearch
from jaxcd.errors import OptionError
from jaxcd.graphs import DSeparation, random_dag
from tests.discovery.listener import Listener
from tests.helpers import PLAIN, SEEDS, coded, levelled, refused, simulated

# x and y have the neighbours b and c, which do not separate them: given b the path x <- M -> b <- a
# -> c ... is open, and given c its mirror image.  Only {a, b, c} does, and a is no neighbour of x
# or y.
HIDDEN_SEPARATOR = nx.DiGraph(
    [("a", "b"), ("a", "c"), ("b", "y"), ("c", "x"), ("L", "c"), ("L", "y"), ("M", "b"), ("M", "x")]
)
ALL = jaxcd.Oracle(HIDDEN_SEPARATOR, latent=("L", "M"))


def oracle_fci(dag: nx.DiGraph, *, latent=(), selected=(), **options) -> DiscoveryResult:
    oracle = jaxcd.Oracle(dag, latent=tuple(latent), selected=tuple(selected))
    return fci(None, test=oracle, **{**PLAIN, **options})


def hidden_dag(seed: int) -> tuple[nx.DiGraph, tuple, tuple]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 10))
    dag = random_dag(n, expected_degree=float(rng.uniform(1, 3)), seed=seed)
    hidden = [list(dag)[k] for k in rng.permutation(n)[: int(rng.integers(0, 4))]]
    cut = int(rng.integers(0, len(hidden) + 1))
    return dag, tuple(hidden[:cut]), tuple(hidden[cut:])


# ---- with an oracle


@settings(max_examples=40)
@given(SEEDS, st.booleans(), st.sampled_from(jaxcd.discovery.ColliderRule))
def test_the_pag_in_any_order_under_every_rule(
    seed: int, stable: bool, rule: jaxcd.discovery.ColliderRule
):
    dag, latent, selected = hidden_dag(seed)
    truth = dag_to_pag(dag, latent=latent, selected=selected)
    result = oracle_fci(dag, latent=latent, selected=selected, stable=stable, colliders=rule)
    assert result.graph == truth
    assert result.info["ambiguous_triples"] == () and result.info["knowledge_conflicts"] == ()
    separation, nodes = (
        DSeparation(dag, selected=[list(dag).index(s) for s in selected]),
        list(map(str, dag)),
    )
    apart = {
        frozenset(pair)
        for pair in itertools.combinations(truth.names, 2)
        if not truth.adjacent(*pair)
    }
    assert set(result.separating_sets) == apart  # total
    for pair, separating_set in result.separating_sets.items():
        a, b = (nodes.index(name) for name in pair)
        assert separation.separated(a, b, [nodes.index(name) for name in separating_set])
    order = np.random.default_rng(seed).permutation(len(nodes))
    moved = nx.DiGraph()
    moved.add_nodes_from(list(dag)[k] for k in order)
    moved.add_edges_from(dag.edges)
    assert oracle_fci(moved, latent=latent, selected=selected).graph.reordered(truth.names) == truth


def test_without_hidden_variables_it_is_what_pc_finds():
    """The CPDAG's edges and arrowheads; a tail of the CPDAG that other MAGs do not share becomes a
    circle.
    """
    for seed in range(15):
        dag = random_dag(7, expected_degree=2.5, seed=seed)
        pag = oracle_fci(dag).graph
        cpdag = jaxcd.pc(None, test=jaxcd.Oracle(dag), **PLAIN).graph
        assert (pag.adjacency == cpdag.adjacency).all()
        assert ((pag.marks == 2) <= (cpdag.marks == 2)).all()
        assert ((pag.marks == 3) <= (cpdag.marks == 3)).all()


def test_the_second_pass_is_needed_and_can_be_left_out():
    result = oracle_fci(HIDDEN_SEPARATOR, latent=("L", "M"))
    assert result.separating_sets[frozenset("xy")] == ("a", "b", "c")
    assert result.graph == dag_to_pag(HIDDEN_SEPARATOR, latent=["L", "M"])
    assert not result.graph.adjacent("x", "y")
    second = [
        record
        for record in result.info["levels"]
        if record.search_pass is SearchPass.POSSIBLE_D_SEP
    ]
    assert sum(record.n_separated for record in second) == 1
    assert str(second[-1]).startswith("level 3 of possible-d-sep: ")
    for options in ({"possible_d_sep": False}, {"max_level": 2}, {"max_path_length": 1}):
        without = oracle_fci(HIDDEN_SEPARATOR, latent=("L", "M"), **options)
        assert without.graph.adjacent("x", "y")
        assert frozenset("xy") not in without.separating_sets


@settings(max_examples=30)
@given(SEEDS, st.integers(0, 3))
def test_what_an_interrupted_run_says_is_true(seed: int, max_level: int):
    """Spirtes 2001: with a limit on the sets edges may be left over, but none is lost, and marks
    that stand are true.
    """
    dag, latent, _ = hidden_dag(seed)
    truth = jaxcd.graphs.ancestral.dag_to_mag(dag, latent=latent)
    graph = oracle_fci(dag, latent=latent, max_level=max_level).graph
    assert (truth.adjacency <= graph.adjacency).all()
    above = {node: nx.ancestors(dag, node) for node in dag}
    names = dict(zip(map(str, dag), dag, strict=True))
    for edge in graph.edges():
        for end, other, mark in ((edge.a, edge.b, edge.mark_a), (edge.b, edge.a, edge.mark_b)):
            if mark == 2:
                assert names[end] not in above[names[other]], (edge, max_level)
            if mark == 3:
                assert names[end] in above[names[other]], (edge, max_level)


# ---- what is asked


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_asked_twice_and_the_passes_are_announced(seed: int):
    dag, latent, selected = hidden_dag(seed)
    if seed == 0:
        dag, latent, selected = HIDDEN_SEPARATOR, ("L", "M"), ()
    listener = Listener()
    result = oracle_fci(dag, latent=latent, selected=selected, decider=listener)
    asked = [
        (min(q.x, q.y), max(q.x, q.y), *sorted(given))
        for _, _, qs in listener.heard
        for q in qs
        for given in q.candidates
    ]
    assert len(set(asked)) == len(asked)
    follows = [flag for _, flag, _ in listener.heard]
    assert follows == sorted(follows, reverse=True) and follows[0]
    assert len(follows) == len(result.info["levels"])
    for (level, flag, questions), record in zip(listener.heard, result.info["levels"], strict=True):
        assert all(len(given) == level for question in questions for given in question.candidates)
        assert flag == (record.search_pass is SearchPass.NEIGHBORS)
        assert record.n_asked == len(questions) > 0
    alone = Listener()
    oracle_fci(dag, latent=latent, selected=selected, decider=alone, possible_d_sep=False)
    assert not any(flag for _, flag, _ in alone.heard)


def test_the_rules_ask_nothing(monkeypatch: pytest.MonkeyPatch):
    """Once triples are judged, the decider and the session are gone."""
    judged = ConstraintSearch.judge

    def judge(self, *args, **kwargs):
        judgement = judged(self, *args, **kwargs)
        self._run.answer = self._run.independent = self._session.margins = None
        return judgement

    monkeypatch.setattr(ConstraintSearch, "judge", judge)
    assert oracle_fci(HIDDEN_SEPARATOR, latent=("L", "M")).graph.n_edges == 6


# ---- data

LEVELS = (2, 3, 2, 3, 2, 2)
DOMAIN = levelled(*LEVELS)


def dataset(seed: int, n: int = 400) -> jaxcd.Dataset:
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, len(LEVELS)), dtype=np.int32)
    hidden = rng.integers(0, 2, n)
    for j, k in enumerate(LEVELS):
        parents = codes[:, rng.permutation(j)[:2]].sum(1) + hidden * (j % 2)
        codes[:, j] = np.where(
            rng.random(n) < rng.uniform(0.2, 0.7), parents % k, rng.integers(0, k, n)
        )
    return coded(codes, DOMAIN)


@settings(max_examples=12)
@given(
    SEEDS,
    st.permutations(range(len(LEVELS))),
    st.sampled_from(jaxcd.discovery.ColliderRule),
    st.booleans(),
)
def test_on_data_the_whole_result_does_not_depend_on_column_order(seed, order, rule, stable):
    options = {"test": jaxcd.GTest(), **PLAIN}
    data = dataset(seed)
    first = fci(data, colliders=rule, stable=stable, **options)
    second = fci(data.permuted(order), colliders=rule, stable=stable, **options)
    assert second.graph.reordered(data.names) == first.graph
    assert {pair: set(given) for pair, given in second.separating_sets.items()} == {
        pair: set(given) for pair, given in first.separating_sets.items()
    }
    sides = [
        {(frozenset((a, c)), b) for a, b, c in run.info["ambiguous_triples"]}
        for run in (first, second)
    ]
    assert sides[0] == sides[1]
    assert second.info["rule_counts"] == first.info["rule_counts"]


def test_conservative_and_majority_report_what_they_leave_alone():
    options = {"test": jaxcd.GTest(), **PLAIN}
    n_conservative = n_majority = 0
    for seed in range(12):
        for search in (fci, jaxcd.pc):
            by_all = search(
                dataset(seed), colliders=jaxcd.discovery.ColliderRule.CONSERVATIVE, **options
            )
            by_most = search(
                dataset(seed), colliders=jaxcd.discovery.ColliderRule.MAJORITY, **options
            )
            first, second = (set(run.info["ambiguous_triples"]) for run in (by_all, by_most))
            assert second <= first  # what exactly half of the sets say is not what all of them say
            n_conservative, n_majority = n_conservative + len(first), n_majority + len(second)
            for a, b, c in first:
                assert by_all.graph.adjacent(a, b) and by_all.graph.adjacent(b, c)
                assert not by_all.graph.adjacent(a, c)
    assert n_conservative > n_majority > 0


@pytest.mark.parametrize(
    "rule",
    [jaxcd.discovery.ColliderRule.CONSERVATIVE, jaxcd.discovery.ColliderRule.MAJORITY],
    ids=lambda rule: rule.value,
)
def test_judgement_by_counting(rule):
    """(sets that hold z, separating sets): all, none, most, few, half."""
    expected = {(3, 3): True, (0, 3): False, (2, 3): True, (1, 3): False, (1, 2): None}
    if rule is jaxcd.discovery.ColliderRule.CONSERVATIVE:
        expected |= {(2, 3): None, (1, 3): None}
    assert {counts: rule.judge(*counts) for counts in expected} == expected


# P(node = 1 | parents), parents in the order of HIDDEN_SEPARATOR's arcs: chosen so that of all
# dependences that d-separation knows here the weakest, as a covariance summed over strata, is
# 0.023.
TABLES = {
    "a": 0.47,
    "L": 0.53,
    "M": 0.5,
    "b": [[0.02, 0.92], [0.98, 0.57]],
    "c": [[0.98, 0.65], [0.81, 0.02]],
    "y": [[0.47, 0.98], [0.02, 0.81]],
    "x": [[0.52, 0.98], [0.98, 0.02]],
}


@functools.cache
def hidden_separator_data(n: int = 20_000) -> jaxcd.Dataset:
    """Binary columns along HIDDEN_SEPARATOR; L and M are not among them."""
    rng = np.random.default_rng(3)
    drawn: dict[str, np.ndarray] = {}
    for node in nx.topological_sort(HIDDEN_SEPARATOR):
        parents = tuple(drawn[p] for p in HIDDEN_SEPARATOR.predecessors(node))
        drawn[node] = (rng.random(n) < np.array(TABLES[node])[parents]).astype(np.int32)
    names = ("a", "b", "c", "x", "y")
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in names})
    return jaxcd.Dataset.from_codes(
        np.stack([drawn[name] for name in names], axis=1), domain=domain
    )


DECIDERS = [
    jaxcd.ExponentialSelect(alpha=1e-3, n_questions=60),
    jaxcd.Scheduled(jaxcd.ExponentialSelect(alpha=1e-3)),
    jaxcd.Scheduled(jaxcd.NoisyThreshold(alpha=1e-3)),
    jaxcd.NoisyThreshold(alpha=1e-3),
    jaxcd.SparseVector(alpha=1e-3, n_rounds=5),
    jaxcd.SieveAndExamine(alpha=1e-3, n_rounds=8),
    jaxcd.LevelwiseGaussian(
        alpha=1e-3, level_shares=(0.2, 0.2, 0.3, 0.3), later_pass_share=0.4, forest_bonus=0.0
    ),
]


@pytest.mark.parametrize("decider", DECIDERS, ids=lambda decider: decider.name)
def test_every_decider_serves_both_passes_under_one_ledger(decider):
    budget = jaxcd.Budget(4000.0, 1e-6)  # enough that noise decides nothing
    result = fci(
        hidden_separator_data(),
        test=jaxcd.CovarianceNorm(),
        decider=decider,
        budget=budget,
        key=None,
        noise=simulated(),
    )
    assert result.graph == dag_to_pag(HIDDEN_SEPARATOR, latent=["L", "M"]).reordered(
        result.graph.names
    )
    assert result.separating_sets[frozenset("xy")] == ("a", "b", "c")
    assert not result.exhausted
    assert result.spent.epsilon <= result.cost.epsilon == budget.epsilon
    assert {"n_tests", "n_batches"}.isdisjoint(result.info)


def test_levelwise_gaussian_holds_back_for_the_second_pass():
    decider = DECIDERS[-1]
    options = {
        "test": jaxcd.CovarianceNorm(),
        "decider": decider,
        "budget": jaxcd.Budget(4000.0, 1e-6),
        "key": None,
    }
    both, one = (
        fci(hidden_separator_data(), noise=simulated(), possible_d_sep=second, **options)
        for second in (True, False)
    )
    total = jaxcd.privacy.Ledger(options["budget"]).remaining_rho
    shares = [[row["rho"] / total for row in run.info["ledger"]] for run in (both, one)]
    # level 0: 0.2 of the weights, of which 0.4 of the whole is held back
    assert shares[0][0] == pytest.approx(0.2 * (1 - 0.4)) and shares[1][0] == pytest.approx(0.2)
    # what is kept for the pass is there for it: at level 3 alone, so all of it but the part that
    # buys separating sets
    last = max(
        place for place, row in enumerate(both.info["ledger"]) if row["label"].startswith("level 3")
    )
    assert sum(shares[0][:last]) < 1 - 0.4 * 0.2
    assert sum(shares[0]) <= 1 + 1e-12


def test_a_small_budget_is_never_exceeded():
    for seed, decider in itertools.product(
        range(2), (*DECIDERS, jaxcd.NoisyThreshold(n_queries=3))
    ):
        budget = jaxcd.Budget(0.5, 1e-6)
        result = fci(
            dataset(seed),
            test=jaxcd.CovarianceNorm(),
            decider=decider,
            budget=budget,
            key=None,
            noise=simulated(seed),
        )
        assert result.spent.epsilon <= result.cost.epsilon == 0.5
    assert result.exhausted  # three answers are not enough for anything


@pytest.mark.parametrize(
    "options",
    [
        {"max_path_length": 0},
        {"max_path_length": 2.0},
        {"possible_d_sep": "yes"},
        {"selection_bias": 1},
        {"knowledge": [("a", "b")]},
        {"colliders": "conservative"},
        {"max_level": -1},
    ],
    ids=str,
)
def test_malformed_options_are_named(options: dict):
    defaults = {"test": ALL, **PLAIN}
    refused(OptionError, next(iter(options)), fci, None, **{**defaults, **options})
    refused(OptionError, "later_pass_share", jaxcd.LevelwiseGaussian, later_pass_share=1.0)
