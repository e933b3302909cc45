"""What the score-based searches share: arguments checked, a score prepared, and the result; and the
doors of the exact search and of order MCMC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import jax
import numpy as np

from jaxcd.checks import a_type, check_key_or_none, is_whole
from jaxcd.data import Dataset, Domain, Missing
from jaxcd.data.intervention_knowledge import with_interventions
from jaxcd.data.sources import Tabular, as_data
from jaxcd.discovery.constraint.background import check_knowledge
from jaxcd.discovery.edge_shares import EdgeConfidence
from jaxcd.discovery.facts import facts_of_release, facts_of_run, known_before
from jaxcd.discovery.interventions import oriented_by_score
from jaxcd.discovery.repeating import repeatable
from jaxcd.discovery.result import DiscoveryResult, StepProgress
from jaxcd.discovery.score.exact_search import exact_search as exact_search_on
from jaxcd.discovery.score.limits import Limits
from jaxcd.discovery.score.order_mcmc import OrderPosterior, StructurePrior, sample_orders
from jaxcd.errors import OptionError, PrivacyError
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.privacy import NO_PRIVACY, Budget, NoPrivacy, open_account
from jaxcd.releases import Release
from jaxcd.scores import BIC, BDeu, LocalScore, ScoreConfig

__all__ = ["SearchedData", "check_scored", "exact_search", "likelihood_score", "order_mcmc"]

# A table of all families of this many variables takes seconds; above, parents are limited.
_MOST_UNLIMITED = 10
_FEW_PARENTS = 4


@dataclass(frozen=True, eq=False)
class SearchedData:
    """A score on data or on a release, and what the result of a search by it says of both."""

    data: Dataset | Release
    score: LocalScore
    config: ScoreConfig
    knowledge: Knowledge | None = None

    @staticmethod
    def of(
        data: Dataset | Release,
        config: ScoreConfig,
        *,
        max_parents: int | None,
        knowledge: Knowledge | None,
    ) -> SearchedData:
        """The score prepared, and the knowledge with what the domain's interventions say.

        Raises:
            OptionError: the knowledge contradicts the interventions.
            DomainError: the score does not take the columns.
        """
        known = with_interventions(knowledge, data.domain)
        return SearchedData(data, config.prepare(data, max_parents=max_parents), config, known)

    @property
    def limits(self) -> Limits:
        """What the knowledge leaves."""
        return Limits.of(self.knowledge, self.data.names)

    def pattern(self, adjacency: np.ndarray) -> MixedGraph:
        """What all DAGs agree on that fit, and that the score cannot tell from this one, bool
        (d, d).
        """
        return oriented_by_score(self.limits.pattern(adjacency), self.score, adjacency)

    def result(
        self, graph: MixedGraph, *, algorithm: str, options: Mapping[str, Any]
    ) -> DiscoveryResult:
        """The result: at no cost on data, at the release's on a release."""
        data = self.data
        info: dict[str, Any] = {
            "algorithm": algorithm,
            "score_function": repr(self.config),
            **options,
            **known_before(self.knowledge),
        }
        if isinstance(data, Release):
            cost, spent = data.cost, data.spent
            info |= facts_of_release(data)
        else:
            accountant = open_account(NO_PRIVACY)
            cost, spent = accountant.guarantee, accountant.ledger.spent
            info |= facts_of_run(
                accountant, domain=data.domain, n_samples=data.n_samples, n_variables=data.n_columns
            )
            info |= self.config.record_facts(data.domain)
        return DiscoveryResult(
            graph=graph, separating_sets={}, cost=cost, spent=spent, exhausted=False, info=info
        )


def check_scored(
    data: Any, score: Any, budget: Any, key: Any, max_parents: Any, knowledge: Any
) -> None:
    """Raises OptionError or PrivacyError where an argument that every score-based search takes is
    not of its kind.
    """
    if not isinstance(data, (Dataset, Release)):
        raise OptionError(
            f"data: {a_type(data)} is neither a Dataset nor a Release; make one with "
            "read_csv or jaxcd.release (which takes a Table, and rows on several devices, too)"
        )
    if not isinstance(score, ScoreConfig):
        raise OptionError(
            f"score = {score!r} is not a score; use an object such as jaxcd.BIC() or jaxcd.BDeu()"
        )
    if budget is not None and not isinstance(budget, (Budget, NoPrivacy)):
        raise OptionError(
            f"budget = {budget!r} is not a budget; use jaxcd.NO_PRIVACY, or leave it out with a "
            "release"
        )
    if isinstance(data, Release):
        if isinstance(budget, Budget):
            raise OptionError(
                f"budget: a release has been paid for, and {budget} would buy nothing more; leave "
                "it out"
            )
    elif budget is None:
        raise OptionError(
            "budget is required with a Dataset; use jaxcd.NO_PRIVACY, or buy a release and search "
            "that"
        )
    elif isinstance(budget, Budget):
        raise PrivacyError(
            f"budget = {budget}: scores of raw data are not private; buy a release "
            "(jaxcd.release(data, jaxcd.Histogram(), "
            "budget=...)) and search that, or use budget=NO_PRIVACY"
        )
    check_key_or_none(key)
    if max_parents is not None and not is_whole(max_parents, 0):
        raise OptionError(
            f"max_parents = {max_parents!r} is not a number of parents; use a whole number from "
            "0, or None"
        )
    check_knowledge(knowledge, data.names)


