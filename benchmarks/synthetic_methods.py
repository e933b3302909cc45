"""Private synthetic rows: AIM, MST and PrivBayes, from the papers.

**AIM** (McKenna, Mullins, Sheldon, Miklau 2022, PVLDB 15(11)).  All one-way tables; then rounds:
the exponential mechanism picks the table of the workload (all sets of up to ``degree`` columns)
whose model answer is worst for its noise, weighted by its overlap with the workload; it is
measured, and the model fitted.  Sigma is halved, and the epsilon of a choice doubled, when a
measurement changed no more than its noise would.  A tenth of rho is for choices.  There are 16
rounds a column at most.  A table is a candidate while the model with it has no more than the share
of ``max_cells`` that was spent of rho.

**MST** (McKenna, Miklau, Sheldon 2021, Winning the NIST contest): a third of rho each for the
one-way tables, for the edges of a spanning tree by the exponential mechanism (Kruskal), and for the
tables of these edges.  Values whose noisy count is below three sigma are merged, and are drawn
evenly afterwards.

**PrivBayes** (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017, TODS 42(4)), for general domains:
the score R, parents up to theta-usefulness, 0.3 of the budget for the network, ancestral sampling
from noisy tables.  As published: Laplace noise and pure epsilon.  Also with Gaussian noise in zCDP,
which is better in many columns, and is ours.

**Neighbours.**  ADD_REMOVE as AIM and MST were published: one row more or less changes one cell of
a table by 1.  REPLACE_ONE as in jaxcd and PrivBayes: two cells change by 1 each, and the number of
rows is public.  So of a table the L2 sensitivity is 1 or sqrt 2, and the L1 sensitivity 1 or 2.
The scores of AIM and MST are L1 distances to a fixed table: 1 or 2 (times the weight).  PrivBayes's
score is n R = sum |c(x, p) - c(x) c(p) / n| / 2:

- REPLACE_ONE: the table changes by 2 in L1; c(x) and c(p) change by vectors of L1 norm 2, so that
  their product over n changes by at most 4 + 4 / n.  Half of the sum is 3 + 2 / n, as published.
- ADD_REMOVE, n to n + 1: the table changes by 1.  The product over n changes by [n c(x) 1(p) +
  n 1(x) c(p) + n 1(x) 1(p) - c(x) c(p)] / (n (n + 1)), of which the L1 norm is at most (3 n + 1) /
  (n + 1) < 3.  Half of the sum is below 2.

Under ADD_REMOVE the number of rows is secret.  AIM and MST have it from the tables.  PrivBayes, to
which it is public, gets a noisy one here for a twentieth of the budget.

**Accounts.**  A Gaussian of standard deviation sigma on a table of L2 sensitivity s costs s^2 / (2
sigma^2) of rho, a choice with epsilon e costs e^2 / 8.  With rho infinite, nothing is noisy.

Noise is simulated by numpy: these are for benchmarks, and protect nobody.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from benchmarks import experiment as ex
from benchmarks.synthetic_estimate import (
    Clique,
    JunctionTree,
    Measured,
    Model,
    by_mbi,
    conditional_draws,
    counts,
    drawn,
    estimate,
    model_cells,
    rows_of,
)
from jaxcd.privacy import epsilon_to_rho

CHOICES_SHARE = 0.1  # AIM: of rho, for choices
ROUNDS_A_COLUMN = 16  # AIM
NETWORK_SHARE, USEFULNESS = 0.3, 4.0  # PrivBayes: beta and theta
SIZE_SHARE = 0.05  # PrivBayes, ADD_REMOVE: of the budget, for the number of rows
MERGED_BELOW = 3.0  # MST: sigmas
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)  # of a standard normal variable


class Neighbours(enum.Enum):
    """Which data sets are neighbours."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @property
    def l1(self) -> float:
        """The L1 sensitivity of one table, and of its L1 distance to a fixed one."""
        return 2.0 if self is Neighbours.REPLACE_ONE else 1.0

    @property
    def l2(self) -> float:
        """The L2 sensitivity of one table."""
        return math.sqrt(self.l1)

    def dependence(self, n: int) -> float:
        """The sensitivity of :func:`dependence` on n rows."""
        return 3.0 + 2.0 / n if self is Neighbours.REPLACE_ONE else 2.0


class Overspent(AssertionError):
    """A method that took more than its budget: a mistake in it."""


