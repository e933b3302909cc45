"""Private synthetic rows: sensitivities by brute force, budgets, what remains without noise, and
the experiment in small.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import sys

import jax
import networkx as nx
import numpy as np
import pytest

from benchmarks import experiment, synthetic_peers
from benchmarks.synthetic_estimate import (
    JunctionTree,
    Measured,
    by_mbi,
    counts,
    drawn,
    estimate,
    junction_cliques,
    model_cells,
    rows_of,
)
from benchmarks.synthetic_methods import (
    Limit,
    Neighbours,
    Overspent,
    Purse,
    aim,
    allowed,
    dependence,
    exponential,
    merged,
    mst,
    overlaps,
    parent_sets,
    privbayes,
)

needs_mbi = pytest.mark.skipif(
    importlib.util.find_spec("mbi") is None, reason="mbi is not installed (the extra peers)"
)
CARDS = (2, 3, 2, 3)
RHO = 0.05


def chain(n: int, seed: int = 0, cards=CARDS) -> np.ndarray:
    """Each column mostly follows the one before."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, len(cards)), dtype=np.int32)
    for column, k in enumerate(cards):
        before = codes[:, column - 1] % k if column else 0
        codes[:, column] = np.where(rng.random(n) < 0.6, before, rng.integers(0, k, n))
    return codes


# ---- sensitivities


def tables_of(n: int) -> list[np.ndarray]:
    """Every table of n rows on 2 x 3 cells."""
    cells = itertools.combinations_with_replacement(range(6), n)
    return [np.bincount(rows, minlength=6).reshape(2, 3).astype(float) for rows in cells]


def neighbours_of(relation: Neighbours, n: int):
    """Every pair of neighbouring tables, the first of n rows."""
    for table in tables_of(n):
        places = range(6)
        for new in places:
            more = table.copy()
            more.flat[new] += 1
            if relation is Neighbours.ADD_REMOVE:
                yield table, more
                continue
            for old in (place for place in places if table.flat[place]):
                other = more.copy()
                other.flat[old] -= 1
                yield table, other


@pytest.mark.parametrize("relation", Neighbours)
def test_sensitivities_by_brute_force(relation: Neighbours) -> None:
    rng = np.random.default_rng(0)
    fixed = rng.dirichlet(np.ones(6)).reshape(2, 3) * 3
    corner = np.zeros((2, 3))
    l1, l2, distance, found = [], [], [], {}
    for n in range(1, 6):
        for a, b in neighbours_of(relation, n):
            l1.append(np.abs(a - b).sum())
            l2.append(np.sqrt(((a - b) ** 2).sum()))
            for other in (fixed, corner, a):
                distance.append(abs(np.abs(a - other).sum() - np.abs(b - other).sum()))
            change = abs(dependence(a) - dependence(b))
            found[n] = max(found.get(n, 0.0), change)
    assert max(l1) == relation.l1 and max(l2) == pytest.approx(relation.l2)
    assert max(distance) == pytest.approx(relation.l1)
    assert all(change <= relation.dependence(n) for n, change in found.items())


def test_the_score_of_dependence() -> None:
    table = np.array([[3.0, 1.0], [0.0, 4.0]])
    joint = table / 8
    product = np.outer(joint.sum(1), joint.sum(0))
    assert dependence(table) == pytest.approx(8 * np.abs(joint - product).sum() / 2)
    assert dependence(np.outer([1.0, 2.0], [3.0, 4.0, 5.0])) == pytest.approx(0, abs=1e-12)


def test_the_exponential_mechanism_has_its_law() -> None:
    rng = np.random.default_rng(1)
    scores, epsilon, sensitivity = np.array([0.0, 3.0, 5.0]), 0.8, 2.0
    wanted = np.exp(epsilon * scores / (2 * sensitivity))
    drawn_counts = np.bincount(
        [exponential(scores, sensitivity, epsilon, rng) for _ in range(20_000)], minlength=3
    )
    assert drawn_counts / 20_000 == pytest.approx(wanted / wanted.sum(), abs=0.015)
    assert exponential(scores, sensitivity, math.inf, rng) == 2


# ---- budgets

