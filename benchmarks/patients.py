"""A table of made-up patients: a known graph, and regions that have nothing to do with it, some of
them held by a handful of people.

``age``, ``sex`` and ``smoker`` have no parents but ``sex -> smoker``; ``bmi`` follows age and sex;
``diabetes`` age and bmi; ``hypertension`` age, bmi and smoker; ``stage`` (ordinal) smoker and
hypertension; ``treatment`` diabetes and stage; ``death`` age, stage and treatment.  ``region`` is
independent of everything: eight common levels and ``len(handfuls)`` levels that are held by so many
people each, at random places.
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
import pandas as pd

import jaxcd
from jaxcd.graphs import dag_to_cpdag

__all__ = ["HANDFULS", "cpdag", "patients"]

HANDFULS = (2, 2, 5, 20)
"""People in each of the rare regions."""
N_COMMON = 8
ARCS = (
    ("sex", "smoker"),
    ("age", "bmi"),
    ("sex", "bmi"),
    ("age", "diabetes"),
    ("bmi", "diabetes"),
    ("age", "hypertension"),
    ("bmi", "hypertension"),
    ("smoker", "hypertension"),
    ("smoker", "stage"),
    ("hypertension", "stage"),
    ("diabetes", "treatment"),
    ("stage", "treatment"),
    ("age", "death"),
    ("stage", "death"),
    ("treatment", "death"),
)
NAMES = (
    "region",
    "age",
    "sex",
    "smoker",
    "bmi",
    "diabetes",
    "hypertension",
    "stage",
    "treatment",
    "death",
)
_BINS = {"age": (18.0, 95.0, 5), "bmi": (14.0, 50.0, 4)}


def cpdag() -> jaxcd.MixedGraph:
    """The class of the graph that the rows are drawn from."""
    dag = nx.DiGraph(ARCS)
    dag.add_nodes_from(NAMES)
    return dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag)).reordered(NAMES)


def patients(
    n: int, *, seed: int, mixed: bool = True, handfuls: Sequence[int] = HANDFULS
) -> jaxcd.Dataset:
    """n rows; equal seeds give equal rows.

    Args:
        mixed: age and bmi as bounded numbers, else in 5 and 4 equal bins.
        handfuls: people in each of the rare regions; their numbers are exact.
    """
    rng = np.random.default_rng([17, seed])

    def yes(logit: np.ndarray) -> np.ndarray:
        return (rng.logistic(size=n) < logit).astype(int)

    def one_of(*logits: np.ndarray) -> np.ndarray:
        scores = np.column_stack(np.broadcast_arrays(*logits)) + rng.gumbel(size=(n, len(logits)))
        found: np.ndarray = np.argmax(scores, axis=1)
        return found

    age = np.clip(rng.normal(55, 16, n), 18, 95)
    old = (age - 55) / 16
    sex = rng.integers(2, size=n)
    smoker = one_of(0.8 - 0.9 * sex, np.zeros(n), -0.3 + 0.5 * sex)
    bmi = np.clip(27 + 1.8 * old + 1.6 * sex + rng.normal(0, 3.5, n), 14, 50)
    heavy = (bmi - 27) / 4
    diabetes = yes(-1.6 + 0.9 * old + 0.9 * heavy)
    hypertension = yes(-0.6 + 0.9 * old + 0.7 * heavy + 0.7 * (smoker == 2))
    severity = 1.0 * smoker + 1.3 * hypertension + rng.logistic(size=n)
    stage = np.digitize(severity, (0.5, 2.0, 3.5))
    treatment = one_of(1.2 - 0.7 * stage, 1.3 * diabetes - 0.2, 0.6 * stage - 0.9)
    death = yes(-3.2 + 0.9 * old + 0.7 * stage - 0.9 * (treatment == 2))
    region = rng.integers(N_COMMON, size=n)
    rare = np.repeat(np.arange(N_COMMON, N_COMMON + len(handfuls)), handfuls)
    region[rng.permutation(n)[: len(rare)]] = rare
    values = (region, age, sex, smoker, bmi, diabetes, hypertension, stage, treatment, death)
    columns = dict(zip(NAMES, values, strict=True))
    levels = {name: int(columns[name].max()) + 1 for name in NAMES if name not in _BINS}
    levels.update(region=N_COMMON + len(handfuls), stage=4)
    domain: dict[str, jaxcd.Categorical | jaxcd.Ordinal | jaxcd.Numeric] = {
        name: jaxcd.Categorical(tuple(range(k))) for name, k in levels.items()
    }
    domain["stage"] = jaxcd.Ordinal(tuple(range(4)))
    for name, (low, high, bins) in _BINS.items():
        if mixed:
            domain[name] = jaxcd.Numeric(low, high)
        else:
            cut = (columns[name] - low) / (high - low) * bins
            columns[name] = np.minimum(cut, bins - 1).astype(int)
            domain[name] = jaxcd.Ordinal(tuple(range(bins)))
    ordered = jaxcd.Domain({name: domain[name] for name in NAMES})
    return jaxcd.Dataset.from_frame(pd.DataFrame(columns), domain=ordered)
