"""What in a data file fits no declaration: for the owner of the data, before a private run.  What
it says is not private.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxcd.checks import a_type, counted
from jaxcd.data.column_types import Numeric
from jaxcd.data.columns import (
    RawColumn,
    check_has_rows,
    fitted,
    is_missing,
    misfit_and_cure,
    number_in,
)
from jaxcd.data.domain import Domain
from jaxcd.data.looks import id_words
from jaxcd.data.readers import UTF_8, more_repairs, read_columns
from jaxcd.errors import DomainError

__all__ = ["CheckedFile", "Misfit", "check_columns", "check_file"]

_MOST_SHOWN = 20


@dataclass(frozen=True)
class Misfit:
    """Cells of one column with the same defect.

    Args:
        column: its name.
        words: what is wrong with the cells.
        n_cells: how many there are.
        first_row: the first of them, data rows from 1.
        becomes: what a private run reads instead.
    """

    column: str
    words: str
    n_cells: int
    first_row: int
    becomes: str


@dataclass(frozen=True)
class CheckedFile:
    """What :func:`check_file` found.  Sensitive: it shows single records.

    Args:
        n_samples: the number of rows.
        layout: rows that are not written as the header says.
        undeclared: columns of the file that the domain does not have.
        lacking: columns of the domain that the file does not have.
        misfits: cells that fit no declaration.
        people: what to know of the ids that say which rows belong to one person.  They fit, so that
            the file can be clean.
    """

    n_samples: int
    layout: tuple[str, ...]
    undeclared: tuple[str, ...]
    lacking: tuple[str, ...]
    misfits: tuple[Misfit, ...]
    people: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not (self.layout or self.undeclared or self.lacking or self.misfits)

    def __str__(self) -> str:
        lines = ["NOT PRIVATE: this list shows single records; do not publish it."]
        lines += [
            f"column {name!r} is in the data but not in the domain; declare it, or say "
            '"ignore": true'
            for name in self.undeclared
        ]
        lines += [
            f"column {name!r} is in the domain but not in the data; add it or take it out of the "
            "domain"
            for name in self.lacking
        ]
        lines += list(self.layout[:_MOST_SHOWN])
        lines += more_repairs(self.layout, _MOST_SHOWN)
        for found in self.misfits:
            lines.append(
                f"column {found.column!r}, {counted(found.n_cells, 'cell')}, first in row "
                f"{found.first_row}: {found.words}; a private run reads {found.becomes}"
            )
        lines += [f"{words}." for words in self.people]
        n_wrong = sum(found.n_cells for found in self.misfits)
        verdict = (
            "every cell fits its declaration"
            if self.clean
            else f"{counted(n_wrong, 'cell')} {'fits' if n_wrong == 1 else 'fit'} no declaration"
        )
        return "\n".join([*lines, f"{counted(self.n_samples, 'row')}: {verdict}."])

    def to_json_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "private": False,
            "n_samples": self.n_samples,
            "clean": self.clean,
            "layout": list(self.layout),
            "undeclared": list(self.undeclared),
            "lacking": list(self.lacking),
            "misfits": [dict(vars(found)) for found in self.misfits],
            "people": list(self.people),
        }


def check_file(path: str | Path, *, domain: Domain, encoding: str = UTF_8) -> CheckedFile:
    """Find every cell of a data file that fits no declaration; the counterpart of total reading
    (:mod:`jaxcd.data.columns`).

    Args:
        path: as for ``read_csv``.
        domain: the declaration, or a draft of one.
        encoding: as for ``read_csv``.

    Returns:
        What was found; not private.

    Raises:
        OptionError: ``encoding`` is none that is read.
        DataError: The file cannot be read at all, or has no rows.
        DomainError: ``domain`` is none.
    """
    if not isinstance(domain, Domain):
        raise DomainError(f"domain: {a_type(domain)} is not a Domain; read one with Domain.read")
    return check_columns(*read_columns(path, strict=False, encoding=encoding), domain=domain)


def check_columns(
    raws: Sequence[RawColumn], layout: tuple[str, ...] = (), *, domain: Domain
) -> CheckedFile:
    """The same for columns that have been read, and what was repaired in the layout of their
    file.
    """
    check_has_rows(raws[0].n_samples)
    by_name = {raw.name: raw for raw in raws}
    misfits = [
        found
        for name in domain.names
        if name in by_name
        for found in _misfits(by_name[name], domain)
    ]
    person = () if domain.person is None else (domain.person,)
    return CheckedFile(
        raws[0].n_samples,
        layout,
        tuple(name for name in by_name if name not in domain.columns_of_files),
        tuple(name for name in (*domain.names, *person) if name not in by_name),
        tuple(misfits),
        _people(by_name[domain.person]) if domain.person in by_name else (),
    )


def _people(raw: RawColumn) -> tuple[str, ...]:
    uniques, inverse = raw.told_apart()
    known = [not is_missing(cell) for cell in uniques]
    n_blank = int((~np.array(known, dtype=np.bool_)[inverse]).sum())
    words = id_words(itertools.compress(uniques, known), n_blank, most=_MOST_SHOWN)
    return tuple(f"column {raw.name!r}: {each}" for each in words)


def _misfits(raw: RawColumn, domain: Domain) -> list[Misfit]:
    column = domain[raw.name]
    found_cells = fitted(raw, column)
    bounds = column.bounds
    if not isinstance(column, Numeric):
        otherwise = repr(column.label(column.catch_all))
    else:
        otherwise = "a missing value" if column.missing is not None else f"{column.catch_all:g}"
    rows: dict[tuple[str, str], list[int]] = {}
    for row in np.flatnonzero(found_cells.misfits).tolist():
        words, _ = misfit_and_cure(cell := raw.cell(row), column)
        becomes = otherwise
        if bounds is not None and not math.isnan(number := number_in(cell)):
            becomes = "the nearest bound"
            if math.isfinite(number):
                words = f"values outside the declared bounds [{bounds[0]:g}, {bounds[1]:g}]"
        rows.setdefault((words, becomes), []).append(row)
    found = [
        Misfit(raw.name, words, len(places), places[0] + 1, becomes)
        for (words, becomes), places in sorted(
            rows.items(), key=lambda item: (-len(item[1]), item[1][0])
        )
    ]
    if len(found) > _MOST_SHOWN:
        rest = found[_MOST_SHOWN:]
        words = f"{len(rest)} further values that fit no declaration"
        found = [
            *found[:_MOST_SHOWN],
            Misfit(
                raw.name,
                words,
                sum(part.n_cells for part in rest),
                rest[0].first_row,
                rest[0].becomes,
            ),
        ]
    return found
