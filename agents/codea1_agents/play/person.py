"""The game of one person against one agent or one program: three tries, hints, points, and the story at the end.

It knows neither terminal nor page: `codea1 demo duel` and `codea1 web` tell the same game.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from codea1_agents.scripted.testers import FuzzTester
from codea1_env import values
from codea1_env.agent import AgentContext
from codea1_env.differences import difference
from codea1_env.errors import CodeA1Error, SandboxError, UserError
from codea1_env.facts.submissions import RejectionReason, Role, Suite, TestCase
from codea1_env.facts.verdicts import CaseReport, Verdict
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems.problem import GoldenCase, Problem, ProblemSet
from codea1_env.python_text import TextBudget, UnreadableError, parse
from codea1_env.rendering import passes, story
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import Rounds, Tree, Turn
from codea1_env.rules.rewards import n_credited, n_failed, n_right, n_written
from codea1_env.sandbox import Limits, Sandbox

MOST_POINTS = 3
DUEL_TASK = (
    "A program for this problem is wrong in one place. Write a test, an input with its right answer: you win if the"
    " program gives another one."
)
DOUBT = "No test is known that this program fails: it may be right."
_MOST_DRAWS = 4  # programs of an opponent until a test fails one
_MOST_SHOWN = 300  # characters of a value
_MOST_LINES = 12  # that do not count, of one try
_GENERAL_HINTS = (
    "Try the ends of what the problem allows: nothing, one item, equal items, negative numbers.",
    "Compare each sentence of the problem with the lines that should do what it says.",
)


class PersonGame:
    """One game. It ends when the person wins or has used all tries; each try without success costs a point.

    A tester's try without a test that counts is none, and costs nothing.

    A tester wins with a test that has the right answer and fails the program, a coder with a program that passes all
    tests. A program that is not Python costs nothing. Not thread-safe; `turn` and `submit` wait for the sandbox and the
    opponent.
    """

    def __init__(
        self,
        problem: Problem,
        role: Role,
        opponent: Callable[[Turn], str],
        *,
        hints: tuple[str, ...] = (),
        seed: int = 0,
        sandbox: Sandbox | str = "local",
        limits: Limits | None = None,
    ) -> None:
        """Begin a game; nothing runs yet.

        Args:
            problem: what it is about.
            role: the person's.
            opponent: replies for the other role.
            hints: for a tester, ever clearer ones, one less than there are tries; (): they follow from the program.
            seed: of the seed keys of the opponent's turns.
            sandbox: where programs run.
            limits: bounds per call of a program.
        """
        self.problem, self.role = problem, role
        self.points, self.has_won = MOST_POINTS, False
        self.program = ""
        """The program that a tester sees; empty before `turn`."""
        self.killer: CaseReport | None = None
        """A test that would win a tester's game; None before `turn`, or if none is known."""
        self._opponent, self._hints, self._seed, self._n_tries = opponent, hints, seed, 0
        # Its own, so that what it remembers of the solution ends with the game.
        self._referee = Referee(ProblemSet("a person's game", (problem,)), "fixed", sandbox=sandbox, limits=limits)
        self._rounds: Rounds | None = None

    @property
    def is_over(self) -> bool:
        """Whether no try is left, or the last one won."""
        return self.has_won or not self.points

    def turn(self) -> Turn:
        """Return what the person replies to. The first call for a tester asks the opponent for its program.

        A program that neither golden tests nor random inputs tell from the solution is drawn again, with another seed,
        a few times or until one repeats: nobody could win against it.

        Raises:
            AgentUnavailable: the opponent gives no reply, and no program of it has loaded.
            UserError: the opponent failed, or its program does not load.
            SandboxError: the sandbox cannot be used at all.
        """
        if self.role == "coder":
            return self._open_round().coder_turns()[0]
        drawn = set[str]()
        for number in range(0 if self._rounds else _MOST_DRAWS):
            try:
                rounds = self._open_round(number)
                rounds.submit_programs([self._opponent(rounds.coder_turns()[0])])
                program = rounds.candidates()[0][0].program if rounds.tester_turns() else ""
                if program in drawn:
                    break
                killer = self._credited_killer(rounds) if program else None
            except CodeA1Error:
                if self._rounds is None:
                    raise
                break  # the last program that loads is a game, too
            if program:
                self._rounds, self.program, self.killer = rounds, program, killer
                drawn.add(program)
            if killer:
                break
        if self._rounds is None:
            raise UserError("the opponent's reply holds no program that loads: begin another game")
        return self._rounds.tester_turns()[0]

    def submit(self, reply: str) -> JudgedRound:
        """Judge one try.

        Raises:
            UserError: the game is over, or the opponent failed.
            AgentUnavailable: the opponent gives no reply.
            SandboxError: the sandbox failed; the try does not count.
        """
        if self.is_over:
            raise UserError("this game is over: begin another one")
        judged = self._judge_reply(reply)
        report = judged.report.candidates[0]
        if report.has_internal_error:
            raise SandboxError("the sandbox failed on this try, which does not count: try again")
        cases = report.suites[0].cases
        if self.role == "tester" and not cases:
            return judged
        self._n_tries += 1
        self.has_won = bool(n_credited(cases)) if self.role == "tester" else report.loads and not n_failed(cases)
        self.points -= not self.has_won and (self.role == "tester" or report.verdict is not Verdict.SYNTAX_ERROR)
        return judged

    def draft(self) -> str:
        """Return the beginning of a reply: of a program the lines up to the body, if the problem is a function."""
        if self.role == "tester":
            return f"assert {self.problem.entry_point}("
        for text in (self.problem.statement, self.problem.solution):
            with suppress(UnreadableError):
                for node in parse(text, TextBudget()).body:
                    if isinstance(node, ast.FunctionDef) and node.name == self.problem.entry_point:
                        node.body, above = [ast.Pass()], text.split("\n")[: node.lineno - 1]
                        lines = above if text is self.problem.statement else []  # the rest of a solution is secret
                        return "\n".join([*lines, ast.unparse(node).removesuffix("pass")])
        return ""

    def hint(self) -> str:
        """Return a tester's hint after the last try that cost a point; empty before one."""
        if not self._n_tries:
            return ""
        change = None if self._hints else difference(self.program, self.problem.solution)
        line = change.line if change else 0
        hints = (f"Read line {line} again.", f"Line {line} is wrong.") if line else _GENERAL_HINTS
        return (self._hints or hints)[self._n_tries - 1]

    def _credited_killer(self, rounds: Rounds) -> CaseReport | None:
        """Return the shortest golden test that wins, else the shortest of random inputs."""
        (turn,), own = rounds.tester_turns(), self._referee
        hunter = FuzzTester(AgentContext(own.problems, own.sandbox, self._seed, own.judge.limits), hunt=True)
        golden = [case for case in self.problem.golden if isinstance(case, GoldenCase)]
        asserts = [TestCase(case.expression, case.expected, case.imports).to_assert() for case in golden]
        for hunts in (False, True):
            tried = rounds.fork()
            suites = [hunter.act(turn.observation, turn.info)] if hunts else asserts
            tried.submit_suites(suites, [[len(suites)]])
            report = tried.results()[0].report
            cases = [case for suite in report.candidates[0].suites for case in suite.cases] if report else []
            if killers := [case for case in cases if n_credited((case,))]:
                return min(killers, key=lambda case: len(case.case.case.expression))
        return None

    def _judge_reply(self, reply: str) -> JudgedRound:
        tester_reply: str | None = reply
        if self.role == "tester":
            program = self.program
            self.turn()
            assert self._rounds is not None
            rounds = self._rounds.fork()
        else:
            program, rounds = reply, self._open_round()
            rounds.submit_programs([reply])
            turns = rounds.tester_turns()
            tester_reply = self._opponent(turns[0]) if turns else None
        rounds.submit_suites([Suite(()) if tester_reply is None else tester_reply], [[1]])
        (judged,) = rounds.results()
        assert judged.report is not None  # the round does not mask errors of the sandbox
        rewards = judged.rewards[0]
        return JudgedRound(self.problem, "", self._n_tries, program, tester_reply, judged.report, rewards, None)

    def _open_round(self, n_drawn: int = 0) -> Rounds:
        return self._referee.open([Tree(self.problem, seed=(self._seed + self._n_tries, n_drawn))])


