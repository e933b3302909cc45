"""A reader of BIF, the Bayesian interchange format.

The part of the language that is understood::

    network NAME { property ...; }
    variable NAME { type discrete [ 2 ] { LEVEL, LEVEL }; property ...; }
    probability ( NAME | PARENT, PARENT ) {
        table 0.1, 0.9;
        every entry at once: the child varies slowest, the last parent fastest
        default 0.5, 0.5;            the row of every parent configuration that has none of its own
        (LEVEL, LEVEL) 0.1, 0.9;     one parent configuration
        property ...;
    }

Commas and the bar may be left out, names may be quoted, and properties are skipped.  Comments
(``// ...`` and ``/* ... */``) start at the start of a word, so that a level such as ``Asy/Patch``
and a property such as ``http://...`` are words.

Source:
    Cozman, The Interchange Format for Bayesian Networks, 1998.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import counted
from jaxcd.errors import FormatError

ROW_SUM_TOLERANCE = 1e-6
"""How far from one a row may sum; files carry rounded decimals."""

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<broken>/\*)
      | "(?P<quoted>[^"\n]*)"
      | (?P<mark>[{}()\[\],;|])
      | (?P<word>[^\s{}()\[\],;|"]+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A word or mark of the file and the line it stands on; quoted words are never marks or
    keywords.
    """

    text: str
    line: int
    quoted: bool = False