def likelihood_score(data: Dataset | Release) -> ScoreConfig:
    """The marginal likelihood where the data have one, else its approximation."""
    answered = (
        BDeu in data.scores()
        if isinstance(data, Release)
        else all(column.is_discrete for column in data.domain.columns.values())
    )
    return BDeu() if answered and not any(data.leaves_out) else BIC()


@overload
def exact_search(data: LocalScore, *, knowledge: Knowledge | None = ...) -> np.ndarray: ...


@overload
def exact_search(
    data: Dataset | Release | Tabular,
    *,
    domain: Domain | str | Path | None = ...,
    score: ScoreConfig = ...,
    budget: Budget | NoPrivacy | None = ...,
    key: jax.Array | None = ...,
    max_parents: int | None = ...,
    knowledge: Knowledge | None = ...,
    progress: StepProgress = ...,
) -> DiscoveryResult: ...


@repeatable
def exact_search(
    data: Dataset | Release | LocalScore | Tabular,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    score: ScoreConfig = BIC(),  # noqa: B008 - frozen
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None = None,
    max_parents: int | None = None,
    knowledge: Knowledge | None = None,
    progress: StepProgress = False,
) -> DiscoveryResult | np.ndarray:
    """The equivalence class of the highest score of all, for up to about 20 variables.

    Dynamic programming over subsets of the variables compares all DAGs, or all that fit what is
    known.  Of a histogram take :func:`jaxcd.search`: this one scores the denoised table, and a
    small budget makes edges out of noise (see :func:`jaxcd.ges`).

    Args:
        data: a Dataset, or a data frame or path, without privacy; a release, which has been paid
            for; or a LocalScore itself, without further arguments.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        score: ``BIC()`` or ``BDeu()``.
        budget: NO_PRIVACY with a Dataset, left out with a release.
        key: not used; nothing is drawn.
        max_parents: the most parents of a node; None for no limit up to 10 variables and 4 above,
            or the release's own.  Columns that set it do not count.
        knowledge: what is known before; public.
        progress: True prints a line for each column whose families are scored, and for each size of
            sets of columns; a function is called with each :class:`jaxcd.discovery.Step`.

    Returns:
        The CPDAG, with all orientations that the knowledge implies, and its cost;
        ``info["score"]`` is its score in nats.  Of a LocalScore the best
        DAG as a bool adjacency (d, d) (:func:`jaxcd.discovery.score.exact_search.exact_search`).

    Raises:
        OptionError: an argument is out of its range, or there are more than 22 variables.
        DomainError: the score does not take the columns.
        PrivacyError: the budget is not NO_PRIVACY.

    Guarantee:
        On a release that of the release: the search is post-processing.  On a Dataset none.

    Source:
        Koivisto and Sood 2004; Silander and Myllymaki 2006.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
        >>> print(jaxcd.exact_search(data, budget=jaxcd.NO_PRIVACY).graph)
        Burglary --> Alarm
        Earthquake --> Alarm
        Alarm --> JohnCalls
        Alarm --> MaryCalls
    """
    if isinstance(data, LocalScore):
        return exact_search_on(data, knowledge=knowledge, progress=progress)
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    check_scored(data, score, budget, key, max_parents, knowledge)
    if max_parents is None and len(data.names) > _MOST_UNLIMITED and isinstance(data, Dataset):
        max_parents = _FEW_PARENTS
    searched = SearchedData.of(data, score, max_parents=max_parents, knowledge=knowledge)
    best = exact_search_on(searched.score, knowledge=searched.knowledge, progress=progress)
    options = {
        "score": searched.limits.within(searched.score).total(best),
        "max_parents": searched.score.max_parents,
    }
    return searched.result(searched.pattern(best), algorithm="exact_search", options=options)


