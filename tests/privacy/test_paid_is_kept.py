"""What is paid for is kept: wherever a run breaks off after its first charge, the exception carries
what was bought.

Failures are put into runs at calls: a profile function counts the calls of jaxcd's own functions
from the first charge on and raises at one of them.  So every step is reached, also one that is
written tomorrow.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd import places
from jaxcd.cli import main, paid
from jaxcd.errors import BudgetExhausted, DomainError, JaxcdError, OptionError
from jaxcd.privacy import Budget, Ledger, LedgerFile, PureEvent, ledger_file, paying, receipt_of
from jaxcd.privacy.accountant import _together
from tests.helpers import numbers, sampled, simulated

PACKAGE = str(Path(jaxcd.__file__).parent)
ERRORS = (RuntimeError, KeyboardInterrupt, MemoryError)


@pytest.fixture(scope="module")
def discrete() -> jaxcd.Dataset:
    data = sampled("cancer", 300)
    return data.select(data.names[:3])


@pytest.fixture(scope="module")
def numeric() -> jaxcd.Dataset:
    values = np.random.default_rng(0).normal(size=(300, 3))
    return jaxcd.Dataset.from_array(values, domain=numbers("abc"))


@pytest.fixture(scope="module")
def mixed() -> jaxcd.Dataset:
    values = np.random.default_rng(0).normal(size=(300, 3))
    values[:, 0] = values[:, 0] > 0
    domain = jaxcd.Domain(
        {"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Numeric(), "c": jaxcd.Numeric()}
    )
    return jaxcd.Dataset.from_array(values, domain=domain)


# ---- failures at calls

_CHARGE = Ledger.charge.__code__


@dataclass
class Calls:
    """Calls of jaxcd's functions in one run, outside charges and generators: before the first
    charge, and from it on.
    """

    before: list[CodeType] = field(default_factory=list)
    after: list[CodeType] = field(default_factory=list)


@contextmanager
def watching(
    raise_at: Callable[[CodeType, Calls], BaseException | None] = lambda code, calls: None,
) -> Iterator[Calls]:
    """Notes the calls of the block; ``raise_at`` is asked at each, after it was noted, for an error
    to raise there.
    """
    calls, inside, charged = Calls(), 0, False

    def see(frame: FrameType, event: str, value: object) -> None:
        nonlocal inside, charged
        code = frame.f_code
        if code is _CHARGE and event in ("call", "return"):
            inside += 1 if event == "call" else -1
            charged |= event == "return" and value is not None
        elif (
            event == "call"
            and not inside
            and code.co_filename.startswith(PACKAGE)
            and not code.co_flags & inspect.CO_GENERATOR
        ):
            (calls.after if charged else calls.before).append(code)
            error = raise_at(code, calls)
            if error is not None:
                raise error

    sys.setprofile(see)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def failing_in(
    part: str, error: BaseException, *, paid: bool = True
) -> Callable[[CodeType, Calls], BaseException | None]:
    """Raises at the first call of a function in a file of this part of the package, after the first
    charge or before it.
    """

    def raise_at(code: CodeType, calls: Calls) -> BaseException | None:
        return (
            error
            if code.co_filename.startswith(f"{PACKAGE}/{part}") and bool(calls.after) is paid
            else None
        )

    return raise_at


def words_of(code: CodeType) -> str:
    return f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}"


@pytest.fixture
def doors(discrete, numeric, mixed) -> dict[str, tuple[Budget, Callable[[Ledger], object]]]:
    """Every door that spends, with its budget, as a function of the ledger above it."""
    both, pure = Budget(1.0, 1e-6), Budget(1.0)
    x, y = np.random.default_rng(0).uniform(size=(2, 300))
    bounds = ((0.0, 1.0), (0.0, 1.0))
    options = {"budget": both, "key": None, "noise": simulated()}
    test = jaxcd.CovarianceNorm()
    pair = discrete.select(discrete.names[:2])  # a search of it calls what one of three calls
    return {
        "discover, a histogram": (
            both,
            lambda total: jaxcd.discover(pair, **options, ledger=total, n_confidence_draws=1),
        ),
        "release, chosen pairs": (
            both,
            lambda total: jaxcd.release(
                discrete, jaxcd.LogLinear(selected=2), budget=both, noise=simulated(), ledger=total
            ),
        ),
        "release, marginals of chosen pairs": (
            both,
            lambda total: jaxcd.release(
                discrete, jaxcd.Marginals(selected=2), budget=both, noise=simulated(), ledger=total
            ),
        ),
        "discover, second moments": (
            both,
            lambda total: jaxcd.discover(numeric, **options, ledger=total, linear=True),
        ),
        "discover, features": (both, lambda total: jaxcd.discover(mixed, **options, ledger=total)),
        "discover, tree": (both, lambda total: jaxcd.discover(numeric, **options, ledger=total)),
        "discover, pc": (
            both,
            lambda total: jaxcd.discover(discrete, **options, ledger=total, max_level=1),
        ),
        "discover, fci": (
            both,
            lambda total: jaxcd.discover(
                discrete, **options, ledger=total, algorithm=jaxcd.Algorithm.FCI
            ),
        ),
        "pc, sparse vector": (
            both,
            lambda total: jaxcd.pc(
                discrete, **options, ledger=total, test=test, decider=jaxcd.SparseVector()
            ),
        ),
        "release, marginals": (
            both,
            lambda total: jaxcd.release(
                discrete, jaxcd.Marginals(), budget=both, noise=simulated(), ledger=total
            ),
        ),
        "ci_test": (
            pure,
            lambda total: jaxcd.ci_test(
                discrete,
                *discrete.names[:2],
                test=test,
                budget=pure,
                noise=simulated(),
                ledger=total,
            ),
        ),
        "reci": (
            pure,
            lambda total: jaxcd.reci(
                x, y, bounds=bounds, budget=pure, noise=simulated(), ledger=total
            ),
        ),
        "anm": (
            pure,
            lambda total: jaxcd.anm(
                x,
                y,
                bounds=bounds,
                budget=pure,
                key=jax.random.key(0),
                noise=simulated(),
                ledger=total,
            ),
        ),
    }


NAMES = (
    "discover, a histogram",
    "release, chosen pairs",
    "release, marginals of chosen pairs",
    "discover, second moments",
    "discover, features",
    "discover, tree",
    "discover, pc",
    "discover, fci",
    "pc, sparse vector",
    "release, marginals",
    "ci_test",
    "reci",
    "anm",
)


def first_calls(codes: list[CodeType]) -> list[int]:
    """Where each function is called first, and the last twenty calls."""
    return sorted(
        {codes.index(code) for code in set(codes)} | set(range(max(0, len(codes) - 20), len(codes)))
    )


def broken_at(
    run: Callable[[Ledger], object], total: Ledger, place: int, error: BaseException, *, paid: bool
) -> BaseException:
    """What comes out of a run that fails at its place-th call after the first charge, or before
    it.
    """

    def raise_at(code: CodeType, calls: Calls) -> BaseException | None:
        n_calls = len(calls.after) if paid else 0 if calls.after else len(calls.before)
        return error if n_calls == place + 1 else None

    with pytest.raises(BaseException) as caught, watching(raise_at):
        run(total)
    return caught.value


def watched(run: Callable[[Ledger], object], budget: Budget) -> Calls:
    for _ in range(2):  # what is compiled or kept from the first time is not called again
        run(Ledger(budget))
    total = Ledger(budget)
    with watching() as calls:
        run(total)
    return calls


@pytest.mark.parametrize("name", NAMES)
def test_whatever_ends_a_run_after_its_first_charge_carries_what_was_bought(name, doors):
    """An error, an interrupt or no memory at every step: the receipt says what was spent, to the
    last digit.
    """
    budget, run = doors[name]
    calls, errors, lost = watched(run, budget), itertools.cycle(ERRORS), []
    assert len(set(calls.after)) > 10
    for place in first_calls(calls.after):
        total, error = Ledger(budget), next(errors)("injected")
        assert broken_at(run, total, place, error, paid=True) is error, words_of(calls.after[place])
        assert total.entries
        receipt = receipt_of(error)
        if receipt is None:
            lost.append(f"{words_of(calls.after[place])} (call {place + 1} of {len(calls.after)})")
            continue
        assert receipt.spent.epsilon == total.spent.epsilon
        assert receipt.spent.delta == total.spent.delta
        assert [row["label"] for row in receipt.ledger] == [entry.label for entry in total.entries]
        assert receipt.cost.epsilon == budget.epsilon and not receipt.cost.proven  # simulated noise
        assert any("receipt" in note for note in error.__notes__)
    assert lost == []


@pytest.mark.parametrize("name", NAMES)
def test_what_ends_a_run_before_its_first_charge_has_spent_nothing(name, doors):
    budget, run = doors[name]
    calls, errors = watched(run, budget), itertools.cycle(ERRORS)
    assert len(set(calls.before)) > 10
    for place in first_calls(calls.before)[::2]:
        total, error = Ledger(budget), next(errors)("injected")
        assert broken_at(run, total, place, error, paid=False) is error, words_of(
            calls.before[place]
        )
        assert receipt_of(error) is None and total.entries == () and total.spent.epsilon == 0.0


# ---- what a receipt is good for

PARTS = ("scores/", "discovery/", "graphs/")


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("part", PARTS)
def test_a_retry_from_what_was_bought_costs_nothing(part, error, discrete, tmp_path):
    """A search that breaks off in its scores, its steps or its graphs: what it searched is found
    again, in the receipt and on the disk.
    """
    total = LedgerFile(tmp_path / "people.ledger", data_set="people", budget=Budget(1.0))
    options = {"budget": Budget(1.0), "key": None, "noise": simulated()}
    whole = jaxcd.discover(discrete, **options)
    with pytest.raises(error) as caught, watching(failing_in(part, error("injected"))):
        jaxcd.discover(discrete, **options, ledger=total, release_out=tmp_path / "bought.npz")
    content = total.path.read_bytes()
    assert total.remaining_epsilon == 0.0
    receipt = jaxcd.receipt_of(caught.value)
    assert receipt.partial.kind == "histogram" and receipt.spent.epsilon == 1.0
    copies = [
        receipt.partial,
        jaxcd.Release.load(tmp_path / "bought.npz"),
        jaxcd.Release.load(receipt.save(tmp_path / "again.npz")),
    ]
    for bought in copies:
        found = jaxcd.search(bought)
        assert found.graph == whole.graph and found.spent == whole.spent
        assert found.cost == whole.cost
    assert total.path.read_bytes() == content
    # to buy it again would cost
    with pytest.raises((OptionError, BudgetExhausted), match="^ledger: "):
        jaxcd.discover(discrete, **options, ledger=total)


@pytest.mark.parametrize("data", ["discrete", "numeric", "mixed"])
def test_the_release_is_on_the_disk_before_it_is_searched(data, request, tmp_path):
    file, seen = tmp_path / "bought.npz", []

    def look(code: CodeType, calls: Calls) -> None:
        if calls.after and not seen and code.co_filename.startswith(f"{PACKAGE}/discovery/"):
            seen.append(file.is_file() and jaxcd.Release.load(file))

    with watching(look):
        run = jaxcd.discover(
            request.getfixturevalue(data),
            budget=Budget(1.0, 1e-6),
            key=None,
            noise=simulated(),
            linear=data == "numeric",
            release_out=file,
        )
    assert seen and seen[0] is not False
    assert jaxcd.search(seen[0]).graph == run.graph


@pytest.mark.parametrize("error", [*ERRORS, OSError])
def test_what_cannot_be_written_is_in_the_receipt(error, discrete, tmp_path, monkeypatch):
    def save(*_: object) -> None:
        raise error("injected")

    with monkeypatch.context() as patch, pytest.raises(error) as caught:
        patch.setattr(jaxcd.Release, "save", save)
        jaxcd.discover(
            discrete,
            budget=Budget(1.0),
            key=None,
            noise=simulated(),
            release_out=tmp_path / "bought.npz",
        )
    receipt = jaxcd.receipt_of(caught.value)
    assert (
        jaxcd.search(jaxcd.Release.load(receipt.save(tmp_path / "other.npz"))).cost.epsilon == 1.0
    )


def of_draw(number: int, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls ``act`` before the draw of this number, counted from 1."""
    sampler, count = type(simulated().start()), itertools.count(1)

    def with_act(real: Callable[..., object]) -> Callable[..., object]:
        def draw(*args: object, **options: object) -> object:
            if next(count) == number:
                act()
            return real(*args, **options)

        return draw

    for method in ("discrete_laplace", "discrete_gaussian", "rounded_gaussian"):
        monkeypatch.setattr(sampler, method, with_act(getattr(sampler, method)))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_bought", [0, 1, 2])