@dataclass(eq=False)
class BifNetwork:
    """What a BIF file says: levels, parents and conditional probability tables, in file order."""

    name: str = ""
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    cpts: dict[str, NDArray[np.float64]] = field(default_factory=dict)


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a BIF text, with their lines."""
    line = 1
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if kind == "quoted":
            yield Token(match.group("quoted"), line, quoted=True)
        elif kind in ("mark", "word"):
            yield Token(piece, line)
        elif kind == "broken":
            raise FormatError(f"line {line}: a comment that starts with /* is never closed")
        elif kind == "other":
            raise FormatError(f"line {line}: a quoted name is never closed")
        line += piece.count("\n")


def parse_bif(text: str) -> BifNetwork:
    """Parse a BIF text.

    Raises:
        FormatError: Naming the line, for anything that is not BIF: a broken block, an unknown
            variable or level, a missing or repeated row, a row that does not sum to one within
            1e-6.
    """
    return _Parser(list(tokens_of(text))).network()


class _Parser:
    """Reads tokens from left to right; every method reads one construct of the grammar."""

    def __init__(self, tokens: list[Token]) -> None:
        last_line = tokens[-1].line if tokens else 1
        # a sentinel: the end of the file
        self._tokens = [*tokens, Token("", last_line, quoted=True)]
        self._at = 0
        self._result = BifNetwork()

    # Tokens
    # ----------------------------------------------------------------------------------------------

    @property
    def _ended(self) -> bool:
        return self._at == len(self._tokens) - 1

    def _fail(self, message: str, token: Token) -> NoReturn:
        raise FormatError(f"line {token.line}: {message}")

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if self._ended:
            self._fail("the file ends in the middle of a block; close it with }", token)
        self._at += 1
        return token

    def _sees(self, text: str) -> bool:
        token = self._tokens[self._at]
        return token.text == text and not token.quoted

    def _takes(self, text: str) -> bool:
        if self._sees(text):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> Token:
        token = self._next()
        if token.text != text or token.quoted:
            self._fail(f"expected {text!r}, not {token.text!r}", token)
        return token

    def _word(self, what: str) -> Token:
        token = self._next()
        if not token.quoted and token.text in set("{}()[],;|"):
            self._fail(f"expected {what}, not {token.text!r}", token)
        return token

    def _words_until(self, end: str, what: str) -> list[Token]:
        words: list[Token] = []
        while not self._takes(end):
            if not self._takes(","):
                words.append(self._word(what))
        return words

    def _skip_statement(self) -> None:
        while not self._takes(";"):
            if self._sees("}"):
                self._fail("a property must end with ;", self._tokens[self._at])
            self._next()

    # Blocks
    # ----------------------------------------------------------------------------------------------

    def network(self) -> BifNetwork:
        blocks = {
            "network": self._network_block,
            "variable": self._variable,
            "probability": self._probability,
        }
        while not self._ended:
            token = self._next()
            if token.quoted or token.text not in blocks:
                self._fail(f"expected network, variable or probability, not {token.text!r}", token)
            blocks[token.text]()
        end = self._tokens[-1]
        if not self._result.levels:
            self._fail("the file declares no variable", end)
        for name in self._result.levels:
            if name not in self._result.cpts:
                self._fail(f"variable {name!r} has no probability block; add one", end)
        return self._result

    def _network_block(self) -> None:
        self._result.name = self._word("the network's name").text
        self._expect("{")
        while not self._takes("}"):
            self._expect("property")
            self._skip_statement()

    def _variable(self) -> None:
        name = self._word("a variable's name")
        if name.text in self._result.levels:
            self._fail(f"variable {name.text!r} is declared twice; keep one block", name)
        self._expect("{")
        levels: tuple[str, ...] | None = None
        while not self._takes("}"):
            token = self._next()
            if token.quoted or token.text not in ("property", "type"):
                self._fail(
                    f"expected type or property in variable {name.text!r}, not {token.text!r}",
                    token,
                )
            if token.text == "property":
                self._skip_statement()
                continue
            if levels is not None:
                self._fail(f"variable {name.text!r} has two types; keep one", token)
            levels = self._levels(name.text)
        if levels is None:
            self._fail(
                f"variable {name.text!r} has no type; add type discrete [ n ] {{ ... }};", name
            )
        self._result.levels[name.text] = levels

    def _levels(self, name: str) -> tuple[str, ...]:
        kind = self._word("discrete")
        if kind.text != "discrete":
            self._fail(
                f"variable {name!r} is of type {kind.text!r}; only discrete variables can be read",
                kind,
            )
        self._expect("[")
        count = self._word("the number of levels")
        self._expect("]")
        self._expect("{")
        levels = tuple(word.text for word in self._words_until("}", "a level"))
        self._expect(";")
        if count.text != str(len(levels)):
            word = "level" if count.text == "1" else "levels"
            self._fail(
                f"variable {name!r} announces {count.text} {word} and lists {len(levels)}", count
            )
        if not levels or len(set(levels)) < len(levels):
            self._fail(f"variable {name!r} must list at least one level, each once", count)
        return levels

    def _probability(self) -> None:
        start = self._expect("(")
        child = self._known(self._word("a variable's name"))
        self._takes("|")
        parents = tuple(self._known(word) for word in self._words_until(")", "a parent's name"))
        if child in self._result.cpts:
            self._fail(f"variable {child!r} has two probability blocks; keep one", start)
        if len({child, *parents}) < 1 + len(parents):
            self._fail(f"variable {child!r} lists a parent twice or itself as a parent", start)
        reader = _TableReader(
            child, parents, {name: self._result.levels[name] for name in (child, *parents)}
        )
        self._expect("{")
        while not self._takes("}"):
            token = self._next()
            keyword = "" if token.quoted else token.text
            if keyword == "property":
                self._skip_statement()
            elif keyword == "table":
                reader.table(self._numbers(), token.line)
            elif keyword == "default":
                reader.default(self._numbers(), token.line)
            elif keyword == "(":
                configuration = [word.text for word in self._words_until(")", "a parent's level")]
                reader.row(configuration, self._numbers(), token.line)
            else:
                self._fail(
                    f"expected table, default, ( or property for {child!r}, not {token.text!r}",
                    token,
                )
        self._result.parents[child] = parents
        self._result.cpts[child] = reader.cpt(start.line)

    def _known(self, word: Token) -> str:
        if word.text not in self._result.levels:
            self._fail(
                f"variable {word.text!r} is not declared before its first use; add a variable "
                "block",
                word,
            )
        return word.text

    def _numbers(self) -> list[float]:
        numbers: list[float] = []
        for word in self._words_until(";", "a probability"):
            try:
                number = float(word.text)
            except ValueError:
                number = float("nan")
            if not 0 <= number <= 1 + ROW_SUM_TOLERANCE:
                self._fail(f"{word.text!r} is not a probability between 0 and 1", word)
            numbers.append(number)
        return numbers


class _TableReader:
    """Collects the entries of one probability block into an array of shape (parents'
    cardinalities..., cardinality).
    """

    def __init__(
        self, child: str, parents: tuple[str, ...], levels: dict[str, tuple[str, ...]]
    ) -> None:
        self._child, self._parents, self._levels = child, parents, levels
        self._shape = tuple(len(levels[name]) for name in (*parents, child))
        self._cpt = np.full(self._shape, np.nan)
        self._lines = np.zeros(self._shape[:-1], dtype=np.int64)
        self._default: tuple[list[float], int] | None = None
        self._has_table = False

    def _count(self, numbers: list[float], expected: int, line: int) -> None:
        if len(numbers) != expected:
            raise FormatError(
                f"line {line}: {self._child!r} needs {expected} probabilities here, but "
                f"{len(numbers)} are given"
            )

    def table(self, numbers: list[float], line: int) -> None:
        """Every entry: P(first level | first configuration), P(first level | second configuration),
        ...
        """
        if self._lines.any() or self._default is not None:
            raise FormatError(
                f"line {line}: the table of {self._child!r} stands beside other rows; keep either"
            )
        self._count(numbers, prod(self._shape), line)
        entries = np.array(numbers).reshape(self._shape[-1], *self._shape[:-1])
        self._cpt[...] = np.moveaxis(entries, 0, -1)
        self._lines[...] = line
        self._has_table = True

    def default(self, numbers: list[float], line: int) -> None:
        """The row of every configuration that has none of its own."""
        self._count(numbers, self._shape[-1], line)
        if self._default is not None or self._has_table:
            raise FormatError(
                f"line {line}: {self._child!r} has a default row beside another or a table; keep "
                "one"
            )
        self._default = numbers, line

    def row(self, configuration: list[str], numbers: list[float], line: int) -> None:
        """One parent configuration."""
        if len(configuration) != len(self._parents):
            raise FormatError(
                f"line {line}: {self._child!r} has {counted(len(self._parents), 'parent')}, but "
                f"the row names {counted(len(configuration), 'level')}"
            )
        place: list[int] = []
        for parent, level in zip(self._parents, configuration, strict=True):
            if level not in self._levels[parent]:
                raise FormatError(
                    f"line {line}: {level!r} is not a level of {parent!r}, a parent of "
                    f"{self._child!r}"
                )
            place.append(self._levels[parent].index(level))
        self._count(numbers, self._shape[-1], line)
        if self._lines[tuple(place)]:
            shown = self._shown(tuple(place))
            raise FormatError(
                f"line {line}: {self._child!r} has a second row for {shown}; keep one"
            )
        self._cpt[tuple(place)] = numbers
        self._lines[tuple(place)] = line

    def _shown(self, place: tuple[int, ...]) -> str:
        levels = (
            f"{parent} = {self._levels[parent][code]}"
            for parent, code in zip(self._parents, place, strict=True)
        )
        return ", ".join(levels) or "no parents"

    def cpt(self, line: int) -> NDArray[np.float64]:
        """The complete table, every row summing to one."""
        for place in np.ndindex(self._shape[:-1]):
            if not self._lines[place]:
                if self._default is None:
                    raise FormatError(
                        f"line {line}: {self._child!r} has no row for {self._shown(place)}; add one"
                    )
                self._cpt[place], self._lines[place] = self._default
            total = self._cpt[place].sum()
            if not abs(total - 1) <= ROW_SUM_TOLERANCE:
                raise FormatError(
                    f"line {self._lines[place]}: the row of {self._child!r} for "
                    f"{self._shown(place)} sums to "
                    f"{total:.9g}, not 1; correct its probabilities"
                )
        return self._cpt / self._cpt.sum(axis=-1, keepdims=True)