@dataclass
class Purse:
    """A budget, of rho or of epsilon, and what was paid from it."""

    total: float
    payments: list[tuple[str, float]] = field(default_factory=list)

    @property
    def spent(self) -> float:
        """The sum of what was paid."""
        return math.fsum(price for _, price in self.payments)

    def pay(self, name: str, price: float) -> None:
        """Pays; raises Overspent where it is too much, but for rounding."""
        self.payments.append((name, price))
        if not self.spent <= self.total * (1 + 1e-9):
            raise Overspent(f"{name}: {self.spent} of {self.total}")


@dataclass
class Limit:
    """The time that a run may take, in seconds."""

    seconds: float = math.inf

    def __post_init__(self) -> None:
        self._end = time.perf_counter() + self.seconds

    def check(self, where: str = "") -> None:
        """Raises LeftOut after that."""
        if time.perf_counter() > self._end:
            words = f", {where}" if where else ""
            raise ex.LeftOut(f"a run passed the limit of {self.seconds:g} s{words}")


@dataclass(frozen=True)
class Synthetic:
    """Synthetic rows, the purse they were paid from, and the tables that were measured."""

    rows: np.ndarray
    purse: Purse
    cliques: tuple[Clique, ...]


class Mechanisms:
    """Noise and choices at a price.  rng: of simulated noise."""

    def __init__(
        self, codes: np.ndarray, cards: Sequence[int], neighbours: Neighbours, rng, rho: float
    ) -> None:
        self.codes, self.cards = np.asarray(codes), tuple(cards)
        self.neighbours, self.rng, self.purse = neighbours, rng, Purse(rho)

    def gaussian(self, clique: Clique, sigma: float) -> np.ndarray:
        """A table with Gaussian noise; exact where sigma is 0."""
        table = counts(self.codes, self.cards, clique)
        if sigma == 0:
            self.purse.pay(f"table {clique}", math.inf)
            return table
        self.purse.pay(f"table {clique}", (self.neighbours.l2 / sigma) ** 2 / 2)
        return table + self.rng.normal(scale=sigma, size=table.shape)

    def choose(self, scores: np.ndarray, sensitivity: float, epsilon: float) -> int:
        """The exponential mechanism in zCDP."""
        self.purse.pay("choice", epsilon**2 / 8)
        return exponential(scores, sensitivity, epsilon, self.rng)


