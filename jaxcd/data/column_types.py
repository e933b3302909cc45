"""Column types, their levels, and which cell matches which level.

A cell matches the level it equals; numbers and truth values are compared as numbers (1, 1.0 and
true are equal), text as text.  Failing that, text and numbers meet by what the text spells: the
text "1" or "1.0" matches the level 1, and the number 1 matches the level "1"; "true" and "false",
in any case, spell 1 and 0.  Text never matches text that is spelled otherwise, and a number matches
no text level where two of them spell it.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from jaxcd.checks import a_type, is_iterable
from jaxcd.errors import DomainError

Level: TypeAlias = str | int | float | bool

MAX_INFERRED_LEVELS = 50
"""An inferred column with more distinct values than this is not discrete."""


def shown(value: object) -> str:
    """A cell or level as a message shows it, shortened."""
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        text = repr(plain)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = f"{a_type(plain)} of very many digits"
    return text if len(text) <= 60 else text[:57] + "..."


def is_writable(text: str) -> bool:
    """Whether UTF-8 can write it: half of a surrogate pair, which JSON can spell, it cannot."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def number_spelled(text: str) -> int | float | None:
    """The finite number that a text spells, or None; whole numbers come back as exact integers."""
    if "_" in text:  # Python reads 1_000 as a number; files do not mean it
        return None
    try:
        number = float(text)
        if not math.isfinite(number):
            return None
    except ValueError:
        return None
    try:
        return int(text)
    except ValueError:
        return number


def reading(value: object) -> int | float | None:
    """What a cell or level says as a number: itself, the number it spells, or 1 and 0 for true and
    false.
    """
    if isinstance(value, str):
        truth = {"true": 1, "false": 0}.get(value.strip().lower())
        return number_spelled(value) if truth is None else truth
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return None


