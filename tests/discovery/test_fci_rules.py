"""FCI's rules one by one, on graphs small enough for paper; what holds for every input; and the
path searches.
"""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaxcd.discovery import mag_to_pag, orient_pag
from jaxcd.discovery.constraint.fci_paths import UncoveredPaths, discriminating_ends, row_masks
from jaxcd.discovery.constraint.fci_rules import COLLIDERS, RULES, STAGES, Evidence
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import Mark, MixedGraph
from tests.helpers import SEEDS, refused

BY_NAME = {rule.name: rule for rule in (COLLIDERS, *RULES)}


def applied(
    rule: str,
    edges: str,
    *,
    sets: dict[str, str] | None = None,
    ambiguous: str = "",
    limit: int | None = None,
) -> set[str]:
    """The edges after one application; nodes are single letters, ``sets`` from pairs to members,
    triples as "abc".
    """
    found = [edge.strip() for edge in edges.split(",")]
    names = sorted({edge[0] for edge in found} | {edge[-1] for edge in found})
    graph = MixedGraph.from_edges(names, found)
    place = {name: i for i, name in enumerate(names)}
    evidence = Evidence(
        {
            tuple(sorted((place[p[0]], place[p[1]]))): frozenset(place[v] for v in given)
            for p, given in (sets or {}).items()
        },
        frozenset(tuple(place[v] for v in triple) for triple in ambiguous.split()),
        limit,
    )
    return {
        str(edge) for edge in MixedGraph(tuple(names), BY_NAME[rule](graph.marks, evidence)).edges()
    }


def edges(text: str) -> set[str]:
    found = [edge.strip() for edge in text.split(",")]
    names = sorted({edge[0] for edge in found} | {edge[-1] for edge in found})
    return {str(edge) for edge in MixedGraph.from_edges(names, found).edges()}


