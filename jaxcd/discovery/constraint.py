"""PC: from a data set, a test and a decider to a CPDAG."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax

from jaxcd.citests import CITest, Query
from jaxcd.data import Dataset
from jaxcd.decisions import Decider, DecisionRun
from jaxcd.discovery.orientation import ConflictRule, apply_meek_rules, orient_colliders, unshielded_triples
from jaxcd.discovery.result import DiscoveryResult, LevelRecord
from jaxcd.discovery.skeleton import Skeleton, search_skeleton
from jaxcd.errors import BudgetExhausted, OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.privacy import Accountant, Budget, Ledger, NoiseSource, NoPrivacy
from jaxcd.queries import Session

__all__ = ["ColliderRule", "pc"]


class ColliderRule(enum.Enum):
    """How an unshielded triple x - z - y is judged."""

    #: A collider iff z is not in the set that separated x and y.
    SEPARATING_SET = "separating-set"
    #: By the majority of all sets of neighbours of x or y that separate them (Colombo and Maathuis 2014): a collider if
    #: fewer than half of them hold z, ambiguous (left alone) if exactly half do.  Every query asked is paid for.
    MAJORITY = "majority"


@dataclass
class _Judgement:
    """Separating sets for the orientation step, and triples that are left alone."""

    separating_sets: dict[frozenset[str], tuple[str, ...]]
    ambiguous: list[tuple[str, str, str]]


def check_arguments(test: Any, budget: Any, key: Any, noise: Any, conflicts: Any) -> None:
    """Raises OptionError where an argument that every search takes is not of its kind."""
    if not isinstance(test, CITest):
        raise OptionError(f"test = {test!r} is not a test; use an object such as jaxcd.CovarianceNorm()")
    if not isinstance(budget, (Budget, NoPrivacy)):
        raise OptionError(
            f"budget = {budget!r} is not a budget; use jaxcd.Budget(epsilon=1.0, delta=1e-6) or jaxcd.NO_PRIVACY"
        )
    if key is not None and not (isinstance(key, jax.Array) and jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)):
        raise OptionError(f"key: a {type(key).__name__} is not a typed key; use jax.random.key(seed), or None")
    if noise is not None and not isinstance(noise, NoiseSource):
        raise OptionError(f"noise = {noise!r} is not a noise source; use None (secure) or jaxcd.SimulatedNoise(key)")
    if not isinstance(conflicts, ConflictRule):
        raise OptionError(f"conflicts = {conflicts!r} is not a rule; use ConflictRule.UNDIRECTED or ConflictRule.BIDIRECTED")


def _check_search(decider: Any, max_level: Any, stable: Any, colliders: Any, progress: Any) -> None:
    if not isinstance(decider, Decider):
        raise OptionError(f"decider = {decider!r} is not a decider; use an object such as jaxcd.LevelwiseGaussian()")
    if max_level is not None and (isinstance(max_level, bool) or not isinstance(max_level, int) or not max_level >= 0):
        raise OptionError(f"max_level = {max_level!r} is not a level; use a whole number from 0, or None for no limit")
    if not isinstance(stable, bool):
        raise OptionError(f"stable = {stable!r} is not True or False")
    if not isinstance(colliders, ColliderRule):
        raise OptionError(f"colliders = {colliders!r} is not a rule; use ColliderRule.SEPARATING_SET or ColliderRule.MAJORITY")
    if not isinstance(progress, bool) and not callable(progress):
        raise OptionError(f"progress = {progress!r} is neither True, False nor a function of a LevelRecord")
    if decider.needs_stable and not stable:
        raise OptionError(f"stable = False: {decider.name} answers a whole level at once; use stable=True")


def pc(
    data: Dataset | None,
    *,
    test: CITest,
    decider: Decider,
    budget: Budget | NoPrivacy,
    key: jax.Array | None,
    noise: NoiseSource | None = None,
    max_level: int | None = None,
    stable: bool = True,
    colliders: ColliderRule = ColliderRule.SEPARATING_SET,
    conflicts: ConflictRule = ConflictRule.UNDIRECTED,
    progress: bool | Callable[[LevelRecord], None] = False,
) -> DiscoveryResult:
    """The PC algorithm: skeleton level by level, then colliders, then Meek's rules.

    data: a Dataset, or None with an Oracle.  test: a conditional independence test.  decider: how answers are given.
    budget: the total (epsilon, delta), fixed here, or NO_PRIVACY.  key: a typed key for tests that draw permutations (None for
    the others).  noise: None for secure noise from the operating system, or SimulatedNoise(key) for
    experiments.  max_level: the largest conditioning set.  stable: whether answers of one level leave each other alone.
    colliders, conflicts: how colliders are judged, and what becomes of an edge with two arrowheads.
    progress: True prints a line a level; a function is called with each LevelRecord.

    Guarantee
    ---------
    Relation: that of the budget (replace-one by default); public: n, the domain, all arguments.  The search sees only the
    decider's answers, so graph and separating sets are post-processing of charged events, and the ledger's filter makes the
    whole (epsilon, delta)-DP of the budget.  ``cost.proven`` is False with simulated noise.  Proof: :mod:`jaxcd.privacy.ledger`.

    Raises OptionError, DomainError, PrivacyError or SensitivityError, before anything is charged, where arguments do not fit.
    Source: Spirtes, Glymour, Scheines 2000, section 5.4.2; Colombo and Maathuis 2014; Meek 1995.
    """
    check_arguments(test, budget, key, noise, conflicts)
    _check_search(decider, max_level, stable, colliders, progress)
    session = Session(data, test, alpha=decider.alpha, budget=budget, key=key)
    test.check_search(session.domain, max_level=max_level)
    accountant = Accountant(Ledger(budget), noise)
    if colliders is ColliderRule.MAJORITY and not decider.answers_queries:
        raise OptionError(
            f"colliders: the majority rule asks single queries, which {decider.name} does not answer; "
            "use NoisyThreshold or Threshold, or ColliderRule.SEPARATING_SET"
        )
    run = decider.start(session, accountant)
    levels: list[LevelRecord] = []

    def report(level: int, n_asked: int, n_separated: int) -> None:
        levels.append(LevelRecord(level, n_asked, n_separated))
        if callable(progress):
            progress(levels[-1])
        elif progress:
            print(f"level {level}: {n_asked} pairs asked, {n_separated} separated")

    skeleton = search_skeleton(
        run,
        session.n_variables,
        admissible=lambda x, y, given: session.admissible(Query.of(x, y, given)),
        max_level=max_level,
        stable=stable,
        report=report,
    )
    names = session.names
    judgement = _judge(run, session, skeleton, colliders, max_level)
    graph = orient_colliders(
        _undirected(names, skeleton),
        separating_sets=judgement.separating_sets,
        rule=conflicts,
        ambiguous=judgement.ambiguous,
    )
    graph = apply_meek_rules(graph, ambiguous=judgement.ambiguous)
    return DiscoveryResult(
        graph=graph,
        separating_sets=_named(names, skeleton),
        cost=accountant.guarantee,
        spent=accountant.ledger.spent,
        exhausted=run.exhausted,
        info=_info(session, accountant, test, decider, levels, stable=stable, max_level=max_level),
    )


def _named(names: tuple[str, ...], skeleton: Skeleton) -> dict[frozenset[str], tuple[str, ...]]:
    return {
        frozenset((names[x], names[y])): tuple(names[v] for v in given)
        for (x, y), given in skeleton.separating_sets.items()
    }


def _undirected(names: tuple[str, ...], skeleton: Skeleton) -> MixedGraph:
    return MixedGraph(names, 3 * skeleton.adjacency.astype("int8"))


def _judge(
    run: DecisionRun, session: Session, skeleton: Skeleton, rule: ColliderRule, max_level: int | None
) -> _Judgement:
    """The separating sets that the orientation step is to use.

    Under the majority rule the set of a pair x, y is written anew: z is in it iff the triple x - z - y is not a collider,
    which is all that the orientation reads of it.
    """
    names = session.names
    sets = _named(names, skeleton)
    index = {name: i for i, name in enumerate(names)}
    if rule is ColliderRule.SEPARATING_SET:
        return _Judgement(sets, _unsupported(run, _undirected(names, skeleton), sets, index))
    ambiguous = []
    middles: dict[tuple[int, int], list[int]] = {}
    for a, b, c in unshielded_triples(_undirected(names, skeleton)):
        middles.setdefault((index[a], index[c]), []).append(index[b])
    for (x, y), between in middles.items():
        try:
            separating = _all_separating_sets(run, session, skeleton, x, y, max_level)
        except BudgetExhausted:
            run.exhausted = True
            break
        if not separating:
            continue
        members = []
        for z in between:
            holding = sum(z in given for given in separating)
            if 2 * holding == len(separating):
                ambiguous.append((names[x], names[z], names[y]))
            elif 2 * holding > len(separating):
                members.append(names[z])
        sets[frozenset((names[x], names[y]))] = tuple(members)
    return _Judgement(sets, ambiguous)


def _unsupported(
    run: DecisionRun, skeleton: MixedGraph, sets: dict[frozenset[str], tuple[str, ...]], index: dict[str, int]
) -> list[tuple[str, str, str]]:
    """Would-be colliders for which the decider sees no support in what it has released."""
    return [
        (a, b, c)
        for a, b, c in unshielded_triples(skeleton)
        if b not in sets.get(frozenset((a, c)), (b,)) and not run.supports_collider(index[a], index[b], index[c])
    ]


def _all_separating_sets(
    run: DecisionRun, session: Session, skeleton: Skeleton, x: int, y: int, max_level: int | None
) -> list[tuple[int, ...]]:
    pools = [skeleton.neighbors(x, without=y), skeleton.neighbors(y, without=x)]
    limit = max(map(len, pools)) if max_level is None else max_level
    candidates = dict.fromkeys(
        given for pool in pools for size in range(min(limit, len(pool)) + 1) for given in combinations(pool, size)
    )
    queries = [Query.of(x, y, given) for given in candidates]
    admitted = [query for query in queries if session.admissible(query)]
    return [query.given for query, yes in zip(admitted, run.independent(admitted), strict=True) if yes]


def _info(
    session: Session, accountant: Accountant, test: CITest, decider: Decider, levels: list[LevelRecord], **options: Any
) -> dict[str, Any]:
    """What may be published: settings, levels and charges are public or released; counts of work are not, in a private run."""
    info = {
        "algorithm": "pc",
        "test": repr(test) if test.name != "Oracle" else "Oracle",
        "decider": repr(decider),
        "n_samples": session.n_samples,
        "n_variables": session.n_variables,
        "budget": str(accountant.ledger.budget),
        "secure_noise": accountant.noise.secure,
        "levels": tuple(levels),
        "ledger": tuple(accountant.ledger.to_table()),
        **options,
    }
    if not session.private:
        info |= {"n_tests": session.n_evaluated, "n_batches": session.n_batches}
    return info
