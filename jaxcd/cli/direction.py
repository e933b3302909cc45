"""``jaxcd direction``: which of two columns causes the other."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jaxcd.cli.shared import (
    AsJson,
    Encoding,
    File,
    LedgerPath,
    MostRowsPerPerson,
    NoPrivacyFlag,
    SimulatedNoiseFlag,
    TotalEpsilon,
    check_one_file,
    number_option,
    option,
    tell,
    whole_option,
)
from jaxcd.errors import DataError, DomainError, OptionError, PrivacyError, SensitivityError

if TYPE_CHECKING:
    import numpy as np

    from jaxcd.pairwise import PairResult

__all__ = ["direction"]

METHODS = ("anm", "reci", "igci", "cds")
NOT_PRIVATE = ("igci", "cds")
NO_EVIDENCE = "no evidence for either"
SCORES = {
    "hsic": "HSICScore",
    "spearman": "SpearmanScore",
    "kendall": "KendallScore",
    "iqr": "LogIQRScore",
}

# Of every private run, whatever the cells are (PRIVACY.md S).
_OTHER_CELLS = (
    'what is no number counts as the domain\'s "other", else as the middle of the bounds, and a '
    "column of text so as a constant; it is not checked here, which would tell of records: "
    "`jaxcd check` tells their owner"
)

_Bounds = tuple[tuple[float, float], tuple[float, float]]


def direction(
    file: File,
    x: Annotated[str | None, option("Name of one column of numbers.")] = None,
    y: Annotated[str | None, option("Name of the other column.")] = None,
    method: Annotated[str, option("anm, reci, or without privacy also igci or cds.")] = "anm",
    epsilon: TotalEpsilon = None,
    max_rows_per_person: MostRowsPerPerson = None,
    no_privacy: NoPrivacyFlag = False,
    bounds: Annotated[
        tuple[float, float, float, float] | None,
        number_option(
            "Lowest and highest value of x, then of y, known without the data; values beyond "
            "them are clipped.",
            metavar="X_LOW X_HIGH Y_LOW Y_HIGH",
        ),
    ] = None,
    domain: Annotated[
        Path | None, option("Domain file with the bounds, instead of --bounds.")
    ] = None,
    encoding: Encoding = "utf-8",
    score: Annotated[
        str | None, option("Of anm: hsic, spearman, kendall or iqr. (Default: hsic.)")
    ] = None,
    protect: Annotated[
        str | None,
        option(
            "Of a private anm, whose rows the guarantee is about: both (all rows), or test "
            "(half of them, for data whose "
            "other half is public: the seed says which). (Default: both.)"
        ),
    ] = None,
    seed: Annotated[
        int, whole_option("Public seed of the split into halves, and of simulated noise.")
    ] = 0,
    error_rate: Annotated[
        float,
        number_option(
            "Of pairs of which neither causes the other, the share that may get a direction "
            "(measured on 81 public pairs); 1 always names one."
        ),
    ] = 0.1,
    simulated_noise: SimulatedNoiseFlag = False,
    ledger: LedgerPath = None,
    certificate_out: Annotated[
        Path | None, option("File for the certificate, which `jaxcd verify` checks.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which of two columns causes the other, or that there is no evidence for either.

    Both must be numbers, and no ids or dates: the domain says what they are. In a private run a
    cell that is no number counts as the domain's "other", else as the middle of
    the bounds: saying where it stands would tell of a record. So a column of text counts as a
    constant, is paid for, and is not refused; `jaxcd check FILE --domain FILE` tells the owner of
    the rows before.
    """
    from jaxcd.cli import options, paid
    from jaxcd.pairwise import or_neither

    if x is None or y is None or x == y:
        raise OptionError(
            "--x and --y must name two different columns; give both, such as --x dose --y response"
        )
    if method not in METHODS:
        raise OptionError(f"--method {method!r} is unknown; use {', '.join(METHODS)}")
    budget = options.budget(
        epsilon=epsilon,
        delta=None,
        no_privacy=no_privacy,
        simulated_noise=simulated_noise,
        max_rows_per_person=max_rows_per_person,
    )
    _check(
        method,
        score=score,
        protect=protect,
        private=not no_privacy,
        bounds=bounds is not None,
        domain=domain is not None,
    )
    if not 1 / 82 <= error_rate <= 1:
        raise OptionError(
            f"--error-rate {error_rate:g} is not between 0.0122 and 1: 81 pairs tell no smaller "
            "one; give 0.1"
        )
    options.check_seed(seed)
    declared = _declared(
        bounds, domain, x=x, y=y, private=not no_privacy, several=max_rows_per_person is not None
    )
    bounded = declared is not None and all(column.is_bounded for column in declared)
    known = (_edges(declared[0]), _edges(declared[1])) if declared and bounded else None
    paid.check_certificate_out(certificate_out)
    total = options.ledger(ledger, budget=budget)
    noise, key = options.randomness(seed=seed, simulated=simulated_noise)
    check_one_file(file)
    columns, left_out = _columns(
        file, x, y, declared=declared, private=not no_privacy, encoding=encoding
    )
    with paid.kept():
        named = _run(
            method,
            columns,
            budget=budget,
            known=known,
            noise=noise,
            ledger=total,
            key=key,
            score=score or "hsic",
            protect=protect or "both",
        )
        result = or_neither(named, error_rate=error_rate)
        # What was paid for is told twice, and whichever fails does not take the other with it.
        try:
            if certificate_out is not None:
                paid.write_certificate(result, certificate_out)
        finally:
            if as_json:
                print(json.dumps(_content(result, named, x, y), indent=2, allow_nan=False))
            else:
                _show(
                    result,
                    named,
                    x,
                    y,
                    file=file,
                    n=len(columns[0]),
                    left_out=left_out,
                    private=not no_privacy,
                    secure=noise is None,
                )
    if not no_privacy and not result.cost.proven:
        tell(f"jaxcd: warning: this result is not for release: {result.cost.reason}", error=True)


