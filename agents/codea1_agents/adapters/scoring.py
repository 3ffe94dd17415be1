"""Rewards of one role's replies, each judged with a reply of the other role that does not learn meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent
from codea1_env.agent import AgentContext, AgentSpec, Role, load_agent
from codea1_env.errors import UserError
from codea1_env.problems import Problem, ProblemSet
from codea1_env.rounds.referee import Referee, Reply, Scored, reply_text
from codea1_env.rounds.rounds import candidate_of
from codea1_env.rules.ruleset import Ruleset
from codea1_env.sandbox import load_sandbox

Frozen: TypeAlias = AgentSpec | NamedAgent
"""An agent that does not learn, as `load_agent` takes it."""


@cache
def named_referee(problems: str, rules: str) -> Referee:
    """Return the referee of named problems and rules, one per process, for trainers that know only names."""
    return Referee(problems, rules)


def frozen_agent(role: Role, agent: Frozen, problems: ProblemSet) -> NamedAgent:
    """Return an agent of the given role that writes one reply or many.

    Raises:
        UserError: the agent does not exist, or plays the other role.
    """
    if isinstance(agent, NamedAgent):
        return agent
    context = AgentContext(problems, load_sandbox("local"))
    return NamedAgent(load_agent(agent, context, role=role), f"the frozen {role}")


def required(name: str, given: Mapping[str, Any], what: str) -> Any:
    """Return a named value that a row or a setting must have.

    Raises:
        UserError: the value is missing.
    """
    if name not in given:
        raise UserError(f"{what} needs {name!r}, got {', '.join(map(repr, given)) or 'nothing'}")
    return given[name]


def require_paid(role: Role, rules: Ruleset) -> None:
    """Raise UserError if the rules pay nothing to testers and a tester is to be trained."""
    if role == "tester" and not rules.reward.pays_tester:
        raise UserError(f"the rules {rules.name!r} never pay a tester: train it with others, such as 'fixed'")


def require_suites(rules: Ruleset) -> None:
    """Raise UserError unless a coder without suites can earn under the rules."""
    if not rules.reward.needs_golden:
        raise UserError(
            f"under the rules {rules.name!r} a coder is paid by tests: pass suites or a frozen tester, or use the"
            " rules 'golden'"
        )


def role_scores(
    role: Role, referee: Referee, problem_ids: Sequence[str], replies: Sequence[Reply], given: Sequence[Reply | None]
) -> list[Scored]:
    """Judge the replies of one role in one batch, each with a reply of the other role.

    Args:
        role: that is trained.
        referee: judges.
        problem_ids: (B,) may repeat.
        replies: (B,) of the role, text or chat messages.
        given: (B,) of the other role: programs for a tester, suites for a coder; None: there is none.

    Returns:
        (B,) in order; `Scored.reward(role)` is None where masked, and for a tester whose program does not load.

    Raises:
        UserError: the lengths differ, a reply is not text, a coder has neither a suite nor rules that pay for golden
            tests, or a problem is unknown.
    """
    if role == "tester":
        return list(map(of_turn, referee.rewards(problem_ids, [program or "" for program in given], replies)))
    if None in given:
        require_suites(referee.rules)
    return referee.rewards(problem_ids, replies, given)


def of_turn(scored: Scored) -> Scored:
    """Return a score with its tester's reward masked if the program does not load, as the game then skips it.

    The referee pays such a suite what the rules say, whatever it contains. Under `fixed` that is 0, which says nothing
    about the suite.
    """
    if scored.tester is None or scored.report is None or scored.report.loads:
        return scored
    why = scored.masked_because or "the program does not load, so the tester is skipped"
    return replace(scored, tester=None, masked_because=why, parts={**scored.parts, "tester": {}})


def written_suites(
    tester: NamedAgent, referee: Referee, problem_ids: Iterable[str], replies: Iterable[Reply]
) -> list[Reply | None]:
    """Return the suites (B,) that a frozen tester writes for the programs of a coder's replies, which it sees.

    A reply without a program has an empty suite.
    """
    problems = list(map(referee.problems.by_id, problem_ids))
    programs = [_program(reply, problem, referee) for reply, problem in zip(replies, problems, strict=True)]
    places = [n for n, program in enumerate(programs) if program]
    tests = referee.rules.tests_per_suite
    turns = [sample_turn(problems[n], "tester", n, program=programs[n], tests=tests) for n in places]
    written = dict(zip(places, tester.replies(turns), strict=True))
    return [written.get(n, "") for n in range(len(programs))]


def _program(reply: Reply, problem: Problem, referee: Referee) -> str:
    return candidate_of(reply_text(reply), problem, referee.rules).program
