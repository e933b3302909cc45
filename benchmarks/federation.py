"""Several owners: what one release without a curator finds, beside all rows in one hand and one
owner alone.

``python -m benchmarks.federation [--quick] [--data FOLDER] [--networks NAME ...] [--runs R]
[--resume] [--out FILE]``

Ten sites with the same number of rows each, of one network: Alarm with 10,000 a site at (1, 1e-6)
and ``Marginals``, Asia with 1,000 a site at epsilon 1 and ``Histogram``.  The same rows, in one
release:

- ``central``: one curator has all of them;
- ``federated``: ten sites, all of them counted on;
- ``ready for two``: the same, with noise for two absent sites, who come all the same (as much
  noise as against two sites that tell all they know);
- ``two missing``: one of these two does not join, the other is lost after the first round;
- ``one site``: the first owner alone, with the whole budget.

Columns: arc and skeleton F1 against the true CPDAG, mean and standard error over the runs; the
difference of arc F1 to ``central`` in the same run, mean and standard error; the most bytes that
one site sends and receives in a round; seconds for release and search, the median, with all sites
in one process.  Run r has data key r and noise key r + 777.  The file is written after every row;
``--resume`` keeps its rows and runs what it lacks.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd.federated import Coordinator, Federation, LocalLine, Message, Site, site_noise

NOISE_SEED = 777
N_SITES = 10
KEY = ("name", "method", "n_sites", "n_per_site", "n_runs")
CASES = {
    "asia": (1_000, jaxcd.Histogram(), jaxcd.Budget(1.0)),
    "alarm": (10_000, jaxcd.Marginals(), jaxcd.Budget(1.0, 1e-6)),
}
METHODS: dict[str, dict[str, int]] = {
    "central": {},
    "federated": {},
    "two missing": {"dropouts": 2},
    "ready for two": {"dropouts": 2},
    "one site": {},
}


def silent_from(site: Site, last: int) -> Any:
    """A site that answers nothing about a round after ``last``; -2: nothing at all."""
    return lambda content: site.answer(content) if Message.decode(content).round <= last else None


def federated(
    data: jaxcd.Dataset, kind: Any, budget: jaxcd.Budget, noise: Any, method: str
) -> tuple[Any, float]:
    """The release of ten sites, and the most bytes of one site in one round."""
    parts = np.array_split(data.discrete, N_SITES)
    names = tuple(f"site {place}" for place in range(N_SITES))
    federation = Federation(names, budget, **METHODS[method])
    lines = {}
    for place, (name, part) in enumerate(zip(names, parts, strict=True)):
        rows = jaxcd.Dataset.from_codes(part, domain=data.domain)
        site = Site(name, rows, federation, noise=site_noise(noise, place))
        missing = {3: -2, 7: 0}.get(place) if method == "two missing" else None
        lines[name] = LocalLine(site.answer if missing is None else silent_from(site, missing))
    coordinator = Coordinator(federation, data.domain, lines)
    bought = coordinator.release(kind, noise=noise)
    rounds = coordinator.report()["rounds"]
    return bought, max(size for part in rounds for size in part["bytes"].values())


def bought(rows: jaxcd.Dataset, name: str, method: str, noise: Any) -> tuple[jaxcd.Release, float]:
    """The release of a method, and the most bytes of one site in one round."""
    n, kind, budget = CASES[name]
    if method == "one site":
        rows = jaxcd.Dataset.from_codes(rows.discrete[:n], domain=rows.domain)
    if method in ("one site", "central"):
        return jaxcd.release(rows, kind, budget=budget, noise=noise), 0.0
    return federated(rows, kind, budget, noise, method)


class Run(NamedTuple):
    """What one run found: the graph, how many rows it is of, bytes and seconds."""

    graph: jaxcd.MixedGraph
    n_samples: int
    size: float
    seconds: float


@cache
def found_by(name: str, folder: Path | None, method: str, run: int) -> Run:
    """One run of a method; central ones are compared with by all others."""
    network = load_networks([name], folder)[name]
    n, _, budget = CASES[name]
    rows = network.sample(N_SITES * n, key=ex.key(0, run))
    noise = jaxcd.SimulatedNoise(ex.key(NOISE_SEED, run))
    with ex.Clock() as clock:
        release, size = bought(rows, name, method, noise)
        found = jaxcd.search(release)
    if not (found.spent.epsilon <= budget.epsilon and jaxcd.verify(release.certificate())):
        raise AssertionError(f"spent {found.spent} of {budget}")
    return Run(found.graph, release.n_samples, size, clock.seconds)


def measure(network: Any, name: str, method: str, runs: int, folder: Path | None) -> dict[str, Any]:
    """``runs`` tables, each released and searched once."""
    _, kind, budget = CASES[name]
    done = [found_by(name, folder, method, run) for run in range(runs)]
    truths = [network.cpdag()] * runs
    scored = ex.scores([each.graph for each in done], truths)
    more = {}
    if method != "central":
        whole = [found_by(name, folder, "central", run).graph for run in range(runs)]
        pairs = zip(scored["arc_f1"], ex.scores(whole, truths)["arc_f1"], strict=True)
        more = ex.means({"less_central": [a - b for a, b in pairs]})
    return {
        **ex.means(scored),
        **more,
        "release": type(kind).__name__,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "n_samples": median(each.n_samples for each in done),
        "bytes_per_site_and_round": max(each.size for each in done),
        "seconds": median(each.seconds for each in done),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every method on every network."""
    networks = load_networks(chosen.networks or list(CASES), chosen.data)
    for name, network in networks.items():
        for method in METHODS:
            values = (name, method, N_SITES, CASES[name][0], chosen.runs)
            yield values, measure, network, name, method, chosen.runs, chosen.data


EXPERIMENT = ex.Experiment(
    "federation",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "data=name; method; release; n=n_samples:,.0f; arc F1 (se)=arc_f1+:.3f; "
        "less central (se)=less_central+:.3f|-; skeleton F1=skeleton_f1:.3f; "
        "bytes=bytes_per_site_and_round:,.0f; seconds:.2f"
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "default: asia and alarm", tuple(CASES), None, ["asia"]),
        ex.one_count("--runs", "runs of each row", 20, 2),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
