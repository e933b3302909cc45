"""Applying a mechanism to data."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from jaxcd.checks import counted
from jaxcd.citests.base import require_data
from jaxcd.data import Dataset, Domain
from jaxcd.errors import OptionError, PrivacyError
from jaxcd.local.base import LocalGuarantee, LocalMechanism
from jaxcd.local.uniforms import Uniforms
from jaxcd.privacy import (
    Budget,
    Law,
    MechanismRecord,
    NoiseSource,
    PrivacyFilter,
    PureEvent,
    keeps_what_is_paid,
    open_account,
)
from jaxcd.privacy.accountant import Accountant
from jaxcd.privacy.certificate import plain
from jaxcd.privacy.rounding import spent_in_words

__all__ = ["randomise"]


@keeps_what_is_paid
def randomise(
    data: Dataset,
    mechanism: LocalMechanism,
    *,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
) -> Dataset:
    """Randomise each record by itself.

    Each row of the result depends on the same row of ``data`` only, and is drawn afresh:
    randomising the same people twice costs them twice the epsilon.

    Args:
        data: declared discrete columns.
        mechanism: how.
        noise: None for the operating system's entropy; ``SimulatedNoise(key)`` in experiments.
        ledger: a LedgerFile (or Ledger) that epsilon_LDP is charged to.

    Returns:
        A data set of the same domain and number of rows.

    Raises:
        DomainError: a column is numeric, or the domain is too large for the mechanism.
        PrivacyError: the domain is not declared, or has a column that tells people apart: each row
            would cost its person epsilon_LDP again.
        OptionError: a parameter does not fit the domain, or an argument is of the wrong kind.

    Guarantee:
        ``mechanism.guarantee(data.domain)``, for each person, against everybody who does not draw
        the noise; none if ``noise`` is simulated, because who has the key takes it off. Public: the
        domain and the number of rows. Proof: as named there.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(1_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> mechanism = jaxcd.local.KaryResponse(epsilon=4.0)
        >>> randomised = jaxcd.local.randomise(data, mechanism, noise=noise)
        >>> round(float((randomised.codes == data.codes).mean()), 2)
        0.69
    """
    return charged_randomise(data, mechanism, noise=noise, ledger=ledger)[0]


def charged_randomise(
    data: Dataset,
    mechanism: LocalMechanism,
    *,
    noise: NoiseSource | None,
    ledger: PrivacyFilter | None,
) -> tuple[Dataset, LocalGuarantee, Accountant | None]:
    """The randomised data, what holds for them, and the account; None where nothing had to be
    charged (all columns are constant).
    """
    check_mechanism(mechanism)
    data = require_data(data, "randomising records", cure="give a Dataset: rows in memory")
    check_one_row_each(data.domain)
    cardinalities = mechanism.check(data.domain)
    uniforms = Uniforms(noise)
    guarantee = mechanism.guarantee(data.domain)
    account = None
    if guarantee.epsilon_ldp > 0:
        account = open_account(
            Budget(guarantee.epsilon_ldp),
            noise,
            ledger=ledger,
            parts=(mechanism,),
            pure=True,
            analysis="randomised records",
        )
        record = MechanismRecord(
            Law.LOCAL,
            guarantee.epsilon_ldp,
            channel=tuple(channel_json(mechanism, data.domain).items()),
        )
        index = account.charge(
            PureEvent(guarantee.epsilon_ldp, type(mechanism).__name__, record=record)
        )
        cost = account.guarantee
        if not cost.proven:
            guarantee = dataclasses.replace(guarantee, proved=False, proof=f"none: {cost.reason}")
    codes = mechanism.randomised_codes(data.codes, cardinalities, uniforms)
    if account is not None:
        account.bought(index, type(mechanism).__name__, codes)
    randomised = Dataset.from_codes(codes, domain=data.domain)
    return randomised, guarantee, account


def channel_json(mechanism: LocalMechanism, domain: Domain) -> dict[str, object]:
    """:func:`mechanism_json` and the number of levels of each column: what the channel of a record
    follows from.
    """
    return {**mechanism_json(mechanism), "levels": list(domain.cardinalities)}


def mechanism_json(mechanism: LocalMechanism) -> dict[str, object]:
    """Kind and parameters; the kind alone where the mechanism is no dataclass."""
    parameters: dict[str, object] = {}
    names: list[str] = (
        [field.name for field in dataclasses.fields(mechanism)]
        if dataclasses.is_dataclass(mechanism)
        else []
    )
    for name in names:
        parameters[name] = plain(getattr(mechanism, name))
    return {"kind": type(mechanism).__name__, **parameters}


def record_facts(mechanism: LocalMechanism, domain: Domain) -> dict[str, Any]:
    """What holds for records of which it was said that the mechanism randomised them, for a result
    that was computed from them; empty where that is nothing, or where a person may have several
    rows, which epsilon_LDP does not count.  It is said with its condition: the records themselves
    do not show how they were made, nor which columns they had besides.
    """
    guarantee = mechanism.guarantee(domain)
    if math.isinf(guarantee.epsilon_ldp) or domain.person is not None:
        return {}
    claim = "proved" if guarantee.proved else "claimed, and not proved"
    words = (
        f"if each record was randomised by {mechanism!r} before it was collected, with noise that "
        "nobody else knows, as this search was told, the record of each person is protected by "
        f"local differential privacy with epsilon = {spent_in_words(guarantee.epsilon_ldp)} for "
        "the "
        f"{counted(len(domain.names), 'column')} of this search together, against whoever collects "
        f"the records and everybody who sees them or this result ({claim}: {guarantee.proof}). "
        "Columns that were collected beside these, and levels that were merged since, are not "
        "counted. Whether the record was randomised cannot be checked here"
    )
    facts = {
        "mechanism": repr(mechanism),
        "epsilon_ldp": guarantee.epsilon_ldp,
        "proved": guarantee.proved,
        "proof": guarantee.proof,
        "words": words,
    }
    return {"randomised_records": facts}


def check_one_row_each(domain: Domain) -> None:
    """Refuses a domain that says that a person may have several rows: epsilon_LDP is of one row."""
    if domain.person is not None:
        raise PrivacyError(
            f"domain: column {domain.person!r} says that a person may have several rows, and "
            "local privacy protects each row by itself; give one row a person, and mark the column "
            '"ignore": true, which also says that one row is what has to be protected'
        )


def check_mechanism(mechanism: LocalMechanism) -> None:
    """Refuse what is no local mechanism, such as its class."""
    if not isinstance(mechanism, LocalMechanism):
        raise OptionError(
            f"mechanism must be a local mechanism, got {mechanism!r}: give one such as "
            "KaryResponse(epsilon=1.0)"
        )
