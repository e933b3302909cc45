"""Tables with missing cells: left out, or read as a level, against complete rows that know as much.

``python -m benchmarks.missing [--quick] [--data FOLDER] [--networks NAME ...] [--rows N]
[--rates R ...] [--epsilons E ...] [--runs R] [--resume] [--out FILE]``

Cells of every column are missing completely at random.  A pair of columns is then known in
n' = (1 - rate)^2 n rows: *complete* is the same search on n' complete rows, at the same budget
(delta 1e-6), in the release that ``jaxcd.recommend`` names for each domain.  *Declared* is the same
of complete rows whose domain still says that cells may be missing, as it must where that is not
public: what it costs to declare them, whether or not any is missing.  The epsilon ``none`` is
without privacy: ``jaxcd.ges`` on the rows.  Against the true CPDAG; means over runs (run r: data
seed r + 50, missing cells by seed r, noise seed r + 777).

"mixed-10" are random mixed models of so many columns (as in ``benchmarks.mixed``, model 300 + r),
by ``jaxcd.Features``, which ``none`` has without privacy.  "mixed-10 forms": half of the columns
are one form, which is missing as a whole; a pair is then known by (1 - rate) n rows or more, and
*complete* has (1 - rate) n.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.mixed import FIRST_MODEL, MixedModel
from benchmarks.sources import load_networks
from jaxcd.data import BayesianNetwork

DELTA = 1e-6
NONE = "none"
MIXED, FORMS = "mixed-", " forms"
KEY = ("network", "n_samples", "rate", "epsilon", "n_runs")


def with_holes(
    data: jaxcd.Dataset, rate: float, seed: int, *, forms: bool = False
) -> jaxcd.Dataset:
    """Data whose cells are missing completely at random.

    Args:
        forms: the first half of the columns is missing together, and no other.
    """
    domain = jaxcd.Domain(
        {name: replace(column, missing=()) for name, column in data.domain.columns.items()}
    )
    rng = np.random.default_rng(seed)
    gone = rng.random((data.n_samples, len(data.names))) < rate
    if forms:
        gone[:] = gone[:, :1]
        gone[:, len(data.names) // 2 :] = False
    frame = data.to_frame().astype(object).mask(gone)
    return jaxcd.Dataset.from_frame(frame, domain=domain)


class _Network:
    """The rows of a network, and its CPDAG."""

    kind: jaxcd.ReleaseKind | None = None
    forms = False

    def __init__(self, network: BayesianNetwork) -> None:
        self._network = network

    def rows(self, n: int, run: int) -> jaxcd.Dataset:
        return self._network.sample(n, key=ex.key(50, run))

    def truth(self, run: int) -> jaxcd.MixedGraph:
        return self._network.cpdag()


class _Mixed:
    """A random mixed model for every run."""

    kind: jaxcd.ReleaseKind | None = jaxcd.Features()

    def __init__(self, name: str) -> None:
        self.forms = name.endswith(FORMS)
        self._n_columns = int(name.removeprefix(MIXED).removesuffix(FORMS))

    def _model(self, run: int) -> MixedModel:
        return MixedModel.draw(self._n_columns, FIRST_MODEL + run)

    def rows(self, n: int, run: int) -> jaxcd.Dataset:
        return self._model(run).sample(n)

    def truth(self, run: int) -> jaxcd.MixedGraph:
        return self._model(run).cpdag()


def measure(
    source: _Network | _Mixed, n: int, rate: float, epsilon: float | None, runs: int
) -> dict[str, Any]:
    """``runs`` tables with missing cells, each searched in both readings, and complete ones of a
    domain without and with missing cells.
    """
    found: dict[str, list[Any]] = {"ignore": [], "level": [], "complete": [], "declared": []}
    known = round((1 - rate) ** (1 if source.forms else 2) * n)
    for seed in range(runs):
        complete = source.rows(known, seed)
        tables = {
            "holes": with_holes(source.rows(n, seed), rate, seed, forms=source.forms),
            "complete": complete,
            "declared": with_holes(complete, 0.0, seed),
        }
        if epsilon is None and source.kind is None:
            off: dict[str, Any] = {"budget": jaxcd.NO_PRIVACY, "max_parents": 4}
            for reading in ("ignore", "level"):
                found[reading].append(jaxcd.ges(tables["holes"], missing=reading, **off).graph)
            for name in ("complete", "declared"):
                found[name].append(jaxcd.ges(tables[name], **off).graph)
            continue
        budget = jaxcd.NO_PRIVACY if epsilon is None else jaxcd.Budget(epsilon, DELTA)
        noise = None if epsilon is None else jaxcd.SimulatedNoise(ex.key(777, seed))
        bought = {}
        for name, data in tables.items():
            advised = jaxcd.recommend(data.domain, data.n_samples, budget=budget).kind
            kind: Any = source.kind or advised
            bought[name] = jaxcd.release(data, kind, budget=budget, noise=noise)
        for reading in ("ignore", "level"):
            found[reading].append(jaxcd.search(bought["holes"], missing=reading).graph)
        for name in ("complete", "declared"):
            found[name].append(jaxcd.search(bought[name]).graph)
    truths = [source.truth(seed) for seed in range(runs)]
    scores = {
        f"{name}_{column}": values
        for column, graphs in found.items()
        for name, values in ex.scores(graphs, truths).items()
    }
    return {"known": known, **ex.means(scores)}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """A row a network, rate and epsilon."""
    mixed = [name for name in chosen.networks if name.startswith(MIXED)]
    others = [name for name in chosen.networks if name not in mixed]
    loaded = load_networks(others, chosen.data) if others else {}
    sources: dict[str, _Network | _Mixed] = {
        **{name: _Network(network) for name, network in loaded.items()},
        **{name: _Mixed(name) for name in mixed},
    }
    for name, source in sources.items():
        for rate in chosen.rates:
            for epsilon in chosen.epsilons:
                number = None if epsilon == NONE else float(epsilon)
                values = (name, chosen.rows, rate, epsilon, chosen.runs)
                yield values, measure, source, chosen.rows, rate, number, chosen.runs


EXPERIMENT = ex.Experiment(
    "missing",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "network; rows=n_samples:,; rate; known=known:,; epsilon; runs=n_runs; "
        "arc F1 ignore (se)=arc_f1_ignore+:.3f; level (se)=arc_f1_level+:.3f; "
        "complete (se)=arc_f1_complete+:.3f; declared (se)=arc_f1_declared+:.3f; "
        "skeleton F1 ignore=skeleton_f1_ignore:.3f; "
        "level=skeleton_f1_level:.3f; complete=skeleton_f1_complete:.3f"
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "default: three", full=["asia", "sachs", "child"], quick=["cancer"]),
        ex.one_count("--rows", "records", 100_000, 5_000),
        ex.numbers("--rates", "shares of missing cells", full=[0.05, 0.2, 0.4], quick=[0.2]),
        ex.names("--epsilons", "numbers, or none", full=[NONE, "1"], quick=[NONE, "4"]),
        ex.one_count("--runs", "runs of each row", 10, 2),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