class LevelIndex:
    """Looks up the code of the level that a cell matches; the rule is at the top of this file."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._texts: dict[str, int] = {}
        self._numbers: dict[int | float, int] = {}
        self._spelled: dict[
            int | float, int | None
        ] = {}  # None: two texts spell this number, so it matches neither
        for code, level in enumerate(levels):
            number = reading(level)
            if not isinstance(level, str):
                self._numbers[level] = code
                continue
            self._texts[level] = code
            if number is not None:
                self._spelled[number] = None if number in self._spelled else code

    @property
    def texts(self) -> dict[str, int]:
        """The texts that are levels, and their codes."""
        return dict(self._texts)

    @property
    def numbers(self) -> dict[int | float, int]:
        """The numbers that match a level, and its code."""
        spelled = {number: code for number, code in self._spelled.items() if code is not None}
        return {**spelled, **self._numbers}

    @property
    def spelled_numbers(self) -> bool:
        """Whether text that is no level may spell one: whether a level is a number."""
        return bool(self._numbers)

    def code(self, value: object) -> int | None:
        """The code (position) of the level that ``value`` matches, or None."""
        if isinstance(value, str):
            if value in self._texts:
                return self._texts[value]
            number = reading(value)
            return None if number is None else self._numbers.get(number)
        number = reading(value)
        if number is None:
            return None
        return self._numbers[number] if number in self._numbers else self._spelled.get(number)


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "ordinal" else f"a {kind}"


def _checked_levels(levels: object, kind: str) -> tuple[Level, ...]:
    """The levels as a tuple of plain Python values, or a DomainError."""
    if isinstance(levels, (str, bytes)) or not is_iterable(levels):
        raise DomainError(
            f"levels of {kind} column must be a sequence such as ('yes', 'no'), not {levels!r}"
        )
    if isinstance(levels, (set, frozenset)):
        raise DomainError(
            f"levels of {kind} column must be in an order, which a set has not, and which codes "
            "follow; write tuple(sorted(levels)), or a list of them"
        )
    plain: list[Level] = []
    for level in levels:
        value = level.item() if isinstance(level, np.generic) else level
        if not isinstance(value, (str, bool, int, float)):
            raise DomainError(
                f"level {shown(value)} of {kind} column must be text, a number or a truth value"
            )
        if isinstance(value, str) and not is_writable(value):
            raise DomainError(
                f"level {value!r} of {kind} column holds half of a surrogate pair, which no file "
                "can hold; correct it"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise DomainError(
                f"level {value!r} of {kind} column must be finite; leave missing values out"
            )
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise DomainError(
                f"level {shown(value)} of {kind} column is beyond the largest float; correct it, "
                "or declare the level as text"
            )
        plain.append(value)
    if not plain:
        raise DomainError(f"levels of {kind} column must not be empty; declare at least one level")
    seen: dict[tuple[bool, Level], Level] = {}
    spelled = {
        reading(level): level
        for level in plain
        if isinstance(level, str) and reading(level) is not None
    }
    for value in plain:
        identity = (isinstance(value, str), value)
        if identity in seen:
            raise DomainError(
                f"level {value!r} of {kind} column is declared twice; give each level once"
            )
        if not isinstance(value, str) and value in spelled:
            raise DomainError(
                f"levels {spelled[value]!r} and {value!r} of {kind} column cannot be told apart "
                "in a file; keep one"
            )
        seen[identity] = value
    return tuple(plain)


def _check_other(other: object, levels: tuple[Level, ...], kind: str) -> None:
    if other is not None and not any(
        type(other) is type(level) and other == level for level in levels
    ):
        raise DomainError(
            f"other = {shown(other)} of {kind} column is none of its levels; declare it as a "
            "level, or leave it out"
        )


def _checked_missing(missing: object, kind: str) -> tuple[Level, ...] | None:
    """The declared cells that mean a missing value, or a DomainError."""
    if missing is None or missing is False:
        return None
    if missing is True:
        return ()
    if isinstance(missing, (str, bytes, Mapping)) or not is_iterable(missing):
        raise DomainError(
            f"missing = {shown(missing)} of {kind} column must be true (an empty cell, NA, null) "
            "or a list of the cells that also mean a missing value, such as [999]"
        )
    cells = tuple(cell.item() if isinstance(cell, np.generic) else cell for cell in missing)
    for cell in cells:
        number = reading(cell)
        is_finite = number is not None and abs(number) <= sys.float_info.max
        if not (cell is None or isinstance(cell, str) or is_finite):
            raise DomainError(
                f"missing = {shown(cell)} of {kind} column must be text or a finite number"
            )
    return tuple(cell for cell in cells if cell is not None)


class _MayBeMissing:
    """What every column that can have missing cells answers."""

    __slots__ = ()
    levels: tuple[Level, ...]
    missing: tuple[Level, ...] | None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest number; None for a column of levels."""
        return None

    @property
    def takes_numbers(self) -> bool:
        """Whether a text is read as the number that it spells, and nothing else is asked of it."""
        return self.bounds is not None and not self.missing

    @property
    def missing_code(self) -> int | None:
        """The code of a missing cell, behind those of the levels; None where none is declared."""
        return None if self.missing is None else len(self.levels)

    @property
    def cardinality(self) -> int:
        """The number of codes: the declared levels, and one for a missing cell where that is
        declared.
        """
        return len(self.levels) + (self.missing is not None)

    def label(self, code: int) -> Level:
        """The level of a code; "missing" for the code of a missing cell."""
        return "missing" if code == self.missing_code else self.levels[code]


@dataclass(frozen=True, slots=True)
class _Leveled(_MayBeMissing):
    """A column of declared levels."""

    levels: tuple[Level, ...]
    other: Level | None = None
    missing: tuple[Level, ...] | None = None
    kind: ClassVar[str]
    is_discrete: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", _checked_levels(self.levels, _a(self.kind)))
        _check_other(self.other, self.levels, _a(self.kind))
        object.__setattr__(self, "missing", _checked_missing(self.missing, _a(self.kind)))
        index = LevelIndex(self.levels)
        for cell in self.missing or ():
            if index.code(cell) is not None:
                raise DomainError(
                    f"missing = {cell!r} of {_a(self.kind)} column is one of its levels; keep it "
                    "in one of the two lists"
                )

    def codes_of(self, cells: Sequence[object]) -> np.ndarray:
        """The code of each cell, -1 where it matches no level; int32."""
        index = LevelIndex(self.levels)
        return np.array(
            [-1 if (code := index.code(cell)) is None else code for cell in cells], dtype=np.int32
        )


