"""The file of a release: an ``.npz`` archive without pickled objects, with an entry ``header``
(JSON: format, version, kind, domain, rows, cost) and one entry an array.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxcd.errors import FormatError
from jaxcd.json_files import parsed
from jaxcd.places import check_there, written_whole
from jaxcd.privacy import PrivacyCost, Relation
from jaxcd.privacy.budget import Accounting, Unit

__all__ = [
    "cost_from_json",
    "cost_to_json",
    "first_edition_charges",
    "read_archive",
    "row_from_json",
    "row_to_json",
    "write_archive",
]

_FORMAT = "jaxcd-release"
_VERSION = 2
_READ = (1, 2)


def write_archive(path: Path, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes the file in one step: what goes wrong while writing leaves the old one as it was.

    Args:
        path: of the file.
        header: what JSON takes, but for the format and its version, which are put in.
        arrays: by name.
    """
    header = {"format": _FORMAT, "version": _VERSION, **header}
    with written_whole(path) as draft, draft.open("wb") as file:  # savez would add a suffix
        np.savez_compressed(
            file, allow_pickle=False, header=np.array(json.dumps(header, allow_nan=False)), **arrays
        )


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header, which has a kind, and the arrays.

    Raises:
        DataError: there is no such file.
        FormatError: it is none of ours, or of a newer version.
    """
    check_there(path, name="path: file", wanted="a release file (.npz)", of="*.npz")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
        raise FormatError(
            f"file {str(path)!r} is not a release: no archive of arrays; give a file that "
            "save() wrote"
        ) from None
    try:
        header = parsed(str(arrays.pop("header")))
        found = header["format"], header["version"], header["kind"]
    except FormatError as error:
        raise FormatError(
            f"file {str(path)!r}: the release is damaged ({error}); save it again"
        ) from None
    except (KeyError, TypeError, ValueError):
        raise FormatError(
            f"file {str(path)!r} is not a release: it has no header that can be read; give a file "
            "that save() wrote"
        ) from None
    if found[0] != _FORMAT:
        raise FormatError(
            f"file {str(path)!r} is of the format {found[0]!r}, not {_FORMAT!r}; give a file "
            "that save() wrote"
        )
    if found[1] not in _READ:
        raise FormatError(
            f"file {str(path)!r} has version {found[1]!r}, this jaxcd reads {_VERSION} and "
            f"{_READ[0]}; update jaxcd"
        )
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise FormatError(
                f"file {str(path)!r}: the release is damaged (the array {name!r} is of "
                f"{array.dtype}, which are no real numbers); save it again"
            )
    return header, arrays


def _price(name: str, value: Any) -> float:
    """A finite or infinite price from 0; raises ValueError for others, NaN among them."""
    price = float(value)
    if not price >= 0:
        raise ValueError(f"{name} is {value!r}")
    return price


def cost_to_json(cost: PrivacyCost) -> dict[str, Any]:
    """A guarantee as it is written."""
    gaussian = cost.accounting is Accounting.GAUSSIAN
    return {
        "epsilon": "infinity" if math.isinf(cost.epsilon) else cost.epsilon,  # JSON has no infinity
        "delta": cost.delta,
        "relation": cost.relation.value,
        "proven": cost.proven,
        "reason": cost.reason,
        "max_rows_per_person": cost.max_rows_per_person,
        "rho": cost.rho,
        **({"accounting": cost.accounting.value} if gaussian else {}),
        **({"unit": cost.unit.value} if cost.unit is Unit.PERSON else {}),
    }


def cost_from_json(entry: Mapping[str, Any]) -> PrivacyCost:
    """A guarantee as it was before it was written."""
    epsilon = math.inf if entry["epsilon"] == "infinity" else float(entry["epsilon"])
    if not isinstance(entry["proven"], bool):
        raise ValueError(f"proven is {entry['proven']!r}")
    return PrivacyCost(
        epsilon,
        float(entry["delta"]),
        Relation(entry["relation"]),
        entry["proven"],
        str(entry["reason"]),
        int(entry.get("max_rows_per_person", 1)),
        None if entry.get("rho") is None else _price("rho", entry["rho"]),
        Accounting(entry.get("accounting", Accounting.ZCDP.value)),
        Unit(entry.get("unit", Unit.ROW.value)),
    )


def row_to_json(row: Mapping[str, object]) -> dict[str, object]:
    """A row of a ledger's table as it is written: JSON has no infinity."""
    return {
        name: str(part) if isinstance(part, float) and math.isinf(part) else part
        for name, part in row.items()
    }


def row_from_json(row: Mapping[str, Any]) -> Mapping[str, object]:
    """A row of a ledger's table as it was before it was written."""
    priced = ("epsilon", "rho", *(("gdp_rho",) if "gdp_rho" in row else ()))
    numbers: dict[str, object] = {name: _price(name, row[name]) for name in priced}
    if "scales" in row:
        numbers["scales"] = tuple(float(scale) for scale in row["scales"])
    return {**row, **numbers}


def first_edition_charges(header: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """``common`` with the charges of a file of version 1, which kept label and rho of each event
    beside its own parts.
    """
    if common["charges"] or "charges" not in header:
        return dict(common)
    rows = tuple(
        {
            "index": i,
            "label": str(label),
            "mechanism": "ZCDP",
            "epsilon": math.inf,
            "rho": _price("rho", rho),
        }
        for i, (label, rho) in enumerate(header["charges"])
    )
    return {**common, "charges": rows}
