"""An audit that anyone can run: every claim of the library attacked, and bugs planted to see that
the attacks would find them.

* :data:`CHECKS`: the attacks by name.  Constants against the farthest that a search moves them
  (:mod:`jaxcd.audit.constants`); every search, release and test replayed on neighbours with the
  same answers (:mod:`jaxcd.audit.cases`); the laws of the noise, and attempts to tell neighbours
  apart (:mod:`jaxcd.audit.laws`); what stands around the mechanisms
  (:mod:`jaxcd.audit.bookkeeping`); published mechanisms that are known to be broken and must be
  caught (:mod:`jaxcd.audit.published`).
* :func:`run_audit`: all of them, with a table and a picture.
* :data:`BUGS`, :func:`planted`: privacy bugs, one a constant, each with the check that must find it
  (:mod:`jaxcd.audit.bugs`).

An audit refutes; it proves nothing.  The proofs are in ``docs/PRIVACY.md`` and beside the code.
"""

from jaxcd.audit.bugs import BUGS
from jaxcd.audit.findings import Finding
from jaxcd.audit.planting import Bug, planted
from jaxcd.audit.running import CHECKS, Audit, is_found, picture, run_audit

__all__ = [
    "BUGS",
    "CHECKS",
    "Audit",
    "Bug",
    "Finding",
    "is_found",
    "picture",
    "planted",
    "run_audit",
]
