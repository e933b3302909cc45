"""Of several processes one draws; what the others draw goes nowhere."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.privacy import Accountant, Ledger, NoiseSampler, NoiseSource, OneDraw, SecureNoise
from jaxcd.privacy.accountant import SIMULATED
from jaxcd.queries import Door

BUDGET = jaxcd.Budget(1.0, 1e-6)


class Wire:
    """What the first of two processes tells the second, in this one."""

    def __init__(self) -> None:
        self.words: list[np.ndarray] = []

    def first(self, words: np.ndarray) -> np.ndarray:
        self.words.append(words)
        return words

    def second(self, words: np.ndarray) -> np.ndarray:
        told = self.words.pop(0)
        assert told.shape == words.shape and told.dtype == words.dtype == np.int64
        return told


def accountants(first: NoiseSource, second: NoiseSource) -> list[Accountant]:
    wire = Wire()
    return [
        Accountant(Ledger(BUDGET), OneDraw(source, tell))
        for source, tell in ((first, wire.first), (second, wire.second))
    ]


def test_both_release_the_same_numbers() -> None:
    both = accountants(SecureNoise(), SecureNoise())
    values = np.arange(6.0)
    found = [
        jaxcd.privacy.gaussian(accountant, values, sensitivity=1.0, rho=0.01, label="a")
        for accountant in both
    ]
    assert np.array_equal(*found) and not np.array_equal(found[0], values)
    assert all(accountant.guarantee.proven for accountant in both)
    alone = SecureNoise().start().discrete_gaussian(1e6, 6, index=0)
    assert not np.array_equal(alone, found[0])


@pytest.mark.parametrize("simulated", [0, 1])
def test_it_is_secure_where_the_first_process_is(simulated: int) -> None:
    sources: list[NoiseSource] = [SecureNoise(), SecureNoise()]
    sources[simulated] = jaxcd.SimulatedNoise(jax.random.key(0))
    for accountant in accountants(*sources):
        assert accountant.noise.secure is (simulated == 1)
        assert (accountant.guarantee.reason == SIMULATED) is (simulated == 0)


def test_a_source_of_ones_own_is_not_called_proved_for_being_wrapped() -> None:
    class Mine(NoiseSource):
        @property
        def secure(self) -> bool:
            return True

        def start(self) -> NoiseSampler:
            return SecureNoise().start()

    for accountant in accountants(Mine(), SecureNoise())[:1]:
        assert not accountant.guarantee.proven and "Mine" in accountant.guarantee.reason


def test_wrong_arguments_end_every_process_alike() -> None:
    for accountant in accountants(SecureNoise(), SecureNoise()):
        with pytest.raises(jaxcd.errors.OptionError, match="scale"):
            accountant.noise.discrete_laplace(-1.0, 1, index=0)


def test_rows_of_one_process_keep_their_noise() -> None:
    data = jaxcd.networks.load("cancer").sample(50, key=jax.random.key(0))
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    for rows in (data, data.on(jax.make_mesh((1,), ("rows",)))):
        door = Door(rows, BUDGET)
        assert door.noise(noise) is noise and door.noise(None) is None
