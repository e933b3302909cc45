"""The commands and their options.

Bad input ends with exit code 2 and one line of plain words on stderr, never with a traceback.  What
a program reads (``--json``) goes to stdout, and nothing else does then; progress and warnings go to
stderr.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from jaxcd.cli.auditing import audit
from jaxcd.cli.checking import check, verify
from jaxcd.cli.direction import direction
from jaxcd.cli.drafting import draft
from jaxcd.cli.effects import effect
from jaxcd.cli.federating import federate
from jaxcd.cli.ledger import ledger
from jaxcd.cli.privatize import privatize
from jaxcd.cli.searching import search
from jaxcd.cli.shared import (
    AsJson,
    Encoding,
    LedgerPath,
    MissingReading,
    MostRowsPerPerson,
    NoPrivacyFlag,
    PlannedAccounting,
    SimulatedNoiseFlag,
    TotalAccounting,
    TotalDelta,
    TotalEpsilon,
    TotalUnit,
    argument,
    number_option,
    option,
    tell,
    whole_option,
)
from jaxcd.errors import JaxcdError, OptionError, PrivacyWarning

__all__ = ["app", "main"]

_INTERRUPTED = 130  # 128 and the number of the signal, as shells have it

app = typer.Typer(
    name="jaxcd",
    help="Differentially private causal discovery.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 0, 2 for bad input, 130 when interrupted.

    Args:
        argv: the arguments after the program's name; None takes those of the process.
    """
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:  # closed by whoever called: nobody reads it, and the run goes on
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)
        # a name that the terminal cannot show must not end the run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once", PrivacyWarning)
            warnings.showwarning = _warn
            code = app(
                args=None if argv is None else list(argv),
                prog_name="jaxcd",
                standalone_mode=False,
                obj=shlex.join(["jaxcd", *(sys.argv[1:] if argv is None else argv)]),
            )
        sys.stdout.flush()
        if code == _INTERRUPTED:  # some versions of typer turn an interrupt into this code
            return _interrupted()
        return code if isinstance(code, int) else 0
    except JaxcdError as error:
        return _refuse(_in_options(str(error), _options_of(sys.argv[1:] if argv is None else argv)))
    except BrokenPipeError:
        _leave_stdout()  # whoever read it has gone
        return 1
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:  # it was stdout that took no more
            _leave_stdout()
        return _refuse(
            f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
        )
    except (KeyboardInterrupt, EOFError):
        return _interrupted()
    except Exception as error:
        # Usage errors and aborts of typer, whose classes have no public name in every version.
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            called = shlex.join(["jaxcd", *(sys.argv[1:] if argv is None else argv)[:1]])
            # typer names no context where a value is missing
            command = getattr(getattr(error, "ctx", None), "command_path", called)
            return _refuse(f"{error.format_message().rstrip('.')}; see {command} --help")
        if type(error).__name__ == "Abort":
            return _interrupted()
        raise


