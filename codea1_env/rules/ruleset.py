"""The parameters of the game, and the rules by name.

A `Ruleset` determines the reward of a reply: how replies are read, how suites are validated, how values are compared,
the reward formulas and the Mistake Book's rules. `preset(name)` returns one; `dataclasses.replace` changes it.
docs/rules.md says how the rules differ, and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal

from codea1_env import plugins
from codea1_env.declared import Count, CountOrZero, NotNegative, Range, Share, require_declared
from codea1_env.errors import UnknownName, UserError
from codea1_env.facts.answers import Comparison

MAX_TESTS_PER_SUITE = 10_000
"""Far more than any sensible suite needs; catches typing errors."""


class Reading(StrEnum):
    """How replies become programs and cases (`rules.replies`)."""

    STRICT = "strict"
    """Operators are respected, the entry point must be called, and every dropped piece has a reason."""
    WITHOUT_EXCEPTIONS = "without_exceptions"
    """As `STRICT`, but what expects an exception is dropped: the paper's tests are calls and values."""
    RELEASE = "release"
    """As the Code-A1 release does it, including its defects (reward.py:101-174, 265-309)."""


class Validation(StrEnum):
    """What happens to a case whose prediction the solution contradicts (`rules.validation`)."""

    FILL = "fill"
    """Kept with the solution's value; the wrong prediction counts as invalid (arXiv 2603.15611, 3.2)."""
    CALL_ONLY = "call_only"
    """Predictions are ignored; a case is valid if its call runs and is new (ablation "w/o predicted answer")."""
    DROP_WRONG = "drop_wrong"
    """Dropped (as arXiv 2603.15611, A.2 words it)."""


class Isolation(StrEnum):
    """What has a process of its own, and so begins without what others have left there."""

    PROGRAM = "program"
    """A candidate: its calls follow each other in one process, which loads it once."""
    CALL = "call"
    """Each call of a candidate: what it remembers of another call's input is gone. Costs a process and a load each."""


class RewardScheme(StrEnum):
    """The formulas of this project that turn a report into rewards (`rules.rewards`)."""

    PAPER = "paper"
    RELEASE = "release"
    FIXED = "fixed"
    GOLDEN = "golden"
    ZERO_SUM = "zero_sum"
    CURE = "cure"
    UTRL = "utrl"
    ATGEN = "atgen"
    LEARNABILITY = "learnability"


_SCHEMES_OF_EQ_3 = (RewardScheme.PAPER, RewardScheme.RELEASE, RewardScheme.FIXED)


@cache
def reward_plugin(name: str) -> Any:
    """Return the formula that an installed distribution has registered under `codea1_env.rewards`.

    Args:
        name: as registered, or `module:attribute`; `rules.rewards.RewardFormula` says what it must be.

    Raises:
        UnknownName: the name is neither a `RewardScheme` nor registered.
        UserError: its module cannot be imported or lacks the attribute, or the attribute cannot be called.
    """
    if ":" not in name and name not in plugins.names("rewards"):
        raise UnknownName.of("reward scheme", name, [*map(str, RewardScheme), *plugins.names("rewards")])
    formula = plugins.resolve("rewards", name)
    if not callable(formula):
        raise UserError(f"reward scheme {name!r}: expected a function, got {type(formula).__name__}")
    return formula


class _Constants:
    """Constants of a formula."""

    __slots__ = ()

    def __post_init__(self) -> None:
        require_declared(self, f"rules: reward.{type(self).__name__.removesuffix('Rules').lower()}.")


@dataclass(frozen=True, slots=True)
class UtrlRules(_Constants):
    """Weights of UTRL's rewards (arXiv 2508.21107)."""

    discrimination: float = 0.85
    """Tester: whether the program fails a right case."""
    validity: float = 0.05
    """Tester: share of right cases."""
    format: float = 0.1
    """Tester: whether the reply holds a test."""
    pass_rate: float = 0.9
    """Coder: pass rate on right cases."""
    program: float = 0.1
    """Coder: whether the reply holds a program."""


