"""An event as a row of a table, for reports, certificates and ledger files; and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .budget import Accounting
from .events import (
    ExponentialMechanismEvent,
    FailureEvent,
    GaussianEvent,
    Law,
    MechanismRecord,
    PrivacyEvent,
    PureEvent,
    ZCDPEvent,
)

__all__ = ["event_of_row", "event_row", "number_of", "whole_of"]


def event_row(event: PrivacyEvent, accounting: Accounting = Accounting.ZCDP) -> dict[str, object]:
    """An event in a report's table: label, mechanism, epsilon, rho (of zCDP; of GDP as well under
    Gaussian accounting), delta where there is one, and what they follow from.
    """
    row: dict[str, object] = {
        "label": event.label,
        "mechanism": type(event).__name__.removesuffix("Event"),
        "epsilon": event.epsilon,
        "rho": event.rho,
    }
    if accounting is Accounting.GAUSSIAN:
        row["gdp_rho"] = event.gdp_rho
    if event.delta:
        row["delta"] = event.delta
    n_choices = getattr(event, "n_choices", 1)
    if n_choices > 1:
        row["n_choices"] = n_choices
    if event.record is not None:
        record = event.record
        row |= {
            "law": record.law.value,
            "sensitivity": record.sensitivity,
            "pad": record.pad,
            "grid": record.grid,
            "dimension": record.dimension,
            "integral": record.integral,
            "scales": record.scales,
            "rate": record.rate,
        }
        if record.channel:
            row["channel"] = dict(record.channel)
        if record.condition:
            row["condition"] = record.condition
    return row


def number_of(value: object) -> float:
    """A number of a file: of JSON, or the text of one that JSON has not; ValueError for others,
    such as the text "2", which reads as a number and was not written here.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and not math.isfinite(number := float(value)):
        return number
    raise ValueError(f"{value!r} is no number")


def whole_of(value: object) -> int:
    """A whole number of a file, also one that is written 3.0; ValueError for others."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value):
        return int(value)
    raise ValueError(f"{value!r} is no whole number")


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is neither true nor false")


def event_of_row(row: Mapping[str, object]) -> PrivacyEvent:
    """The inverse of :func:`event_row`; KeyError, TypeError or ValueError where a part is missing
    or of another kind.
    """
    record = None
    if "law" in row:
        record = MechanismRecord(
            Law(row["law"]),
            number_of(row["sensitivity"]),
            number_of(row["pad"]),
            number_of(row["grid"]),
            whole_of(row["dimension"]),
            _truth(row["integral"]),
            tuple(number_of(scale) for scale in row["scales"]),  # type: ignore[attr-defined]
            number_of(row["rate"]),
            tuple(dict(row.get("channel", {})).items()),  # type: ignore[call-overload]
            str(row.get("condition", "")),
        )
    kinds: dict[str, Any] = {
        "Pure": PureEvent,
        "ExponentialMechanism": ExponentialMechanismEvent,
        "ZCDP": ZCDPEvent,
        "Gaussian": GaussianEvent,
        "Failure": FailureEvent,
    }
    kind = kinds[str(row["mechanism"])]
    sizes = {"ZCDP": "rho", "Gaussian": "rho", "Failure": "delta"}
    size = number_of(row[sizes.get(str(row["mechanism"]), "epsilon")])
    more = {"n_choices": row["n_choices"]} if "n_choices" in row else {}
    event: PrivacyEvent = kind(size, str(row["label"]), record=record, **more)
    return event