def _leave_stdout() -> None:
    """What waits to be written is dropped: the interpreter would fail once more when it closes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    label = "jaxcd: warning" if issubclass(category, PrivacyWarning) else category.__name__
    tell(*f"{label}: {message}".split("\n"), error=True)


_ARGUMENTS = (
    "accounting|algorithm|clip|encoding|force|latent|linear|max_rows_per_person|missing|"
    "outcome_level|unit"
)
_OTHERWISE = {"n_samples": "--rows", "n_draws": "--draws"}
"""Arguments whose options have other names."""


def _options_of(words: Sequence[str]) -> dict[str, str]:
    """Of the command that was called: the names of arguments, and the options that they are."""
    called: Any = typer.main.get_command(app)
    for word in words:
        if word not in getattr(called, "commands", {}):
            break
        called = called.commands[word]
    own = {each.name: max(each.opts, key=len) for each in called.params}
    return _OTHERWISE | {name: text for name, text in own.items() if text.startswith("--")}


def _in_options(message: str, options: Mapping[str, str]) -> str:
    """Arguments of Python, which the library's messages begin with or write as ``name=value``, as
    the options that they are here.
    """
    message = re.sub(
        rf"^({'|'.join(map(re.escape, options))})( = |(?=:| must\b| has\b))",
        lambda found: options[found[1]] + (" " if found[2] else ""),
        message,
    )
    message = re.sub(r"\bread_csv\(path, (.*?)\)", r"\1", message)
    message = re.sub("\\bAccounting\\.(\\w+)", lambda found: found[1].lower(), message)
    return re.sub(
        rf"\b({_ARGUMENTS})=(?:True\b|(['\"]?)(\w+)\2)",
        lambda found: " ".join(filter(None, ("--" + found[1].replace("_", "-"), found[3]))),
        message,
    )


def _refuse(message: str) -> int:
    tell(f"jaxcd: {' '.join(message.split())}", error=True)
    return 2


def _interrupted() -> int:
    print("jaxcd: interrupted", file=sys.stderr)
    return _INTERRUPTED


def _show_version(value: bool) -> None:
    if value:
        import jaxcd

        print(f"jaxcd {jaxcd.__version__}")
        raise typer.Exit


@app.callback()
def _jaxcd(
    version: Annotated[
        bool,
        option("Print the version and exit.", "--version", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass


@app.command()
def discover(
    context: typer.Context,
    file: Annotated[
        Path | None,
        argument(
            "Table: .csv, .tsv (also .gz) or .parquet.  Counted where they are, not read whole: a "
            "folder or 'pattern*.parquet', or a .duckdb file with --table."
        ),
    ] = None,
    table: Annotated[str | None, option("Of a .duckdb file: the table or view.")] = None,
    snapshot: Annotated[
        str | None, option("Of a table that is not read whole: which state it is, such as a date.")
    ] = None,
    domain: Annotated[
        Path | None, option("Domain file: the declared levels and bounds of FILE's columns.")
    ] = None,
    encoding: Encoding = "utf-8",
    network: Annotated[
        str | None,
        option("Built-in network to sample instead: cancer, earthquake, asia or survey."),
    ] = None,
    bif: Annotated[Path | None, option("BIF file of a network to sample instead.")] = None,
    rows: Annotated[
        int | None,
        whole_option(
            "Rows to sample from the network (default: 10000), or of a table that is not read "
            "whole."
        ),
    ] = None,
    epsilon: TotalEpsilon = None,
    delta: TotalDelta = None,
    max_rows_per_person: MostRowsPerPerson = None,
    accounting: TotalAccounting = None,
    unit: TotalUnit = None,
    ledger: LedgerPath = None,
    no_privacy: NoPrivacyFlag = False,
    hide: Annotated[
        list[str] | None,
        option(
            "Column of the network's sample to drop, as if nobody had measured it; may be repeated."
        ),
    ] = None,
    algorithm: Annotated[
        str,
        option(
            "auto (what `jaxcd recommend` says); pc; tree (PC guided by a tree); fci (a PAG: "
            "there may be latent variables); gfci (a release, and a PAG of it); "
            "release (noisy statistics, bought once and searched)."
        ),
    ] = "auto",
    linear: Annotated[
        bool,
        option(
            "Relations among numeric columns are known to be linear: auto may buy second moments.",
            "--linear",
        ),
    ] = False,
    latent: Annotated[
        bool,
        option("Columns may have common causes that are not in the data: find a PAG.", "--latent"),
    ] = False,
    test: Annotated[
        str,
        option(
            "auto, covariance-norm, pooled-covariance, kendall-tau, spearman, chi-square, "
            "g-test, fisher-z, stratified-ranks, stratified-tau, rcit, kci or gcm."
        ),
    ] = "auto",
    mechanism: Annotated[
        str,
        option(
            "auto, levelwise-gaussian, sparse-vector, sieve-and-examine, noisy-threshold, "
            "noisy-threshold-gaussian, exponential-select or threshold."
        ),
    ] = "auto",
    alpha: Annotated[
        float | None, number_option("Level of the tests, between 0 and 1. (Default: 0.05.)")
    ] = None,
    max_level: Annotated[
        int | None, whole_option("Largest set to condition on, from 0. (Default: no limit.)")
    ] = None,
    knowledge: Annotated[
        Path | None,
        option("JSON file with tiers, forbidden and required edges: what is known before."),
    ] = None,
    missing: MissingReading = "ignore",
    seed: Annotated[
        int,
        whole_option(
            "Seed of the network's sample, of simulated noise and of tests that draw; secure noise "
            "has none."
        ),
    ] = 0,
    simulated_noise: SimulatedNoiseFlag = False,
    clip: Annotated[
        bool,
        option(
            "Without privacy: move numbers outside declared bounds onto the bounds (a "
            "private run always does).",
            "--clip",
        ),
    ] = False,
    out: Annotated[Path | None, option("Folder for picture, graph and report.")] = None,
    release_out: Annotated[
        Path | None,
        option("File (.npz) for the release that was bought, to be searched again later."),
    ] = None,
    confidence: Annotated[
        int,
        whole_option(
            "Draws of a bootstrap that says how sure the edges found in a release are; 0 for none."
        ),
    ] = 0,
    force: Annotated[
        bool, option("Write into an existing folder, over an existing release.", "--force")
    ] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, option("Print the graph only.", "--quiet")] = False,
    progress: Annotated[
        bool | None,
        option("Show the levels on stderr. (Default: on a terminal.)", "--progress/--no-progress"),
    ] = None,
) -> None:
    """Discover a causal graph in a table, or in a sample from a network."""
    from jaxcd.cli import options, paid, running, screen
    from jaxcd.data import Missing
    from jaxcd.privacy import Budget
    from jaxcd.queries.door import check_unit
    from jaxcd.report import check_folder, write_report

    today = datetime.date.today().isoformat()  # before the data is read
    # Everything that can be refused is refused before the data is read, and so before anything is
    # spent.
    if force and out is None and release_out is None:
        raise OptionError(
            "--force overwrites the folder of --out or the file of --release-out; give one of them"
        )
    if out is not None:
        check_folder(out, force=force)
    running.check_release_out(release_out, force=force)
    paid.check_apart(
        {"--out": out, "--release-out": release_out},
        {
            "FILE": file,
            "--domain": domain,
            "--bif": bif,
            "--ledger": ledger,
            "--knowledge": knowledge,
        },
        report=out,
    )
    budget = options.budget(
        epsilon=epsilon,
        delta=delta,
        no_privacy=no_privacy,
        simulated_noise=simulated_noise,
        max_rows_per_person=max_rows_per_person,
        accounting=accounting,
        unit=unit,
    )
    total = options.ledger(ledger, budget=budget)
    asked = running.Asked(
        algorithm=options.algorithm(algorithm),
        test=test,
        mechanism=mechanism,
        alpha=alpha,
        max_level=max_level,
        linear=linear,
        latent=latent,
        release_out=release_out,
        n_confidence_draws=confidence,
    )
    asked.check()
    options.check_seed(seed)
    known = options.knowledge(knowledge)
    source = options.Source(
        file=file,
        domain=domain,
        network=network,
        bif=bif,
        rows=rows,
        seed=seed,
        clip=clip,
        hide=tuple(hide or ()),
        table=table,
        snapshot=snapshot,
        encoding=encoding,
    )
    reading = Missing.of(missing)
    loaded = source.load(budget=budget, pag=asked.finds_pag)
    loaded = dataclasses.replace(loaded, data=loaded.data.reading(reading))
    if isinstance(budget, Budget):  # before anything is said of the rows
        check_unit(loaded.data, budget, by_person=True)
    plan = running.plan(loaded, asked, budget=budget, knowledge=known)
    noise, key = options.randomness(seed=seed, simulated=simulated_noise)
    talkative = not (as_json or quiet)
    if talkative:
        screen.show_plan(loaded, budget, plan, noise, knowledge)
    shown = sys.stderr.isatty() and not quiet if progress is None else progress
    # FCI goes through the levels twice: how far that is nobody knows.
    progress_bar = screen.Progress(shown, max_level=None if asked.finds_pag else max_level)
    with paid.kept(release_out) as bought:
        with progress_bar as bar:
            run = running.run(
                loaded,
                plan,
                asked,
                budget=budget,
                key=key,
                noise=noise,
                ledger=total,
                knowledge=known,
                progress=bar.report,
            )
        if release_out is not None:
            bought.where = f"what it bought is in {release_out}"
        # What was paid for is written and shown, and whichever fails does not take the other with
        # it.
        try:
            if out is not None:
                write_report(
                    run, out, truth=loaded.truth, force=force, command=context.obj, date=today
                )
                bought.where = bought.where or f"its result is in {out}"
        finally:
            if talkative:
                screen.show_result(run, loaded, told=plan.warnings)
            elif quiet and not as_json:
                screen.show_graph(run)
        if talkative and out is not None:
            screen.show_files(out)
        if talkative and release_out is not None:
            screen.show_release(release_out)
        if as_json:
            screen.print_json(run, loaded, out)
        screen.warn(run)


app.command()(search)
app.command()(effect)
app.command()(federate)
app.command()(direction)


@app.command()
def recommend(
    domain: Annotated[Path | None, option("Domain file: the declared levels and bounds.")] = None,
    network: Annotated[
        str | None, option("Built-in network instead: cancer, earthquake, asia or survey.")
    ] = None,
    bif: Annotated[Path | None, option("BIF file of a network instead.")] = None,
    rows: Annotated[
        int | None,
        whole_option("Number of rows, which is public; with --unit person that of people."),
    ] = None,
    epsilon: Annotated[float | None, number_option("Total epsilon, positive.")] = None,
    delta: TotalDelta = None,
    max_rows_per_person: MostRowsPerPerson = None,
    accounting: PlannedAccounting = None,
    unit: TotalUnit = None,
    no_privacy: Annotated[bool, option("Without a budget.", "--no-privacy")] = False,
    linear: Annotated[
        bool, option("Relations among numeric columns are known to be linear.", "--linear")
    ] = False,
    latent: Annotated[
        bool,
        option("Columns may have common causes that are not in the data: find a PAG.", "--latent"),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say which method suits a domain, a number of rows and a budget, and why; no data is read."""
    import jaxcd
    from jaxcd.cli import options, screen
    from jaxcd.queries.door import check_declared_unit

    budget = options.budget(
        epsilon=epsilon,
        delta=delta,
        no_privacy=no_privacy,
        simulated_noise=False,
        max_rows_per_person=max_rows_per_person,
        accounting=accounting,
        unit=unit,
    )
    declared, n_samples = options.public_facts(
        domain=domain, network=network, bif=bif, rows=rows, private=not no_privacy
    )
    if isinstance(budget, jaxcd.Budget) and domain is not None:  # what discover would refuse
        has_people = declared.person is not None
        check_declared_unit(declared, budget, has_people=has_people, by_person=True)
    found = jaxcd.recommend(declared, n_samples, budget=budget, linear=linear, latent=latent)
    if as_json:
        screen.print_recommendation(found)
    else:
        tell(*str(found).split("\n"))


app.command()(privatize)
app.command(name="ledger")(ledger)
app.command()(verify)
app.command()(audit)
app.command()(check)
app.command(name="domain")(draft)


@app.command()
def guarantees(
    as_json: Annotated[bool, option("Print a JSON list and nothing else.", "--json")] = False,
) -> None:
    """List every mechanism and test: what it claims, and whether that is proved."""
    import jaxcd
    from jaxcd.cli import screen

    if as_json:
        print(
            json.dumps(
                [dataclasses.asdict(guarantee) for guarantee in jaxcd.guarantees()], indent=2
            )
        )
    else:
        screen.show_guarantees(jaxcd.guarantees())
