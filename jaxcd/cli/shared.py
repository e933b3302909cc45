"""Options that several commands have."""

from __future__ import annotations

import glob
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from jaxcd.errors import DataError, OptionError
from jaxcd.places import check_there


def option(words: str, *names: str, **more: Any) -> Any:
    """An option and its help; what is None unless it is given has no default to show."""
    return typer.Option(*names, help=words, **more)


def number_option(words: str, *names: str, **more: Any) -> Any:
    """An option whose values are numbers."""
    return option(words, *names, **{"parser": _number, "metavar": "NUMBER", **more})


def whole_option(words: str, *names: str, **more: Any) -> Any:
    """An option whose values are whole numbers."""
    return option(words, *names, **{"parser": _whole, "metavar": "INTEGER", **more})


def accounting_option(default: str) -> Any:
    """How costs add up; ``default`` in words."""
    return option(
        "How costs add up where there is a delta: zcdp, or gaussian, which leaves more for "
        f"Gaussian noise and less for other. (Default: {default}.)"
    )


def _number(text: Any) -> float:
    # Own words: those of typer are of its validator, and differ by its version.
    try:
        number = float(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no number; write one as 1, 0.05 and 1e-6 are written"
        ) from None
    # Read as 0, a delta that is too small for a float would be one that nobody asked for.
    if number == 0 and re.search("[1-9]", re.split("[eE]", str(text))[0]):
        raise typer.BadParameter(f"{text!r} is smaller than a number can be here; write 0")
    return number


def _whole(text: Any) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no whole number; write one in digits, as 10 and 20000 are written"
        ) from None


_PART = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,]*?))\s*,')


def listed(text: str) -> list[str]:
    """Names with commas between them; one in double quotes may hold commas, and blanks at its ends.
    A quote in it is written twice.
    """
    parts = _PART.findall(text + ",")
    return [quoted.replace('""', '"') or plain for quoted, plain in parts]


def argument(words: str) -> Any:
    """An argument and its help."""
    return typer.Argument(help=words, show_default=False)


def tell(*lines: str, error: bool = False) -> None:
    """Prints lines for people, on stdout or stderr: what a terminal would obey, a line break within
    one of them too, is shown as an escape.
    """
    from jaxcd.checks import printable

    for line in lines:
        print(printable(line), file=sys.stderr if error else sys.stdout)


def check_one_file(path: Path) -> None:
    """Raises DataError for a pattern of several files, where one is read."""
    if path.exists() or not any(sign in str(path) for sign in "*?["):
        return
    if found := sorted(glob.glob(str(path), recursive=True)):
        raise DataError(
            f"file {str(path)!r} is a pattern of {len(found):,} files, and one is read; give one "
            f"of them, such as {found[0]!r}"
        )


def check_release(path: Path) -> None:
    """Raises DataError unless there is such a file."""
    check_there(
        path,
        wanted="a release file (.npz)",
        of="*.npz",
        hint="there is none in it: `jaxcd discover` writes one with --release-out FILE.npz",
    )


def check_reading(release: Any, missing: str | None) -> None:
    """Raises OptionError where this reading of missing cells is none, or the release has none."""
    from jaxcd.data import Missing

    is_level = missing is not None and Missing.of(missing) is Missing.LEVEL
    if is_level and not release.domain.has_missing:
        raise OptionError(
            "--missing level has no use here: no column of the release has missing cells; drop it"
        )


AsJson = Annotated[bool, option("Print one JSON object and nothing else.", "--json")]
DomainFile = Annotated[
    Path, option("Domain file: the declared levels and bounds of FILE's columns.")
]
File = Annotated[Path, argument("Table: .csv, .tsv (also .gz) or .parquet.")]
Encoding = Annotated[
    str,
    option(
        "Encoding of a text file: utf-8, or one whose letters have one byte each, such as latin1 "
        "or cp1252. It is not guessed."
    ),
]
OwnersTable = Annotated[
    Path,
    argument(
        "Table: .csv, .tsv (also .gz) or .parquet; a folder or 'pattern*.parquet'; or a .duckdb "
        "file with --table. All its rows are read."
    ),
]
OwnersTableName = Annotated[str | None, option("Of a .duckdb file: the table or view.", "--table")]
LedgerPath = Annotated[
    Path | None, option("Ledger file that the run is charged to as well (see `jaxcd ledger`).")
]
MissingReading = Annotated[
    str,
    option(
        "How missing cells are read that the domain declares: ignore (left out) or level (a level "
        "of its own, as private tests on rows always read them)."
    ),
]
ReleaseReading = Annotated[
    str | None,
    option(
        "How missing cells are read that the domain declares: ignore (left out) or level (a level "
        "of its own). (Default: as it was bought with --missing, else ignore.)"
    ),
]
NoPrivacyFlag = Annotated[bool, option("Run without a budget.", "--no-privacy")]
SimulatedNoiseFlag = Annotated[
    bool,
    option(
        "Repeatable noise, for experiments: the result is not for release.", "--simulated-noise"
    ),
]
_BY_NOISE = "gaussian for releases and for tests with Gaussian noise"
PlannedAccounting = Annotated[str | None, accounting_option(_BY_NOISE)]
TotalAccounting = Annotated[str | None, accounting_option(f"the ledger's, else {_BY_NOISE}")]
MostRowsPerPerson = Annotated[
    int | None,
    whole_option(
        "Most rows that one person has; the budget then holds for a person. (Default: 1.)"
    ),
]
TotalUnit = Annotated[
    str | None,
    option(
        "Whom the budget protects: row, or person, with however many rows (the domain file says "
        "which column tells people apart). (Default: row.)"
    ),
]
TotalDelta = Annotated[
    float | None, number_option("Total delta, from 0, far below 1 / rows. (Default: 0.)")
]
TotalEpsilon = Annotated[
    float | None, number_option("Total epsilon, positive; fixed before the data is read.")
]