METHODS = {
    "AIM": lambda *given: aim(*given, mbi=False),
    "MST": lambda *given: mst(*given, mbi=False),
    "PrivBayes": privbayes,
    "PrivBayes, Laplace": lambda *given: privbayes(*given, pure=True),
    "PrivBayes, degree 1": lambda *given: privbayes(*given, degree=1),
}


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("name", METHODS)
def test_the_budget_is_spent_and_runs_repeat(name: str, relation: Neighbours) -> None:
    codes = chain(400)
    first, again = (
        METHODS[name](codes, CARDS, RHO, relation, np.random.default_rng(5)) for _ in range(2)
    )
    assert first.purse.total == RHO and first.purse.spent == pytest.approx(RHO, rel=1e-9)
    assert np.array_equal(first.rows, again.rows)
    other = METHODS[name](codes, CARDS, RHO, relation, np.random.default_rng(6))
    assert other.rows.shape != first.rows.shape or not np.array_equal(first.rows, other.rows)
    assert (first.rows >= 0).all() and (first.rows < np.array(CARDS)).all()
    if relation is Neighbours.REPLACE_ONE:
        assert first.rows.shape == codes.shape
        tables = sum(name.startswith("table") for name, _ in first.purse.payments)
        assert tables >= len(CARDS)


def test_a_purse_does_not_overspend() -> None:
    purse = Purse(1.0)
    purse.pay("a", 0.6)
    with pytest.raises(Overspent):
        purse.pay("b", 0.5)


def test_more_noise_for_pairs_of_replaced_rows() -> None:
    paid = {}
    for relation in Neighbours:
        found = privbayes(chain(50), CARDS, RHO, relation, np.random.default_rng(0))
        paid[relation] = found.purse.payments
    assert [name for name, _ in paid[Neighbours.ADD_REMOVE]][0] == "number of rows"
    assert "number of rows" not in dict(paid[Neighbours.REPLACE_ONE])


# ---- without noise


def chow_liu(codes: np.ndarray, cards) -> set[tuple[int, int]]:
    graph = nx.Graph()
    for a, b in itertools.combinations(range(len(cards)), 2):
        joint = counts(codes, cards, (a, b)) / len(codes)
        product = np.outer(joint.sum(1), joint.sum(0))
        kept = joint > 0
        information = float((joint[kept] * np.log(joint[kept] / product[kept])).sum())
        graph.add_edge(a, b, weight=information)
    return {tuple(sorted(edge)) for edge in nx.maximum_spanning_tree(graph).edges}


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("mbi", [False, pytest.param(True, marks=needs_mbi)])
def test_mst_without_noise_is_the_tree_of_chow_and_liu(mbi: bool, relation: Neighbours) -> None:
    codes = chain(5_000)
    found = mst(codes, CARDS, math.inf, relation, np.random.default_rng(0), mbi=mbi)
    pairs = {clique for clique in found.cliques if len(clique) == 2}
    assert pairs == chow_liu(codes, CARDS) == {(0, 1), (1, 2), (2, 3)}
    for pair in pairs:
        gap = counts(found.rows, CARDS, pair) - counts(codes, CARDS, pair)
        assert np.abs(gap).sum() < 0.01 * len(codes)


def test_privbayes_without_noise_has_the_table() -> None:
    codes = chain(40_000, cards=(2, 3, 2))
    cards = (2, 3, 2)
    found = privbayes(
        codes, cards, math.inf, Neighbours.REPLACE_ONE, np.random.default_rng(0), degree=2
    )
    gap = counts(found.rows, cards, (0, 1, 2)) - counts(codes, cards, (0, 1, 2))
    assert np.abs(gap).sum() < 0.03 * len(codes)
    useful = privbayes(codes, cards, math.inf, Neighbours.ADD_REMOVE, np.random.default_rng(0))
    assert max(map(len, useful.cliques)) == 3 and len(useful.rows) == len(codes)


@pytest.mark.parametrize("mbi", [False, pytest.param(True, marks=needs_mbi)])
def test_aim_with_little_noise_has_the_tables_of_the_workload(mbi: bool) -> None:
    codes = chain(3_000)
    found = aim(codes, CARDS, 1e6, Neighbours.REPLACE_ONE, np.random.default_rng(0), mbi=mbi)
    for clique in itertools.combinations(range(4), 3):
        gap = counts(found.rows, CARDS, clique) - counts(codes, CARDS, clique)
        assert np.abs(gap).sum() < 0.02 * len(codes)


