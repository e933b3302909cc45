"""Four small networks of the literature, as tables: levels, parents and conditional probabilities.

Each table has the axes (parents in the order listed, then the child), levels in the order declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_YES_NO = ("yes", "no")
_TRUE_FALSE = ("True", "False")


@dataclass(frozen=True)
class NetworkTables:
    """The published facts about one network: its levels, parents, tables and source."""

    levels: dict[str, tuple[str, ...]]
    parents: dict[str, tuple[str, ...]]
    cpts: dict[str, Any]
    source: str


_CANCER = NetworkTables(
    source="Korb & Nicholson, Bayesian Artificial Intelligence, 2nd edition, 2010",
    levels={
        "Pollution": ("low", "high"),
        "Smoker": _TRUE_FALSE,
        "Cancer": _TRUE_FALSE,
        "Xray": ("positive", "negative"),
        "Dyspnoea": _TRUE_FALSE,
    },
    parents={
        "Pollution": (),
        "Smoker": (),
        "Cancer": ("Pollution", "Smoker"),
        "Xray": ("Cancer",),
        "Dyspnoea": ("Cancer",),
    },
    cpts={
        "Pollution": [0.9, 0.1],
        "Smoker": [0.3, 0.7],
        "Cancer": [[[0.03, 0.97], [0.001, 0.999]], [[0.05, 0.95], [0.02, 0.98]]],
        "Xray": [[0.9, 0.1], [0.2, 0.8]],
        "Dyspnoea": [[0.65, 0.35], [0.3, 0.7]],
    },
)

_EARTHQUAKE = NetworkTables(
    source="Korb & Nicholson, Bayesian Artificial Intelligence, 2nd edition, 2010",
    levels={
        name: _TRUE_FALSE for name in ("Burglary", "Earthquake", "Alarm", "JohnCalls", "MaryCalls")
    },
    parents={
        "Burglary": (),
        "Earthquake": (),
        "Alarm": ("Burglary", "Earthquake"),
        "JohnCalls": ("Alarm",),
        "MaryCalls": ("Alarm",),
    },
    cpts={
        "Burglary": [0.01, 0.99],
        "Earthquake": [0.02, 0.98],
        "Alarm": [[[0.95, 0.05], [0.94, 0.06]], [[0.29, 0.71], [0.001, 0.999]]],
        "JohnCalls": [[0.9, 0.1], [0.05, 0.95]],
        "MaryCalls": [[0.7, 0.3], [0.01, 0.99]],
    },
)

_ASIA = NetworkTables(
    source="Lauritzen & Spiegelhalter, J. R. Statist. Soc. B 50(2):157-224, 1988",
    levels={
        name: _YES_NO
        for name in ("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp")
    },
    parents={
        "asia": (),
        "tub": ("asia",),
        "smoke": (),
        "lung": ("smoke",),
        "bronc": ("smoke",),
        "either": ("lung", "tub"),
        "xray": ("either",),
        "dysp": ("bronc", "either"),
    },
    cpts={
        "asia": [0.01, 0.99],
        "tub": [[0.05, 0.95], [0.01, 0.99]],
        "smoke": [0.5, 0.5],
        "lung": [[0.1, 0.9], [0.01, 0.99]],
        "bronc": [[0.6, 0.4], [0.3, 0.7]],
        # the logical or of its parents
        "either": [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]],
        "xray": [[0.98, 0.02], [0.05, 0.95]],
        "dysp": [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.1, 0.9]]],
    },
)

_SURVEY = NetworkTables(
    source="Scutari & Denis, Bayesian Networks: with Examples in R, 2014",
    levels={
        "A": ("young", "adult", "old"),
        "S": ("M", "F"),
        "E": ("high", "uni"),
        "O": ("emp", "self"),
        "R": ("small", "big"),
        "T": ("car", "train", "other"),
    },
    parents={"A": (), "S": (), "E": ("A", "S"), "O": ("E",), "R": ("E",), "T": ("O", "R")},
    cpts={
        "A": [0.3, 0.5, 0.2],
        "S": [0.6, 0.4],
        "E": [[[0.75, 0.25], [0.64, 0.36]], [[0.72, 0.28], [0.7, 0.3]], [[0.88, 0.12], [0.9, 0.1]]],
        "O": [[0.96, 0.04], [0.92, 0.08]],
        "R": [[0.25, 0.75], [0.2, 0.8]],
        "T": [[[0.48, 0.42, 0.10], [0.58, 0.24, 0.18]], [[0.56, 0.36, 0.08], [0.70, 0.21, 0.09]]],
    },
)

BUILTIN: dict[str, NetworkTables] = {
    "cancer": _CANCER,
    "earthquake": _EARTHQUAKE,
    "asia": _ASIA,
    "survey": _SURVEY,
}
