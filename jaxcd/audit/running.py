"""All checks by name, and running them."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxcd.audit.bookkeeping import BOOKKEEPING
from jaxcd.audit.bugs import BUGS
from jaxcd.audit.cases import REPLAYS
from jaxcd.audit.constants import CONSTANTS
from jaxcd.audit.federation import FEDERATION
from jaxcd.audit.findings import Checks, Finding
from jaxcd.audit.laws import LAWS
from jaxcd.audit.planting import Bug, planted
from jaxcd.audit.published import PUBLISHED

__all__ = ["CHECKS", "Audit", "is_found", "picture", "run_audit"]

CHECKS: Checks = {**CONSTANTS, **REPLAYS, **LAWS, **FEDERATION, **BOOKKEEPING, **PUBLISHED}
"""Every check by name; the argument says whether to be quick."""


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Args:
        findings: one a claim and check.
    """

    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether no claim was broken, and no broken one missed."""
        return not any(finding.wrong for finding in self.findings)

    def table(self) -> str:
        """One line a claim: what is claimed, what was reached, and its share."""
        rows = [("check", "of", "claimed", "found", "share", "")]
        rows += [
            (
                f.check,
                f.subject,
                f"{f.claimed:.6g}",
                f"{f.found:.6g}",
                f"{f.share:.3f}",
                "; ".join(f.wrong),
            )
            for f in self.findings
        ]
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        lines = [
            "  ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]
            ).rstrip()
            for row in rows
        ]
        broken = sum(bool(f.wrong) for f in self.findings)
        return "\n".join([*lines, "", f"{len(self.findings)} claims, {broken} broken"])

    def records(self) -> list[dict[str, object]]:
        """The same as plain data."""
        return [
            {
                "check": f.check,
                "of": f.subject,
                "claimed": f.claimed,
                "found": f.found,
                "wrong": list(f.wrong),
            }
            for f in self.findings
        ]


def run_audit(
    *,
    quick: bool = False,
    only: str = "",
    planted_bugs: bool = True,
    progress: Callable[[str], None] = lambda name: None,
) -> Audit:
    """Runs the checks, and then plants every bug and runs the check that must find it.

    Args:
        quick: fewer trials and draws: about three minutes instead of five on two cores.
        only: words that the names of the checks to run must hold; then no bugs are planted but
            those of these checks.
        planted_bugs: whether to plant bugs at all.
        progress: called with the name of each check before it runs.

    Returns:
        What was found.  A planted bug's claim is 1 ("it is found"), and it has been reached if it
        was.
    """
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        if only in name:
            progress(name)
            findings.extend(check(quick))
    if planted_bugs:
        for bug in BUGS:
            if only in bug.check:
                progress(f"planted bug: {bug.name}")
                found = is_found(bug)
                words = () if found else (f"the check {bug.check!r} does not find it",)
                findings.append(Finding("planted bug is found", bug.name, 1.0, float(found), words))
    return Audit(tuple(findings))


def is_found(bug: Bug) -> bool:
    """Whether the bug's check finds it, and finds nothing without it in the same place.

    Args:
        bug: a planted bug, of :data:`BUGS`.

    Returns:
        True where the check is silent without the bug and finds it with the bug.
    """
    with planted(bug):
        return any(finding.wrong for finding in CHECKS[bug.check](True))


def picture(audit: Audit, path: Path) -> None:
    """Claimed against audited: a bar a claim, as an SVG file.

    Args:
        audit: what :func:`run_audit` returned.
        path: of the SVG file.
    """
    shown = [
        f for f in audit.findings if f.check not in ("bookkeeping", "law", "planted bug is found")
    ]
    names = [f"{f.check.removeprefix('replay: ')}: {f.subject}" for f in shown]
    height, left, width = 16, 430, 400
    top = 46
    total = top + height * len(shown) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 90} {total}" '
        'font-family="sans-serif" font-size="10">',
        f'<rect width="{left + width + 90}" height="{total}" fill="white"/>',
        f'<text x="{left}" y="16" font-size="12">What the audit reached, as a share of what is '
        "claimed</text>",
        f'<line x1="{left + width}" y1="{top - 12}" x2="{left + width}" y2="{total - 12}" '
        'stroke="black" stroke-dasharray="3,3"/>',
        f'<text x="{left + width}" y="{top - 16}" text-anchor="middle">the claim</text>',
    ]
    for place, (name, f) in enumerate(zip(names, shown, strict=True)):
        y, share = top + height * place, min(f.share, 1.15)
        broken = f.check == "known to be broken"
        colour = "#b0413e" if f.wrong else "#c9a227" if broken else "#33658a"
        label = html.escape(name if len(name) < 76 else name[:73] + "...")
        parts.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end">{label}</text>')
        parts.append(
            f'<rect x="{left}" y="{y + 2}" width="{width * share:.1f}" height="{height - 5}" '
            f'fill="{colour}"/>'
        )
        parts.append(f'<text x="{left + width * share + 4:.1f}" y="{y + 10}">{f.share:.3g}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
