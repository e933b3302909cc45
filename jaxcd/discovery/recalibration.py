r"""From the share of draws in which an edge returns to how often it returns over new data and new
noise.

Draws come from the found graph fitted to the release, as if it were the truth.  It was chosen for
fitting the release, so its edges return more often in such draws than in new data (the winner's
curse), and pairs that it left out less often.  With k of B draws and c = (k + 1/2) / (B + 1),

    logit p = a + b logit c + g [k = B],   b, g >= 0,

a, b and g for found edges and for other pairs of each kind of release, fitted by maximum likelihood
to how often pairs returned in new runs on random truths (``python -m benchmarks.reliability``, set
``fitted``; ``reliability.json`` holds the numbers and where they come from).  Edges that return in
every draw are of two sorts, clear ones and lucky ones; g is for the clear ones, of which there are
many.

Each number of draws has its own line: k of B draws are k' of b of them with hypergeometric
probabilities, so that lines for b <= B are fitted to the same runs, and p of k of B draws is the
mean over k' of p of the largest b that has a line.

Source:
    Platt 1999; Niculescu-Mizil and Caruana 2005.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from scipy import special

__all__ = ["DRAWS", "fit_map", "kinds", "mapped", "recalibrated", "scored", "thinned"]

Line = tuple[float, float, float]

DRAWS = (1, 2, 5, 10, 20)
"""The numbers of draws that have a line."""

_FILE = files("jaxcd.discovery").joinpath("reliability.json")
_MAPS: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))["maps"]


def kinds() -> tuple[str, ...]:
    """The kinds of release whose maps were fitted."""
    return tuple(_MAPS)


def _logits(shares: np.ndarray, n_draws: int) -> np.ndarray:
    found: np.ndarray = special.logit((np.asarray(shares) * n_draws + 0.5) / (n_draws + 1))
    return found


def mapped(shares: np.ndarray, n_draws: int, line: Line) -> np.ndarray:
    """p of shares of draws, elementwise; line: a, b and g."""
    always = np.asarray(shares) >= 1
    found: np.ndarray = special.expit(
        line[0] + line[1] * _logits(shares, n_draws) + line[2] * always
    )
    return found


def thinned(n_draws: int, n_kept: int) -> np.ndarray:
    """The probabilities that k of ``n_draws`` draws are k' of ``n_kept`` of them, float64
    (n_draws + 1, n_kept + 1).
    """
    k, kept = np.arange(n_draws + 1)[:, None], np.arange(n_kept + 1)
    found: np.ndarray = (
        special.comb(k, kept)
        * special.comb(n_draws - k, n_kept - kept)
        / special.comb(n_draws, n_kept)
    )
    return found


def scored(shares: np.ndarray, n_draws: int, lines: Mapping[str, Sequence[float]]) -> np.ndarray:
    """p of shares of draws, elementwise; lines: by numbers of draws, of which one is 1."""
    kept = max(draws for draws in map(int, lines) if draws <= n_draws)
    a, b, g = lines[str(kept)]
    values = thinned(n_draws, kept) @ mapped(np.arange(kept + 1) / kept, kept, (a, b, g))
    found: np.ndarray = values[np.rint(np.asarray(shares) * n_draws).astype(int)]
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
    both = [scored(adjacency, n_draws, _MAPS[kind][name]) for name in ("found", "others")]
    return np.where(adjacency > 0, np.where(found, *both), 0.0)


def fit_map(shares: np.ndarray, returned: np.ndarray, runs: np.ndarray, n_draws: int) -> Line:
    """a, b and g by penalised maximum likelihood: a weak pull to a = 0, b = 1 and g = 0.

    Args:
        shares: of draws, (m,).
        returned: in how many other runs the pair was joined, (m,).
        runs: how many other runs there were, (m,); both times a pair's weight.
        n_draws: how many draws.
    """
    from scipy import optimize  # slow to load, and for fitting only

    logits, always = _logits(shares, n_draws), np.asarray(shares) >= 1

    def loss(line: np.ndarray) -> float:
        value = line[0] + line[1] * logits + line[2] * always
        fit = returned * special.log_expit(value) + (runs - returned) * special.log_expit(-value)
        # a weak pull to the identity, worth about one run
        return float(-fit.sum() + 0.5 * (line[0] ** 2 + (line[1] - 1) ** 2 + line[2] ** 2))

    limits = [(None, None), (0.0, None), (0.0, None)]
    a, b, g = optimize.minimize(loss, np.array([0.0, 1.0, 0.0]), bounds=limits).x.tolist()
    return a, b, g
