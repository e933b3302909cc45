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
(bounds not declared). A file written from an inferred domain also says ``"declared": false``;
deleting that line, after looking at every level and bound, is the act of declaring.  Which cell of
the data matches which level (the text "1" matches the level 1) is stated in
:mod:`jaxcd.data.column_types`.  A column may have, besides:

* ``"missing": true``, or a list of cells such as ``[999, "unknown"]``: cells can be missing (a
  null, an empty cell, NA, N/A, NaN, null, and those listed), and get a code of their own;
* ``"other"``: the level, or the number, that a cell counts as when it fits no declaration;
* ``"bins": [0, 18, 65, 120]`` in the place of an ordinal column's levels: numbers are read as the
  bin they fall into;
* ``"ignore": true``: the column is not read (an id, a date, free text), with a ``"reason"``;
* ``"person": true``: the column says which rows belong to one person; it is no variable;
* ``"intervention": true``: the column says under which conditions a row was taken, and nothing
  among the other columns causes it; or an object that names, for each level, the columns that were
  set in such rows, as ``{"1": ["PKA"], "2": ["PKC", "Akt"]}``.

``docs/domain.schema.json`` is the same as a JSON schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from jaxcd.checks import a_type, is_iterable, shown_list
from jaxcd.data.column_types import (
    Binned,
    Categorical,
    Column,
    Level,
    LevelIndex,
    Numeric,
    Ordinal,
    is_writable,
)
from jaxcd.data.columns import infer_columns
from jaxcd.data.frames import raw_columns
from jaxcd.errors import DomainError, FormatError
from jaxcd.json_files import parsed, read_text
from jaxcd.places import check_new_file, check_there, is_path, path_of, written_whole

__all__ = [
    "Binned",
    "Categorical",
    "Column",
    "Domain",
    "Numeric",
    "Ordinal",
    "as_domain",
    "declared_domain",
    "describe",
    "domain_from_json",
]


