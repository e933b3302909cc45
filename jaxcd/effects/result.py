"""What an effect is reported as."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, final

from jaxcd.privacy import PrivacyCost

__all__ = ["Effect", "PossibleEffect"]


class EqualFields:
    """What is the same is equal, and a field that is NaN is the same as one that is NaN.  (Of
    dataclasses Python says so up to 3.12, and only where it is the same object.)
    """

    def _compared(self) -> tuple[object, ...]:
        values = (getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]
        return tuple("NaN" if isinstance(one, float) and one != one else one for one in values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EqualFields) or type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())


@final
@dataclass(frozen=True, eq=False)
class PossibleEffect(EqualFields):
    """An effect that a graph, or one of several graphs, allows.

    Args:
        estimate: NaN where the release did not measure it, and in linear models where the
            treatment does not vary by itself beyond the noise.
        low: of its interval.
        high: of its interval.
        adjustment: the columns held fixed; None where the effect is zero by the graph, or not
            measured.
        share: of the graphs that allow it; 1 for one graph, of whose class the effects exclude each
            other.
    """

    estimate: float
    low: float
    high: float
    adjustment: tuple[str, ...] | None
    share: float = 1.0


@final
@dataclass(frozen=True, eq=False)
class Effect(EqualFields):
    """The effect of one column on another, from a release; public.

    Args:
        treatment: the column that is set.
        outcome: the column that is looked at.
        levels: what is compared, (from, to); None for a change by one unit.
        unit: what the effect is a difference of, in words.
        estimate: the difference; NaN where it is not known: where several effects are possible, of
            which ``possible`` has all, where hidden causes leave it open, or where it was not
            measured.
        low: the lower end of the interval; without any information the least that is possible.
        high: the upper end.
        level: of the interval, such as .95.
        identified: whether the graph tells one effect; with several graphs, whether each does.
        adjustment: the columns held fixed; None where there are none to hold (no effect by the
            graph, several possibilities, not identified, not measured).
        assumptions: what must be true for the interval to mean what it says.
        possible: all effects that the graph or the graphs allow; where ``is_open`` those that some
            of its members tell.
        n_graphs: how many graphs were looked at.
        cost: of the release; the effect costs nothing more.
        is_open: whether hidden causes leave the effect open; the interval is then that of all they
            allow.
        unmeasured: nodes of the graph that are hidden causes because the release lacks them.
        warnings: of the release, which hold for what is computed from it.

    Example:
        >>> import jax, jaxcd
        >>> network = jaxcd.networks.load("asia")
        >>> data = network.sample(50_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        >>> effect = jaxcd.effect(bought, treatment="smoke", outcome="bronc", graph=network.dag)
        >>> effect.identified, effect.adjustment, effect.low < effect.estimate < effect.high
        (True, (), True)
    """

    treatment: str
    outcome: str
    levels: tuple[Any, Any] | None
    unit: str
    estimate: float
    low: float
    high: float
    level: float
    identified: bool
    adjustment: tuple[str, ...] | None
    assumptions: tuple[str, ...]
    possible: tuple[PossibleEffect, ...]
    n_graphs: int
    cost: PrivacyCost
    is_open: bool = False
    unmeasured: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether the release has an estimate of every effect that is possible."""
        return bool(self.possible) and all(one.estimate == one.estimate for one in self.possible)

    @property
    def sentence(self) -> str:
        """The effect in plain words."""
        share = f"{100 * self.level:.12g} %"
        if self.levels is None:
            change = f"one unit more of {self.treatment}"
        else:
            change = f"{self.treatment} = {self.levels[1]} instead of {self.levels[0]}"
        what = f"{change} would change the {self.unit}"
        if self.is_open:
            is_one = len(self.unmeasured) == 1
            hidden = "they are"
            if self.unmeasured:
                hidden = "it does" if is_one else "they do"
            whatever = (
                f"; whatever {hidden}, it is by between {self.low:+.3g} and {self.high:+.3g} "
                f"({share} interval)"
                if self.high - self.low < float("inf")
                else ""
            )
            if self.unmeasured:
                return (
                    f"No adjustment tells how {change} would change the {self.unit}: by the graph "
                    f"{' and '.join(self.unmeasured)} {'has' if is_one else 'have'} to be held "
                    f"fixed, and this release did not measure {'it' if is_one else 'them'}"
                    f"{whatever}."
                )
            return (
                f"The graph does not tell how {change} would change the {self.unit}: hidden causes "
                f"could explain any dependence{whatever}."
            )
        if not self.measured or self.high - self.low == float("inf"):
            why = "tables that the graph asks for were not measured"
            if all(one.adjustment is not None or one.low == one.high for one in self.possible):
                why = (
                    f"there are too few rows, or {self.treatment} does not vary by itself beyond "
                    "the noise, beside what is held fixed"
                )
            return (
                f"The release does not tell how {what.replace('would change', 'changes')}: {why}."
            )
        if all(one.low == one.high == 0 and one.adjustment is None for one in self.possible):
            if self.n_graphs > 1:
                return (
                    f"In none of the {self.n_graphs} graphs has {self.treatment} an effect on "
                    f"{self.outcome}; graphs that few rows or a small epsilon show lack weak edges."
                )
            return f"By the graph, {self.treatment} has no effect on {self.outcome}."
        ends = f"between {self.low:+.3g} and {self.high:+.3g}"
        start = what[0].upper() + what[1:] if self.levels is None else f"Setting {what}"
        if len(self.possible) > 1:
            return (
                f"{start} by {ends} ({share} intervals of {len(self.possible)} effects that "
                "are possible, together)."
            )
        return f"{start} by {self.estimate:+.3g}, {ends} ({share} interval), if the graph is right."

    def to_json_dict(self) -> dict[str, Any]:
        """As a dictionary that ``json.dump`` takes; None stands for NaN and infinite numbers."""

        def number(value: float) -> float | None:
            return float(value) if abs(value) < float("inf") else None

        return {
            "format": "jaxcd.Effect",
            "version": 1,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "levels": None if self.levels is None else list(self.levels),
            "unit": self.unit,
            "estimate": number(self.estimate),
            "low": number(self.low),
            "high": number(self.high),
            "level": self.level,
            "identified": self.identified,
            "open": self.is_open,
            "unmeasured": list(self.unmeasured),
            "adjustment": None if self.adjustment is None else list(self.adjustment),
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
            "possible": [
                {
                    "estimate": number(one.estimate),
                    "low": number(one.low),
                    "high": number(one.high),
                    "adjustment": None if one.adjustment is None else list(one.adjustment),
                    "share": one.share,
                }
                for one in self.possible
            ],
            "n_graphs": self.n_graphs,
            "epsilon": number(self.cost.epsilon),
            "delta": self.cost.delta,
            "proven": self.cost.proven,
            "reason": self.cost.reason,
            "sentence": self.sentence,
        }

    def plot(self, path: str | Path | None = None) -> Any:
        """A forest plot of the possible effects; see :func:`jaxcd.effects.forest_plot`."""
        from jaxcd.effects.drawing import forest_plot

        return forest_plot([self], path=path)