def test_rare_values_are_merged() -> None:
    assert merged(np.array([50.0, 1.0, 2.0, 40.0]), 1.0).tolist() == [0, 2, 2, 1]
    assert merged(np.array([50.0, 1.0, 40.0]), 1.0).tolist() == [0, 1, 2]
    assert merged(np.array([0.0, -1.0]), 1.0).tolist() == [0, 0]
    codes = np.zeros((300, 2), dtype=np.int32)
    found = mst(codes, (5, 3), RHO, Neighbours.REPLACE_ONE, np.random.default_rng(0), mbi=False)
    assert (found.rows == 0).mean() > 0.8


# ---- parts


def test_overlaps_with_the_workload() -> None:
    workload = list(itertools.combinations(range(4), 3))
    cliques = [(0,), (1, 3), (0, 1, 2)]
    wanted = [sum(len({*c} & {*w}) for w in workload) for c in cliques]
    assert overlaps(cliques, workload, 4).tolist() == wanted


def test_parents_are_the_largest_sets_that_fit() -> None:
    cards = (2, 3, 4, 5)
    assert parent_sets([0, 1, 2, 3], cards, 6, 4) == [(2,), (3,), (0, 1)]
    assert parent_sets([0, 1, 2, 3], cards, 1.5, 4) == [()]
    assert parent_sets([0, 1, 2, 3], cards, math.inf, 2) == list(
        itertools.combinations(range(4), 2)
    )
    assert parent_sets([], cards, 6, 4) == [()]


def test_a_junction_tree_of_a_cycle() -> None:
    cycle = [(0, 1), (1, 2), (2, 3), (0, 3)]
    cliques = junction_cliques((2, 3, 2, 3), cycle)
    assert cliques in ([(0, 1, 2), (0, 2, 3)], [(0, 1, 3), (1, 2, 3)])
    assert model_cells((2, 3, 2, 3), cycle) == 24


@pytest.mark.parametrize(
    "cliques", [[(0, 1), (1, 2), (3,)], [(0, 1), (1, 2), (2, 3), (0, 3)], [(0, 2), (1,)]]
)
def test_inference_is_exact(cliques) -> None:
    rng = np.random.default_rng(3)
    tree = JunctionTree(CARDS, cliques)
    logs = [rng.normal(size=tree.full_shape(at)) * 3 for at in range(len(tree.cliques))]
    joint = np.zeros(CARDS)
    for clique, each in zip(tree.cliques, logs, strict=True):
        joint += each.reshape([CARDS[c] if c in clique else 1 for c in range(4)])
    joint = np.exp(joint) / np.exp(joint).sum()
    found = tree.marginals(tree.calibrate(logs), 3)
    assert len(found) == 4 + 6 + 4
    for clique, table in found.items():
        wanted = joint.sum(tuple(c for c in range(4) if c not in clique))
        assert table == pytest.approx(wanted, abs=1e-12)


def test_only_models_that_are_small_enough() -> None:
    measured = [(0, 1), (1, 2), (3,)]
    tree = JunctionTree(CARDS, measured)
    candidates = [c for k in (1, 2, 3) for c in itertools.combinations(range(4), k)]
    for most in (10, 16, 20, 24, 40):
        wanted = [model_cells(CARDS, [*measured, clique]) <= most for clique in candidates]
        found = allowed(CARDS, tree, measured, candidates, most)
        assert found.tolist() == wanted


def noisy(seed: int = 0) -> Measured:
    rng, codes, measured = np.random.default_rng(seed), chain(2_000), Measured()
    for clique in [(0,), (1,), (2,), (3,), (0, 1), (1, 2, 3), (0, 1)]:
        table = counts(codes, CARDS, clique)
        measured.add(clique, table + rng.normal(scale=20, size=table.shape), 20.0)
    return measured


def test_the_same_table_twice_is_averaged() -> None:
    measured = Measured()
    measured.add((0,), np.array([4.0, 8.0]), 1.0)
    measured.add((0,), np.array([8.0, 0.0]), 2.0)
    table, precision = measured.tables[(0,)]
    assert table == pytest.approx([4.8, 6.4]) and precision == 1.25
    assert measured.total() == pytest.approx(11.2)


