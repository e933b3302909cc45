"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
DomainFile = Annotated[
    Path,
    typer.Option(
        help="Domain file: the declared levels and bounds of FILE's columns.", show_default=False
    ),
]
File = Annotated[Path, typer.Argument(help="Table: .csv, .csv.gz or .parquet.", show_default=False)]
LedgerPath = Annotated[
    Path | None,
    typer.Option(
        help="Ledger file that the run is charged to as well (see `jaxcd ledger`).",
        show_default=False,
    ),
]
NoPrivacyFlag = Annotated[bool, typer.Option("--no-privacy", help="Run without a budget.")]
SimulatedNoiseFlag = Annotated[
    bool,
    typer.Option(
        "--simulated-noise",
        help="Repeatable noise, for experiments: the result is not for release.",
    ),
]
TotalDelta = Annotated[
    float | None,
    typer.Option(help="Total delta, from 0, far below 1 / rows. (Default: 0.)", show_default=False),
]
TotalEpsilon = Annotated[
    float | None,
    typer.Option(
        help="Total epsilon, positive; fixed before the data is read.", show_default=False
    ),
]
