"""What the methods without a private form say of bad data, and of a budget."""

from __future__ import annotations

import numpy as np
import pytest

from jaxcd.errors import DataError, SensitivityError
from jaxcd.pairwise import cds, igci
from jaxcd.privacy import NO_PRIVACY, Budget

EACH = pytest.mark.parametrize("method", [cds, igci])
ROW = np.arange(20.0)
CONSTANT = np.full(20, 2.0)
NAN = "is NaN or infinite in 1 record:"


@EACH
@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.zeros((20, 2)), ROW, "x must be one column"),
        (ROW, ROW[:19], "lengths 20 and 19"),
        (ROW[:7], ROW[:7], "7 records, and 8 are the least"),
        (CONSTANT, ROW, "x is constant"),
        (ROW, CONSTANT, "y is constant"),
        (np.append(ROW[:19], np.nan), ROW, f"x {NAN}"),
        (ROW, np.ma.masked_array(ROW, mask=ROW == 3), f"y {NAN}"),
    ],
    ids=["2-D", "lengths", "few", "constant", "constant y", "nan", "masked"],
)
def test_bad_data(method, x, y, words: str):
    with pytest.raises(DataError, match=words) as caught:
        method(x, y, budget=NO_PRIVACY)
    assert "\n" not in str(caught.value)


@EACH
def test_a_budget_is_refused_with_a_way_out(method):
    words = f"{method.__name__} cannot be private.*use reci or anm.*local privacy"
    with pytest.raises(SensitivityError, match=words):
        method(ROW, ROW**2, budget=Budget(1.0))
