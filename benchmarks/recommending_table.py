"""The comparisons on which ``jaxcd.recommend`` stands, out of the committed results.

``python -m benchmarks.recommending_table [--measure] [--quick] [--columns P ...] [--sizes N ...]
[--models R] [--out FILE]``

Reads ``frontier.json``, ``mixed.json``, ``model_noise.json`` and ``recommending.json`` in
benchmarks/results, and writes ``jaxcd/advice/recommended.json``: for each rule a table of mean arc
F1, with the file that it came from; the limits of the rules and those from which on a
recommendation warns; and the figures of earlier versions that no committed result holds, so that
nothing rests on them unseen.

``--measure`` runs the one comparison that no other benchmark makes, and writes it to
``recommending.json`` first: random models of 10 to 40 numeric columns (expected degree 2) at (1,
1e-6), whose relations are linear, smooth functions of all parents, or functions of weighted sums of
them; features, tables of quantiles, tree-guided PC on ranks, and second moments.  Where ``--out``
is given, that file is read in its place, and the table is written beside it as recommended.json.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import jax
import networkx as nx

import jaxcd
from benchmarks import experiment as ex
from benchmarks import model_noise
from benchmarks.searches import DELTA, Run, by_release, by_tests
from jaxcd.data import structural
from jaxcd.graphs import dag_to_cpdag, random_dag

TABLE = Path(jaxcd.__file__).parent / "advice" / "recommended.json"
FIRST_MODEL, FIRST_NOISE = 730_000, 740_000
EPSILON = 1.0


# ---- what is measured here


MODELS: Mapping[str, Callable[..., structural.StructuralModel]] = {
    "linear": structural.linear_gaussian_sem,
    "smooth functions of all parents": structural.additive_noise_sem,
    "functions of weighted sums": structural.nonlinear_sem,
}
METHODS: Mapping[str, Run] = {
    "Features": by_release(jaxcd.Features()),
    "Discretised": by_release(jaxcd.Discretised()),
    "tree-guided PC, StratifiedRanks": by_tests(jaxcd.StratifiedRanks(), jaxcd.tree_pc),
    "SecondMoments": by_release(jaxcd.SecondMoments()),
}


def measure(relations: str, n_columns: int, n: int, method: str, n_models: int) -> dict[str, Any]:
    """One data set and one draw of noise for each model."""
    graphs, truths, seconds = [], [], []
    for r in range(n_models):
        dag = random_dag(n_columns, expected_degree=2.0, seed=FIRST_MODEL + r)
        dag = nx.relabel_nodes(dag, {node: f"x{node}" for node in dag})
        model_key, data_key = jax.random.split(ex.key(FIRST_MODEL, r))
        data = MODELS[relations](dag, key=model_key).sample(n, key=data_key)
        with ex.Clock() as clock:
            found = METHODS[method](data, EPSILON, ex.key(FIRST_NOISE, r))
        graphs.append(found.graph)
        seconds.append(clock.seconds)
        truths.append(dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag)).reordered(data.names))
    return {**ex.means(ex.scores(graphs, truths)), "seconds": median(seconds)}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every kind of model, number of columns and rows, and method."""
    for p, n, relations, method in product(chosen.columns, chosen.sizes, MODELS, METHODS):
        values = relations, p, n, method, chosen.models
        yield values, measure, *values


EXPERIMENT = ex.Experiment(
    "recommending",
    __doc__,
    ("relations", "n_columns", "n_samples", "method", "n_models"),
    jobs,
    columns=ex.columns_of(
        "relations; columns=n_columns:d; rows=n_samples:,; method; arc F1 (se)=arc_f1+:.3f; "
        "skeleton F1 (se)=skeleton_f1+:.3f; seconds:.2f"
    ),
    options=(
        ex.Option("--measure", "run the comparison of numeric columns first", flag=True),
        ex.counts("--columns", "columns", [10, 20, 40], [10]),
        ex.counts("--sizes", "records", [3_000, 10_000, 50_000], [3_000]),
        ex.one_count("--models", "models of each row", 8, 2),
    ),
    settings=ex.kept(
        epsilon=EPSILON, delta=DELTA, first_model=FIRST_MODEL, first_noise=FIRST_NOISE
    ),
)
# ---- the table
#: From this share of the rows on that noise hides, or below so many rows times epsilon, less than
#: about half of the arcs were found.
LIMITS = {
    "hidden_share": {
        "LogLinear": 0.15,
        "Marginals": 0.06,
        "SecondMoments": 0.15,
        "Discretised": 0.1,
    },
    "least_rows_times_epsilon": 5_000,
    "signs_over_moments": 0.9,
    "features_over_tables": 0.85,
    "least_chosen": 0.6,
    "most_nats_of_an_edge": 0.15,
    "source": "model_noise: benchmarks/results/model_noise.json, by benchmarks.model_noise; the "
    "others were chosen by hand from runs whose figures were not kept",
}
#: Figures that earlier versions stated in the docstring of jaxcd.advice.recommending.
NOT_REPRODUCED = [
    {
        "what": "marginals, tree-guided PC and PC by levels on random networks of 15 and 25 "
        "columns, and at 2,000 rows on Sachs and Child; means of 3 runs at (epsilon, 1e-6)",
        "why": "neither the networks nor the runs were kept; frontier.json has Sachs, Child and "
        "Alarm at 1,000, 10,000 and 100,000 rows",
    },
    {
        "what": "a joint histogram and marginals on random networks of 256 and 576 cells, 2 runs",
        "why": "the networks were not kept; frontier.json has four networks of 32 to 256 cells",
    },
]
DISCRETE = {
    "Marginals": ("Marginals", "approximate"),
    "tree-guided PC": ("tree-guided PC, CovarianceNorm", "approximate"),
    "PC by levels": ("LevelwiseGaussian, CovarianceNorm", "approximate"),
}
SMALL = {"Histogram": ("Histogram", "pure"), "Marginals": ("Marginals", "approximate")}
LINEAR = {
    "SecondMoments": ("SecondMoments, search", "approximate"),
    "tree-guided PC": ("tree-guided PC, StratifiedRanks", "approximate"),
}


