"""Replay: a run on a neighbouring data set, forced to give the same noisy answers, must look the
same from outside.

A first run draws its noise at random and keeps a tape.  In the second run, on other data, the noise
is set so that every mechanism gives the answer that it gave in the first: Laplace and Gaussian
noise is moved by the difference of the values, an AboveThreshold's threshold by d and the noise of
its hit by 2 d (the coupling of its proof).  Then

* everything that leaves a run (result, text, pickle, output, warnings, certificate) must be the
  same, byte for byte: whatever differs has reached the outside past the mechanisms;
* the logarithm of the ratio of the two tapes' probabilities is what the events really cost on this
  pair of data sets, and must be within what the ledger was charged.

Nothing here is statistical: no draw of the noise may break it.
"""

from __future__ import annotations

import contextlib
import io
import math
import pickle
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from jaxcd.decisions import noisy_rank
from jaxcd.privacy import AboveThreshold, NoiseSampler, NoiseSource, mechanisms
from jaxcd.privacy.sensitive import exact_values

__all__ = [
    "Drawing",
    "Given",
    "Replay",
    "Replaying",
    "Tape",
    "Tapping",
    "costs",
    "listening",
    "outside",
    "replay",
    "tapping",
]


class Tape:
    """What the mechanisms of one run drew and answered, by ledger index."""

    def __init__(self) -> None:
        self.calls: defaultdict[int, list[tuple[str, float, np.ndarray, np.ndarray | None]]] = (
            defaultdict(list)
        )
        self.asked: defaultdict[int, list[np.ndarray]] = defaultdict(list)
        self.thresholds: dict[int, float] = {}
        self.hits: dict[int, int] = {}

    def add(
        self,
        index: int,
        kind: str,
        scale: float,
        draws: np.ndarray,
        values: np.ndarray | None = None,
    ) -> None:
        """Keep one call of the sampler: its law, scale and draws, and the integers that the noise
        was for.
        """
        self.calls[index].append(
            (kind, scale, np.array(draws), None if values is None else np.array(values))
        )

    @property
    def rate(self) -> float:
        """The share of the records that subsets held; 1 where none was drawn."""
        return min(
            (
                scale
                for calls in self.calls.values()
                for kind, scale, *_ in calls
                if kind == "subset"
            ),
            default=1.0,
        )


class Tapping:
    """Where the values that mechanisms see, and the hits of AboveThresholds, go to:
    :func:`tapping`.
    """

    def __init__(self) -> None:
        self.tape = Tape()
        self.last: np.ndarray = np.zeros(0, dtype=np.int64)


@contextlib.contextmanager
def tapping() -> Iterator[Tapping]:
    """While entered, the integers that mechanisms add noise to are seen."""
    tap = Tapping()
    quantise, first_above = mechanisms.quantise, AboveThreshold.first_above

    def tapped_quantise(values: Any, *, grid: float) -> np.ndarray:
        tap.last = quantise(values, grid=grid)
        return tap.last

    def tapped_first_above(round_: AboveThreshold, values: Any, *, threshold: Any) -> int | None:
        before = sum(len(part) for part in tap.tape.asked[round_.index])
        tap.tape.asked[round_.index].append(np.array(exact_values(values)))
        tap.tape.thresholds[round_.index] = float(threshold)
        hit = first_above(round_, values, threshold=threshold)
        if hit is not None:
            tap.tape.hits[round_.index] = before + hit
        return hit

    with (
        mock.patch.object(mechanisms, "quantise", tapped_quantise),
        mock.patch.object(noisy_rank, "quantise", tapped_quantise),
        mock.patch.object(AboveThreshold, "first_above", tapped_first_above),
    ):
        yield tap


