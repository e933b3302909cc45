"""Sites and coordinator together: what comes out, what is charged, and what happens when a message
is late, repeated, malformed or a lie.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.errors import DomainError, OptionError, PrivacyError
from jaxcd.federated import Coordinator, Federation, LocalLine, Message, Site, site_noise
from jaxcd.privacy import Accounting, NoiseSource, Unit
from jaxcd.privacy.noise import NoiseSampler
from jaxcd.releases.redrawing import release_again
from tests.helpers import coded, dependent, levelled, simulated

NAMES = ("north", "south", "east", "west")
LEVELS = (2, 3, 2, 2)
BUDGET = jaxcd.Budget(1.0, 1e-6, accounting=Accounting.ZCDP)


class Silent(NoiseSource):
    """No noise, so that sums can be compared exactly."""

    secure = True

    def start(self) -> NoiseSampler:
        class Zeros(NoiseSampler):
            secure = True

            def polya(self, scale: float, parts: int, size: int, *, index: int) -> np.ndarray:
                return np.zeros(size, dtype=np.int64)

            def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:
                return np.zeros(size, dtype=np.int64)

            def _no_share(self, *_: Any, **__: Any) -> Any:
                raise AssertionError("a site draws shares only")

            discrete_laplace = geometric = subset = gumbel_max = _no_share  # type: ignore[assignment]

        return Zeros()


def parts_of(data: jaxcd.Dataset, sizes: tuple[int, ...]) -> list[jaxcd.Dataset]:
    ends = np.cumsum(sizes)[:-1]
    return [coded(part, data.domain) for part in np.split(data.discrete[: sum(sizes)], ends)]


def four(n: int = 300, seed: int = 0) -> dict[str, jaxcd.Dataset]:
    sizes = (n, n + 7, n - 20, n + 1)
    return dict(zip(NAMES, parts_of(dependent(seed, sum(sizes), *LEVELS), sizes), strict=True))


class Net:
    """Four sites with lines that can be tampered with; keeps every message."""

    def __init__(
        self,
        data: dict[str, jaxcd.Dataset] | None = None,
        *,
        budget: jaxcd.Budget = BUDGET,
        noise: NoiseSource | None = None,
        ledgers: dict[str, Any] | None = None,
        tamper: Callable[[str, Message, bytes], bytes | list[bytes] | None] | None = None,
        **options: int,
    ) -> None:
        self.data = four() if data is None else data
        self.noise = simulated(1) if noise is None else noise
        self.federation = Federation(tuple(self.data), budget, **options)
        self.sites = {
            name: Site(
                name,
                rows,
                self.federation,
                ledger=(ledgers or {}).get(name),
                noise=site_noise(self.noise, place),
            )
            for place, (name, rows) in enumerate(self.data.items())
        }
        self.sent: dict[str, list[Message]] = {name: [] for name in self.data}
        self.came: dict[str, list[bytes]] = {name: [] for name in self.data}
        lines = {name: LocalLine(self._through(name, tamper)) for name in self.sites}
        self._several: dict[str, Any] = lines
        domain = next(iter(self.data.values())).domain
        self.coordinator = Coordinator(self.federation, domain, lines, timeout=5)

    def _through(self, name: str, tamper: Any) -> Callable[[bytes], bytes | None]:
        def answer(content: bytes) -> bytes | None:
            message = Message.decode(content)
            self.sent[name].append(message)
            reply = self.sites[name].answer(content)
            self.came[name].append(reply)
            found = reply if tamper is None else tamper(name, message, reply)
            if isinstance(found, list):
                for each in found[:-1]:
                    self._several[name]._waiting.append(each)
                return found[-1]
            return found

        return answer

    def release(self, kind: Any) -> Any:
        return self.coordinator.release(kind, noise=self.noise)

    @property
    def notes(self) -> list[str]:
        return self.coordinator.report()["notes"]


def pooled(data: dict[str, jaxcd.Dataset]) -> jaxcd.Dataset:
    first = next(iter(data.values()))
    return coded(np.concatenate([each.discrete for each in data.values()]), first.domain)


# ---- what comes out


def test_the_sum_is_the_histogram_of_all_rows() -> None:
    net = Net(noise=Silent())
    bought = net.release(jaxcd.Histogram())
    rows = pooled(net.data)
    counts = np.zeros(LEVELS, dtype=int)
    np.add.at(counts, tuple(rows.discrete.T), 1)
    np.testing.assert_array_equal(bought.values, counts)
    assert bought.n_samples == rows.n_samples and bought.cost.epsilon == 1.0


@pytest.mark.parametrize("kind", [jaxcd.Marginals(), jaxcd.LogLinear()], ids=["marginals", "log"])
def test_sums_of_interactions_are_those_of_all_rows(kind: Any) -> None:
    net = Net(noise=Silent())
    bought = net.release(kind)
    exact = kind.release(pooled(net.data), budget=jaxcd.NO_PRIVACY)
    shared = [s for s in bought.interactions if s in exact.interactions]
    assert len(bought.charges) >= 2 and len(shared) >= 10
    central = kind.release(pooled(net.data), budget=BUDGET, noise=simulated()).variances
    for s in shared:
        np.testing.assert_allclose(bought.interactions[s], exact.interactions[s], atol=1e-3)
        if len(s) == 1:
            assert bought.variances[s] == pytest.approx(central[s], rel=1e-3)


@pytest.mark.parametrize(("dropouts", "colluding"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals()], ids=["laplace", "gauss"])
def test_the_noise_is_that_of_four_shares(kind: Any, dropouts: int, colluding: int) -> None:
    """Its variance is K / (K - t - d) of the central one, as the release says."""
    net = Net(dropouts=dropouts, colluding=colluding)
    bought = net.release(kind)
    central = kind.release(pooled(net.data), budget=BUDGET, noise=simulated())
    factor = 4 / (4 - dropouts - colluding)
    if bought.kind == "histogram":
        assert bought.variance == pytest.approx(factor * central.variance, rel=1e-9)
    else:
        assert bought.variances[0, 1] >= factor * central.variances[0,] * 0.3
        assert bought.variances[0,] == pytest.approx(factor * central.variances[0,], rel=1e-3)
    assert jaxcd.verify(bought.certificate()).holds


@pytest.mark.parametrize("epsilon", [1e3, 1.5e3, 1e5])
@pytest.mark.parametrize("dropouts", [0, 1])
def test_a_large_budget_buys_what_one_owner_gets(epsilon: float, dropouts: int) -> None:
    """Where the noise is next to none its variance is beyond float64."""
    net = Net(budget=jaxcd.Budget(epsilon), dropouts=dropouts)
    bought = net.release(jaxcd.Histogram())
    central = jaxcd.release(
        pooled(net.data), jaxcd.Histogram(), budget=jaxcd.Budget(epsilon), noise=simulated()
    )
    np.testing.assert_array_equal(bought.values, central.values)
    assert bought.scale == pytest.approx(central.scale, rel=0.01)
    assert 0 <= bought.variance < 1e-200 and 0 <= central.variance < 1e-200
    assert jaxcd.search(bought).graph == jaxcd.search(central).graph


def test_simulated_and_secure_noise_say_what_they_are() -> None:
    assert not Net().release(jaxcd.Histogram()).cost.proven
    bought = jaxcd.federate(four(), jaxcd.Marginals(), budget=BUDGET, dropouts=1, colluding=1)
    assert bought.cost.proven and "sums over at least 3 sites" in bought.cost.reason
    assert "all that 1 site knows" in bought.cost.reason


def test_a_site_whose_noise_is_somebody_elses_makes_no_proved_release() -> None:
    """It says so when it joins: the noise of a class of its own may be none."""
    data = four()
    federation = jaxcd.federated.Federation(tuple(data), jaxcd.Budget(1.0), dropouts=1)

    def cost(strange: str | None) -> Any:
        lines = {
            name: jaxcd.federated.LocalLine(
                jaxcd.federated.Site(
                    name, rows, federation, **({"noise": Silent()} if name == strange else {})
                ).answer
            )
            for name, rows in data.items()
        }
        domain = next(iter(data.values())).domain
        return (
            jaxcd.federated.Coordinator(federation, domain, lines).release(jaxcd.Histogram()).cost
        )

    assert cost(None).proven
    found = cost(sorted(data)[1])
    assert not found.proven and "Silent" in found.reason and sorted(data)[1] in found.reason
    assert "sums over at least" in found.reason


def test_the_release_is_a_file_as_any_other(tmp_path: Path) -> None:
    for kind in (jaxcd.Histogram(), jaxcd.Marginals()):
        bought = Net(dropouts=1).release(kind)
        loaded = jaxcd.Release.load(bought.save(tmp_path / f"{bought.kind}.npz"))
        assert loaded.cost == bought.cost and loaded.bought == kind
        assert jaxcd.search(loaded).graph == jaxcd.search(bought).graph


def test_a_report_opens_with_the_condition_of_its_guarantee(tmp_path: Path) -> None:
    """Where the price is named first, and among what is guaranteed, as in the section Guarantee."""
    rows = dependent(3, 1_200, *LEVELS)
    sizes = (300, 300, 300, 300)
    sites = dict(zip(NAMES, parts_of(rows, sizes), strict=True))
    bought = jaxcd.federate(sites, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), dropouts=1)
    assert bought.cost.proven
    words = "whoever sees only sums over at least 3 sites"
    page = (jaxcd.search(bought).save(tmp_path / "x") / "report.html").read_text(encoding="utf-8")
    opening = page.partition('<div class="lead">')[2].partition("</div>")[0]
    assert words in opening and "one row replaced in one of 4 sites" in opening
    guaranteed = page.partition("<h3>Guaranteed</h3>")[2].partition("</ul>")[0]
    assert words in guaranteed
    alone = jaxcd.release(rows, jaxcd.Histogram(), budget=jaxcd.Budget(1.0))
    page = (jaxcd.search(alone).save(tmp_path / "y") / "report.html").read_text(encoding="utf-8")
    opening = page.partition('<div class="lead">')[2].partition("</div>")[0]
    assert "for one row;" in opening


def test_what_is_asked_depends_on_sums_only() -> None:
    """The same rows at other sites get the same questions."""
    rows = dependent(3, 1_200, *LEVELS)
    asked = []
    for sizes in ((300, 300, 300, 300), (900, 100, 150, 50)):
        net = Net(dict(zip(NAMES, parts_of(rows, sizes), strict=True)), noise=Silent())
        net.release(jaxcd.Marginals())
        asked.append([m.body for m in net.sent["north"] if m.kind == "ask"])
    assert asked[0] == asked[1] and len(asked[0]) == 3


def test_columns_with_one_level_and_odd_names() -> None:
    domain = jaxcd.Domain(
        {"só": jaxcd.Categorical(("x",)), "β": jaxcd.Ordinal((0, 1)), "c d": jaxcd.Ordinal((0, 1))}
    )
    rng = np.random.default_rng(0)
    data = {
        name: coded(np.column_stack([np.zeros(n), *rng.integers(0, 2, (2, n))]), domain)
        for name, n in (("Zürich", 2), ("東京", 50))
    }
    for kind in (jaxcd.Histogram(), jaxcd.Marginals()):
        assert Net(data).release(kind).n_samples == 52


# ---- sites that fail


@pytest.mark.parametrize("last", [-2, -1, 0, 1])
def test_a_missing_site_is_left_out(last: int) -> None:
    """From the start, at the first round, or later: the sum is that of the others."""

    def tamper(name: str, message: Message, reply: bytes) -> bytes | None:
        return None if name == "east" and message.round > last else reply

    net = Net(noise=Silent(), tamper=tamper, dropouts=1)
    bought = net.release(jaxcd.Marginals())
    assert any("'east' takes no further part: no reply" in note for note in net.notes)
    others = {name: rows for name, rows in net.data.items() if name != "east" or last >= 0}
    assert bought.n_samples == pooled(others).n_samples
    exact = jaxcd.Marginals().release(pooled(others), budget=jaxcd.NO_PRIVACY)
    np.testing.assert_allclose(bought.interactions[0, 1], exact.interactions[0, 1], atol=40)
    if last < 0:
        np.testing.assert_allclose(bought.interactions[0,], exact.interactions[0,], atol=1e-3)
    assert jaxcd.verify(bought.certificate()).holds


def test_too_few_sites_end_the_run_and_what_was_bought_is_kept() -> None:
    def tamper(name: str, message: Message, reply: bytes) -> bytes | None:
        return None if name in ("east", "west") and message.round >= 1 else reply

    net = Net(tamper=tamper, dropouts=1)
    with pytest.raises(PrivacyError, match="2 of 4 are left, and at least 3") as caught:
        net.release(jaxcd.Marginals())
    receipt = jaxcd.receipt_of(caught.value)
    assert receipt is not None and len(receipt.ledger) == 2
    assert len(receipt.partial.interactions) == 10  # round 1: columns and pairs
    assert jaxcd.search(receipt.partial).graph.n_nodes == 4


def test_a_site_lost_between_the_two_steps_costs_the_round() -> None:
    def tamper(name: str, message: Message, reply: bytes) -> bytes | None:
        return None if name == "east" and message.kind == "unmask" else reply

    with pytest.raises(PrivacyError, match="lost between the two steps of round 0"):
        Net(tamper=tamper, dropouts=1).release(jaxcd.Histogram())


# ---- replies that are no answer


def other(reply: bytes, **parts: Any) -> bytes:
    return dataclasses.replace(Message.decode(reply), **parts).encode()


LIES: dict[str, tuple[Callable[[bytes], Any], str]] = {
    "garbage": (lambda r: b"JX", "does not begin as one does"),
    "cut off": (lambda r: r[:-3], "cut off"),
    "too short": (
        lambda r: other(r, arrays={"values": Message.decode(r).arrays["values"][:-1]}),
        "its values have the shape",
    ),
    "another modulus": (
        lambda r: other(r, arrays={"values": np.zeros((24, 8), np.uint8)}),
        "its values have the shape",
    ),
    "no array": (lambda r: other(r, arrays={}), "its values have the shape None"),
    "floats": (
        lambda r: other(r, arrays={"values": np.zeros(Message.decode(r).arrays["values"].shape)}),
        "its values have the shape",
    ),
    "another kind": (lambda r: other(r, kind="keys"), "came, not 'masked'"),
    "another sender": (lambda r: other(r, sender="north"), "came, not 'masked'"),
    "a later round": (lambda r: other(r, round=7), "came, not 'masked'"),
    "another run": (lambda r: other(r, run="x"), "no reply in time"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_named_and_its_site_left_out(lie: str) -> None:
    change, words = LIES[lie]

    def tamper(name: str, message: Message, reply: bytes) -> Any:
        return change(reply) if name == "east" and message.kind == "ask" else reply

    net = Net(noise=Silent(), tamper=tamper, dropouts=1)
    bought = net.release(jaxcd.Histogram())
    others = pooled({name: rows for name, rows in net.data.items() if name != "east"})
    assert bought.values.sum() == others.n_samples == bought.n_samples
    (note,) = [note for note in net.notes if "takes no further part" in note]
    assert "'east'" in note and words in note and "\n" not in note


@pytest.mark.parametrize("n", [0, -1, True, 300.0, 2**40 + 1, 10**400], ids=lambda n: str(n)[:15])
def test_a_false_number_of_rows_leaves_its_site_out(n: Any) -> None:
    def tamper(name: str, message: Message, reply: bytes) -> Any:
        if name != "east" or message.kind != "open":
            return reply
        return other(reply, body={**Message.decode(reply).body, "n_samples": n})

    net = Net(noise=Silent(), tamper=tamper, dropouts=1)
    bought = net.release(jaxcd.Histogram())
    others = sum(rows.n_samples for name, rows in net.data.items() if name != "east")
    assert bought.n_samples == others
    (note,) = [note for note in net.notes if "takes no further part" in note]
    assert "'east'" in note and "number of rows" in note


def test_late_and_repeated_replies_are_left_out() -> None:
    kept: dict[str, bytes] = {}

    def tamper(name: str, message: Message, reply: bytes) -> Any:
        before = kept.get(name)
        kept[name] = reply
        return [before, reply] if before and name == "east" else reply

    net = Net(noise=Silent(), tamper=tamper)
    bought = net.release(jaxcd.Histogram())
    assert bought.values.sum() == pooled(net.data).n_samples
    assert sum("late or repeated is left out" in note for note in net.notes) >= 2


# ---- requests that a site refuses


def opened(net: Net) -> tuple[Site, list[Message]]:
    """A site after a whole run, with the messages that it got."""
    net.release(jaxcd.Marginals())
    return net.sites["north"], net.sent["north"]


def refusal(site: Site, message: Message) -> str:
    reply = Message.decode(site.answer(message.encode()))
    assert reply.kind == "refused" and "\n" not in reply.body["why"]
    return str(reply.body["why"])


def test_a_repeated_request_gets_the_same_bytes_and_is_charged_once(tmp_path: Path) -> None:
    ledger = jaxcd.LedgerFile(tmp_path / "n.ledger", data_set="north", budget=BUDGET)
    net = Net(ledgers={"north": ledger})
    site, messages = opened(net)
    assert len(ledger.records) == 3
    for message, reply in zip(messages, net.came["north"], strict=True):
        if message.kind != "close":
            assert site.answer(message.encode()) == reply
    assert len(ledger.records) == 3


@pytest.mark.parametrize("label", ["", "another"], ids=["sent again", "another question"])
def test_two_requests_of_a_round_at_the_same_time_are_answered_once(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two answers under the same masks would give their difference away, of this site alone."""
    net, came = Net(), list[list[Message]]()
    site = net.sites["north"]
    answer, with_share, both = site.answer, site._with_share, threading.Barrier(2)

    def waiting(question: Any) -> np.ndarray:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # for the other thread, where it may come as far as this
        return with_share(question)

    def twice(content: bytes) -> bytes:
        message = Message.decode(content)
        if message.kind != "ask":
            return answer(content)
        body = {**message.body, "price": message.body["price"] / 4}  # there is room for both
        asks = [
            dataclasses.replace(message, body={**body, "label": each}).encode()
            for each in (body["label"], label or body["label"])
        ]
        with ThreadPoolExecutor(2) as pool:
            replies = list(pool.map(answer, asks))
        came.append([Message.decode(reply) for reply in replies])
        return replies[0] if came[-1][0].kind == "masked" else replies[1]

    monkeypatch.setattr(site, "_with_share", waiting)
    monkeypatch.setattr(site, "answer", twice)
    net.release(jaxcd.Histogram())
    ((first, second),) = came
    assert sorted((first.kind, second.kind)) == ["masked", "refused" if label else "masked"]
    assert label or first.encode() == second.encode()
    assert site._accountant is not None and len(site._accountant.ledger.entries) == 1