def test_rounds_of_a_release_that_were_bought_can_be_searched(
    n_bought, delta, monkeypatch, tmp_path
):
    """Interrupted in the draw of the next round: that one is charged, its noise was never drawn;
    the rounds before are kept.
    """
    data = sampled("earthquake", 2_000)
    budget = Budget(8.0, delta)
    assert len(jaxcd.release(data, jaxcd.Marginals(), budget=budget, noise=simulated()).ledger) == 3

    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as caught:
        of_draw(n_bought + 1, interrupt, patch)
        jaxcd.release(data, jaxcd.Marginals(), budget=budget, noise=simulated())
    receipt = jaxcd.receipt_of(caught.value)
    assert len(receipt.purchases) == n_bought and len(receipt.ledger) == n_bought + 1
    assert 0 < receipt.spent.epsilon <= 8.0
    file = receipt.save(tmp_path / "bought.npz")
    if n_bought == 0:  # nothing to search, and the file says what was spent
        with np.load(file, allow_pickle=False) as archive:
            assert archive.files == ["ledger"] and len(json.loads(str(archive["ledger"]))) == 1
        assert receipt.partial is None
    else:
        found = jaxcd.search(jaxcd.Release.load(file))
        assert found.graph.names == data.names and found.graph.edges()
        assert found.spent == receipt.spent and found.cost == receipt.cost