@dataclass(frozen=True, slots=True)
class Categorical(_Leveled):
    """A nominal column: one of a declared set of levels without an order.

    Args:
        levels: The levels; the code of a level is its position.  One level declares a constant.
        other: The level that undeclared cells count as, where a table is read without errors; None
            is a missing cell where ``missing`` is given, else the first level.
        missing: Declares that cells can be missing: they get a code of their own, behind the
            levels.  True: a null, an empty cell, NA, N/A, NaN or null; a list: these, and the cells
            in it, such as ``(999, "unknown")``.  None: a missing cell counts as ``other``.

    Raises:
        DomainError: If there is no level, a level twice, or a level that is not text, a finite
            number or a truth value, if ``other`` is no level, or a cell of ``missing`` is one.

    Example:
        >>> Categorical(("yes", "no", "unknown"), other="unknown").catch_all
        2
        >>> Categorical(("yes", "no"), missing=(999,)).cardinality
        3
    """

    kind: ClassVar[str] = "categorical"

    @property
    def catch_all(self) -> int:
        """The code that undeclared cells count as."""
        if self.other is not None:
            return self.levels.index(self.other)
        return 0 if self.missing_code is None else self.missing_code


@dataclass(frozen=True, slots=True)
class Ordinal(_Leveled):
    """An ordered discrete column: one of a declared set of levels, given from the lowest to the
    highest.

    Args:
        levels: The levels in ascending order; the code of a level is its position.
        other: The level that undeclared cells count as, where a table is read without errors; None
            is a missing cell where ``missing`` is given, else the middle level (of an even number,
            the lower one of the two).
        missing: As for :class:`Categorical`; its code stands behind the highest level.

    Raises:
        DomainError: As for :class:`Categorical`.

    Example:
        >>> Ordinal((1, 2, 3)).catch_all
        1
    """

    kind: ClassVar[str] = "ordinal"

    @property
    def catch_all(self) -> int:
        """The code that undeclared cells count as."""
        if self.other is not None:
            return self.levels.index(self.other)
        return (len(self.levels) - 1) // 2 if self.missing_code is None else self.missing_code