def _check(
    method: str,
    *,
    score: str | None,
    protect: str | None,
    private: bool,
    bounds: bool,
    domain: bool,
) -> None:
    """What can be refused before the file is opened, in the words of the command line."""
    if score is not None and score not in SCORES:
        raise OptionError(f"--score {score!r} is unknown; use {', '.join(SCORES)}")
    if protect not in (None, "both", "test"):
        raise OptionError(f"--protect {protect!r} is unknown; use both or test")
    for name, value in (("--score", score), ("--protect", protect)):
        if value is not None and method != "anm":
            raise OptionError(
                f"{name}: --method {method} has no such option; drop it, or use --method anm"
            )
    if protect is not None and not private:
        raise OptionError(
            "--protect: a run with --no-privacy protects no rows; drop one of the two"
        )
    if private and method in NOT_PRIVATE:
        raise SensitivityError(
            f"--method {method}: one record can move its score without a useful bound, so it has "
            "no private form; use anm or "
            "reci, or --no-privacy"
        )
    if method in NOT_PRIVATE and bounds:
        raise OptionError(
            f"--bounds: --method {method} scales by the data and has no bounds; drop it"
        )
    if private and score in ("spearman", "kendall") and protect != "test":
        raise SensitivityError(
            f"--score {score}: one training row can reorder all residuals, so no noise protects "
            "all rows; use hsic or iqr, or "
            "--protect test where the other half is public"
        )
    if private and not (bounds or domain):
        raise PrivacyError(
            "--bounds is missing: bounds taken from the data would void the guarantee; give "
            "--bounds X_LOW X_HIGH Y_LOW Y_HIGH "
            "from general knowledge, or --domain FILE, or --no-privacy"
        )


def _edges(column: Any) -> tuple[float, float]:
    return float(column.lower), float(column.upper)


