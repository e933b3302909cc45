"""Domains: what is public about every column before the data is read.

A private statistic is scaled to the values a column *could* take, never to those it happens to
take, so levels and bounds are declared by a person or read from a file.  A domain file is JSON::

    {
        "columns": {
            "smoke": {"type": "categorical", "levels": ["yes", "no"]},
            "stage": {"type": "ordinal", "levels": [1, 2, 3]},
            "age": {"type": "numeric", "lower": 0, "upper": 120},
        }
    }

The order of the columns is the order in the file.  ``lower`` and ``upper`` may both be left out
(bounds not declared). Any column may have ``"other"``: the level, or the number, that a cell counts
as when it is missing or fits no declaration. A file written from an inferred domain also says
``"declared": false``; deleting that line, after looking at every level and bound, is the act of
declaring.  Which cell of the data matches which level (the text "1" matches the level 1) is stated
in :mod:`jaxcd.data.column_types`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jaxcd.data.column_types import Categorical, Column, Numeric, Ordinal
from jaxcd.data.columns import infer_columns
from jaxcd.data.frames import raw_columns
from jaxcd.errors import DataError, DomainError, FormatError

__all__ = ["Categorical", "Column", "Domain", "Numeric", "Ordinal", "describe", "domain_from_json"]


@dataclass(frozen=True, eq=False)
class Domain:
    """The declared type of every column, in order.

    Args:
        columns: A mapping (or a sequence of pairs) from column name to :class:`Categorical`,
            :class:`Ordinal` or :class:`Numeric`.
        declared: False only when the levels and bounds were taken from the data (:meth:`infer`),
            which voids every privacy guarantee: private runs refuse such a domain.

    Raises:
        DomainError: If there is no column, a name is given twice or is not text, or a column is of
            an unknown type.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.Domain(
        ...     {"stage": jaxcd.Ordinal((1, 2, 3)), "smoker": jaxcd.Categorical(("no", "yes"))}
        ... )
        >>> domain.names, domain.is_discrete
        (('stage', 'smoker'), True)
    """

    columns: Mapping[str, Column]
    declared: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        given = self.columns.items() if isinstance(self.columns, Mapping) else self.columns
        columns: dict[str, Column] = {}
        for name, column in given:
            if not isinstance(name, str) or not name:
                raise DomainError(
                    f"column name {name!r} must be a text of at least one character; rename the "
                    "column"
                )
            if name in columns:
                raise DomainError(f"column {name!r} is declared twice; give each column once")
            if not isinstance(column, (Categorical, Ordinal, Numeric)):
                raise DomainError(
                    f"column {name!r} is of the unknown type {column!r}; use Categorical, Ordinal "
                    "or Numeric"
                )
            columns[name] = column
        if not columns:
            raise DomainError("a domain needs at least one column; declare the columns of the data")
        if not isinstance(self.declared, bool):
            raise DomainError(f"declared must be True or False, not {self.declared!r}")
        object.__setattr__(self, "columns", MappingProxyType(columns))

    @property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(self.columns)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def cardinalities(self) -> tuple[int | None, ...]:
        """The number of levels of every column; None for a numeric column."""
        return tuple(column.cardinality for column in self.columns.values())

    @property
    def is_discrete(self) -> bool:
        """Whether every column is categorical or ordinal."""
        return all(column.is_discrete for column in self.columns.values())

    def select(self, names: Iterable[str]) -> Domain:
        """The domain of some of the columns, in the order of ``names``."""
        return Domain([(name, self[name]) for name in names], declared=self.declared)  # type: ignore[arg-type]

    def __getitem__(self, name: str) -> Column:
        try:
            return self.columns[name]
        except (KeyError, TypeError):
            known = ", ".join(self.names)
            raise DomainError(
                f"column {name!r} is not in the domain; its columns are {known}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return (
            tuple(self.columns.items()) == tuple(other.columns.items())
            and self.declared == other.declared
        )

    def __hash__(self) -> int:
        return hash((tuple(self.columns.items()), self.declared))

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping proxy can be neither pickled nor copied
        return (_rebuilt, (tuple(self.columns.items()), self.declared))

    def __repr__(self) -> str:
        # Inferred levels are values of the data, so kinds and counts are all that is shown.
        return f"Domain({describe(self)}{'' if self.declared else '; inferred, not declared'})"

    @staticmethod
    def infer(values: Any, *, names: Sequence[str] | None = None) -> Domain:
        """Take a domain from the data itself, **for use without privacy only**.

        Levels taken from private data void every guarantee, so the result has ``declared=False``
        and private runs refuse it.  The rule, column by column: truth values are categorical; an
        ordered categorical (or Enum) is ordinal in its declared order; text and unordered
        categoricals of at most 50 distinct values (``MAX_INFERRED_LEVELS``) are categorical; whole
        numbers of at most 50 distinct values are ordinal; other numbers are numeric without bounds.
        Text that all spells numbers counts as numbers where the source has no types of its own (csv
        files, arrays of text).

        Args:
            values: A data frame (pandas, polars, arrow) or a two-dimensional array, n_samples x
                n_columns.
            names: Column names, for an array only.

        Returns:
            A domain with ``declared=False``.

        Raises:
            DataError: If a value is missing or infinite, or a text column has too many distinct
                values.
        """
        return Domain(infer_columns(raw_columns(values, names=names)), declared=False)

    @staticmethod
    def read(path: str | Path) -> Domain:
        """Read a domain file; the format is in the module's docstring.

        Raises:
            DataError: If there is no such file.
            FormatError: If the file is not JSON of that shape.
            DomainError: If a column is declared twice, is of an unknown type, or has impossible
                levels or bounds.
        """
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise DataError(f"domain file {str(path)!r} does not exist; check the path") from None
        except (OSError, UnicodeDecodeError) as error:
            raise FormatError(
                f"domain file {str(path)!r} cannot be read as UTF-8 text: {error}"
            ) from None
        try:
            return domain_from_json(text)
        except (FormatError, DomainError) as error:
            raise type(error)(f"domain file {str(path)!r}: {error}") from None

    def to_json_dict(self) -> dict[str, Any]:
        """The content of a domain file."""
        columns = {name: _column_to_json(column) for name, column in self.columns.items()}
        return {"columns": columns} if self.declared else {"declared": False, "columns": columns}

    def write(self, path: str | Path) -> None:
        """Write the domain as JSON; :meth:`read` gives an equal domain back."""
        content = self.to_json_dict()
        Path(path).write_text(
            json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def _rebuilt(columns: Iterable[tuple[str, Column]], declared: bool) -> Domain:
    return Domain(dict(columns), declared=declared)


def describe(domain: Domain) -> str:
    """Names and kinds of the columns in one line, without any level or bound."""
    return ", ".join(
        f"{name}: {column.kind}" + (f"({column.cardinality})" if column.is_discrete else "")
        for name, column in domain.columns.items()
    )


def _column_to_json(column: Column) -> dict[str, Any]:
    other = {} if column.other is None else {"other": column.other}
    if not isinstance(column, Numeric):
        return {"type": column.kind, "levels": list(column.levels), **other}
    return {
        "type": column.kind,
        **({"lower": column.lower, "upper": column.upper} if column.is_bounded else {}),
        **other,
    }


def _pairs_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON objects keep the last of two equal names in silence; here that is an error."""
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise DomainError(f"{name!r} is given twice; give each name once")
        result[name] = value
    return result


