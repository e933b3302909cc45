"""One-shot releases: noisy statistics that are paid for once; every test on them is post-processing."""

from jaxcd.releases.contrast_moments import ContrastMoments, release_contrast_moments

__all__ = ["ContrastMoments", "release_contrast_moments"]