def test_another_question_of_an_old_round_is_refused() -> None:
    site, messages = opened(Net())
    (ask,) = [m for m in messages if m.kind == "ask" and m.round == 1]
    changed = dataclasses.replace(ask, body={**ask.body, "price": 2.0})
    assert "another 'ask' of round 1 was answered before" in refusal(site, changed)
    ahead = dataclasses.replace(ask, round=9)
    assert "round 9 is not the next here" in refusal(site, ahead)
    elsewhere = dataclasses.replace(ask, run="other")
    assert "is not open here" in refusal(site, elsewhere)


def test_keys_are_told_once_and_for_enough_sites() -> None:
    site, messages = opened(Net(dropouts=1))
    (unmask,) = [m for m in messages if m.kind == "unmask" and m.round == 0]
    fewer = dataclasses.replace(unmask, body={"came": ["north", "south", "east"]})
    assert "another 'unmask' of round 0 was answered before" in refusal(site, fewer)
    assert "round 5 was not asked here" in refusal(site, dataclasses.replace(unmask, round=5))


@pytest.mark.parametrize("kind", ["open", "roster"])
def test_a_run_begins_once(kind: str, tmp_path: Path) -> None:
    """An invitation or a list of sites of a later round would begin a closed run anew."""
    ledger = jaxcd.LedgerFile(
        tmp_path / "n", data_set="n", budget=dataclasses.replace(BUDGET, epsilon=9.0)
    )
    net = Net(ledgers={"north": ledger})
    net.release(jaxcd.Marginals())
    (first,) = (message for message in net.sent["north"] if message.kind == kind)
    for round_ in (0, 7):
        words = refusal(net.sites["north"], dataclasses.replace(first, round=round_))
        assert "comes before the first round only" in words