# (rule, before, after, evidence); the reason beside each.
CASES = [
    # b separates nothing of a, c: only a collider explains that it may be left out.
    ("R0", "a o-o b, b o-o c", "a o-> b, b <-o c", {"sets": {"ac": ""}}),
    ("R0", "a o-o b, b o-o c", "a o-o b, b o-o c", {"sets": {"ac": "b"}}),
    ("R0", "a o-o b, b o-o c", "a o-o b, b o-o c", {}),
    ("R0", "a o-o b, b o-o c", "a o-o b, b o-o c", {"sets": {"ac": ""}, "ambiguous": "cba"}),
    # shielded
    ("R0", "a o-o b, b o-o c, a o-o c", "a o-o b, b o-o c, a o-o c", {"sets": {"ac": ""}}),
    # a mark that stands is not overwritten: only the end of b - c at b is open.
    ("R0", "b --> a, b o-o c", "b --> a, b <-o c", {"sets": {"ac": ""}}),
    # no collider at b, which has an arrowhead already: b is a cause of c.
    ("R1", "a o-> b, b o-o c", "a o-> b, b --> c", {}),
    ("R1", "a <-> b, b o-> c", "a <-> b, b --> c", {}),
    ("R1", "a o-> b, b o-o c, a o-o c", "a o-> b, b o-o c, a o-o c", {}),
    ("R1", "a o-> b, b o-o c", "a o-> b, b o-o c", {"ambiguous": "abc"}),
    ("R1", "a o-> b, b <-o c", "a o-> b, b <-o c", {}),
    # R1 from a says b --> c, from d it says c --> b: both marks at both ends of b - c, so both
    # circles stay.
    ("R1", "a o-> b, b o-o c, d o-> c", "a o-> b, b o-o c, d o-> c", {}),
    # a tail at c would make c an ancestor of b, and so of a's or b's arrowhead.
    ("R2", "a --> b, b o-> c, a o-o c", "a --> b, b o-> c, a o-> c", {}),
    ("R2", "a o-> b, b --> c, a o-o c", "a o-> b, b --> c, a o-> c", {}),
    ("R2", "a o-> b, b o-> c, a o-o c", "a o-> b, b o-> c, a o-o c", {}),
    # were d below b, d would be a collider between a and c.
    (
        "R3",
        "a o-> b, c o-> b, a o-o d, c o-o d, d o-o b",
        "a o-> b, c o-> b, a o-o d, c o-o d, d o-> b",
        {},
    ),
    (
        "R3",
        "a o-> b, c o-> b, a o-o d, c o-o d, d o-o b, a o-o c",
        "a o-> b, c o-> b, a o-o d, c o-o d, d o-o b, a o-o c",
        {},
    ),
    (
        "R3",
        "a o-> b, c o-> b, a o-o d, c o-o d, d o-o b",
        "a o-> b, c o-> b, a o-o d, c o-o d, d o-o b",
        {"ambiguous": "adc"},
    ),
    # (t, a, b, c) discriminates for b: a is a collider and a parent of c, t and c are not adjacent.
    (
        "R4",
        "t o-> a, a <-o b, a --> c, b o-o c",
        "t o-> a, a <-o b, a --> c, b --> c",
        {"sets": {"ct": "ab"}},
    ),
    (
        "R4",
        "t o-> a, a <-o b, a --> c, b o-o c",
        "t o-> a, a <-> b, a --> c, b <-> c",
        {"sets": {"ct": "a"}},
    ),
    ("R4", "t o-> a, a <-o b, a --> c, b o-o c", "t o-> a, a <-o b, a --> c, b o-o c", {}),
    (
        "R4",
        "t o-> a, a <-o b, a --> c, b o-o c",
        "t o-> a, a <-o b, a --> c, b o-o c",
        {"sets": {"ct": "a"}, "ambiguous": "tbc"},
    ),
    (
        "R4",
        "t o-> a, a o-o b, a --> c, b o-o c",
        "t o-> a, a o-o b, a --> c, b o-o c",
        {"sets": {"ct": "ab"}},
    ),
    (
        "R4",
        "t o-> a, a <-o b, a o-> c, b o-o c",
        "t o-> a, a <-o b, a o-> c, b o-o c",
        {"sets": {"ct": "ab"}},
    ),
    (
        "R4",
        "t o-> a, a <-o b, a --> c, b o-o c, t o-o c",
        "t o-> a, a <-o b, a --> c, b o-o c, t o-o c",
        {"sets": {"ct": "ab"}},
    ),
    # the same over two colliders: a path of four edges.
    (
        "R4",
        "t o-> u, u <-> a, u --> c, a <-o b, a --> c, b o-> c",
        "t o-> u, u <-> a, u --> c, a <-o b, a --> c, b --> c",
        {"sets": {"ct": "uab"}},
    ),
    (
        "R4",
        "t o-> u, u <-> a, u --> c, a <-o b, a --> c, b o-> c",
        "t o-> u, u <-> a, u --> c, a <-> b, a --> c, b <-> c",
        {"sets": {"ct": "ua"}, "limit": 4},
    ),
    (
        "R4",
        "t o-> u, u <-> a, u --> c, a <-o b, a --> c, b o-> c",
        "t o-> u, u <-> a, u --> c, a <-o b, a --> c, b o-> c",
        {"sets": {"ct": "ua"}, "limit": 3},
    ),
    # two paths that contradict each other: both put an arrowhead at c, and nothing is said about b.
    (
        "R4",
        "t o-> a, s o-> a, a <-o b, a --> c, b o-o c",
        "t o-> a, s o-> a, a <-o b, a --> c, b o-> c",
        {"sets": {"ct": "ab", "cs": "a"}},
    ),
    # an arrowhead anywhere on an uncovered circle cycle would run around it.
    ("R5", "a o-o b, b o-o c, c o-o d, a o-o d", "a --- b, b --- c, c --- d, a --- d", {}),
    (
        "R5",
        "a o-o b, b o-o c, c o-o d, d o-o e, a o-o e",
        "a --- b, b --- c, c --- d, d --- e, a --- e",
        {},
    ),
    (
        "R5",
        "a o-o b, b o-o c, c o-o d, d o-o e, a o-o e",
        "a o-o b, b o-o c, c o-o d, d o-o e, a o-o e",
        {"limit": 3},
    ),
    # a chord
    (
        "R5",
        "a o-o b, b o-o c, c o-o d, a o-o d, a o-o c",
        "a o-o b, b o-o c, c o-o d, a o-o d, a o-o c",
        {},
    ),
    ("R5", "a o-o b, b o-o c, a o-o c", "a o-o b, b o-o c, a o-o c", {}),  # a triangle
    ("R5", "a o-o b, b o-o c, c o-o d, a o-> d", "a o-o b, b o-o c, c o-o d, a o-> d", {}),
    (
        "R5",
        "a o-o b, b o-o c, c o-o d, a o-o d",
        "a o-o b, b o-o c, c o-o d, a o-o d",
        {"ambiguous": "bcd"},
    ),
    # an end of an undirected edge has no arrowhead.
    ("R6", "a --- b, b o-o c", "a --- b, b --o c", {}),
    ("R6", "a --- b, b o-> c, a o-> c", "a --- b, b --> c, a --> c", {}),
    ("R6", "a --o b, b o-o c", "a --o b, b o-o c", {}),
    # an arrowhead at b from c would make a --> b <-* c a collider, or a --- b with an arrowhead at
    # b.
    ("R7", "a --o b, b o-o c", "a --o b, b --o c", {}),
    ("R7", "a --o b, b o-> c", "a --o b, b --> c", {}),
    ("R7", "a --o b, b o-o c, a o-o c", "a --o b, b o-o c, a o-o c", {}),
    ("R7", "a --o b, b o-o c", "a --o b, b o-o c", {"ambiguous": "abc"}),
    ("R7", "a --> b, b o-o c", "a --> b, b o-o c", {}),
    # a is an ancestor of c, or of the selection, over b.
    ("R8", "a --> b, b --> c, a o-> c", "a --> b, b --> c, a --> c", {}),
    ("R8", "a --o b, b --> c, a o-> c", "a --o b, b --> c, a --> c", {}),
    ("R8", "a o-> b, b --> c, a o-> c", "a o-> b, b --> c, a o-> c", {}),
    ("R8", "a --> b, b o-> c, a o-> c", "a --> b, b o-> c, a o-> c", {}),
    ("R8", "a --> b, b --> c, a o-o c", "a --> b, b --> c, a o-o c", {}),
    # were a <-> c, then a --> b by the triple c, a, b, then b --> d --> c, and a an ancestor of c.
    ("R9", "a o-> c, a o-o b, b o-o d, d --> c", "a --> c, a o-o b, b o-o d, d --> c", {}),
    # the same the other way round for d o-> c, over b and a
    ("R9", "a o-> c, a o-o b, b o-o d, d o-> c", "a --> c, a o-o b, b o-o d, d --> c", {}),
    ("R9", "a o-> c, a o-o b, b o-o d, d o-o c", "a --> c, a o-o b, b o-o d, d o-o c", {}),
    (
        "R9",
        "a o-> c, a o-o b, b o-o d, d o-> c, b o-o c",
        "a o-> c, a o-o b, b o-o d, d o-> c, b o-o c",
        {},
    ),
    (
        "R9",
        "a o-> c, a o-o b, b o-o d, d o-> c, a o-o d",
        "a o-> c, a o-o b, b o-o d, d o-> c, a o-o d",
        {},
    ),
    ("R9", "a o-> c, a o-o b, b <-o d, d --> c", "a o-> c, a o-o b, b <-o d, d --> c", {}),
    ("R9", "a o-> c, a o-o b, b o-- d, d --> c", "a o-> c, a o-o b, b o-- d, d --> c", {}),
    (
        "R9",
        "a o-> c, a o-o b, b o-o d, d o-> c",
        "a o-> c, a o-o b, b o-o d, d o-> c",
        {"limit": 2},
    ),
    (
        "R9",
        "a o-> c, a o-o b, b o-o d, d o-> c",
        "a o-> c, a o-o b, b o-o d, d o-> c",
        {"ambiguous": "bac"},
    ),
    # a has a tail towards m or towards w, as m, a, w is no collider, and both lead to c.
    (
        "R10",
        "a o-> c, b --> c, d --> c, a o-o b, a o-o d",
        "a --> c, b --> c, d --> c, a o-o b, a o-o d",
        {},
    ),
    (
        "R10",
        "a o-> c, b --> c, d --> c, a o-> m, m o-o b, a o-o w, w o-> d",
        "a --> c, b --> c, d --> c, a o-> m, m o-o b, a o-o w, w o-> d",
        {},
    ),
    (
        "R10",
        "a o-> c, b --> c, d --> c, a o-o b, a o-o d, b o-o d",
        "a o-> c, b --> c, d --> c, a o-o b, a o-o d, b o-o d",
        {},
    ),
    (
        "R10",
        "a o-> c, b --> c, d o-> c, a o-o b, a o-o d",
        "a o-> c, b --> c, d o-> c, a o-o b, a o-o d",
        {},
    ),
    (
        "R10",
        "a o-> c, b --> c, d --> c, a o-o b, a <-o d",
        "a o-> c, b --> c, d --> c, a o-o b, a <-o d",
        {},
    ),
    (
        "R10",
        "a o-> c, b --> c, d --> c, a o-o b, a o-o d",
        "a o-> c, b --> c, d --> c, a o-o b, a o-o d",
        {"ambiguous": "bad"},
    ),
    # both paths over the same first node
    (
        "R10",
        "a o-> c, b --> c, d --> c, a o-o m, m o-o b, m o-o d",
        "a o-> c, b --> c, d --> c, a o-o m, m o-o b, m o-o d",
        {},
    ),
]


