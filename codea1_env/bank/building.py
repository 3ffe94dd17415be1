"""Builds banks from problems and agents, or from a recorded run. Agents act as in the game; nothing is judged here."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from codea1_env.agent import Agent, AgentContext, Role, load_agent
from codea1_env.bank.cache import BankCache, digest_of, sources_digest
from codea1_env.bank.entries import Bank, BankEntry, ProblemBank
from codea1_env.errors import UserError
from codea1_env.observations import observation_of, turn_info
from codea1_env.plugins import from_record
from codea1_env.problems import Problem, ProblemSet, load_problems
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.rounds.rounds import candidate_of, suite_of
from codea1_env.rules.ruleset import Reading, Ruleset
from codea1_env.runs.folder import iter_episodes, stored_config
from codea1_env.sandbox.interface import Sandbox

_IMPOSSIBLE = "'no solution returns this'"
_MAX_DRAWS = 8  # replies per program of the recipe; a solution may have few mutants


@dataclass(frozen=True, slots=True)
class BankRecipe:
    """The contents of a problem's bank.

    Programs: the solution, then known wrong programs (the subtlest first), then programs of the coders. Suites: one of
    each tester, which does not see a program; one of each attacker against each attacked program; and a copy of each
    attack in which every second prediction is wrong, like hard tests whose writer knows only half of the answers.
    """

    solution: bool = True
    """Whether the bank contains the solution."""
    n_wrong: int = 4
    """Maximal number of wrong programs: known ones first, then distinct replies of `coders`."""
    known: bool = True
    """Whether the problem's own wrong programs are used; False: only programs of the coders."""
    coders: tuple[str, ...] = ("mutant,strength=1.0", "mutant,strength=0.5")
    """Agents that write the wrong programs that are missing; they act in turn."""
    testers: tuple[str, ...] = ("examples", "boundary", "fuzz", "invalid,kind=wrong_prediction")
    """Agents that act once, without seeing a program."""
    attackers: tuple[str, ...] = ("boundary,hunt=true",)
    """Agents that act once for each attacked program, which they see."""
    n_attacked: int = 3
    """Number of wrong programs that are attacked, from the first."""
    right: bool = True
    """Whether the bank contains the attacks as the attackers wrote them."""
    half_right: bool = True
    """Whether the bank contains the copy of each attack in which every second prediction is wrong."""
    seed: int = 0

    @property
    def agents(self) -> tuple[str, ...]:
        """All agents of the recipe."""
        return (*self.coders, *self.testers, *self.attackers)

    def __post_init__(self) -> None:
        if self.n_wrong < 0 or self.n_attacked < 0:
            raise UserError(f"recipe of a bank: counts must be at least 0, got {self.n_wrong} and {self.n_attacked}")
        if not self.solution and not self.n_wrong:
            raise UserError("recipe of a bank: it needs a program: allow the solution or at least one wrong program")


def build_bank(
    problems: str | Path | ProblemSet,
    rules: Ruleset,
    sandbox: Sandbox,
    *,
    recipe: BankRecipe | None = None,
    cache: BankCache | None = None,
) -> Bank:
    """Return a bank for every problem of a source.

    Args:
        problems: as `load_problems` takes them.
        rules: the number of tests per suite, and how programs are read.
        sandbox: where testers run the solution.
        recipe: contents of the banks.
        cache: stores banks between runs. It is not used if an agent of the recipe is given as `module:attribute`, since
            its code may change. None: no cache.

    Raises:
        UserError: unknown problems or agents, or the recipe gives no program for a problem.
    """
    chosen = load_problems(problems)
    recipe = recipe or BankRecipe()
    context = AgentContext(chosen, sandbox, recipe.seed)
    builder = _Builder(recipe, context, rules)
    if any(":" in spec for spec in recipe.agents):
        cache = None
    return Bank(chosen.name, tuple(_read_or_build(problem, builder, cache) for problem in chosen))


def _read_or_build(problem: Problem, builder: _Builder, cache: BankCache | None) -> ProblemBank:
    if cache is None:
        return builder.bank(problem)
    digest = builder.digest(problem)
    bank = cache.find_built(digest)
    if bank is None:
        bank = builder.bank(problem)
        cache.keep_built(digest, bank)
    return bank


