"""``jaxcd federate``: several owners' tables, one release, a process a site.

The coordinator's process reads no table: each site's process reads its own, and they exchange the
messages of :mod:`jaxcd.federated.messages` over pipes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jaxcd.cli.shared import (
    AsJson,
    DomainFile,
    Encoding,
    MostRowsPerPerson,
    SimulatedNoiseFlag,
    TotalDelta,
    TotalEpsilon,
    argument,
    number_option,
    option,
    tell,
    whole_option,
)
from jaxcd.errors import OptionError

if TYPE_CHECKING:
    from jaxcd.federated import Coordinator, Federation

__all__ = ["federate"]

_KINDS = {"histogram": "Histogram", "marginals": "Marginals", "log-linear": "LogLinear"}


def federate(
    files: Annotated[
        list[Path], argument("Tables of the sites: two or more; a site goes by its file's name.")
    ],
    domain: DomainFile,
    out: Annotated[Path, option("File (.npz) for the release, to be searched as any other.")],
    encoding: Encoding = "utf-8",
    epsilon: TotalEpsilon = None,
    delta: TotalDelta = None,
    max_rows_per_person: MostRowsPerPerson = None,
    kind: Annotated[
        str,
        option(
            "auto (histogram for up to 8,192 cells, else marginals); histogram; marginals; "
            "log-linear. All but histogram need --delta."
        ),
    ] = "auto",
    dropouts: Annotated[int, whole_option("So many sites may fail to start or to answer.")] = 0,
    colluding: Annotated[
        int, whole_option("So many sites may tell the coordinator all that they know.")
    ] = 0,
    site_column: Annotated[
        str | None, option("Name of a column for the site, which is then a context of the release.")
    ] = None,
    ledgers: Annotated[
        Path | None,
        option(
            "Folder of the sites' ledger files, SITE.ledger. Folder and files are made; one that "
            "is there must have been made with --accounting zcdp, or without a delta."
        ),
    ] = None,
    report: Annotated[
        Path | None, option("File (JSON) for adversary, rounds, bytes and notes of the run.")
    ] = None,
    timeout: Annotated[float, number_option("Seconds to wait for a site.")] = 600.0,
    simulated_noise: SimulatedNoiseFlag = False,
    seed: Annotated[int, whole_option("Seed of simulated noise; secure noise has none.")] = 0,
    force: Annotated[bool, option("Write over existing files.", "--force")] = False,
    as_json: AsJson = False,
) -> None:
    """Buy one release of several owners' tables, none of which leaves its process."""
    import jax

    import jaxcd
    from jaxcd.cli import options, paid, screen
    from jaxcd.data.readers import text_encoding
    from jaxcd.federated import Coordinator, Federation, ProcessLine, SiteFile, with_site_column
    from jaxcd.places import written_whole

    names = _names(files)
    charged_to = {} if ledgers is None else {name: ledgers / f"{name}.ledger" for name in names}
    _check_files(files, domain, out, report, ledgers, charged_to, force=force)
    options.check_seed(seed, has_use=simulated_noise)
    budget: Any = options.budget(
        epsilon=epsilon,
        delta=delta,
        no_privacy=False,
        simulated_noise=simulated_noise,
        max_rows_per_person=max_rows_per_person,
    )
    federation = Federation(names, budget, dropouts=dropouts, colluding=colluding)
    declared = options.domain_of(domain)
    if site_column is not None:
        declared = with_site_column(declared, names, column=site_column)
    chosen = _kind(kind, declared)
    chosen.check(declared, 1)
    noise = jaxcd.SimulatedNoise(jax.random.key(seed)) if simulated_noise else None
    sites = [
        SiteFile(
            name,
            path,
            domain,
            federation,
            site_column,
            charged_to.get(name),
            seed if simulated_noise else None,
            text_encoding(encoding),
        )
        for name, path in zip(names, files, strict=True)
    ]
    if ledgers is not None:
        ledgers.mkdir(parents=True, exist_ok=True)
    lines = {site.name: ProcessLine(site) for site in sites}
    try:
        # Until each has read its rows.  One that cannot was charged nothing and has sent nothing.
        absent = {name: wrong for name, line in lines.items() if (wrong := line.wait(timeout))}
        coordinator = Coordinator(federation, declared, lines, timeout=timeout, absent=absent)
        with paid.kept():
            bought = coordinator.release(chosen, noise=noise)
            bought.save(out)
    finally:
        for line in lines.values():
            line.close()
    cost = bought.cost
    found = {
        "release": str(out),
        "kind": bought.kind,
        "proven": cost.proven,
        "reason": cost.reason,
        **coordinator.report(),
    }
    if report is not None:
        with written_whole(report) as draft:
            draft.write_text(
                json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        _show(bought, coordinator, federation, out)
    screen.warn_of(cost)


def _show(bought: Any, coordinator: Coordinator, federation: Federation, out: Path) -> None:
    from jaxcd.checks import counted

    found = coordinator.report()
    largest = max((max(part["bytes"].values()) for part in found["rounds"]), default=0)
    tell(
        f"release    {bought.kind}, {counted(bought.n_samples, 'row')} of {len(found['sites'])} "
        "sites"
    )
    tell(f"guarantee  {bought.cost}")
    tell(f"adversary  {federation.words}")
    tell(f"           secure aggregation {found['secure_aggregation']}")
    tell(
        f"noise      of {federation.n_shares} of {len(federation.sites)} sites is enough: "
        f"{federation.dropouts} may be absent, {federation.colluding} may collude"
    )
    tell(f"rounds     {len(found['rounds'])}, at most {counted(largest, 'byte')} a site and round")
    for note in found["notes"]:
        tell(f"note       {note}")
    tell(f"written    {out}: jaxcd search {out}")


def _check_files(
    files: list[Path],
    domain: Path,
    out: Path,
    report: Path | None,
    ledgers: Path | None,
    charged_to: Mapping[str, Path],
    *,
    force: bool,
) -> None:
    from jaxcd.cli.paid import check_apart
    from jaxcd.places import check_new_file, check_there
    from jaxcd.report.files import check_folder

    for path in (*files, domain):
        check_there(path)
    check_new_file("--out", out, force=force, option="--force", cure="one such as release.npz")
    if report is not None:
        check_new_file("--report", report, force=force, option="--force", cure="run.json")
    inputs = {f"the table {path.name}": path for path in files}
    charged = {f"the ledger of site {name!r}": path for name, path in charged_to.items()}
    check_apart({"--out": out, "--report": report}, {**inputs, "--domain": domain, **charged})
    if ledgers is not None:
        try:
            check_folder(ledgers, force=True)
        except OptionError as error:
            raise OptionError(f"--ledgers: {error}") from None


def _names(files: list[Path]) -> tuple[str, ...]:
    names = tuple(path.name.split(".")[0] for path in files)
    if len(set(names)) < len(names):
        raise OptionError(
            f"FILES: sites go by their files' names, and {', '.join(sorted(names))} are not all "
            "different; rename a file"
        )
    return names


def _kind(word: str, declared: Any) -> Any:
    import jaxcd
    from jaxcd.errors import DomainError

    key = word.lower()
    if key == "auto":
        try:
            jaxcd.Histogram().check(declared, 1)
        except DomainError:
            return jaxcd.Marginals()
        return jaxcd.Histogram()
    if key not in _KINDS:
        raise OptionError(f"--kind {word!r} is unknown; use auto, {', '.join(_KINDS)}")
    return getattr(jaxcd, _KINDS[key])()