@pytest.mark.parametrize(
    ("rule", "before", "after", "evidence"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_each_rule_on_paper(rule: str, before: str, after: str, evidence: dict):
    assert applied(rule, before, **evidence) == edges(after)


def test_the_table_is_complete():
    assert [rule.name for rule in RULES] == [f"R{k}" for k in range(1, 11)]
    assert [rule for stage in STAGES for rule in stage] == list(RULES)
    assert {case[0] for case in CASES} == set(BY_NAME)


# ---- what holds for every input


def random_marks(rng: np.random.Generator, d: int) -> np.ndarray:
    marks = np.zeros((d, d), dtype=np.int8)
    for i, j in itertools.combinations(range(d), 2):
        if rng.random() < 0.6:
            marks[i, j], marks[j, i] = rng.choice([1, 1, 2, 3], 2)
    return marks


def random_evidence(rng: np.random.Generator, marks: np.ndarray) -> Evidence:
    d = len(marks)
    sets = {
        (i, j): frozenset(v for v in range(d) if v not in (i, j) and rng.random() < 0.5)
        for i, j in itertools.combinations(range(d), 2)
        if not marks[i, j] and rng.random() < 0.9
    }
    triples = frozenset(
        tuple(map(int, rng.permutation(d)[:3])) for _ in range(int(rng.integers(3)))
    )
    return Evidence(sets, triples, [None, 3, 4][int(rng.integers(3))])


def moved(evidence: Evidence, place: list[int]) -> Evidence:
    return Evidence(
        {
            tuple(sorted((place[x], place[y]))): {place[v] for v in given}
            for (x, y), given in evidence.separating_sets.items()
        },
        frozenset((place[x], place[z], place[y]) for x, z, y in evidence.ambiguous),
        evidence.max_path_length,
    )


@settings(max_examples=150)
@example(6, 27184883, "R4")  # an arrowhead of one path was taken back by a later edge
@given(st.integers(3, 7), SEEDS, st.sampled_from(sorted(BY_NAME)))
def test_rules_change_circles_only_and_know_no_order(d: int, seed: int, name: str):
    rng = np.random.default_rng(seed)
    marks = random_marks(rng, d)
    evidence = random_evidence(rng, marks)
    rule = BY_NAME[name]
    result = rule(marks, evidence)
    assert result.dtype == np.int8
    assert ((result == marks) | (marks == Mark.CIRCLE)).all() and (
        (result == Mark.NONE) == (marks == Mark.NONE)
    ).all()
    order = rng.permutation(d)
    place = np.argsort(order).tolist()
    np.testing.assert_array_equal(
        rule(marks[np.ix_(order, order)], moved(evidence, place)), result[np.ix_(order, order)]
    )


@settings(max_examples=80)
@given(st.integers(3, 8), SEEDS, st.booleans())
def test_contradictory_sets_give_one_answer_in_any_order(d: int, seed: int, selection_bias: bool):
    rng = np.random.default_rng(seed)
    marks = random_marks(rng, d)
    evidence = random_evidence(rng, marks)
    names = [f"v{int(k)}" for k in rng.permutation(d)]
    sets = {
        frozenset(names[v] for v in pair): tuple(names[v] for v in given)
        for pair, given in evidence.separating_sets.items()
    }
    ambiguous = [tuple(names[v] for v in triple) for triple in evidence.ambiguous]
    options = {
        "separating_sets": sets,
        "ambiguous": ambiguous,
        "selection_bias": selection_bias,
        "max_path_length": evidence.max_path_length,
    }
    graph = MixedGraph(tuple(names), marks)
    first = orient_pag(graph, **options)
    second = orient_pag(graph.permuted(rng.permutation(d)), **options)
    assert second.graph.reordered(names) == first.graph
    assert second.rule_counts == first.rule_counts
    assert sum(first.rule_counts.values()) == int((first.graph.marks > Mark.CIRCLE).sum())
    if not selection_bias:
        assert not any(first.rule_counts[name] for name in ("R5", "R6", "R7"))


# ---- paths


@settings(max_examples=60)
@given(st.integers(3, 7), SEEDS, st.sampled_from([None, 1, 2, 3, 5]))
def test_uncovered_paths_are_those_of_brute_force(d: int, seed: int, limit: int | None):
    rng = np.random.default_rng(seed)
    steps = rng.random((d, d)) < rng.uniform(0.2, 0.6)
    # more than graphs can be: walks that are no paths are then frequent
    apart = rng.random((d, d)) < 0.6
    apart |= apart.T
    np.fill_diagonal(steps, False)
    np.fill_diagonal(apart, False)
    paths = UncoveredPaths(row_masks(steps), row_masks(apart), max_length=limit)
    for a, c in itertools.permutations(range(d), 2):
        before = {v for v in range(d) if rng.random() < 0.7}
        seconds = {
            path[1]
            for path in nx.all_simple_paths(
                nx.from_numpy_array(steps, create_using=nx.DiGraph), a, c, cutoff=limit
            )
            if path[-2] in before and all(apart[u, w] for u, w in zip(path, path[2:], strict=False))
        }
        mask = sum(1 << v for v in before)
        assert {
            b for b in range(d) if b != a and paths.connects(a, b, c, before_last=mask)
        } == seconds


def test_a_walk_is_not_taken_for_a_path():
    """0, 1, 2, 3, 4, 1, 5 is the only uncovered walk: 0 and 5 lie around 1 with an edge between
    them, and it comes to 1 twice.
    """
    graph = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 1), (1, 5), (0, 5), (2, 5)])
    steps = nx.to_numpy_array(graph, nodelist=range(6)) > 0
    apart = ~steps & ~np.eye(6, dtype=bool)
    steps[0, 5] = steps[5, 0] = steps[2, 5] = steps[5, 2] = False
    paths = UncoveredPaths(row_masks(steps), row_masks(apart))
    assert paths.follows(4, 1) >> 5 & 1
    assert (1, 5) in paths._walks(0, 1)
    assert not paths.connects(0, 1, 5)