def test_a_total_that_others_use_up_meanwhile(tmp_path, monkeypatch):
    """The second round no longer fits, because another analysis took the rest: refused, and the
    first round is kept.
    """
    data = sampled("earthquake", 2_000)
    total = LedgerFile(tmp_path / "people.ledger", data_set="people", budget=Budget(8.0))
    other = LedgerFile(tmp_path / "people.ledger")
    of_draw(
        1,
        lambda: other.charge(PureEvent(other.remaining_epsilon, "the rest")) and None,
        monkeypatch,
    )
    with pytest.raises(BudgetExhausted, match=r"people\.ledger") as caught:
        jaxcd.release(data, jaxcd.Marginals(), budget=Budget(8.0), noise=simulated(), ledger=total)
    receipt = jaxcd.receipt_of(caught.value)
    assert len(receipt.purchases) == len(receipt.ledger) == 1 and receipt.spent.epsilon < 8.0
    assert total.remaining_epsilon == 0.0 and len(total.records) == 2
    assert jaxcd.search(receipt.partial).graph.names == data.names


@pytest.mark.parametrize("algorithm", [jaxcd.Algorithm.PC, jaxcd.Algorithm.FCI])
def test_a_search_by_tests_leaves_its_skeleton_and_its_numbers(algorithm, tmp_path):
    data = sampled("earthquake", 2_000)
    options = {
        "budget": Budget(1.0, 1e-6),
        "key": None,
        "noise": simulated(),
        "algorithm": algorithm,
    }
    whole = jaxcd.discover(data, **options)
    with (
        pytest.raises(MemoryError) as caught,
        watching(failing_in("discovery/constraint/orientation", MemoryError("injected"))),
    ):
        jaxcd.discover(data, **options)
    receipt = jaxcd.receipt_of(caught.value)
    assert receipt.spent == whole.spent and receipt.cost == whole.cost
    assert receipt.partial.graph.names == whole.graph.names
    assert receipt.partial.separating_sets == whole.separating_sets
    # and what an effect is asked of: the graph of FCI has hidden causes, finished or not
    assert receipt.partial.is_latent == whole.is_latent == (algorithm is jaxcd.Algorithm.FCI)
    symbols = {edge.symbol for edge in receipt.partial.graph.edges()}
    assert symbols == {"o-o" if whole.is_latent else "---"}
    with np.load(receipt.save(tmp_path / "bought.npz"), allow_pickle=False) as archive:
        rows = json.loads(str(archive["ledger"]))
        assert [row["label"] for row in rows] == [row["label"] for row in whole.info["ledger"]]
        assert len(archive.files) == 1 + len(receipt.purchases)
        assert len(receipt.purchases) == len(rows) > 0
        for purchase in receipt.purchases:
            assert np.array_equal(archive[f"{purchase.index}: {purchase.label}"], purchase.values)


