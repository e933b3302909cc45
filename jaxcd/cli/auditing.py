"""``jaxcd audit``: every claim attacked, and planted bugs found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from jaxcd.cli.shared import AsJson, option

__all__ = ["audit"]


def audit(
    quick: Annotated[bool, option("Fewer trials and draws.", "--quick")] = False,
    only: Annotated[
        str, option("Run the checks whose names hold these words, such as 'Histogram'.")
    ] = "",
    no_planted_bugs: Annotated[bool, option("Do not plant bugs.", "--no-planted-bugs")] = False,
    out: Annotated[Path | None, option("Folder for audit.json and audit.svg.")] = None,
    as_json: AsJson = False,
) -> None:
    """Attack every privacy claim of this installation; no data of yours is read.

    Constants are compared with the farthest that a search moves them, every search and release is
    replayed on neighbouring data, the noise is tested against its law, published mechanisms that
    are known to be broken must be caught, and bugs are planted that must be found.  About five
    minutes on two cores.  Exit code 1 if a claim is broken or a bug is missed, else 0.
    """
    from jaxcd.audit import picture, run_audit
    from jaxcd.places import written_whole
    from jaxcd.report import check_folder

    if out is not None:  # before minutes of work
        check_folder(out, force=True)
    found = run_audit(
        quick=quick,
        only=only,
        planted_bugs=not no_planted_bugs,
        progress=lambda name: typer.echo(name, err=True),
    )
    if not found.findings:
        raise typer.BadParameter(f"no check has {only!r} in its name", param_hint="--only")
    records = {"holds": found.holds, "findings": found.records()}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with written_whole(out / "audit.json") as draft:
            draft.write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")
        with written_whole(out / "audit.svg") as draft:
            picture(found, draft)
    print(json.dumps(records, indent=2) if as_json else found.table())
    if not found.holds:
        raise typer.Exit(1)
