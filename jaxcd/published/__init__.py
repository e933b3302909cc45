"""Algorithms exactly as their papers and code have them, so that their tables can be compared; what
is proved of them says so.
"""

from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.published.curate import curate
from jaxcd.published.em_pc import em_pc
from jaxcd.published.noleaks import noleaks
from jaxcd.published.pcd import pcd
from jaxcd.published.pcd_rcit import PublishedRCIT
from jaxcd.published.priv_crt import PrivCRT
from jaxcd.published.priv_fci import priv_fci
from jaxcd.published.priv_gcm import PrivGCM
from jaxcd.published.private_pc import priv_pc, svt_pc

__all__ = [
    "ConditionalTau",
    "PrivCRT",
    "PrivGCM",
    "PublishedRCIT",
    "curate",
    "em_pc",
    "noleaks",
    "pcd",
    "priv_fci",
    "priv_pc",
    "svt_pc",
]