def describe_finding(game: PersonGame, judged: JudgedRound) -> str:
    """Say what a try has found, without a full stop."""
    report = judged.report.candidates[0]
    if game.role == "coder":
        costs = ", which costs no point" if report.verdict is Verdict.SYNTAX_ERROR else ""
        return f"your program {passes(report)}" if report.loads else f"your program does not run{costs}"
    suite = report.suites[0]
    if not suite.cases:
        return f"no test counts, so this try costs no point: write `assert {game.problem.entry_point}(...) == ...`"
    if not suite.beats:
        return f"{answers(judged)}; no test fails the program"
    if n_written(suite) == 1:
        return "the program is wrong for your input, but so is your answer"
    return f"{answers(judged)}; for an input the program is wrong, but so is your answer"


@dataclass(frozen=True, slots=True)
class ExplainedTest:
    """A test of a try, and what it has shown."""

    number: int
    """Its place in the try, from 1, by which a story names it."""
    test: str
    told: str
    tone: str
    """`good` or `bad` for the person; empty: neither."""


def explain_tests(game: PersonGame, judged: JudgedRound) -> list[ExplainedTest]:
    """Return the tests of a try; those that did not run come last."""
    report = judged.report.candidates[0]
    cases = sorted(enumerate(report.suites[0].cases, start=1), key=lambda each: each[1].verdict is Verdict.NOT_RUN)
    return [_explain_test(number, case, game) for number, case in cases if report.loads]


