"""GFCI: a score says first what is joined, then FCI's tests take away what only hidden causes
joined.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax

from jaxcd.citests import CITest
from jaxcd.data import Dataset, Domain, Missing
from jaxcd.data.interventions import Interventions
from jaxcd.data.sources import Tabular, as_data
from jaxcd.decisions import Threshold
from jaxcd.decisions.associations import usual_test
from jaxcd.discovery.constraint.background import known_to_tests
from jaxcd.discovery.constraint.fci import fci
from jaxcd.discovery.constraint.search import Progress
from jaxcd.discovery.released import known_to_scores, search_release
from jaxcd.discovery.repeating import repeatable
from jaxcd.discovery.result import DiscoveryResult
from jaxcd.discovery.score.ges import ges
from jaxcd.discovery.score.scored import check_scored
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.privacy import Budget, NoPrivacy
from jaxcd.releases import Release
from jaxcd.scores import BIC, ScoreConfig

__all__ = ["check_gfci", "gfci"]

_PASSED_ON = ("score", "max_parents", "exact", "n_graphs_scored", "n_families")


def check_gfci(
    domain: Domain,
    knowledge: Knowledge | None,
    *,
    what: str = "data",
    cure: str = 'use jaxcd.fci, or jaxcd.search(release, algorithm="fci")',
) -> None:
    """Refuses, from public facts and so before anything is bought, what GFCI cannot search.

    Args:
        domain: of the columns.
        knowledge: what is known before.
        what: the argument that asked for GFCI, in the words of the door.
        cure: what to do about an intervention, in the words of the door.

    Raises:
        OptionError: the domain declares an intervention, or the knowledge contradicts itself, the
            interventions or the names.
    """
    if columns := Interventions.of(domain).columns:
        raise OptionError(
            f"{what}: {columns[0]!r} declares an intervention, and GFCI's score reads it as if "
            f"nothing were hidden; {cure}"
        )
    known_to_tests(knowledge, domain.names, domain, latent=True)
    known_to_scores(_of_the_score(knowledge), domain)


def _of_the_score(knowledge: Knowledge | None) -> Knowledge | None:
    """What its score is held to: a pair that is forbidden both ways may still be joined by a hidden
    cause.
    """
    if knowledge is None:
        return None
    return replace(knowledge, forbidden=(), forbidden_within_tier=False)


@repeatable
def gfci(
    data: Dataset | Release | Tabular,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    score: ScoreConfig | None = None,
    test: CITest | None = None,
    alpha: float = 0.05,
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None = None,
    max_level: int | None = None,
    max_path_length: int | None = None,
    possible_d_sep: bool = True,
    selection_bias: bool = True,
    knowledge: Knowledge | None = None,
    progress: Progress = False,
) -> DiscoveryResult:
    """Greedy FCI, for data with hidden common causes: a PAG by a score and by tests.

    1. The best graph by a score, as if nothing were hidden.  With enough rows it has every edge of
       the truth, and more where a hidden cause joins columns that no DAG without it can hold apart.
    2. FCI from there (``start`` of :func:`jaxcd.fci`): tests ask only about edges in a triangle of
       that graph, where those that are too many are, and take away what a set of columns separates.
    3. Colliders: of two columns that the score keeps apart, as the score has them; of two that a
       test separated, by its separating set.  Then FCI's rules.

    With the true independences and a score whose best graph has them this is the PAG, as FCI's is
    (tested on all MAGs of four columns, and on random ones).  With few rows or much noise the score
    weighs all edges together where FCI believes each test, and columns that are functions of others
    (``either`` of Asia), which tests hold apart by mistake, stay joined.  Edges too weak for the
    score are missed: ``benchmarks.priv_fci`` compares the two.

    Args:
        data: a Dataset, or a data frame or path, without privacy; or a release, which has been
            paid for.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        score: ``BIC()`` or ``BDeu()``, by greedy equivalence search.  None: of a release its own
            score and search (:func:`jaxcd.search`), which know the noise; else ``BIC()``.
        test: None for the usual one: the G test of discrete columns, Fisher's z of numeric ones, or
            the first that a release answers.
        alpha: the level of the test, 0 < alpha < 1.
        budget: NO_PRIVACY with a Dataset, left out with a release.
        key: a typed key for tests that draw permutations.
        max_level: as for :func:`jaxcd.fci`.
        max_path_length: as for :func:`jaxcd.fci`.
        possible_d_sep: as for :func:`jaxcd.fci`.
        selection_bias: as for :func:`jaxcd.fci`.
        knowledge: what is known before; public.  The tests and rules read it as :func:`jaxcd.fci`
            does.  The score's search is held to tiers and required edges only: a pair that is
            forbidden both ways may still be joined by a hidden cause.
        progress: as for :func:`jaxcd.fci`.

    Returns:
        The PAG and its cost.  ``separating_sets``: of pairs that the score keeps apart the columns
        anterior to either in its graph.  ``info``: what :func:`jaxcd.fci` says, ``start``: the
        score's graph, one edge a string, ``search`` and ``score``: how it was found, in nats.

    Raises:
        OptionError: an argument is out of its range, or the domain declares interventions, whose
            scores take it that nothing is hidden.
        DomainError: the test or the score does not take the columns.
        PrivacyError: the budget is not NO_PRIVACY.

    Guarantee:
        On a release that of the release: everything here is post-processing.  On a Dataset none,
        and a private budget is refused.

    Source:
        Ogarrio, Spirtes, Ramsey 2016, A hybrid causal search algorithm for latent variable models
        (PGM).

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(100_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> shown = data.select([name for name in data.names if name != "smoke"])
        >>> bought = jaxcd.release(shown, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        >>> print(jaxcd.gfci(bought).graph.edge("lung", "either"))
        lung o-> either
    """
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    check_scored(data, BIC() if score is None else score, budget, key, None, knowledge)
    check_gfci(data.domain, knowledge)
    test = usual_test(data) if test is None else test
    known = _of_the_score(knowledge)
    if isinstance(data, Release) and score is None:
        found = search_release(data, knowledge=known)
    else:
        found = ges(data, score=score or BIC(), budget=budget, knowledge=known)
    run = fci(
        data,
        test=test,
        decider=Threshold(alpha),
        budget=budget,
        key=key,
        max_level=max_level,
        max_path_length=max_path_length,
        possible_d_sep=possible_d_sep,
        selection_bias=selection_bias,
        knowledge=knowledge,
        start=found.graph,
        progress=progress,
    )
    more = {name: found.info[name] for name in _PASSED_ON if name in found.info}
    start = tuple(map(str, found.graph.edges()))
    facts = {"algorithm": "gfci", "search": found.info["algorithm"], "start": start, **more}
    # What the score's search says of its graph, from which this one starts, is said of both.
    words = dict.fromkeys((*found.info.get("warnings", ()), *run.info.get("warnings", ())))
    if words:
        facts["warnings"] = tuple(words)
    return replace(run, info={**run.info, **facts})