# ---- many columns


@pytest.mark.parametrize(
    "kind", ["marginals", "second-moments", "tetrachoric", "features", "discretised"]
)
def test_seventy_columns_are_searched_once_they_are_bought(kind, tmp_path):
    """More columns than a machine word has bits: what was paid for is searched, and again from the
    file.
    """
    rng, names = np.random.default_rng(0), [f"v{i}" for i in range(70)]
    # with few rows signs or tables of chosen pairs are bought
    n = {"second-moments": 8_000, "features": 50_000}.get(kind, 300)
    bits, numbers = rng.integers(0, 2, size=(n, 70)), rng.normal(size=(n, 70))
    bit, number = jaxcd.Categorical((0, 1)), jaxcd.Numeric()
    values, columns = {
        "marginals": (bits, [bit] * 70),
        "second-moments": (numbers, [number] * 70),
        "tetrachoric": (numbers, [number] * 70),
        "features": (np.where(np.arange(70) < 35, bits, numbers), [bit] * 35 + [number] * 35),
        "discretised": (np.where(np.arange(70) < 35, bits, numbers), [bit] * 35 + [number] * 35),
    }[kind]
    data = jaxcd.Dataset.from_array(
        values, domain=jaxcd.Domain(dict(zip(names, columns, strict=True)))
    )
    file = tmp_path / "bought.npz"
    run = jaxcd.discover(
        data,
        budget=Budget(1.0, 1e-6),
        key=None,
        noise=simulated(),
        linear=kind in ("second-moments", "tetrachoric"),
        release_out=file,
    )
    assert run.info["release"] == {"discretised": "marginals"}.get(kind, kind)
    assert run.graph.names == tuple(names)
    assert run.graph.marks.shape == (70, 70)
    assert jaxcd.search(jaxcd.Release.load(file)).graph == run.graph


# ---- before the first charge


def test_what_does_not_fit_is_refused_before_it_is_paid_for(discrete, numeric, tmp_path):
    total = LedgerFile(tmp_path / "people.ledger", data_set="people", budget=Budget(4.0, 1e-6))
    content = total.path.read_bytes()
    x, y = np.random.default_rng(0).uniform(size=(2, 300))
    common = {"noise": simulated(), "ledger": total}
    pure = {"budget": Budget(1.0), **common}
    wrong = [
        lambda: jaxcd.discover(
            discrete, key=None, release_out=tmp_path / "nowhere" / "x.npz", **pure
        ),
        lambda: jaxcd.discover(discrete, key=None, n_confidence_draws=-1, **pure),
        lambda: jaxcd.discover(discrete, key=None, budget=jaxcd.NO_PRIVACY, **common),
        lambda: jaxcd.discover(numeric, key=None, **pure),
        lambda: jaxcd.release(discrete, jaxcd.SecondMoments(), **pure),
        lambda: jaxcd.release(discrete, jaxcd.Histogram(max_cells=2), **pure),
        lambda: jaxcd.release(numeric, jaxcd.SecondMoments(), **pure),
        lambda: jaxcd.ci_test(discrete, "Smoker", "nobody", test=jaxcd.CovarianceNorm(), **pure),
        lambda: jaxcd.ci_test(discrete, *discrete.names[:2], test=jaxcd.ChiSquare(), **pure),
        lambda: jaxcd.pc(
            discrete,
            test=jaxcd.CovarianceNorm(),
            decider=jaxcd.LevelwiseGaussian(),
            key=None,
            **pure,
        ),
        lambda: jaxcd.reci(x, y, **pure),
        lambda: jaxcd.reci(x, y[:-1], bounds=((0.0, 1.0), (0.0, 1.0)), **pure),
    ]
    for call in wrong:
        with pytest.raises((OptionError, DomainError, JaxcdError)) as caught:
            call()
        assert receipt_of(caught.value) is None
    assert total.path.read_bytes() == content and total.records == ()


CONTEXT = jaxcd.Domain(
    {name: jaxcd.Categorical((0, 1)) for name in ("arm", "a", "b")}, interventions={"arm": {}}
)
SEVEN = numbers([f"v{j}" for j in range(7)])


def known(**statements: object) -> dict[str, object]:
    return {"knowledge": jaxcd.Knowledge(**statements)}