def missed_tests(game: PersonGame) -> list[ExplainedTest]:
    """Return a test that would have won a tester's game which is lost, if one is known."""
    shown = [_explain_test(1, game.killer, game)] if game.killer and not game.points else []
    return [replace(missed, told=missed.told.removeprefix(_FOUND)) for missed in shown]


def remarks(game: PersonGame, judged: JudgedRound) -> list[str]:
    """Say why a coder's program is not valid, or which lines of a tester do not count."""
    report = judged.report.candidates[0]
    if game.role == "coder":
        why = report.detail or report.verdict.value.replace("_", " ")
        if report.verdict is Verdict.NO_ENTRY_POINT:
            why = f"it does not define `{game.problem.entry_point}`"
        return [] if report.loads else [sentence(why)]
    rejections = report.suites[0].suite.rejections
    dropped = [it for it in rejections if it.reason is not RejectionReason.WRONG_PREDICTION]  # told with its test
    lines = [
        sentence(f"{f'line {it.line}' if it.line else 'this'} does not count: {why_dropped(it.reason, it.detail)}")
        for it in dropped[:_MOST_LINES]
    ]
    more = len(dropped) - _MOST_LINES
    return [*lines, sentence(f"{more} more lines do not count")] if more > 0 else lines


def why_dropped(reason: str, detail: str) -> str:
    """Say why a line of a tester does not count, for people who do not know the rules' words."""
    detail, told = detail.removeprefix("on the solution: "), _WHY_DROPPED.get(reason, "")
    return f"{told} ({detail})" if told and detail else told or detail or reason.replace("_", " ")


def answers(judged: JudgedRound) -> str:
    """Say how many answers of the suite are right."""
    suite = judged.report.candidates[0].suites[0]
    return f"{n_right(suite.cases)} of {n_written(suite)} answers right"


def ending(game: PersonGame, judged: JudgedRound) -> str:
    """Return the story of a game that is over, and its points."""
    is_tester = game.role == "tester"
    text = f"{story(judged)} {answers(judged)}" if is_tester else sentence(describe_finding(game, judged))[:-1]
    return f"{text}; {game.points} of {MOST_POINTS} points."


def sentence(text: str) -> str:
    """Return a text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _explain_test(number: int, case: CaseReport, game: PersonGame) -> ExplainedTest:
    """Return a test, explained. A right answer is a tester's to find: until the game is over it is not told."""
    is_tester = game.role == "tester"
    tested, expected = case.case.case, values.describe(case.case.expected, _MOST_SHOWN)
    who = "the program" if is_tester else "your program"
    gave = _GAVE.get(case.verdict, "").format(who=who, actual=case.actual)
    failed, passed, test = case.verdict.is_failure, case.verdict is Verdict.PASSED, tested.to_assert()
    if not is_tester:  # the test as it counts, whatever the tester has predicted
        test, tone = f"assert {tested.expression} == {expected}", "good" if passed else "bad" if failed else ""
        told = "Passed." if passed else sentence(gave)
    elif case.case.prediction_right is False:
        though, tone = f", though {gave}" if failed else "", "bad"
        right = f": the solution gives {expected}" if game.is_over else ""
        told = f"Wrong answer{right}. A test with a wrong answer finds nothing{though}."
    elif failed:
        told, tone = f"{_FOUND}The solution gives {expected}; {gave}.", "good"
    else:
        told, tone = "Right answer, and the program gives it, too." if passed else sentence(gave), ""
    return ExplainedTest(number, test, told, tone)


_GAVE = {
    Verdict.WRONG_ANSWER: "{who} gives {actual}",
    Verdict.RUNTIME_ERROR: "{who} fails: {actual}",
    Verdict.TIME_LIMIT: "{who} does not end in time",
    Verdict.MEMORY_LIMIT: "{who} needs too much memory",
    Verdict.OUTPUT_LIMIT: "{who} gives too large a value",
    Verdict.NOT_RUN: "not tried: another test had stopped {who} before",
}
_FOUND = "Found it! "
_WHY_DROPPED: dict[str, str] = {  # where the detail is empty, or means little by itself
    RejectionReason.TOO_LONG: "it is too long",
    RejectionReason.SYNTAX_ERROR: "it is not Python",
    RejectionReason.FORBIDDEN_NAME: "a name in it is not defined or not allowed",
    RejectionReason.DUPLICATE: "another test makes the same calls",
    RejectionReason.SOLUTION_ERROR: "the solution itself fails for this input",
    RejectionReason.SOLUTION_TIME_LIMIT: "the solution takes too long for this input",
    RejectionReason.OPAQUE_VALUE: "the answer is too large, or no plain value",
    RejectionReason.FLAKY: "the solution gives another answer each time",
    RejectionReason.VACUOUS: "it tells nothing about a program",
    RejectionReason.TOO_MANY_CALLS: "it calls the function too often",
}
