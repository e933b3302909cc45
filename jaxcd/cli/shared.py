"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def option(words: str, *names: str, **more: Any) -> Any:
    """An option and its help; what is None unless it is given has no default to show."""
    return typer.Option(*names, help=words, **more)


def argument(words: str) -> Any:
    """An argument and its help."""
    return typer.Argument(help=words, show_default=False)


AsJson = Annotated[bool, option("Print one JSON object and nothing else.", "--json")]
DomainFile = Annotated[
    Path, option("Domain file: the declared levels and bounds of FILE's columns.")
]
File = Annotated[Path, argument("Table: .csv, .csv.gz or .parquet.")]
LedgerPath = Annotated[
    Path | None, option("Ledger file that the run is charged to as well (see `jaxcd ledger`).")
]
MissingReading = Annotated[
    str,
    option(
        "How missing cells are read that the domain declares: ignore (left out) or level (a level "
        "of its own)."
    ),
]
NoPrivacyFlag = Annotated[bool, option("Run without a budget.", "--no-privacy")]
SimulatedNoiseFlag = Annotated[
    bool,
    option(
        "Repeatable noise, for experiments: the result is not for release.", "--simulated-noise"
    ),
]
TotalAccounting = Annotated[
    str | None,
    option(
        "How costs add up where there is a delta: zcdp, or gaussian, which leaves more for "
        "Gaussian noise and less for other. (Default: the ledger's, else gaussian for releases and "
        "for tests with Gaussian noise.)"
    ),
]
MostRowsPerPerson = Annotated[
    int | None,
    option("Most rows that one person has; the budget then holds for a person. (Default: 1.)"),
]
TotalUnit = Annotated[
    str | None,
    option(
        "Whom the budget protects: row, or person, with however many rows (the domain file says "
        "which column tells people apart). (Default: row.)"
    ),
]
TotalDelta = Annotated[
    float | None, option("Total delta, from 0, far below 1 / rows. (Default: 0.)")
]
TotalEpsilon = Annotated[
    float | None, option("Total epsilon, positive; fixed before the data is read.")
]
