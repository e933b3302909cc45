"""Every door with ``key`` or ``progress`` refuses what is none, also where it would not use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import polars
import pytest

import jaxcd
from jaxcd.errors import OptionError
from tests.helpers import PLAIN, coded, levelled

DATA = coded([[0, 0], [1, 1], [0, 1], [1, 0]] * 5, 2, 2)
BOUGHT = jaxcd.release(DATA, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
RUN = jaxcd.search(BOUGHT)
FREE: dict[str, Any] = {"budget": jaxcd.NO_PRIVACY}
BY_TESTS: dict[str, Any] = {**PLAIN, "test": jaxcd.ChiSquare()}
X = np.random.default_rng(0).normal(size=50)
Y = X + X**2

KEYS: dict[str, Callable[[Any], Any]] = {
    "discover": lambda key: jaxcd.discover(DATA, budget=jaxcd.Budget(1.0), key=key),
    "pc": lambda key: jaxcd.pc(DATA, **{**BY_TESTS, "key": key}),
    "fci": lambda key: jaxcd.fci(DATA, **{**BY_TESTS, "key": key}),
    "gfci": lambda key: jaxcd.gfci(BOUGHT, key=key),
    "ges": lambda key: jaxcd.ges(DATA, **FREE, key=key),
    "mmhc": lambda key: jaxcd.mmhc(DATA, **FREE, key=key),
    "exact_search": lambda key: jaxcd.exact_search(DATA, **FREE, key=key),
    "order_mcmc": lambda key: jaxcd.order_mcmc(DATA, **FREE, key=key),
    "ci_test": lambda key: jaxcd.ci_test(DATA, "v0", "v1", test=jaxcd.ChiSquare(), **FREE, key=key),
    "anm": lambda key: jaxcd.anm(X, Y, **FREE, key=key),
    "igci": lambda key: jaxcd.igci(X, Y, **FREE, key=key),
    "cds": lambda key: jaxcd.cds(X, Y, **FREE, key=key),
    "reci": lambda key: jaxcd.reci(X, Y, **FREE, key=key),
}


@pytest.mark.parametrize("door", KEYS)
@pytest.mark.parametrize("given", [3, "a", jax.random.PRNGKey(0)], ids=["3", "a", "untyped"])
def test_what_is_no_key_is_refused(door: str, given: Any) -> None:
    with pytest.raises(OptionError, match=r"key must be one typed key, .*use jax\.random\.key"):
        KEYS[door](given)


def _table(progress: Any) -> Any:
    frame = polars.DataFrame({"v0": [0, 1], "v1": [1, 0]}).lazy()
    return jaxcd.Table(frame, domain=levelled(2, 2), n_samples=2, snapshot="v1", progress=progress)


PROGRESS: dict[str, Callable[[Any], Any]] = {
    "discover": lambda told: jaxcd.discover(
        DATA, budget=jaxcd.Budget(1.0), key=None, progress=told
    ),
    "discover by tree_pc": lambda told: jaxcd.discover(
        DATA, budget=jaxcd.Budget(1.0, 1e-6), key=None, algorithm="tree", progress=told
    ),
    "pc": lambda told: jaxcd.pc(DATA, **BY_TESTS, progress=told),
    "fci": lambda told: jaxcd.fci(DATA, **BY_TESTS, progress=told),
    "gfci": lambda told: jaxcd.gfci(BOUGHT, progress=told),
    "order_mcmc": lambda told: jaxcd.order_mcmc(DATA, **FREE, key=jax.random.key(0), progress=told),
    "ges": lambda told: jaxcd.ges(BOUGHT, progress=told),
    "mmhc": lambda told: jaxcd.mmhc(BOUGHT, progress=told),
    "exact_search": lambda told: jaxcd.exact_search(BOUGHT, progress=told),
    "edge_confidence": lambda told: jaxcd.edge_confidence(BOUGHT, RUN, n_draws=1, progress=told),
    "Table": _table,
}


@pytest.mark.parametrize("door", PROGRESS)
@pytest.mark.parametrize("given", [3, "yes"])
def test_what_is_no_progress_is_refused(door: str, given: Any) -> None:
    with pytest.raises(OptionError, match=r"^progress = .*function of .*; (give|use) .*None|False"):
        PROGRESS[door](given)


def test_confidence_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    jaxcd.edge_confidence(BOUGHT, RUN, n_draws=2, progress=True)
    assert capsys.readouterr().out == "confidence (1 of 2)\nconfidence (2 of 2)\n"


@pytest.mark.parametrize("found", [None, 3, RUN.graph], ids=["None", "3", "graph"])
@pytest.mark.parametrize("run", [None, RUN], ids=["", "of a run"])
def test_a_search_that_returns_no_run_is_refused(found: Any, run: Any) -> None:
    with pytest.raises(OptionError, match=r"^search: the function returned .* give one of a rel"):
        jaxcd.edge_confidence(BOUGHT, run, n_draws=1, search=lambda release: found)


@pytest.mark.parametrize("search", [jaxcd.ges, jaxcd.mmhc, jaxcd.exact_search])
def test_searches_by_score_say_how_far_they_are(
    search: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[Any] = []
    told = search(BOUGHT, progress=steps.append)
    assert steps and all(step.progress[0] >= 0 and str(step) for step in steps)
    assert told.graph == search(BOUGHT).graph and capsys.readouterr().out == ""
    search(BOUGHT, progress=True)
    assert capsys.readouterr().out.splitlines() == list(map(str, steps))
    n = len(steps)
    told.again(BOUGHT)  # of which nobody asked how far it is
    assert len(steps) == n
