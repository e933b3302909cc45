"""Cause-effect pairs with known answers: what one is, and loaders for three public collections.

The files stay where the user has them; nothing of them is part of the package.  Loaders return
scalar pairs only and say which others they left out, and why.
"""

from __future__ import annotations

import contextlib
import csv
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from jaxcd.checks import check_choice, counted
from jaxcd.errors import DataError, FormatError
from jaxcd.pairwise.result import Direction, PairResult
from jaxcd.places import path_of

__all__ = [
    "CausePair",
    "PairCollection",
    "Simulation",
    "TuebingenVersion",
    "challenge",
    "over_pairs",
    "simulated",
    "tuebingen",
]


@dataclass(frozen=True, eq=False)
class CausePair:
    """Two variables of which one causes the other.

    Args:
        name: of the pair, unique in its collection.
        x: float64 (n,), read-only, the columns in the order of the file.
        y: as ``x``.
        direction: the truth; None where the pair is not causal.
        weight: at least 0, below 1 where several pairs come from one source.

    Raises:
        DataError: x and y are not one column each, of the same length, or the weight is negative.

    Example:
        >>> import numpy as np
        >>> from jaxcd.pairwise import CausePair, Direction
        >>> pair = CausePair("cube", np.arange(8.0), np.arange(8.0) ** 3, Direction.X_TO_Y, 1.0)
        >>> pair.direction.value
        'x -> y'
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    direction: Direction | None
    weight: float = 1.0

    def __post_init__(self) -> None:
        for field in ("x", "y"):
            column = np.array(getattr(self, field), dtype=np.float64)
            if column.ndim != 1:
                raise DataError(
                    f"pair {self.name!r}: {field} has the shape {column.shape}, not one column; "
                    "give a scalar variable"
                )
            column.setflags(write=False)
            object.__setattr__(self, field, column)
        if len(self.x) != len(self.y):
            raise DataError(
                f"pair {self.name!r}: x has {counted(len(self.x), 'record')} and y has "
                f"{len(self.y)}; give paired records"
            )
        if not self.weight >= 0:
            raise DataError(
                f"pair {self.name!r}: weight = {self.weight!r} is not a number from 0; give a "
                "share such as 1.0"
            )

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.x)


@dataclass(frozen=True)
class PairCollection:
    """Pairs with known answers.

    Args:
        pairs: what was read, in the order of the file.
        skipped: (name, reason) of each pair left out.
    """

    pairs: tuple[CausePair, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.pairs)


class TuebingenVersion(Enum):
    """Whose weights: the version with 108 pairs, or that with 100 pairs (Mooij et al. 2016), where
    pairs 101 to 108 weigh nothing.
    """

    PAIRS_108 = "weight"
    PAIRS_100 = "weight_100"


class Simulation(Enum):
    """Which simulated set of Mooij et al. 2016: SIM (no confounder) or SIM_C (one hidden
    confounder).
    """

    SIM = "SIM"
    SIM_C = "SIM_c"


def tuebingen(
    folder: str | Path, *, version: TuebingenVersion = TuebingenVersion.PAIRS_108
) -> PairCollection:
    """The scalar pairs of the Tuebingen collection, columns as in the original files.

    Multivariate pairs, and pairs without weight in the version, are in ``skipped``.

    Args:
        folder: holds ``cause_effect_pairs/tuebingen_pairs.npz`` and ``tuebingen_meta.csv``.
        version: the weights.

    Raises:
        DataError: a file is missing.
        FormatError: a file is not as described.
        OptionError: ``version`` is not a version.

    Source:
        Mooij, Peters, Janzing, Zscheischler, Schoelkopf 2016.
    """
    check_choice("version", version, TuebingenVersion)
    pairs, skipped = [], []
    with _opened(
        folder, "cause_effect_pairs", meta="tuebingen_meta.csv", archive="tuebingen_pairs.npz"
    ) as (rows, arrays):
        for row in rows:
            name = f"pair{int(row['pair']):04d}"
            weight = float(row[version.value])
            if row["scalar"] != "1":
                skipped.append(
                    (
                        name,
                        f"multivariate ({int(row['columns'])} columns), and the methods compare "
                        "two scalar variables",
                    )
                )
            elif weight == 0:
                skipped.append((name, f"weight 0 in {version.name}"))
            else:
                pairs.append(_pair(name, arrays[name], int(row["cause_first"]), weight))
    return PairCollection(tuple(pairs), tuple(skipped))


def simulated(folder: str | Path, which: Simulation) -> PairCollection:
    """The 100 simulated pairs of a set.

    Args:
        folder: holds ``cause_effect_pairs/mooij_sim_pairs.npz`` and ``mooij_sim_meta.csv``.
        which: the set.

    Raises:
        DataError: a file is missing.
        FormatError: a file is not as described.
        OptionError: ``which`` is not a set.

    Source:
        Mooij, Peters, Janzing, Zscheischler, Schoelkopf 2016.
    """
    check_choice("which", which, Simulation)
    with _opened(
        folder, "cause_effect_pairs", meta="mooij_sim_meta.csv", archive="mooij_sim_pairs.npz"
    ) as (rows, arrays):
        names = {
            f"{which.value}_{int(row['pair']):04d}": row
            for row in rows
            if row["set"].replace("-", "_") == which.value
        }
        pairs = [
            _pair(name, arrays[name], int(row["cause_column"]), float(row["weight"]))
            for name, row in names.items()
        ]
    return PairCollection(tuple(pairs))


def challenge(folder: str | Path, *, causal_only: bool = True) -> PairCollection:
    """The pairs of the ChaLearn cause-effect challenge, supplementary set 3; each has weight 1.

    Args:
        folder: holds ``kaggle_cause_effect/sup3_pairs.npz`` and ``sup3_meta.csv``.
        causal_only: leave out the pairs in which neither variable causes the other (they go to
            ``skipped``).

    Raises:
        DataError: a file is missing.
        FormatError: a file is not as described.

    Source:
        Guyon 2013, Cause-effect pairs challenge.
    """
    truth = {1: 1, -1: 2, 0: None}
    pairs, skipped = [], []
    with _opened(folder, "kaggle_cause_effect", meta="sup3_meta.csv", archive="sup3_pairs.npz") as (
        rows,
        arrays,
    ):
        for row in rows:
            cause = truth[int(row["target"])]
            if cause is None and causal_only:
                skipped.append((row["pair"], "neither variable causes the other"))
            else:
                pairs.append(_pair(row["pair"], arrays[row["pair"]], cause, 1.0))
    return PairCollection(tuple(pairs), tuple(skipped))


def over_pairs(
    method: Callable[[np.ndarray, np.ndarray], PairResult],
    pairs: PairCollection | Iterable[CausePair],
) -> tuple[PairResult, ...]:
    """The method's answer to each pair, in order.

    Args:
        method: a function of x and y, such as ``lambda x, y: jaxcd.igci(x, y, budget=...)``.
        pairs: the pairs.

    Returns:
        One result a pair.
    """
    return tuple(
        method(pair.x, pair.y)
        for pair in (pairs.pairs if isinstance(pairs, PairCollection) else pairs)
    )


def _pair(name: str, array: np.ndarray, cause: int | None, weight: float) -> CausePair:
    """cause: the column of the cause, 1 or 2."""
    if array.ndim != 2 or array.shape[1] != 2 or cause not in (None, 1, 2):
        raise ValueError(f"pair {name} has the shape {array.shape} and its cause in column {cause}")
    direction = None if cause is None else Direction.X_TO_Y if cause == 1 else Direction.Y_TO_X
    return CausePair(name, array[:, 0], array[:, 1], direction, weight)


@contextlib.contextmanager
def _opened(
    folder: str | Path, collection: str, *, meta: str, archive: str
) -> Iterator[tuple[list[dict[str, str]], dict[str, np.ndarray]]]:
    """The rows and arrays of a collection; what malformed files raise in the block becomes one
    FormatError that names the file.
    """
    place = path_of("folder", folder, example="data") / collection
    rows, arrays = _read(place / meta, place / archive)
    try:
        yield rows, arrays
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise FormatError(
            f"file {str(place / meta)!r} does not fit its arrays ({error}); fetch the folder again"
        ) from None


def _read(meta: Path, archive: Path) -> tuple[list[dict[str, str]], dict[str, np.ndarray]]:
    for path in (meta, archive):
        if not path.is_file():
            raise DataError(
                f"folder: there is no file {str(path)!r}; give the data folder that holds "
                f"{path.parent.name!r}"
            )
    try:
        with meta.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        with np.load(archive, allow_pickle=False) as arrays:
            return rows, {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
        raise FormatError(
            f"file {str(archive)!r} or {str(meta)!r} cannot be read; fetch the folder again"
        ) from None
