"""The benchmark of effects: its truths are right, and it runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jaxcd
from benchmarks import effects, experiment
from jaxcd.graphs import dag_to_cpdag


def test_truths() -> None:
    network = jaxcd.networks.load("cancer")
    truth = effects.Truth(network)
    smoke = network.cpts["Pollution"] @ network.cpts["Cancer"].reshape(2, 2, 2)[:, :, -1]
    assert truth.effects["Smoker", "Cancer"] == pytest.approx(smoke[1] - smoke[0])
    assert len(truth.pairs) == 8


def test_changed_graphs_are_of_another_class() -> None:
    network = jaxcd.networks.load("asia")
    for seed in range(5):
        for how, edges in (("reversed", 8), ("removed", 6)):
            graph = effects.changed(network, how, seed)
            assert graph.is_dag() and graph.n_edges == edges
            assert dag_to_cpdag(graph) != network.cpdag()


def test_it_runs(tmp_path: Path) -> None:
    out = tmp_path / "effects.json"
    options = "--networks cancer --rows 2000 --epsilons 1 --runs 1 --parts given whole falsify"
    effects.main([*options.split(), "--out", str(out)])
    rows = json.loads(out.read_text())["results"]
    assert [row["part"] for row in rows] == ["given", "whole", "falsify"]
    assert rows[0]["n_intervals"] == 8 and 0 <= rows[0]["coverage"] <= 1
    assert np.isfinite(rows[0]["width"]) and rows[1]["like"] > 0.9


def test_the_table_tells_the_committed_results() -> None:
    def short(number: float, digits: int) -> str:
        return f"{number:.{digits}f}".removeprefix("0")

    page = Path(__file__).parents[1].joinpath("docs", "benchmarks.md").read_text("utf-8")
    rows = experiment.read_rows(experiment.RESULTS / "effects.json")
    given = [row for row in rows if row.part == "given"]
    assert len(given) == 18
    for row in given:
        cells = (
            row.name.capitalize(),
            f"{row.n_samples:,}",
            f"{row.epsilon:g}",
            str(row.n_runs),
            f"{short(row.coverage, 3)} ({short(row.coverage_se, 3)})",
            short(row.ignoring, 2),
            short(row.width, 2),
        )
        assert "| " + " | ".join(cells) + " |" in page