@settings(max_examples=150)
@given(st.integers(4, 7), SEEDS, st.sampled_from([None, 3, 4]))
def test_discriminating_paths_are_those_of_the_definition(d: int, seed: int, limit: int | None):
    rng = np.random.default_rng(seed)
    marks = np.zeros((d, d), dtype=np.int8)
    for i, j in itertools.combinations(range(d), 2):
        if rng.random() < 0.8:
            marks[i, j], marks[j, i] = rng.choice([1, 2, 2, 3], 2)
    for v in range(1, d - 1):  # the last node has many parents
        if rng.random() < 0.7:
            marks[v, d - 1], marks[d - 1, v] = 2, 3
    alpha, beta, gamma = 1, 2, d - 1
    marks[beta, alpha], marks[alpha, beta] = 2, rng.choice([1, 2])
    marks[beta, gamma], marks[gamma, beta] = rng.choice([1, 2]), 1
    expected = set()
    inner = [v for v in range(d) if v not in (alpha, beta, gamma)]
    for size in range(len(inner)):
        for theta, *between in itertools.permutations(inner, size + 1):
            path = [theta, *between, alpha, beta]
            colliders = all(
                marks[u, v] == marks[w, v] == 2
                for u, v, w in zip(path, path[1:], path[2:], strict=False)
            )
            parents = all(marks[v, gamma] == 2 and marks[gamma, v] == 3 for v in path[1:-1])
            if (
                colliders
                and parents
                and not marks[theta, gamma]
                and (limit is None or len(path) <= limit)
            ):
                expected.add(theta)
    assert (
        set(discriminating_ends(marks, alpha=alpha, beta=beta, gamma=gamma, max_length=limit))
        == expected
    )