def test_a_second_run_needs_a_ledger(tmp_path: Path) -> None:
    site, messages = opened(Net())
    again = dataclasses.replace(messages[0], run="another")
    assert "keeps no ledger" in refusal(site, again)
    small = jaxcd.LedgerFile(tmp_path / "n.ledger", data_set="north", budget=BUDGET)
    site, messages = opened(Net(ledgers={"north": small}))
    again = dataclasses.replace(messages[0], run="another")
    assert "nothing is left" in refusal(site, again)


def asking(changes: dict[str, Any], *, pure: bool = False) -> str:
    """What a site says to a first question with something else in it."""
    net = Net(budget=jaxcd.Budget(1.0) if pure else BUDGET)

    def capture(name: str, message: Message, reply: bytes) -> bytes | None:
        return reply

    ask: list[Message] = []

    def stop(content: bytes) -> bytes | None:
        message = Message.decode(content)
        if message.kind == "ask":
            ask.append(message)
            return None
        return net.sites["north"].answer(content)

    net.coordinator._lines["north"] = LocalLine(stop)
    with pytest.raises(PrivacyError):
        net.release(jaxcd.Histogram() if pure else jaxcd.Marginals())
    return refusal(net.sites["north"], dataclasses.replace(ask[0], body={**ask[0].body, **changes}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sensitivity": 1.0}, "states a sensitivity of 1"),
        ({"pad": 0.0}, "with a pad of 0"),
        ({"sets": [[0, 9]]}, "a part is missing"),
        ({"sets": [[0, 9]], "weights": [1.0], "tables": []}, "are no columns"),
        ({"sets": [[1, 0]], "weights": [1.0], "tables": []}, "are no columns"),
        ({"sets": [[0], [0]], "weights": [1.0, 1.0]}, "out of its range"),
        ({"sets": [], "weights": []}, "out of its range"),
        ({"weights": "x"}, "a part is missing"),
        ({"price": -1.0}, "out of its range"),
        ({"price": 1e9}, "fit"),
        ({"bits": 12}, "no multiple of 8"),
        ({"bits": 72}, "no multiple of 8"),
        ({"integral": True}, "are no integers"),
        ({"law": "discrete-laplace"}, "for counts only"),
        ({"grid": 0.3}, "power of two"),
        ({"label": 3}, "out of its range"),
        # The squares of weights leave float64, and a sensitivity of 0 would be enough.
        (
            {
                **{"sets": [[0], [1]], "weights": [1e-200, 1e-200], "tables": []},
                **{"sensitivity": 1e-250, "pad": 1e-202, "grid": 2.0**-720, "bits": 64},
            },
            "out of its range",
        ),
        ({"sets": [[0], [1]], "weights": [1e200, 1e200], "tables": []}, "out of its range"),
    ],
    ids=str,
)
def test_questions_that_are_refused(changes: dict[str, Any], words: str) -> None:
    assert words in asking(changes)


