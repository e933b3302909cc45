"""Networks with variables hidden so that there is something for FCI to find."""

from __future__ import annotations

from dataclasses import dataclass

import jax

import jaxcd

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A network and what is hidden of it; ``reason``: what that leaves for FCI to find."""

    network: str
    hidden: tuple[str, ...] = ()
    reason: str = (
        "nothing is hidden: PC's graph with circles for what latent variables could change"
    )

    @property
    def label(self) -> str:
        """Such as ``asia without smoke``."""
        return f"{self.network} without {', '.join(self.hidden)}" if self.hidden else self.network

    def truth(self) -> jaxcd.MixedGraph:
        """The true PAG over what is left."""
        return jaxcd.discovery.dag_to_pag(jaxcd.networks.load(self.network).dag, latent=self.hidden)

    def sample(self, n_samples: int, key: jax.Array) -> jaxcd.Dataset:
        """Records without the hidden columns."""
        network = jaxcd.networks.load(self.network)
        return network.sample(n_samples, key=key).select(
            [name for name in network.names if name not in self.hidden]
        )


# With one or two variables hidden no PAG of these networks has a <-> edge: each gap is one that a
# direct effect could fill as well.  Chosen are hidden variables whose PAG has edges between
# variables that the network does not join.  Survey without E would have five, but its dependences
# are so weak that FCI without privacy finds less than half of its edges in 100,000 rows.
CASES = (
    Case("earthquake"),
    Case(
        "earthquake",
        ("Alarm",),
        "cause of both calls: JohnCalls o-o MaryCalls and four o-> edges that the network lacks",
    ),
    Case("cancer"),
    Case(
        "cancer",
        ("Cancer",),
        "cause of both findings: Xray o-o Dyspnoea and four o-> edges that the network lacks",
    ),
    Case("asia"),
    Case(
        "asia",
        ("smoke",),
        "confounder of lung and bronc: lung o-o bronc, and lung-dysp held apart by two columns "
        "only",
    ),
    Case(
        "asia",
        ("smoke", "either"),
        "confounders of lung and bronc, and of xray and dysp: six edges that the network lacks",
    ),
    Case("survey"),
    Case(
        "survey",
        ("R",),
        "between E and T: E --> T, which the network lacks, and O o-o T unshielded no more",
    ),
)
