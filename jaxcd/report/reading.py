"""result.json: what graph.json and privacy.json leave out, so that a result can be read back whole.

JSON has no tuples, infinities and records; each is written as an object with one entry that names
it.  Reading checks that the three files agree: a folder in which one of them was changed is
refused.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxcd.errors import DataError, FormatError
from jaxcd.graphs import MixedGraph
from jaxcd.json_files import DAMAGE, parsed
from jaxcd.places import path_of
from jaxcd.privacy import PrivacyCost, Relation
from jaxcd.privacy.budget import Accounting, Unit
from jaxcd.privacy.certificate import certificate_digest, plain
from jaxcd.report.contents import graph_json

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["read_result", "result_json"]

FORMAT = "jaxcd.result"
VERSION = 1

_PAG_SEARCHES = ("fci", "gfci", "priv_fci")  # of files from before is_latent was written


def result_json(result: Any) -> dict[str, Any]:
    """What result.json holds: the digest of graph.json, cost, spent, exhausted, is_latent, info,
    confidence.

    Args:
        result: a DiscoveryResult.

    Returns:
        What :func:`json.dump` writes.
    """
    confidence = getattr(result, "confidence", None)
    return {
        "format": FORMAT,
        "version": VERSION,
        "graph_digest": certificate_digest(graph_json(result)),
        "cost": _written(result.cost),
        "spent": _written(result.spent),
        "exhausted": bool(result.exhausted),
        "is_latent": bool(getattr(result, "is_latent", False)),
        "info": _written(result.info),
        "confidence": None
        if confidence is None
        else {
            "names": list(confidence.names),
            **{
                part: None if (array := getattr(confidence, part)) is None else array.tolist()
                for part in ("adjacency", "directed", "undirected")
            },
            "n_draws": int(confidence.n_draws),
            "method": confidence.method,
            "meaning": confidence.meaning,
        },
    }


def read_result(
    folder: str | Path,
    *,
    result: Callable[..., Any],
    confidence: Callable[..., Any],
    level: Callable[..., Any],
) -> Any:
    """Reads what :func:`write_report` wrote; :meth:`jaxcd.DiscoveryResult.load` calls it.

    Args:
        folder: of a report.
        result: makes the result of its fields, as ``DiscoveryResult`` does.
        confidence: makes the confidence, as ``EdgeConfidence`` does.
        level: makes a LevelRecord of its fields as JSON has them.

    Returns:
        A result that is equal to the one that was written; ``again`` is None.

    Raises:
        OptionError: ``folder`` is no path.
        DataError: a file is missing.
        FormatError: a file is not what is written here, or two of them contradict each other.
    """
    place = path_of("folder", folder, example="patients")
    graph, privacy, own = (
        _content(place / name) for name in ("graph.json", "privacy.json", "result.json")
    )
    try:
        if own["format"] != FORMAT or own["version"] != VERSION:
            raise ValueError(f"format {own['format']!r}, version {own['version']!r}")
        sure, info = own["confidence"], _read(own["info"], level)
        found = result(
            graph=MixedGraph.from_json_dict(graph),
            separating_sets={
                frozenset(entry["pair"]): tuple(entry["given"])
                for entry in graph["separating_sets"]
            },
            cost=_read(own["cost"]),
            spent=_read(own["spent"]),
            exhausted=own["exhausted"],
            is_latent=own.get("is_latent", info.get("algorithm") in _PAG_SEARCHES),
            info=info,
            confidence=None
            if sure is None
            else confidence(**{**sure, "names": tuple(sure["names"])}),
            made_with=privacy["versions"],
        )
        agree = {
            "privacy.json": found.certificate() == privacy,
            "graph.json": own["graph_digest"]
            == certificate_digest(graph_json(found))
            == certificate_digest(graph),
        }
    except DAMAGE as error:
        raise FormatError(
            f"folder {str(folder)!r}: the result is damaged ({error}); save it again"
        ) from None
    for name, same in agree.items():
        if not same:
            raise FormatError(
                f"folder {str(folder)!r}: {name} and result.json contradict each other, so one "
                "of them was changed; save the result again"
            )
    return found


def _content(path: Path) -> Any:
    if not path.is_file():
        raise DataError(
            f"folder: there is no file {str(path)!r}; give a folder that DiscoveryResult.save wrote"
        )
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (ValueError, FormatError) as error:
        raise FormatError(f"file {str(path)!r} is damaged: {error}") from None


def _written(value: Any) -> Any:
    """As JSON that :func:`_read` takes back."""
    if isinstance(value, PrivacyCost):
        return {"cost": {name: _written(part) for name, part in vars(value).items()}}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):  # a LevelRecord
        return {"level": plain(value)}
    if isinstance(value, Mapping):
        return {"dict": {str(name): _written(part) for name, part in value.items()}}
    if isinstance(value, tuple):
        return {"tuple": [_written(part) for part in value]}
    if isinstance(value, list):
        return [_written(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(float(value))}
    return plain(value)


def _read(value: Any, level: Callable[..., Any] | None = None) -> Any:
    """The inverse of :func:`_written`."""
    if isinstance(value, list):
        return [_read(part, level) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(_read(part, level) for part in content)
    if kind == "float":
        return float(content)
    if kind == "level" and level is not None:
        return level(**content)
    parts = {name: _read(part, level) for name, part in content.items()}
    return parts if kind == "dict" else _KINDS[kind](parts)


def _cost(parts: Mapping[str, Any]) -> PrivacyCost:
    enums = {
        "relation": Relation(parts["relation"]),
        "accounting": Accounting(parts["accounting"]),
        "unit": Unit(parts["unit"]),
    }
    return PrivacyCost(**{**parts, **enums})


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {"cost": _cost}