@dataclass(frozen=True, slots=True)
class AtgenRules(_Constants):
    """Weights of ATGen's three parts (arXiv 2510.14635); each part is 1 or `failed`."""

    io_accuracy: float = 1 / 3
    """Whether the answer is right."""
    attack: float = 1 / 3
    """Whether the program fails the case."""
    format: float = 1 / 3
    """Whether the reply contains a test."""
    failed: float = -0.5
    """Value of a part that does not hold."""


@dataclass(frozen=True, slots=True)
class LearnabilityRules(_Constants):
    """Absolute Zero's fixed rewards (arXiv 2505.03335)."""

    wrong: float = -0.5
    """Solver: a task that it does not solve."""
    invalid: float = -0.5
    """Proposer: a wrong test."""
    unreadable: float = -1.0
    """Proposer: a reply without any test."""


class Replays(StrEnum):
    """What the replayed cases of the Mistake Book do to rewards."""

    PAID = "paid"
    """They enter the rewards (Eq. 2 and 3)."""
    AS_ALPHA = "as_alpha"
    """No reward reads them. Where there are some, validity weighs `rewards.alpha_with_book` instead of alpha."""


class CommonKills(StrEnum):
    """What says how often any input fails a program, so that such failures earn its tester less."""

    IGNORED = "ignored"
    GROUP = "group"
    """The share of cases of the candidate's other suites that it fails; 0 without other suites."""
    BOOK = "book"
    """The share of replayed cases that it fails; 0 without replays."""


@dataclass(frozen=True, slots=True)
class CreditRules:
    """fixed: which failures of a program its tester is paid for, and for how much (`rules.credit`)."""

    wrong_answers: bool = False
    """Whether a failure counts on a case whose wrong prediction was corrected, as in `release`."""
    forgiven: CountOrZero = 0
    """Wrong predictions of a suite that count as right ones; at most as many as it has right ones."""
    gate: Share = 0.0
    """Least validity of a suite whose failures count."""
    floor: Share = 1.0
    """Validity, above 0, of which a suite earns no more by being more valid."""
    power: NotNegative = 0.0
    """Failures are multiplied by min(validity / floor, 1) to this power."""
    most_kills: Count | None = None
    """Most failures of a suite that count; None: all."""
    common_kills: CommonKills = CommonKills.IGNORED
    """Whether a failure earns less if the program fails other cases, too."""

    def __post_init__(self) -> None:
        require_declared(self, "rules: reward.credit.")
        if not self.floor:
            raise UserError("rules: reward.credit.floor must be above 0")


@dataclass(frozen=True, slots=True)
class RewardRules:
    """Parameters of the reward formulas; each formula's docstring says which it reads."""

    scheme: str = RewardScheme.FIXED
    """A `RewardScheme`, or the name of an installed plugin (`reward_plugin`), which is resolved on use."""
    alpha: Share = 0.5
    """Weight of validity against adversity in the tester's reward (Eq. 4)."""
    nonprintable_penalty: float = 0.0
    """Subtracted from the tester's reward per share of non-printable characters (release: 1)."""
    invalid_candidate: float = 0.0
    """The coder's reward for a program that does not load."""
    pays_examples: bool = True
    """fixed: whether a case that the statement's examples answer earns its tester anything."""
    no_evidence: float | Literal["masked"] = 0.0
    """The coder's reward when no valid case, new or replayed, exists; `masked`: the reward is nan and trains
    nothing."""
    replays: Replays = Replays.PAID
    """paper, release, fixed: whether replays are paid. `as_alpha` is the third arm of an ablation of the book."""

    utrl: UtrlRules = field(default_factory=UtrlRules)
    atgen: AtgenRules = field(default_factory=AtgenRules)
    learnability: LearnabilityRules = field(default_factory=LearnabilityRules)
    credit: CreditRules = field(default_factory=CreditRules)

    def __post_init__(self) -> None:
        require_declared(self, "rules: reward.")
        if self.credit != CreditRules() and self.scheme != RewardScheme.FIXED and self.scheme in list(RewardScheme):
            raise UserError(f"rules: reward.credit requires scheme='fixed' (got '{self.scheme}')")
        if self.replays == Replays.AS_ALPHA and self.scheme not in _SCHEMES_OF_EQ_3:
            known = ", ".join(_SCHEMES_OF_EQ_3)
            raise UserError(f"rules: reward.replays as_alpha requires one of the schemes {known} (got {self.scheme})")
        if self.replays == Replays.AS_ALPHA and self.credit.common_kills == CommonKills.BOOK:
            raise UserError(
                "rules: reward.credit.common_kills book counts replays, but reward.replays as_alpha pays for none"
            )

    def __repr__(self) -> str:
        return f"<RewardRules {', '.join(_differences(self, RewardRules())) or 'as by default'}>"

    @property
    def needs_golden(self) -> bool:
        """Whether golden tests enter the rewards; for a plugin its attribute of that name, else False."""
        if self.scheme in list(RewardScheme):
            return self.scheme in (RewardScheme.GOLDEN, RewardScheme.CURE)
        return bool(getattr(reward_plugin(self.scheme), "needs_golden", False))

    @property
    def pays_tester(self) -> bool:
        """Whether the tests that a tester writes matter; for a plugin its attribute of that name, else True."""
        if self.scheme in list(RewardScheme):
            return self.scheme != RewardScheme.GOLDEN
        return bool(getattr(reward_plugin(self.scheme), "pays_tester", True))