@pytest.mark.parametrize(
    "shares", [[10**400, 1, 1], "abc", 3, [1, True, 1]], ids=lambda x: str(x)[:9]
)
def test_a_kind_of_release_that_is_none_is_refused(shares: Any) -> None:
    """A site answers in one line, whatever numbers an invitation holds."""
    net = Net()
    net.release(jaxcd.Marginals())
    first = net.sent["north"][0]
    release = {**first.body["release"], "shares": shares}
    again = dataclasses.replace(first, run="other", body={**first.body, "release": release})
    fresh = Net().sites["north"]
    words = refusal(fresh, again)
    assert "three positive weights" in words or "is not made by several sites" in words


def test_counts_that_are_asked_twice_cost_twice() -> None:
    sets = [[0, 1, 2, 3], [0, 1]]
    changes = {"sets": sets, "weights": [1.0, 1.0], "tables": sets}
    assert "sensitivity of 2 with" in asking(changes, pure=True)


def test_a_roster_without_the_agreed_number_is_refused() -> None:
    net = Net()
    site, messages = opened(net)
    fresh = Site("north", net.data["north"], net.federation)
    joined = Message.decode(fresh.answer(messages[0].encode()))
    body = {"n_samples": {"north": 5}, "public_keys": {"north": joined.body["public_key"]}}
    roster = dataclasses.replace(messages[1], body=body)
    assert "1 site, fewer than the 4 agreed on" in refusal(fresh, roster)
    assert "who takes part" in refusal(fresh, dataclasses.replace(messages[1], body={}))
    assert "its key" in refusal(fresh, messages[1]) or "not its own" in refusal(fresh, messages[1])


