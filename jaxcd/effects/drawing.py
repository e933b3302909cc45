"""Forest plots: effects as points with their intervals, one a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxcd.errors import OptionError
from jaxcd.places import check_new_file, path_of, written_whole

__all__ = ["forest_plot"]


def forest_plot(
    effects: Sequence[Any], *, path: str | Path | None = None, truths: Sequence[float] = ()
) -> Any:
    """A figure with one line an effect, or one a possible effect where there are several.

    Args:
        effects: each an :class:`jaxcd.effects.Effect`; at least one.
        path: of an image file to write; None for none.
        truths: the true effects, where they are known: a mark for each effect.

    Returns:
        A matplotlib Figure.

    Raises:
        OptionError: there is no effect, as many truths as effects are not given, or no picture can
            be written there.

    Example:
        >>> import jax, jaxcd
        >>> network = jaxcd.networks.load("cancer")
        >>> data = network.sample(20_000, key=jax.random.key(0))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
        >>> effect = jaxcd.effect(bought, treatment="Smoker", outcome="Cancer", graph=network.dag)
        >>> type(jaxcd.effects.forest_plot([effect])).__name__
        'Figure'
    """
    if not effects:
        raise OptionError("effects: there are none to draw; give at least one")
    if truths and len(truths) != len(effects):
        raise OptionError(f"truths: {len(truths)} for {len(effects)} effects; give one for each")
    if path is not None:
        path = path_of("path", path, example="effects.png")
        check_new_file("path", path, force=True, cure="one such as 'effects.png'")
    from matplotlib.figure import Figure

    rows: list[tuple[str, float, float, float, float | None]] = []
    for place, effect in enumerate(effects):
        name = f"{effect.treatment} on {effect.outcome}"
        truth = truths[place] if truths else None
        several = effect.possible if len(effect.possible) > 1 else ()
        for number, one in enumerate(several, start=1):
            rows.append((f"{name} ({number})", one.estimate, one.low, one.high, truth))
        if not several:
            rows.append((name, effect.estimate, effect.low, effect.high, truth))
    figure = Figure(figsize=(7, 1.2 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for line, (_, estimate, low, high, truth) in enumerate(reversed(rows)):
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([low, high], [line, line], color="#33658a", linewidth=2)
        if math.isfinite(estimate):
            axes.plot([estimate], [line], "o", color="#33658a")
        if truth is not None:
            axes.plot([truth], [line], "|", color="#c8553d", markersize=14, markeredgewidth=2)
    axes.axvline(0.0, color="#999999", linewidth=1)
    # Names are text, not formulas.
    names = [row[0].replace("$", r"\$") for row in reversed(rows)]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(f"effect, with its {100 * effects[0].level:g} % interval")
    if path is not None:
        kind, kinds = path.suffix[1:].lower() or "png", figure.canvas.get_supported_filetypes()
        if kind not in kinds:
            raise OptionError(
                f"path {str(path)!r}: no picture is written as {path.suffix}; the name may end in "
                f"{', '.join(f'.{each}' for each in kinds)}"
            )
        with written_whole(path) as draft:
            figure.savefig(draft, format=kind, dpi=150)
    return figure
