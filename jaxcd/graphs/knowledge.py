"""Background knowledge: what is known about causes before the data is read.

Three kinds of statement about variables by name:

- **tiers**: ordered groups, mostly times of measurement.  A variable of a later tier is no ancestor
  of one of an earlier tier.  A variable without a tier may be anywhere.
- **forbidden** pairs (a, b): a is no cause of b.
- **required** pairs (a, b): a is a direct cause of b.

What they say about an edge depends on the graph:

| statement | DAG | CPDAG | MAG and PAG |
|---|---|---|---|
| a in a later tier than b | no path ``a --> ... --> b`` | ``b --> a`` | ``b *-> a`` |
| forbidden (a, b) | not ``a --> b`` | ``b --> a`` | ``b *-> a`` |
| required (a, b) | ``a --> b`` | ``a --> b`` | ``a --> b`` |
| required path from a to b | not ``b --> a`` | ``a --> b`` | ``a --> b`` |

(If the two are joined.  A forbidden pair lets a cause b through other variables in a DAG; in a MAG
or PAG it says that a is no ancestor of b.)

The readings of a forbidden pair differ on purpose.  With latent variables ``a --> b`` in a MAG says
that a is an ancestor of b, perhaps through variables that were not measured; that there is no
*direct* effect says nothing about its marks. Where latent variables are possible, forbid only pairs
of which a is no cause of b by any way; ``check(names, ancestral=True)`` refuses knowledge that
contradicts itself in this reading.

**Selection.**  A mark in a MAG under selection speaks of the selection variables too: an arrowhead
at a says that a is an ancestor neither of b nor of a selection variable.  Where selection is
possible, tiers must therefore be meant as: *a variable of any tier but the first is no ancestor of
a selection variable either*, and a forbidden pair (a, b) as: a causes neither b nor the selection.
Without this, neither the arrowheads nor :meth:`Knowledge.may_separate` are sound.

>>> knowledge = Knowledge(
...     tiers=[["age"], ["smoking", "diet"], ["cancer"]], required=[("smoking", "cancer")]
... )
>>> knowledge.forbids("cancer", "age"), knowledge.forbids("age", "cancer")
(True, False)
>>> knowledge.arrowheads(["age", "smoking", "diet", "cancer"])[
...     0
... ].tolist()  # edges of age: arrowheads at the others
[False, True, True, True]
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import networkx as nx
import numpy as np

from jaxcd.checks import a_type, is_iterable, shown_list
from jaxcd.errors import FormatError, OptionError

__all__ = ["Knowledge", "given_edges"]

_JSON_FORMAT = "jaxcd.Knowledge"
_JSON_VERSION = 1


@final
@dataclass(frozen=True)
class Knowledge:
    """What is known of a graph before a search: tiers, forbidden and required edges.

    The docstring of :mod:`jaxcd.graphs.knowledge` says what each means in a DAG, a CPDAG and a PAG.
    Equality and hash are by content: the order of names within a tier and of pairs does not matter,
    and is not kept.

    Args:
        tiers: Groups of names, the earliest first; no name is in two of them.
        forbidden: Pairs (a, b): a is no cause of b.  Writes the arrowhead at a, and nothing else.
        required: Pairs (a, b): the edge ``a --> b`` must be there.
        forbidden_within_tier: Whether members of the same tier are no causes of each other either:
            every pair of a tier is forbidden both ways.  In a DAG they are then not adjacent; in a
            PAG they may be joined by ``<->`` only.

    Raises:
        OptionError: If a name is no non-empty string or stands in two tiers, a pair is malformed or
            repeated, required edges form a cycle, a required edge is forbidden, or required edges
            lead from a later tier to an earlier one.

    Source:
        Meek 1995 (UAI), "Causal inference and causal explanation with background knowledge";
        Andrews, Spirtes and Cooper 2020 (AISTATS), "On the completeness of causal discovery in the
        presence of latent confounding with tiered background knowledge".

    Example:
        >>> import jaxcd
        >>> known = jaxcd.Knowledge(
        ...     tiers=[["age", "sex"], ["disease"]], required=[("sex", "disease")]
        ... )
        >>> known.forbids("disease", "age"), known.forbids("age", "disease")
        (True, False)
    """

    tiers: Sequence[Collection[str]] = ()
    forbidden: Collection[tuple[str, str]] = ()
    required: Collection[tuple[str, str]] = ()
    forbidden_within_tier: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.forbidden_within_tier, bool):
            raise OptionError(
                f"forbidden_within_tier must be True or False, got {self.forbidden_within_tier!r}"
            )
        tiers = _checked_tiers(self.tiers)
        tier_of = {name: k for k, tier in enumerate(tiers) for name in tier}
        object.__setattr__(self, "tiers", tiers)
        object.__setattr__(self, "_tier_of", tier_of)
        for what in ("forbidden", "required"):
            pairs = _checked_pairs(getattr(self, what), what)
            object.__setattr__(self, what, pairs)
            object.__setattr__(self, f"_{what}", frozenset(pairs))
        self._refuse_cycles()
        paths = nx.transitive_closure_dag(nx.DiGraph(self.required))
        object.__setattr__(self, "_leads_to", frozenset(paths.edges))
        for a, b in self.required:
            if reason := self._why_not(a, b):
                raise OptionError(
                    f"required edge {_arrow(a, b)}: {reason}; remove one of the two statements"
                )
        self._refuse_paths(ancestral=False)
        first, last = dict(tier_of), dict(tier_of)
        for a, b in self._leads_to:  # type: ignore[attr-defined]
            if a in tier_of:
                first[b] = max(first.get(b, 0), tier_of[a])
            if b in tier_of:
                last[a] = min(last.get(a, len(tiers)), tier_of[b])
        object.__setattr__(self, "_first_tier", first)
        object.__setattr__(self, "_last_tier", last)

    # ---- questions about pairs
    # ----------------------------------------------------------------------------------------------

    def tier_of(self, name: str) -> int | None:
        """Position in ``tiers`` of the tier of ``name``, 0 the earliest; None if it has no tier."""
        return self._tier_of.get(name)  # type: ignore[attr-defined,no-any-return]

    def forbids(self, a: str, b: str) -> bool:
        """Is ``a --> b`` excluded: forbidden, against the tiers (with paths of required edges to a
        and from b, which go no way back either), or opposite to such an edge or path?
        """
        if (b, a) in self._leads_to or self._why_not(a, b) is not None:  # type: ignore[attr-defined]
            return True
        first, last = self._first_tier.get(a), self._last_tier.get(b)  # type: ignore[attr-defined]
        return first is not None and last is not None and bool(first > last)

    def requires(self, a: str, b: str) -> bool:
        """Is (a, b) one of the required edges?"""
        return (a, b) in self._required  # type: ignore[attr-defined,no-any-return]

    def adjacency_forbidden(self, a: str, b: str) -> bool:
        """Are both directions excluded, so that a and b are not adjacent in any DAG that respects
        the knowledge?

        For PC: the pair's tests need not be run.  Not for FCI: without direct effects the two may
        still be joined by ``<->``, for a latent common cause.
        """
        return self.forbids(a, b) and self.forbids(b, a)

    def adjacency_required(self, a: str, b: str) -> bool:
        """Is ``a --> b`` or ``b --> a`` required, so that the pair is kept and its tests need not
        be run?

        Sound for PC and FCI: with a direct effect no set separates the two.
        """
        return self.requires(a, b) or self.requires(b, a)

    # ---- questions about all names at once
    # ----------------------------------------------------------------------------------------------

    def arrowheads(self, names: Sequence[str]) -> np.ndarray:
        """Where arrowheads must stand, if there is an edge.

        Args:
            names: The d node names; names without any knowledge are allowed, and every name of the
                knowledge is there.

        Returns:
            Bool matrix (d, d): at (i, j), whether an edge between i and j has an arrowhead at j,
            that is, whether ``names[j] --> names[i]`` is excluded (:meth:`forbids`).  The diagonal
            is False.

        Raises:
            OptionError: If a name of the knowledge is not among ``names``.
        """
        place = self._places(names)
        # NaN, no tier, is not larger than anything.
        tier, first, last = (
            np.array([np.nan if (k := of.get(name)) is None else k for name in names], dtype=float)
            for of in (self._tier_of, self._first_tier, self._last_tier)  # type: ignore[attr-defined]
        )
        result: np.ndarray = first[None, :] > last[:, None]
        if self.forbidden_within_tier:
            result |= (tier[None, :] == tier[:, None]) & ~np.eye(len(tier), dtype=bool)
        for a, b in self.forbidden:
            result[place[b], place[a]] = True
        for a, b in self._leads_to:  # type: ignore[attr-defined]
            result[place[a], place[b]] = True
        return result

    def tails(self, names: Sequence[str], *, along_paths: bool = False) -> np.ndarray:
        """Where tails must stand: at the causes of required edges.

        Args:
            names: As for :meth:`arrowheads`.
            along_paths: Whether a path of required edges counts too: if there is an edge between
                its ends, it has a tail at the first.

        Returns:
            Bool matrix (d, d): at (i, j), whether the edge between i and j has a tail at j, that
            is, whether ``names[j] --> names[i]`` is required.  So ``tails | tails.T`` are the
            required adjacencies, unless paths count.

        Raises:
            OptionError: If a name of the knowledge is not among ``names``.
        """
        place = self._places(names)
        result = np.zeros((len(names), len(names)), dtype=bool)
        for a, b in self._leads_to if along_paths else self.required:  # type: ignore[attr-defined]
            result[place[b], place[a]] = True
        return result

    def may_separate(self, x: str, y: str, names: Sequence[str]) -> np.ndarray:
        """Which nodes a separating set of x and y may be looked for in.

        Nodes of a later tier than both x and y are left out; if x or y has no tier, none is.
        Nothing is lost: if a set Z of observed nodes separates x and y, so does Z without the nodes
        that are no ancestors of x or y, hence a set that is no larger and has no node of a later
        tier.  For let Z' be the part of Z in An(x, y).  On a path that is open given Z' every node
        is in An(x, y): it has a descendant among x, y and Z'.  So no node of the path is in Z but
        not in Z', its non-colliders are outside Z, its colliders have a descendant in Z' and thus
        in Z, and the path is open given Z.  Observed or latent made no difference, so this holds
        with latent variables.  For PC and FCI the neighbours of x or y, and their possible-d-sep
        sets, still hold a separating set after the cut: those that the proofs of the two algorithms
        use lie in An(x, y).

        With **selection variables** S it fails in general: what is needed is An(x, y, S).  In x -->
        w --> s <-- y with s selected only {w} separates x and y, and w may be of a later tier.  It
        holds again if no node of a later tier than the first is an ancestor of S (the reading of
        tiers under selection, see the module).

        Args:
            x: A name.
            y: Another name.
            names: The d candidates, in any order; x and y may be among them.

        Returns:
            Bool vector (d,): whether the candidate may be in the set.  False at x and y.
        """
        first, second = self.tier_of(x), self.tier_of(y)
        last = np.inf if first is None or second is None else max(first, second)
        tier = np.array(
            [-1 if (k := self.tier_of(name)) is None else k for name in names], dtype=float
        )
        own = np.array([name in (x, y) for name in names], dtype=bool)
        return (tier <= last) & ~own

    def check(self, names: Sequence[str], *, ancestral: bool = False) -> None:
        """Raises if the knowledge does not fit a graph over ``names``.

        Args:
            names: The names of the graph.
            ancestral: Whether a forbidden pair says that a is no ancestor of b (MAGs and PAGs);
                then a path of required edges from a to b contradicts it.  In a DAG it is the edge
                that is forbidden, and the path is allowed.

        Raises:
            OptionError: If a name of the knowledge is not among ``names``, or the knowledge
                contradicts itself in the ancestral reading; the message names the edge or tier and
                the cure.
        """
        if isinstance(names, str):
            raise OptionError(
                f"names must be a sequence of names, got the single text {names!r}; write "
                f"[{names!r}]"
            )
        known = set(names)
        sources = [(f"tiers[{k}]", tier) for k, tier in enumerate(self.tiers)]
        for what in ("forbidden", "required"):
            sources += [(f"{what} edge {_arrow(a, b)}", (a, b)) for a, b in getattr(self, what)]
        for source, members in sources:
            for name in members:
                if name not in known:
                    close = difflib.get_close_matches(name, sorted(known), n=1)
                    cure = (
                        f"did you mean {close[0]!r}?"
                        if close
                        else f"the names are {shown_list([repr(name) for name in names])}"
                    )
                    raise OptionError(f"knowledge, {source}: there is no variable {name!r}; {cure}")
        if ancestral:
            self._refuse_paths(ancestral=True)

    # ---- JSON
    # ----------------------------------------------------------------------------------------------

    def to_json_dict(self) -> dict[str, Any]:
        """A dictionary of plain lists and strings for ``json.dump``; the form is told by
        :meth:`from_json_dict`.
        """
        return {
            "format": _JSON_FORMAT,
            "version": _JSON_VERSION,
            "tiers": [list(tier) for tier in self.tiers],
            "forbidden": [list(pair) for pair in self.forbidden],
            "required": [list(pair) for pair in self.required],
            "forbidden_within_tier": self.forbidden_within_tier,
        }

    @classmethod
    def from_json_dict(cls, value: Any) -> Knowledge:
        """The knowledge of a dictionary as ``json.load`` gives it; the inverse of
        :meth:`to_json_dict`.

        Args:
            value: ``{"tiers": [["age"], ["smoking", "diet"]], "forbidden": [["diet", "smoking"]],
                "required": [["age", "diet"]], "forbidden_within_tier": false}``.  Every key may be
                left out; "format" and "version" are checked where they are given.

        Returns:
            The knowledge.

        Raises:
            FormatError: If the dictionary is not of that form.
            OptionError: If its statements contradict each other.
        """
        if not isinstance(value, dict):
            raise FormatError(f"knowledge in JSON is an object, got {a_type(value)}; write {{...}}")
        keys = ("tiers", "forbidden", "required", "forbidden_within_tier")
        unknown = sorted(str(key) for key in set(value) - {*keys, "format", "version"})
        if unknown:
            raise FormatError(
                f"knowledge has the unknown key {unknown[0]!r}; the keys are {', '.join(keys)}"
            )
        for key, expected in (("format", _JSON_FORMAT), ("version", _JSON_VERSION)):
            if value.get(key, expected) != expected:
                raise FormatError(
                    f"knowledge in JSON has {key!r}: {expected!r}, got {value[key]!r}"
                )
        arguments = {key: value[key] for key in keys if key in value}
        for key in set(arguments) - {"forbidden_within_tier"}:
            entries = arguments[key]
            if not isinstance(entries, list) or not all(
                isinstance(entry, list) for entry in entries
            ):
                example = '[["a", "b"], ["c"]]' if key == "tiers" else '[["a", "b"]]'
                raise FormatError(
                    f"knowledge: {key!r} is a list of lists of names such as {example}, got "
                    f"{entries!r}"
                )
        return cls(**arguments)

    # ---- checks
    # ----------------------------------------------------------------------------------------------

    def _places(self, names: Sequence[str]) -> dict[str, int]:
        self.check(names)
        return {name: i for i, name in enumerate(names)}

    def _why_not(self, a: str, b: str) -> str | None:
        """Why a is no cause of b, by a forbidden pair or by the tiers; None if neither says so."""
        if (a, b) in self._forbidden:  # type: ignore[attr-defined]
            return f"{_arrow(a, b)} is forbidden"
        first, second = self.tier_of(a), self.tier_of(b)
        if first is None or second is None or a == b:
            return None
        if first > second:
            return f"{a!r} is in the later tiers[{first}], {b!r} in tiers[{second}]"
        if first == second and self.forbidden_within_tier:
            return f"both are in tiers[{first}], and forbidden_within_tier is True"
        return None

    def _refuse_cycles(self) -> None:
        graph = nx.DiGraph(self.required)
        if not nx.is_directed_acyclic_graph(graph):
            cycle = [a for a, _ in nx.find_cycle(graph)]
            start = cycle.index(min(cycle))
            path = _arrow(*cycle[start:], *cycle[:start], cycle[start])
            what = "is required in both directions" if len(cycle) == 2 else "form a cycle"
            raise OptionError(
                f"required edges {path}: the edge{'s' * (len(cycle) > 2)} {what}; remove one of "
                "them"
            )

    def _refuse_paths(self, *, ancestral: bool) -> None:
        """Paths of required edges that a statement about ancestors excludes: the tiers', and if
        wanted all others.
        """
        graph = nx.DiGraph(self.required)
        for a in sorted(graph):
            for b, path in sorted(nx.single_source_shortest_path(graph, a).items()):
                first, second = self.tier_of(a), self.tier_of(b)
                backwards = first is not None and second is not None and first > second
                reason = self._why_not(a, b) if backwards or ancestral else None
                if reason is not None:
                    raise OptionError(
                        f"required edges {_arrow(*path)} make {a!r} an ancestor of {b!r}, but "
                        f"{reason}; "
                        "remove one of the edges or the other statement"
                    )


def _arrow(*names: str) -> str:
    return " --> ".join(repr(name) for name in names)


def _checked_name(name: Any, where: str) -> str:
    if not isinstance(name, str) or not name:
        raise OptionError(
            f"{where}: a name is a non-empty string, got {name!r}; use the names of the graph"
        )
    return str(name)  # subclasses of str become str


def _collected(value: Any, where: str, example: str) -> list[Any]:
    # A text is a collection of texts, and is never what was meant.
    if isinstance(value, str | bytes) or not is_iterable(value):
        raise OptionError(f"{where} must be a collection such as {example}, got {value!r}")
    return list(value)


def _checked_tiers(value: Any) -> tuple[tuple[str, ...], ...]:
    example = '[["age"], ["smoking", "diet"]]'
    if isinstance(value, set | frozenset):
        raise OptionError(
            f"tiers must be in order, the earliest first, got a set; use a list such as {example}"
        )
    tiers: list[tuple[str, ...]] = []
    seen: dict[str, int] = {}
    for k, tier in enumerate(_collected(value, "tiers", example)):
        members = [
            _checked_name(name, f"tiers[{k}]")
            for name in _collected(tier, f"tiers[{k}]", '["smoking", "diet"]')
        ]
        for name in members:
            if name in seen:
                where = (
                    f"twice in tiers[{k}]"
                    if seen[name] == k
                    else f"in tiers[{seen[name]}] and in tiers[{k}]"
                )
                raise OptionError(
                    f"tiers: {name!r} is {where}; a variable has one tier, keep one of them"
                )
            seen[name] = k
        tiers.append(tuple(sorted(members)))
    return tuple(tiers)


def _checked_pairs(value: Any, what: str) -> tuple[tuple[str, str], ...]:
    pairs: set[tuple[str, str]] = set()
    for entry in _collected(value, what, '[("smoking", "cancer")]'):
        where = f"{what} edge {entry!r}"
        # A set of two has no direction.
        if not isinstance(entry, list | tuple) or len(entry) != 2:
            raise OptionError(
                f"{where}: an edge is a pair (cause, effect), such as ('smoking', 'cancer')"
            )
        a, b = (_checked_name(name, where) for name in entry)
        if a == b:
            raise OptionError(f"{where}: an edge joins two different variables; remove it")
        if (a, b) in pairs:
            raise OptionError(f"{what} edge {_arrow(a, b)} is given twice; keep one of them")
        pairs.add((a, b))
    return tuple(sorted(pairs))


def given_edges(info: Mapping[str, Any]) -> frozenset[frozenset[str]]:
    """The pairs that a search joined because it was told to.

    Args:
        info: what a result says of its run, with its knowledge as JSON under ``"knowledge"``.
    """
    required = (info.get("knowledge") or {}).get("required", ())
    return frozenset(frozenset(pair) for pair in required)