def test_sites_keep_to_what_they_agreed_on() -> None:
    """Another budget, other numbers of absent sites, or another domain are refused by name."""
    net = Net()
    for name, wrong, words in (
        ("budget", Federation(NAMES, jaxcd.Budget(2.0, 1e-6)), "epsilon are not what"),
        ("dropouts", Federation(NAMES, BUDGET, dropouts=1), "dropouts are not what"),
    ):
        net.sites["east"] = Site("east", net.data["east"], wrong)
        with pytest.raises(PrivacyError, match=words):
            net.release(jaxcd.Marginals())
        assert name
        net = Net()
    other_domain = coded(net.data["east"].discrete, levelled(2, 3, 2, 3))
    net.sites["east"] = Site("east", other_domain, net.federation)
    with pytest.raises(PrivacyError, match="'east' has declared another domain"):
        net.release(jaxcd.Marginals())


def test_a_ledger_without_room_leaves_its_site_out(tmp_path: Path) -> None:
    spent = jaxcd.LedgerFile(
        tmp_path / "e", data_set="e", budget=dataclasses.replace(BUDGET, epsilon=0.5)
    )
    net = Net(ledgers={"east": spent}, dropouts=1)
    assert net.release(jaxcd.Marginals()).n_samples == sum(
        rows.n_samples for name, rows in net.data.items() if name != "east"
    )
    assert any("'east'" in note and "is less than" in note for note in net.notes)
    assert len(spent.records) == 0


