"""Every search with knowledge: its graph fits, whatever the data say; what names other columns is
refused before anything is spent; the command line.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.discovery import (
    oriented_by_knowledge,
    search_features,
    search_histogram,
    search_marginals,
    search_second_moments,
)
from jaxcd.discovery.score.limits import Limits
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge, MixedGraph, consistent_extension, random_dag
from jaxcd.privacy import NO_PRIVACY
from tests.discovery.test_knowledge_scores import knowledge_of
from tests.helpers import CommandLine, refused, simulated

BUDGET = jaxcd.Budget(1.0, 1e-6)
Run = Callable[[Knowledge | None], jaxcd.DiscoveryResult]


@functools.cache
def asia() -> jaxcd.Dataset:
    return jaxcd.networks.load("asia").sample(3_000, key=jax.random.key(0))


@functools.cache
def numeric() -> jaxcd.Dataset:
    """A sum of earlier columns and noise, five columns, declared bounds."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3_000, 5))
    for j in range(1, 5):
        rows[:, j] += 0.8 * rows[:, j - 1]
    domain = jaxcd.Domain({f"x{j}": jaxcd.Numeric(-6.0, 6.0) for j in range(5)})
    return jaxcd.Dataset.from_array(np.clip(rows, -6, 6), domain=domain)


