"""What PC and FCI share: arguments checked, a decider at work, levels reported, and the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import combinations
from typing import Any, final

import jax

from jaxcd.checks import (
    check_choice,
    check_flag,
    check_key_or_none,
    check_progress,
    check_whole,
    counted,
)
from jaxcd.citests import CITest, Query
from jaxcd.citests.base import check_is_test
from jaxcd.data import Dataset
from jaxcd.decisions import Decider
from jaxcd.decisions.base import check_is_decider
from jaxcd.discovery.constraint.background import known_to_tests
from jaxcd.discovery.constraint.colliders import ColliderRule, Judgement, judge_triples, named_sets
from jaxcd.discovery.constraint.orientation import Triple
from jaxcd.discovery.constraint.skeleton import SearchSpace, Skeleton, search_pools, search_skeleton
from jaxcd.discovery.facts import facts_of_release, facts_of_run, known_before
from jaxcd.discovery.result import DiscoveryResult, LevelRecord, SearchPass
from jaxcd.errors import OptionError
from jaxcd.graphs import Mark, MixedGraph
from jaxcd.graphs.knowledge import Knowledge
from jaxcd.privacy import NO_PRIVACY, Budget, NoiseSource, NoPrivacy, PrivacyFilter, open_account
from jaxcd.queries import Door, Session
from jaxcd.releases import Release

__all__ = ["ConstraintSearch", "check_arguments"]

Progress = bool | Callable[[LevelRecord], None]


def check_arguments(test: Any, budget: Any, key: Any, noise: Any) -> None:
    """Raises OptionError where an argument that every search takes is not of its kind."""
    check_is_test(test)
    if not isinstance(budget, (Budget, NoPrivacy)):
        raise OptionError(
            f"budget = {budget!r} is not a budget; use jaxcd.Budget(epsilon=1.0, delta=1e-6) or "
            "jaxcd.NO_PRIVACY"
        )
    check_key_or_none(key)
    if noise is not None and not isinstance(noise, NoiseSource):
        raise OptionError(
            f"noise = <{type(noise).__name__}> is not a noise source; use None (secure) or "
            "jaxcd.SimulatedNoise(key)"
        )


def _check_search(
    decider: Any, max_level: Any, stable: Any, colliders: Any, knowledge: Any, progress: Any
) -> None:
    check_is_decider(decider)
    if max_level is not None:
        check_whole("max_level", max_level, 0, cure="it is a level, or None for no limit")
    check_flag("stable", stable)
    check_choice("colliders", colliders, ColliderRule)
    if knowledge is not None and not isinstance(knowledge, Knowledge):
        raise OptionError(
            f"knowledge = {knowledge!r} is no Knowledge; use jaxcd.Knowledge(tiers=...), or None"
        )
    check_progress(progress, of="a LevelRecord")
    if decider.needs_stable and not stable:
        raise OptionError(
            f"stable = False: {decider.name} answers a whole level at once; use stable=True"
        )


@final
class ConstraintSearch:
    """One run of a search by conditional independences: asks a decider level by level and keeps
    what may be published.

    The arguments are those of :func:`jaxcd.pc`; all are checked here, before anything is charged.

    Attributes:
        knowledge: what is known before, with what the domain's interventions say.
    """

    def __init__(
        self,
        data: Dataset | Release | None,
        *,
        test: CITest,
        decider: Decider,
        budget: Budget | NoPrivacy | None,
        key: jax.Array | None,
        noise: NoiseSource | None,
        ledger: PrivacyFilter | None,
        max_level: int | None,
        stable: bool,
        colliders: ColliderRule,
        knowledge: Knowledge | None,
        latent: bool,
        progress: Progress,
    ) -> None:
        self._release = data if isinstance(data, Release) else None
        if budget is None and self._release is not None:
            budget = NO_PRIVACY
        check_arguments(test, budget, key, noise)
        assert budget is not None
        _check_search(decider, max_level, stable, colliders, knowledge, progress)
        if self._release is not None and decider.pays:
            raise OptionError(
                f"decider: {decider.name} buys answers, and a release has been paid for; use "
                f"Threshold(alpha={decider.alpha:g})"
            )
        self._session = Session(Door(data, budget), test, alpha=decider.alpha, key=key)
        self.names = self._session.names
        test.check_search(self._session.domain, max_level=max_level)
        self.knowledge = known_to_tests(knowledge, self.names, self._session.domain, latent=latent)
        self._accountant = open_account(
            budget,
            self._session.noise(noise),
            ledger=ledger,
            parts=(test, decider),
            accounting=decider.accounting,
            analysis="fci" if latent else "pc",
            n_samples=self._session.n_samples,
        )
        if colliders.asks and not decider.answers_queries:
            raise OptionError(
                f"colliders: the {colliders.value} rule asks single queries, which {decider.name} "
                "does not answer; "
                "use NoisyThreshold or Threshold, or ColliderRule.SEPARATING_SET"
            )
        self._test, self._decider, self._latent = test, decider, latent
        self._max_level, self._stable, self._rule, self._progress = (
            max_level,
            stable,
            colliders,
            progress,
        )
        self._levels: list[LevelRecord] = []
        self._skeleton: Skeleton | None = None
        self._run = decider.start(self._session, self._accountant)

    def keeping(self) -> AbstractContextManager[None]:
        """Whatever ends the block carries what was bought, and the skeleton as far as it is known
        (:func:`jaxcd.receipt_of`).
        """
        return self._accountant.keeping(self._unfinished)

    @property
    def exhausted(self) -> bool:
        """Whether the budget ran dry."""
        return self._run.exhausted

    def skeleton(self, space: SearchSpace, *, another_pass_follows: bool = False) -> Skeleton:
        """The skeleton by sets of neighbours."""
        apart = self._session.apart - space.kept
        # Asked, these would be paid for, and noise or an exhausted budget would join them.
        constants = self._session.constants
        separated: dict[tuple[int, int], tuple[int, ...]] = {
            (x, y): ()
            for x, y in combinations(range(self._session.n_variables) if constants else (), 2)
            if (x in constants or y in constants) and (x, y) not in space.kept
        }
        space = replace(
            space, absent=space.absent | apart, separated={**separated, **space.separated}
        )
        self._skeleton = space.skeleton(self._session.n_variables)
        return search_skeleton(
            self._run,
            self._session.n_variables,
            skeleton=self._skeleton,
            admissible=self._admissible,
            listed=self._session.conditioning_sets,
            max_level=self._max_level,
            stable=self._stable,
            report=self._reporter(SearchPass.NEIGHBORS),
            space=space,
            another_pass_follows=another_pass_follows,
        )

    def second_pass(
        self, skeleton: Skeleton, pools: list[tuple[int, ...]], space: SearchSpace
    ) -> None:
        """Removes from the skeleton the pairs that sets out of the pools separate."""
        search_pools(
            self._run,
            skeleton,
            pools,
            admissible=self._admissible,
            listed=self._session.conditioning_sets,
            max_level=self._max_level,
            report=self._reporter(SearchPass.POSSIBLE_D_SEP),
            space=space,
        )

    def judge(self, skeleton: Skeleton, graph: MixedGraph, space: SearchSpace) -> Judgement:
        """The unshielded triples of the skeleton (``graph``: the same with names), judged by the
        run's rule.
        """
        return judge_triples(
            self._run,
            self._session,
            skeleton,
            graph=graph,
            rule=self._rule,
            max_level=self._max_level,
            space=space,
        )

    def result(
        self,
        graph: MixedGraph,
        skeleton: Skeleton,
        *,
        algorithm: str,
        judgement: Judgement,
        conflicts: tuple[Triple, ...],
        options: Mapping[str, Any],
    ) -> DiscoveryResult:
        """The result: settings, levels and charges are public or released; counts of work are not,
        in a private run.
        """
        return self._result(
            graph,
            skeleton,
            {
                "algorithm": algorithm,
                "ambiguous_triples": judgement.unfaithful,
                "knowledge_conflicts": conflicts,
                **known_before(self.knowledge),
                **options,
            },
            exhausted=self._run.exhausted or self._run.unanswered,
        )

    def _unfinished(self) -> DiscoveryResult:
        """The skeleton as far as it got, without arrows (of a PAG: with circles): pairs that were
        not decided keep their edges.
        """
        assert self._skeleton is not None
        mark = Mark.CIRCLE if self._latent else Mark.TAIL
        bare = MixedGraph(self.names, int(mark) * self._skeleton.adjacency.astype("int8"))
        return self._result(bare, self._skeleton, {"algorithm": "unfinished"}, exhausted=True)

    def _result(
        self, graph: MixedGraph, skeleton: Skeleton, facts: Mapping[str, Any], *, exhausted: bool
    ) -> DiscoveryResult:
        session, accountant = self._session, self._accountant
        info = {
            "test": repr(self._test) if self._test.name != "Oracle" else "Oracle",
            "decider": repr(self._decider),
            "levels": tuple(self._levels),
            "stable": self._stable,
            "max_level": self._max_level,
            "colliders": self._rule.value,
            **facts,
        }
        if self._run.released_margins is not None:
            info["released_margins"] = self._run.released_margins
        if not session.private:
            info |= session.work
        if (release := self._release) is not None:
            cost, spent = release.cost, release.spent
            info |= facts_of_release(release)
        else:
            cost, spent = accountant.guarantee, accountant.ledger.spent
            info |= facts_of_run(
                accountant,
                domain=session.domain,
                n_samples=session.n_samples,
                n_variables=session.n_variables,
                snapshot=session.snapshot,
            )
            if session.domain is not None and not session.private:
                info |= self._test.record_facts(session.domain)
        if n_apart := len(session.apart):
            words = (
                f"{n_apart:,} of {counted(math.comb(session.n_variables, 2), 'pair')} "
                f"{'was' if n_apart == 1 else 'were'} not measured: such pairs are not joined, and "
                "no collider is read off them."
            )
            info["warnings"] = (*info.get("warnings", ()), words)
        return DiscoveryResult(
            graph=graph,
            separating_sets=named_sets(self.names, skeleton),
            cost=cost,
            spent=spent,
            exhausted=exhausted,
            info=info,
            is_latent=self._latent,
        )

    def _admissible(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        return self._session.admissible(Query.of(x, y, given))

    def _reporter(self, search_pass: SearchPass) -> Callable[[int, int, int], None]:
        def report(level: int, n_asked: int, n_separated: int) -> None:
            record = LevelRecord(level, n_asked, n_separated, search_pass)
            self._levels.append(record)
            if callable(self._progress):
                self._progress(record)
            elif self._progress:
                print(record)

        return report
