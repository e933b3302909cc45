"""Privacy: budgets, events, the ledger, noise and mechanisms, each with its proof beside it.

The order of things: a :class:`Budget` is fixed before the data is read; a :class:`Ledger` keeps it;
a mechanism charges the ledger an event and only then draws noise. This package knows no test and no
graph: numbers go in, and what comes out is private.
"""

from __future__ import annotations

from .above_threshold import THRESHOLD_SHARE, AboveThreshold, ThresholdNoise
from .accountant import (
    Accountant,
    Purchase,
    Receipt,
    keeps_what_is_paid,
    open_account,
    paying,
    receipt_of,
)
from .audit import SensitivityWitness, epsilon_lower_bound, search_sensitivity
from .budget import NO_PRIVACY, Accounting, Budget, NoPrivacy, PrivacyCost, Relation, Unit
from .claims import PUBLIC, GuaranteeClaim, claiming
from .conversion import (
    amplified_epsilon,
    epsilon_to_rho,
    exponential_to_rho,
    pure_to_rho,
    rho_to_epsilon,
    rho_to_exponential,
    rho_to_pure,
    subsampled_epsilon,
)
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
from .gdp import (
    epsilon_to_gdp_rho,
    gdp_rho_to_epsilon,
    gdp_rho_to_pure,
    gdp_rho_to_range,
    pure_to_gdp_rho,
    range_to_gdp_rho,
)
from .ledger import Ledger, LedgerEntry, LedgerPart, PrivacyFilter
from .ledger_file import LedgerFile
from .mechanisms import (
    GRID,
    VECTOR_GRID,
    gaussian,
    gaussian_sigma,
    integer_sensitivity,
    laplace,
    noise_scale,
    planned_sigma,
    quantise,
    select_max,
    select_top,
)
from .noise import NoiseSampler, NoiseSource, SecureNoise, SimulatedNoise
from .one_draw import OneDraw
from .registry import REGISTRY, Entry, Role, unregistered
from .rounding import split
from .sensitive import Sensitive

__all__ = [
    "GRID",
    "NO_PRIVACY",
    "PUBLIC",
    "REGISTRY",
    "THRESHOLD_SHARE",
    "VECTOR_GRID",
    "AboveThreshold",
    "Accountant",
    "Accounting",
    "Budget",
    "Entry",
    "ExponentialMechanismEvent",
    "FailureEvent",
    "GaussianEvent",
    "GuaranteeClaim",
    "claiming",
    "Law",
    "Ledger",
    "LedgerEntry",
    "LedgerFile",
    "LedgerPart",
    "MechanismRecord",
    "NoPrivacy",
    "NoiseSampler",
    "NoiseSource",
    "OneDraw",
    "PrivacyCost",
    "PrivacyEvent",
    "PrivacyFilter",
    "Purchase",
    "PureEvent",
    "Receipt",
    "Relation",
    "Role",
    "SecureNoise",
    "Sensitive",
    "SensitivityWitness",
    "SimulatedNoise",
    "ThresholdNoise",
    "Unit",
    "ZCDPEvent",
    "amplified_epsilon",
    "epsilon_lower_bound",
    "epsilon_to_gdp_rho",
    "epsilon_to_rho",
    "exponential_to_rho",
    "gaussian",
    "gaussian_sigma",
    "gdp_rho_to_epsilon",
    "gdp_rho_to_pure",
    "gdp_rho_to_range",
    "integer_sensitivity",
    "laplace",
    "noise_scale",
    "keeps_what_is_paid",
    "open_account",
    "paying",
    "planned_sigma",
    "pure_to_gdp_rho",
    "pure_to_rho",
    "quantise",
    "range_to_gdp_rho",
    "receipt_of",
    "rho_to_epsilon",
    "rho_to_exponential",
    "rho_to_pure",
    "search_sensitivity",
    "select_max",
    "select_top",
    "split",
    "subsampled_epsilon",
    "unregistered",
]
