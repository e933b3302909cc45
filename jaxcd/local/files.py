"""Randomised data as files: a csv, and a guarantee that says what it promises to each person.

The guarantee file is JSON: ``mechanism`` (kind and parameters), ``guarantee``
(:class:`LocalGuarantee`), ``columns`` (those of the csv, as in a domain file), ``n_samples``,
``secure_noise`` and ``certificate`` (what ``jaxcd verify`` checks). It depends on the mechanism,
the domain and the number of rows only, and whoever analyses the csv needs it: the channel follows
from mechanism and columns.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
import json
import math
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from jaxcd.citests.base import require_data
from jaxcd.data import Binned, Dataset, Domain, Numeric, Ordinal, read_csv
from jaxcd.data.domain import Column
from jaxcd.errors import DomainError, JaxcdError, OptionError
from jaxcd.local.base import LocalGuarantee, LocalMechanism
from jaxcd.local.randomising import charged_randomise, check_mechanism, mechanism_json
from jaxcd.places import check_new_file, path_of, real_path, written_whole
from jaxcd.privacy import NoiseSource, PrivacyFilter, SecureNoise, keeps_what_is_paid
from jaxcd.privacy.certificate import certificate_of

__all__ = ["guarantee_json", "privatize"]


@keeps_what_is_paid
def privatize(
    data: Dataset,
    mechanism: LocalMechanism,
    *,
    out: str | Path,
    guarantee_out: str | Path,
    domain_out: str | Path | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    force: bool = False,
) -> LocalGuarantee:
    """Write a randomised copy of the data and the guarantee that goes with it.

    Args:
        data: declared discrete columns.
        mechanism: how.
        out: the csv to write: the names in the first line, then one record a line, levels as
            declared, and of a number that is read in bins the name of its bin.
        guarantee_out: the JSON to write.
        domain_out: a domain file to write, which reads ``out`` (that of ``data`` does not know
            names of bins); None for none.
        noise: None for the operating system's entropy; ``SimulatedNoise(key)`` in experiments.
        ledger: a LedgerFile (or Ledger) that epsilon_LDP is charged to.
        force: overwrite files that exist.

    Returns:
        The guarantee. With simulated noise ``proved`` is False: who has the key takes the noise
        off.

    Raises:
        OptionError: a file exists (without ``force``) or its folder does not, two are the same
            file, or as for :func:`randomise`.
        DomainError: two bins of a column have one name, a csv gives a level back as another one, or
            as for :func:`randomise`.
        PrivacyError: as for :func:`randomise`.

    Guarantee:
        As for :func:`randomise`. Everything is checked before anything is drawn or written.

    Example:
        >>> import jax, jaxcd, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> data = jaxcd.networks.load("cancer").sample(100, key=jax.random.key(0))
        >>> found = jaxcd.local.privatize(
        ...     data,
        ...     jaxcd.local.KaryResponse(epsilon=2.0),
        ...     out=folder / "private.csv",
        ...     guarantee_out=folder / "private.json",
        ... )
        >>> round(found.epsilon_ldp, 6), (folder / "private.csv").is_file()
        (2.0, True)
    """
    check_mechanism(mechanism)
    data = require_data(data, "randomising records", cure="give a Dataset: rows in memory")
    csv = path_of("out", out, example="private.csv")
    promise = path_of("guarantee_out", guarantee_out, example="guarantee.json")
    files = {"out": csv, "guarantee_out": promise}
    if domain_out is not None:
        files["domain_out"] = path_of("domain_out", domain_out, example="domain.json")
    for name, path in files.items():
        check_new_file(name, path, force=force)
    for (name, path), (other, same) in itertools.combinations(files.items(), 2):
        if real_path(path) == real_path(same):
            raise OptionError(
                f"{name} and {other} must be two files, got {str(path)!r} twice; give another name"
            )
    written = _as_written(data.domain)
    _check_read_again(written)
    randomised, guarantee, account = charged_randomise(data, mechanism, noise=noise, ledger=ledger)
    content = guarantee_json(
        mechanism,
        guarantee,
        written,
        n_samples=data.n_samples,
        secure_noise=noise is None or isinstance(noise, SecureNoise),
    )
    if account is not None:
        content["certificate"] = certificate_of(
            cost=account.guarantee,
            spent=account.ledger.spent,
            rows=account.ledger.to_table(),
            n_samples=data.n_samples,
            domain=data.domain.to_json_dict(),
        )
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with ExitStack() as stack:  # all are whole before the first is there
        drafts = {name: stack.enter_context(written_whole(path)) for name, path in files.items()}
        randomised.to_frame().to_csv(drafts["out"], index=False)
        drafts["guarantee_out"].write_text(text, encoding="utf-8")
        if domain_out is not None:
            written.write(drafts["domain_out"])
    return guarantee


def _as_written(domain: Domain) -> Domain:
    """That of the csv: a number that is read in bins is there the name of its bin."""
    columns = {
        name: Ordinal(column.levels, missing=column.missing)
        if isinstance(column, Binned)
        else column
        for name, column in domain.columns.items()
    }
    return Domain(columns, declared=domain.declared, interventions=domain.interventions)


def _check_read_again(domain: Domain) -> None:
    """Refuses a level that comes out of a csv as another one, such as the empty text where cells
    may be missing: what is read would not have the law of the channel.
    """
    for name, column in domain.columns.items():
        if isinstance(column, Numeric):
            continue  # randomise refuses it
        names = [f"level {level!r}" for level in column.levels]
        if column.missing is not None:
            names.append("a missing cell")
        if not _is_read_again(name, column, range(len(names))):
            alone = (text for k, text in enumerate(names) if not _is_read_again(name, column, [k]))
            raise DomainError(
                f"column {name!r}: {next(alone, 'its levels')} cannot be read again as written in "
                "a csv file; rename the level, or the column, in the domain"
            )


def _is_read_again(name: str, column: Column, codes: Sequence[int]) -> bool:
    """Whether a csv of these codes, beside a column that any file holds, is read as they are."""
    domain = Domain({name: column, f"beside {name}": Ordinal((0,))})
    data = Dataset.from_codes([[code, 0] for code in codes], domain=domain)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "levels.csv"
        data.to_frame().to_csv(path, index=False)
        try:
            return read_csv(path, domain=domain, strict=True).column(name).tolist() == list(codes)
        except JaxcdError:
            return False


def guarantee_json(
    mechanism: LocalMechanism,
    guarantee: LocalGuarantee,
    domain: Domain,
    *,
    n_samples: int,
    secure_noise: bool,
) -> dict[str, Any]:
    """The content of a guarantee file; see the module's docstring."""
    return {
        "mechanism": mechanism_json(mechanism),
        "guarantee": _plain(guarantee),
        "columns": domain.to_json_dict()["columns"],
        "n_samples": n_samples,
        "secure_noise": secure_noise,
    }


def _plain(record: LocalGuarantee) -> dict[str, Any]:
    """Its fields, fit for JSON; infinities as text."""
    result: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, enum.Enum):
            value = value.value
        elif isinstance(value, float) and math.isinf(value):
            value = "inf"
        result[field.name] = value
    return result