@repeatable
def order_mcmc(
    data: Dataset | Release | Tabular,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    score: ScoreConfig | None = None,
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None,
    max_parents: int | None = None,
    n_steps: int = 10_000,
    burn_in: int = 2_000,
    thin: int = 10,
    n_chains: int = 2,
    prior: StructurePrior = StructurePrior.ORDER_MODULAR,
    max_candidates: int = 12,
    knowledge: Knowledge | None = None,
    progress: StepProgress = False,
) -> DiscoveryResult:
    """Posterior probabilities of arcs, by Markov chain Monte Carlo over orders of the variables.

        P(i -> j | data) = sum over orders and DAGs with i -> j of exp(score) prior / sum of all

    is estimated from the orders that the chains visit, and the class of the best DAG on the way is
    kept.  A histogram is scored on its denoised table, so that these probabilities do not count the
    privacy noise (5,000 independent rows of 3^5 cells at epsilon .1: 4 of 10 pairs are joined).
    Those of :func:`jaxcd.edge_confidence` do.

    Args:
        data: a Dataset, or a data frame or path, without privacy; or a release, which has been
            paid for.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        score: ``BDeu()``, a log marginal likelihood, of complete discrete columns and of a
            histogram of such; with ``BIC()`` exp(score) is an approximation of one.  None for
            ``BDeu()`` where the data or the release answer it, else ``BIC()``.
        budget: NO_PRIVACY with a Dataset, left out with a release.
        key: a typed key, required: the chains are random.
        max_parents: the most parents of a node; None for no limit up to 10 variables and 4 above,
            or the release's own.  Columns that set it do not count.
        n_steps: the moves of each chain that count, from 1.
        burn_in: the moves before them, from 0.
        thin: one order in so many is kept, from 1.
        n_chains: the number of independent chains, from 1.
        prior: over DAGs, a :class:`jaxcd.discovery.StructurePrior`.
        max_candidates: the most candidate parents of a node, 1 to 16; one more may come from
            outside.
        knowledge: what is known before; public.  The posterior is that of the orders and DAGs that
            fit.
        progress: True prints a line for each column whose families are scored, and about twenty
            for each chain; a function is called with each :class:`jaxcd.discovery.Step`.

    Returns:
        A result whose ``graph`` is the CPDAG of the best DAG seen, with all orientations that the
        knowledge implies, and whose ``confidence`` holds
        the posterior: ``confidence.directed[i, j]`` is that of i -> j, ``confidence.adjacency`` of
        either, and ``confidence.undirected`` is zero, a DAG having directions only.  ``info``:
        ``score`` of that DAG in nats; ``disagreement``, the largest difference between two chains
        in the probability of an arc (large: take more steps); ``effective_samples``,
        ``acceptance``, ``n_expansions``, ``left_out`` as in
        :class:`jaxcd.discovery.OrderPosterior`; and the settings.

    Raises:
        OptionError: an argument is out of its range, or there is no key.
        DomainError: the score does not take the columns.
        PrivacyError: the budget is not NO_PRIVACY.

    Guarantee:
        On a release that of the release: the chains are post-processing of its score.  On a Dataset
        none, and a private budget is refused.

    Source:
        Friedman and Koller 2003; Kuipers, Suter, Moffa 2022.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(5_000, key=jax.random.key(0))
        >>> run = jaxcd.order_mcmc(
        ...     data, budget=jaxcd.NO_PRIVACY, key=jax.random.key(1), n_steps=500, burn_in=100
        ... )
        >>> run.confidence.of("Smoker", "Cancer").adjacent > 0.9
        True
    """
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    check_scored(data, BDeu() if score is None else score, budget, key, max_parents, knowledge)
    if key is None:
        raise OptionError(
            "key is required, because the chains are random; use jax.random.key(seed)"
        )
    if max_parents is None and len(data.names) > _MOST_UNLIMITED and isinstance(data, Dataset):
        max_parents = _FEW_PARENTS
    searched = SearchedData.of(
        data, score or likelihood_score(data), max_parents=max_parents, knowledge=knowledge
    )
    seed = int.from_bytes(np.asarray(jax.random.key_data(key)).tobytes(), "little")
    found = sample_orders(
        searched.score,
        n_steps=n_steps,
        burn_in=burn_in,
        seed=seed,
        thin=thin,
        n_chains=n_chains,
        prior=prior,
        max_candidates=max_candidates,
        knowledge=searched.knowledge,
        progress=progress,
    )
    options = {
        "score": found.score,
        "max_parents": searched.score.max_parents,
        "n_steps": n_steps,
        "burn_in": burn_in,
        "thin": thin,
        "n_chains": n_chains,
        "prior": prior.value,
        "max_candidates": max_candidates,
        "disagreement": found.disagreement,
        "effective_samples": found.effective_samples,
        "acceptance": {move.value: share for move, share in found.acceptance.items()},
        "n_expansions": found.n_expansions,
        "left_out": found.left_out,
    }
    graph = oriented_by_score(found.cpdag, searched.score, found.dag.directed)
    return searched.result(graph, algorithm="order_mcmc", options=options).with_confidence(
        _posterior(found)
    )


def _posterior(found: OrderPosterior) -> EdgeConfidence:
    """The posterior of arcs as the confidence of a result."""
    directed = np.clip(found.edges, 0.0, 1.0)
    adjacency = np.minimum(directed + directed.T, 1.0)
    method = (
        "posterior probabilities by Markov chain Monte Carlo over orders, "
        f"{found.prior.value} prior; {found.trace.size} orders kept"
    )
    return EdgeConfidence(found.names, adjacency, directed, np.zeros_like(directed), 0, method)
