"""Chat messages of a problem, and rows of data sets for trainers of one role."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, get_args

from codea1_agents.adapters.scoring import Frozen, frozen_agent, require_paid
from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.models.chat_format import without_control_tokens
from codea1_agents.prompts import Prompts, load_prompts
from codea1_agents.prompts.templates import View
from codea1_agents.train.sft.examples import sampled_programs
from codea1_env.agent import Role
from codea1_env.bank.entries import Bank
from codea1_env.errors import UserError, of_type, one_of
from codea1_env.problems import Problem, ProblemSet, ProblemSource, load_problems
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import Tree, candidate_of
from codea1_env.rules.ruleset import Ruleset, preset

ROLES: tuple[Role, ...] = get_args(Role)
GIVEN: Mapping[Role, str] = {"coder": "suite", "tester": "program"}
"""By role, the column that holds the other role's reply, which the role plays against."""

Opponents: TypeAlias = Bank | Mapping[str, Sequence[str]]
"""Replies of the other role, by problem id: programs for a tester, suites for a coder; or a bank, which has both."""
Wording: TypeAlias = str | Path | Prompts
"""As `load_prompts` takes it."""


def messages(
    role: Role,
    problem: Problem,
    *,
    program: str = "",
    rules: str | Ruleset = "fixed",
    view: View | None = None,
    wording: Wording = "default",
    control_tokens: Collection[str] = (),
) -> list[dict[str, str]]:
    """Return the chat messages that ask an agent for a reply about a problem; the last one is the user's.

    Args:
        role: `coder` or `tester`.
        problem: only its public fields are read.
        program: the code that a tester sees; empty: it sees none.
        rules: a ruleset or the name of one; it says how many tests a suite has.
        view: what a tester's prompt says about the program; None: `white_box` if there is one, else `black_box`.
        wording: the prompts' wording.
        control_tokens: the model's, such as `tokenizer.all_special_tokens`. A space breaks them, since a template
            would take those in a program for real ones, with which a coder could end its tester's prompt.

    Returns:
        Dictionaries with `role` and `content`.

    Raises:
        UserError: an argument has an invalid value.
    """
    one_of("role", role, ROLES)
    tests = _ruleset(rules).tests_per_suite
    turn = sample_turn(problem, role, 0, program=program, tests=tests, view=view or "")
    control = sorted(control_tokens, key=len, reverse=True)
    chat = load_prompts(wording).messages(turn.observation, turn.info)
    return [{"role": each.role, "content": without_control_tokens(each.content, control)} for each in chat]


class RowSettings(TypedDict, total=False):
    """The keyword arguments of `rows`, which say what they mean."""

    against: Opponents | Frozen | None
    samples: int
    rules: str | Ruleset
    wording: Wording
    control_tokens: Collection[str]


def rows(
    role: Role,
    problems: ProblemSource,
    *,
    against: Opponents | Frozen | None = None,
    samples: int = 4,
    rules: str | Ruleset = "fixed",
    wording: Wording = "default",
    control_tokens: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return a data set of one role: a row per problem and reply of the other role, in order.

    Args:
        role: that is trained.
        problems: a source that `load_problems` takes.
        against: replies of the other role, each distinct one a row; for a tester also a frozen coder, whose programs
            are sampled now, without those that do not load: they have no tester's turn. None: for a tester the
            problems' known wrong programs, for a coder no suite, which suits rules that pay for golden tests and a
            frozen tester that writes a suite for each program.
        samples: replies of a frozen coder per problem.
        rules: a ruleset or the name of one, the referee's.
        wording: the prompts' wording.
        control_tokens: the model's control tokens, as in `messages`.

    Returns:
        Dictionaries with `prompt` (chat messages), `problem_id`, and `program` (for a tester) or `suite` (for a coder):
        the other role's reply, empty if there is none.

    Raises:
        UserError: an argument is invalid, or no row is left.
    """
    one_of("role", role, ROLES)
    prompts, known, chosen = load_prompts(wording), _ruleset(rules), load_problems(problems)
    require_paid(role, known)
    if isinstance(against, Mapping):
        _check_opponents(against, chosen)
    if against is not None and not isinstance(against, Bank | Mapping):
        if role == "coder":
            raise UserError("a frozen tester writes a suite for each program: pass it to the reward function")
        written = sampled_programs(chosen, frozen_agent("coder", against, chosen), samples=samples)
        against = _that_load(written, Referee(chosen, known))
    settings: dict[str, Any] = {"rules": known, "wording": prompts, "control_tokens": control_tokens}

    found = [
        {"prompt": messages(role, problem, program=program, **settings), **given}
        for problem in chosen
        for program, given in _given(role, problem, against, known)
    ]
    if not found:
        raise UserError(f"no problem has a {GIVEN[role]} for the {role} to play against: pass some as against=")
    return found


def _check_opponents(against: Mapping[str, Sequence[str]], problems: ProblemSet) -> None:
    for problem_id, replies in against.items():
        problems.by_id(problem_id)
        if isinstance(replies, str) or not all(isinstance(each, str) for each in replies):
            raise UserError(f"against: {problem_id!r} must have a list of texts, got {replies!r:.60}")
        try:
            "".join(replies).encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"against: a text of {problem_id!r} has a lone surrogate, which a data set cannot store"
            ) from error


def _ruleset(rules: str | Ruleset) -> Ruleset:
    return of_type("rules", preset(rules) if isinstance(rules, str) else rules, Ruleset)


def _given(role: Role, problem: Problem, against: Opponents | None, rules: Ruleset) -> list[tuple[str, dict[str, str]]]:
    """Return, for each distinct reply, the program that is shown and the columns that go with the prompt."""
    replies = [] if against is None else _replies(role, problem, against)
    if role == "tester":
        written = replies if against is not None else [wrong.program for wrong in problem.wrong_programs]
        programs = dict.fromkeys(candidate_of(reply, problem, rules).program for reply in written)
        return [(program, {"problem_id": problem.id, GIVEN[role]: program}) for program in programs if program]
    suites = [""] if against is None else dict.fromkeys(filter(None, replies))
    return [("", {"problem_id": problem.id, GIVEN[role]: suite}) for suite in suites]


def _that_load(programs: Mapping[str, Sequence[str]], referee: Referee) -> Mapping[str, Sequence[str]]:
    """Return the programs that load."""
    trees = [Tree(referee.problems.by_id(problem_id), len(written)) for problem_id, written in programs.items()]
    rounds = referee.open(trees)
    rounds.submit_programs([program for written in programs.values() for program in written])
    return {
        problem_id: [program for program, verdict in zip(written, verdicts, strict=True) if verdict is None]
        for (problem_id, written), verdicts in zip(programs.items(), rounds.early_verdicts(), strict=True)
    }


def _replies(role: Role, problem: Problem, against: Opponents) -> Sequence[str]:
    """Return the other role's replies to a problem, as they were written."""
    if isinstance(against, Bank):
        banks = [each for each in against if each.problem.id == problem.id]
        return [entry.reply for each in banks for entry in (each.programs if role == "tester" else each.suites)]
    return against.get(problem.id, ())