def _frontier(
    rows: Sequence[Mapping[str, Any]],
    methods: Mapping[str, tuple[str, str]],
    networks: Sequence[str],
    epsilons: Sequence[float],
) -> list[dict[str, Any]]:
    """Mean arc F1 of the methods; None for what was not run."""
    f1 = {
        tuple(row[name] for name in ("network", "n_samples", "epsilon", "method", "regime")): row[
            "arc_f1"
        ]
        for row in rows
    }
    lines = []
    for network in networks:
        for n in sorted({row["n_samples"] for row in rows if row["network"] == network}):
            for epsilon in epsilons:
                found = {
                    label: f1.get((network, n, epsilon, *method))
                    for label, method in methods.items()
                }
                rounded = {k: None if v is None else round(v, 2) for k, v in found.items()}
                lines.append({"case": network, "n_samples": n, "epsilon": epsilon, **rounded})
    return lines


def _by_method(rows: Sequence[Mapping[str, Any]], case: Callable[..., str]) -> list[dict[str, Any]]:
    """Lines of a case and a number of rows at epsilon 1, an entry a method."""
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        place = case(row), row["n_samples"]
        named = {"case": place[0], "n_samples": place[1], "epsilon": 1.0}
        lines.setdefault(place, named)[row["method"]] = round(row["arc_f1"], 2)
    return list(lines.values())


def _by_noise(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a network and an epsilon, with the noise that the rule looks at."""
    return [
        {
            "case": row["name"],
            "n_samples": model_noise.N_SAMPLES,
            "epsilon": row["epsilon"],
            "noise": round(row["noise"], 3),
            **{
                type(kind).__name__: round(row[f"{type(kind).__name__.lower()}_arc_f1"], 2)
                for kind in model_noise.KINDS
            },
        }
        for row in rows
    ]


def table(measured: Path) -> dict[str, Any]:
    """What recommended.json holds."""
    modelled = ex.read_rows(ex.RESULTS / "model_noise.json")
    frontier = ex.read_rows(ex.RESULTS / "frontier.json")
    mixed = [row for row in ex.read_rows(ex.RESULTS / "mixed.json") if row["epsilon"] == 1.0]
    numeric = ex.read_rows(measured) if measured.is_file() else []
    large, small = ("sachs", "child", "alarm"), ("cancer", "earthquake", "survey", "asia")
    models = ("gaussian-5", "gaussian-10", "gaussian-20")
    several = (0.5, 1.0, 5.0)
    return {
        "written_by": "python -m benchmarks.recommending_table",
        "measure": "mean arc F1 against the true CPDAG, at delta 1e-6 (a histogram: 0)",
        "limits": {**LIMITS, "model_noise": model_noise.limits(modelled)},
        "tables": {
            "small discrete domains": {
                "source": "benchmarks/results/frontier.json",
                "rows": _frontier(frontier, SMALL, small, several),
            },
            "large discrete domains": {
                "source": "benchmarks/results/frontier.json",
                "rows": _frontier(frontier, DISCRETE, large, several),
            },
            "tables of pairs, or a model of them": {
                "source": "benchmarks/results/model_noise.json",
                "rows": _by_noise(modelled),
            },
            "linear relations": {
                "source": "benchmarks/results/frontier.json",
                "rows": _frontier(frontier, LINEAR, models, several),
            },
            "numeric columns": {
                "source": "benchmarks/results/recommending.json, by --measure of this script",
                "rows": _by_method(
                    numeric, lambda row: f"{row['n_columns']} columns, {row['relations']}"
                ),
            },
            "numeric beside nominal columns": {
                "source": "benchmarks/results/mixed.json",
                "rows": _by_method(mixed, lambda row: f"{row['n_nodes']} columns"),
            },
        },
        "not_reproduced": NOT_REPRODUCED,
    }


def text(content: Mapping[str, Any]) -> str:
    """The file: each line of a table on one line."""
    shown = json.dumps(content, indent=1, allow_nan=False)
    for one in content["tables"].values():
        for row in one["rows"]:
            long = json.dumps(row, indent=1).replace("\n", "\n" + 4 * " ")
            shown = shown.replace(long, json.dumps(row), 1)
    return shown + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures where that is asked for, and writes the table."""
    chosen = EXPERIMENT.parse(arguments)
    if chosen.measure:
        EXPERIMENT.main(arguments)
    committed = chosen.out == ex.RESULTS / "recommending.json"
    path = TABLE if committed else chosen.out.with_name(TABLE.name)
    path.write_text(text(table(chosen.out)))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