def _refuse_constant(constant: str) -> Any:
    raise DomainError(f"{constant} is not a finite number; levels and bounds must be finite")


def domain_from_json(text: str) -> Domain:
    """The domain that a JSON text describes."""
    try:
        content = json.loads(
            text, object_pairs_hook=_pairs_without_repeats, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno}: not valid JSON ({error.msg})") from None
    if not isinstance(content, dict) or not isinstance(content.get("columns"), dict):
        raise FormatError(
            'line 1: expected an object such as {"columns": {"smoke": {"type": "categorical", '
            "...}}}"
        )
    unknown = set(content) - {"columns", "declared"}
    if unknown:
        raise FormatError(f"unknown key {min(unknown)!r}; the keys are columns and declared")
    columns = {name: _column_from_json(name, entry) for name, entry in content["columns"].items()}
    return Domain(columns, declared=content.get("declared", True))


def _column_from_json(name: str, entry: Any) -> Column:
    if not isinstance(entry, dict) or "type" not in entry:
        raise FormatError(f'column {name!r} must be an object with a "type"')
    kind = entry["type"]
    keys = {"categorical": {"levels"}, "ordinal": {"levels"}, "numeric": {"lower", "upper"}}.get(
        str(kind)
    )
    if keys is None:
        raise DomainError(
            f"column {name!r} is of the unknown type {kind!r}; use categorical, ordinal or numeric"
        )
    unknown = set(entry) - keys - {"type", "other"}
    if unknown:
        raise FormatError(
            f"column {name!r} has the unknown key {min(unknown)!r}; a {kind} column has "
            f"{sorted(keys | {'other'})}"
        )
    if kind != "numeric" and not isinstance(entry.get("levels"), list):
        raise FormatError(f'column {name!r} needs "levels", a list')
    try:
        if kind == "numeric":
            return Numeric(entry.get("lower"), entry.get("upper"), entry.get("other"))
        return (Categorical if kind == "categorical" else Ordinal)(
            tuple(entry["levels"]), entry.get("other")
        )
    except DomainError as error:
        raise DomainError(f"column {name!r}: {error}") from None
