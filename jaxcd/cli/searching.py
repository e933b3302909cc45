"""``jaxcd search``: graphs of a release that has been paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jaxcd.cli.shared import (
    AsJson,
    ReleaseReading,
    argument,
    check_reading,
    check_release,
    number_option,
    option,
    whole_option,
)
from jaxcd.errors import OptionError

__all__ = ["search"]

_BY_TESTS = ("pc", "fci", "gfci")


def search(
    context: typer.Context,
    release: Annotated[
        Path, argument("Release file (.npz), as --release-out of `jaxcd discover` writes it.")
    ],
    algorithm: Annotated[
        str,
        option(
            "score (the best graph by the score that knows the noise); pc; fci (a PAG: there may "
            "be latent variables); gfci (a PAG from the best graph)."
        ),
    ] = "score",
    test: Annotated[
        str,
        option(
            "Of pc, fci and gfci: a test that the release answers. (Default: the release's usual.)"
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
    missing: ReleaseReading = None,
    confidence: Annotated[
        int, whole_option("Draws of a bootstrap that says how sure the edges are; 0 for none.")
    ] = 0,
    out: Annotated[Path | None, option("Folder for picture, graph and report.")] = None,
    force: Annotated[bool, option("Write into an existing folder.", "--force")] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, option("Print the graph only.", "--quiet")] = False,
) -> None:
    """Find a graph in a release: nothing more is spent, however often it is searched."""
    import jaxcd
    from jaxcd.cli import options, screen
    from jaxcd.data import Missing
    from jaxcd.decisions.associations import usual_test
    from jaxcd.discovery.greedy_fci import check_gfci
    from jaxcd.report import check_folder, write_report

    algorithm = algorithm.lower()
    if algorithm not in ("score", *_BY_TESTS):
        raise OptionError(
            f"--algorithm {algorithm!r} is unknown; use score, {', '.join(_BY_TESTS)}"
        )
    if algorithm == "score":
        for name, is_given in (
            ("--test", not options.is_auto(test)),
            ("--alpha", alpha is not None),
            ("--max-level", max_level is not None),
        ):
            if is_given:
                raise OptionError(
                    f"{name}: --algorithm score has no such option; drop it, or use --algorithm pc"
                )
    if not confidence >= 0:
        raise OptionError(
            f"--confidence {confidence} is no number of draws; use a whole number from 0, such as "
            "50"
        )
    if force and out is None:
        raise OptionError("--force overwrites the folder of --out; give one")
    if out is not None:
        check_folder(out, force=force)
    known = options.knowledge(knowledge)
    reading = None if missing is None else Missing.of(missing)
    check_release(release)
    bought = jaxcd.Release.load(release)
    check_reading(bought, missing)
    by_tests: dict[str, Any] = {}
    if algorithm in _BY_TESTS:
        level = 0.05 if alpha is None else alpha
        by_tests = {
            "test": options.test(test) or usual_test(bought),
            "key": None,
            "max_level": max_level,
            **({"alpha": level} if algorithm == "gfci" else {"decider": jaxcd.Threshold(level)}),
        }
        if algorithm == "gfci":
            check_gfci(bought.domain, known, what="--algorithm gfci", cure="use --algorithm fci")
    search_by: Any = jaxcd.search if algorithm == "score" else getattr(jaxcd, algorithm)
    run = search_by(bought, knowledge=known, missing=reading, **by_tests)
    if confidence:
        run = run.with_confidence(jaxcd.discovery.edge_confidence(bought, run, n_draws=confidence))
    # Written before anything is shown: nobody may read what is.
    if out is not None:
        write_report(run, out, truth=None, force=force, command=context.obj)
    if not (as_json or quiet):
        words = f"{algorithm}, with {by_tests['test'].name}" if by_tests else algorithm
        screen.show_search(release, bought, words, knowledge)
        screen.show_result(run)
        if out is not None:
            screen.show_files(out)
    elif not as_json:
        screen.show_graph(run)
    if as_json:
        screen.print_json(run, None, out)
    screen.warn(run)
