"""The one-call doors: a whole discovery with everything chosen from public facts; a release, and
the search of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from jaxcd.advice.choosing import Algorithm, Choice, choose, kind_of_release
from jaxcd.advice.recommending import recommend
from jaxcd.checks import (
    a_type,
    check_flag,
    check_key_or_none,
    check_progress,
    check_whole,
    choice_of,
)
from jaxcd.citests import CITest
from jaxcd.data import Dataset, Domain, Missing, Table
from jaxcd.data.rows import Rows
from jaxcd.data.sources import Tabular, as_data
from jaxcd.decisions import Decider, Threshold, TreeOptions
from jaxcd.decisions.associations import usual_test
from jaxcd.discovery import (
    DiscoveryResult,
    Step,
    decision_confidence,
    edge_confidence,
    fci,
    gfci,
    pc,
    search_release,
    tree_pc,
)
from jaxcd.discovery.constraint.background import check_knowledge, known_to_tests
from jaxcd.discovery.greedy_fci import check_gfci
from jaxcd.discovery.released import known_to_scores
from jaxcd.discovery.result import teller
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.places import check_new_file, path_of
from jaxcd.privacy import Budget, NoiseSource, NoPrivacy, PrivacyFilter, Unit, keeps_what_is_paid
from jaxcd.privacy.accountant import BY_PERSON_ONLY
from jaxcd.queries.door import check_unit, public_count
from jaxcd.releases import Release, ReleaseKind
from jaxcd.releases.kind import check_is_kind

__all__ = ["Algorithm", "Choice", "choose", "discover", "release", "resolve", "search"]


def resolve(
    domain: Domain,
    n_samples: int,
    *,
    budget: Budget | NoPrivacy,
    algorithm: Algorithm | str = Algorithm.AUTO,
    test: CITest | None = None,
    decider: Decider | None = None,
    tree: TreeOptions | None = None,
    max_level: int | None = None,
    knowledge: Knowledge | None = None,
    linear: bool = False,
    latent: bool = False,
) -> Choice:
    """What :func:`discover` will run, from public facts; arguments as there.  Refuses options that
    the algorithm does not have, and all that its search would refuse of the domain and the
    knowledge: once something is bought it is too late.
    """
    check_knowledge(knowledge, domain.names)
    choice = _chosen(
        domain,
        n_samples,
        budget=budget,
        algorithm=algorithm,
        test=test,
        decider=decider,
        tree=tree,
        max_level=max_level,
        linear=linear,
        latent=latent,
    )
    _check_search(choice.algorithm, domain, knowledge)
    return choice


def _check_search(algorithm: Algorithm, domain: Domain, knowledge: Knowledge | None) -> None:
    """Refuses what the search of an algorithm would refuse of public facts."""
    if algorithm is Algorithm.RELEASE:
        known_to_scores(knowledge, domain)
    elif algorithm is Algorithm.GFCI:
        check_gfci(
            domain,
            knowledge,
            what="algorithm='gfci'",
            cure="use latent=True in its place, or algorithm='fci'",
        )
    else:
        known_to_tests(knowledge, domain.names, domain, latent=algorithm.finds_pag)


def _chosen(
    domain: Domain,
    n_samples: int,
    *,
    budget: Budget | NoPrivacy,
    algorithm: Algorithm | str,
    test: CITest | None,
    decider: Decider | None,
    tree: TreeOptions | None,
    max_level: int | None,
    linear: bool,
    latent: bool,
) -> Choice:
    """The choice of :func:`resolve`, whatever is known."""
    algorithm = choice_of("algorithm", algorithm, Algorithm)
    given = {"test": test, "decider": decider, "tree": tree, "max_level": max_level}
    asked = [argument for argument, value in given.items() if value is not None]
    tests = not (algorithm is Algorithm.AUTO or algorithm.releases)
    if isinstance(budget, Budget) and budget.unit is Unit.PERSON and (asked or tests):
        what = asked[0] if asked else f"algorithm={algorithm.value!r}"
        raise OptionError(f"{what}: {BY_PERSON_ONLY}")
    if algorithm is Algorithm.AUTO and tree is not None:
        algorithm = Algorithm.TREE
    check_flag("latent", latent)
    if latent and not (algorithm is Algorithm.AUTO or algorithm.finds_pag):
        raise OptionError(
            f"latent: algorithm={algorithm.value!r} takes it that no column is hidden; use 'gfci' "
            "or 'fci', or leave the algorithm out"
        )
    if algorithm is Algorithm.AUTO and asked:
        by_tests = Algorithm.FCI if latent else Algorithm.PC
        choice = choose(domain, budget=budget, test=test, decider=decider, algorithm=by_tests)
        why = (
            f"chosen: {by_tests.name}, because {' and '.join(asked)} "
            f"{'is' if len(asked) == 1 else 'are'} given, which a release has no use for"
        )
        return replace(choice, reasons=(why, *choice.reasons))
    if algorithm is Algorithm.AUTO:
        found = recommend(domain, n_samples, budget=budget, linear=linear, latent=latent)
        return replace(found.choice, warnings=() if found.warning is None else (found.warning,))
    if algorithm.releases:
        if asked:
            raise OptionError(
                f"{asked[0]}: algorithm={algorithm.value!r} has no such option; drop it, or use "
                "algorithm='pc' or algorithm='fci'"
            )
        kind = kind_of_release(domain)
        return Choice(
            None,
            None,
            (f"release: {type(kind).__name__}, which takes these columns",),
            algorithm,
            kind,
        )
    choice = choose(
        domain, budget=budget, test=test, decider=decider, algorithm=algorithm, tree=tree
    )
    if algorithm is Algorithm.TREE and "max_level" in asked:
        raise OptionError(
            "max_level: Algorithm.TREE has no such option; drop it, or use Algorithm.PC"
        )
    return choice


@keeps_what_is_paid
def discover(
    data: Dataset | Table | Tabular,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    budget: Budget | NoPrivacy,
    key: jax.Array | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    test: CITest | None = None,
    decider: Decider | None = None,
    tree: TreeOptions | None = None,
    algorithm: Algorithm | str = Algorithm.AUTO,
    linear: bool = False,
    latent: bool = False,
    max_level: int | None = None,
    knowledge: Knowledge | None = None,
    release_out: str | Path | None = None,
    n_confidence_draws: int = 0,
    progress: bool | Callable[[Any], None] = False,
) -> DiscoveryResult:
    """Discovers a causal graph by a method chosen from public facts.

    ``info["reasons"]`` of the result says which method, and why.  Whatever ends the call after the
    first charge, an interrupt included, carries what was bought: :func:`jaxcd.receipt_of`.

    Args:
        data: a Dataset, with a declared domain where there is a budget; or a data frame, or the
            path of a csv or parquet file; or a :class:`jaxcd.Table`, whose rows stay where they
            are.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        budget: the total (epsilon, delta), fixed here, or NO_PRIVACY.
        key: a typed key for tests that draw permutations; None for the others.
        noise: None for secure noise from the operating system; ``SimulatedNoise(key)`` for
            experiments.
        ledger: a LedgerFile (or Ledger) that every event is charged to as well: one total for many
            runs.
        test: a conditional independence test; None leaves the choice to :func:`choose`.
        decider: how answers are given; None leaves the choice to :func:`choose`.
        tree: the options of ``Algorithm.TREE``, which has its own mechanism.
        algorithm: an :class:`Algorithm` or its name, such as "pc".  ``Algorithm.AUTO`` follows
            :func:`jaxcd.recommend`, or takes PC where test, decider or max_level is given.  With
            ``Algorithm.FCI`` and ``Algorithm.GFCI`` the graph is a PAG.  ``Algorithm.TREE`` takes
            no max_level, ``Algorithm.RELEASE`` and ``Algorithm.GFCI`` none of these three; they
            have no levels to report as they go.
        linear: whether the relations among numeric columns may be taken as linear, as for
            :func:`jaxcd.recommend`.
        latent: whether columns may have common causes that are not in the data, as for
            :func:`jaxcd.recommend`; for ``Algorithm.AUTO``, whose graph is then a PAG.
        max_level: the largest conditioning set, as for :func:`jaxcd.pc`.
        knowledge: what is known before; public.  Every algorithm takes it; the graph has no edge
            against it, all required ones, and every orientation that it implies.
        release_out: a file for what was bought, written before it is searched; ``Release.load``
            reads it.  Only with a release.
        n_confidence_draws: draws of :func:`jaxcd.discovery.edge_confidence`, which says how sure
            the edges are; 0 for none.  Only with a release.
        progress: True prints a line a level; a function is called with each LevelRecord, and with
            each Step of a run on a release.

    Returns:
        The graph with its guarantee.  Its ``confidence`` is there where it is free: for searches by
        tests that released their margins.

    Raises:
        OptionError: an option is out of its range, or the method does not have it.
        DomainError: the method does not take the columns, or the domain is not declared.
        PrivacyError: the decider fits no budget.
        SensitivityError: the test has no bounded sensitivity.

    Guarantee:
        That of :func:`release`, :func:`jaxcd.pc`, :func:`jaxcd.tree_pc` or :func:`jaxcd.fci`: the
        choice reads the domain, the budget and the number of rows only.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
        >>> run = jaxcd.discover(
        ...     data,
        ...     budget=jaxcd.Budget(1.0),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(run.graph)
        Burglary --> Alarm
        Earthquake --> Alarm
        Alarm --> JohnCalls
        Alarm --> MaryCalls
    """
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    if isinstance(data, Release):
        raise OptionError(
            "data: a release has been paid for, and there is nothing to choose; use "
            "jaxcd.search(data), or jaxcd.pc(data, test=...)"
        )
    if not isinstance(data, Rows):
        raise OptionError(
            f"data: {a_type(data)} is not a Dataset; make one with read_csv, from_frame "
            "or from_array, or a jaxcd.Table"
        )
    if isinstance(budget, Budget):
        check_unit(data, budget, by_person=True)
    choice = resolve(
        data.domain,
        public_count(data, budget),
        budget=budget,
        algorithm=algorithm,
        test=test,
        decider=decider,
        tree=tree,
        max_level=max_level,
        knowledge=knowledge,
        linear=linear,
        latent=latent,
    )
    check_progress(progress, of="a LevelRecord and a Step")
    check_key_or_none(key)
    _check_afterwards(choice, release_out, n_confidence_draws)
    if choice.kind is not None:
        tell = teller(progress)
        tell(Step("buying the release", (0, 2)))
        # Two columns of which neither causes the other may have a hidden cause in common.
        kind = choice.kind if choice.algorithm.finds_pag else choice.kind.knowing(knowledge)
        bought = release(data, kind, budget=budget, noise=noise, ledger=ledger)
        if release_out is not None:
            bought.save(release_out)
        tell(Step("searching the release", (1, 2)))
        run = search(bought, algorithm=choice.algorithm, knowledge=knowledge, missing=data.missing)
        if n_confidence_draws > 0:
            run = run.with_confidence(
                edge_confidence(bought, run, n_draws=n_confidence_draws, progress=tell)
            )
    elif choice.algorithm is Algorithm.TREE:
        assert choice.test is not None
        run = tree_pc(
            data,
            test=choice.test,
            budget=budget,
            key=key,
            noise=noise,
            ledger=ledger,
            options=choice.tree,
            knowledge=knowledge,
        )
    else:
        assert choice.test is not None and choice.decider is not None
        run = (fci if choice.algorithm is Algorithm.FCI else pc)(
            data,
            test=choice.test,
            decider=choice.decider,
            budget=budget,
            key=key,
            noise=noise,
            ledger=ledger,
            max_level=max_level,
            knowledge=knowledge,
            progress=progress,
        )
    if choice.kind is None and isinstance(budget, Budget) and "released_margins" in run.info:
        run = run.with_confidence(decision_confidence(run))
    warned = (*run.info.get("warnings", ()), *choice.warnings)
    more = {"warnings": warned} if warned else {}
    return replace(run, info={**run.info, **more, "reasons": choice.reasons})


def _check_afterwards(
    choice: Choice, release_out: str | Path | None, n_confidence_draws: int
) -> None:
    """Refuses, before anything is spent, what could not be done with the release once it is
    bought.
    """
    check_whole("n_confidence_draws", n_confidence_draws, 0, cure="give a number of draws")
    for argument, is_given in (
        ("release_out", release_out is not None),
        ("n_confidence_draws", n_confidence_draws > 0),
    ):
        if is_given and choice.kind is None:
            raise OptionError(
                f"{argument}: {choice.algorithm.value} releases nothing; drop it, or use "
                "algorithm='release'"
            )
    if release_out is not None:
        path = path_of("release_out", release_out, example="release.npz")
        check_new_file("release_out", path, force=True, cure="one such as 'release.npz'")


@keeps_what_is_paid
def release(
    data: Dataset | Table | Tabular,
    kind: ReleaseKind,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    budget: Budget | NoPrivacy,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
) -> Release:
    """Buys noisy statistics of the data once; whatever is computed from them later is free.

    Args:
        data: with a declared domain, or a data frame or path with ``domain``, or a
            :class:`jaxcd.Table`.
        kind: ``Histogram()`` of all columns together (discrete, up to 8,192 cells), ``Marginals()``
            (discrete, many columns), ``SecondMoments()`` (numeric, linear), ``Tetrachoric()``
            (numeric, many columns), ``Features()`` (numeric or mixed, additive models) or
            ``Discretised()`` (mixed, many columns or few rows).
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: the reading of missing cells that the search will use, "ignore" or "level"; None
            for that of the data.  ``Marginals`` chooses what to measure by it.
        budget: the total; all of it is spent.  Or NO_PRIVACY.
        noise: None for secure noise from the operating system; ``SimulatedNoise(key)`` for
            experiments.
        ledger: a LedgerFile (or Ledger) that every event is charged to as well.

    Returns:
        A release, which can be saved, published and loaded; :func:`search` finds graphs in it.

    Raises:
        OptionError: an argument is not of its kind, before anything is charged.
        DomainError: the kind does not take the columns, before anything is charged.
        PrivacyError: the domain is not declared, before anything is charged.

    Guarantee:
        Relation: replace-one; n and the domain are public.  The kind's docstring states its event,
        sensitivity and proof.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> bought = jaxcd.release(
        ...     data,
        ...     jaxcd.Histogram(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> bought.kind, bought.cost.epsilon
        ('histogram', 1.0)
    """
    check_is_kind(kind)
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    return kind.release(data, budget=budget, noise=noise, ledger=ledger)


def search(
    bought: Release,
    *,
    algorithm: Algorithm | str = Algorithm.RELEASE,
    knowledge: Knowledge | None = None,
    missing: Missing | str | None = None,
) -> DiscoveryResult:
    """The best graph of a release, by the score that knows the noise in it; or the PAG of one in
    which columns may be hidden.

    Histograms are searched over equivalence classes from exact starts, marginals by orderings,
    second moments exactly up to 20 columns.  Of a :class:`jaxcd.LogLinear` whose noise is so large
    that chance would decide most directions, a graph near the best one is returned that tells none,
    with a warning.  The ``search_`` functions of the kinds in :mod:`jaxcd.discovery`,
    such as ``search_histogram``, have options.

    Args:
        bought: what :func:`release` or ``Release.load`` returned.
        algorithm: an :class:`Algorithm` or its name: "release" for the best graph by the release's
            own score; "gfci" (:func:`jaxcd.gfci`) and "fci" for a PAG, "pc" for a CPDAG by tests,
            which take the release's usual test at the level .05.
        knowledge: what is known before: tiers, forbidden and required edges; public.  The graph is
            then the best of those that fit.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the release says, "ignore" as a
            rule.

    Returns:
        The CPDAG or PAG, with all orientations that the knowledge implies, and with the guarantee
        of the release.

    Raises:
        OptionError: ``bought`` is no release, no such algorithm searches releases, or the
            knowledge names other columns.

    Guarantee:
        That of the release: the search is post-processing, and costs nothing more.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
        >>> bought = jaxcd.release(
        ...     data,
        ...     jaxcd.Histogram(),
        ...     budget=jaxcd.Budget(0.5),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(jaxcd.search(bought).graph)
        Burglary --> Alarm
        Earthquake --> Alarm
        Alarm --> JohnCalls
        Alarm --> MaryCalls
        >>> known = jaxcd.Knowledge(forbidden=[("Burglary", "Alarm"), ("Alarm", "Burglary")])
        >>> jaxcd.search(bought, knowledge=known).graph.adjacent("Burglary", "Alarm")
        False
    """
    if not isinstance(bought, Release):
        raise OptionError(
            f"bought: {a_type(bought)} cannot be searched; use what jaxcd.release returns"
        )
    options: dict[str, Any] = {"knowledge": knowledge, "missing": missing}
    name = algorithm.value if isinstance(algorithm, Algorithm) else algorithm
    by_score: dict[str, Any] = {"release": search_release, "gfci": gfci}
    if name in by_score:
        return by_score[name](bought, **options)  # type: ignore[no-any-return]
    by_tests: dict[str, Any] = {"pc": pc, "fci": fci}
    if name not in by_tests:
        raise OptionError(
            f"algorithm = {name!r} searches no release; use one of {[*by_score, *by_tests]}"
        )
    options |= {"test": usual_test(bought), "decider": Threshold()}
    return by_tests[name](bought, **options)  # type: ignore[no-any-return]
