"""Local privacy: each person's record is randomised before it is collected.

A mechanism is a frozen configuration; what it guarantees on a declared domain is
``mechanism.guarantee(domain)``; ``randomise`` applies it to data, and ``channels`` gives its
probabilities to whoever takes the noise off again.
"""

from __future__ import annotations

from jaxcd.local.base import Distance, LocalGuarantee, LocalMechanism
from jaxcd.local.bounded_geometric import BoundedGeometric
from jaxcd.local.calibration import calibrate
from jaxcd.local.channel_scores import ChannelAwareBIC
from jaxcd.local.channel_tests import ChannelAwareChiSquare
from jaxcd.local.channels import channels, joint_channel
from jaxcd.local.clipped_geometric import ClippedGeometric
from jaxcd.local.combined_geometric import CombinedGeometric
from jaxcd.local.discretising import Discretised, discretise, discretise_columns, pair_bins
from jaxcd.local.files import privatize
from jaxcd.local.ibu import denoised_joint, ibu, resample
from jaxcd.local.kary_response import CombinedKaryResponse, KaryResponse
from jaxcd.local.randomising import randomise

__all__ = [
    "BoundedGeometric",
    "ChannelAwareBIC",
    "ChannelAwareChiSquare",
    "ClippedGeometric",
    "CombinedGeometric",
    "CombinedKaryResponse",
    "Discretised",
    "Distance",
    "KaryResponse",
    "LocalGuarantee",
    "LocalMechanism",
    "calibrate",
    "channels",
    "denoised_joint",
    "discretise",
    "discretise_columns",
    "ibu",
    "joint_channel",
    "pair_bins",
    "privatize",
    "randomise",
    "resample",
]