@dataclass(frozen=True, slots=True)
class Binned(_MayBeMissing):
    """A number that is read as the bin it falls into: an ordinal column of k bins.

    Bin j holds ``edges[j] <= value < edges[j + 1]``, the last one its upper edge as well; a number
    beyond the outer edges counts in the outer bin.

    Args:
        edges: k + 1 ascending finite numbers, in the column's units; the outer ones are the bounds.
        missing: As for :class:`Categorical`: the code of cells without a number; None counts them
            in the middle bin.

    Raises:
        DomainError: If there are fewer than two edges, or they do not ascend.

    Example:
        >>> Binned((0, 18, 65, 120)).levels
        ('[0, 18)', '[18, 65)', '[65, 120]')
    """

    edges: tuple[float, ...]
    missing: tuple[Level, ...] | None = None
    kind: ClassVar[str] = "ordinal"
    is_discrete: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.edges, (str, bytes)) or not is_iterable(self.edges):
            raise DomainError(f"bins must be a list of ascending numbers, not {self.edges!r}")
        edges = tuple(_finite("an edge", edge, cure="give finite edges") for edge in self.edges)
        if len(edges) < 2 or any(not low < high for low, high in itertools.pairwise(edges)):
            raise DomainError(
                f"bins must be at least two ascending numbers, such as [0, 18, 65, 120], not "
                f"{list(edges)}"
            )
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "missing", _checked_missing(self.missing, _a(self.kind)))

    @property
    def levels(self) -> tuple[str, ...]:  # type: ignore[override]
        """The bins in words, in ascending order."""
        last = len(self.edges) - 2
        return tuple(
            f"[{low:.12g}, {high:.12g}{']' if place == last else ')'}"
            for place, (low, high) in enumerate(itertools.pairwise(self.edges))
        )

    def bins_of(self, values: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """The codes of numbers, int32, as they count: of their bins; NaN as a cell without a
        number.  missing: which cells are missing; None for none.
        """
        codes = np.searchsorted(np.array(self.edges[1:-1]), values, side="right").astype(np.int32)
        codes[np.isnan(values)] = self.catch_all
        if missing is not None and self.missing_code is not None:
            codes[missing] = self.missing_code
        return codes

    @property
    def bounds(self) -> tuple[float, float]:
        """The outer edges."""
        return self.edges[0], self.edges[-1]

    @property
    def other(self) -> None:
        """None: every number falls into a bin."""
        return None

    @property
    def catch_all(self) -> int:
        """The code that cells without a number count as."""
        return (len(self.edges) - 2) // 2 if self.missing_code is None else self.missing_code


def _finite(what: str, value: object, *, cure: str = "give both bounds or neither") -> float:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DomainError(f"{what} of a numeric column is {shown(value)}, not a number; {cure}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise DomainError(f"{what} of a numeric column must be finite, not {shown(value)}")
    return number


@dataclass(frozen=True, slots=True)
class Numeric:
    """A real-valued column with declared bounds, both inclusive.

    Args:
        lower: The lowest value the column could take, in the column's units; None with ``upper``
            None: not declared.  Private ranks tell numbers of a column without bounds apart by .002
            to .016 near 0, by about 1 % of their size elsewhere, and not beyond 4.4 million; those
            with bounds by a small part of their distance.
        upper: The highest value the column could take.
        other: The value that a cell without a number counts as, where a table is read without
            errors; None is the middle of the bounds, or 0 where none are declared.
        missing: Declares that cells can be missing, as for :class:`Categorical`.  Such a cell has
            the value ``other``, and the data remember that it is missing
            (:meth:`Dataset.is_missing`).

    Raises:
        DomainError: If only one bound is given, a bound is not finite, lower >= upper, or ``other``
            is no finite number between them.

    Example:
        >>> Numeric(0, 120).catch_all
        60.0
    """

    lower: float | None = None
    upper: float | None = None
    other: float | None = None
    missing: tuple[Level, ...] | None = None
    kind: ClassVar[str] = "numeric"
    is_discrete: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", _checked_missing(self.missing, _a(self.kind)))
        if not (self.lower is None and self.upper is None):
            self._check_bounds()
        if self.other is None:
            return
        object.__setattr__(self, "other", _finite("other", self.other))
        if self.is_bounded and not self.lower <= self.other <= self.upper:  # type: ignore[operator]
            raise DomainError(
                f"other = {self.other:g} of a numeric column is outside its bounds "
                f"[{self.lower:g}, {self.upper:g}]"
            )

    def _check_bounds(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _finite(f"{name} bound", getattr(self, name)))
        assert self.lower is not None and self.upper is not None
        if not self.lower < self.upper:
            raise DomainError(
                f"lower bound {self.lower!r} must be below upper bound {self.upper!r}; widen the "
                "bounds"
            )
        if not math.isfinite(self.upper - self.lower):
            raise DomainError(
                f"bounds {self.lower!r} and {self.upper!r} are farther apart than the largest "
                "float; narrow them, or declare neither"
            )

    @property
    def is_bounded(self) -> bool:
        """Whether bounds are declared."""
        return self.lower is not None

    @property
    def takes_numbers(self) -> bool:
        """Whether a text is read as the number that it spells, and nothing else is asked of it."""
        return not self.missing

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The declared bounds; None where there are none."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    @property
    def missing_code(self) -> None:
        """None: a numeric column has no codes."""
        return None

    @property
    def catch_all(self) -> float:
        """The value that a cell without a number counts as."""
        if self.other is not None:
            return self.other
        return (
            0.0
            if self.lower is None or self.upper is None
            else self.lower + 0.5 * (self.upper - self.lower)
        )

    @property
    def cardinality(self) -> None:
        """None: a numeric column has no levels."""
        return None


Column: TypeAlias = Categorical | Ordinal | Binned | Numeric
