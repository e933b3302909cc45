"""``jaxcd privatize``: a table in, its randomised copy and a guarantee file out.

What the mechanism is follows from the domain file and the options alone, so everything that can be
refused about it is refused before the data is read.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jaxcd.cli.shared import (
    DomainFile,
    Encoding,
    File,
    SimulatedNoiseFlag,
    number_option,
    option,
    tell,
    whole_option,
)
from jaxcd.errors import OptionError, PrivacyError

if TYPE_CHECKING:  # the library takes a second to load, and --help needs none of it
    import jaxcd
    from jaxcd.local import Distance, LocalGuarantee, LocalMechanism

__all__ = ["MECHANISMS", "privatize"]

MECHANISMS = ("krr", "krr-combined", "geometric", "geometric-combined", "clipped")
"""Names of ``--mechanism``."""

_KINDS = {
    "krr": "KaryResponse",
    "krr-combined": "CombinedKaryResponse",
    "geometric": "BoundedGeometric",
    "geometric-combined": "CombinedGeometric",
    "clipped": "ClippedGeometric",
}
_COMBINED_GEOMETRIC = "geometric-combined"


def privatize(
    file: File,
    domain: DomainFile,
    mechanism: Annotated[
        str,
        option(
            f"{', '.join(MECHANISMS)}. krr: k-ary randomised response; geometric: bounded "
            "geometric; clipped: two-sided geometric, "
            "clipped; -combined: whole records, else column by column."
        ),
    ],
    out: Annotated[Path, option("The randomised table (.csv) to write.")],
    p_max: Annotated[
        float | None,
        number_option(
            "Probability that a whole record is reported as it is (the largest over records).",
            "--p-max",
        ),
    ] = None,
    epsilon_ldp: Annotated[
        float | None, number_option("Local epsilon of a whole record, positive.", "--epsilon-ldp")
    ] = None,
    d_privacy: Annotated[
        float | None,
        number_option("Epsilon per unit of distance between level codes, positive.", "--d-privacy"),
    ] = None,
    distance: Annotated[
        str | None,
        option("Of geometric-combined: manhattan, euclidean or chebyshev. (Default: manhattan.)"),
    ] = None,
    encoding: Encoding = "utf-8",
    bins: Annotated[
        list[str] | None,
        option(
            "Bins of numeric columns between their declared bounds: N for all, or COLUMN=N; "
            "may be repeated."
        ),
    ] = None,
    clip: Annotated[
        bool,
        option(
            "Kept for old scripts: numbers outside declared bounds always count as the bounds.",
            "--clip",
        ),
    ] = False,
    guarantee_out: Annotated[
        Path | None, option("The guarantee (JSON) to write. (Default: OUT with .guarantee.json.)")
    ] = None,
    domain_out: Annotated[
        Path | None,
        option("The domain file to write, which reads --out. (Default: OUT with .domain.json.)"),
    ] = None,
    ledger: Annotated[
        Path | None, option("Ledger file that epsilon-LDP is charged to (see `jaxcd ledger`).")
    ] = None,
    simulated_noise: SimulatedNoiseFlag = False,
    seed: Annotated[int, whole_option("Seed of simulated noise; secure noise has none.")] = 0,
    force: Annotated[bool, option("Overwrite existing files.", "--force")] = False,
    as_json: Annotated[
        bool, option("Print the guarantee file and nothing else.", "--json")
    ] = False,
) -> None:
    """Randomise each record of a table by itself, and say what that guarantees to each person."""
    import jax

    import jaxcd
    from jaxcd import local
    from jaxcd.cli import options, paid
    from jaxcd.local.randomising import check_one_row_each

    stem = out.name.removesuffix(".csv")
    promise = guarantee_out or out.with_name(stem + ".guarantee.json")
    reads = domain_out or out.with_name(stem + ".domain.json")
    written = {"--out": out, "--guarantee-out": promise, "--domain-out": reads}
    _check_files(file, domain, written, ledger, force=force)
    options.check_seed(seed, has_use=simulated_noise)
    declared = options.domain_of(domain)
    check_one_row_each(declared)
    numbers = _bins(bins or (), declared)
    chosen = _mechanism(
        mechanism,
        _binned(declared, numbers),
        p_max=p_max,
        epsilon_ldp=epsilon_ldp,
        d_privacy=d_privacy,
        distance=_distance(mechanism, distance),
    )
    total = None if ledger is None else options.ledger(ledger, budget=jaxcd.Budget(1.0))
    # Totally: whether a cell fits its declaration must not show.
    data = jaxcd.read_csv(file, domain=declared, encoding=encoding)
    noise = jaxcd.SimulatedNoise(jax.random.key(seed)) if simulated_noise else None
    with paid.kept():
        found = local.privatize(
            local.discretise_columns(data, bins=numbers),
            chosen,
            out=out,
            guarantee_out=promise,
            domain_out=reads,
            noise=noise,
            ledger=total,
            force=force,
        )
    try:
        if as_json:
            print(promise.read_text(encoding="utf-8"), end="")
        else:
            _show(chosen, found, data.n_samples, data.n_columns, written)
        sys.stdout.flush()
    except OSError:  # all that was bought is in its files
        tell(f"jaxcd: {out} is written, and so is what goes with it", error=True)
        raise


def _check_files(
    file: Path, domain: Path, written: Mapping[str, Path], ledger: Path | None, *, force: bool
) -> None:
    """Refuses, before anything is read, files that are missing or that would be written over."""
    from jaxcd.cli.paid import check_apart
    from jaxcd.places import check_new_file, check_there

    for name, path in (("FILE", file), ("--domain", domain)):
        check_there(path, name=f"{name}: file")
    out = written["--out"]
    if not out.name.endswith(".csv"):
        raise OptionError(f"--out {str(out)!r} is no csv file; give one such as randomised.csv")
    check_apart(written, {"FILE": file, "--domain": domain, "--ledger": ledger})
    for name, path in written.items():
        check_new_file(name, path, force=force, option="--force")


def _bins(words: Sequence[str], domain: jaxcd.Domain) -> dict[str, int]:
    """The number of bins of every numeric column."""
    from jaxcd.checks import shown_list

    numeric = [name for name, column in domain.columns.items() if not column.is_discrete]
    found: dict[str, int] = {}
    default: int | None = None
    for word in words:
        name, equals, number = word.rpartition("=")
        if not (number.isascii() and number.isdigit() and int(number) >= 2):
            raise OptionError(
                f"--bins {word!r} is no number of bins; give a whole number from 2, or COLUMN=N"
            )
        if not equals:
            if default is not None:
                raise OptionError(
                    "--bins: two numbers for all columns are given; give one, and others as "
                    "COLUMN=N"
                )
            default = int(number)
        elif name not in numeric:
            raise OptionError(
                f"--bins {word!r}: the domain has no numeric column {name!r}; its numeric columns "
                f"are {shown_list(numeric)}"
            )
        elif name in found:
            raise OptionError(f"--bins: column {name!r} is given twice; give it once")
        else:
            found[name] = int(number)
    lacking = [name for name in numeric if name not in found]
    if lacking and default is None:
        raise OptionError(
            f"--bins is missing for the numeric columns {shown_list(lacking)}; give --bins N "
            "chosen without the data, such as 10"
        )
    if default is not None and not numeric:
        raise OptionError("--bins is for numeric columns, and the domain has none; drop it")
    return {name: found.get(name, default or 0) for name in numeric}


def _binned(domain: jaxcd.Domain, bins: dict[str, int]) -> jaxcd.Domain:
    """The domain of the table once its numeric columns are cut; known without the data."""
    import jaxcd
    from jaxcd.local.discretising import binned_column

    columns = dict(domain.columns)
    for name, number in bins.items():
        column = columns[name]
        assert isinstance(column, jaxcd.Numeric)
        try:
            columns[name] = binned_column(column, number)
        except (PrivacyError, OptionError) as error:
            raise type(error)(f"column {name!r}: {error}") from None
    return jaxcd.Domain(columns)


def _distance(mechanism: str, word: str | None) -> Distance | None:
    from jaxcd.local import Distance

    if mechanism != _COMBINED_GEOMETRIC:
        if word is not None:
            raise OptionError(
                f"--distance is for --mechanism {_COMBINED_GEOMETRIC}, not {mechanism}; drop it"
            )
        return None
    known = [member.value for member in Distance]
    if word is not None and word.lower() not in known:
        raise OptionError(f"--distance {word!r} is unknown; use {', '.join(known)}")
    return Distance.MANHATTAN if word is None else Distance(word.lower())


def _mechanism(
    name: str,
    domain: jaxcd.Domain,
    *,
    p_max: float | None,
    epsilon_ldp: float | None,
    d_privacy: float | None,
    distance: Distance | None,
) -> LocalMechanism:
    from jaxcd import local

    if name not in MECHANISMS:
        raise OptionError(f"--mechanism {name!r} is unknown; use {', '.join(MECHANISMS)}")
    asked = {"--p-max": p_max, "--epsilon-ldp": epsilon_ldp, "--d-privacy": d_privacy}
    given = [option for option, value in asked.items() if value is not None]
    if len(given) != 1:
        problem = f"{' and '.join(given)} are given" if given else "no level of privacy is given"
        raise OptionError(f"{problem}; give exactly one of {', '.join(asked)}")
    kind: type[LocalMechanism] = getattr(local, _KINDS[name])
    return local.calibrate(
        kind, domain, p_max=p_max, epsilon_ldp=epsilon_ldp, d_privacy=d_privacy, distance=distance
    )


def _show(
    mechanism: LocalMechanism,
    found: LocalGuarantee,
    n_samples: int,
    n_columns: int,
    written: Mapping[str, Path],
) -> None:
    from jaxcd.checks import counted
    from jaxcd.privacy.rounding import spent_in_words

    shown = ", ".join(
        f"{field.name}={getattr(mechanism, field.name)}"
        for field in dataclasses.fields(mechanism)  # type: ignore[arg-type]
    )
    chances = f"{found.p_truth_smallest:.4g}"
    if found.p_truth_largest > found.p_truth_smallest:
        chances += f" to {found.p_truth_largest:.4g}"
    for label, words in (
        ("data", f"{counted(n_samples, 'row')}, {n_columns} columns of a declared domain"),
        ("mechanism", f"{type(mechanism).__name__}({shown})"),
        (
            "epsilon-LDP",
            f"{spent_in_words(found.epsilon_ldp)}"
            f"{'' if found.epsilon_ldp_exact else ' (an upper bound)'} for "
            "each person's record",
        ),
        (
            "d-privacy",
            f"{spent_in_words(found.d_privacy)}"
            f"{'' if found.d_privacy_exact else ' (an upper bound)'} per "
            f"unit of {found.distance.value} distance",
        ),
        ("truth", f"a whole record is reported as it is with probability {chances}"),
        ("proof", found.proof if found.proved else f"NOT PROVED: {found.proof}"),
        ("written", ", ".join(map(str, written.values()))),
        ("read", f"with --domain {written['--domain-out']}"),
    ):
        tell(f"{label:<13}{words}")
