"""Algorithms exactly as their papers and code have them, so that their tables can be compared; none is proved."""

from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.published.private_pc import priv_pc, svt_pc

__all__ = ["ConditionalTau", "priv_pc", "svt_pc"]
