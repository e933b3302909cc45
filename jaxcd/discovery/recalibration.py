r"""From the share of draws in which an edge returns to how often it returns over new data and new
noise.

Draws come from the found graph fitted to the release, as if it were the truth.  It was chosen for
fitting the release, so its edges return more often in such draws than in new data (the winner's
curse), and pairs that it left out less often.  With k of B draws and c = (k + 1/2) / (B + 1),

    logit p = a + e^b logit c + e^g [k = B],

each of a, b and g a constant and a linear function of x, what a release says publicly of the pair
(:meth:`jaxcd.releases.Release.facts_of_pairs`): above all how many rows its numbers are worth:
draws of a graph tell less where it was found in fewer rows.  The slopes are powers of e: p never
falls as the share rises, and the likelihood is smooth.  The coefficients, for found edges and for
other pairs of each kind of release, are fitted by penalised maximum likelihood to how often pairs
returned in new runs on random truths (``python -m benchmarks.reliability``, set ``fitted``;
``reliability.json`` holds the numbers and where they come from).  Edges that return in every draw
are of two sorts, clear ones and lucky ones; g is for the clear ones.

Each number of draws has its own line: k of B draws are k' of b of them with hypergeometric
probabilities, so that lines for b <= B are fitted to the same runs, and p of k of B draws is the
mean over k' of p of the largest b that has a line.

Source:
    Platt 1999; Niculescu-Mizil and Caruana 2005.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from scipy import special

__all__ = ["DRAWS", "fit_map", "kinds", "mapped", "recalibrated", "scored", "thinned"]

Line = tuple[float, ...]

DRAWS = (1, 2, 5, 10, 20)
"""The numbers of draws that have a line."""

_PULL = 10.0
"""Lines fitted to half of the truths of the set ``fitted`` say the other half best with 3 or 10, of
1, 3, 10, 30 and 100."""

_TO_THE_END = {"ftol": 1e-15, "gtol": 1e-7, "maxiter": 5000, "maxfun": 10000}
"""The fit ends at the optimum, so that no rounding decides where."""

_FILE = files("jaxcd.discovery").joinpath("reliability.json")
_MAPS: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))["maps"]


def kinds() -> tuple[str, ...]:
    """The kinds of release whose maps were fitted."""
    return tuple(_MAPS)


def _logits(shares: np.ndarray, n_draws: int) -> np.ndarray:
    found: np.ndarray = special.logit((np.asarray(shares) * n_draws + 0.5) / (n_draws + 1))
    return found


def mapped(
    shares: np.ndarray, n_draws: int, line: Line, facts: np.ndarray | None = None
) -> np.ndarray:
    """p of shares of draws, elementwise.

    Args:
        shares: of draws.
        n_draws: how many draws.
        line: of each of a, b and g the constant and the coefficients of x.
        facts: x, (m, *shares.shape), or of a shape that broadcasts to it; None where m is 0.
    """
    x = np.zeros((0, 1)) if facts is None else facts
    a, b, g = (one + np.tensordot(more, x, 1) for one, *more in np.reshape(line, (3, -1)))
    always = np.asarray(shares) >= 1
    found: np.ndarray = special.expit(a + np.exp(b) * _logits(shares, n_draws) + np.exp(g) * always)
    return found


@functools.cache
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


def scored(
    shares: np.ndarray,
    n_draws: int,
    lines: Mapping[str, Sequence[float]],
    facts: np.ndarray | None = None,
) -> np.ndarray:
    """p of shares of draws, elementwise; lines: by numbers of draws, of which one is 1; facts: x,
    (m, *shares.shape).
    """
    kept = max(draws for draws in map(int, lines) if draws <= n_draws)
    chances = thinned(n_draws, kept)[np.rint(np.asarray(shares) * n_draws).astype(int)]
    wide = None if facts is None else facts[..., None]
    values = mapped(np.arange(kept + 1) / kept, kept, tuple(lines[str(kept)]), wide)
    found: np.ndarray = (chances * values).sum(-1)
    return found


def recalibrated(
    adjacency: np.ndarray, found: np.ndarray, *, n_draws: int, kind: str, facts: np.ndarray
) -> np.ndarray:
    """p of all pairs, float64 (d, d); pairs that no draw joined stay at 0.

    Args:
        adjacency: shares of draws, (d, d).
        found: bool (d, d), which pairs the graph joins.
        n_draws: how many draws.
        kind: of :func:`kinds`.
        facts: x of the release, (m, d, d); m is 0 where its kind has none.
    """
    both = [scored(adjacency, n_draws, _MAPS[kind][name], facts) for name in ("found", "others")]
    return np.where(adjacency > 0, np.where(found, *both), 0.0)


def fit_map(
    shares: np.ndarray,
    returned: np.ndarray,
    runs: np.ndarray,
    n_draws: int,
    facts: np.ndarray | None = None,
) -> Line:
    """A line by penalised maximum likelihood: every number is pulled to 0, and so p to the share.

    Args:
        shares: of draws, (m,).
        returned: in how many other runs the pair was joined, (m,).
        runs: how many other runs there were, (m,); both times a pair's weight.
        n_draws: how many draws.
        facts: x, (number of facts, m); None for none.
    """
    from scipy import optimize  # slow to load, and for fitting only

    ones = np.ones((1, len(shares)))
    x = ones if facts is None else np.vstack([ones, facts])
    logits, always = _logits(shares, n_draws), np.asarray(shares) >= 1

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        a, b, g = line.reshape(3, -1) @ x
        slopes = np.stack([ones[0], np.exp(b) * logits, np.exp(g) * always])
        value = a + slopes[1] + slopes[2]
        fit = returned * special.log_expit(value) + (runs - returned) * special.log_expit(-value)
        gradient = (slopes * (returned - runs * special.expit(value))) @ x.T
        return float(0.5 * _PULL * (line**2).sum() - fit.sum()), _PULL * line - gradient.ravel()

    found = optimize.minimize(
        loss, np.zeros(3 * len(x)), jac=True, method="L-BFGS-B", options=_TO_THE_END
    )
    return tuple(found.x.tolist())