def _declared(
    given: tuple[float, float, float, float] | None,
    domain: Path | None,
    *,
    x: str,
    y: str,
    private: bool,
    several: bool,
) -> tuple[Any, Any] | None:
    """The two columns as declared, in a private run with bounds; None where nothing is given.

    Where the domain says that a person may have several rows, a private run must say how many
    (``several``).
    """
    import jaxcd
    from jaxcd.checks import shown_list
    from jaxcd.cli import options

    if given is not None and domain is not None:
        raise OptionError("--bounds and --domain both give bounds; drop one of the two")
    if given is not None:
        edges = (given[0], given[1]), (given[2], given[3])
        for name, (lower, upper) in zip((x, y), edges, strict=True):
            if not (math.isfinite(upper - lower) and lower < upper):
                raise OptionError(
                    f"--bounds of {name!r} = {lower:g} {upper:g} are not finite and in order; "
                    "give the lowest value first"
                )
        return jaxcd.Numeric(*edges[0]), jaxcd.Numeric(*edges[1])
    if domain is None:
        return None
    declared = options.domain_of(domain, declared=private)
    if private and declared.person is not None and not several:
        raise PrivacyError(
            f"--domain: {str(domain)!r} says by column {declared.person!r} that a person may have "
            "several rows, and --epsilon would protect one of them; give --max-rows-per-person K, "
            'the most that one person has, or mark the column "ignore": true if one row is what '
            "has to be protected"
        )
    found = []
    for name in (x, y):
        if name not in declared.names:
            raise DomainError(
                f"--domain: {str(domain)!r} declares no column {name!r} that may be analysed (an "
                "id, a date or a text has no bounds); choose one of "
                f"{shown_list(declared.names)}"
            )
        column: Any = declared[name]
        if column.is_discrete:
            raise DomainError(
                f"--domain: {str(domain)!r} declares {name!r} as {column.kind}, and a direction is "
                "for numbers; choose a numeric column, or declare its bounds if it is one"
            )
        if private and not column.is_bounded:
            raise DomainError(
                f"--domain: {str(domain)!r} has no bounds of a numeric column {name!r}; declare "
                "them, or give --bounds"
            )
        found.append(column)
    return found[0], found[1]


def _columns(
    file: Path, x: str, y: str, *, declared: tuple[Any, Any] | None, private: bool, encoding: str
) -> tuple[list[np.ndarray], int]:
    """The two columns as numbers, and how many rows were left out of both.

    In a private run no cell can be refused, and no row left out.  Without privacy the rows are left
    out in which the domain says that one of the two is missing.
    """
    import numpy as np

    from jaxcd.data.column_types import Numeric
    from jaxcd.data.columns import encode
    from jaxcd.data.readers import read_columns

    raws, _ = read_columns(file, strict=not private, only=(x, y), encoding=encoding)
    found, gone = [], np.zeros(raws[0].n_samples, dtype=np.bool_)
    for raw, column in zip(raws, declared or (Numeric(), Numeric()), strict=True):
        cells, missing = encode(raw, column, strict=not private, clip=True)
        found.append(cells)
        gone |= False if private or missing is None else missing
    if private:
        return found, 0
    found = [cells[~gone] for cells in found]
    for name, cells in zip((x, y), found, strict=True):
        _check_no_id(name, cells)
    return found, int(gone.sum())


def _check_no_id(name: str, cells: np.ndarray) -> None:
    """Refuses a column that numbers its rows; to the owner of the data, never in a private run."""
    span = cells.max() - cells.min() + 1 if len(cells) else 0
    if len(cells) >= 8 and span == len(cells) == len(set(cells.tolist())):
        if (cells == cells.round()).all():
            raise DataError(
                f"column {name!r} holds each whole number from {cells.min():g} to "
                f"{cells.max():g} once: it numbers the rows, as an id does, and has no cause; "
                "choose another column"
            )


def _run(
    method: str,
    columns: list[np.ndarray],
    *,
    budget: Any,
    known: _Bounds | None,
    noise: Any,
    ledger: Any,
    key: Any,
    score: str,
    protect: str,
) -> PairResult:
    from jaxcd import pairwise
    from jaxcd.pairwise import anm_scores
    from jaxcd.pairwise.anm import anm

    if method == "anm":
        chosen = getattr(anm_scores, SCORES[score])()
        whose = anm_scores.Protect(protect)
        return anm(
            *columns,
            budget=budget,
            key=key,
            noise=noise,
            ledger=ledger,
            bounds=known,
            score=chosen,
            protect=whose,
        )
    if method == "reci":
        return pairwise.reci(*columns, budget=budget, bounds=known, noise=noise, ledger=ledger)
    if method == "igci":
        return pairwise.igci(*columns, budget=budget)
    return pairwise.cds(*columns, budget=budget)