@functools.cache
def mixed() -> jaxcd.Dataset:
    """A nominal column that moves two numbers, and an ordered one that follows."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, 3_000)
    x = np.array([0.0, 2.0, -1.0])[label] + rng.normal(size=3_000)
    y = x + rng.normal(size=3_000)
    level = np.digitize(y, [-1, 1])
    domain = jaxcd.Domain(
        {
            "label": jaxcd.Categorical(("a", "b", "c")),
            "x": jaxcd.Numeric(-9.0, 9.0),
            "y": jaxcd.Numeric(-9.0, 9.0),
            "level": jaxcd.Ordinal((0, 1, 2)),
        }
    )
    columns = {"label": np.array(["a", "b", "c"])[label], "x": x, "y": y, "level": level}
    return jaxcd.Dataset.from_frame(pd.DataFrame(columns), domain=domain, clip=True)


@functools.cache
def bought(kind: str) -> jaxcd.releases.Release:
    data = {
        "SecondMoments": numeric,
        "Tetrachoric": numeric,
        "Features": mixed,
        "Discretised": mixed,
    }.get(kind, asia)()
    return jaxcd.release(data, getattr(jaxcd, kind)(), budget=BUDGET, noise=simulated(2))


def on_release(kind: str, search: Any = jaxcd.search, **options: Any) -> Run:
    return lambda known: search(bought(kind), knowledge=known, **options)


def on_data(search: Any, data: Callable[[], jaxcd.Dataset] = asia, **options: Any) -> Run:
    options = {"budget": NO_PRIVACY, "key": jax.random.key(3), **options}
    return lambda known: search(data(), knowledge=known, **options)


PRIVATE: dict[str, Any] = {"budget": BUDGET, "noise": simulated(5)}
CHAINS = {"n_steps": 300, "burn_in": 50, "key": jax.random.key(0)}
KINDS = (
    "Histogram",
    "Marginals",
    "LogLinear",
    "Discretised",
    "SecondMoments",
    "Tetrachoric",
    "Features",
)
BY_SCORE: dict[str, Run] = {
    **{f"search of {kind}": on_release(kind) for kind in KINDS},
    "search_histogram": on_release("Histogram", search_histogram, max_parents=1),
    "search_marginals": on_release("Marginals", search_marginals, restarts=5),
    "search_second_moments": on_release("SecondMoments", search_second_moments),
    "search_features": on_release("Features", search_features, n_candidates=1),
    **{
        f"{search.__name__} of {kind}": on_release(kind, search, score=jaxcd.BIC(), **options)
        for kind in KINDS
        for search, options in (
            (jaxcd.ges, {}),
            (jaxcd.exact_search, {}),
            (jaxcd.order_mcmc, CHAINS),
        )
    },
    "mmhc of Histogram": on_release("Histogram", jaxcd.mmhc),
    "mmhc of SecondMoments": on_release("SecondMoments", jaxcd.mmhc, score=jaxcd.BIC()),
    "ges": on_data(jaxcd.ges),
    "ges of numbers": on_data(jaxcd.ges, numeric),
    "exact_search": on_data(jaxcd.exact_search, max_parents=1),
    "mmhc": on_data(jaxcd.mmhc),
    "order_mcmc": on_data(jaxcd.order_mcmc, **CHAINS),
    "discover": on_data(jaxcd.discover, **PRIVATE),
    "discover of mixed columns": on_data(jaxcd.discover, mixed, **PRIVATE),
    "discover of linear columns": on_data(jaxcd.discover, numeric, linear=True, **PRIVATE),
}
BY_TESTS: dict[str, Run] = {
    "tree_pc": on_data(jaxcd.tree_pc, test=jaxcd.CovarianceNorm(), **PRIVATE),
    "tree_pc without privacy": on_data(jaxcd.tree_pc, test=jaxcd.CovarianceNorm()),
    "pc": on_data(
        jaxcd.pc, test=jaxcd.CovarianceNorm(), decider=jaxcd.LevelwiseGaussian(), **PRIVATE
    ),
    "discover by a tree": on_data(jaxcd.discover, algorithm=jaxcd.Algorithm.TREE, **PRIVATE),
    "discover of numbers": on_data(jaxcd.discover, numeric, **PRIVATE),
}
EVERY = {**BY_SCORE, **BY_TESTS}


def names_in(search: str) -> tuple[str, ...]:
    if any(word in search for word in ("mixed", "eatures", "Discretised")):
        return mixed().names
    numbers = ("numbers", "linear", "econd", "Tetrachoric")
    return numeric().names if any(word in search for word in numbers) else asia().names


def drawn(names: tuple[str, ...], seed: int) -> Knowledge:
    """Knowledge that some DAG fits, and the data hardly."""
    rng = np.random.default_rng(seed)
    dag = random_dag(len(names), expected_degree=2.0, seed=rng)
    nodes = [f"x{j}" for j in range(len(names))]
    return knowledge_of(nx.to_numpy_array(dag, nodelist=nodes) > 0, rng, list(names))


def assert_fits(graph: MixedGraph, knowledge: Knowledge) -> None:
    """No edge against it, every required one, no orientation left open that a pair tells."""
    for a, b in itertools.permutations(graph.names, 2):
        if graph.adjacent(a, b) and knowledge.forbids(a, b):
            assert graph.has_edge(b, a, symbol="-->"), f"{graph.edge(a, b)} though not {a} --> {b}"
            assert not knowledge.forbids(b, a), f"{graph.edge(a, b)} joins what is forbidden"
        if knowledge.requires(a, b):
            assert graph.has_edge(a, b, symbol="-->")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("search", list(EVERY))
def test_the_graph_fits(search: str, seed: int) -> None:
    names = names_in(search)
    knowledge = drawn(names, 10 * seed + 1)
    run = EVERY[search](knowledge)
    assert_fits(run.graph, knowledge)
    assert run.graph.names == names
    if search in BY_SCORE:
        # a DAG of the class fits, and nothing more can be oriented
        member = consistent_extension(run.graph)
        assert member is not None
        limits = Limits.of(knowledge, names)
        fitted = limits.fitting(member.directed[None])
        assert len(fitted) == 1 and limits.pattern(fitted[0]) == run.graph
        assert run.info["knowledge"] == knowledge.to_json_dict()
        assert np.isfinite(run.info["score"])
    if run.again is not None:
        again = run.again(bought(search.split()[-1])) if search.split()[-1] in KINDS else None
        assert again is None or again.graph == run.graph


@pytest.mark.parametrize("search", list(EVERY))
def test_empty_knowledge_changes_nothing(search: str) -> None:
    assert EVERY[search](Knowledge()).graph == EVERY[search](None).graph


@pytest.mark.parametrize("search", list(EVERY))
def test_other_names_are_refused(search: str) -> None:
    refused(OptionError, "no variable 'nobody'", EVERY[search], Knowledge(tiers=[["nobody"]]))
    refused(OptionError, "no Knowledge", EVERY[search], {"tiers": [["nobody"]]})


@pytest.mark.parametrize("algorithm", list(jaxcd.Algorithm))
def test_nothing_is_spent_on_knowledge_that_does_not_fit(
    algorithm: jaxcd.Algorithm, tmp_path: Path
) -> None:
    ledger = jaxcd.LedgerFile(
        tmp_path / "ledger", data_set="people", budget=jaxcd.Budget(9.0, 1e-3)
    )
    with pytest.raises(OptionError, match="no variable 'nobody'"):
        jaxcd.discover(
            asia(),
            **PRIVATE,
            key=None,
            ledger=ledger,
            algorithm=algorithm,
            knowledge=Knowledge(required=[("nobody", "smoke")]),
        )
    assert ledger.spent.epsilon == 0


def test_the_bootstrap_repeats_the_search_with_the_knowledge() -> None:
    """Also where a required pair is in no table that was measured with the other parents."""
    release = bought("Marginals")
    known = Knowledge(
        required=[("asia", "bronc")], forbidden=[("tub", "either"), ("either", "tub")]
    )
    run = jaxcd.search(release, knowledge=known)
    shares = jaxcd.edge_confidence(release, run, n_draws=3)
    assert shares.of("asia", "bronc").adjacent == 1
    assert shares.of("tub", "either").adjacent == 0


def test_discover_keeps_the_release() -> None:
    known = Knowledge(tiers=[["asia", "smoke"], ["tub", "lung", "bronc"]])
    options: dict[str, Any] = {**PRIVATE, "key": None}
    plain, run = jaxcd.discover(asia(), **options), None
    run = jaxcd.discover(asia(), **options, knowledge=known)
    assert run.info["algorithm"] == plain.info["algorithm"] == "search_histogram"
    assert run.info["reasons"] == plain.info["reasons"]


def test_tiers_give_asia_its_arrows_back() -> None:
    network = jaxcd.networks.load("asia")
    data = network.sample(100_000, key=jax.random.key(1))
    release = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated(1))
    known = Knowledge(tiers=[["asia", "smoke"], ["tub", "lung", "bronc"], ["either"]])
    truth = oriented_by_knowledge(network.cpdag(), known)
    plain, run = jaxcd.search(release), jaxcd.search(release, knowledge=known)
    assert run.graph.skeleton() == plain.graph.skeleton()
    before, after = (float(jaxcd.metrics.arc_f1(r.graph, truth)) for r in (plain, run))
    assert before < 1 and after > before


# ---- the command line


def test_the_command_searches_a_release(command: CommandLine, tmp_path: Path) -> None:
    file, known = tmp_path / "bought.npz", tmp_path / "known.json"
    bought("Histogram").save(file)
    knowledge = Knowledge(tiers=[["asia", "smoke"], ["tub", "lung", "bronc"]])
    known.write_text(json.dumps(knowledge.to_json_dict()))
    plain = command.json("search", file)
    assert MixedGraph.from_json_dict(plain["graph"]) == jaxcd.search(bought("Histogram")).graph
    for algorithm in ("score", "pc", "fci", "gfci"):
        words = ["search", file, "--algorithm", algorithm, "--knowledge", known]
        out = tmp_path / algorithm
        shown = command.shows(*words, "--out", out)
        assert "known.json" in shown and "nothing more" in shown
        assert (out / "report.html").stat().st_size > 1_000
        graph = MixedGraph.from_json_dict(json.loads((out / "graph.json").read_text()))
        if algorithm in ("score", "pc"):
            assert_fits(graph, knowledge)
    assert command.shows("search", file, "--quiet").strip() == str(
        jaxcd.search(bought("Histogram")).graph
    )
    confident = command.json("search", file, "--knowledge", known, "--confidence 2")
    assert confident["graph"]
    people = tmp_path / "people.npz"
    release = bought("Histogram")
    cost = dataclasses.replace(release.cost, unit=jaxcd.privacy.Unit.PERSON)
    dataclasses.replace(release, cost=cost, spent=cost).save(people)
    assert f"{release.n_samples:,} people, " in command.shows("search", people)
    mixed_file = tmp_path / "mixed.npz"
    bought("Features").save(mixed_file)
    command.shows("search", mixed_file, "--algorithm pc")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("nowhere.npz", "'nowhere.npz' does not exist"),
        ("bought.npz --algorithm ges", "use score, pc, fci"),
        ("bought.npz --alpha 0.01", "--alpha: --algorithm score has no such option"),
        ("bought.npz --test g-test", "--test: --algorithm score has no such option"),
        ("bought.npz --max-level 1", "--max-level: --algorithm score has no such option"),
        ("bought.npz --algorithm pc --alpha 2", "alpha"),
        ("bought.npz --confidence -1", "--confidence -1"),
        ("bought.npz --knowledge nowhere.json", "'nowhere.json' does not exist"),
        ("bought.npz --force", "--force overwrites"),
        ("bought.npz --missing level", "--missing level has no use here"),
        ("bought.npz --algorithm pc --max-level -1", "--max-level -1 is not"),
        ("bought.npz --algorithm pc --test fisher-z", "FisherZ"),
    ],
)
def test_bad_searches_are_one_line(
    words: str, expected: str, command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bought("Histogram").save("bought.npz")
    command.refuses(expected, "search", words)