class Drawing(NoiseSampler):
    """Random noise of the right laws, kept on the tape."""

    def __init__(self, tap: Tapping, seed: int) -> None:
        self._tap, self._rng = tap, np.random.default_rng(seed)

    @property
    def secure(self) -> bool:
        """True, so that the run looks as a real one does."""
        return True

    def _keep(
        self,
        index: int,
        kind: str,
        scale: float,
        draws: np.ndarray,
        values: np.ndarray | None = None,
    ) -> np.ndarray:
        self._tap.tape.add(index, kind, scale, draws, values)
        return draws

    def _geometric(self, scale: float, size: int) -> np.ndarray:
        return np.floor(self._rng.standard_exponential(size) * scale).astype(np.int64)

    def geometric(self, scale: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102 - as in the base class
        return self._keep(index, "geometric", scale, self._geometric(scale, size))

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102
        draws = self._geometric(scale, size) - self._geometric(scale, size)
        return self._keep(index, "laplace", scale, draws, self._tap.last.ravel())

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102
        draws = np.rint(self._rng.standard_normal(size) * sigma).astype(np.int64)
        return self._keep(index, "gaussian", sigma, draws, self._tap.last.ravel())

    def rounded_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102
        return self.discrete_gaussian(sigma, size, index=index)

    def subset(self, n: int, m: int, *, index: int) -> np.ndarray:  # noqa: D102
        mask = np.zeros(n, dtype=bool)
        mask[self._rng.permutation(n)[:m]] = True
        return self._keep(index, "subset", m / n, mask)

    def gumbel_max(self, scores: np.ndarray, scale: float, *, index: int) -> int:  # noqa: D102
        return self.gumbel_top(scores, scale, 1, index=index)[0]

    def gumbel_top(  # noqa: D102
        self, scores: np.ndarray, scale: float, size: int, *, index: int
    ) -> list[int]:
        chosen = np.argsort(-(scores / scale + self._rng.gumbel(size=len(scores))))[:size]
        self._keep(index, "gumbel", scale, chosen, scores)
        found: list[int] = chosen.tolist()
        return found


class Replaying(NoiseSampler):
    """The noise that makes every mechanism answer as on the tape.

    Args:
        tap: what the second run shows.
        tape: of the first run.
        shift: d, by which thresholds are moved up (2 d for the noise of hits).
        subsets: turns a subset of the first run into that of the second.
    """

    def __init__(self, tap: Tapping, tape: Tape, *, shift: Any, subsets: Any = None) -> None:
        self._tap, self._first, self._shift = tap, tape, shift
        self._subsets = subsets or (lambda mask: mask)
        self._place: defaultdict[int, int] = defaultdict(int)

    @property
    def secure(self) -> bool:
        """True, so that the run looks as a real one does."""
        return True

    def _next(
        self, index: int, kind: str, scale: float, size: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        place = self._place[index]
        self._place[index] += 1
        assert place < len(self._first.calls[index]), "the second run draws more than the first"
        there, there_scale, draws, values = self._first.calls[index][place]
        assert (there, there_scale, len(draws)) == (kind, scale, size), (
            "kind, scale and size of a draw depend on the data"
        )
        return draws, values

    def geometric(self, scale: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102
        earlier = [
            len(draws)
            for kind, _, draws, _ in self._first.calls[index][: self._place[index]]
            if kind == "geometric"
        ]
        draws = self._next(index, "geometric", scale, size)[0].copy()
        if not earlier:
            return draws + self._shift  # the threshold
        hit = self._first.hits.get(index)
        start = sum(earlier) - 1
        if hit is not None and start <= hit < start + size:
            draws[hit - start] += 2 * self._shift
        return draws

    def _moved(self, kind: str, scale: float, size: int, index: int) -> np.ndarray:
        draws, values = self._next(index, kind, scale, size)
        now = self._tap.last.ravel()
        assert values is not None
        self._tap.tape.add(index, kind, scale, values - now, None)
        return draws + values - now

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102
        return self._moved("laplace", scale, size, index)

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102
        return self._moved("gaussian", sigma, size, index)

    def rounded_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102
        return self._moved("gaussian", sigma, size, index)

    def subset(self, n: int, m: int, *, index: int) -> np.ndarray:  # noqa: D102
        mask = self._subsets(self._next(index, "subset", m / n, n)[0])
        self._tap.tape.add(index, "subset", m / n, mask)
        return mask

    def gumbel_max(self, scores: np.ndarray, scale: float, *, index: int) -> int:  # noqa: D102
        return self.gumbel_top(scores, scale, 1, index=index)[0]

    def gumbel_top(  # noqa: D102
        self, scores: np.ndarray, scale: float, size: int, *, index: int
    ) -> list[int]:
        draws, values = self._next(index, "gumbel", scale, size)
        assert values is not None and len(values) == len(scores)
        self._tap.tape.add(index, "gumbel", scale, values - scores, None)
        found: list[int] = draws.tolist()
        return found


# A run that is not proved names the class of its sampler; the two must look alike.
Replaying.__qualname__ = Drawing.__qualname__


class Given(NoiseSource):
    """A source that starts one sampler."""

    def __init__(self, sampler: NoiseSampler) -> None:
        self._sampler = sampler

    @property
    def secure(self) -> bool:
        """True, so that the run looks as a real one does."""
        return True

    def start(self) -> NoiseSampler:
        """The sampler."""
        return self._sampler


@contextlib.contextmanager
def listening() -> Iterator[Callable[[], list[Any]]]:
    """What the block has said, when asked: stdout, stderr, and the words of its warnings."""
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        yield lambda: [out.getvalue(), err.getvalue(), [str(w.message) for w in warned]]


def outside(call: Callable[[], Any], folder: Path | None = None) -> tuple[Any, list[Any]]:
    """A result, and everything of the call that can be seen; with ``folder``, also the files of its
    report.
    """
    with listening() as said:
        result = call()
        print(result)
    seen: list[Any] = [repr(result), *said(), pickle.dumps(result)]
    if hasattr(result, "certificate"):
        seen.append(result.certificate())
    if folder is not None:
        result.save(folder)
        seen.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    return result, seen


@dataclass(frozen=True)
class Replay:
    """A run and its replay: the first result, both tapes, and what differed outside (nothing, if
    all is well).
    """

    result: Any
    first: Tape
    second: Tape
    different: tuple[str, ...]

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """The ledger of the certificate."""
        return self.result.certificate()["ledger"]


_PARTS = ("repr", "stdout", "stderr", "warnings", "pickle", "certificate", "files")


def replay(
    tap: Tapping,
    run: Callable[[Any, NoiseSource], Any],
    here: Any,
    there: Any,
    *,
    seed: int,
    shift: Callable[[Tape], int],
) -> Replay:
    """Runs on ``here`` with noise drawn from ``seed``, and on ``there`` with the noise that must
    give the same answers.

    Args:
        tap: of :func:`tapping`.
        run: data and noise to a result.
        here: neighbours.
        there: as ``here``.
        seed: of the noise.
        shift: from the first tape to d, for the thresholds of sparse vectors.
    """
    tap.tape = first = Tape()
    result, seen = outside(lambda: run(here, Given(Drawing(tap, seed))))
    tap.tape = second = Tape()
    try:
        _, seen_there = outside(
            lambda: run(there, Given(Replaying(tap, first, shift=shift(first))))
        )
    except AssertionError as error:
        return Replay(result, first, second, (str(error),))
    names = [name for name, a, b in zip(_PARTS, seen, seen_there, strict=False) if a != b]
    if first.hits != second.hits:
        names.append("hits of a sparse vector")
    return Replay(result, first, second, tuple(names))


def costs(
    rows: Sequence[Mapping[str, Any]], first: Tape, second: Tape, *, shift: int
) -> dict[int, float]:
    """What each event cost on this pair, as a share of what it was charged, by index.

    For an AboveThreshold this is the bound of the coupling, the same for all pairs of data sets.
    """
    shares = {}
    for index, calls in first.calls.items():
        row = rows[index]
        assert row["index"] == index
        if any(kind == "geometric" for kind, *_ in calls):
            scales = [scale for kind, scale, *_ in calls if kind == "geometric"]
            inner = Fraction(shift) / Fraction(scales[0]) + sum(
                Fraction(2 * shift) / Fraction(scale) for scale in scales[1:2]
            )
            shares[index] = math.log1p(first.rate * math.expm1(float(inner))) / row["epsilon"]
            continue
        (kind, scale, difference, _), *rest = [
            part for part in second.calls[index] if part[0] != "subset"
        ]
        assert not rest
        steps = [int(x) for x in difference]
        # the answer follows from a comparison, so that the noise of the null can stay
        if row["law"].startswith("noisy rank"):
            shares[index] = (
                float(Fraction(abs(steps[0]) + max(map(abs, steps[1:]))) / Fraction(scale))
                / row["epsilon"]
            )
        elif kind == "laplace":
            shares[index] = float(Fraction(sum(map(abs, steps))) / Fraction(scale)) / row["epsilon"]
        elif kind == "gaussian":
            shares[index] = (
                float(Fraction(sum(x * x for x in steps)) / (2 * Fraction(scale) ** 2)) / row["rho"]
            )
        else:
            each = row["epsilon"] / row.get("n_choices", 1)
            shares[index] = float(Fraction(max(steps) - min(steps)) / Fraction(scale)) / each
    return shares
