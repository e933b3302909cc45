"""Releases to be replayed: every kind, under every accounting, with a row and with a person as the
unit.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import jaxcd
from jaxcd.audit.judging import Case
from jaxcd.audit.neighbours import (
    DISCRETE,
    MIXED,
    OPEN,
    ROWS,
    dependent_pairs,
    every_record,
    mixed_pairs,
    moment_pairs,
    people_pairs,
)
from jaxcd.audit.table import Facts
from jaxcd.privacy import NoiseSource

__all__ = ["person_release_cases", "release_cases"]


# So much is spent on the bins that all are there, and their number is a fact.
_IN_BINS = jaxcd.Discretised(bins=3, share=0.5)
_OF_BINS: dict[str, Any] = {"bins": 3}


def release_cases() -> Iterator[Case]:
    """Releases where the unit is a row."""
    every, n_every = every_record(20), 4 * len(ROWS)
    yield Case(
        "release, Histogram",
        ("Histogram",),
        _bought(jaxcd.Histogram(), jaxcd.Budget(1.0)),
        every,
        _plain_facts,
        trials=n_every,
        least=0.999,
    )
    for budget in (jaxcd.Budget(8.0, 1e-3), jaxcd.Budget(40.0)):
        law = "Gaussian" if budget.delta else "Laplace"
        yield Case(
            f"release, Marginals, {law}",
            ("Marginals",),
            _bought(jaxcd.Marginals(), budget),
            every,
            _plain_facts if budget.delta else _pure_facts,
            trials=n_every,
            least=0.9,
        )
    yield Case(
        "release, Marginals, zCDP",
        ("Marginals",),
        _bought(
            jaxcd.Marginals(), jaxcd.Budget(8.0, 1e-3, accounting=jaxcd.privacy.Accounting.ZCDP)
        ),
        every,
        _plain_facts,
        trials=n_every // 4,  # the same sums as of the cases before, added up otherwise
        least=0.9,
    )
    # Many rows and columns that depend on each other: later rounds buy triples and tables too.
    for budget in (jaxcd.Budget(20.0, 1e-3), jaxcd.Budget(300.0)):
        law = "Gaussian" if budget.delta else "Laplace"
        yield Case(
            f"release, Marginals, {law}, all rounds",
            ("Marginals",),
            _bought(jaxcd.Marginals(), budget),
            dependent_pairs,
            _plain_facts if budget.delta else _pure_facts,
            trials=n_every // 2,
            least=0.8,
        )
    for budget in (jaxcd.Budget(20.0, 1e-3), jaxcd.Budget(300.0)):
        law = "Gaussian" if budget.delta else "Laplace"
        yield Case(
            f"release, LogLinear, {law}",
            ("LogLinear",),
            _bought(jaxcd.LogLinear(), budget),
            dependent_pairs,
            _plain_facts if budget.delta else _pure_facts,
            trials=12,
            least=0.8,
        )
    choosing = (jaxcd.LogLinear(selected=3), jaxcd.Marginals(selected=3))
    prices = (jaxcd.Budget(20.0, 1e-3), jaxcd.Budget(300.0))
    for chosen, budget in itertools.product(choosing, prices):
        name, law = type(chosen).__name__, "" if budget.delta else ", Laplace"
        yield Case(
            f"release, {name}, chosen pairs{law}",
            (name,),
            _bought(chosen, budget),
            dependent_pairs,
            _plain_facts if budget.delta else _pure_facts,
            trials=16,
            least=0.8,
        )
    given = jaxcd.SecondMoments(centres=dict.fromkeys("abc", 0.0), scales=dict.fromkeys("abc", 1.0))
    for name, kind in (("bought units", jaxcd.SecondMoments()), ("public units", given)):
        yield Case(
            f"release, SecondMoments, {name}",
            ("SecondMoments",),
            _bought(kind, jaxcd.Budget(4.0, 1e-3)),
            moment_pairs,
            _plain_facts,
            trials=24,
            least=0.5,
        )
    yield Case(
        "release, Tetrachoric",
        ("Tetrachoric",),
        _bought(jaxcd.Tetrachoric(selected=2), jaxcd.Budget(4.0, 1e-3)),
        moment_pairs,
        _plain_facts,
        trials=24,
        least=0.5,
    )
    yield Case(
        "release, Features",
        ("Features",),
        _bought(jaxcd.Features(), jaxcd.Budget(4.0, 1e-3)),
        mixed_pairs,
        lambda data: dataclasses.replace(_plain_facts(data), map_levels=12),
        trials=12,
        least=0.5,
    )
    yield Case(
        "release, Discretised",
        ("Discretised",),
        _bought(_IN_BINS, jaxcd.Budget(40.0, 1e-3)),
        mixed_pairs,
        lambda data: dataclasses.replace(_plain_facts(data), **_OF_BINS),
        trials=12,
        least=0.5,
    )


def person_release_cases() -> Iterator[Case]:
    """Releases where the unit is a person: neighbours differ in one person, of 1 or 50 rows."""

    def budget(epsilon: float, delta: float = 1e-3) -> jaxcd.Budget:
        return jaxcd.Budget(epsilon, delta, unit=jaxcd.privacy.Unit.PERSON)

    discrete = people_pairs(DISCRETE, 7, ROWS)
    corners = people_pairs(DISCRETE, 1, [ROWS[0], ROWS[-1], ROWS[len(ROWS) // 2]])
    ends = np.array(
        list(itertools.product((-4.0, 0.5, 4.0), (0.0, 1.0), (-1e4, 0.3, 1e4), (0.0, 2.0)))
    )
    far = np.array([row for r in (2.0, 0.5, 8.0) for row in (*np.eye(3) * r, *-np.eye(3) * r)])
    units = jaxcd.SecondMoments(centres=dict.fromkeys("abc", 0.0), scales=dict.fromkeys("abc", 1.0))
    for kind, price, pairs, trials, least in (
        (jaxcd.Histogram(), budget(1.0), discrete, 2 * len(ROWS), 0.999),
        (jaxcd.Marginals(), budget(8.0), discrete, 2 * len(ROWS), 0.9),
        (jaxcd.LogLinear(), budget(20.0), corners, 6, 0.8),
        (units, budget(4.0), people_pairs(OPEN, 7, far), 24, 0.8),
        (jaxcd.Tetrachoric(selected=2), budget(4.0), people_pairs(OPEN, 7, far), 24, 0.5),
    ):
        name = type(kind).__name__
        yield Case(
            f"release by person, {name}",
            (name,),
            _bought(kind, price),
            pairs,
            _person_facts,
            trials=trials,
            least=least,
        )
    yield Case(
        "release by person, Features",
        ("Features",),
        _bought(jaxcd.Features(), budget(40.0)),
        people_pairs(MIXED, 9, ends),
        lambda data: dataclasses.replace(_person_facts(data), map_levels=12),
        trials=40,
        least=0.9,
    )
    yield Case(
        "release by person, Discretised",
        ("Discretised",),
        _bought(_IN_BINS, budget(80.0)),
        people_pairs(MIXED, 9, ends),
        lambda data: dataclasses.replace(_person_facts(data), **_OF_BINS),
        trials=40,
        least=0.5,
    )
    yield Case(
        "release by person, Marginals, Laplace",
        ("Marginals",),
        _bought(jaxcd.Marginals(), budget(40.0, 0.0)),
        discrete,
        lambda data: dataclasses.replace(_person_facts(data), pure=True),
        trials=2 * len(ROWS),
        least=0.9,
    )
    yield Case(
        "release by person, SecondMoments, bought units",
        ("SecondMoments",),
        _bought(jaxcd.SecondMoments(), budget(4.0)),
        people_pairs(OPEN, 7, far),
        _person_facts,
        trials=12,
        least=0.3,
    )


def _bought(kind: Any, budget: jaxcd.Budget) -> Callable[[Any, NoiseSource], Any]:
    return lambda data, noise: jaxcd.release(data, kind, budget=budget, noise=noise)


def _plain_facts(data: Any) -> Facts:
    return Facts(data.n_samples, data.domain.cardinalities)


def _pure_facts(data: Any) -> Facts:
    return Facts(data.n_samples, data.domain.cardinalities, pure=True)


def _person_facts(data: Any) -> Facts:
    return Facts(data.n_people, data.domain.cardinalities, by_person=True)
