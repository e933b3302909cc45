"""Masks cancel in sums, and nowhere else."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.errors import FormatError, OptionError
from jaxcd.federated.masks import PRIME, Masks, opened, packed, unpacked


def met(names: tuple[str, ...], run: str = "r") -> dict[str, Masks]:
    masks = {name: Masks(name, run) for name in names}
    keys = {name: each.public_key for name, each in masks.items()}
    for each in masks.values():
        each.meet(keys)
    return masks


NAMES = ("east", "north", "süd", "west")
MET = met(NAMES)


def test_the_group_is_that_of_the_standard() -> None:
    """2^2048 - 2^1984 - 1 + 2^64 (floor(2^1918 pi) + 124476), a safe prime."""
    with mpmath.workprec(2100):
        digits = int(mpmath.floor(mpmath.mpf(2) ** 1918 * mpmath.pi))
    assert PRIME == 2**2048 - 2**1984 - 1 + 2**64 * (digits + 124476)
    for p in (PRIME, (PRIME - 1) // 2):
        assert all(pow(a, p - 1, p) == 1 for a in (2, 3, 5))


@given(st.integers(0, 2**31), st.sampled_from([16, 40, 64]), st.integers(0, 14))
def test_sums_come_out_whoever_is_missing(seed: int, bits: int, who: int) -> None:
    rng = np.random.default_rng(seed)
    there = [name for place, name in enumerate(NAMES) if who >> place & 1] or list(NAMES)
    limit = 2 ** (bits - 4)
    values = {name: rng.integers(-limit, limit, 5) for name in there}
    hidden = {name: MET[name].hide(v, seed, bits) for name, v in values.items()}
    own = {name: MET[name].own_key(seed) for name in there}
    absent = [name for name in NAMES if name not in there]
    missing = {a: {name: MET[name].pair_key(a, seed) for name in there} for a in absent}
    total = opened(hidden, own, missing, roster=NAMES, bits=bits)
    np.testing.assert_array_equal(total, sum(values.values()))


def test_what_is_sent_looks_random() -> None:
    """Zeros under masks have fair bits, other bits in each round, and no partial sum shows them."""
    masks, n = met(NAMES), 4_000
    zeros = np.zeros(n, dtype=np.int64)
    sent = {name: [each.hide(zeros, r, 64) for r in (0, 1)] for name, each in masks.items()}
    some = sum(sent[name][0] for name in NAMES[:3])
    everything = sum(sent[name][0] for name in NAMES)  # own keys still hide it
    for seen in (*(part for both in sent.values() for part in both), some, everything):
        share = np.unpackbits(seen.view(np.uint8)).mean()
        assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(64 * n)
    for first, second in sent.values():
        assert (first == second).sum() == 0
        change = np.unpackbits((first - second).view(np.uint8)).mean()
        assert abs(change - 0.5) < 5 * 0.5 / np.sqrt(64 * n)


def test_pairs_of_one_run_and_round_only_share_a_key() -> None:
    first, second = met(NAMES, "one"), met(NAMES, "two")
    keys = {
        each[a].pair_key(b, r)
        for each in (first, second)
        for a in NAMES
        for b in NAMES
        if a < b
        for r in (0, 1)
    }
    assert len(keys) == 2 * 6 * 2
    assert first["east"].pair_key("west", 0) == first["west"].pair_key("east", 0)


@pytest.mark.parametrize("bits", [8, 24, 56, 64])
def test_packing_and_back(bits: int) -> None:
    values = np.random.default_rng(0).integers(0, 2**bits, 100, dtype=np.uint64)
    content = packed(values, bits)
    assert content.shape == (100, bits // 8) and content.dtype == np.uint8
    np.testing.assert_array_equal(unpacked(content, bits), values)


@pytest.mark.parametrize("key", ["", "0", "1", "xyz", f"{PRIME - 1:x}", f"{PRIME:x}", None])
def test_keys_that_are_none_are_refused(key: str) -> None:
    with pytest.raises(OptionError, match="'other' is none"):
        Masks("me", "r").meet({"other": key})


def test_a_missing_key_is_named() -> None:
    hidden = {"a": np.zeros(2, np.uint64)}
    with pytest.raises(FormatError, match="site 'a' told no key"):
        opened(hidden, {}, {}, roster=["a"], bits=64)
