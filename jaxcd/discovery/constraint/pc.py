"""PC: from a data set, a test and a decider to a CPDAG."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from jaxcd.checks import check_choice
from jaxcd.citests import CITest
from jaxcd.data import Dataset, Domain, Missing
from jaxcd.data.sources import Tabular, as_data
from jaxcd.decisions import Decider
from jaxcd.discovery.constraint.background import known_marks, oriented_as_known, search_space
from jaxcd.discovery.constraint.colliders import ColliderRule
from jaxcd.discovery.constraint.orientation import ConflictRule
from jaxcd.discovery.constraint.search import ConstraintSearch, Progress
from jaxcd.discovery.repeating import repeatable
from jaxcd.discovery.result import DiscoveryResult
from jaxcd.discovery.score.limits import oriented_along_paths
from jaxcd.graphs import MixedGraph
from jaxcd.graphs.knowledge import Knowledge
from jaxcd.privacy import Budget, NoiseSource, NoPrivacy, PrivacyFilter, keeps_what_is_paid
from jaxcd.releases import Release

__all__ = ["check_conflicts", "pc"]


def check_conflicts(conflicts: Any) -> None:
    """Raises OptionError where ``conflicts`` is no ConflictRule."""
    check_choice("conflicts", conflicts, ConflictRule)


@repeatable
@keeps_what_is_paid
def pc(
    data: Dataset | Release | Tabular | None,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    test: CITest,
    decider: Decider,
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    max_level: int | None = None,
    stable: bool = True,
    colliders: ColliderRule = ColliderRule.SEPARATING_SET,
    conflicts: ConflictRule = ConflictRule.UNDIRECTED,
    knowledge: Knowledge | None = None,
    progress: Progress = False,
) -> DiscoveryResult:
    """The PC algorithm: skeleton level by level, then colliders, then Meek's rules.

    On a release, which has been paid for, the test has the release's noise in its null
    (``Release.tests`` lists those it answers), the decider is Threshold, a query whose table was
    not bought counts as dependent, and the result carries the release's cost.

    Args:
        data: a Dataset, a data frame or the path of a csv or parquet file, with ``domain``, a
            release, or None with an Oracle.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        test: a conditional independence test.
        decider: how answers are given, and what they cost.
        budget: the total (epsilon, delta), fixed here, or NO_PRIVACY; required with a Dataset, left
            out with a release.
        key: a typed key for tests that draw permutations (None for the others).
        noise: None for secure noise from the operating system, or SimulatedNoise(key) for
            experiments.
        ledger: a LedgerFile (or Ledger) that every event is charged to as well, so that many runs
            share one total.
        max_level: the largest conditioning set, from 0; None for no limit.
        stable: whether answers of one level leave each other alone; False makes the skeleton, too,
            depend on the order of the columns.
        colliders: how colliders are judged, a :class:`jaxcd.discovery.ColliderRule`.
        conflicts: what becomes of an edge with two arrowheads.
        knowledge: what is known before; public.  A pair that is forbidden both ways is not joined
            and not asked, and a pair with a required edge is joined and not asked; a forbidden
            direction orients its edge the other way.  Knowledge wins over the data: a collider that
            contradicts it, or closes a directed cycle with it, is not written; a cycle is left only
            if it makes one by itself.  Separating sets hold no column of
            a tier later than both ends.  What tiers imply along a path through a column without a
            tier is added where the answers are those of a DAG that fits.
        progress: True prints a line a level; a function is called with each LevelRecord.

    Returns:
        A DiscoveryResult.  Its graph has no directed cycle, whatever the answers were: colliders of
        answers that contradict each other, of which an arrow lies on a cycle, are taken neither for
        colliders nor for non-colliders.  ``separating_sets`` holds every pair that is not joined,
        but for those that the knowledge keeps apart: the triples across these are ambiguous.
        ``info["ambiguous_triples"]``: unshielded triples that were taken neither for colliders nor
        for non-colliders; ``info["knowledge_conflicts"]``: those on which data and knowledge
        differ.

    Raises:
        OptionError: an argument is out of its range, before anything is charged.
        DomainError: the test does not take the columns, or the domain is not declared.
        PrivacyError: the decider fits no budget, or the budget is missing.
        SensitivityError: the test has no bounded sensitivity, and the run is private.

    Guarantee:
        On a release: that of the release, because everything here is post-processing of it.  On a
        Dataset: Relation: that of the budget (replace-one by default); public: n, the domain, all
        arguments.  Sensitivity and events: those of the test and the decider.  The search sees only
        the decider's answers, so graph and separating sets are post-processing of charged events,
        and the ledger's filter makes the whole (epsilon, delta)-DP of the budget.  ``cost.proven``
        is False with simulated noise.  Proof: :mod:`jaxcd.privacy.ledger`.

    Source:
        Spirtes, Glymour, Scheines 2000, section 5.4.2; Colombo and Maathuis 2014; Meek 1995.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(100_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.LevelwiseGaussian(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(run.graph)
        asia --> tub
        tub --- either
        smoke --- lung
        smoke --- bronc
        lung --> either
        bronc --- dysp
    """
    check_conflicts(conflicts)
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    search = ConstraintSearch(
        data,
        test=test,
        decider=decider,
        budget=budget,
        key=key,
        noise=noise,
        ledger=ledger,
        max_level=max_level,
        stable=stable,
        colliders=colliders,
        knowledge=knowledge,
        latent=False,
        progress=progress,
    )
    with search.keeping():
        space = search_space(search.knowledge, search.names, latent=False)
        skeleton = search.skeleton(space)
        undirected = MixedGraph(search.names, 3 * skeleton.adjacency.astype("int8"))
        judgement = search.judge(skeleton, undirected, space)
        known = known_marks(search.knowledge, undirected, latent=False)
        found = oriented_as_known(
            undirected,
            known,
            separating_sets=judgement.separating_sets,
            rule=conflicts,
            ambiguous=judgement.ambiguous,
        )
        graph = found.graph
        if not (judgement.ambiguous or found.conflicts or found.left_open):
            graph = oriented_along_paths(
                graph,
                undirected,
                search.knowledge,
                separating_sets=judgement.separating_sets,
                rule=conflicts,
            )
        return search.result(
            graph,
            skeleton,
            algorithm="pc",
            judgement=replace(judgement, unfaithful=(*judgement.unfaithful, *found.left_open)),
            conflicts=found.conflicts,
            options={},
        )
