r"""Regressions on a conditioning set, chosen by leave-one-out error: half of a kernel test.

What is left of a column after its regression on Z must not show Z again, or two columns with a
common cause seem to depend on each other; and what a regression leaves grows visible with n.  No
one kernel serves every law, so several are compared, for each target and conditioning set:

* *maps of Z*: standardised columns (no transformation: right where the law is smooth in Z itself),
  ranks, and normal scores (right where a column has heavy tails).  Normal scores of a uniform
  column stretch its ends so far that a smooth function becomes a steep one: with them alone RCIT
  rejected a true null in .56 of data sets at level .05 (n = 4,000, half the error of Zhang et al.).
* *kernels*: one Gaussian kernel of all columns at two bandwidths (narrower ones, too, with many
  rows, and of one column with fewer); the sum of one kernel a column (additive models, whatever
  their number of columns); one kernel of a weighted sum of the columns (single-index models, where
  five columns are too many for a kernel of all; :mod:`jaxcd.citests.single_index`).
* *free terms*: a constant and the mapped columns, fitted without a penalty; labels are indicators.
* *a constant* alone, where the target does not depend on Z.

*Targets* of which a few rows hold nearly the whole sum of squares are softened first
(:func:`jaxcd.citests.column_maps.softened`).

The candidates are compared on the first rows (which stand in random order; a quarter of all, but
1,024 to 8,192) with few pivots, the winner is fitted to all rows with its penalty of least
leave-one-out error on the first ones (2,048 at least): time is linear in n, one factorisation of
all rows a chosen candidate, and all targets of one set that choose alike share it.  No target looks
at another, so a batch gives what one by one gives.

*Jumps* of the function at thresholds of Z, and *waves* along a column of it, are looked for in what
is left, and join the free terms (:mod:`jaxcd.citests.jumps`, :mod:`jaxcd.citests.waves`).

*Spread.*  log |residual| is regressed on Z in the same way, and the residual divided by the
exponential of the fit: for x = f(Z) + g(Z) e the result is free of Z.  Where a constant predicts
log |residual| as well, nothing is divided.

Source:
    An, Liu, Venkatesh 2007 for the leave-one-out error in closed form; Rice and Silverman 1991 for
    its use across smoothers; Duvenaud, Nickisch, Rasmussen 2011 for sums of kernels.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxcd.citests import jumps
from jaxcd.citests.column_maps import mapped
from jaxcd.citests.single_index import Direction, direction
from jaxcd.ops import double_precision, gram, ridge
from jaxcd.ops.standardising import standardised
from jaxcd.ops.threads import MOST_THREADS

__all__ = [
    "COLUMN_RANK",
    "INDEX_RANK",
    "LEAST_SHARE",
    "MOST_CHOICE_ROWS",
    "NOTHING",
    "PENALTIES",
    "Candidate",
    "Regressions",
    "joint_rank",
    "parts_of_targets",
    "with_kernel",
]

#: Penalties mu / n of K + mu I among which leave-one-out chooses; at the last one only the free
#: terms are left.  The least error is flat in the penalty.
PENALTIES = np.geomspace(1e-8, 1e3, 23)
#: At most so many pivots where the candidates are compared, and the bounds of the number of rows.
CHOICE_RANK = 64
_FEWEST_CHOICE_ROWS, MOST_CHOICE_ROWS = 1024, 8192
#: Rows among which the pivots are then looked for.
_CHOICE_SEARCHED = 1024
#: At least so many rows, or all, are left out one by one where a penalty is chosen.
_FEWEST_LEFT_OUT = 2048
#: Ranks below the given one are powers of two from this on: few ranks, few programs.
_LEAST_RANK = 16
#: Columns of a program of the regression, at least; those that are not there are zeros.
_LEAST_WIDTH = 7
#: Pivots of one column's kernel in a sum of kernels: normal scores need 13 for an error of 1e-6.
COLUMN_RANK = 16
#: Pivots of the kernel of a weighted sum, whose tails may be longer than normal ones.
INDEX_RANK = 32
#: |residual| below this share of its mean counts as this share, so that its logarithm is finite.
LEAST_SHARE = 1e-3


#: Residuals of at most this share of their target are rounding errors.
NOTHING = 2.0**-26


# Targets on the device: which columns, and arrays of these.
_Parts = list[tuple[range, jax.Array]]


class Candidate(NamedTuple):
    """A regression.  map: "raw", "ranks" or "scores", of Z.  kernel: "joint", "sum", "index" or
    "none" (a constant).  bandwidth: times sqrt(2 d), d the number of columns of the kernel.
    """

    map: str
    kernel: str
    bandwidth: float = 1.0

    @property
    def shared(self) -> bool:
        """Whether it is the same for every target."""
        return self.kernel != "index"


class _OfOneSet(NamedTuple):
    """What the targets of one set, or the two regressions of one target, have in common."""

    trials: dict[Candidate, ridge.Smoother]
    directions: dict[tuple[str, bytes], Direction]


_CONSTANT = Candidate("raw", "none")
_JOINT = tuple(Candidate(m, "joint", b) for m in ("raw", "ranks", "scores") for b in (1.0, 2.0))
#: Narrower kernels, and the number of rows from which on each is compared; with fewer it would be
#: chosen by chance.  Without them KCI rejected true nulls of few levels with a kink in Z in .11 of
#: data sets at 4,000 rows (.06 with the first), and errors whose skewness has a jump in Z in .27 at
#: 30,000 (.06 with the second).
_NARROW = ((Candidate("raw", "joint", 0.5), 2_000), (Candidate("raw", "joint", 0.125), 8_000))
#: Of one column a kernel has few terms, and so many times fewer rows are enough: GCM rejected
#: columns with four waves of a season in common in .14 to .18 of data sets of 300 to 1,000 rows
#: (.04 to .06 with them).
_FEWER_OF_ONE = 10
#: A share of this over the number of rows, by which the best of the candidates that all targets
#: share must beat the constant before a weighted sum is looked for: twice three units of
#: log-likelihood.
_SEEN = 6.0
#: A sum of which one column has this share of the length of the weights is that column.
_ONE_COLUMN = 0.999
#: With fewer rows jumps are looked for before the smooth fit, too, at most so many.
_FEW_ROWS, _MOST_FIRST_JUMPS = 600, 8
#: Sets of which trials are held: as many as are worked on at once, and the last.
_SETS_HELD = 2 * MOST_THREADS
_SEVERAL = tuple(Candidate(m, kernel) for kernel in ("sum", "index") for m in ("raw", "scores"))


class Regressions:
    """Regressions of targets on sets of columns.

    Args:
        values: (n, d), finite, rows in random order.
        labels: positions of the columns whose numbers are labels.
        rank: pivots of the kernel of all columns.
        bandwidth: a factor of all bandwidths.
        n_samples: the number of all rows, where ``values`` are the first of them.
    """

    def __init__(
        self,
        values: np.ndarray,
        *,
        labels: Sequence[int] = (),
        rank: int,
        bandwidth: float = 1.0,
        n_samples: int | None = None,
    ) -> None:
        self._values, self._rank, self._bandwidth = values, rank, bandwidth
        n = len(values) if n_samples is None else n_samples
        self.n_choice = min(max(n // 4, _FEWEST_CHOICE_ROWS), MOST_CHOICE_ROWS)
        self.n_left_out = min(max(self.n_choice, _FEWEST_LEFT_OUT), n)
        self._n_samples = n
        self._labels = frozenset(labels)
        self._mapped: dict[tuple[int, str], np.ndarray] = {}
        self._first: dict[tuple[int, str], np.ndarray] = {}
        self._smoothers: dict[tuple[tuple[int, ...], Candidate], ridge.Smoother] = {}
        self._sets: dict[tuple[int, ...], _OfOneSet] = {}
        self._orders: dict[int, list[jumps.Order]] = {}
        self._penalties: dict[int, jax.Array] = {}
        self._lock = threading.Lock()
        self.n_factorisations = 0

    @property
    def nbytes(self) -> int:
        """Of the factorisations that are held."""
        return sum(part.factor.nbytes for part in list(self._smoothers.values()))

    def hold(self, v: int, kind: str, column: np.ndarray) -> None:
        """Takes a column under a map as it is, in the place of the one that it would make."""
        self._mapped[v, kind] = column

    def keep(self, given: tuple[int, ...]) -> None:
        """Drops the factorisations of other sets."""
        with self._lock:
            self._smoothers = {k: v for k, v in self._smoothers.items() if k[0] == given}

    def residuals(
        self, given: tuple[int, ...], targets: np.ndarray, *, together: bool = False
    ) -> np.ndarray:
        """targets less their regressions on the columns ``given``: (n, t) -> (n, t).

        Args:
            together: one choice for all targets, by their summed errors.
        """
        chosen = self.choose(given, targets, together=together)
        rest = np.empty_like(targets)
        # Of one target's own candidate, for the terms that may come to it.
        own: dict[int, ridge.Smoother] = {}
        for candidate in dict.fromkeys(chosen):
            places = [i for i, other in enumerate(chosen) if other == candidate]
            for part in [places] if candidate.shared else [[i] for i in places]:
                some = targets[:, part]
                if candidate.kernel == "none":
                    rest[:, part] = some - some.mean(axis=0)
                    continue
                smoother = self._smoother(given, candidate, some)
                rest[:, part] = self._residuals(smoother, some)
                if not candidate.shared:
                    own[part[0]] = smoother
        rest = _unexplained(rest, targets)
        for part in parts_of_targets(len(chosen), together=together):
            candidate, some = chosen[part[0]], targets[:, part]
            weights = self.oblique(given, candidate, some[: self.n_choice])
            terms: tuple[jumps.Term, ...] = ()
            new = self.first_jumps(given, candidate, some[: self.n_choice], weights)
            new = new or self.more_jumps(given, rest[:, part], terms, weights)
            while new:
                terms += new
                smoother = own.get(part[0]) or self._smoother(given, with_kernel(candidate), some)
                left = self._left_beside(given, smoother, some, terms, weights)
                rest[:, part] = _unexplained(left, some)
                new = self.more_jumps(given, rest[:, part], terms, weights)
        return rest

    def oblique(self, given: tuple[int, ...], candidate: Candidate, few: np.ndarray) -> np.ndarray:
        """The weights of a sum of the columns at whose thresholds jumps are looked for, too (a
        score from which a drug is given), (d,): those of the single-index model of a target on the
        first rows, (n, 1).  Zeros where the sum is one column, where nothing is seen of Z, and of
        several targets.
        """
        nothing = np.zeros(self._width(given))
        if len(nothing) < 2 or few.shape[1] > 1 or candidate.kernel == "none":
            return nothing
        found = self.direction(given, "raw", few[:, 0]).weights
        return nothing if np.abs(found).max() >= _ONE_COLUMN * np.linalg.norm(found) else found

    def first_jumps(
        self, given: tuple[int, ...], candidate: Candidate, few: np.ndarray, weights: np.ndarray
    ) -> tuple[jumps.Term, ...]:
        """Free terms with which a candidate explains the first rows of targets, (n, t), better than
        alone; where there are few rows, else none.

        Args:
            weights: of :meth:`oblique`.
        """
        if self._n_samples >= _FEW_ROWS:
            return ()
        z = jumps.with_sum(self.coordinates(given, "raw", len(few)), weights)
        orders = self._orders_in(given, z)
        terms = jumps.terms_beside_a_line(z, orders, few, most=_MOST_FIRST_JUMPS)
        if not terms:
            return ()
        parts = _on_device(few)
        if candidate.shared:
            alone = self._errors(given, candidate, few, parts)
        else:
            alone = self._losses(self._trial(given, candidate, few), parts)
        trial = self._trial(given, with_kernel(candidate), few, beside=jumps.columns_of(z, terms))
        least = NOTHING**2 * np.sum(few**2)
        errors = [max(float(each.sum()), least) for each in (alone, self._losses(trial, parts))]
        gained = len(few) * math.log(errors[0] / errors[1]) if least > 0 else 0.0
        return terms if gained > jumps.gain_needed(z, terms) else ()

    def more_jumps(
        self,
        given: tuple[int, ...],
        rest: np.ndarray,
        terms: Sequence[jumps.Term],
        weights: np.ndarray,
    ) -> tuple[jumps.Term, ...]:
        """Free terms besides ``terms`` that what is left of targets, (n, t), calls for, read off
        the first rows.

        Args:
            weights: of :meth:`oblique`.
        """
        z = jumps.with_sum(self.coordinates(given, "raw", MOST_CHOICE_ROWS), weights)
        orders = self._orders_in(given, z)
        new = jumps.more_terms(z, orders, rest[:MOST_CHOICE_ROWS], terms, waves=True)
        return tuple(new[: jumps.MOST_TERMS - len(terms)])

    def standardised_residuals(self, given: tuple[int, ...], targets: np.ndarray) -> np.ndarray:
        """Residuals over their spread as a function of Z: (n, t) -> (n, t)."""
        rest = self.residuals(given, targets)
        size = np.abs(rest)
        least = LEAST_SHARE * size.mean(axis=0)
        logs = np.log(np.maximum(size, np.where(least > 0, least, 1.0)))
        spread = logs - self.residuals(given, logs)
        return rest / np.exp(spread - spread.mean(axis=0))

    def candidates(self, given: tuple[int, ...]) -> tuple[Candidate, ...]:
        """Those that are compared."""
        width = self._width(given)
        n = self._n_samples * (_FEWER_OF_ONE if width == 1 else 1)
        narrow = (candidate for candidate, least in _NARROW if n >= least)
        several = _SEVERAL if 1 < width <= jumps.MOST_COLUMNS else ()
        return (_CONSTANT, *_JOINT, *narrow, *several)

    def choose(
        self, given: tuple[int, ...], targets: np.ndarray, *, together: bool = False
    ) -> list[Candidate]:
        """For each target the candidate of least leave-one-out error on the first rows."""
        few = targets[: self.n_choice]
        parts = _on_device(few)
        candidates = [c for c in self.candidates(given) if c.shared or not together]
        shared = [self._errors(given, c, few, parts) for c in candidates if c.shared]
        own = [c for c in candidates if not c.shared]
        losses = np.array(shared + [np.full(few.shape[1], np.inf) for _ in own])
        for i, least in enumerate(losses.min(axis=0)):
            # Where nothing is seen of Z, a weighted sum of it shows nothing either.
            if least < losses[0, i] * (1 - _SEEN / len(few)):
                for row, candidate in enumerate(own, start=len(shared)):
                    losses[row, i] = self._own_error(given, candidate, few[:, i], least)
        if together:
            losses = np.repeat(losses.sum(axis=1, keepdims=True), targets.shape[1], axis=1)
        # The first of equal ones, whatever their rounding: of two levels every map is the same.
        near = losses <= losses.min(axis=0) * (1 + 1e-9) + NOTHING**2 * np.sum(few**2, axis=0)
        return [candidates[i] for i in near.argmax(axis=0)]

    def _errors(
        self, given: tuple[int, ...], candidate: Candidate, few: np.ndarray, parts: _Parts
    ) -> np.ndarray:
        """The least leave-one-out error over the penalties, of each target on the first rows."""
        if candidate.kernel == "none":
            return np.sum((few - few.mean(axis=0)) ** 2, axis=0) / (1 - 1 / len(few)) ** 2
        trials = self._of(given).trials
        if candidate not in trials:
            trials[candidate] = self._trial(given, candidate, few)
        return self._losses(trials[candidate], parts)

    def _own_error(
        self, given: tuple[int, ...], candidate: Candidate, few: np.ndarray, least: float
    ) -> float:
        """The same of a candidate that is one target's own; infinite where its function of the
        weighted sum, finer than any that the kernel allows, leaves more than ``least`` of the very
        rows that it was fitted to.
        """
        left = self.direction(given, candidate.map, few).left
        if left * np.sum((few - few.mean()) ** 2) > least:
            return np.inf
        targets = few[:, None]
        return float(self._losses(self._trial(given, candidate, targets), _on_device(targets))[0])

    def _of(self, given: tuple[int, ...]) -> _OfOneSet:
        with self._lock:
            while given not in self._sets and len(self._sets) >= _SETS_HELD:
                del self._sets[next(iter(self._sets))]
            return self._sets.setdefault(given, _OfOneSet({}, {}))

    def _trial(
        self,
        given: tuple[int, ...],
        candidate: Candidate,
        few: np.ndarray,
        *,
        beside: jax.Array | None = None,
    ) -> ridge.Smoother:
        rank = min(self._rank, CHOICE_RANK)
        return self._factorise(
            given, candidate, few, rank, searched=_CHOICE_SEARCHED, beside=beside
        )

    def _smoother(
        self, given: tuple[int, ...], candidate: Candidate, targets: np.ndarray
    ) -> ridge.Smoother:
        """Of all rows."""
        smoother = self._smoothers.get((given, candidate))
        if smoother is None:
            smoother = self._factorise(given, candidate, targets, self._rank)
            with self._lock:
                self.n_factorisations += 1
                if candidate.shared:
                    self._smoothers[given, candidate] = smoother
        return smoother

    def _left_beside(
        self,
        given: tuple[int, ...],
        smoother: ridge.Smoother,
        targets: np.ndarray,
        terms: Sequence[jumps.Term],
        weights: np.ndarray,
    ) -> np.ndarray:
        """What is left with more free terms."""
        z = jumps.with_sum(self.coordinates(given, "raw"), weights)
        with double_precision():
            free = (smoother.free, jumps.columns_of(z, terms))
            new = ridge.smoother_of(smoother.factor, smoother.gram, free, n_head=self.n_left_out)
        return self._residuals(new, targets)

    def _factorise(
        self,
        given: tuple[int, ...],
        candidate: Candidate,
        targets: np.ndarray,
        rank: int,
        *,
        searched: int = gram.N_SEARCHED,
        beside: jax.Array | None = None,
    ) -> ridge.Smoother:
        """Of as many rows as the targets have, with more free terms (n, k)."""
        n = len(targets)
        z = self.coordinates(given, candidate.map, n)
        wide, one = _padded_columns(z), self._bandwidth * math.sqrt(2)
        sizes: dict[str, Any] = {"n_head": min(n, self.n_left_out), "n_searched": min(n, searched)}
        terms = () if beside is None else (beside,)
        with double_precision():
            if candidate.kernel == "sum":
                x = wide[:, : _width_of(z.shape[1], least=1)]
                return ridge.additive_smoother(x, one, terms, rank=COLUMN_RANK, **sizes)
            if candidate.kernel == "index":
                weights = self.direction(given, candidate.map, targets[:, 0]).weights
                index = _padded_columns(standardised(z @ weights)[:, None])
                return ridge.gaussian_smoother(
                    index, one, terms, rank=INDEX_RANK, straight=wide, **sizes
                )
            bandwidth = self._bandwidth * candidate.bandwidth * math.sqrt(2 * z.shape[1])
            rank = joint_rank(rank, z.shape[1], bandwidth)
            return ridge.gaussian_smoother(wide, bandwidth, terms, rank=rank, **sizes)

    def _penalties_of(self, n: int) -> jax.Array:
        """Of n rows, on the device."""
        if n not in self._penalties:
            self._penalties[n] = jax.device_put(PENALTIES * n)
        return self._penalties[n]

    def _residuals(self, smoother: ridge.Smoother, targets: np.ndarray) -> np.ndarray:
        """Each target less its fit at the penalty of least leave-one-out error: (n, t)."""
        rest = np.empty_like(targets)
        with double_precision():
            penalties = self._penalties_of(len(targets))
            for columns, part in _on_device(targets):
                found, _ = ridge.leave_one_out_residuals(smoother, part, penalties)
                rest[:, columns] = np.asarray(found)[:, : len(columns)]
        return rest

    def _losses(self, smoother: ridge.Smoother, parts: _Parts) -> np.ndarray:
        """The least leave-one-out loss of each target over the penalties."""
        found = []
        with double_precision():
            for columns, part in parts:
                losses = ridge.leave_one_out_losses(smoother, part, self._penalties_of(len(part)))
                found.append(np.asarray(losses).min(axis=1)[: len(columns)])
        return np.concatenate(found)

    def direction(self, given: tuple[int, ...], kind: str, target: np.ndarray) -> Direction:
        """The weights of the columns of Z, read off the first rows."""
        few = target[: self.n_choice]
        held, key = self._of(given).directions, (kind, few.tobytes())
        if key not in held:
            held[key] = direction(self.coordinates(given, kind, len(few)), few)
        return held[key]

    def _width(self, given: tuple[int, ...]) -> int:
        return self.coordinates(given, "raw", 1).shape[1]

    def coordinates(
        self, given: tuple[int, ...], kind: str, n_rows: int | None = None
    ) -> np.ndarray:
        """The columns under a map ("raw", "ranks", "scores", "target"; indicators of labels): (n,
        d), or the first rows of them.
        """
        return np.column_stack([self._column(v, kind, n_rows)[:n_rows] for v in given])

    def _orders_in(self, given: tuple[int, ...], z: np.ndarray) -> list[jumps.Order]:
        """Of the columns of the set, and of what is behind them in z."""
        found = [order for v in given for order in self._orders_of(v)]
        return found + [jumps.order_of(column) for column in z.T[len(found) :]]

    def _orders_of(self, v: int) -> list[jumps.Order]:
        """Of the first rows of a column, or of the indicators of its labels."""
        if v not in self._orders:
            columns = np.column_stack([self._column(v, "raw", MOST_CHOICE_ROWS)])[:MOST_CHOICE_ROWS]
            self._orders[v] = [jumps.order_of(column) for column in columns.T]
        return self._orders[v]

    def _column(self, v: int, kind: str, n_rows: int | None) -> np.ndarray:
        """A column under a map: (n,), or (n, levels - 1) for labels; at least its first rows."""
        if v in self._labels:
            kind = "labels"
        if (v, kind) in self._mapped:
            return self._mapped[v, kind]
        # Of most columns the ranks of the first rows are all that is ever asked for.
        few = n_rows is not None and n_rows <= MOST_CHOICE_ROWS and kind in ("ranks", "scores")
        held = self._first if few else self._mapped
        if (v, kind) not in held:
            rows = MOST_CHOICE_ROWS if few else None
            held[v, kind] = mapped(self._values[:, v], kind, rows)
        return held[v, kind]


def parts_of_targets(n_targets: int, *, together: bool) -> list[list[int]]:
    """The targets that share what is chosen."""
    every = list(range(n_targets))
    return [every] if together else [[i] for i in every]


def with_kernel(candidate: Candidate) -> Candidate:
    """Where a constant was best until jumps were known, a kernel beside them."""
    return _JOINT[0] if candidate.kernel == "none" else candidate


def joint_rank(rank: int, n_columns: int, bandwidth: float) -> int:
    """Pivots of the kernel of all columns: no more than are sufficient, rounded up."""
    enough = max(gram.sufficient_rank(n_columns, bandwidth), _LEAST_RANK)
    return min(rank, 1 << (enough - 1).bit_length())


def _width_of(n_columns: int, *, least: int) -> int:
    """The first of 1, 3, 7, 15, ... that is large enough: few widths, few programs."""
    return max((1 << n_columns.bit_length()) - 1, least)


def _padded_columns(z: np.ndarray) -> np.ndarray:
    """With columns of zeros, which change no distance and span nothing: (n, 7 or more)."""
    n, d = z.shape
    return np.hstack([z, np.zeros((n, _width_of(d, least=_LEAST_WIDTH) - d))])


def _on_device(targets: np.ndarray) -> _Parts:
    """Columns, and targets that are these and columns of zeros, 2, 4, 8 or 16 together: few shapes,
    few programs.
    """
    n, n_targets = targets.shape
    places = [range(i, min(i + 16, n_targets)) for i in range(0, n_targets, 16)]
    arrays = []
    for columns in places:
        arrays.append(np.zeros((n, next(k for k in (2, 4, 8, 16) if k >= len(columns)))))
        arrays[-1][:, : len(columns)] = targets[:, columns.start : columns.stop]
    with double_precision():
        return list(zip(places, jax.device_put(arrays), strict=True))


def _unexplained(rest: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The residuals: of a function of Z only rounding errors are left, which say nothing."""
    explained = np.abs(rest).max(axis=0) <= NOTHING * np.abs(targets).max(axis=0)
    return np.where(explained, 0.0, rest)