# ---- whole orientations


def test_known_pags():
    # Y structure: the edge into d is a cause.  The square has no chord: selection or nothing.
    y = MixedGraph.from_edges([*"abcd"], ["a --> b", "c --> b", "b --> d"])
    assert {str(edge) for edge in mag_to_pag(y).edges()} == {"a o-> b", "c o-> b", "b --> d"}
    square = MixedGraph.from_edges([*"abcd"], ["a --- b", "b --- c", "c --- d", "a --- d"])
    assert mag_to_pag(square) == square
    for graph in (y, square):
        assert mag_to_pag(graph.permuted([2, 0, 3, 1])).reordered(graph.names) == mag_to_pag(graph)


def test_selection_rules_can_be_left_out():
    square = MixedGraph.from_edges([*"abcd"], ["a o-o b", "b o-o c", "c o-o d", "a o-o d"])
    sets = {frozenset("ac"): ("b", "d"), frozenset("bd"): ("a", "c")}
    assert orient_pag(square, separating_sets=sets).rule_counts["R5"] == 8
    assert orient_pag(square, separating_sets=sets, selection_bias=False).graph == square


def test_a_pair_without_a_set_gives_neither_collider_nor_non_collider():
    graph = MixedGraph.from_edges([*"abcd"], ["a o-o b", "b o-o c", "d o-o b"])
    oriented = orient_pag(graph, separating_sets={frozenset("ad"): ()}).graph
    # a o-> b <-o d; c - b stays open at both ends, though R1 would orient it if a, b, c were a
    # non-collider.
    assert {str(edge) for edge in oriented.edges()} == {"a o-> b", "b o-o c", "d o-> b"}


def test_malformed_arguments_are_named():
    chain = MixedGraph.from_edges([*"abc"], ["a o-o b", "b o-o c"])
    refused(GraphError, "separating_sets", orient_pag, chain, separating_sets={frozenset("az"): ()})
    refused(
        GraphError, "separating_sets", orient_pag, chain, separating_sets={frozenset("ac"): ("z",)}
    )
    refused(
        GraphError, "ambiguous", orient_pag, chain, separating_sets={}, ambiguous=[("a", "b", "z")]
    )
    refused(
        OptionError, "max_path_length", orient_pag, chain, separating_sets={}, max_path_length=0
    )
    refused(
        OptionError, "selection_bias", orient_pag, chain, separating_sets={}, selection_bias=None
    )
    refused(GraphError, "mag", mag_to_pag, MixedGraph.from_edges([*"ab"], ["a o-> b"]))
