r"""The certificate of a run: what :func:`jaxcd.verify` checks, and what a stranger needs to check
it (``privacy.json``).

It says what was promised (``guarantee``), to whom (``unit``, ``relation``, and ``groups`` for
people with several rows), what was taken as public (``public``: domain and number of rows; if a
part of the domain was bought, ``bought_in_domain`` says which), with which versions of the
software, and what was charged (``spent`` and ``ledger``): each event with the sensitivity that was
claimed, the numerical pad, the grid and the scale of the noise.

The digest at its end finds a certificate that was changed by mistake; who changes it on purpose can
make a new digest, but not prices that fit the scales.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from .budget import Accounting, PrivacyCost, Unit, counted_words, delta_warning, unit_words

__all__ = ["FORMAT", "VERSION", "Certified", "certificate_digest", "certificate_of", "plain"]

FORMAT = "jaxcd.privacy"
VERSION = 2


class Certified:
    """Mixed into results: what has ``cost``, ``spent`` and ``info`` has a certificate."""

    cost: PrivacyCost
    spent: PrivacyCost
    info: Mapping[str, Any]

    def certificate(self) -> dict[str, Any]:
        """The content of privacy.json, which ``jaxcd verify`` and :func:`jaxcd.verify` check: what
        was promised, charged and public.
        """
        info, noisy = self.info, not math.isinf(self.cost.epsilon)
        made_with = getattr(self, "made_with", None)
        return certificate_of(
            cost=self.cost,
            spent=self.spent,
            rows=info.get("ledger", ()),
            n_samples=info.get("n_samples"),
            domain=info.get("domain"),
            more={
                "exhausted": bool(getattr(self, "exhausted", False)),
                "secure_noise": bool(info["secure_noise"])
                if noisy and "secure_noise" in info
                else None,
                "settings": {
                    name: plain(value) for name, value in info.items() if name not in _APART
                },
                "warnings": plain(self._warnings()),
                "reasons": plain(info.get("reasons", ())),
                "levels": plain(info.get("levels", ())),
                **({} if made_with is None else {"versions": dict(made_with)}),
            },
        )

    def _warnings(self) -> tuple[str, ...]:
        """Those of the run, and that of its delta, which every run has."""
        found = tuple(self.info.get("warnings", ()))
        words = delta_warning(
            self.cost.epsilon, self.cost.delta, self.info.get("n_samples"), unit=self.cost.unit
        )
        return found if words is None or words in found else (*found, words)


# Parts of a result's info that have a place of their own.
_APART = ("ledger", "levels", "reasons", "released_margins", "secure_noise", "domain", "warnings")

GROUPS = (2, 3, 5, 10, 20, 50)
"""Numbers of rows of one person (of people, where the unit is a person) for which a certificate
says what holds."""


def certificate_of(
    *,
    cost: PrivacyCost,
    spent: PrivacyCost,
    rows: Iterable[Mapping[str, object]],
    n_samples: int | None = None,
    domain: Mapping[str, Any] | None = None,
    failure_delta: float = 0.0,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The certificate of a run, fit for JSON.

    Args:
        cost: the guarantee, and what the events add up to.
        spent: as ``cost``.
        rows: of the ledger's table.
        n_samples: what was public of the data; None where there was none.
        domain: as ``n_samples``.
        failure_delta: the part of delta that was set aside for mechanisms that may fail.
        more: further entries, such as the settings of a search.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "guarantee": {**_cost_json(cost), "failure_delta": failure_delta},
        "groups": []
        if math.isinf(cost.epsilon)
        else [_group_json(cost, k) for k in GROUPS if k > cost.max_rows_per_person],
        "spent": {"epsilon": plain(spent.epsilon), "delta": spent.delta, "words": spent.reason},
        "public": {
            "n_samples": n_samples,
            **({"counts": counted_words(cost.unit)} if cost.unit is Unit.PERSON else {}),
            "domain": domain,
        },
        "versions": versions(),
        **(more or {}),
        "ledger": [_row_json(row) for row in rows],
    }
    return {**content, "digest": certificate_digest(content)}


def _cost_json(cost: PrivacyCost) -> dict[str, Any]:
    rows = cost.max_rows_per_person
    return {
        "epsilon": plain(cost.epsilon),
        "delta": cost.delta,
        "rho": cost.rho,
        "relation": cost.relation.value,
        "unit": unit_words(cost.unit, rows),
        "max_rows_per_person": rows,
        "proven": cost.proven,
        "reason": cost.reason,
        **({"accounting": "gaussian"} if cost.accounting is Accounting.GAUSSIAN else {}),
    }


def _group_json(cost: PrivacyCost, rows: int) -> dict[str, Any]:
    group = cost.for_group(rows)
    return {counted_words(cost.unit): rows, "epsilon": plain(group.epsilon), "delta": group.delta}


def _row_json(row: Mapping[str, object]) -> dict[str, Any]:
    """A row of a ledger's table; without an epsilon of its own (Gaussian noise) it has none in the
    file.
    """
    return {
        name: plain(value)
        for name, value in row.items()
        if not (name in ("epsilon", "rho", "gdp_rho") and math.isinf(float(str(value))))
    }


def versions() -> dict[str, str]:
    """The software that a run rests on."""
    return dict(_versions())


@functools.cache
def _versions() -> Mapping[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("jaxcd", "jax", "numpy", "scipy", "opendp"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a folder that was not installed
            found[name] = "unknown"
    return found


def plain(value: Any) -> Any:
    """As JSON: infinities and NaN as text, dataclasses as objects, what is unknown as its text."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return str(value)


def certificate_digest(content: Mapping[str, Any]) -> str:
    """The SHA-256 of a certificate without its own entry ``digest``, as canonical JSON."""
    plain = {name: part for name, part in content.items() if name != "digest"}
    return hashlib.sha256(
        json.dumps(plain, sort_keys=True, ensure_ascii=True, allow_nan=False).encode()
    ).hexdigest()
