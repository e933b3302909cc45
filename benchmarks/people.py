"""Several rows a person: what a promise to a person costs, against the ways there were before.

``python -m benchmarks.people [--quick] [--data FOLDER] [--networks NAME ...] [--people N]
[--runs R] [--resume] [--out FILE]``

Tables of N people, person i with k_i rows, k_i uniform on 1 .. 50.  *Dependence within a person:*
each row is the person's own row with probability sqrt(c), else a fresh one; both follow the
network, so that every row does, and any two rows of a person have intra-person correlation c in
every column and every cell of every table.  All at (1, 1e-6), with the release that
``jaxcd.recommend`` names for the number that is public (of people, or of rows):

- ``person``: ``Budget(..., unit="person")``, every row with the weight 1/k_i;
- ``one row``: the first row of each person, ``Budget(...)``: N rows, a row a person;
- ``k epsilon``: all rows, ``Budget(..., max_rows_per_person=50)``, which also takes the number of
  rows as public.

Columns: arc and skeleton F1 against the true CPDAG, mean and standard deviation over the runs;
seconds for release and search together, the median.  Run r takes data seed r and noise seed r +
777.  The file is written after every row; ``--resume`` keeps its rows and runs what it lacks.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks

EPSILON, DELTA = 1.0, 1e-6
MOST_ROWS = 50
NOISE_SEED = 777
KEY = ("name", "method", "n_people", "correlation", "n_runs")
BUDGETS = {
    "person": jaxcd.Budget(EPSILON, DELTA, unit=jaxcd.privacy.Unit.PERSON),
    "one row": jaxcd.Budget(EPSILON, DELTA),
    "k epsilon": jaxcd.Budget(EPSILON, DELTA, max_rows_per_person=MOST_ROWS),
}


def people_of(network: Any, n: int, correlation: float, seed: int) -> jaxcd.Dataset:
    """The rows of n people, 1 to 50 each, as the module's docstring says."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, MOST_ROWS + 1, n)
    people = np.repeat(np.arange(n), sizes)
    rows = network.sample(n + len(people), key=ex.key(0, seed)).codes
    own, fresh = rows[:n], rows[n:]
    is_own = generator.random(len(people)) < np.sqrt(correlation)
    codes = np.where(is_own[:, None], own[people], fresh)
    return jaxcd.Dataset(network.domain, codes, np.empty((len(codes), 0)), people=people)


def taken(data: jaxcd.Dataset, method: str) -> jaxcd.Dataset:
    """The table that a method reads."""
    if method == "person":
        return data
    rows = data.discrete
    if method == "one row":
        rows = rows[np.unique(data.people, return_index=True)[1]]
    return jaxcd.Dataset.from_codes(rows, domain=data.domain)


def measure(network: Any, method: str, n: int, correlation: float, runs: int) -> dict[str, Any]:
    """``runs`` tables with one noise draw each."""
    graphs, seconds, kinds, counts = [], [], [], []
    for seed in range(runs):
        data = taken(people_of(network, n, correlation, seed), method)
        budget = BUDGETS[method]
        counts.append(n if method == "person" else data.n_samples)
        kind = jaxcd.recommend(data.domain, counts[-1], budget=budget).kind
        noise = jaxcd.SimulatedNoise(ex.key(NOISE_SEED, seed))
        with ex.Clock() as clock:
            found = jaxcd.search(jaxcd.release(data, kind, budget=budget, noise=noise))
        if not found.spent.epsilon <= EPSILON:
            raise AssertionError(f"spent {found.spent} of {budget}")
        seconds.append(clock.seconds)
        graphs.append(found.graph)
        kinds.append(type(kind).__name__)
    return {
        **ex.means(ex.scores(graphs, [network.cpdag()] * runs)),
        "release": " or ".join(sorted(set(kinds))),
        "public_n": median(counts),
        "seconds": median(seconds),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every method at c = .5, and the person's at c = 0 and 1 as well."""
    names = chosen.networks or (["cancer"] if chosen.quick else ["sachs", "child"])
    (n,) = chosen.people
    pairs = [(method, 0.5) for method in BUDGETS]
    more = [] if chosen.quick else [("person", 0.0), ("person", 1.0)]
    networks = load_networks(names, chosen.data)
    for some in (pairs, more):
        for (name, network), (method, correlation) in itertools.product(networks.items(), some):
            values = (name, method, n, correlation, chosen.runs)
            yield values, measure, network, method, n, correlation, chosen.runs


EXPERIMENT = ex.Experiment(
    "people",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "data=name; method; release; people=n_people:,; public n=public_n:,.0f; "
        "correlation:g; arc F1 (se)=arc_f1+:.3f; skeleton F1=skeleton_f1:.3f; seconds:.2f"
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "default: sachs and child"),
        ex.counts("--people", "people", [10_000], [500]),
        ex.one_count("--runs", "runs of each row", 10, 2),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
