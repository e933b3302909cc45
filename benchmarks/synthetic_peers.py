"""Private synthetic rows and a search on them, beside jaxcd: the same rows, the same total.

``python -m benchmarks.synthetic_peers [--quick] [--data FOLDER] [--networks NAME|FILE.bif ...]
[--rows N ...] [--epsilons E ...] [--runs R] [--peers WORD ...] [--relations NAME ...]
[--fit mbi|numpy] [--degree K] [--cells M] [--limit S] [--resume] [--merge FILE ...] [--out FILE]``

What a user would do instead of jaxcd: buy private synthetic rows, and search them without privacy.
Peers: AIM, MST and PrivBayes, from their papers (:mod:`benchmarks.synthetic_methods`), at totals
(epsilon, 1e-6); "PrivBayes, Laplace" is pure, as published.  AIM and MST have their last model, and
its rows, from the package ``mbi`` (``pip install 'jaxcd[peers]'``); with ``--fit numpy`` from the
same estimate in numpy, without mbi's compilation, which is most of a run.  Noise is simulated
everywhere: these are measurements, and protect nobody.

Each under two relations.  REPLACE_ONE is jaxcd's: the comparison at equal guarantees.  ADD_REMOVE
is that of AIM and MST as published, a weaker promise at the same epsilon (a replaced row is one
removed and one added), so that the peers are better there.  jaxcd has only the first.

On the synthetic rows, and on the true ones ("no privacy"): the best graph by BIC
(:func:`benchmarks.frontier_methods.best_by_bic`), and PC with ChiSquare at level 0.05.  "jaxcd" is
``jaxcd.discover`` with its defaults.  Scores: arc F1 and skeleton F1 against the true CPDAG, mean
and standard error over the runs; a run is one data set with one draw of noise.  Seconds: of rows
and of search, medians; with mbi's compilation, which AIM and MST need in every run.  Beside the
seconds of the rows: those of the processors, for machines that are shared.

AIM here: a workload of all sets of three columns (of two where there are more than 20 columns;
``--degree``); a model of 131,072 cells at most (``--cells``; 80 MB in the paper would be 10
million); in a round at most 100 steps of mirror descent from the model before, in numpy, and
1,000 at the end.  PrivBayes has at most four parents up to 12 columns, three up to 20, two above,
which keeps its candidates to some ten thousand.  A run whose rows take more than ``--limit``
seconds is stopped and its line left out, with the reason.

The summary compares jaxcd with the best line of the peers in every cell, relation and score: chosen
after the fact by its mean, which favours the peers.  Differences are paired by data set; where the
95% interval of Student's t holds 0, neither wins.  The file is written after every line; parts are
joined by ``--merge``.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from rich.console import Console
from scipy import stats

import jaxcd
from benchmarks import experiment as ex
from benchmarks.frontier_methods import Case, best_by_bic, cases
from benchmarks.searches import DELTA, budget_of, by_tests
from benchmarks.sources import BIF_ENDINGS, BUILT_IN, FROM_FILE
from benchmarks.synthetic_estimate import load_mbi
from benchmarks.synthetic_methods import Limit, Neighbours, Peer, aim, mst, privbayes
from jaxcd.graphs import dag_to_cpdag

#: of the data sets, and of their noise; no constant of a method was chosen on these
FIRST_DATA, FIRST_NOISE = 610_000, 710_000
KEY = ("network", "n_samples", "epsilon", "method", "relation", "fit", "search")
SCORES = ("arc_f1", "skeleton_f1")
JAXCD, NO_PRIVACY, NONE, OWN = "jaxcd", "no privacy", "none", "its own"
FITS = MBI, NUMPY = "mbi", "numpy"
#: a workload of triples up to here, of pairs above
MOST_COLUMNS_OF_TRIPLES = 20
#: of PrivBayes, up to so many columns
MOST_PARENTS = ((12, 4), (20, 3), (math.inf, 2))

PEERS = (
    Peer("AIM", aim),
    Peer("MST", mst),
    Peer("PrivBayes", privbayes),
    Peer("PrivBayes, Laplace", partial(privbayes, pure=True), pure=True),
)

_PC = by_tests(jaxcd.ChiSquare(), decider=jaxcd.Threshold(alpha=0.05))


def _by_bic(data: jaxcd.Dataset, key: jax.Array) -> jaxcd.MixedGraph:
    return dag_to_cpdag(jaxcd.MixedGraph.from_arcs(data.names, best_by_bic(data)))


SEARCHES: Mapping[str, Callable[[jaxcd.Dataset, jax.Array], jaxcd.MixedGraph]] = {
    "best BIC": _by_bic,
    "PC, ChiSquare": lambda data, key: _PC(data, None, key).graph,
}


class Samples:
    """The data sets of a case, drawn when they are first asked for, with the truth."""

    def __init__(self, case: Case, n_runs: int) -> None:
        self._case, self._n_runs = case, n_runs

    @cached_property
    def pairs(self) -> list[tuple[jaxcd.Dataset, jaxcd.MixedGraph]]:
        """Data and truth of every run."""
        return [self._case.source(FIRST_DATA + r) for r in range(self._n_runs)]


def _row(
    graphs: Sequence[jaxcd.MixedGraph],
    samples: Samples,
    making: Sequence[float],
    searching: Sequence[float],
) -> dict[str, Any]:
    """Scores and times.  NAME_runs: of every run, for differences."""
    found = ex.scores(graphs, [truth for _, truth in samples.pairs])
    return {
        **ex.means(found),
        **{f"{name}_runs": values for name, values in found.items()},
        "seconds_rows": median(making),
        "seconds_search": median(searching),
        "n_runs": len(graphs),
    }


def _searched(
    data: Sequence[jaxcd.Dataset], samples: Samples, making: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """A row for each search on rows that are public."""
    for name, search in SEARCHES.items():
        graphs, seconds = [], []
        for r, each in enumerate(data):
            with ex.Clock() as clock:
                graphs.append(search(each, ex.key(FIRST_NOISE, r, 1)))
            seconds.append(clock.seconds)
        yield {"search": name, **_row(graphs, samples, making, seconds)}


def measure_no_privacy(samples: Samples) -> list[dict[str, Any]]:
    """Both searches on the true rows."""
    return list(_searched([data for data, _ in samples.pairs], samples, [0.0]))


def measure_jaxcd(samples: Samples, epsilon: float) -> dict[str, Any]:
    """What ``jaxcd.discover`` finds by default.  chosen: the method it took."""
    graphs, seconds = [], []
    for r, (data, _) in enumerate(samples.pairs):
        noise = jaxcd.SimulatedNoise(ex.key(FIRST_NOISE, r))
        budget = budget_of(epsilon)
        with ex.Clock() as clock:
            found = jaxcd.discover(data, budget=budget, key=ex.key(FIRST_NOISE, r, 2), noise=noise)
        if not max(found.spent.epsilon, found.cost.epsilon) <= epsilon:
            raise AssertionError(f"spent {found.spent} of epsilon {epsilon}")
        graphs.append(found.graph)
        seconds.append(clock.seconds)
    chosen = jaxcd.recommend(data.domain, data.n_samples, budget=budget).title
    return {"search": OWN, "chosen": chosen, **_row(graphs, samples, [0.0], seconds)}


def measure_peer(
    samples: Samples,
    peer: Peer,
    neighbours: Neighbours,
    epsilon: float,
    limit: float,
    options: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Synthetic rows of every data set, and both searches on them.  n_tables: measured, a mean.

    Raises LeftOut where a run's rows take more than ``limit`` seconds, or mbi is missing.
    """
    if options.get("mbi"):
        load_mbi()
    data, seconds, processor, tables = [], [], [], []
    for r, (true, _) in enumerate(samples.pairs):
        key = ex.key(FIRST_NOISE, r, 0)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        with ex.Clock() as clock:
            found = peer.synthetic(
                true.codes,
                true.domain.cardinalities,
                epsilon,
                DELTA,
                neighbours,
                rng,
                limit=Limit(limit),
                **options,
            )
        data.append(jaxcd.Dataset.from_codes(found.rows, domain=true.domain))
        seconds.append(clock.seconds)
        processor.append(clock.processor_seconds)
        tables.append(len(found.cliques))
    rows = list(_searched(data, samples, seconds))
    if options.get("mbi"):
        jax.clear_caches()  # every model has programs of its own
    said = {name: value for name, value in options.items() if name != "mbi"}
    more = {
        "processor_rows": median(processor),
        "n_tables": ex.mean(tables),
        "pure": peer.pure,
        **said,
    }
    return [{**row, **more} for row in rows]