@dataclass(frozen=True, eq=False)
class Domain:
    """The declared type of every column, in order.

    Args:
        columns: A mapping (or a sequence of pairs) from column name to :class:`Categorical`,
            :class:`Ordinal` or :class:`Numeric`.
        declared: False only when the levels and bounds were taken from the data (:meth:`infer`),
            which voids every privacy guarantee: private runs refuse such a domain.
        ignored: Columns of the data that are not read, each with the reason (which may be "").
        person: The column of the data that says which rows belong to one person; it is no variable.
            None: every row is a person.
        interventions: Columns that say under which conditions a row was taken.  For each of them
            the columns that were set, by level: ``{"INT": {8: ("PKA",)}}``; an empty mapping where
            only the context is known.

    Raises:
        DomainError: If there is no column, a name is given twice or is not text, a column is of an
            unknown type, an intervention names a column or level that is not there, or a column is
            set at every level.

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
    ignored: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    person: str | None = field(default=None, kw_only=True)
    interventions: Mapping[str, Mapping[Level, tuple[str, ...]]] = field(
        default_factory=dict, kw_only=True
    )

    def __post_init__(self) -> None:
        given: Any = self.columns.items() if isinstance(self.columns, Mapping) else self.columns
        try:
            given = [(name, column) for name, column in given]
        except (TypeError, ValueError):
            raise DomainError(
                f"columns: {a_type(self.columns)} says no type of any column; write "
                '{"age": Numeric(0, 120), ...}'
            ) from None
        columns: dict[str, Column] = {}
        for name, column in given:
            if not isinstance(name, str) or not name or not is_writable(name):
                raise DomainError(
                    f"column name {name!r} must be a text of at least one character that UTF-8 can "
                    "write; rename the column"
                )
            if name in columns:
                raise DomainError(f"column {name!r} is declared twice; give each column once")
            if not isinstance(column, (Categorical, Ordinal, Binned, Numeric)):
                raise DomainError(
                    f"column {name!r} is of the unknown type {column!r}; use Categorical, Ordinal, "
                    "Binned or Numeric"
                )
            columns[name] = column
        if not columns:
            raise DomainError("a domain needs at least one column; declare the columns of the data")
        if not isinstance(self.declared, bool):
            raise DomainError(f"declared must be True or False, not {self.declared!r}")
        object.__setattr__(self, "columns", MappingProxyType(columns))
        if not isinstance(self.ignored, Mapping):
            raise DomainError(
                f"ignored = {self.ignored!r} is no mapping; write {{column: the reason}}"
            )
        object.__setattr__(self, "ignored", MappingProxyType(dict(self.ignored)))
        for name in (*self.ignored, *(() if self.person is None else (self.person,))):
            if not isinstance(name, str) or not name or name in columns:
                raise DomainError(
                    f"column {name!r} has no name, or is declared as a variable, and also to be "
                    "ignored or as the person; name it, or keep one"
                )
        object.__setattr__(self, "interventions", _checked_interventions(self))

    @property
    def columns_of_files(self) -> tuple[str, ...]:
        """Every column that a data file may have: the variables, the ignored ones, the person."""
        person = () if self.person is None else (self.person,)
        return (*self.columns, *self.ignored, *person)

    @property
    def has_missing(self) -> bool:
        """Whether some column declares that its cells can be missing."""
        return any(column.missing is not None for column in self.columns.values())

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
        """The number of codes of every column (its levels, and one for a missing cell where that is
        declared); None for a numeric column.
        """
        return tuple(column.cardinality for column in self.columns.values())

    @property
    def is_discrete(self) -> bool:
        """Whether every column is categorical or ordinal."""
        return all(column.is_discrete for column in self.columns.values())

    def select(self, names: Iterable[str]) -> Domain:
        """The domain of some of the columns, in the order of ``names``.

        An intervention column that is not among them is forgotten, and so are targets.
        """
        kept = tuple(names)
        interventions = {
            name: {
                level: tuple(target for target in targets if target in kept)
                for level, targets in by_level.items()
            }
            for name, by_level in self.interventions.items()
            if name in kept
        }
        return Domain(
            [(name, self[name]) for name in kept],  # type: ignore[arg-type]
            declared=self.declared,
            ignored=self.ignored,
            person=self.person,
            interventions=interventions,
        )

    def in_bins(self, bins: Mapping[str, Binned]) -> Domain:
        """The domain with bins in the place of numeric columns.

        Raises:
            DomainError: a column is not numeric, or has other missing cells than its bins.
        """
        for name, column in bins.items():
            if not isinstance(self[name], Numeric) or self[name].missing != column.missing:
                raise DomainError(
                    f"column {name!r} is not numeric, or its bins have other missing cells; give "
                    "bins of a numeric column, with the same missing cells"
                )
        return Domain(
            {name: bins.get(name, column) for name, column in self.columns.items()},
            declared=self.declared,
            ignored=self.ignored,
            person=self.person,
            interventions=self.interventions,
        )

    def __getitem__(self, name: str) -> Column:
        try:
            return self.columns[name]
        except (KeyError, TypeError):
            raise DomainError(
                f"column {name!r} is not in the domain; its columns are {shown_list(self.names)}"
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
        return self._content == other._content

    @property
    def _content(self) -> tuple[Any, ...]:
        """All of it in plain values: a mapping proxy can be neither compared, hashed nor copied."""
        return (
            tuple(self.columns.items()),
            self.declared,
            tuple(self.ignored.items()),
            self.person,
            tuple((name, tuple(by.items())) for name, by in self.interventions.items()),
        )

    def __hash__(self) -> int:
        return hash(self._content)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, self._content)

    def __repr__(self) -> str:
        # Inferred levels are values of the data, so kinds and counts are all that is shown.
        return f"Domain({describe(self)}{'' if self.declared else '; inferred, not declared'})"

    @staticmethod
    def infer(values: Any, *, names: Sequence[str] | None = None) -> Domain:
        """Take a domain from the data itself, **for use without privacy only**.

        Levels taken from private data void every guarantee, so the result has ``declared=False``
        and private runs refuse it.  The rule, column by column: truth values are categorical; an
        ordered categorical (or Enum) is ordinal in its declared order; text and unordered
        categoricals of at most 50 distinct values (``MAX_INFERRED_LEVELS``) are categorical, a
        categorical of pandas with all its categories in their order, if these are 50 at most; whole
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
            DataError: If a value is infinite, a column has nothing but missing values, or a text
                column has too many distinct values.
        """
        return Domain(infer_columns(raw_columns(values, names=names)), declared=False)

    @staticmethod
    def read(path: str | Path) -> Domain:
        """Read a domain file; the format is in the module's docstring.

        Raises:
            OptionError: ``path`` is no path.
            DataError: If there is no such file.
            FormatError: If the file is not JSON of that shape.
            DomainError: If a column is declared twice, is of an unknown type, or has impossible
                levels or bounds.
        """
        path = path_of("path", path, example="domain.json")
        check_there(path, name="domain file", wanted="a file (JSON)", of="*.json")
        text = read_text(path, "domain file")
        try:
            return domain_from_json(text)
        except (FormatError, DomainError) as error:
            raise type(error)(f"domain file {str(path)!r}: {error}") from None

    def to_json_dict(self) -> dict[str, Any]:
        """The content of a domain file."""
        columns = {name: _column_to_json(column) for name, column in self.columns.items()}
        for name, by_level in self.interventions.items():
            targets = {str(level): list(names) for level, names in by_level.items()}
            columns[name]["intervention"] = targets or True
        if self.person is not None:
            columns[self.person] = {"person": True}
        for name, reason in self.ignored.items():
            columns[name] = {"ignore": True, **({"reason": reason} if reason else {})}
        return {"columns": columns} if self.declared else {"declared": False, "columns": columns}

    def write(self, path: str | Path) -> None:
        """Write the domain as JSON; :meth:`read` gives an equal domain back.

        Raises:
            OptionError: ``path`` is no path of a file in a folder that exists.
        """
        path = path_of("path", path, example="domain.json")
        check_new_file("path", path, force=True, cure="one such as 'domain.json'")
        content = self.to_json_dict()
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        with written_whole(path) as draft:
            draft.write_text(text, encoding="utf-8")


D = TypeVar("D")


def as_domain(domain: D | str | Path) -> D | Domain:
    """The domain of a domain file, where it is a path; anything else comes back as it is."""
    return Domain.read(domain) if is_path(domain) else cast(D, domain)


def declared_domain(domain: Any) -> Domain:
    """The domain, or that of the domain file; raises DomainError for anything else."""
    read = as_domain(domain)
    if not isinstance(read, Domain):
        raise DomainError(
            f"domain: {a_type(read)} is not a Domain; make one with jaxcd.Domain(...), or "
            "give the path of a domain file"
        )
    return read


def _rebuilt(
    columns: Iterable[tuple[str, Column]],
    declared: bool,
    ignored: Iterable[tuple[str, str]],
    person: str | None,
    interventions: Iterable[tuple[str, Iterable[tuple[Level, tuple[str, ...]]]]],
) -> Domain:
    return Domain(
        dict(columns),
        declared=declared,
        ignored=dict(ignored),
        person=person,
        interventions={name: dict(by_level) for name, by_level in interventions},
    )


def _checked_interventions(domain: Domain) -> Mapping[str, Mapping[Level, tuple[str, ...]]]:
    """By column and declared level the columns that were set; every level that sets none too."""
    checked: dict[str, Mapping[Level, tuple[str, ...]]] = {}
    if not isinstance(domain.interventions, Mapping):
        raise DomainError(
            f"interventions = {domain.interventions!r} is no mapping; write {{column: {{}}}}, or "
            "{column: {level: (columns that were set,)}}"
        )
    for name, by_level in domain.interventions.items():
        column = domain[name]
        if isinstance(column, Numeric):
            raise DomainError(
                f"column {name!r} is an intervention, and must be categorical or ordinal: its "
                "levels are the conditions"
            )
        if not isinstance(by_level, Mapping):
            raise DomainError(
                f"column {name!r}: its interventions, {by_level!r}, are no mapping; write {{}} for "
                "a context, or {level: (columns that were set,)}"
            )
        found: dict[Level, tuple[str, ...]] = {}
        spelled: dict[Level, Level] = {}
        for level, targets in by_level.items():
            code = LevelIndex(column.levels).code(level)
            if code is None:
                raise DomainError(
                    f"column {name!r}: the intervention {level!r} is none of its levels; declare "
                    "it as a level"
                )
            if (same := column.levels[code]) in found:
                first = spelled[same]
                raise DomainError(
                    f"column {name!r}: the interventions {first!r} and {level!r} are the same "
                    f"level {same!r}; keep one of them, with all columns that were set there"
                )
            spelled[same] = level
            if not is_iterable(targets):
                raise DomainError(
                    f"column {name!r}: the targets {targets!r} of the intervention {level!r} are "
                    "no names; give the columns that were set"
                )
            names = (targets,) if isinstance(targets, str) else tuple(targets)
            for target in names:
                is_variable = isinstance(target, str) and target in domain
                if not is_variable or target in domain.interventions:
                    raise DomainError(
                        f"column {name!r}: the target {target!r} of the intervention {level!r} is "
                        "no variable of the domain; give the name of a column"
                    )
            found[same] = names
        for target in {name for names in found.values() for name in names}:
            if all(target in found.get(level, ()) for level in column.levels):
                raise DomainError(
                    f"column {name!r}: {target!r} is set at every level, so that no row shows what "
                    "causes it; declare a level that leaves it alone, or the column as a context "
                    '("intervention": true)'
                )
        checked[name] = MappingProxyType(found)
    return MappingProxyType(checked)


def observed_domain(domain: Domain, left_out: Sequence[bool]) -> Domain:
    """The domain in which the columns that are marked cannot be missing."""
    columns = {
        name: replace(column, missing=None) if left else column
        for (name, column), left in zip(domain.columns.items(), left_out, strict=True)
    }
    return Domain(columns, declared=domain.declared, interventions=domain.interventions)


def describe(domain: Domain) -> str:
    """Names and kinds of the columns in one line, without any level or bound."""
    return ", ".join(
        f"{name}: {column.kind}" + (f"({column.cardinality})" if column.is_discrete else "")
        for name, column in domain.columns.items()
    )


def _column_to_json(column: Column) -> dict[str, Any]:
    other: dict[str, Any] = {} if column.other is None else {"other": column.other}
    if column.missing is not None:
        other["missing"] = list(column.missing) or True
    if isinstance(column, Binned):
        return {"type": column.kind, "bins": list(column.edges), **other}
    if not isinstance(column, Numeric):
        return {"type": column.kind, "levels": list(column.levels), **other}
    return {
        "type": column.kind,
        **({"lower": column.lower, "upper": column.upper} if column.is_bounded else {}),
        **other,
    }


def domain_from_json(text: str) -> Domain:
    """The domain that a JSON text describes."""
    content = parsed(text, error=DomainError)
    if not isinstance(content, dict) or not isinstance(content.get("columns"), dict):
        raise FormatError(
            'line 1: expected an object such as {"columns": {"smoke": {"type": "categorical", '
            "...}}}"
        )
    unknown = set(content) - {"columns", "declared"}
    if unknown:
        raise FormatError(f"unknown key {min(unknown)!r}; the keys are columns and declared")
    declared = content.get("declared", True)
    if not isinstance(declared, bool):
        raise DomainError(f'"declared" must be true or false, not {json.dumps(declared)}')
    columns: dict[str, Column] = {}
    ignored: dict[str, str] = {}
    people: list[str] = []
    interventions: dict[str, Mapping[Level, tuple[str, ...]]] = {}
    for name, entry in content["columns"].items():
        if _is_marked(name, entry, "ignore"):
            if not isinstance(reason := entry.get("reason", ""), str):
                raise FormatError(f'column {name!r}: "reason" must be text, not {reason!r}')
            ignored[name] = reason
        elif _is_marked(name, entry, "person"):
            people.append(name)
        else:
            columns[name] = _column_from_json(name, entry)
            if entry.get("intervention", False) is not False:
                interventions[name] = _targets(name, entry["intervention"])
    if len(people) > 1:
        raise DomainError(
            f"columns {people[0]!r} and {people[1]!r} both say which person a row belongs to; keep "
            "one"
        )
    return Domain(
        columns,
        declared=declared,
        ignored=ignored,
        person=people[0] if people else None,
        interventions=interventions,
    )


def _is_marked(name: str, entry: Any, mark: str) -> bool:
    """Whether an entry says ``"ignore": true`` or ``"person": true``."""
    marked = isinstance(entry, dict) and entry.get(mark, False)
    if not isinstance(marked, bool):
        raise FormatError(f'column {name!r}: "{mark}" must be true or false, not {marked!r}')
    return marked


def _targets(name: str, entry: Any) -> Mapping[Level, tuple[str, ...]]:
    """The columns that were set, by level."""
    if entry is True:
        return {}
    if not isinstance(entry, dict) or not all(
        isinstance(targets, (str, list)) for targets in entry.values()
    ):
        raise FormatError(
            f'column {name!r}: "intervention" must be true, or an object such as '
            '{"1": ["treatment"]} that names the columns that were set, by level'
        )
    return {
        level: (targets,) if isinstance(targets, str) else tuple(targets)
        for level, targets in entry.items()
    }


_KEYS = {"categorical": {"levels"}, "ordinal": {"levels", "bins"}, "numeric": {"lower", "upper"}}
_KEYS_OF_ALL = {"other", "missing", "intervention", "ignore", "person", "reason"}


def _column_from_json(name: str, entry: Any) -> Column:
    if not isinstance(entry, dict) or "type" not in entry:
        raise FormatError(
            f'column {name!r} must be an object with a "type", or with "ignore" or "person": true'
        )
    kind = entry["type"]
    keys = _KEYS.get(str(kind))
    if keys is None:
        raise DomainError(
            f"column {name!r} is of the unknown type {kind!r}; use categorical, ordinal or numeric"
        )
    unknown = set(entry) - keys - _KEYS_OF_ALL - {"type"}
    if unknown:
        key = min(unknown)
        whose = " or ".join(f'"{each}"' for each, held in _KEYS.items() if key in held)
        raise FormatError(
            f"column {name!r} has the unknown key {key!r}; "
            + (f'it goes with "type": {whose}; ' if whose else "")
            + f"a {kind} column has {sorted(keys | _KEYS_OF_ALL)}"
        )
    binned = "bins" in entry
    if kind != "numeric" and not binned and not isinstance(entry.get("levels"), list):
        raise FormatError(f'column {name!r} needs "levels", a list')
    if binned and ("levels" in entry or "other" in entry):
        raise FormatError(
            f'column {name!r} has "bins", which take the place of "levels" and "other"'
        )
    missing = entry.get("missing")
    try:
        if kind == "numeric":
            return Numeric(entry.get("lower"), entry.get("upper"), entry.get("other"), missing)
        if binned:
            return Binned(entry["bins"], missing)
        return (Categorical if kind == "categorical" else Ordinal)(
            tuple(entry["levels"]), entry.get("other"), missing
        )
    except DomainError as error:
        raise DomainError(f"column {name!r}: {error}") from None
