"""``jaxcd check`` (cells that fit no declaration) and ``jaxcd verify`` (prices that follow from the
noise).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from jaxcd.cli.shared import (
    AsJson,
    DomainFile,
    Encoding,
    OwnersTable,
    OwnersTableName,
    argument,
    tell,
)

__all__ = ["check", "verify"]


def check(
    file: OwnersTable,
    domain: DomainFile,
    table: OwnersTableName = None,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
) -> None:
    """List the cells that fit no declaration, for the owner of the data: what this prints is NOT
    private.

    A private run never fails on a cell: it reads such a cell as the column's "other", and a number
    beyond a bound as the bound. Exit code 1 if there is such a cell, a row that is not written as
    the header says, or a column that only one of the file and the domain has, else 0.
    """
    import jaxcd
    from jaxcd.cli import tables
    from jaxcd.data.checking import check_columns

    declared = jaxcd.Domain.read(domain)
    read = tables.columns(file, table=table, encoding=encoding)
    found = check_columns(*read, domain=declared)
    if as_json:
        print(json.dumps(found.to_json_dict(), indent=2, allow_nan=False))
    else:
        tell(*str(found).split("\n"))
    if not found.clean:
        raise typer.Exit(1)


def verify(
    file: Annotated[
        Path, argument("privacy.json, the guarantee file of `jaxcd privatize`, or a ledger file.")
    ],
    as_json: AsJson = False,
) -> None:
    """Compute every price of a certificate again from its sensitivities and scales, and the total
    with Google's dp-accounting.

    Exit code 1 if a check fails, else 0.
    """
    import jaxcd

    found: Any = jaxcd.verify(file)
    if as_json:
        checks = [
            {"what": part.what, "holds": part.holds, "words": part.words} for part in found.checks
        ]
        print(
            json.dumps(
                {
                    "holds": found.holds,
                    "proven": found.proven,
                    "claim": found.claim,
                    "reason": found.reason,
                    "checks": checks,
                },
                indent=2,
            )
        )
    else:
        tell(*str(found).split("\n"))
    if not found.holds:
        raise typer.Exit(1)
