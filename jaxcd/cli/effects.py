"""``jaxcd effect``: how much one column changes another, from a release that has been paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from jaxcd.cli.shared import (
    AsJson,
    ReleaseReading,
    argument,
    check_reading,
    check_release,
    listed,
    number_option,
    option,
    tell,
    whole_option,
)
from jaxcd.errors import FormatError, JaxcdError, OptionError
from jaxcd.places import check_there

__all__ = ["effect"]


def effect(
    release: Annotated[
        Path, argument("Release file (.npz), as --release-out of `jaxcd discover` writes it.")
    ],
    treatment: Annotated[str, option("The column that is set.")],
    outcome: Annotated[str, option("The column that is looked at.")],
    graph: Annotated[
        Path | None,
        option(
            "graph.json of a run, its graph.dot, or a BIF network (.bif): DAG, CPDAG or "
            "PAG. (Default: graphs found in the release.)"
        ),
    ] = None,
    levels: Annotated[
        str | None,
        option(
            "FROM,TO: the two levels to compare; one with a comma in double quotes: '\"a, b\",c'. "
            "(Default: the two levels there are.)"
        ),
    ] = None,
    outcome_level: Annotated[
        str | None, option("The level of the outcome whose probability is looked at.")
    ] = None,
    level: Annotated[float, number_option("Of the interval, between 0 and 1.")] = 0.95,
    draws: Annotated[
        int | None,
        whole_option("Without --graph: how often graphs are drawn anew, from 0. (Default: 20.)"),
    ] = None,
    latent: Annotated[
        bool,
        option(
            "The graph of --graph is a PAG even if all its edges are -->; in the folder of its "
            "run, and where it has a circle or <->, that is known.",
            "--latent",
        ),
    ] = False,
    knowledge: Annotated[
        Path | None,
        option(
            "JSON file of what is known of the graph; not with --graph, which is taken as it is."
        ),
    ] = None,
    missing: ReleaseReading = None,
    plot: Annotated[Path | None, option("Image file for a forest plot (.png, .svg, .pdf).")] = None,
    as_json: AsJson = False,
) -> None:
    """How much one column changes another: an estimate and an interval; nothing more is spent."""
    import json

    import jaxcd
    from jaxcd.cli import options, screen
    from jaxcd.places import check_new_file

    check_release(release)
    if plot is not None:
        if plot.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise OptionError(f"--plot {str(plot)!r}: give a file that ends in .png, .svg or .pdf")
        check_new_file("--plot", plot, force=True, cure="one such as effect.png")
    for name, value in (("--knowledge", knowledge), ("--draws", draws)):
        if graph is not None and value is not None:
            raise OptionError(
                f"{name}: the graph of --graph is taken as it is; drop one of the two"
            )
    if latent and graph is None:
        raise OptionError(
            "--latent: it says what the graph of --graph is; give one, such as that of "
            "jaxcd search --algorithm gfci"
        )
    given = None if graph is None else _read(graph)
    bought = jaxcd.Release.load(release)
    check_reading(bought, missing)
    found = jaxcd.effect(
        bought,
        treatment=treatment,
        outcome=outcome,
        graph=given,
        levels=_levels(levels),
        outcome_level=outcome_level,
        level=level,
        missing=missing,
        latent=latent,
        knowledge=options.knowledge(knowledge),
        n_draws=20 if draws is None else draws,
    )
    if plot is not None:
        found.plot(plot)
    screen.warn_of(found.cost)
    if as_json:
        print(json.dumps(found.to_json_dict(), ensure_ascii=False, allow_nan=False, indent=2))
        return
    tell(found.sentence)
    if found.adjustment:
        tell(f"Held fixed: {', '.join(found.adjustment)}.")
    if len(found.possible) > 1:
        tell(_listing(found))
        for one in found.possible:
            share = "" if found.n_graphs == 1 else f", in {one.share:.0%} of the graphs"
            interval = f"({one.low:+.4g} to {one.high:+.4g})"
            tell(f"  {one.estimate:+.4g}  {interval}  {_held(one)}{share}")
    tell(f"This takes for granted: {'; '.join(found.assumptions)}.")
    for words in found.warnings:
        tell(f"Warning: {words}.")
    tell("Nothing more was spent: effects are computed from numbers that have been released.")


def _listing(found: Any) -> str:
    """What the list of several effects is of."""
    if found.n_graphs > 1:
        return (
            f"Possible effects, and the share of the {found.n_graphs} graphs that allow each; a "
            "graph may leave several open:"
        )
    if found.is_open:
        return "Effects that some graphs of its class tell; others leave it open:"
    return "Possible effects; the graph leaves open which of them is right:"


def _held(one: Any) -> str:
    if one.adjustment is None:
        return "no effect" if one.low == one.high else "not measured"
    return f"holding {', '.join(one.adjustment) or 'nothing'} fixed"


def _levels(text: str | None) -> tuple[Any, Any] | None:
    if text is None:
        return None
    parts = listed(text)
    if len(parts) != 2:
        raise OptionError(
            f"--levels {text!r}: give two levels with a comma between, FROM,TO; one that has a "
            "comma itself in double quotes"
        )
    return parts[0], parts[1]


def _read(path: Path) -> Any:
    from jaxcd.data.networks import read_bif
    from jaxcd.discovery import DiscoveryResult
    from jaxcd.graphs import from_dot, from_json_dict
    from jaxcd.json_files import parsed, read_text

    check_there(
        path, name="--graph", wanted="a graph.json, a .dot or a .bif file", of="graph.[bdj]*"
    )
    if path.name.endswith((".bif", ".bif.gz")):
        return read_bif(path).dag
    try:
        text = read_text(path, "file")
        graph = from_dot(text) if path.suffix == ".dot" else from_json_dict(parsed(text))
    except FormatError as error:
        raise FormatError(
            f"--graph {str(path)!r}: not a graph that can be read; give the graph.json or the "
            f"graph.dot of a run, or a .bif file ({error})"
        ) from None
    try:
        run = DiscoveryResult.load(path.parent)
    except JaxcdError:  # no run's folder
        return graph
    return run if run.graph == graph else graph
