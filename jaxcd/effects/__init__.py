"""After the graph: effects with intervals, and whether the graph fits, from a release that has been
paid for.
"""

from __future__ import annotations

from jaxcd.effects.door import drawn_graphs, effect
from jaxcd.effects.drawing import forest_plot
from jaxcd.effects.falsifying import Falsification, Violation, falsify
from jaxcd.effects.result import Effect, PossibleEffect

__all__ = [
    "Effect",
    "Falsification",
    "PossibleEffect",
    "Violation",
    "drawn_graphs",
    "effect",
    "falsify",
    "forest_plot",
]
