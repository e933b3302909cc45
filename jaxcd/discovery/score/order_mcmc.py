r"""Posterior probabilities of arcs by Markov chain Monte Carlo over orders of the variables.

An order < allows a node v the families P of nodes before it.  With local scores that are log
marginal likelihoods (BGe, BDeu) its weight is

    R(<) = prod_v sum_{P allowed} exp(local(v, P)),

a product of sums instead of a sum over exponentially many DAGs, and given the order the probability
of an arc u -> v is exact: the share of v's sum that its families with u have.  The chain walks over
orders: it swaps neighbours, swaps any two nodes, or takes one node out and draws its new place from
all d places by their weights (which is always accepted).

*Families.*  Each node has candidates H_v, and its families are S and S + {u}, S a subset of H_v, u
any other node: one parent may come from outside.  Sums over subsets are tabulated for all 2^|H_v|
sets of candidates before v.  After a first walk the outside parents of the best DAG that it saw,
and all that were probable, become candidates (both ways round), and the walk is taken again, until
none is left outside.  Two parents that gain only together, both outside, are not found: where their
number allows it, let all other nodes be candidates, or begin with a skeleton.

*Prior.*  Orders are uniform, so a DAG counts as often as it has linear extensions, L(G): an empty
graph of d nodes d! times, a complete one once.  That prior (:attr:`StructurePrior.ORDER_MODULAR`)
is not uniform over DAGs, nor equal for equivalent ones. :attr:`StructurePrior.UNIFORM` corrects it:
a DAG is drawn from each order that is kept and weighs 1 / L(G).

Source:
    Friedman and Koller 2003; Kuipers, Suter, Moffa 2022 (candidates, one parent beyond); Kuipers
    and Moffa 2017 (moves); Ellis and Wong 2008 (weights).
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxcd.checks import a_type, is_whole
from jaxcd.discovery.result import Step, StepProgress, teller
from jaxcd.discovery.score.limits import Limits
from jaxcd.discovery.score.order_families import (
    MOST_COUNTED,
    OrderFamilies,
    first_candidates,
    linear_extensions,
)
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.scores import LocalScore
from jaxcd.scores.base import tie

__all__ = ["Move", "OrderPosterior", "StructurePrior", "linear_extensions", "sample_orders"]

_MOST_CANDIDATES = 16  # 65,536 subsets a node
_TOLD = 20


class Move(enum.Enum):
    """A step of the chain."""

    SWAP_NEIGHBORS = "swap neighbors"
    SWAP_ANY = "swap any two"
    RELOCATE = "relocate a node"


#: Outside parents that are this probable become candidates, too.
_LIKELY = 0.2
#: Swaps of neighbours are cheap and relocations mix best.
_CHANCES = {Move.SWAP_NEIGHBORS: 0.4, Move.SWAP_ANY: 0.2, Move.RELOCATE: 0.4}


class StructurePrior(enum.Enum):
    """The prior over DAGs, all families being equally likely."""

    ORDER_MODULAR = "order-modular"
    """A DAG in proportion to the number of its linear extensions; exact given the orders."""

    UNIFORM = "uniform"
    """All DAGs alike, by importance weights; up to 16 variables."""


@dataclass(frozen=True, eq=False)
class OrderPosterior:
    """What the chains saw; given a score of a release, post-processing of it.

    Args:
        names: the d variables.
        edges: float64 (d, d), the posterior probability of i -> j.
        dag: the best DAG seen.
        score: its score in nats.
        cpdag: its equivalence class, with all orientations that the knowledge implies.
        acceptance: the share of the steps of each kind that changed the order.
        trace: log R of the kept orders, in nats, (n_chains, n_kept).
        chain_edges: ``edges`` of each chain, (n_chains, d, d).
        candidates: bool (d, d), whether i is a candidate parent of j in the end.
        n_expansions: how often candidates were added.
        left_out: arcs of the best DAG that found no room among the candidates.
        effective_samples: how many equally weighted draws the kept orders are worth under the
            prior's weights (not counting that they are correlated).
        prior: over DAGs.
    """

    names: tuple[str, ...]
    edges: np.ndarray
    dag: MixedGraph
    cpdag: MixedGraph
    score: float
    acceptance: Mapping[Move, float]
    trace: np.ndarray
    chain_edges: np.ndarray
    candidates: np.ndarray
    n_expansions: int
    left_out: tuple[tuple[str, str], ...]
    effective_samples: float
    prior: StructurePrior

    @property
    def disagreement(self) -> float:
        """The largest difference between two chains in the probability of an arc; large: they have
        not mixed, take more steps.
        """
        return float(np.ptp(self.chain_edges, axis=0).max(initial=0.0))


class _Chain:
    """One walk over orders; parents stand first."""

    def __init__(self, families: OrderFamilies, order: list[int], rng: np.random.Generator) -> None:
        self.families, self._rng, self._limits = families, rng, families.limits
        self.order: list[int] = self._limits.ordered(np.array(order)).tolist()
        self.nodes = [families.total(v, before) for v, before in self.allowed()]  # by place
        self.tried = dict.fromkeys(Move, 0)
        self.changed = dict.fromkeys(Move, 0)
        self._moves = rng.choice(len(Move), p=list(_CHANCES.values()), size=0)

    def allowed(self) -> list[tuple[int, int]]:
        """The nodes in order, each with the bits of those before it."""
        before, result = 0, []
        for v in self.order:
            result.append((v, before))
            before |= 1 << v
        return result

    def step(self) -> None:
        """One move, if there are two places."""
        d = len(self.order)
        if d < 2:
            return
        move = self._next_move()
        self.tried[move] += 1
        if move is Move.RELOCATE:
            self.changed[move] += self._relocate(int(self._rng.integers(d)))
            return
        i = int(self._rng.integers(d - 1))
        j = i + 1
        if move is Move.SWAP_ANY:
            i, j = int(self._rng.integers(d)), int(self._rng.integers(d - 1))
            i, j = min(i, j + (j >= i)), max(i, j + (j >= i))
        self.changed[move] += self._swap(i, j)

    def _next_move(self) -> Move:
        if not self._moves.size:
            self._moves = self._rng.choice(len(Move), p=list(_CHANCES.values()), size=1024)
        move, self._moves = list(Move)[int(self._moves[-1])], self._moves[:-1]
        return move

    def _swap(self, i: int, j: int) -> bool:
        order = self.order.copy()
        passed = sum(1 << v for v in order[i : j + 1])
        if passed & self._limits.later[order[i]] or passed & self._limits.earlier[order[j]]:
            return False
        order[i], order[j] = order[j], order[i]
        before = sum(1 << v for v in order[:i])
        fresh = []
        for v in order[i : j + 1]:
            fresh.append(self.families.total(v, before))
            before |= 1 << v
        gain = math.fsum(fresh) - math.fsum(self.nodes[i : j + 1])
        if gain < 0 and self._rng.random() >= math.exp(gain):
            return False
        self.order, self.nodes[i : j + 1] = order, fresh
        return True

    def _relocate(self, place: int) -> bool:
        x, rest = self.order[place], self.order[:place] + self.order[place + 1 :]
        before, own, ahead, behind = 0, [], [], []
        for v in rest:
            own.append(self.families.total(x, before))
            ahead.append(self.families.total(v, before))  # v if x comes later
            behind.append(self.families.total(v, before | 1 << x))  # v if x came earlier
            before |= 1 << v
        own.append(self.families.total(x, before))
        weights = np.array(own)
        weights[1:] += np.cumsum(ahead)
        weights[:-1] += np.cumsum(behind[::-1])[::-1]
        earlier, later = self._limits.earlier[x], self._limits.later[x]
        first = max((k + 1 for k, v in enumerate(rest) if earlier >> v & 1), default=0)
        last = min((k for k, v in enumerate(rest) if later >> v & 1), default=len(rest))
        weights = weights[first : last + 1]
        weights = np.exp(weights - weights.max()).cumsum()
        drawn = int(np.searchsorted(weights, self._rng.random() * weights[-1], side="right"))
        new = min(first + drawn, last)
        self.order = [*rest[:new], x, *rest[new:]]
        self.nodes = [*ahead[:new], own[new], *behind[new:]]
        return new != place

    @property
    def log_weight(self) -> float:
        """log R of the order."""
        return math.fsum(self.nodes)

    def best(self) -> tuple[float, np.ndarray]:
        """The best DAG of the order, and its score."""
        return _graph({v: self.families.best(v, before) for v, before in self.allowed()})

    def arcs(self) -> np.ndarray:
        """Probabilities of arcs given the order, (d, d)."""
        result = np.zeros((len(self.order),) * 2)
        for v, before in self.allowed():
            result[:, v] = self.families.arcs(v, before)
        return result

    def draw(self) -> np.ndarray:
        """A DAG of the order, bool (d, d)."""
        return _graph(
            {v: (0.0, self.families.draw(v, before, self._rng)) for v, before in self.allowed()}
        )[1]


def _graph(families: Mapping[int, tuple[float, tuple[int, ...]]]) -> tuple[float, np.ndarray]:
    adjacency = np.zeros((len(families),) * 2, dtype=bool)
    for v, (_, parents) in families.items():
        adjacency[list(parents), v] = True
    return math.fsum(value for value, _ in families.values()), adjacency


def _nodes(tell: Callable[[Step], None], words: str, total: int) -> Callable[[int], None]:
    return lambda done: tell(Step(words, (done, total)))


def _moves(tell: Callable[[Step], None], words: str, total: int) -> Callable[[int], None]:
    """Of so many moves about twenty are told."""
    every = max(total // _TOLD, 1)

    def moved(done: int) -> None:
        if done % every == 0:
            tell(Step(words, (done, total)))

    return moved


def _whole(argument: str, value: Any, least: int) -> int:
    if not is_whole(value, least):
        raise OptionError(f"{argument} = {value!r} is not a whole number from {least}; give one")
    return int(value)


def sample_orders(
    score: LocalScore,
    *,
    n_steps: int = 10_000,
    burn_in: int = 2_000,
    seed: int,
    thin: int = 10,
    n_chains: int = 2,
    prior: StructurePrior = StructurePrior.ORDER_MODULAR,
    candidates: np.ndarray | None = None,
    max_candidates: int = 12,
    knowledge: Knowledge | None = None,
    progress: StepProgress = False,
) -> OrderPosterior:
    """Samples orders of the variables, and from them the posterior probabilities of arcs and the
    best DAG.

    Args:
        score: log marginal likelihoods that add up over nodes, such as BGeScore or BDeuScore; its
            candidates and its ``max_parents`` bound the families.  With other scores (BIC) the
            probabilities are those of an approximation.
        n_steps: moves of each chain after its burn-in, at least 1.
        burn_in: moves that are not counted, and the length of each walk that looks for candidates,
            from 0.
        seed: of the public randomness of the search, a whole number from 0.
        thin: one order in so many is kept, at least 1.
        n_chains: independent chains from random orders, at least 1.
        prior: over DAGs.
        candidates: bool (d, d), [u, v] where u is a candidate parent of v to begin with, such as
            the adjacencies of a skeleton; None for all others where they are few, or a forward
            selection.  One parent of each family may always come from outside.
        max_candidates: the most candidates of a node, 1 to 16; tables have 2^max_candidates rows.
        knowledge: what is known before; orders and families that do not fit have no weight.
        progress: True prints a line now and then; a function is called with each
            :class:`jaxcd.discovery.Step`.

    Returns:
        Probabilities, the best DAG, and what shows whether the chains have mixed.

    Raises:
        OptionError: an argument is out of its range.

    Source:
        module docstring.
    """
    if not isinstance(score, LocalScore):
        raise OptionError(
            f"score: {a_type(score)} is no sum over nodes; use a LocalScore such as "
            "BGeScore or BDeuScore"
        )
    n_steps, burn_in, seed = (
        _whole("n_steps", n_steps, 1),
        _whole("burn_in", burn_in, 0),
        _whole("seed", seed, 0),
    )
    thin, n_chains, most = (
        _whole("thin", thin, 1),
        _whole("n_chains", n_chains, 1),
        _whole("max_candidates", max_candidates, 1),
    )
    if most > _MOST_CANDIDATES:
        raise OptionError(
            f"max_candidates = {most} is above {_MOST_CANDIDATES}, where tables of subsets become "
            "too large; give fewer"
        )
    if not isinstance(prior, StructurePrior):
        raise OptionError(
            f"prior = {prior!r} is not a prior; use StructurePrior.ORDER_MODULAR or UNIFORM"
        )
    limits, d = Limits.of(knowledge, score.names), len(score.names)
    score = limits.within(score)
    if prior is StructurePrior.UNIFORM and d > MOST_COUNTED:
        raise OptionError(
            f"prior: linear extensions are counted up to {MOST_COUNTED} variables, not {d}; use "
            "ORDER_MODULAR"
        )
    if thin > n_steps:
        raise OptionError(
            f"thin = {thin} keeps none of n_steps = {n_steps} orders; give a smaller one"
        )
    if candidates is not None and (
        np.shape(candidates) != (d, d) or np.asarray(candidates).sum(axis=0).max(initial=0) > most
    ):
        raise OptionError(
            f"candidates must be bool ({d}, {d}) with at most max_candidates = {most} in a "
            "column; name fewer, or none"
        )
    tell = teller(progress)
    start = (
        first_candidates(score, most, _nodes(tell, "first candidates: column", d))
        if candidates is None
        else np.array(candidates, dtype=bool)
    )
    pilot, *others = [np.random.default_rng([seed, chain]) for chain in range(n_chains + 1)]
    families, top, n_expansions, left_out = _expanded(
        score, start, most, burn_in, pilot, limits, tell
    )

    counted: dict[bytes, int] = {}
    sums, weights, squares = np.zeros((n_chains, d, d)), np.zeros(n_chains), 0.0
    trace = np.empty((n_chains, n_steps // thin))
    chains = [_Chain(families, rng.permutation(d).tolist(), rng) for rng in others]
    for place, chain in enumerate(chains):
        n_moves = burn_in + trace.shape[1] * thin
        moved = _moves(tell, f"chain {place + 1} of {n_chains}: move", n_moves)
        for done in range(burn_in):
            moved(done)
            chain.step()
        for kept in range(trace.shape[1]):
            for done in range(thin):
                moved(burn_in + kept * thin + done)
                chain.step()
            trace[place, kept] = chain.log_weight
            top = _better(top, chain.best())
            weight, arcs = 1.0, None
            if prior is StructurePrior.UNIFORM:
                arcs = chain.draw()
                if (name := arcs.tobytes()) not in counted:
                    counted[name] = linear_extensions(arcs | limits.before)
                weight = 1 / counted[name]
            sums[place] += weight * (chain.arcs() if arcs is None else arcs)
            weights[place] += weight
            squares += weight**2
    dag = MixedGraph.from_arcs(score.names, top[1])
    final = np.zeros((d, d), dtype=bool)
    for v in range(d):
        final[families.inside[v], v] = True
    tried = {move: sum(chain.tried[move] for chain in chains) for move in Move}
    return OrderPosterior(
        names=score.names,
        edges=sums.sum(axis=0) / weights.sum(),
        dag=dag,
        cpdag=limits.pattern(top[1]),
        score=top[0],
        acceptance={
            move: sum(chain.changed[move] for chain in chains) / max(tried[move], 1)
            for move in Move
        },
        trace=trace,
        chain_edges=sums / weights[:, None, None],
        candidates=final,
        n_expansions=n_expansions,
        left_out=tuple((score.names[u], score.names[v]) for u, v in left_out),
        effective_samples=float(weights.sum() ** 2 / squares),
        prior=prior,
    )


def _better(
    first: tuple[float, np.ndarray], second: tuple[float, np.ndarray]
) -> tuple[float, np.ndarray]:
    """The pair of the higher score; the first unless the second is higher by more than rounding."""
    return second if second[0] > first[0] + tie(first[0]) else first


def _expanded(
    score: LocalScore,
    candidates: np.ndarray,
    most: int,
    n_steps: int,
    rng: np.random.Generator,
    limits: Limits,
    tell: Callable[[Step], None],
) -> tuple[OrderFamilies, tuple[float, np.ndarray], int, list[tuple[int, int]]]:
    """Candidates with the parents of the best DAG among them; the tables, that DAG, rounds, and
    arcs that had no room.
    """
    candidates = candidates.copy()
    order = rng.permutation(len(candidates)).tolist()
    top: tuple[float, np.ndarray] = (-math.inf, np.zeros_like(candidates))
    for round_ in itertools.count():
        words = f"round {round_ + 1}"
        scored = _nodes(tell, f"families, {words}: column", len(candidates))
        families = OrderFamilies(score, candidates, limits, scored)
        chain = _Chain(families, order, rng)
        top = _better(top, chain.best())
        seen = np.zeros(candidates.shape)
        moved = _moves(tell, f"walk for candidates, {words}: move", n_steps)
        for done in range(n_steps):
            moved(done)
            chain.step()
            top = _better(top, chain.best())
            seen += chain.arcs()
        order = chain.order
        wanted = top[1] | (seen > _LIKELY * max(n_steps, 1))
        # Those of the best DAG first, then the likeliest.
        missing = sorted(
            ((int(u), int(v)) for u, v in np.argwhere(wanted & ~(candidates | limits.required))),
            key=lambda arc: (not top[1][arc], -seen[arc]),
        )
        room = [(u, v) for u, v in missing if candidates[:, v].sum() < most]
        if not room:
            return families, top, round_, [arc for arc in missing if top[1][arc]]
        # Equivalent DAGs have the arc the other way round.
        for u, v in (*room, *((v, u) for u, v in room if v in score.candidates(u))):
            if candidates[:, v].sum() < most:
                candidates[u, v] = True
    raise AssertionError("unreachable")
