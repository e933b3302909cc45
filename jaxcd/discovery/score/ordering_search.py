r"""Search over orderings: every node takes its best parents among those before it (Teyssier and
Koller 2005).

A move takes one node out of the ordering and puts it in another place.  Passing a node y changes
only whether x may be a parent of y and y one of x, so the gains of all d (d - 1) moves are
cumulative sums along the ordering of tabulated numbers.  Many restarts climb at once, as arrays,
independently of one another; in later rounds each starts from a kicked copy of its own best
ordering. The kicks are large (a fifth to a half of the nodes): the local optima of a noisy score
are wide.  An ordering of a graph that another search has found may be given to begin with.

With many nodes, of which each can be the parent of few others, the gains of all moves would be
mostly zeros.  Above 100 nodes a climb goes through the nodes instead and puts each in its best
place, which depends on the places of its possible parents and children alone, until no node moves
(Andrews et al. 2023): some ten numbers a node where there were d.  Kicks are small there, because
a random ordering of many nodes lies far below what a climb from a good one reaches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from jaxcd.checks import is_whole
from jaxcd.discovery.score.limits import Limits
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.scores.base import LocalScore, first_best, tie

__all__ = ["OrderingResult", "ordering_search"]

_MOST_CANDIDATES = 16  # 65,536 subsets a node
_KICKS = (0.2, 0.5)  # insertions of a kick, as shares of the nodes
MOST_TOGETHER = 100
"""Nodes whose moves are all looked at together."""
_WIDE_KICKS = (3, 10)  # insertions of a kick with more nodes
_WIDE_CLIMBS = 30_000  # climbs times nodes where there are more: minutes


@dataclass(frozen=True, eq=False)
class OrderingResult:
    """What the search found.

    Args:
        adjacency: bool (d, d), [i, j] for i -> j.
        score: in nats.
        order: positions, parents first.
        n_reached: how many restarts, which are independent, ended at this score; few of many say
            that the search may have missed.
    """

    adjacency: np.ndarray
    score: float
    order: tuple[int, ...]
    n_reached: int


@dataclass(frozen=True, eq=False)
class _BestFamilies:
    """For each node and subset of its candidates the best family inside it.

    Args:
        scores: (d, 2^m): the score, and the family as bits over the candidates.  bits[x, v]: the
            bit of x among the candidates of v, 0 where it is none.
        chosen: as ``scores``.
        tie: what totals may differ by and count as equal.
        limits: what is known; its required parents are in every family, and no candidates.
    """

    candidates: tuple[tuple[int, ...], ...]
    scores: np.ndarray
    chosen: np.ndarray
    bits: np.ndarray
    tie: float
    limits: Limits

    @staticmethod
    def of(score: LocalScore, limits: Limits | None = None) -> _BestFamilies:
        limits = Limits.of(None, score.names) if limits is None else limits
        d = len(score.names)
        candidates = tuple(score.candidates(v) for v in range(d))
        most = max(map(len, candidates), default=0)
        if most > _MOST_CANDIDATES:
            raise OptionError(
                f"score: a node has {most} candidate parents, and the search tabulates subsets of "
                f"at most {_MOST_CANDIDATES}; "
                "restrict the candidates"
            )
        scores = np.full((d, 1 << most), -np.inf)
        chosen = np.zeros((d, 1 << most), dtype=np.int64)
        bits = np.zeros((d, d), dtype=np.int64)
        subsets = np.arange(1 << most)
        least = tie(sum(float(score.table(v).scores.max()) for v in range(d)))
        for v in range(d):
            place = {x: 1 << i for i, x in enumerate(candidates[v])}
            for x, bit in place.items():
                bits[x, v] = bit
            table = score.table(v)
            for family, value in zip(table.families, table.scores, strict=True):
                mask = sum(place.get(x, 0) for x in family)
                scores[v, mask], chosen[v, mask] = value, mask
            for bit in place.values():
                above = subsets[(subsets & bit) > 0]
                better = scores[v, above ^ bit] >= scores[v, above] - least
                scores[v, above] = np.where(better, scores[v, above ^ bit], scores[v, above])
                chosen[v, above] = np.where(better, chosen[v, above ^ bit], chosen[v, above])
        return _BestFamilies(candidates, scores, chosen, bits, least, limits)

    def masks(self, orders: np.ndarray) -> np.ndarray:
        """For orders (R, d) the candidates before each node, as bits, in the places of the
        order.
        """
        bits = self.bits[orders[:, :, None], orders[:, None, :]]
        return np.where(_before(orders.shape[1]), bits, 0).sum(axis=1)

    def totals(self, orders: np.ndarray) -> np.ndarray:
        """The scores of orders (R, d), float64 (R,)."""
        return self.scores[orders, self.masks(orders)].sum(axis=1)

    def gains(self, orders: np.ndarray) -> np.ndarray:
        """Gains (R, d, d): by taking the node in place i and putting it in place j."""
        d = orders.shape[1]
        ahead, behind = _before(d), _before(d).T
        # [r, i, j]: the bit of i among the candidates of j
        bits = self.bits[orders[:, :, None], orders[:, None, :]]
        masks = np.where(ahead, bits, 0).sum(axis=1)
        now = self.scores[orders, masks]
        # What j gains if i passes it: i is added where it stood behind, and removed where it stood
        # ahead.
        passed = self.scores[orders[:, None, :], masks[:, None, :] ^ bits] - now[:, None, :]
        right = np.where(ahead, passed, 0.0).cumsum(axis=2)
        left = np.where(behind, passed, 0.0)[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
        # What i gains by the nodes that it passes.
        own = np.swapaxes(bits, 1, 2)
        added = np.where(ahead, own, 0).cumsum(axis=2)
        removed = np.where(behind, own, 0)[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
        moved = (
            self.scores[orders[:, :, None], masks[:, :, None] + added - removed] - now[:, :, None]
        )
        gains = moved + np.where(ahead, right, left)
        if not self.limits.none:
            first, last = self.limits.reach(orders)
            places = np.arange(d)
            gains[(places < first[:, :, None]) | (places > last[:, :, None])] = -np.inf
        return gains

    def graph(self, order: np.ndarray) -> np.ndarray:
        """The best DAG of an order, bool (d, d)."""
        adjacency = self.limits.required.copy()
        for v, mask in zip(order, self.masks(order[None])[0], strict=True):
            family = self.chosen[v, mask]
            for i, x in enumerate(self.candidates[v]):
                adjacency[x, v] |= bool(family >> i & 1)
        return adjacency


def _before(d: int) -> np.ndarray:
    """Bool (d, d): place i stands before place j."""
    return np.triu(np.ones((d, d), dtype=bool), 1)


def _insert(order: np.ndarray, source: int, target: int) -> None:
    """Moves the node in place ``source`` to place ``target``, in place."""
    node = order[source]
    if source < target:
        order[source:target] = order[source + 1 : target + 1].copy()
    else:
        order[target + 1 : source + 1] = order[target:source].copy()
    order[target] = node


def _climb(families: _BestFamilies, orders: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Best insertions until none gains, of every order at once; the orders and their scores."""
    d = orders.shape[1]
    active = np.arange(len(orders))
    while active.size:
        gains = families.gains(orders[active]).reshape(active.size, -1)
        highest = gains.max(axis=1)
        best = (gains >= highest[:, None] - families.tie).argmax(axis=1)
        moving = highest > 2 * families.tie
        for run, move in zip(active[moving], best[moving], strict=True):
            _insert(orders[run], *divmod(int(move), d))
        active = active[moving]
    return orders, families.totals(orders)


