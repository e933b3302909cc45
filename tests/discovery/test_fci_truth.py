"""With the oracle FCI returns the PAG itself: all small MAGs, random and planted graphs, every
rule, any order.

The truth comes from ``pag_reference``, which knows no orientation rule.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.discovery import dag_to_pag, fci, mag_to_pag
from jaxcd.graphs import MixedGraph, dag_to_mag
from tests.discovery import fci_cases, pag_reference
from tests.discovery.fci_cases import POSSIBLE_D_SEP, RULES, Case
from tests.discovery.pag_reference import ARROW, CIRCLE, NONE, TAIL, Marks
from tests.helpers import PLAIN

CORES = (*POSSIBLE_D_SEP, *(case for _, case in RULES))


def oracle_fci(case: Case, **options) -> jaxcd.DiscoveryResult:
    return fci(
        None,
        test=jaxcd.Oracle(case.dag, latent=case.latent, selected=case.selected),
        **PLAIN,
        **options,
    )


def mixed(names: tuple[str, ...], marks: Marks) -> MixedGraph:
    return MixedGraph(names, np.array(marks))


def exact(case: Case, *, limit: int = 2_000) -> MixedGraph | None:
    """The PAG by definition; None where the class is too large to search."""
    try:
        return mixed(
            case.observed,
            pag_reference.pag_by_search(fci_cases.mag_of(case, by_ancestors=True), limit=limit),
        )
    except pag_reference.TooLarge:
        return None


def wrong_claims(case: Case, graph: MixedGraph) -> list[str]:
    """Marks that say what is not so: a tail, "ancestor of the other end or of a selected node"; an
    arrowhead, neither.
    """
    nodes = list(case.dag)
    above = pag_reference.ancestor_masks(fci_cases.parents_of(case.dag))
    of_selection = functools.reduce(
        lambda mask, node: mask | above[nodes.index(node)], case.selected, 0
    )
    wrong = []
    for (i, a), (j, b) in itertools.permutations(enumerate(graph.names), 2):
        is_ancestor = bool((above[nodes.index(a)] | of_selection) >> nodes.index(b) & 1)
        if graph.marks[i, j] == (ARROW if is_ancestor else TAIL):
            wrong.append(f"the mark at {b} of {graph.edge(a, b)}")
    return wrong


def assert_separated(case: Case, result: jaxcd.DiscoveryResult) -> None:
    """Every pair without an edge, and no other, has a set of observed nodes that separates it in
    the DAG.
    """
    nodes = list(case.dag)
    parents = fci_cases.parents_of(case.dag)
    above = pag_reference.ancestor_masks(parents)
    apart = {
        frozenset(pair)
        for pair in itertools.combinations(case.observed, 2)
        if not result.graph.adjacent(*pair)
    }
    assert set(result.separating_sets) == apart
    for pair, separating_set in result.separating_sets.items():
        assert set(separating_set) <= set(case.observed) - pair
        x, y = (nodes.index(node) for node in pair)
        given = sum(1 << nodes.index(node) for node in (*separating_set, *case.selected))
        assert fci_cases.d_separated(parents, above, x, y, given)


def assert_correct(case: Case, result: jaxcd.DiscoveryResult, *, limit: int = 2_000) -> None:
    """The PAG where it can be known; else the MAG's edges, and no mark that differs from the
    MAG's.
    """
    truth = exact(case, limit=limit)
    if truth is not None:
        assert result.graph == truth, str(case)
    else:
        mag = np.array(fci_cases.mag_of(case, by_ancestors=True))
        assert result.graph.names == case.observed
        assert ((result.graph.marks != NONE) == (mag != NONE)).all(), str(case)
        assert ((result.graph.marks == mag) | (result.graph.marks == CIRCLE)).all(), str(case)
    assert_separated(case, result)


def random_cases(seed: int, count: int, *, observed: tuple[int, int]) -> list[Case]:
    """A third planted (see ``planted_case``), the others random; up to 5 latent, half of them with
    selected nodes.
    """
    rng = np.random.default_rng(seed)
    made: list[Case] = []
    while len(made) < count:
        n = int(rng.integers(observed[0], observed[1] + 1))
        core = CORES[int(rng.integers(len(CORES)))]
        if rng.random() < 1 / 3 and len(core.observed) <= n:
            made.append(fci_cases.planted_case(rng, core, n_more=n - len(core.observed)))
        else:
            n_selected = int(rng.choice([0, 0, 0, 1, 2, 3]))
            made.append(
                fci_cases.random_case(
                    rng, n_observed=n, n_latent=int(rng.integers(6)), n_selected=n_selected
                )
            )
    return made


# ---- the references against each other


def test_the_references_agree():
    assert [len(pag_reference.classes(n)) for n in (2, 3, 4)] == [2, 11, 251]
    for n in (2, 3, 4):
        for members in pag_reference.classes(n):
            truth = pag_reference.agreement(members)
            for mag in {members[0], members[-1]}:
                assert pag_reference.pag_by_search(mag) == truth


def test_members_of_a_class_by_paths():
    """The criterion of discriminating paths is that of equal m-separations."""
    same: dict[tuple, list[tuple[int, Marks]]] = {}
    for number, members in enumerate(pag_reference.classes(4)):
        for mag in members:
            unshielded = tuple(
                (a, b, c)
                for a, b, c in itertools.permutations(range(4), 3)
                if mag[a][b] == mag[c][b] == ARROW and not mag[a][c]
            )
            same.setdefault(
                (unshielded, tuple(mark > 0 for row in mag for mark in row)), []
            ).append((number, mag))
    verdicts = set()
    for group in same.values():
        for (k, a), (m, b) in itertools.islice(itertools.combinations(group, 2), 40):
            assert pag_reference.equivalent_by_paths(a, b) == (k == m)
            verdicts.add(k == m)
    assert verdicts == {True, False}


def test_mags_of_canonical_dags():
    for members in pag_reference.classes(4):
        case = fci_cases.canonical(members[-1])
        assert fci_cases.mag_of(case) == fci_cases.mag_of(case, by_ancestors=True) == members[-1]
    for case in random_cases(3, 60, observed=(3, 7)):
        mag = fci_cases.mag_of(case)
        assert mag == fci_cases.mag_of(case, by_ancestors=True)
        assert dag_to_mag(case.dag, latent=case.latent, selected=case.selected) == mixed(
            case.observed, mag
        )


# ---- all small MAGs


@pytest.mark.parametrize("block", range(4))
def test_every_class_of_small_mags(block: int):
    """Every Markov equivalence class on up to 4 nodes: from the graph, and by FCI from a DAG of a
    member.
    """
    for n in (2, 3, 4):
        names = tuple(f"x{i}" for i in range(n))
        for number, members in enumerate(pag_reference.classes(n)[block::4]):
            truth = mixed(names, pag_reference.agreement(members))
            for mag in members[:: max(1, len(members) // 4)]:
                assert mag_to_pag(mixed(names, mag)) == truth
            case = fci_cases.canonical(members[number % len(members)])
            rule = list(jaxcd.discovery.ColliderRule)[number % len(jaxcd.discovery.ColliderRule)]
            result = oracle_fci(case, colliders=rule)
            assert result.graph == truth, str(case)
            assert not result.info["ambiguous_triples"]
            assert_separated(case, result)


def test_without_selection_nothing_is_lost_by_leaving_out_its_rules():
    for members in pag_reference.classes(4)[::3]:
        plain = [
            m
            for m in members
            if not any(m[i][j] == m[j][i] == TAIL for i, j in pag_reference.edges_of(m))
        ]
        if plain:
            truth = pag_reference.agreement(members)
            assert truth == pag_reference.agreement(plain)
            case = fci_cases.canonical(plain[-1])
            assert oracle_fci(case, selection_bias=False).graph == mixed(case.observed, truth)


# ---- random graphs


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6))
def test_seeded_graphs(block: int):
    """Exact; and the three ways to the PAG, and other column orders, agree."""
    rng = np.random.default_rng(block)
    for case in random_cases(100 + block, 22, observed=(3, 7)):
        result = oracle_fci(case, stable=bool(rng.integers(2)))
        assert_correct(case, result)
        assert mag_to_pag(mixed(case.observed, fci_cases.mag_of(case))) == result.graph
        assert dag_to_pag(case.dag, latent=case.latent, selected=case.selected) == result.graph
        permuted = case.reordered(rng.permutation(len(case.dag)))
        assert oracle_fci(permuted).graph.reordered(case.observed) == result.graph, str(case)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_larger_graphs(block: int):
    rng = np.random.default_rng(block)
    for case in random_cases(200 + block, 7, observed=(8, 12)):
        result = oracle_fci(case)
        assert_correct(case, result, limit=1_000)
        assert not wrong_claims(case, result.graph)
        assert (
            oracle_fci(case.reordered(rng.permutation(len(case.dag)))).graph.reordered(
                case.observed
            )
            == result.graph
        )


@st.composite
def cases(draw: st.DrawFn, max_observed: int = 6) -> Case:
    """Arcs in the order of the names; each hidden node is latent or selected; the columns in any
    order.
    """
    n_observed = draw(st.integers(2, max_observed))
    n_hidden = draw(st.integers(0, 4))
    n = n_observed + n_hidden
    pairs = list(itertools.combinations(range(n), 2))
    arcs = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * n))
    hidden = draw(st.permutations(range(n)))[:n_hidden]
    n_selected = draw(st.integers(0, n_hidden))
    dag = nx.DiGraph()
    dag.add_nodes_from(f"v{k}" for k in draw(st.permutations(range(n))))
    dag.add_edges_from((f"v{a}", f"v{b}") for a, b in arcs)
    names = [f"v{k}" for k in hidden]
    return Case(dag, tuple(names[n_selected:]), tuple(names[:n_selected]))


@settings(max_examples=80)
@given(cases(), st.booleans(), st.sampled_from(jaxcd.discovery.ColliderRule))
def test_any_graph(case: Case, stable: bool, rule: jaxcd.discovery.ColliderRule):
    result = oracle_fci(case, stable=stable, colliders=rule)
    assert_correct(case, result)
    assert not result.info["ambiguous_triples"] and not result.exhausted


@settings(max_examples=40)
@given(cases(), st.integers(0, 3), st.integers(1, 4))
def test_limits_do_not_make_marks_wrong(case: Case, max_level: int, max_path_length: int):
    """The anytime limit: edges and circles may be too many, but what is said of ancestors is so
    (Spirtes 2001).
    """
    limited = oracle_fci(case, max_level=max_level)
    mag = mixed(case.observed, fci_cases.mag_of(case, by_ancestors=True))
    assert (limited.graph.adjacency | ~mag.adjacency).all()
    assert not wrong_claims(case, limited.graph)
    assert all(
        len(separating_set) <= max_level for separating_set in limited.separating_sets.values()
    )
    far = 2 * len(case.observed)
    assert oracle_fci(case, max_level=far, max_path_length=far).graph == oracle_fci(case).graph


# ---- graphs that need a given step


@pytest.mark.parametrize(("rule", "case"), RULES, ids=[rule for rule, _ in RULES])
def test_every_rule(rule: str, case: Case):
    result = oracle_fci(case)
    assert result.info["rule_counts"][rule] > 0
    assert result.graph == exact(case, limit=100_000)
    assert not wrong_claims(case, result.graph)


def test_every_rule_has_a_graph():
    assert {rule for rule, _ in RULES} == {f"R{k}" for k in range(1, 11)}


@pytest.mark.parametrize(
    "case", POSSIBLE_D_SEP, ids=lambda case: f"{len(case.observed)}-{len(case.latent)}"
)
def test_possible_d_sep(case: Case):
    """The graphs with a pair that no set of neighbours separates; the second pass finds what
    does.
    """
    result, one_pass = oracle_fci(case), oracle_fci(case, possible_d_sep=False)
    assert result.graph == exact(case, limit=100_000)
    assert_separated(case, result)
    extra = [
        pair
        for pair in itertools.combinations(case.observed, 2)
        if one_pass.graph.adjacent(*pair) and not result.graph.adjacent(*pair)
    ]
    assert extra
    for a, b in extra:
        separating_set = set(result.separating_sets[frozenset((a, b))])
        assert not separating_set <= set(one_pass.graph.neighbors(a))
        assert not separating_set <= set(one_pass.graph.neighbors(b))


def test_possible_d_sep_example_by_hand():
    case = POSSIBLE_D_SEP[0]
    result = oracle_fci(case)
    edges = ["A <-> B", "D --> A", "B --> E", "C o-> B", "D <-> E", "C o-> D"]
    assert result.graph == MixedGraph.from_edges(case.observed, edges)
    assert set(result.separating_sets[frozenset("AE")]) == {"B", "C", "D"}
    assert oracle_fci(case, possible_d_sep=False).graph.adjacent("A", "E")


# ---- the same answer whatever the order


@pytest.mark.parametrize("case", CORES, ids=[f"{i}" for i in range(len(CORES))])
def test_order_of_the_columns(case: Case):
    result = oracle_fci(case)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(case.dag))
        permuted = oracle_fci(case.reordered(order))
        assert permuted.graph.reordered(case.observed) == result.graph
        assert permuted.info["rule_counts"] == result.info["rule_counts"]


SCRIPT = """
import json, sys
import jaxcd
from tests.discovery import test_fci_truth as t
cases = [*t.POSSIBLE_D_SEP[:3], *t.random_cases(9, 8, observed=(5, 8))]
answers = []
for case in cases:
    result = t.oracle_fci(case)
    separated = result.separating_sets.items()
    sets = sorted((sorted(pair), list(separating_set)) for pair, separating_set in separated)
    answers.append([result.graph.marks.tolist(), sets, dict(result.info["rule_counts"])])
json.dump(answers, sys.stdout)
"""


@pytest.mark.slow
def test_hash_seed():
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    answers = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        answers.append(json.loads(run.stdout))
    assert answers[0] == answers[1] and len(answers[0]) == 11