@needs_mbi
def test_the_estimate_is_that_of_mbi() -> None:
    measured = noisy()
    ours = estimate(CARDS, measured, 2_000.0, steps=3_000, tolerance=1e-9)
    theirs = by_mbi(CARDS, measured, 2_000.0, steps=3_000)
    warm = by_mbi(CARDS, measured, 2_000.0, start=ours.potentials, steps=50)
    for model, clique in itertools.product((theirs, warm), measured.tables):
        with jax.enable_x64(True):
            wanted = np.asarray(model.project(clique).values)
        assert ours.table(clique) == pytest.approx(wanted, abs=0.5)
    state = np.random.get_state()[1].copy()
    first, again = (rows_of(theirs, 500, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(first, again) and np.array_equal(state, np.random.get_state()[1])


def test_rows_are_as_even_as_whole_rows_allow() -> None:
    model = estimate(CARDS, noisy(), 2_000.0, steps=1_000)
    rows = drawn(model, 2_000, np.random.default_rng(0))
    assert np.abs(counts(rows, CARDS, (0,)) - model.table((0,))).max() <= 1.0
    gap = np.abs(counts(rows, CARDS, (1, 2, 3)) - model.table((1, 2, 3)))
    assert gap.max() < 12  # independent draws have a deviation of up to 20


# ---- the experiment


def test_a_run_that_takes_too_long_is_left_out() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(experiment.LeftOut, match="the limit of 1e-09 s"):
        aim(chain(100), CARDS, RHO, Neighbours.REPLACE_ONE, rng, mbi=False, limit=Limit(1e-9))


def test_the_experiment(tmp_path, capsys) -> None:
    out = tmp_path / "peers.json"
    tiny = ["--quick", "--rows", "500", "--fit", "numpy", "--out", str(out)]
    synthetic_peers.main(tiny)
    shown = capsys.readouterr().out
    content = json.loads(out.read_text())
    rows = [experiment.Row(row) for row in content["results"]]
    peers = 2 * 2 * len(synthetic_peers.PEERS)
    assert len(rows) == 2 + 1 + peers and not content["left_out"]
    assert all(0 <= row.arc_f1 <= 1 and len(row.arc_f1_runs) == 2 for row in rows)
    (ours,) = [row for row in rows if row.method == "jaxcd"]
    assert ours.chosen and ours.relation == "replace-one"
    assert len(content["summary"]) == 4 and shown.count(" wins\n") == 4
    for line in content["summary"]:
        others = [row for row in rows if row.relation == line["relation"] and row is not ours]
        assert line["theirs"] == max(row[line["score"]] for row in others)
    # every line is known
    synthetic_peers.main([*tiny, "--resume"])
    assert len(json.loads(out.read_text())["environments"]) == 1


def test_a_missing_package_is_named(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "mbi", None)
    out = tmp_path / "peers.json"
    short = ["--rows", "300", "--runs", "1", "--relations", "replace-one", "--peers", "MST"]
    synthetic_peers.main(["--quick", *short, "--out", str(out)])
    assert "pip install 'jaxcd[peers]'" in " ".join(capsys.readouterr().out.split())
    (entry,) = json.loads(out.read_text())["left_out"]
    assert entry["method"] == "MST" and "mbi is not installed" in entry["reason"]


@pytest.mark.parametrize(
    ("ours", "theirs", "wins"),
    [
        ([0.9, 0.8, 0.9], [0.5, 0.4, 0.6], "jaxcd"),
        ([0.5, 0.4, 0.6], [0.9, 0.8, 0.9], "AIM"),
        ([0.9, 0.1, 0.5], [0.5, 0.4, 0.6], "neither"),
        ([0.9], [0.1], "neither"),
    ],
)
def test_who_wins(ours, theirs, wins) -> None:
    rows = [
        experiment.Row({"method": method, "arc_f1_runs": values})
        for method, values in (("jaxcd", ours), ("AIM", theirs))
    ]
    found = synthetic_peers.compared(*rows, "arc_f1")
    assert found["wins"] == wins
    assert found["difference"] == pytest.approx(np.mean(ours) - np.mean(theirs))


def test_wrong_options_are_named() -> None:
    with pytest.raises(SystemExit):
        synthetic_peers.main(["--peers", "nobody"])
    with pytest.raises(SystemExit):
        synthetic_peers.main(["--networks", "nowhere"])