AGAINST_THE_ARM = known(required=[("a", "arm")])
AGAINST_ITSELF = known(required=[("a", "b"), ("b", "arm")], forbidden=[("a", "arm")])
PLAIN = jaxcd.Domain(CONTEXT.columns)
REFUSED = [
    # a score reads an intervention as if nothing were hidden
    (CONTEXT, {"algorithm": jaxcd.Algorithm.GFCI}),
    (CONTEXT, {"algorithm": jaxcd.Algorithm.GFCI, "latent": True}),
    *(
        (CONTEXT, {**AGAINST_THE_ARM, **options})
        for options in (
            {},
            {"latent": True},
            {"n_confidence_draws": 2},
            {"max_level": 1},
            {"missing": "level"},
            *({"algorithm": each} for each in jaxcd.Algorithm),
        )
    ),
    # forbidden in the reading of a PAG only: there is a path of required edges
    (PLAIN, {**AGAINST_ITSELF, "latent": True}),
    (PLAIN, {**AGAINST_ITSELF, "algorithm": jaxcd.Algorithm.GFCI}),
    (PLAIN, {**AGAINST_ITSELF, "algorithm": jaxcd.Algorithm.FCI}),
    (PLAIN, known(required=[("a", "nobody")])),
    (PLAIN, {"knowledge": [("a", "b")]}),
    (PLAIN, {"missing": "guess"}),
    (PLAIN, {"n_confidence_draws": 1.5}),
    (PLAIN, {"algorithm": jaxcd.Algorithm.RELEASE, "max_level": 1}),
    (PLAIN, {"algorithm": jaxcd.Algorithm.RELEASE, "latent": True}),
    (PLAIN, {"algorithm": jaxcd.Algorithm.PC, "n_confidence_draws": 1}),
    (PLAIN, {"algorithm": jaxcd.Algorithm.GFCI, "test": jaxcd.GTest()}),
    (PLAIN, {"algorithm": jaxcd.Algorithm.TREE, "decider": jaxcd.SparseVector()}),
    (PLAIN, {"max_level": -1}),
    (PLAIN, {"test": jaxcd.GTest()}),
    (PLAIN, {"decider": jaxcd.Threshold()}),
    (PLAIN, {"noise": 1}),
    (PLAIN, {"algorithm": jaxcd.Algorithm.TREE, "max_level": 1}),
    (SEVEN, {"release_out": "nowhere/x.npz"}),
    (SEVEN, {"algorithm": jaxcd.Algorithm.PC, "test": jaxcd.KendallTau(), **AGAINST_THE_ARM}),
]


@pytest.mark.parametrize(
    ("domain", "options"), REFUSED, ids=[f"{k}: {', '.join(o)}" for k, (_, o) in enumerate(REFUSED)]
)
def test_what_follows_from_public_facts_is_refused_before_it_is_paid_for(domain, options):
    """Domain, knowledge and options: everything that the search after a purchase would refuse."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (300, domain.n_columns))
    data = (
        jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=domain)
        if domain.is_discrete
        else jaxcd.Dataset.from_array(rng.normal(size=codes.shape), domain=domain)
    )
    budget = Budget(1.0, 1e-6)
    total = Ledger(budget)
    with pytest.raises(JaxcdError) as caught:
        jaxcd.discover(data, budget=budget, ledger=total, **{"noise": simulated(), **options})
    assert total.entries == () and receipt_of(caught.value) is None


@pytest.mark.parametrize("latent", [False, True])
def test_an_intervention_is_searched_for_hidden_causes_by_fci_on_the_release(latent):
    codes = np.random.default_rng(0).integers(0, 2, (300, 3)).astype(np.int32)
    data = jaxcd.Dataset.from_codes(codes, domain=CONTEXT)
    run = jaxcd.discover(
        data,
        budget=Budget(1.0, 1e-6),
        noise=simulated(),
        latent=latent,
        n_confidence_draws=1,
        **known(required=[("arm", "a")]),
    )
    assert run.info["algorithm"] == ("fci" if latent else "search_histogram")
    assert run.info["release"] == "histogram" and run.confidence is not None
    assert str(run.graph.edge("arm", "a")) == "arm --> a"


# ---- the command line

RUN = "discover --network cancer --rows 300 --simulated-noise --epsilon 1 --delta 1e-6"
CODES = {KeyboardInterrupt: 130, OSError: 2}


def broken_command(error: BaseException, part: str, *words: str, paid: bool = True) -> int | None:
    """The exit code of a command that fails in a part; None where the error itself comes out."""
    with watching(failing_in(part, error, paid=paid)):
        try:
            return main(" ".join(words).split())
        except type(error) as caught:
            assert caught is error
            return None


def kept_files() -> list[Path]:
    return sorted(Path().glob("jaxcd-bought-*.npz"))


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("error", [*ERRORS, OSError])
@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("releases/tables/histogram", ""),
        ("scores/", ""),
        ("discovery/", ""),
        ("graphs/", ""),
        ("discovery/confidence", "--confidence 1"),
        ("cli/screen", "--no-progress"),
        ("cli/screen", "--json"),
        ("report/", "--out made --json"),
        ("report/", "--out made --quiet"),
    ],
)
def test_the_command_line_keeps_what_was_bought(part, more, error, folder, capsys):
    """Wherever it ends: a file in the working folder, named on stderr, that is searched as if
    nothing had happened.
    """
    whole = jaxcd.discover(
        sampled("cancer", 300),
        budget=Budget(1.0, 1e-6),
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.fold_in(jax.random.key(0), 1)),
    )
    total = LedgerFile("people.ledger", data_set="people", budget=Budget(1.0))
    code = broken_command(error("injected"), part, RUN, more, "--ledger people.ledger")
    assert code == CODES.get(error)
    assert total.remaining_epsilon == 0.0
    content = total.path.read_bytes()
    (file,) = kept_files()
    said = capsys.readouterr().err
    assert str(file.absolute()) in said and "epsilon=1, delta=0 was spent" in said
    if part == "releases/tables/histogram":  # not made yet: the numbers and the ledger are there
        with np.load(file, allow_pickle=False) as archive:
            assert len(json.loads(str(archive["ledger"]))) == 1
    else:
        found = jaxcd.search(jaxcd.Release.load(file))
        assert found.graph == whole.graph and found.spent.epsilon == 1.0
    assert total.path.read_bytes() == content


_ENDED = """
import os, signal, sys
from jaxcd import report
from jaxcd.cli import main

def end(*_, **__):
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))