def test_what_a_ledger_says_to_others_does_not_say_where_it_is(tmp_path: Path) -> None:
    """A refusal goes to the coordinator, and into its report."""
    path = tmp_path / "east.ledger"
    damaged = jaxcd.LedgerFile(path, data_set="e", budget=BUDGET)
    path.write_bytes(b"no ledger")
    net = Net(ledgers={"east": damaged}, dropouts=1)
    net.release(jaxcd.Marginals())
    (note,) = (note for note in net.notes if "'east'" in note)
    assert "'east.ledger' is no whole ledger" in note and str(tmp_path) not in note


@pytest.mark.parametrize("last", [None, "open", "roster"])
def test_a_ledger_that_cannot_be_read_leaves_its_site_out(last: Any, tmp_path: Path) -> None:
    """As a site that does not answer; where the file is, is for its owner."""
    lost = jaxcd.LedgerFile(tmp_path / "e", data_set="e", budget=BUDGET)

    def removed(name: str, message: Message | None, reply: Any) -> Any:
        if name == "east" and (message and message.kind) == last:
            lost.path.unlink()
        return reply

    net = Net(ledgers={"east": lost}, dropouts=1, tamper=removed)
    removed("east", None, None)
    assert net.release(jaxcd.Histogram()).n_samples == sum(
        rows.n_samples for name, rows in net.data.items() if name != "east"
    )
    assert any("'east' cannot read or write its ledger" in note for note in net.notes)
    assert str(tmp_path) not in str(net.coordinator.report())


