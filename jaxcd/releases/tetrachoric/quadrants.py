r"""The quadrants of two standard normal variables with correlation r, cut at thresholds a and b.

With s = 1 where z > a and -1 elsewhere, and t alike of b,

    E[s t] = (1 - 2 Phi(a)) (1 - 2 Phi(b))
             + (2 / pi) int from 0 to arcsin r of exp(-(a^2 + b^2 - 2 a b sin u) / (2 cos^2 u)) du,

which grows with r; at a = b = 0 it is (2 / pi) arcsin r.  The r that a product stands for is the
tetrachoric correlation.

Source:
    Pearson 1900; Plackett 1954 for the derivative by r, Drezner and Wesolowsky 1990 for the
    integral over angles.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

__all__ = ["MOST", "sign_product", "slope", "tetrachoric"]

MOST = 0.99
"""No correlation is taken to be stronger: there the product hardly changes with it."""

_HALVINGS = 40
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def sign_product(first: np.ndarray, second: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """E[s t], float64 (m,).

    Args:
        first: thresholds a, (m,).
        second: thresholds b, (m,).
        correlation: r, (m,), within -1 and 1.
    """
    angle = np.arcsin(np.clip(correlation, -MOST, MOST))
    found: np.ndarray = np.zeros_like(angle)
    squares, product = first**2 + second**2, first * second
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        sine = np.sin(angle * ((node + 1) / 2))
        found += weight * np.exp(-(squares - 2 * product * sine) / (2 * (1 - sine**2)))
    found *= angle / math.pi
    found += (1 - 2 * special.ndtr(first)) * (1 - 2 * special.ndtr(second))
    return found


def slope(first: np.ndarray, second: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """The derivative of E[s t] by r, positive; arguments as for :func:`sign_product`."""
    rest = 1 - np.clip(correlation, -MOST, MOST) ** 2
    squares = first**2 + second**2 - 2 * first * second * correlation
    found: np.ndarray = (2 / math.pi) * np.exp(-squares / (2 * rest)) / np.sqrt(rest)
    return found


def tetrachoric(products: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The correlations at which E[s t] is what is given, within -0.99 and 0.99; float64 (m,).

    Args:
        products: any numbers, (m,).
        first: thresholds a, (m,).
        second: thresholds b, (m,).
    """
    low, high = np.full(len(products), -MOST), np.full(len(products), MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = sign_product(first, second, middle) < products
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: np.ndarray = (low + high) / 2
    return found
