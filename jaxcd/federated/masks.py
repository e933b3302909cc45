r"""Masks that cancel: a simulation of secure aggregation, for sites that follow the protocol.

Site i sends, modulo 2^b,

    y_i + PRG(own_i) + sum over j > i of PRG(key_ij) - sum over j < i of PRG(key_ij),

with a fresh ``own_i`` a round, and ``key_ij`` made of a secret that only i and j know (Diffie and
Hellman 1976, in the group of RFC 3526) and of the round.  The pair's masks cancel in the sum.  When
the coordinator has said whose numbers came, each of these sites tells its own key, and its keys of
this round with the sites that are missing; never more, and once a round only.  So whoever sees
everything learns the sum over the sites whose numbers came; a number that comes too late stays
hidden under its own key, which is never told (Bonawitz et al. 2017, without the secret sharing: a
site that is lost between the two steps costs the round's sum).

A real secure aggregation takes the place of :class:`Masks`; the guarantee (docs/PRIVACY.md Y) needs
of it that nothing but sums over at least K - d sites is seen.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping

import numpy as np

from jaxcd.errors import FormatError, OptionError
from jaxcd.privacy.shares import signed

__all__ = ["Masks", "opened", "packed", "unpacked"]

# The 2048-bit group of RFC 3526, section 3, with the generator 2.
PRIME = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22"
    "514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6"
    "F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3D"
    "C2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB"
    "9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E8603"
    "9B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
    "15728E5A8AACAA68FFFFFFFFFFFFFFFF",
    16,
)
_KEY = 32


def stream(key: bytes, size: int, bits: int) -> np.ndarray:
    """PRG(key): uint64 (size,), uniform below 2^bits."""
    words = np.frombuffer(hashlib.shake_256(b"jaxcd mask" + key).digest(8 * size), dtype="<u8")
    return words.astype(np.uint64) & _mask(bits)


def _mask(bits: int) -> np.uint64:
    return np.uint64(2**bits - 1)


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Numbers below 2^bits as bytes, uint8 (size, bits / 8)."""
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : bits // 8].copy()


def unpacked(content: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of :func:`packed`."""
    whole = np.zeros((len(content), 8), dtype=np.uint8)
    whole[:, : bits // 8] = content
    return whole.view("<u8").reshape(-1).astype(np.uint64)


class Masks:
    """The secrets of one site in one run.

    Args:
        name: of the site.
        run: a word, other than that of any other run.
    """

    def __init__(self, name: str, run: str) -> None:
        self._name, self._run = name, run
        self._private = int.from_bytes(os.urandom(_KEY), "little")
        self._pairs: dict[str, bytes] = {}
        self._own: dict[int, bytes] = {}

    @property
    def public_key(self) -> str:
        """What the others need, in hexadecimal digits."""
        return f"{pow(2, self._private, PRIME):x}"

    def meet(self, others: Mapping[str, str]) -> None:
        """Takes in the public keys of all sites of the run.

        Raises:
            OptionError: one of them is no element of the group.
        """
        for other, text in others.items():
            if other == self._name:
                continue
            try:
                public = int(text, 16)
            except (TypeError, ValueError):
                public = 0
            if not 1 < public < PRIME - 1:
                raise OptionError(f"roster: the public key of {other!r} is none")
            secret = pow(public, self._private, PRIME).to_bytes(256, "little")
            names = "\0".join(sorted((self._name, other))).encode()
            self._pairs[other] = hashlib.sha256(secret + names).digest()

    def pair_key(self, other: str, round_: int) -> bytes:
        """The key of this round with another site."""
        words = f"{self._run}\0{round_}".encode()
        return hashlib.sha256(self._pairs[other] + words).digest()

    def own_key(self, round_: int) -> bytes:
        """The key of this round that nobody else has."""
        return self._own.setdefault(round_, os.urandom(_KEY))

    def hide(self, values: np.ndarray, round_: int, bits: int) -> np.ndarray:
        """The numbers under all masks, uint64 below 2^bits.

        Args:
            values: int64, one-dimensional; with their share of the noise.
            round_: of the run.
            bits: of the modulus.
        """
        total = values.astype(np.int64).view(np.uint64) + stream(
            self.own_key(round_), len(values), bits
        )
        for other in self._pairs:
            mask = stream(self.pair_key(other, round_), len(values), bits)
            total = total + mask if self._name < other else total - mask
        return total & _mask(bits)


def opened(
    hidden: Mapping[str, np.ndarray],
    own: Mapping[str, bytes],
    missing: Mapping[str, Mapping[str, bytes]],
    *,
    roster: Collection[str],
    bits: int,
) -> np.ndarray:
    """The sum of the numbers that came, int64: the integers nearest to zero.

    Args:
        hidden: what each site sent.
        own: the own key of each of them.
        missing: for each site that sent nothing, the keys that the others have with it.
        roster: all sites that masked.
        bits: of the modulus.

    Raises:
        FormatError: a key is missing or too long or short.
    """
    size = len(next(iter(hidden.values())))
    absent = [name for name in roster if name not in hidden]
    total = np.zeros(size, dtype=np.uint64)
    for name, values in hidden.items():
        total = total + values - stream(_checked(own.get(name), name), size, bits)
        for other in absent:
            mask = stream(_checked(missing.get(other, {}).get(name), name), size, bits)
            total = total - mask if name < other else total + mask
    return signed(total & _mask(bits), bits)


def _checked(key: bytes | None, name: str) -> bytes:
    if key is None or len(key) != _KEY:
        raise FormatError(f"message: site {name!r} told no key of {_KEY} bytes")
    return key