def test_every_site_has_the_charges_of_the_certificate(tmp_path: Path) -> None:
    ledgers = {
        name: jaxcd.LedgerFile(tmp_path / name, data_set=name, budget=BUDGET) for name in NAMES
    }
    bought = Net(ledgers=ledgers, dropouts=1).release(jaxcd.Marginals())
    for ledger in ledgers.values():
        rows = [(row["label"], row["rho"], row["law"], row["scales"]) for row in ledger.records]
        stated = [(row["label"], row["rho"], row["law"], row["scales"]) for row in bought.charges]
        assert json.dumps(rows) == json.dumps(stated) and len(rows) == 3
        assert jaxcd.verify(ledger.certificate()).holds
    assert jaxcd.verify(tmp_path / "east").holds


# ---- what cannot be agreed on


@pytest.mark.parametrize(
    ("sites", "options", "words"),
    [
        ("ab", {}, "the single string 'ab'"),
        (3, {}, "a collection of"),
        (("a",), {}, "two or more"),
        (("a", "a"), {}, "different names"),
        (("a", "coordinator"), {}, "is taken"),
        (("a", "b", "c"), {"dropouts": 2, "colluding": 1}, "none is sure"),
        (("a", "b", "c"), {"dropouts": 2}, "at least two"),
        (("a", "b"), {"colluding": -1}, "no number of sites"),
        (("a", "b"), {"budget": jaxcd.NO_PRIVACY}, "pool their rows"),
        (("a", "b"), {"budget": jaxcd.Budget(1.0, unit=Unit.PERSON)}, "unit='person'"),
        (("a", "b"), {"budget": jaxcd.Budget(1.0, 1e-6, accounting=Accounting.GAUSSIAN)}, "zCDP"),
    ],
)
def test_federations_that_are_none(sites: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Federation(sites, options.pop("budget", BUDGET), **options)


def test_kinds_that_are_not_made_by_several_sites() -> None:
    with pytest.raises(OptionError, match="not made by several sites"):
        Net().release(jaxcd.SecondMoments())
    with pytest.raises(OptionError, match="delta = 0"):
        Net(budget=jaxcd.Budget(1.0)).release(jaxcd.Marginals())
    with pytest.raises(DomainError, match="max_cells"):
        Net().release(jaxcd.Histogram(max_cells=3))
    with pytest.raises(OptionError, match="not a Dataset"):
        Site("north", 3, Federation(NAMES, BUDGET))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no sites"):
        jaxcd.federate(four(), jaxcd.Histogram(), budget=BUDGET, ledgers={"x": None})  # type: ignore[dict-item]


def test_knowledge_is_public_and_goes_along() -> None:
    known = jaxcd.Knowledge(forbidden=[("v0", "v1"), ("v1", "v0")])
    bought = Net().release(jaxcd.Marginals(knowledge=known))
    assert (0, 1) not in bought.interactions and (0, 2) in bought.interactions


def test_simulated_shares_differ_between_sites() -> None:
    source = jaxcd.SimulatedNoise(jax.random.key(0))
    draws = [site_noise(source, i).start().polya(5.0, 3, 50, index=0) for i in range(2)]
    assert (draws[0] != draws[1]).any()


def test_a_site_may_be_a_table_that_stays_where_it_is() -> None:
    """The same rows behind an engine give the same sums."""
    polars = pytest.importorskip("polars")
    data = four()
    rows = data["east"]
    frame = polars.DataFrame(
        {name: rows.column(name).astype(int).tolist() for name in rows.domain.names}
    )
    table = jaxcd.Table(frame.lazy(), domain=rows.domain, n_samples=rows.n_samples, snapshot="a")
    for kind in (jaxcd.Histogram(), jaxcd.Marginals()):
        plain = Net(data, noise=Silent()).release(kind)
        behind = Net({**data, "east": table}, noise=Silent()).release(kind)  # type: ignore[dict-item]
        assert jaxcd.search(plain).graph == jaxcd.search(behind).graph
        assert plain.n_samples == behind.n_samples


@pytest.mark.parametrize("options", [{}, {"dropouts": 1}, {"dropouts": 1, "colluding": 1}])
@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear()])
def test_edges_of_a_release_of_several_sites_have_a_confidence(
    kind: Any, options: dict[str, int], tmp_path: Path
) -> None:
    """Fresh releases have its noise: shares of sites that might have been absent are in it, too."""
    net = Net(**options)
    bought = net.coordinator.release(kind, noise=net.noise)
    bought.save(tmp_path / "bought.npz")
    for release in (bought, jaxcd.Release.load(tmp_path / "bought.npz")):
        found = jaxcd.search(release)
        sure = jaxcd.edge_confidence(release, found, n_draws=2)
        assert sure.adjacency.shape == (4, 4)
    fresh = release_again(bought, four()["north"], kind=kind, noise=simulated(2))
    assert np.allclose(fresh._precision(), bought._precision(), rtol=1e-6)