def _options(peer: Peer, case: Case, chosen: Namespace) -> dict[str, Any]:
    """What a peer has of the options."""
    fit = {"mbi": chosen.fit == MBI}
    if peer.run is aim:
        usual = 3 if case.n_columns <= MOST_COLUMNS_OF_TRIPLES else 2
        return {"degree": chosen.degree or usual, "max_cells": chosen.cells, **fit}
    if peer.run is mst:
        return fit
    return {"most_parents": next(k for d, k in MOST_PARENTS if case.n_columns <= d)}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every line of every case; with ``--merge`` those of other files instead."""
    for path in chosen.merge or ():
        record.take(path)
    if chosen.merge:
        return
    peers = [
        peer
        for peer in PEERS
        if not chosen.peers or any(word.lower() in peer.label.lower() for word in chosen.peers)
    ]
    last = None
    for case in cases(chosen.networks, chosen.data, chosen.rows):
        if last not in (None, case.name):
            jax.clear_caches()  # other shapes
        last = case.name
        samples = Samples(case, chosen.runs)
        here = case.name, case.n_samples
        yield (*here, None, NO_PRIVACY, NONE, NONE), measure_no_privacy, samples
        for epsilon in chosen.epsilons:
            replaced = Neighbours.REPLACE_ONE.value
            yield (*here, epsilon, JAXCD, replaced, NONE), measure_jaxcd, samples, epsilon
            for name in chosen.relations:
                for peer in peers:
                    options = _options(peer, case, chosen)
                    fit = chosen.fit if "mbi" in options else NONE
                    yield (
                        (*here, epsilon, peer.label, name, fit),
                        measure_peer,
                        samples,
                        peer,
                        Neighbours(name),
                        epsilon,
                        chosen.limit,
                        options,
                    )


# ---- who wins


def compared(ours: ex.Row, theirs: ex.Row, name: str) -> dict[str, Any]:
    """Ours minus theirs, paired by data set, with the standard error; wins: jaxcd, the peer, or
    neither, where the 95% interval of Student's t holds 0.
    """
    both = zip(ours[f"{name}_runs"], theirs[f"{name}_runs"], strict=False)
    differences = [a - b for a, b in both]
    difference, error = ex.mean(differences), ex.standard_error(differences)
    clear = error is not None and abs(difference) > error * stats.t.ppf(0.975, len(differences) - 1)
    return {
        "difference": difference,
        "difference_se": error,
        "wins": "neither" if not clear else JAXCD if difference > 0 else theirs.method,
    }


def summarise(rows: Sequence[ex.Row]) -> list[dict[str, Any]]:
    """jaxcd against the best line of the peers at the same total, for every cell, relation and
    score.
    """
    found = []
    for ours in rows:
        if ours.method != JAXCD:
            continue
        cell = {name: ours[name] for name in ("network", "n_samples", "epsilon")}
        peers = [row for row in rows if row.like(**cell) and row.method not in (JAXCD, NO_PRIVACY)]
        for relation in dict.fromkeys(row.relation for row in peers):
            for name in SCORES:
                top = max(
                    (row for row in peers if row.relation == relation), key=lambda row: row[name]
                )
                found.append(
                    {
                        **cell,
                        "relation": relation,
                        "score": name,
                        **{entry: top[entry] for entry in ("method", "fit", "search")},
                        "ours": ours[name],
                        "theirs": top[name],
                        **compared(ours, top, name),
                    }
                )
    return found


def words(line: Mapping[str, Any]) -> str:
    """A line of the summary about the best peer of a cell."""
    error = line["difference_se"]
    shown = "" if error is None else f" ({error:.3f})"
    return (
        f"{line['network']}, {line['n_samples']:,} rows, epsilon {line['epsilon']:g}, "
        f"{line['relation']}, {line['score'].replace('_f1', ' F1')}: jaxcd {line['ours']:.3f}, "
        f"best peer {line['theirs']:.3f} ({line['method']}; {line['search']}), difference "
        f"{line['difference']:+.3f}{shown}: {line['wins']} wins"
    )


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """The summary of all rows of a file."""
    summary = summarise(record.rows)
    for line in summary:
        console.print(words(line), soft_wrap=True)
    for relation in dict.fromkeys(line["relation"] for line in summary):
        for name in SCORES:
            wins = [
                line["wins"]
                for line in summary
                if line["relation"] == relation and line["score"] == name
            ]
            ours, neither = wins.count(JAXCD), wins.count("neither")
            console.print(
                f"{relation}, {name.replace('_f1', ' F1')}: of {len(wins)} cells jaxcd wins "
                f"{ours}, the best peer {len(wins) - ours - neither}, neither {neither}"
            )
    for entry in record.left_out:
        *where, reason = entry.values()
        console.print(f"left out: {', '.join(map(str, where))}: {reason}", soft_wrap=True)
    return {"summary": summary}


def check(chosen: Namespace) -> str | None:
    """What is wrong with the options."""
    known = {*BUILT_IN, *FROM_FILE}
    for name in chosen.networks or ():
        if name not in known and not name.endswith(BIF_ENDINGS):
            return f"--networks: {name} is none of {', '.join(sorted(known))}, and no BIF file"
    labels = [peer.label for peer in PEERS]
    for word in chosen.peers or ():
        if not any(word.lower() in label.lower() for label in labels):
            return f"--peers: no peer has {word!r} in its name; they are {'; '.join(labels)}"
    lacking = [path for path in chosen.merge or () if not path.is_file()]
    return f"--merge: {lacking[0]} is no file" if lacking else None


_RELATIONS = [relation.value for relation in Neighbours]
EXPERIMENT = ex.Experiment(
    "synthetic_peers",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "epsilon:g|none; method; relation; fit; search; arc F1 (se)=arc_f1+:.3f; "
        "skeleton F1 (se)=skeleton_f1+:.3f; rows, s=seconds_rows:.1f; "
        "processor, s=processor_rows:.1f; "
        "search, s=seconds_search:.2f; "
        "tables=n_tables:.0f; runs=n_runs:d"
    ),
    title=lambda row: f"{row.network}, {row.n_samples:,} rows",
    options=(
        ex.data_option("networks/*.bif"),
        ex.names(
            "--networks",
            "names or BIF files",
            full=["asia", "sachs", "child", "alarm"],
            quick=["cancer"],
        ),
        ex.counts("--rows", "records", [1_000, 10_000, 100_000], [2_000]),
        ex.numbers("--epsilons", "totals", [0.1, 0.5, 1.0, 4.0], [1.0]),
        ex.one_count("--runs", "data sets of each line", 10, 2),
        ex.names("--peers", "words of their labels; all by default"),
        ex.names("--relations", "of neighbours", choices=_RELATIONS, full=_RELATIONS),
        ex.Option("--fit", "who fits the last model of AIM and MST", MBI, choices=FITS),
        ex.Option(
            "--degree",
            "columns in a set of AIM's workload; by default 3, above 20 columns 2",
            kind=int,
            choices=(2, 3),
        ),
        ex.one_count("--cells", "of AIM's model", 2**17),
        ex.Option("--limit", "seconds for the rows of a run", 120.0, kind=ex.positive),
        ex.Option("--merge", "result files to join; nothing is run", kind=Path, several=True),
    ),
    settings=ex.kept(
        "degree", "cells", delta=DELTA, first_data=FIRST_DATA, first_noise=FIRST_NOISE
    ),
    check=check,
    known=lambda row, chosen: row.n_runs >= chosen.runs,
    finish=finish,
    width=150,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