class BookUpdate(StrEnum):
    """How a round changes the Mistake Book (`rules.mistake_book`)."""

    OFF = "off"
    RELEASE = "release"
    """-1 per replayed case that a valid candidate passes, then +1 per new failing case; removed at 0."""
    REMOVE_ON_PASS = "remove_on_pass"
    """A replayed case that any valid candidate passes is removed (arXiv 2603.15611, 3.3)."""


@dataclass(frozen=True, slots=True)
class BookRules:
    """Parameters of the Mistake Book."""

    update: BookUpdate = BookUpdate.RELEASE
    """How a round changes the book."""
    n_replayed: CountOrZero = 8
    """Most cases replayed per round (k), the most frequent first."""
    n_stalest: CountOrZero = 0
    """How many of those slots go to the entries that were tried longest ago, so that none becomes unreachable."""
    count_replay_failures: bool = False
    """Whether the frequency rises if a candidate fails a replayed case (arXiv 2603.15611, A.3: yes; release: no)."""
    max_entries: CountOrZero | None = None
    """Most entries per problem; the least frequent (then oldest) are removed first. None: unbounded."""

    def __post_init__(self) -> None:
        require_declared(self, "rules: book.")

    def __repr__(self) -> str:
        return f"<BookRules {', '.join(_differences(self, BookRules())) or 'as by default'}>"


@dataclass(frozen=True, slots=True, repr=False)
class Ruleset:
    """Every rule of the game. It and its parts raise UserError for a number that is out of range."""

    name: str
    tests_per_suite: Annotated[int, Range(1, MAX_TESTS_PER_SUITE)] = 8
    """K: cases that a tester must write, the denominator of its reward (paper: 5, release: 8)."""
    reading: Reading = Reading.STRICT
    """How replies become programs and cases."""
    max_program_bytes: Count | None = None
    """Longest program that is run, in UTF-8, so that it fits into a tester's context. None: only the reader's bound."""
    drop_vacuous: bool = False
    """Whether cases are rejected that hold whatever the entry point returns (`codea1_env.judging.solution_values`)."""
    drop_rewritten: bool = False
    """STRICT: whether equal calls are recognised however they are written (`rules.canonical_calls`), so that a case
    with such calls is a duplicate, or an example. Otherwise only literal arguments are compared."""
    validation: Validation = Validation.FILL
    """What happens to a case whose prediction the solution contradicts."""
    comparison: Comparison = field(default_factory=Comparison)
    reward: RewardRules = field(default_factory=RewardRules)
    book: BookRules = field(default_factory=BookRules)
    draws_order: bool = False
    """Whether a candidate answers its calls in a drawn order, so that remembering earlier inputs gains less."""
    isolation: Isolation = Isolation.PROGRAM
    """What has a process of its own: a candidate, or each of its calls."""

    def __post_init__(self) -> None:
        require_declared(self, "rules: ")
        if self.reward.credit.common_kills == CommonKills.BOOK and not self.book.n_replayed:
            raise UserError("rules: reward.credit.common_kills book counts replays: book.n_replayed must be above 0")

    def __repr__(self) -> str:
        base = PRESETS.get(self.name, Ruleset(self.name))
        return f"<Ruleset {', '.join([self.name, *_differences(self, base)])}>"

    def of_verdicts(self) -> Ruleset:
        """Return the part of these rules that reports depend on: without name, rewards and Mistake Book."""
        return replace(self, name="", reward=RewardRules(), book=BookRules())


