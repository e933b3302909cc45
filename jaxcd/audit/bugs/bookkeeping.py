"""Bugs in what stands around the mechanisms: ledgers, conversions, certificates, files."""

from __future__ import annotations

from jaxcd.audit.planting import Bug

__all__ = ["BUGS"]


BUGS: tuple[Bug, ...] = (
    Bug(
        "ledger-lock",
        "privacy.ledger:Ledger.charge",
        "with self._lock:",
        "if True:",
        "composition: charges of threads",
    ),
    Bug(
        "ledger-forgets",
        "privacy.ledger:Ledger._record",
        "self._sums = sums\n",
        "pass\n",
        "composition: pure events add up",
    ),
    Bug(
        "conversion",
        "privacy.conversion:_rho_to_epsilon",
        "math.log(delta)",
        "math.log(delta) / 2",
        "composition: conversion of zCDP",
    ),
    Bug(
        "gaussian-conversion",
        "privacy.gdp:_log_delta",
        "epsilon / mu, mu / 2",
        "epsilon / mu, mu / 4",
        "composition: conversion of Gaussian privacy",
    ),
    Bug(
        "gaussian-groups",
        "privacy.groups:group_cost",
        "cost.rho) * k**2",
        "cost.rho) * k",
        "composition: conversion of Gaussian privacy",
    ),
    Bug(
        "gaussian-union",
        "privacy.limits:rho_of",
        "event.gdp_rho if accounting is Accounting.GAUSSIAN else event.rho",
        "min(event.gdp_rho, event.rho)",
        "composition: Gaussian accounting adds up",
    ),
    Bug(
        "gaussian-pure",
        "privacy.gdp:_pure_to_gdp_rho",
        "4 * Fraction(x) ** 2",
        "2 * Fraction(x) ** 2",
        "composition: Gaussian accounting adds up",
    ),
    Bug(
        "gaussian-range",
        "privacy.gdp:range_to_gdp_rho",
        "Fraction(epsilon) / 2",
        "Fraction(epsilon) / 3",
        "composition: Gaussian accounting adds up",
    ),
    Bug(
        "gaussian-discrete",
        "privacy.mechanisms:gaussian",
        "sampler.rounded_gaussian if rounded else sampler.discrete_gaussian",
        "sampler.discrete_gaussian",
        "composition: Gaussian accounting draws rounded noise",
    ),
    Bug(
        "rounded-unweighted",
        "privacy.rounded_gaussian:rounded_gaussian",
        "[chosen][:missing]",
        "[:missing]",
        "laws: rounded Gaussian",
    ),
    Bug(
        "rounded-half",
        "privacy.rounded_gaussian:_accepted",
        "2.0 * sigma * sigma",
        "4.0 * sigma * sigma",
        "laws: rounded Gaussian",
    ),
    Bug(
        "exponential-price",
        "privacy.conversion:exponential_to_rho",
        "_square_over(epsilon, 8)",
        "_square_over(epsilon, 16)",
        "replay: pc, LevelwiseGaussian 7, Spearman",
    ),
    Bug(
        "group-delta",
        "privacy.groups:group_cost",
        "cost.rho) * k**2",
        "cost.rho) * k",
        "groups: k rows of one person",
    ),
    Bug(
        "ledger-file-alone",
        "privacy.ledger:Ledger.charge",
        "if self._under is not None:",
        "if False:",
        "ledger file: runs add up",
    ),
    Bug(
        "ledger-file-unchecked",
        "privacy.ledger_file:LedgerFile._take",
        "if digest != _digest(self._digest, content):",
        "if False:",
        "ledger file: an edited file is refused",
    ),
    Bug(
        "claims-unchecked",
        "privacy.registry:entry_of",
        "_BY_NAME.get(_place(part))",
        "_BY_NAME.get(_place(part), REGISTRY[0])",
        "proved: only for registered classes",
    ),
    Bug(
        "certificate-price",
        "privacy.verifying:_event_check",
        "_close(again, said) or (more and again <= said)",
        "again <= 1e9",
        "certificate: a false claim fails",
    ),
    Bug(
        "forged-release",
        "releases.stated_noise:check_stated_noise",
        "if least is not None and",
        "if False and",
        "release file: less noise than was charged for is refused",
    ),
)
