"""``jaxcd domain``: a draft of the domain file, and all that is to be looked at in it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from shlex import quote
from typing import Annotated

from jaxcd.cli.shared import Encoding, OwnersTable, OwnersTableName, listed, option, tell
from jaxcd.errors import OptionError

__all__ = ["draft"]

_NEXT_STEPS = """\
{out} is a DRAFT and NOT PRIVATE: its levels, bounds and codes are data, and so is this list. Do not
publish either. Before a private run, go through every column:
- levels: all that could occur, also those that do not occur here, and none that only this data
  could tell; ordinal: from the lowest to the highest; categorical: no order;
- numeric: "lower" and "upper", and the edges of "bins", known without looking at the data;
- "missing": true where a cell could be missing, whether or not one is; a list adds the codes of the
  code book, such as [999];
- "ignore": true leaves a column out; "person": true (in the place of a type) says which rows
  belong to one person.
Then set "declared" to true. Do not edit or drop rows: in a private run the number of rows is
public, and a cell that does not fit is read by the domain's rule. Next:
  jaxcd check {file} --domain {out}
  jaxcd discover {file} --domain {out}{state} --epsilon 1 --delta 1e-6 --out report"""


def draft(
    file: OwnersTable,
    table: OwnersTableName = None,
    encoding: Encoding = "utf-8",
    out: Annotated[Path, option("Domain file to write.")] = Path("domain.json"),
    drop: Annotated[
        list[str] | None, option("Column to leave out; may be repeated.", metavar="NAME")
    ] = None,
    columns: Annotated[
        str | None,
        option(
            "Columns to keep, with commas between them; one with a comma, or a blank at an end, in "
            "double quotes: '\"a, b\",c'. The others are left out.",
            metavar="A,B",
        ),
    ] = None,
    force: Annotated[bool, option("Overwrite an existing file.", "--force")] = False,
) -> None:
    """Write a draft of the domain file that a private run needs, and list what is to be checked by
    hand; what this prints is NOT private.
    """
    if out.is_dir():
        raise OptionError(f"--out {str(out)!r} is a folder; give a file such as domain.json")
    if out.exists() and not force:
        raise OptionError(f"file {str(out)!r} exists; give another one, or --force to overwrite it")
    if out.exists() and file.exists() and out.samefile(file):
        raise OptionError(f"--out {str(out)!r} is the data file itself; give another one")
    from jaxcd.checks import counted
    from jaxcd.cli import tables
    from jaxcd.data.drafting import draft_of_columns

    only = None if columns is None else listed(columns)
    found = draft_of_columns(
        *tables.columns(file, table=table, encoding=encoding), drop=drop or (), only=only
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    found.domain.write(out)
    ignored = len(found.domain.ignored)
    tell(
        f"Wrote {out}: {counted(found.domain.n_columns, 'column')} of "
        f"{counted(found.n_samples, 'row')}"
        + (f", and {ignored} to be ignored" if ignored else "")
        + "."
    )
    if found.notes:
        tell("To be looked at:")
    for note in found.notes:
        about = f"{note.column}: " if note.column else ""
        tell(f"- {about}{note.words}.")
    words, state = quote(str(file)), ""
    if encoding.lower() != "utf-8":
        words += f" --encoding {quote(encoding)}"
    if tables.is_table(file, table=table, snapshot=None):
        words += "" if table is None else f" --table {quote(table)}"
        state = f" --rows {found.n_samples} --snapshot {date.today()}"
    tell(*_NEXT_STEPS.format(out=quote(str(out)), file=words, state=state).split("\n"))