class _Builder:
    """The agents of a recipe, loaded once."""

    def __init__(self, recipe: BankRecipe, context: AgentContext, rules: Ruleset) -> None:
        def load(specs: tuple[str, ...], role: Role) -> tuple[tuple[str, Agent], ...]:
            return tuple((spec.partition(",")[0], load_agent(spec, context, role=role)) for spec in specs)

        self._recipe = recipe
        self._rules = rules
        self._coders = load(recipe.coders, "coder")
        self._testers = load(recipe.testers, "tester")
        self._attackers = load(recipe.attackers, "tester")

    def digest(self, problem: Problem) -> str:
        """Return a digest of everything that determines the problem's bank, the agents' code included."""
        agents = (agent for _, agent in (*self._coders, *self._testers, *self._attackers))
        folders = {Path(inspect.getfile(type(agent))).parent for agent in agents}
        return digest_of(
            {
                "recipe": asdict(self._recipe),
                "problem": problem_to_row(problem),
                "tests_per_suite": self._rules.tests_per_suite,
                "reading": self._rules.reading,
                "max_program_bytes": self._rules.max_program_bytes,
                "code": sorted(sources_digest(folder) for folder in (*folders, Path(__file__).parent.parent)),
            }
        )

    def bank(self, problem: Problem) -> ProblemBank:
        wrong = tuple(_distinct(self._wrong(problem), problem, self._rules, self._recipe.n_wrong))
        right = [BankEntry("solution", problem.solution)] if self._recipe.solution else []
        self._start(problem, self._testers)
        blind = [BankEntry(name, self._reply(tester, problem, "tester", "")) for name, tester in self._testers]
        suites = [*blind, *self._attacks(problem, wrong[: self._recipe.n_attacked])]
        return ProblemBank(problem, (*right, *wrong), tuple(suites))

    def _wrong(self, problem: Problem) -> Iterator[BankEntry]:
        if self._recipe.known:
            known = sorted(problem.wrong_programs, key=lambda wrong: -wrong.subtlety)
            yield from (BankEntry(f"wrong {n}", wrong.program) for n, wrong in enumerate(known, 1))
        self._start(problem, self._coders)
        for n in range(_MAX_DRAWS * self._recipe.n_wrong if self._coders else 0):
            name, coder = self._coders[n % len(self._coders)]
            yield BankEntry(f"{name} {n + 1}", self._reply(coder, problem, "coder", ""))

    def _attacks(self, problem: Problem, attacked: Sequence[BankEntry]) -> Iterator[BankEntry]:
        self._start(problem, self._attackers)
        for name, attacker in self._attackers:
            for target in attacked:
                program = candidate_of(target.reply, problem, self._rules).program
                reply = self._reply(attacker, problem, "tester", program)
                if self._recipe.right:
                    yield BankEntry(f"{name} vs {target.label}", reply)
                if self._recipe.half_right:
                    cases = suite_of(reply, problem, Reading.STRICT).cases  # every second prediction becomes wrong
                    half = [replace(case, prediction=_IMPOSSIBLE) if n % 2 else case for n, case in enumerate(cases)]
                    text = "\n".join(case.to_assert() for case in half)
                    yield BankEntry(f"half right vs {target.label}", text)

    def _start(self, problem: Problem, agents: Iterable[tuple[str, Agent]]) -> None:
        """Reset every agent's random state, so that a problem's bank does not depend on the other problems."""
        for _, agent in agents:
            reset = getattr(agent, "reset", None)
            if callable(reset):
                reset(self._recipe.seed)

    def _reply(self, agent: Agent, problem: Problem, role: Role, program: str) -> str:
        view = "" if role == "coder" else "white_box" if program else "black_box"
        info = turn_info(
            problem,
            episode_id=f"bank-{self._recipe.seed}",
            role=role,
            round_=0,
            tests_per_suite=self._rules.tests_per_suite,
            program=program,
            tester_view=view,
        )
        return agent.act(observation_of(problem, 0, program), info)


def bank_of_run(path: Path, *, n_programs: int = 8, n_suites: int = 12, solution: bool = False) -> Bank:
    """Return a bank of the programs and suites of a recorded run, in the order of play.

    Args:
        path: run folder.
        n_programs: maximal number of distinct programs per problem.
        n_suites: maximal number of distinct suites per problem.
        solution: whether the solution is added before them.

    Raises:
        UserError: the folder is not a run, its problems cannot be found, or no problem has both a program and a suite.
    """
    config = stored_config(path)
    with from_record():
        problems = load_problems(config.problems, strict=config.strict, limit=config.limit)
    programs: dict[str, dict[str, None]] = {}
    suites: dict[str, dict[str, None]] = {}
    for record in iter_episodes(path):
        for played in record.rounds:
            programs.setdefault(record.problem_id, {}).setdefault(played.coder_reply)
            if played.tester_reply is not None:
                suites.setdefault(record.problem_id, {}).setdefault(played.tester_reply)
    banks = []
    for problem in problems:
        if problem.id in programs and problem.id in suites:
            right = [BankEntry("solution", problem.solution)] if solution else []
            recorded = (BankEntry(f"program {n}", reply) for n, reply in enumerate(programs[problem.id], 1))
            suites_of_run = (BankEntry(f"suite {n}", reply) for n, reply in enumerate(suites[problem.id], 1))
            kept = tuple(_distinct(recorded, problem, config.rules, n_programs))
            if right or kept:
                banks.append(ProblemBank(problem, (*right, *kept), tuple(suites_of_run)[:n_suites]))
    if not banks:
        raise UserError(f"{path}: no problem of this run has both a program and a suite")
    return Bank(path.name, tuple(banks))


def _distinct(entries: Iterable[BankEntry], problem: Problem, rules: Ruleset, most: int) -> Iterator[BankEntry]:
    """Yield the first `most` entries with distinct programs whose text differs from the solution's."""
    seen = {problem.solution.strip()}
    for entry in entries:
        if len(seen) > most:
            return
        program = candidate_of(entry.reply, problem, rules).program.strip()
        if program and program not in seen:
            seen.add(program)
            yield entry
