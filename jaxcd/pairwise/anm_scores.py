r"""The scores of an additive noise model: how much the residual still says about the cause; the
smaller one wins.

Each is a frozen description.  A rank or kernel score is a number of (cause, residual) with a
bounded sensitivity to a test record:

| score | value | replace-one test record of m | every residual moves by at most r |
|---|---|---|---|
| Spearman | abs(rho), rho = 3 E / (m^3 - m) | 6 / (m + 1) | none: ranks can turn over |
| Kendall | abs(tau-a) | 4 / m | none |
| HSIC | T = sqrt(HSIC) | sqrt(6) (m - 1) / m^2 | L r, L = 1 / bandwidth |
| log IQR | log IQR(cause) + log IQR(residual) | unbounded | unbounded |

abs() is 1-Lipschitz.  Proofs: :mod:`jaxcd.citests.spearman`; Kendall: only the m - 1 pairs of the
record change, each by at most 2, of m (m - 1) / 2; HSIC: :mod:`jaxcd.pairwise.anm_hsic`.  The log
IQR is handled by counting records
(:mod:`jaxcd.pairwise.anm_quartiles`).

Source:
    Kusner, Sun, Sridharan, Weinberger 2016; Mooij, Peters, Janzing, Zscheischler, Schoelkopf 2016.
"""

from __future__ import annotations

import abc
import enum
from dataclasses import dataclass

import numpy as np

from jaxcd.checks import check_choice, check_flag, check_number, check_whole, hold_python_numbers
from jaxcd.citests.spearman import spearman_rho_sensitivity
from jaxcd.ops.concordance import concordance
from jaxcd.ops.spearman import rank_products

__all__ = [
    "AnmScore",
    "HSICScore",
    "IQRMechanism",
    "KendallScore",
    "LogIQRScore",
    "Protect",
    "ScoreRelease",
    "SpearmanScore",
]


class Protect(enum.Enum):
    """Whose records the guarantee of a private run is about.

    TEST: the records at the test positions (the public key names them).  The others train the
    regression and are **not protected at all**: for data whose training half is public.
    TRAIN: the records at the training positions; those at the test positions are not protected.
    BOTH: all records.
    """

    TEST = "test"
    TRAIN = "train"
    BOTH = "both"


class ScoreRelease(enum.Enum):
    """What leaves a private run.  DIRECTION: one noisy difference of scores.  SCORES: both scores,
    each with as much noise as that difference, so that theirs has twice its variance.
    """

    DIRECTION = "direction"
    SCORES = "scores"


class IQRMechanism(enum.Enum):
    """How quartile ranges become private.

    FLIP_DISTANCE: the number of records that would have to change to turn the answer over, with
    noise for one record; pure, direction only. PROPOSE_TEST_RELEASE: each log IQR with noise for
    one bin if it is far from the bin's ends, else no answer; (epsilon, delta). EXPONENTIAL:
    quartiles by the exponential mechanism on a grid; pure; test side only.
    """

    FLIP_DISTANCE = "flip distance"
    PROPOSE_TEST_RELEASE = "propose-test-release"
    EXPONENTIAL = "exponential mechanism"


class AnmScore(abc.ABC):
    """A score; the module's docstring has the table."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name for reports."""


class _RankScore(AnmScore):
    stability_release: bool

    def __post_init__(self) -> None:
        check_flag("stability_release", self.stability_release)

    @abc.abstractmethod
    def value(self, cause: np.ndarray, residual: np.ndarray) -> float:
        """The score, in [0, 1]; 0 for a constant column."""

    @abc.abstractmethod
    def test_sensitivity(self, m: int) -> float:
        """The largest change when one of m test records is replaced."""


@dataclass(frozen=True)
class SpearmanScore(_RankScore):
    """abs(rho) of cause and residual.

    Args:
        stability_release: opt in to the only release there is when the training half is protected:
            the exact scores if no record can change the order of the residuals, else no answer.
            The gaps of m residuals are about 1 / m^2 and a training record shifts them by about 1 /
            n, so the answer is almost always none.
    """

    stability_release: bool = False

    @property
    def name(self) -> str:
        return "Spearman"

    def value(self, cause: np.ndarray, residual: np.ndarray) -> float:
        m = float(len(cause))
        return abs(float(rank_products(cause, residual).product[0])) * 3 / (m**3 - m)

    def test_sensitivity(self, m: int) -> float:
        return spearman_rho_sensitivity(m)


@dataclass(frozen=True)
class KendallScore(_RankScore):
    """The dependence of cause and residual by Kendall's tau: abs(tau-a).

    Args:
        stability_release: as for :class:`SpearmanScore`.
    """

    stability_release: bool = False

    @property
    def name(self) -> str:
        return "Kendall"

    def value(self, cause: np.ndarray, residual: np.ndarray) -> float:
        m = len(cause)
        # Padded to a power of two, in a stratum of its own: one compilation for many lengths.
        padding = (1 << (m - 1).bit_length()) - m
        stratum = np.repeat([0, 1], [m, padding])
        x, y = np.append(cause, np.zeros(padding)), np.append(residual, np.zeros(padding))
        return abs(float(concordance(x, y, stratum, 2).concordance[0])) * 2 / (m * (m - 1))

    def test_sensitivity(self, m: int) -> float:
        return 4 / m


@dataclass(frozen=True)
class HSICScore(AnmScore):
    """T = sqrt(HSIC) of cause and residual with Gaussian kernels.

    Args:
        cause_multiple: the bandwidths as multiples of the median distance of the training rows,
            where these are not protected (without privacy, and with ``Protect.TEST``).
        residual_multiple: as ``cause_multiple``.
        cause_bandwidth: public bandwidths otherwise, on the scale on which the bounds are [-1, 1].
            All positive.
        residual_bandwidth: as ``cause_bandwidth``.
    """

    cause_multiple: float = 0.08
    residual_multiple: float = 0.15
    cause_bandwidth: float = 0.25
    residual_bandwidth: float = 0.25

    @property
    def name(self) -> str:
        return "HSIC"

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        for argument in (
            "cause_multiple",
            "residual_multiple",
            "cause_bandwidth",
            "residual_bandwidth",
        ):
            value = getattr(self, argument)
            check_number(argument, value, 0, ends="(]", cure="give one such as 0.25")


@dataclass(frozen=True)
class LogIQRScore(AnmScore):
    """log IQR(cause) + log IQR(residual): the joint entropy of an additive noise model, by a robust
    proxy.

    Args:
        mechanism: None takes FLIP_DISTANCE for a direction, EXPONENTIAL for scores of the test
            side, else PROPOSE_TEST_RELEASE.
        width: of the bins of propose-test-release, from 1e-6: the local sensitivity that is
            proposed (1 in the paper).
        resolution: points of the exponential mechanism's grid, at least 10.
    """

    mechanism: IQRMechanism | None = None
    width: float = 1.0
    resolution: int = 1000

    @property
    def name(self) -> str:
        return "log IQR"

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        if self.mechanism is not None:
            check_choice("mechanism", self.mechanism, IQRMechanism)
        check_number("width", self.width, 1e-6, cure="give one such as 1.0")
        check_whole("resolution", self.resolution, 10, cure="give one such as 1000")