def exponential(scores: np.ndarray, sensitivity: float, epsilon: float, rng) -> int:
    """Index i with probability in proportion to exp(epsilon scores[i] / (2 sensitivity)), by the
    largest of Gumbel sums; without noise where epsilon is infinite.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if math.isinf(epsilon):
        return int(np.argmax(scores))
    noise = rng.gumbel(size=len(scores))
    return int(np.argmax(epsilon / (2 * sensitivity) * (scores - scores.max()) + noise))


def gaussian_sigma(rho: float, n_tables: int, neighbours: Neighbours) -> float:
    """The sigma at which so many tables cost rho."""
    return neighbours.l2 * math.sqrt(n_tables / (2 * rho))


def choice_epsilon(rho: float, n_choices: int) -> float:
    """The epsilon at which so many choices cost rho."""
    return math.sqrt(8 * rho / n_choices)


# ---- AIM


def overlaps(cliques: Sequence[Clique], workload: Sequence[Clique], d: int) -> np.ndarray:
    """How many columns each clique shares with those of the workload, summed."""
    matrix = np.zeros((len(workload), d))
    for line, clique in enumerate(workload):
        matrix[line, list(clique)] = 1
    per_column = matrix.sum(axis=0)
    return np.array([per_column[list(clique)].sum() for clique in cliques])


def allowed(
    cards: Sequence[int],
    tree: JunctionTree,
    measured: Sequence[Clique],
    candidates: Sequence[Clique],
    most: float,
) -> np.ndarray:
    """Which candidates leave the model within ``most`` cells.

    First by a bound: the model with every clique enlarged by the candidate.  Only what this does
    not settle is triangulated.
    """
    d = len(cards)
    inside = np.zeros((len(tree.cliques), d))
    for line, clique in enumerate(tree.cliques):
        inside[line, list(clique)] = 1
    logs = np.log(np.asarray(cards, dtype=np.float64))
    lacking = np.zeros((len(candidates), d))
    for line, clique in enumerate(candidates):
        lacking[line, list(clique)] = logs[list(clique)]
    more = lacking.sum(axis=1)[:, None] - lacking @ inside.T
    sizes = np.asarray(tree.sizes, dtype=np.float64)
    bounds = (np.exp(more) * sizes).sum(axis=1)
    known = (more < 1e-9).any(axis=1)  # already inside a clique
    found = bounds <= most
    for line in np.flatnonzero(~found):
        size = sizes.sum() if known[line] else model_cells(cards, [*measured, candidates[line]])
        found[line] = size <= most
    return found


def aim(
    codes: np.ndarray,
    cards: Sequence[int],
    rho: float,
    neighbours: Neighbours,
    rng: np.random.Generator,
    *,
    degree: int = 3,
    max_cells: int = 2**17,
    steps: int = 100,
    final_steps: int = 1000,
    mbi: bool = True,
    limit: Limit | None = None,
) -> Synthetic:
    """Synthetic rows by AIM.  rho is finite.  degree: of the workload.  max_cells: of the model
    (the paper's 80 MB are 10 million).  steps: of the fit in a round, from the fit before;
    final_steps: of the last one, by mbi or else in numpy.
    """
    limit = limit or Limit()
    means = Mechanisms(codes, cards, neighbours, rng, rho)
    d, n = len(cards), len(codes)
    workload = list(combinations(range(d), min(degree, d)))
    candidates = [c for size in range(1, min(degree, d) + 1) for c in combinations(range(d), size)]
    weights = overlaps(candidates, workload, d)
    sizes = np.array([math.prod(cards[c] for c in clique) for clique in candidates])
    truth = np.concatenate([counts(codes, cards, clique).ravel() for clique in candidates])
    ends = np.cumsum(sizes)[:-1]
    starts = np.concatenate([[0], ends])

    n_rounds = ROUNDS_A_COLUMN * d
    sigma = gaussian_sigma((1 - CHOICES_SHARE) * rho, n_rounds, neighbours)
    epsilon = choice_epsilon(CHOICES_SHARE * rho, n_rounds)
    measured = Measured()
    for column in range(d):
        measured.add((column,), means.gaussian((column,), sigma), sigma)

    def total() -> float:
        return float(n) if neighbours is Neighbours.REPLACE_ONE else measured.total()

    def fit(start) -> tuple:
        model = estimate(cards, measured, total(), start=start, steps=steps, check=limit.check)
        tables = model.tree.marginals(model.beliefs, min(degree, d))
        return model, model.total * np.concatenate([tables[c].ravel() for c in candidates])

    model, answers = fit(None)
    last = False
    for number in range(1, 10 * n_rounds):
        limit.check(f"in round {number}, {means.purse.spent / rho:.0%} of the budget spent")
        left = rho - means.purse.spent
        price = (neighbours.l2 / sigma) ** 2 / 2 + epsilon**2 / 8
        if left <= 2 * price or last:
            # Nothing but one more round would fit: it takes all that is left.
            last = True
            sigma = gaussian_sigma((1 - CHOICES_SHARE) * left, 1, neighbours)
            epsilon = choice_epsilon(CHOICES_SHARE * left, 1)
        will = 1.0 if last else (means.purse.spent + price) / rho
        may = allowed(cards, model.tree, list(measured.tables), candidates, will * max_cells)
        if not may.any():
            may[: len(cards)] = True  # the one-way tables, which are in every model
        distances = np.add.reduceat(np.abs(truth - answers), starts)
        scores = weights * (distances - _MEAN_ABSOLUTE * sigma * sizes)
        places = np.flatnonzero(may)
        chosen = means.choose(scores[places], neighbours.l1 * float(weights[places].max()), epsilon)
        at = int(places[chosen])
        clique = candidates[at]
        measured.add(clique, means.gaussian(clique, sigma), sigma)
        before = answers[starts[at] : starts[at] + sizes[at]]
        model, answers = fit(model.potentials)
        after = answers[starts[at] : starts[at] + sizes[at]]
        if last:
            break
        if np.abs(after - before).sum() <= _MEAN_ABSOLUTE * sigma * sizes[at]:
            sigma, epsilon = sigma / 2, epsilon * 2
    n_rows = n if neighbours is Neighbours.REPLACE_ONE else round(model.total)
    rows = last_fit(cards, measured, model, n_rows, rng, mbi=mbi, steps=final_steps, limit=limit)
    return Synthetic(rows, means.purse, tuple(measured.tables))


# ---- MST


def spanning_tree(
    scores: dict[tuple[int, int], float], d: int, choose: Callable[[np.ndarray], int]
) -> list[tuple[int, int]]:
    """Kruskal's tree, in which every next edge is chosen among those that join two parts."""
    part = list(range(d))
    found = []
    for _ in range(d - 1):
        pairs = [pair for pair in scores if part[pair[0]] != part[pair[1]]]
        a, b = pairs[choose(np.array([scores[pair] for pair in pairs]))]
        found.append((a, b))
        part = [part[a] if each == part[b] else each for each in part]
    return found


def merged(table: np.ndarray, sigma: float) -> np.ndarray:
    """The number of each value after those with counts below three sigma are merged into one, the
    last.  A single one of them stays as it is.
    """
    rare = table < MERGED_BELOW * sigma
    if rare.sum() < 2:
        return np.arange(len(table))
    if rare.all():
        return np.zeros(len(table), dtype=int)
    found = np.empty(len(table), dtype=int)
    found[~rare] = np.arange((~rare).sum())
    found[rare] = (~rare).sum()
    return found


def mst(
    codes: np.ndarray,
    cards: Sequence[int],
    rho: float,
    neighbours: Neighbours,
    rng: np.random.Generator,
    *,
    merge: bool = True,
    final_steps: int = 1000,
    mbi: bool = True,
    limit: Limit | None = None,
) -> Synthetic:
    """Synthetic rows by MST.  merge: whether rare values are merged, as published.  mbi: as for
    :func:`aim`.
    """
    limit = limit or Limit()
    d, n = len(cards), len(codes)
    means = Mechanisms(codes, cards, neighbours, rng, rho)
    sigma = gaussian_sigma(rho / 3, d, neighbours)
    single = [means.gaussian((column,), sigma) for column in range(d)]
    maps = [merged(table, sigma) if merge else np.arange(len(table)) for table in single]
    small = [int(each.max()) + 1 for each in maps]
    # From here on everything is about merged values.
    means.codes = np.stack([each[codes[:, c]] for c, each in enumerate(maps)], axis=1)
    means.cards = tuple(small)
    measured = Measured()
    for column, (table, each) in enumerate(zip(single, maps, strict=True)):
        # The noise of a merged value is that of several, which the fit does not weigh.
        measured.add((column,), np.bincount(each, weights=table), sigma)
    total = float(n) if neighbours is Neighbours.REPLACE_ONE else measured.total()
    if d > 1:
        # The model of one-way tables is a product.
        start = estimate(small, measured, total, steps=1000, tolerance=1e-9)
        sides = [start.table((column,)) / total for column in range(d)]
        scores = {
            (a, b): float(
                np.abs(
                    counts(means.codes, small, (a, b)) - total * np.outer(sides[a], sides[b])
                ).sum()
            )
            for a, b in combinations(range(d), 2)
        }
        epsilon = choice_epsilon(rho / 3, d - 1)
        edges = spanning_tree(
            scores, d, lambda values: means.choose(values, neighbours.l1, epsilon)
        )
        sigma = gaussian_sigma(rho / 3, d - 1, neighbours)
        for a, b in edges:
            pair = min(a, b), max(a, b)
            measured.add(pair, means.gaussian(pair, sigma), sigma)
        if neighbours is Neighbours.ADD_REMOVE:
            total = measured.total()
    model = estimate(small, measured, total, steps=final_steps, check=limit.check)
    n_rows = n if neighbours is Neighbours.REPLACE_ONE else round(total)
    found = last_fit(small, measured, model, n_rows, rng, mbi=mbi, steps=final_steps, limit=limit)
    rows = np.empty_like(found)
    for column, each in enumerate(maps):
        for value in range(small[column]):
            here = np.flatnonzero(found[:, column] == value)
            rows[here, column] = rng.choice(np.flatnonzero(each == value), size=len(here))
    return Synthetic(rows, means.purse, tuple(measured.tables))


# ---- PrivBayes


def dependence(table: np.ndarray) -> float:
    """n R: half the L1 distance of a table, whose first axis is a column, to that of
    independence.
    """
    n = table.sum()
    if n == 0:
        return 0.0
    flat = table.reshape(len(table), -1)
    product = np.outer(flat.sum(axis=1), flat.sum(axis=0)) / n
    return float(np.abs(flat - product).sum() / 2)


def parent_sets(
    columns: Sequence[int], cards: Sequence[int], cells: float, size: int
) -> list[Clique]:
    """The sets of up to ``size`` columns with at most ``cells`` cells that cannot take another
    column; the empty one where nothing fits.
    """
    found: list[Clique] = []
    for k in range(min(size, len(columns)) + 1):
        for clique in combinations(columns, k):
            here = math.prod(cards[c] for c in clique)
            full = k == size or all(c in clique or here * cards[c] > cells for c in columns)
            if here <= cells and full:
                found.append(clique)
    return found or [()]


def privbayes(
    codes: np.ndarray,
    cards: Sequence[int],
    budget: float,
    neighbours: Neighbours,
    rng: np.random.Generator,
    *,
    pure: bool = False,
    degree: int | None = None,
    most_parents: int = 4,
    usefulness: float = USEFULNESS,
    limit: Limit | None = None,
) -> Synthetic:
    """Synthetic rows by PrivBayes.  budget: rho, or epsilon where ``pure``.  degree: a fixed number
    of parents; None leaves it to ``usefulness``, with at most ``most_parents``, which keeps the
    candidates to thousands (the paper has no such bound).
    """
    limit = limit or Limit()
    codes = np.asarray(codes)
    d, n = len(cards), len(codes)
    purse = Purse(budget)
    left, about = budget, n
    if neighbours is Neighbours.ADD_REMOVE and not math.isinf(budget):
        paid = SIZE_SHARE * budget
        purse.pay("number of rows", paid)
        noise = rng.laplace(scale=1 / paid) if pure else rng.normal(scale=(2 * paid) ** -0.5)
        left, about = budget - paid, max(1, round(n + noise))
    for_network = NETWORK_SHARE * left if d > 1 else 0.0
    for_tables = left - for_network if not math.isinf(left) else left
    # Mean size of the noise in a cell: a table's sensitivity, times the number of tables.
    if math.isinf(for_tables):
        scale = size = 0.0
    elif pure:
        scale = size = neighbours.l1 * d / for_tables
    else:
        scale = gaussian_sigma(for_tables, d, neighbours)
        size = _MEAN_ABSOLUTE * scale
    if math.isinf(for_network):
        epsilon = price = math.inf
    else:
        price = for_network / max(d - 1, 1)
        epsilon = price if pure else choice_epsilon(for_network, max(d - 1, 1))
    # theta-useful: the mean count of a cell is theta times the mean size of its noise.
    most = math.inf if size == 0 else about / (usefulness * size)

    order = [int(rng.integers(d))]
    network: list[tuple[int, Clique]] = [(order[0], ())]
    known: dict[tuple[int, Clique], float] = {}
    while len(order) < d:
        limit.check(f"at column {len(order)} of the network")
        pairs = []
        for column in sorted(set(range(d)) - set(order)):
            if degree is not None:
                sets = list(combinations(sorted(order), min(degree, len(order))))
            else:
                sets = parent_sets(sorted(order), cards, most / cards[column], most_parents)
            pairs += [(column, parents) for parents in sets]
        for pair in pairs:
            if pair not in known:
                limit.check(f"at column {len(order)} of the network")
                known[pair] = dependence(counts(codes, cards, (pair[0], *pair[1])))
        scores = np.array([known[pair] for pair in pairs])
        purse.pay("choice", price)
        column, parents = pairs[exponential(scores, neighbours.dependence(n), epsilon, rng)]
        order.append(column)
        network.append((column, parents))

    rows = np.zeros((about, d), dtype=np.int32)
    for column, parents in network:
        table = counts(codes, cards, (*parents, column))
        purse.pay(f"table {(*parents, column)}", for_tables / d)
        if scale:
            draw = rng.laplace if pure else rng.normal
            table = np.maximum(table + draw(scale=scale, size=table.shape), 0.0)
        given = rows[:, list(parents)]
        rows[:, column] = conditional_draws(table, given, rng.random(about))
    return Synthetic(rows, purse, tuple((*parents, column) for column, parents in network))


def last_fit(
    cards: Sequence[int],
    measured: Measured,
    model: Model,
    n_rows: int,
    rng: np.random.Generator,
    *,
    mbi: bool,
    steps: int,
    limit: Limit,
) -> np.ndarray:
    """Rows of the last model, from the one before: by mbi, or in numpy."""
    limit.check("before the last fit")
    start = model.potentials
    if mbi:
        return rows_of(by_mbi(cards, measured, model.total, start=start, steps=steps), n_rows, rng)
    last = estimate(
        cards, measured, model.total, start=start, steps=steps, tolerance=1e-6, check=limit.check
    )
    return drawn(last, n_rows, rng)


# ---- by name


@dataclass(frozen=True)
class Peer:
    """A method by its label.  pure: whether it spends epsilon, else rho."""

    label: str
    run: Callable[..., Synthetic]
    pure: bool = False

    def synthetic(
        self,
        codes: np.ndarray,
        cards: Sequence[int],
        epsilon: float,
        delta: float,
        neighbours: Neighbours,
        rng: np.random.Generator,
        **options,
    ) -> Synthetic:
        """Synthetic rows at a total of (epsilon, delta)."""
        budget = epsilon if self.pure else epsilon_to_rho(epsilon, delta)
        return self.run(codes, cards, budget, neighbours, rng, **options)
