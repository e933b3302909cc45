"""Background knowledge: contradictions are refused, and what it says about marks and separating
sets holds on DAGs.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.errors import FormatError, JaxcdError, OptionError
from jaxcd.graphs import (
    DSeparation,
    Knowledge,
    Mark,
    MixedGraph,
    dag_to_cpdag,
    dag_to_mag,
    random_dag,
)
from tests.helpers import SEEDS, refused

# ---- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tiers": "abc"}, "tiers must be a collection"),
        ({"tiers": ["abc"]}, r"tiers\[0\] must be a collection"),
        ({"tiers": 3}, "tiers must be a collection"),
        ({"tiers": {("a",), ("b",)}}, "must be in order"),
        ({"tiers": [["a", 1]]}, r"tiers\[0\]: a name is a non-empty string, got 1"),
        ({"tiers": [["a"], [""]]}, r"tiers\[1\]: a name"),
        ({"tiers": [["a", "b", "a"]]}, r"'a' is twice in tiers\[0\]"),
        ({"tiers": [["a"], ["b"], ["a"]]}, r"'a' is in tiers\[0\] and in tiers\[2\]"),
        ({"forbidden": ("a", "b")}, "forbidden edge 'a': an edge is a pair"),
        ({"forbidden": ["ab"]}, "forbidden edge 'ab': an edge is a pair"),
        ({"forbidden": [{"a", "b"}]}, "an edge is a pair"),
        ({"forbidden": [("a", "b", "c")]}, "an edge is a pair"),
        ({"forbidden": [("a", None)]}, "got None"),
        ({"forbidden": [("a", "a")]}, "two different variables"),
        ({"forbidden": [("a", "b"), ("a", "b")]}, "forbidden edge 'a' --> 'b' is given twice"),
        ({"required": [("a", "b"), ("a", "b")]}, "required edge 'a' --> 'b' is given twice"),
        (
            {"required": [("a", "b"), ("b", "a")]},
            "required edges 'a' --> 'b' --> 'a': the edge is required in both",
        ),
        (
            {"required": [("b", "c"), ("c", "a"), ("a", "b"), ("a", "d")]},
            "'a' --> 'b' --> 'c' --> 'a': the edges form a",
        ),
        (
            {"required": [("a", "b")], "forbidden": [("a", "b")]},
            "required edge 'a' --> 'b': 'a' --> 'b' is forbidden; remove",
        ),
        (
            {"tiers": [["a"], ["x"], ["b"]], "required": [("b", "a")]},
            r"required edge 'b' --> 'a': 'b' is in the later tiers\[2\], 'a' in tiers\[0\]; remove",
        ),
        (
            {"tiers": [["a"], ["b"]], "required": [("b", "z"), ("z", "y"), ("y", "a")]},
            "'b' --> 'z' --> 'y' --> 'a' make 'b' an ancestor of 'a', but 'b' is in the later",
        ),
        (
            {"tiers": [["a", "b"]], "required": [("b", "a")], "forbidden_within_tier": True},
            r"required edge 'b' --> 'a': both are in tiers\[0\]",
        ),
        ({"forbidden_within_tier": 1}, "must be True or False, got 1"),
    ],
)
def test_contradictions_and_malformed_statements_are_refused(arguments: dict, message: str) -> None:
    refused(OptionError, message, Knowledge, **arguments)


def test_unknown_names() -> None:
    names = ["smoking", "cancer", "age"]
    for knowledge, message in (
        (
            Knowledge(tiers=[["age"], ["smokin"]]),
            r"tiers\[1\]: there is no variable 'smokin'; did you mean 'smoking'?",
        ),
        (
            Knowledge(forbidden=[("age", "XYZ")]),
            "forbidden edge 'age' --> 'XYZ': there is no variable 'XYZ'; the names",
        ),
        (
            Knowledge(required=[("XYZ", "age")]),
            "required edge 'XYZ' --> 'age': there is no variable 'XYZ'",
        ),
    ):
        for call in (knowledge.check, knowledge.arrowheads, knowledge.tails):
            refused(OptionError, message, call, names)
    Knowledge(tiers=[["age"]], required=[("smoking", "cancer")]).check(names)
    with pytest.raises(
        OptionError, match="names must be a sequence of names, got the single text 'age'"
    ):
        Knowledge(tiers=[["age"]]).check("age")


def test_a_forbidden_pair_contradicts_a_path_among_ancestors_only() -> None:
    knowledge = Knowledge(required=[("a", "b"), ("b", "c")], forbidden=[("a", "c")])
    knowledge.check(list("abc"))
    with pytest.raises(
        OptionError,
        match="'a' --> 'b' --> 'c' make 'a' an ancestor of 'c', but 'a' --> 'c' is forbidden",
    ):
        knowledge.check(list("abc"), ancestral=True)
    within = Knowledge(
        tiers=[["a", "c"]], required=[("a", "b"), ("b", "c")], forbidden_within_tier=True
    )
    within.check(list("abc"))
    refused(OptionError, "both are in", within.check, list("abc"), ancestral=True)
    Knowledge(required=[("a", "b"), ("b", "c")], forbidden=[("c", "a")]).check(
        list("abc"), ancestral=True
    )


names_ = st.sampled_from("abcd")
pairs_ = st.lists(
    st.tuples(names_, names_).filter(lambda pair: pair[0] != pair[1]), unique=True, max_size=4
)


@settings(max_examples=100)
@given(
    st.lists(st.integers(-1, 2), min_size=4, max_size=4),
    pairs_,
    pairs_,
    st.booleans(),
    st.booleans(),
)
def test_knowledge_is_refused_exactly_if_no_dag_fits(
    tier: list[int],
    forbidden: list[tuple[str, str]],
    required: list[tuple[str, str]],
    within: bool,
    ancestral: bool,
) -> None:
    """The required edges alone are the DAG that fits, if any does: more edges make more
    ancestors.
    """
    dag = nx.DiGraph()
    dag.add_nodes_from("abcd")
    dag.add_edges_from(required)
    place = dict(zip("abcd", tier, strict=True))
    fits = nx.is_directed_acyclic_graph(dag)
    for a, b in itertools.permutations("abcd", 2):
        ordered = place[a] >= 0 and place[b] >= 0
        fits &= not (ordered and place[a] > place[b] and nx.has_path(dag, a, b))
        excluded = (a, b) in forbidden or (within and ordered and place[a] == place[b])
        fits &= not (excluded and (nx.has_path(dag, a, b) if ancestral else dag.has_edge(a, b)))
    tiers = [[name for name in "abcd" if place[name] == k] for k in range(3)]

    def build() -> Knowledge:
        knowledge = Knowledge(
            tiers=tiers, forbidden=forbidden, required=required, forbidden_within_tier=within
        )
        knowledge.check(list("abcd"), ancestral=ancestral)
        return knowledge

    if fits:
        assert Knowledge.from_json_dict(json.loads(json.dumps(build().to_json_dict()))) == build()
    else:
        pytest.raises(OptionError, build)


# ---- what it says


def test_answers_by_hand() -> None:
    names = ["late", "free", "early", "mid"]
    knowledge = Knowledge(
        tiers=[["early"], ["mid"], ["late"]],
        forbidden=[("early", "late")],
        required=[("early", "mid"), ("free", "late")],
    )
    assert [knowledge.tier_of(name) for name in names] == [2, None, 0, 1]
    assert knowledge.arrowheads(names).astype(int).tolist() == [
        [0, 0, 1, 0],  # late: early is forbidden to cause it
        [1, 0, 0, 0],  # free: required to cause late
        [1, 0, 0, 1],  # early: late and mid are later
        [1, 0, 0, 0],  # mid: late is later
    ]
    assert np.argwhere(knowledge.tails(names)).tolist() == [[0, 1], [3, 2]]
    assert knowledge.adjacency_forbidden("late", "early") and knowledge.adjacency_forbidden(
        "early", "late"
    )
    assert not knowledge.adjacency_forbidden("late", "mid")
    assert knowledge.adjacency_required("late", "free") and knowledge.adjacency_required(
        "free", "late"
    )
    assert not knowledge.adjacency_required("late", "mid")
    assert knowledge.requires("early", "mid") and not knowledge.requires("mid", "early")
    assert knowledge.may_separate("early", "mid", names).tolist() == [False, True, False, False]
    assert knowledge.may_separate("early", "late", names).tolist() == [False, True, False, True]
    assert knowledge.may_separate("early", "free", names).tolist() == [True, False, False, True]


def test_a_path_of_required_edges_excludes_the_way_back() -> None:
    knowledge = Knowledge(required=[("a", "b"), ("b", "c")])
    assert knowledge.forbids("c", "a") and not knowledge.forbids("a", "c")
    assert not knowledge.requires("a", "c") and not knowledge.adjacency_required("a", "c")
    names = list("abc")
    assert np.argwhere(knowledge.arrowheads(names)).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert np.argwhere(knowledge.tails(names)).tolist() == [[1, 0], [2, 1]]
    along = knowledge.tails(names, along_paths=True)
    assert np.argwhere(along).tolist() == [[1, 0], [2, 0], [2, 1]]
    # With the direct edge forbidden too, no DAG joins the ends.
    apart = Knowledge(required=[("a", "b"), ("b", "c")], forbidden=[("a", "c")])
    assert apart.adjacency_forbidden("a", "c")


def test_a_tier_reaches_along_required_edges() -> None:
    """m, without a tier, comes after q and so after what is earlier than q."""
    knowledge = Knowledge(tiers=[["e"], ["q"]], required=[("q", "m")])
    assert knowledge.forbids("m", "e") and not knowledge.forbids("e", "m")
    assert np.argwhere(knowledge.arrowheads(list("emq"))).tolist() == [[0, 1], [0, 2], [2, 1]]
    knowledge = Knowledge(tiers=[["e"], ["q"]], required=[("m", "e")])
    assert knowledge.forbids("q", "m") and not knowledge.forbids("m", "q")


@settings(max_examples=200)
@given(
    st.lists(st.integers(-1, 2), min_size=4, max_size=4),
    pairs_,
    pairs_,
    st.booleans(),
    st.tuples(names_, names_).filter(lambda pair: pair[0] != pair[1]),
)
def test_an_edge_is_forbidden_exactly_if_no_dag_with_it_fits(
    tier: list[int],
    forbidden: list[tuple[str, str]],
    required: list[tuple[str, str]],
    within: bool,
    edge: tuple[str, str],
) -> None:
    tiers = [[name for name, k in zip("abcd", tier, strict=True) if k == j] for j in range(3)]

    def with_required(pairs: list[tuple[str, str]]) -> Knowledge | None:
        try:
            return Knowledge(
                tiers=tiers, forbidden=forbidden, required=pairs, forbidden_within_tier=within
            )
        except OptionError:
            return None

    knowledge = with_required(required)
    if knowledge is not None:
        fits = edge in required or with_required([*required, edge]) is not None
        assert knowledge.forbids(*edge) != fits


def test_within_a_tier() -> None:
    knowledge = Knowledge(tiers=[["a", "b"], ["c"]], forbidden_within_tier=True)
    assert knowledge.adjacency_forbidden("a", "b") and not knowledge.adjacency_forbidden("a", "c")
    assert knowledge.arrowheads(list("abcd")).astype(int).tolist() == [
        [0, 1, 1, 0],
        [1, 0, 1, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]


def test_nothing_known() -> None:
    knowledge = Knowledge()
    assert not knowledge.arrowheads(list("ab")).any() and not knowledge.tails(list("ab")).any()
    assert knowledge.arrowheads([]).shape == knowledge.tails([]).shape == (0, 0)
    assert not knowledge.forbids("a", "b")
    assert knowledge.may_separate("a", "b", list("abcd")).tolist() == [False, False, True, True]


@settings(max_examples=60)
@given(SEEDS)
def test_matrices_agree_with_pairs_and_with_the_order_of_names(seed: int) -> None:
    dag, knowledge = _known_dag(seed, 7)
    names = list(dag)
    heads, tails = knowledge.arrowheads(names), knowledge.tails(names)
    for (i, a), (j, b) in itertools.product(enumerate(names), repeat=2):
        assert heads[i, j] == (a != b and knowledge.forbids(b, a))
        assert tails[i, j] == knowledge.requires(b, a)
    order = np.random.default_rng(seed).permutation(len(names))
    shuffled = [names[k] for k in order]
    assert (knowledge.arrowheads(shuffled) == heads[np.ix_(order, order)]).all()
    assert (knowledge.tails(shuffled) == tails[np.ix_(order, order)]).all()


def _known_dag(seed: int, n: int, *, degree: float = 2.5) -> tuple[nx.DiGraph, Knowledge]:
    """A random DAG and true knowledge of every kind about it, in the ancestral reading."""
    rng = np.random.default_rng(seed)
    dag = random_dag(n, expected_degree=degree, seed=rng)
    tier, lowest = {}, 0
    for node in nx.topological_sort(dag):
        lowest += int(rng.random() < 0.4)
        if rng.random() < 0.8:
            tier[node] = lowest
    tiers = [[name for name in dag if tier.get(name) == k] for k in range(lowest + 1)]
    forbidden = [
        (a, b)
        for a, b in itertools.permutations(dag, 2)
        if rng.random() < 0.2 and not nx.has_path(dag, a, b)
    ]
    required = [arc for arc in dag.edges if rng.random() < 0.3]
    knowledge = Knowledge(tiers=tiers, forbidden=forbidden, required=required)
    knowledge.check(list(dag), ancestral=True)
    return dag, knowledge


@pytest.mark.parametrize("seed", range(40))
def test_true_knowledge_agrees_with_the_true_graphs(seed: int) -> None:
    """The marks it asks for are those of the DAG, and of the MAG if variables are hidden; no CPDAG
    has the opposite.
    """
    dag, knowledge = _known_dag(seed, 8)
    heads, tails = knowledge.arrowheads(list(dag)), knowledge.tails(list(dag))
    full, cpdag = MixedGraph.from_dag(dag), dag_to_cpdag(dag)
    assert (full.marks[heads & full.adjacency] == Mark.ARROW).all()
    assert (full.marks[tails] == Mark.TAIL).all() and (cpdag.marks[tails] == Mark.TAIL).all()
    assert not (cpdag.directed & heads.T).any()
    hidden = list(dag)[:2]
    mag = dag_to_mag(dag, latent=hidden)
    rest = [list(dag).index(name) for name in mag.names]
    part = np.ix_(rest, rest)
    assert (mag.marks[heads[part] & mag.adjacency] == Mark.ARROW).all()
    assert (mag.marks[tails[part]] == Mark.TAIL).all()


# ---- separating sets without later tiers


def _smallest(separation: DSeparation, x: int, y: int, candidates: list[int]) -> int | None:
    """The size of the smallest subset of the candidates that separates x and y; None if none
    does.
    """
    for size in range(len(candidates) + 1):
        if any(separation.separated(x, y, z) for z in itertools.combinations(candidates, size)):
            return size
    return None


def _compare(
    dag: nx.DiGraph, knowledge: Knowledge, latent: int, selected: list[int]
) -> tuple[int, int]:
    """How many separable pairs have candidates left out, and how many of them have lost their
    smallest separating set.
    """
    names, separation = list(dag), DSeparation(dag, selected=selected)
    observed = [v for v in range(len(names) - latent) if v not in selected]
    cut = lost = 0
    for x, y in itertools.combinations(observed, 2):
        kept = knowledge.may_separate(names[x], names[y], names)
        candidates = [v for v in observed if v not in (x, y)]
        fewer = [v for v in candidates if kept[v]]
        size = _smallest(separation, x, y, candidates)
        if size is not None and len(fewer) < len(candidates):
            cut += 1
            lost += _smallest(separation, x, y, fewer) != size
    return cut, lost


@pytest.mark.parametrize("latent", [0, 1, 2, 3])
def test_no_separating_set_is_lost_with_the_later_tiers(latent: int) -> None:
    """Brute force: some observed set separates x and y exactly if one of the same size without
    later tiers does.
    """
    cut = 0
    for seed in range(80):
        dag, knowledge = _known_dag(seed, 6 + latent, degree=3.0)
        more, lost = _compare(dag, knowledge, latent, [])
        assert lost == 0
        cut += more
    assert cut > 60  # pairs for which the tiers left candidates out


def test_with_selection_a_separating_set_can_be_lost() -> None:
    dag = nx.DiGraph([("x", "w"), ("w", "s"), ("y", "s")])
    knowledge = Knowledge(tiers=[["x", "y"], ["w"]])
    separation = DSeparation(dag, selected=[list(dag).index("s")])
    x, w, y = (list(dag).index(name) for name in "xwy")
    assert not knowledge.may_separate("x", "y", ["w"])[0]
    assert separation.separated(x, y, [w]) and not separation.separated(x, y, [])
    # The arrowhead that the tiers ask for is wrong as well: in the MAG the edges are undirected.
    mag = dag_to_mag(dag, selected=["s"])
    assert mag.has_edge("x", "w", symbol="---")
    assert knowledge.arrowheads(["x", "w", "y"])[0, 1]


@pytest.mark.parametrize("latent", [0, 2])
def test_with_selection_nothing_is_lost_if_later_tiers_do_not_cause_it(latent: int) -> None:
    kept = broken = cut = 0
    for seed in range(60):
        dag, knowledge = _known_dag(seed, 7 + latent, degree=3.0)
        names = list(dag)
        selected = [int(np.random.default_rng(seed).integers(7))]
        # The reading of tiers under selection: those after the first are no ancestors of it.
        ancestors = nx.ancestors(dag, names[selected[0]]) | {names[selected[0]]}
        used = [tier for tier in knowledge.tiers if tier]
        late = {name for tier in used[1:] for name in tier}
        more, lost = _compare(dag, knowledge, latent, selected)
        if late & ancestors:
            broken += lost
        else:
            kept += 1
            cut += more
            assert lost == 0
    assert kept > 5 and cut > 5 and broken > 0


# ---- as a value


def test_value() -> None:
    one = Knowledge(
        tiers=[{"b", "a"}, ("c",)],
        forbidden={("a", "b"), ("b", "a")},
        required=[["a", "c"], ["b", "c"]],
    )
    two = Knowledge(
        tiers=[["a", "b"], ["c"]],
        forbidden=[("b", "a"), ("a", "b")],
        required=[("b", "c"), ("a", "c")],
    )
    assert one == two and hash(one) == hash(two) and repr(one) == repr(two)
    assert one != Knowledge(tiers=[["c"], ["a", "b"]])
    for duplicate in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert duplicate == one and duplicate.forbids("c", "a") and duplicate.requires("a", "c")
    with pytest.raises(AttributeError):
        one.tiers = ()  # type: ignore[misc]


def test_json() -> None:
    value = {"tiers": [["a"], ["b", "c"]], "forbidden": [["b", "c"]], "required": [["a", "b"]]}
    knowledge = Knowledge.from_json_dict(value)
    assert knowledge == Knowledge(
        tiers=[["a"], ["b", "c"]], forbidden=[("b", "c")], required=[("a", "b")]
    )
    assert knowledge.to_json_dict() == {
        **value,
        "format": "jaxcd.Knowledge",
        "version": 1,
        "forbidden_within_tier": False,
    }
    assert Knowledge.from_json_dict({}) == Knowledge()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "is an object, got a list"),
        ({"tier": []}, "unknown key 'tier'; the keys are tiers"),
        ({"format": "jaxcd.MixedGraph"}, "'format': 'jaxcd.Knowledge'"),
        ({"version": 2}, "'version': 1"),
        ({"tiers": ["a"]}, "'tiers' is a list of lists"),
        ({"tiers": {"a": 1}}, "'tiers' is a list of lists"),
        ({"required": "ab"}, "'required' is a list of lists"),
        ({"forbidden": None}, "'forbidden' is a list of lists"),
        ({"forbidden": [["a"]]}, "an edge is a pair"),
        ({"forbidden_within_tier": "yes"}, "True or False"),
        ({"required": [["a", "b"], ["b", "a"]]}, "both directions"),
    ],
)
def test_broken_json_is_refused(value: object, message: str) -> None:
    with pytest.raises(JaxcdError, match=re.escape(message)) as caught:
        Knowledge.from_json_dict(value)
    assert isinstance(caught.value, FormatError | OptionError)