def _differences(rules: Any, base: Any, path: str = "") -> Iterator[str]:
    for each in fields(rules):
        value, usual = getattr(rules, each.name), getattr(base, each.name)
        if is_dataclass(value):
            yield from _differences(value, usual, f"{path}{each.name}.")
        elif value != usual:
            yield f"{path}{each.name}={value}"


_FIXED = Ruleset(
    name="fixed",
    draws_order=True,
    max_program_bytes=16_384,  # four bytes for each of the 4096 tokens of the paper's replies
    drop_vacuous=True,
    drop_rewritten=True,
    comparison=Comparison(rel_tol=1e-9, abs_tol=1e-9, nan_equal=True),
    reward=RewardRules(scheme=RewardScheme.FIXED, nonprintable_penalty=1.0, pays_examples=False, no_evidence=0.5),
    book=BookRules(n_stalest=1, count_replay_failures=True, max_entries=64),
)

_NO_BOOK = BookRules(update=BookUpdate.OFF, n_replayed=0)

PRESETS: dict[str, Ruleset] = {
    "fixed": _FIXED,
    "paper": Ruleset(
        name="paper",
        reading=Reading.WITHOUT_EXCEPTIONS,
        tests_per_suite=5,
        reward=RewardRules(scheme=RewardScheme.PAPER),
        book=BookRules(count_replay_failures=True),
    ),
    "release": Ruleset(
        name="release",
        reading=Reading.RELEASE,
        reward=RewardRules(scheme=RewardScheme.RELEASE, nonprintable_penalty=1.0),
    ),
    "first_kill": replace(
        _FIXED, name="first_kill", reward=replace(_FIXED.reward, alpha=0.1, credit=CreditRules(most_kills=1))
    ),
    "golden": replace(_FIXED, name="golden", reward=RewardRules(scheme=RewardScheme.GOLDEN), book=_NO_BOOK),
    "zero_sum": replace(
        _FIXED, name="zero_sum", reward=RewardRules(scheme=RewardScheme.ZERO_SUM, invalid_candidate=-1.0)
    ),
    "cure": replace(_FIXED, name="cure", reward=RewardRules(scheme=RewardScheme.CURE), book=_NO_BOOK),
    "utrl": replace(
        _FIXED,
        name="utrl",
        tests_per_suite=12,
        validation=Validation.DROP_WRONG,
        reward=RewardRules(scheme=RewardScheme.UTRL),
        book=_NO_BOOK,
    ),
    "atgen": replace(
        _FIXED,
        name="atgen",
        validation=Validation.DROP_WRONG,
        reward=RewardRules(scheme=RewardScheme.ATGEN, no_evidence=0.5),
        book=_NO_BOOK,
    ),
    "learnability": replace(
        _FIXED,
        name="learnability",
        validation=Validation.DROP_WRONG,
        reward=RewardRules(scheme=RewardScheme.LEARNABILITY, invalid_candidate=-1.0),
        book=_NO_BOOK,
    ),
}


def preset(name: str) -> Ruleset:
    """Return the rules of this name, or `fixed` with the reward of this name.

    >>> from codea1_env import preset
    >>> preset("paper").reward.alpha
    0.5

    Args:
        name: of rules, of a reward that an installed distribution has registered, or `module:attribute`.

    Raises:
        UnknownName: neither rules nor a reward have this name.
        UserError: the reward cannot be imported or called.
    """
    if name in PRESETS:
        return PRESETS[name]
    if ":" not in name and name not in plugins.names("rewards"):
        raise UnknownName.of("rules", name, [*PRESETS, *plugins.names("rewards")])
    reward_plugin(name)  # fails here, not in the first round
    return replace(_FIXED, name=name, reward=replace(_FIXED.reward, scheme=name))
