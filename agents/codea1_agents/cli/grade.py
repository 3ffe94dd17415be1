"""`codea1 grade`: judges one program by one suite of tests."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.checks.sandbox_check import promise_of
from codea1_agents.cli.console import Page
from codea1_agents.cli.options import Options, Problems, rules_name, sandbox_name
from codea1_agents.cli.progress import Progress
from codea1_agents.scripted.fences import fenced_reply
from codea1_env import judge, score
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.plugins import names
from codea1_env.problems import DEFAULT_SOURCE, load_problems
from codea1_env.records.faults import LONGEST, read_file, read_within
from codea1_env.rendering import duel_picture
from codea1_env.rules.rewards import n_failed, n_right, n_written
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import load_sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOptions(Options):
    """Judge one program by one suite of tests, as in the game: verdicts, and both rewards.

    \b
    Example:
      codea1 grade program.py tests.py --problem HumanEval/0
    """

    program: Annotated[Path, Argument(help="A file with the program, or a reply that holds one; - reads stdin.")]
    tests: Annotated[Path, Argument(help="A file with asserts, or a reply that holds some.")]
    problem: Annotated[str, Option(help="Id of the problem.")]
    problems: Problems = DEFAULT_SOURCE
    rules: Annotated[str, rules_name()] = "fixed"
    sandbox: Annotated[str, sandbox_name("Sandbox that runs the program.")] = "local"


def run_grade(options: GradeOptions) -> None:
    """Judge and print.

    Raises:
        UserError: a file cannot be read, or the problem, the rules or the sandbox does not exist.
        SandboxError: the sandbox cannot be used at all.
    """
    page, rules = Page(as_json=options.as_json), preset(options.rules)
    problems, source = load_problems(options.problems), options.problem.partition("/")[0].lower()
    is_elsewhere = options.problem not in {each.id for each in problems} and source != options.problems
    if is_elsewhere and source.partition(":")[0] in names("problems"):
        raise UserError(f"--problem {options.problem} is not in {options.problems}: add -p {source}")
    problem = problems.by_id(options.problem)
    if str(options.program) == str(options.tests) == "-":
        raise UserError("program and tests: only one of them can come from stdin")
    program, tests = map(_text, (options.program, options.tests))
    with page.apart(), closing(load_sandbox(options.sandbox)) as sandbox, Progress("judging", None, page):
        page.warn_if_weak(promise_of(sandbox))
        report = judge(problem, program if "```" in program else fenced_reply(program), tests, rules, sandbox=sandbox)
    rewards = score(report, rules)
    whole = ProblemReport(problem.id, (report,))
    page.show(
        duel_picture(JudgedRound(problem, "", 0, program, tests, whole, rewards, None), width=page.width, reveals=True)
    )
    (suite,), coder, (tester,) = report.suites, rewards.coder, rewards.testers
    page.finish(
        problem=problem.id,
        verdict=str(report.verdict),
        tests=n_written(suite),
        right=n_right(suite.cases),
        failing=n_failed(suite.cases),
        coder_reward=None if coder.masked else coder.value,
        tester_reward=None if tester.masked else tester.value,
    )


def _text(path: Path) -> str:
    try:
        data = read_within(sys.stdin.buffer, LONGEST, "stdin") if str(path) == "-" else read_file(path)
        return data.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: cannot be read as text: {error}") from error