def _words(result: PairResult, x: str, y: str) -> str:
    from jaxcd.pairwise import Direction

    return {Direction.X_TO_Y: f"{x} -> {y}", Direction.Y_TO_X: f"{y} -> {x}"}.get(
        result.direction, NO_EVIDENCE
    )


def _differs(result: PairResult) -> str:
    """What the private method does otherwise than the one of ``--no-privacy``."""
    info = result.info
    scaled = "columns are scaled by the bounds, not by their own range"
    if info["method"] == "reci":
        return (
            f"{scaled}, and the column with the wider bounds seems the better predicted, so give "
            f"both bounds about equally tight; the best function of {info['regressor']}, a finite "
            "class with a bounded loss, where the other fits Polynomial(degree=3) by least squares"
        )
    if info["protect"] == "test":
        words = "half of the rows train and half test, where the other uses all for both"
    else:
        words = (
            f"{scaled}; how smooth the fitted curves are is fixed in advance, where the other "
            "chooses it by the data"
        )
    if info.get("mechanism") == "flip distance":
        words += "; the score is how many records turn the answer over, not the ranges themselves"
    return words


def _show(
    result: PairResult,
    named: PairResult,
    x: str,
    y: str,
    *,
    file: Path,
    n: int,
    left_out: int,
    private: bool,
    secure: bool,
) -> None:
    from jaxcd.checks import counted

    method = " ".join(
        str(result.info[name]) for name in ("method", "score", "regressor") if name in result.info
    )
    rows = counted(n, "row") + (
        f" without missing cells, {left_out:,} left out" if left_out else ""
    )
    lines = [("data", f"{file}, {rows}, {x} and {y}"), ("method", method)]
    if private:
        lines.append(("differs", f"from the method without privacy: {_differs(result)}"))
        simulated = "simulated from the seed: not for release"
        lines.append(("noise", "secure, from the operating system" if secure else simulated))
        lines.append(("cells", _OTHER_CELLS))
    least, rate = result.info["least_margin"], result.info["error_rate"]
    answer = _words(result, x, y)
    if answer == NO_EVIDENCE and _words(named, x, y) != NO_EVIDENCE:
        answer += f" (it leans to {_words(named, x, y)})"
    lines += [
        ("direction", answer),
        (
            "margin",
            f"{result.margin:.4g}; a direction is named above {least:.4g}, which at most "
            f"{100 * rate:.3g}% of 81 public pairs without a direction pass; of others more may",
        ),
    ]
    if private:
        sure = (
            "unknown"
            if named.confidence is None
            else f"{named.confidence:.3f}, the probability that the same method leans to this side "
            "without the noise; not that it is right"
        )
        lines.append(("agreement", sure))
    if result.forward is not None and result.backward is not None:
        lines.append(
            (
                "scores",
                f"{result.forward:.6g} for {x} -> {y}, {result.backward:.6g} for {y} -> {x}; the "
                "lower wins",
            )
        )
    lines.append(("guarantee", str(result.cost)))
    tell(*(f"{label:<11}{words}" for label, words in lines))


def _content(result: PairResult, named: PairResult, x: str, y: str) -> dict[str, Any]:
    scores = (
        None
        if result.forward is None or result.backward is None
        else [result.forward, result.backward]
    )
    if scores is not None and not all(map(math.isfinite, scores)):
        scores = None
    from jaxcd.privacy.certificate import plain

    certificate, private = result.certificate(), not math.isinf(result.cost.epsilon)
    return {
        "direction": _words(result, x, y),
        "leans_to": _words(named, x, y),
        "margin": plain(result.margin),
        "least_margin": plain(result.info["least_margin"]),
        "error_rate": result.info["error_rate"],
        "agreement_without_noise": named.confidence if private else None,
        "scores": scores,
        "guarantee": certificate["guarantee"],
        "spent": certificate["spent"],
        "warnings": certificate["warnings"],
        "method": result.info["method"],
        "differs_from_no_privacy": _differs(result) if private else None,
    }
