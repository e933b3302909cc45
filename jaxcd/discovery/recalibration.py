r"""From the share of draws in which an edge returns to how often it returns over new data and new
noise.

Draws come from the found graph fitted to the release, as if it were the truth.  It was chosen for
fitting the release, so its edges return more often in such draws than in new data (the winner's
curse), and pairs that it left out less often.  With k of B draws and c = (k + 1/2) / (B + 1),

    logit p = a + b logit c,   b >= 0,

a and b for found edges and for other pairs of each kind of release, fitted by maximum likelihood to
how often pairs returned in new runs on random truths (``python -m benchmarks.reliability``, set
``fitted``; ``reliability.json`` holds the numbers and where they come from).

Source:
    Platt 1999; Niculescu-Mizil and Caruana 2005.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from scipy import special

__all__ = ["fit_map", "kinds", "mapped", "recalibrated"]

_FILE = files("jaxcd.discovery").joinpath("reliability.json")
_MAPS: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))["maps"]


def kinds() -> tuple[str, ...]:
    """The kinds of release whose maps were fitted."""
    return tuple(_MAPS)


def _logits(shares: np.ndarray, n_draws: int) -> np.ndarray:
    found: np.ndarray = special.logit((np.asarray(shares) * n_draws + 0.5) / (n_draws + 1))
    return found


def mapped(shares: np.ndarray, n_draws: int, line: tuple[float, float]) -> np.ndarray:
    """p of shares of draws, elementwise; line: a and b."""
    found: np.ndarray = special.expit(line[0] + line[1] * _logits(shares, n_draws))
    return found


def recalibrated(
    adjacency: np.ndarray, found: np.ndarray, *, n_draws: int, kind: str
) -> np.ndarray:
    """p of all pairs, float64 (d, d); pairs that no draw joined stay at 0.

    Args:
        adjacency: shares of draws, (d, d).
        found: bool (d, d), which pairs the graph joins.
        n_draws: how many draws.
        kind: of :func:`kinds`.
    """
    both = [mapped(adjacency, n_draws, tuple(_MAPS[kind][name])) for name in ("found", "others")]
    return np.where(adjacency > 0, np.where(found, *both), 0.0)


def fit_map(
    shares: np.ndarray, returned: np.ndarray, runs: np.ndarray, n_draws: int
) -> tuple[float, float]:
    """a and b by penalised maximum likelihood: a weak pull to a = 0, b = 1.

    Args:
        shares: of draws, (m,).
        returned: in how many other runs the pair was joined, (m,).
        runs: how many other runs there were, (m,).
        n_draws: how many draws.
    """
    from scipy import optimize  # slow to load, and for fitting only

    logits = _logits(shares, n_draws)

    def loss(line: np.ndarray) -> float:
        value = line[0] + line[1] * logits
        fit = returned * special.log_expit(value) + (runs - returned) * special.log_expit(-value)
        # a weak pull to the identity, worth about one run
        return float(-fit.sum() + 0.5 * (line[0] ** 2 + (line[1] - 1) ** 2))

    best = optimize.minimize(loss, np.array([0.0, 1.0]), bounds=[(None, None), (0.0, None)])
    return float(best.x[0]), float(best.x[1])