# the tests themselves may run where a closed terminal is ignored
signal.signal(getattr(signal, sys.argv[1]), signal.SIG_DFL)
report.write_report = end
code = main(sys.argv[2:])
assert signal.getsignal(getattr(signal, sys.argv[1])) is signal.SIG_DFL
sys.exit(code)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_what_was_bought_is_kept_when_the_process_is_asked_to_end(name, folder):
    """By a job system whose time is up, or by a terminal that is closed."""
    words = [sys.executable, "-c", _ENDED, name, *RUN.split(), "--out", "made", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 130, done.stderr
    (file,) = kept_files()
    assert str(file.absolute()) in done.stderr
    assert jaxcd.Release.load(file).spent.epsilon == 1.0


def asked_twice(again: int | None) -> tuple[int, list[CodeType]]:
    """The exit code of a command that is interrupted while it writes its report, and once more at
    its ``again``-th call from there on; and the functions that are called until the file is there.
    """
    codes: list[CodeType] = []

    def see(frame: FrameType, event: str, value: object) -> None:
        if event == "return" and frame.f_code is paid._save.__code__:
            sys.setprofile(None)
        elif event == "call" and frame.f_code is not end.__code__:
            codes.append(frame.f_code)
            if len(codes) - 1 == again:
                signal.raise_signal(signal.SIGINT)

    def end(*_: object, **__: object) -> None:
        sys.setprofile(see)
        signal.raise_signal(signal.SIGINT)

    # the tests themselves may run where Ctrl-C is ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxcd.report.write_report", end)
        try:
            code = main([*RUN.split(), "--out", "made", "--quiet"])
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            return code, codes
        finally:
            sys.setprofile(None)
            signal.signal(signal.SIGINT, before)


def test_what_was_bought_is_kept_when_the_process_is_asked_again(folder, capsys):
    """Until the file is there: by a hand that is not patient, or by a shell that hangs up after its
    terminal did.
    """
    asked_twice(None)
    code, codes = asked_twice(None)
    assert code == 130 and len(kept_files()) == 2
    for again in first_calls(codes)[::2]:
        for file in kept_files():
            file.unlink()
        capsys.readouterr()
        assert asked_twice(again)[0] == 130, words_of(codes[again])
        said = capsys.readouterr().err
        assert "nothing was spent" not in said, words_of(codes[again])
        (file,) = kept_files()
        assert str(file.absolute()) in said and jaxcd.Release.load(file).spent.epsilon == 1.0


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("what", ["is gone", "takes no file"])
def test_what_was_bought_is_kept_elsewhere_where_the_working_folder(
    what, error, folder, capsys, monkeypatch
):
    other = folder / "other"
    other.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    work = folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    if what == "is gone":

        def end(*_, **__):
            shutil.rmtree(work)
            raise error("injected")

        monkeypatch.setattr("jaxcd.cli.screen.show_result", end)
        code = main(RUN.split())
        monkeypatch.chdir(folder)
    else:
        taken = places.check_folder_takes

        def full(name, path, where):
            if where == work:
                raise OptionError(f"{name} {str(path)!r} cannot be written")
            taken(name, path, where)

        monkeypatch.setattr(places, "check_folder_takes", full)
        code = broken_command(error("injected"), "cli/screen", RUN)
    assert code == CODES[error]
    (file,) = other.glob("jaxcd-bought-*.npz")
    said = capsys.readouterr().err
    assert str(file) in said and "epsilon=1, delta=0 was spent" in said
    assert jaxcd.Release.load(file).spent.epsilon == 1.0


def test_where_no_file_can_be_made_the_command_says_what_was_spent(folder, capsys, monkeypatch):
    def full(name, path, where):
        raise OptionError(f"{name} {str(path)!r} cannot be written: no space left")

    monkeypatch.setattr(places, "check_folder_takes", full)
    assert broken_command(KeyboardInterrupt("injected"), "cli/screen", RUN) == 130
    said = capsys.readouterr().err
    assert "epsilon=1, delta=0 was spent" in said and "no space left" in said


@pytest.mark.parametrize("n_forced", [1, 2])
def test_a_charge_that_is_interrupted_on_its_way_to_the_disk_counts_as_spent(
    n_forced, folder, capsys, monkeypatch
):
    """The record, then the tip: after the first of them the file has the charge."""
    total = LedgerFile("a.ledger", data_set="a", budget=Budget(1.0))
    real, left = ledger_file._force, iter(range(n_forced - 1, -1, -1))

    def force(file):
        real(file)
        if not next(left):
            raise KeyboardInterrupt

    monkeypatch.setattr(ledger_file, "_force", force)
    assert main([*RUN.split(), "--ledger", "a.ledger"]) == 130
    monkeypatch.undo()
    assert len(total.records) == 1
    said = capsys.readouterr().err
    assert "jaxcd: epsilon=1, delta=0 was spent before the run ended" in said
    assert "nothing was spent" not in said
    assert "no number was released for it; what was charged is in" in said


@pytest.mark.parametrize("algorithm", ["pc", "fci", "tree"])
@pytest.mark.parametrize("part", ["discovery/constraint/orientation", "discovery/confidence"])
def test_the_command_line_keeps_the_numbers_of_a_search_by_tests(part, algorithm, folder, capsys):
    code = broken_command(KeyboardInterrupt("injected"), part, RUN, "--algorithm", algorithm)
    assert code == 130
    (file,) = kept_files()
    assert str(file.absolute()) in capsys.readouterr().err
    with np.load(file, allow_pickle=False) as archive:
        rows = json.loads(str(archive["ledger"]))
        assert len(rows) > 0 and len(archive.files) == 1 + len(rows)
        assert all(float(row["rho"]) > 0 for row in rows)


def test_the_command_line_refuses_before_it_pays_what_the_search_would_refuse(folder, capsys):
    (folder / "iv.json").write_text(json.dumps(CONTEXT.to_json_dict()))
    (folder / "iv.csv").write_text("arm,a,b\n" + "0,1,0\n1,1,0\n" * 50)
    (folder / "known.json").write_text('{"required": [["a", "arm"]]}')
    made = "ledger total.json --data-set people --epsilon 1 --delta 1e-6"
    assert main(made.split()) == 0
    content = (folder / "total.json").read_bytes()
    run = "discover iv.csv --domain iv.json --epsilon 1 --delta 1e-6 --ledger total.json"
    for words, said in (
        ("--algorithm gfci", "--algorithm gfci: 'arm' declares an intervention"),
        ("--knowledge known.json", "knowledge contradicts the interventions"),
        ("--knowledge known.json --latent", "knowledge contradicts the interventions"),
    ):
        capsys.readouterr()
        assert main(f"{run} {words}".split()) == 2
        assert said in capsys.readouterr().err
    assert (folder / "total.json").read_bytes() == content and kept_files() == []
    assert main(f"{run} --latent --quiet --release-out bought.npz".split()) == 0
    assert main("search bought.npz --algorithm gfci".split()) == 2
    assert "use --algorithm fci" in capsys.readouterr().err
    assert main("search bought.npz --algorithm fci --quiet".split()) == 0


def test_the_release_of_the_command_line_outlasts_its_search(folder, capsys):
    broken_command(MemoryError("injected"), "discovery/", RUN, "--release-out bought.npz")
    assert kept_files() == [] and "is in bought.npz" in capsys.readouterr().err
    assert jaxcd.search(jaxcd.Release.load("bought.npz")).graph.names


@pytest.mark.parametrize("method", ["reci", "anm"])
def test_direction_keeps_what_it_bought(method, folder, capsys):
    rows = np.random.default_rng(0).uniform(size=(300, 2))
    Path("t.csv").write_text("x,y\n" + "".join(f"{x:.3f},{y:.3f}\n" for x, y in rows))
    words = f"""direction t.csv --x x --y y --method {method} --bounds 0 1 0 1 --epsilon 1
        --simulated-noise"""
    assert main(words.split()) == 0 and kept_files() == []
    assert broken_command(KeyboardInterrupt("injected"), "pairwise/", words) == 130
    (file,) = kept_files()
    assert str(file.absolute()) in capsys.readouterr().err


def test_privatize_keeps_what_it_bought(folder, capsys):
    rows = np.random.default_rng(0).integers(0, 2, size=(300, 2))
    Path("c.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "ab"}).write("domain.json")
    words = """privatize c.csv --domain domain.json --out out.csv --mechanism krr --epsilon-ldp 2
        --simulated-noise"""
    assert broken_command(KeyboardInterrupt("injected"), "data/", words) == 130
    (file,) = kept_files()
    assert str(file.absolute()) in capsys.readouterr().err


@pytest.mark.parametrize("error", [*ERRORS, OSError])
@pytest.mark.parametrize("part", ["data/", "queries/", "advice/recommending"])
def test_the_command_line_has_spent_nothing_before_the_first_charge(part, error, folder, capsys):
    total = LedgerFile("people.ledger", data_set="people", budget=Budget(1.0))
    content = total.path.read_bytes()
    words = f"{RUN} --ledger people.ledger --release-out bought.npz"
    assert broken_command(error("injected"), part, words, paid=False) == CODES.get(error)
    assert total.path.read_bytes() == content and kept_files() == []
    assert not Path("bought.npz").exists()
    assert "was spent" not in capsys.readouterr().err
    assert main(words.split()) == 0  # and the whole of it is still there
    assert total.remaining_epsilon == 0.0


PLACES = {
    "discover --network cancer --rows 300 --epsilon 1 --force --out": "",
    "discover --network cancer --rows 300 --epsilon 1 --force --release-out": ".npz",
    "direction c.csv --x a --y b --bounds 0 1 0 1 --epsilon 1 --certificate-out": ".json",
    "privatize c.csv --domain domain.json --mechanism krr --epsilon-ldp 1 --force --out": ".csv",
    "privatize c.csv --domain domain.json --mechanism krr --epsilon-ldp 1 --force --out x.csv "
    "--guarantee-out": ".json",
}


@pytest.mark.parametrize(("words", "suffix"), PLACES.items())
def test_a_place_that_cannot_be_written_is_refused_before_it_is_paid_for(
    words, suffix, folder, capsys
):
    rows = np.random.default_rng(0).integers(0, 2, size=(300, 2))
    Path("c.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "ab"}).write("domain.json")
    total = LedgerFile("people.ledger", data_set="people", budget=Budget(1.0))
    content = total.path.read_bytes()
    Path(f"taken{suffix}").mkdir()  # a folder where a file is wanted
    if not suffix:  # and the other way round
        Path("taken").rmdir()
        Path("taken").write_text("")
    Path("link").symlink_to("nowhere/else")
    # the last is a folder in which not even the owner of the machine can make a file
    places = [f"taken{suffix}", f"c.csv/x{suffix}", "people.ledger", *["link"] * (suffix != ".csv")]
    for place in [*places, *["/proc/x" + suffix] * Path("/proc/self").exists()]:
        assert main([*words.split(), place, "--ledger", "people.ledger"]) == 2, place
        said = capsys.readouterr().err
        assert repr(place) in said and said.count("\n") == 1, said
        assert total.path.read_bytes() == content and kept_files() == []


def test_one_place_is_written_once(folder, capsys):
    LedgerFile("people.ledger", data_set="people", budget=Budget(1.0))
    words = f"{RUN} --ledger people.ledger --force --out made --release-out"
    for place, other in (("made", "--out"), ("people.ledger", "--ledger")):
        assert main([*words.split(), place]) == 2
        said = f"--release-out '{place}' is what {other} names, too; give another name"
        assert said in capsys.readouterr().err


def test_a_report_is_not_written_over_what_was_bought_nor_over_a_ledger(folder, capsys):
    Path("made").mkdir()
    total = LedgerFile("made/privacy.json", data_set="people", budget=Budget(1.0))
    charged = total.path.read_bytes()
    for option, file in (("--release-out", "result.json"), ("--ledger", "privacy.json")):
        assert main([*f"{RUN} --force --out made {option} made/{file}".split()]) == 2
        said = f"--out 'made': its file {file!r} is what {option} names, too; give another name"
        assert said in capsys.readouterr().err
    assert total.path.read_bytes() == charged and len(os.listdir("made")) == 2


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="asks for the names of handles")
def test_a_file_is_on_the_disk_before_it_has_its_name(folder, monkeypatch):
    """A charge is on the disk: so must be what it bought, should the machine stop after it."""
    forced, renamed = [], []
    force = os.fsync

    def watched(handle):
        forced.append(os.readlink(f"/proc/self/fd/{handle}"))
        force(handle)

    def watch(move):
        def moved(source, target):
            files = [path for path in (Path(source), *Path(source).rglob("*")) if path.is_file()]
            renamed.extend(str(path) for path in files if ".ledger" not in path.name)
            assert {str(path.absolute()) for path in files} <= set(forced)
            move(source, target)

        return moved

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(os, "replace", watch(os.replace))
    monkeypatch.setattr(os, "rename", watch(os.rename))
    words = f"{RUN} --out made --release-out bought.npz --force"
    # the release and the six files of a report: new, and over others
    for files, last in ((7, folder), (14, folder / "made")):
        assert main(words.split()) == 0
        assert len(renamed) == files and forced[-1] == str(last)


def test_a_report_replaces_another_where_only_its_folder_can_be_written(folder, monkeypatch):
    """A long name has room for no other, and beside the folder there may be none."""
    made = "m" * 250
    assert main([*RUN.split(), "--out", made]) == 0
    renamed = os.replace

    def within(source, target):
        assert Path(source).parent.parent == Path(target).parent
        renamed(source, target)

    monkeypatch.setattr(os, "replace", within)
    assert main([*RUN.split(), "--out", made, "--force"]) == 0
    assert sorted(os.listdir()) == [made]
    (Path(made) / "graph.dot").unlink()
    (Path(made) / "graph.dot").mkdir()
    assert main([*RUN.split(), "--out", made, "--force"]) == 2 and kept_files() == []


# ---- several accounts in one block

ROW, PERSON = Budget(0.5), Budget(0.5, unit="person")


def _joined_receipt(*budgets: Budget, first: jaxcd.NoiseSource | None = None) -> jaxcd.Receipt:
    """The receipt of releases one after the other, the first with its own noise."""
    domain = jaxcd.Domain(
        {"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Categorical((0, 1))}, person="pid"
    )
    rows = [[i % 2, i % 3 % 2, i // 2] for i in range(40)]
    data = jaxcd.Dataset.from_array(rows, names=["a", "b", "pid"], domain=domain)
    alone = jaxcd.Dataset.from_codes(data.codes, domain=jaxcd.Domain(domain.columns))
    with pytest.raises(ZeroDivisionError) as caught, paying():
        for place, budget in enumerate(budgets):
            rows_of = alone if budget == ROW else data
            noise = None if place else first
            jaxcd.release(rows_of, jaxcd.Histogram(), budget=budget, noise=noise)
        raise ZeroDivisionError
    receipt = receipt_of(caught.value)
    assert receipt is not None and len(receipt.ledger) == len(budgets)
    return receipt


def test_a_receipt_of_several_accounts_is_proved_where_each_is():
    assert _joined_receipt(ROW, ROW).cost.proven
    for budgets in ((ROW, ROW), (ROW, ROW, ROW)):
        cost = _joined_receipt(*budgets, first=simulated()).cost
        assert not cost.proven and "simulated" in cost.reason
        assert cost.epsilon == 0.5 * len(budgets)


def test_a_receipt_of_several_accounts_protects_whom_each_protects():
    few, many = (Budget(0.5, max_rows_per_person=k) for k in (2, 100))
    for budgets, unit, rows in (
        ((few, many), "row", 2),
        ((few, PERSON), "row", 2),
        ((PERSON, many), "row", 100),
        ((PERSON, ROW), "row", 1),
        ((PERSON, PERSON), "person", 1),
    ):
        for order in (budgets, budgets[::-1]):
            receipt = _joined_receipt(*order)
            for cost in (receipt.cost, receipt.spent):
                assert (cost.epsilon, cost.unit.value, cost.max_rows_per_person) == (1, unit, rows)


def test_a_receipt_whose_deltas_add_up_to_one_is_there_and_promises_nothing(discrete):
    with pytest.raises(ZeroDivisionError) as caught, paying():
        for _ in range(2):
            with pytest.warns(jaxcd.errors.PrivacyWarning):
                jaxcd.release(discrete, jaxcd.Marginals(), budget=Budget(0.5, 0.6))
        raise ZeroDivisionError
    receipt = receipt_of(caught.value)
    assert receipt is not None and receipt.purchases
    assert receipt.cost.epsilon == math.inf and not receipt.cost.proven


def test_costs_without_a_bound_have_none_together():
    one = _joined_receipt(ROW, ROW).cost
    without = dataclasses.replace(one, epsilon=math.inf)
    assert _together([one, without]).epsilon == math.inf
