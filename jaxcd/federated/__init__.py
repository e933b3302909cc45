"""Several owners, one release: nobody pools rows, and nobody is trusted with them.

A release is made of integer counts over rows, so it is a sum over sites.  Each site adds its share
of the noise, masks hide the parts, and the sum is today's file of a release, which every search,
test and effect takes.  The guarantee and its adversary: docs/PRIVACY.md Y.
"""

from jaxcd.data.sites import with_site, with_site_column
from jaxcd.federated.contexts import Mechanism, shared_mechanisms
from jaxcd.federated.coordinator import Coordinator, FederatedDoor
from jaxcd.federated.federation import Federation
from jaxcd.federated.lines import Line, LocalLine, ProcessLine
from jaxcd.federated.messages import Message
from jaxcd.federated.reading import SiteFile
from jaxcd.federated.running import federate, site_noise
from jaxcd.federated.site import Site

__all__ = [
    "Coordinator",
    "FederatedDoor",
    "Federation",
    "Line",
    "LocalLine",
    "Mechanism",
    "Message",
    "ProcessLine",
    "Site",
    "SiteFile",
    "federate",
    "shared_mechanisms",
    "site_noise",
    "with_site",
    "with_site_column",
]