def _sweep(families: _BestFamilies, orders: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes one after the other into their best places until none gains, of each order; the
    orders and their scores.
    """
    bits = families.bits
    near = [np.flatnonzero(bits[v] | bits[:, v]) for v in range(len(bits))]
    for order in orders:
        place = np.argsort(order)
        masks = np.array(
            [int(bits[near[v][place[near[v]] < place[v]], v].sum()) for v in range(len(bits))]
        )
        moved = True
        while moved:
            moved = False
            for v in order.tolist():
                source, target = int(place[v]), _best_place(families, near[v], place, masks, v)
                if target == source:
                    continue
                low, high = min(source, target), max(source, target)
                passed = near[v][(place[near[v]] >= low) & (place[near[v]] <= high)]
                masks[passed] ^= bits[v, passed]
                masks[v] ^= int(bits[passed, v].sum())
                _insert(order, source, target)
                place[order[low : high + 1]] = np.arange(low, high + 1)
                moved = True
    return orders, np.array([families.totals(order[None])[0] for order in orders])


def _best_place(
    families: _BestFamilies, near: np.ndarray, place: np.ndarray, masks: np.ndarray, v: int
) -> int:
    """Where v gains most by more than rounding, or where it stands.  near: its possible parents and
    children.  masks: of each node its candidates before it, as bits."""
    bits, scores, own = families.bits, families.scores, int(place[v])
    around = near[np.argsort(place[near])]
    if not families.limits.none:
        low = int((place[families.limits.before[:, v]] + 1).max(initial=0))
        high = int((place[families.limits.before[v]] - 1).min(initial=len(place) - 1))
        around = around[(place[around] >= low) & (place[around] <= high)]
    first = int(np.searchsorted(place[around], own))
    now, best, found = float(scores[v, masks[v]]), families.tie, own
    for others in (around[first:], around[:first][::-1]):
        # What is passed on the way gains or loses v as a possible parent, and v it.
        passed, held = 0.0, int(masks[v])
        for u in others.tolist():
            if bits[v, u]:
                passed += float(scores[u, masks[u] ^ bits[v, u]] - scores[u, masks[u]])
            held ^= int(bits[u, v])
            gain = passed + float(scores[v, held]) - now
            if gain > best + families.tie:
                best, found = gain, int(place[u])
    return found


def _order_of(adjacency: np.ndarray) -> np.ndarray:
    """An ordering in which parents come first; raises OptionError for a graph with a circle."""
    try:
        return np.array(list(nx.topological_sort(nx.DiGraph(np.asarray(adjacency, dtype=int)))))
    except nx.NetworkXUnfeasible:
        raise OptionError("starts: a graph has a circle; give DAGs") from None


def ordering_search(
    score: LocalScore,
    *,
    starts: Sequence[np.ndarray] = (),
    restarts: int = 40,
    rounds: int = 25,
    seed: int = 0,
    knowledge: Knowledge | None = None,
) -> OrderingResult:
    """The best DAG found by climbing over orderings from many starts; post-processing of the
    score.

    Above 100 variables climbs times variables stay below 30,000, whatever restarts and rounds are.

    Args:
        score: a sum of local scores, with at most 16 candidate parents a node.
        starts: DAGs whose orderings climb, too: bool (d, d), [i, j] for i -> j.
        restarts: random orderings that climb at once, from 0; at least 1 without ``starts``.
        rounds: climbs of each: the first from where it starts, the others from its best so far
            after random insertions.
        seed: of the public randomness of the search, a whole number from 0.
        knowledge: what is known before; families and orderings that do not fit it are left out.

    Returns:
        The DAG found, with its score.

    Raises:
        OptionError: an argument is out of its range.

    Source:
        Teyssier and Koller 2005; best insertions as in Scanagatta et al. 2015; node by node as in
        Andrews et al. 2023.
    """
    for argument, value, least in (
        ("restarts", restarts, 0 if len(starts) else 1),
        ("rounds", rounds, 1),
        ("seed", seed, 0),
    ):
        if not is_whole(value, least):
            raise OptionError(
                f"{argument} = {value!r} is not a whole number from {least}; give one"
            )
    limits = Limits.of(knowledge, score.names)
    families = _BestFamilies.of(limits.within(score), limits)
    d = len(score.names)
    rng = np.random.default_rng(seed)
    given = [limits.ordered(_order_of(adjacency)) for adjacency in starts]
    if d > MOST_TOGETHER:
        climb, (least, most) = _sweep, _WIDE_KICKS
        effort = max(_WIDE_CLIMBS // d, 2)
        if restarts:
            rounds = max(min(rounds, math.isqrt(effort)), 1)
            restarts = max(min(restarts, effort // rounds - len(given)), 1)
        else:
            rounds = max(effort // len(given), 1)
    else:
        climb = _climb
        least, most = (max(2, math.ceil(share * d)) for share in _KICKS)
    drawn = [limits.ordered(rng.permutation(d)) for _ in range(restarts)]
    orders, totals = climb(families, np.array([*drawn, *given]))
    for _ in range(rounds - 1):
        tried = orders.copy()
        for order in tried:
            for _ in range(int(rng.integers(least, most + 1))):
                _insert(order, int(rng.integers(d)), int(rng.integers(d)))
            order[:] = limits.ordered(order)
        tried, new = climb(families, tried)
        better = new > totals + families.tie
        orders[better], totals[better] = tried[better], new[better]
    best = first_best(totals)
    reached = int(np.sum(totals >= totals[best] - families.tie))
    return OrderingResult(
        families.graph(orders[best]), float(totals[best]), tuple(orders[best].tolist()), reached
    )
