"""What was asked for, the choice that follows from it, and the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

import jaxcd
from jaxcd import api
from jaxcd.api import Algorithm
from jaxcd.cli import options
from jaxcd.errors import OptionError, PrivacyError, SensitivityError
from jaxcd.graphs import Knowledge
from jaxcd.places import check_new_file
from jaxcd.privacy import NoiseSource, NoPrivacy
from jaxcd.queries.door import public_count

__all__ = ["Asked", "check_release_out", "plan", "run"]


@dataclass(frozen=True)
class Asked:
    """What was asked for: the words of the options, and None where one was not given."""

    algorithm: Algorithm
    test: str
    mechanism: str
    alpha: float | None
    max_level: int | None
    linear: bool
    latent: bool
    release_out: Path | None
    n_confidence_draws: int

    def check(self) -> None:
        """Refuses what is no option of a search."""
        if self.algorithm is Algorithm.TREE and not options.is_auto(self.mechanism):
            raise OptionError(
                f"--mechanism {self.mechanism}: --algorithm tree has its own mechanism; drop one "
                "of the two"
            )
        lacks: tuple[str, ...] = ()
        if self.algorithm is Algorithm.TREE:
            lacks = ("--max-level",)
        elif self.algorithm.releases:
            lacks = ("--test", "--mechanism", "--alpha", "--max-level")
        for option in lacks:
            if option in self.of_tests:
                raise OptionError(
                    f"{option}: --algorithm {self.algorithm.value} has no such option; drop it, "
                    "or use --algorithm pc"
                )
        if self.linear and (self.algorithm is not Algorithm.AUTO or self.of_tests):
            of = " and ".join(self.of_tests) or f"--algorithm {self.algorithm.value}"
            raise OptionError(
                f"--linear tells --algorithm auto what to buy, and {of} leaves it no choice; drop "
                "one of the two"
            )
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise OptionError(
                f"--alpha {self.alpha:g} is not a level; give a number between 0 and 1, such as "
                "0.05"
            )
        if self.max_level is not None and not self.max_level >= 0:
            raise OptionError(
                f"--max-level {self.max_level} is not a level; use a whole number from 0"
            )
        if not self.n_confidence_draws >= 0:
            raise OptionError(
                f"--confidence {self.n_confidence_draws} is no number of draws; use a whole "
                "number from 0, such as 50"
            )

    @property
    def finds_pag(self) -> bool:
        """Whether the graph will be a PAG."""
        return self.latent or self.algorithm.finds_pag

    @property
    def of_tests(self) -> tuple[str, ...]:
        """The options that were given and that only searches by tests have."""
        given = {
            "--test": not options.is_auto(self.test),
            "--mechanism": not options.is_auto(self.mechanism),
            "--alpha": self.alpha is not None,
            "--max-level": self.max_level is not None,
        }
        return tuple(option for option, is_given in given.items() if is_given)


def check_release_out(path: Path | None, *, force: bool) -> None:
    """Refuses a file that is there, or cannot be, before anything is spent."""
    if path is not None:
        check_new_file(
            "--release-out", path, force=force, option="--force", cure="one such as release.npz"
        )


def plan(
    loaded: options.Loaded,
    asked: Asked,
    *,
    budget: jaxcd.Budget | NoPrivacy,
    knowledge: Knowledge | None,
) -> api.Choice:
    """What will be run, with tests at the level of ``--alpha``, and why; refuses here what the run
    would refuse.
    """
    algorithm = asked.algorithm
    if algorithm is Algorithm.AUTO and asked.of_tests:
        algorithm = Algorithm.FCI if asked.latent else Algorithm.PC
    choice = api.resolve(
        loaded.data.domain,
        public_count(loaded.data, budget),
        budget=budget,
        algorithm=algorithm,
        test=options.test(asked.test),
        decider=options.decider(asked.mechanism),
        max_level=asked.max_level,
        knowledge=knowledge,
        linear=asked.linear,
        latent=asked.latent,
    )
    if algorithm is not asked.algorithm:
        why = (
            f"chosen: {algorithm.name}, because of {' and '.join(asked.of_tests)}, for which a "
            "release has no use"
        )
        choice = dataclasses.replace(choice, reasons=(why, *choice.reasons))
    if choice.test is None:
        return choice
    for option, value in (
        ("--release-out", asked.release_out),
        ("--confidence", asked.n_confidence_draws or None),
    ):
        if value is not None:
            raise OptionError(
                f"{option}: {choice.algorithm.value} releases nothing; drop it, or use "
                "--algorithm release"
            )
    if isinstance(budget, jaxcd.Budget):
        _check_private(
            choice, budget, loaded.data.n_samples, 0.05 if asked.alpha is None else asked.alpha
        )
    if asked.alpha is None:
        return choice
    return choice.at_level(asked.alpha)


def _check_private(choice: api.Choice, budget: jaxcd.Budget, n_samples: int, alpha: float) -> None:
    """Refuses, in the words of the command line, what a private search by tests would refuse."""
    assert choice.test is not None
    if choice.decider is not None and not choice.decider.pays:
        raise PrivacyError(
            "--mechanism threshold compares without noise and protects nobody; use auto or "
            "another mechanism, or --no-privacy"
        )
    if (
        choice.test.margin_sensitivity(alpha=alpha, n_samples=n_samples, relation=budget.relation)
        is None
    ):
        raise SensitivityError(
            f"--test: {choice.test.name} has no bounded sensitivity, so no mechanism can make it "
            "private; use "
            "covariance-norm, pooled-covariance or kendall-tau, or --no-privacy"
        )
    if budget.delta == 0 and choice.algorithm is Algorithm.TREE:
        raise OptionError(
            "--algorithm tree: its Gaussian noise needs --delta above 0; give one such as 1e-6"
        )
    if budget.delta == 0 and choice.needs_delta:
        raise OptionError(
            "--mechanism: Gaussian noise needs --delta above 0; give one such as 1e-6, or use "
            "--mechanism sparse-vector"
        )


def run(
    loaded: options.Loaded,
    choice: api.Choice,
    asked: Asked,
    *,
    budget: jaxcd.Budget | NoPrivacy,
    key: jax.Array,
    noise: NoiseSource | None,
    ledger: jaxcd.LedgerFile | None,
    knowledge: Knowledge | None,
    progress: Callable[[Any], None],
) -> jaxcd.DiscoveryResult:
    """The discovery, with the reasons of the choice in its info."""
    # What was recommended may be another release than the usual one of these columns.
    recommended = choice.kind is not None and asked.algorithm is Algorithm.AUTO
    result = jaxcd.discover(
        loaded.data,
        budget=budget,
        key=key,
        noise=noise,
        ledger=ledger,
        test=choice.test,
        decider=choice.decider,
        tree=choice.tree,
        algorithm=Algorithm.AUTO if recommended else choice.algorithm,
        linear=asked.linear,
        latent=asked.latent,
        max_level=asked.max_level,
        knowledge=knowledge,
        release_out=asked.release_out,
        n_confidence_draws=asked.n_confidence_draws,
        progress=progress,
    )
    return dataclasses.replace(result, info={**result.info, "reasons": choice.reasons})
