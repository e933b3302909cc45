"""What is said of a budget: a promise is never said smaller than it is, nor what is left larger."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jaxcd
from jaxcd.privacy.rounding import left_in_words, spent_in_words
from tests.helpers import sampled, simulated


@pytest.mark.parametrize("value", [0.1, 1.0, 1.0000001, 2.0000049, 1e-6, 1.0000004e-6, 1e7 + 1, 7])
def test_a_number_that_is_promised_is_never_said_smaller(value: float) -> None:
    said = float(spent_in_words(value))
    assert value <= said <= value * (1 + 1e-5)
    assert float(left_in_words(value)) <= value


def test_every_page_rounds_a_promise_up(tmp_path: Path) -> None:
    epsilon, delta = 1.0000001, 1.0000001e-6
    budget = jaxcd.Budget(epsilon, delta)
    data = sampled("cancer", 2_000)
    run = jaxcd.search(jaxcd.release(data, jaxcd.Marginals(), budget=budget, noise=simulated()))
    run.save(tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    verified = str(jaxcd.verify(tmp_path / "run" / "privacy.json"))
    for words in (str(budget), str(run.cost), str(run), page, verified):
        said = re.findall(r"epsilon ?= ?([0-9.e+-]*[0-9])", words)
        assert said
        assert all(float(number) >= epsilon or float(number) < 0.99 for number in said), said
        said = re.findall(r"delta ?= ?([0-9.e+-]*[0-9])", words)
        assert said and all(float(number) >= delta for number in said), said


@pytest.mark.parametrize("delta", [0.0, 1.0000004e-6])
def test_what_verify_computes_again_is_not_said_smaller_either(delta: float) -> None:
    budget = jaxcd.Budget(1.0000004, delta)
    bought = jaxcd.release(
        sampled("cancer", 500), jaxcd.Histogram(), budget=budget, noise=simulated()
    )
    found = str(jaxcd.verify(bought.certificate()))
    for number in re.findall(r"epsilon ([0-9.e+-]*[0-9])", found):
        assert float(number) >= 1.0000004, found
    for number in re.findall(r"(?:of|, delta) ([0-9.e-]*[0-9]e-[0-9]+)", found):
        assert float(number) >= delta, found
