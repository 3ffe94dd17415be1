"""How far the cheapest test of an exception goes: `raises(TypeError, f, None)`, with None for each required argument.

    python benchmarks/none_tests.py [--seed N]

For `starter` (its known wrong programs) and HumanEval (four drawn mutants of each solution) it prints the share of
problems for which the test is valid under `fixed`, and how many of the programs that fail a golden test fail it. A test
that costs nothing and is often valid is worth its pay only if it finds faults.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing

from measuring import option_parser

from codea1_agents.scripted.mutation import mutants_of
from codea1_env.facts.verdicts import Verdict
from codea1_env.judging.golden import run_golden
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import Problem, load_problems
from codea1_env.rules.canonical_calls import parameters_of
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import load_sandbox

N_MUTANTS = 4
RULES = preset("fixed")


def programs_of(problem: Problem, rng: random.Random) -> Sequence[str]:
    """Return wrong programs, some of which may be right."""
    if problem.wrong_programs:
        return [each.program for each in problem.wrong_programs]
    found = [each.program for each in mutants_of(problem)]
    return rng.sample(found, min(N_MUTANTS, len(found)))


def duels(source: str, rng: random.Random) -> Iterator[Duel]:
    """Yield each problem with its programs and the test."""
    for problem in load_problems(source):
        found = parameters_of(problem.solution, problem.entry_point)
        n_required = 1 if found is None else len([*found.posonlyargs, *found.args]) - len(found.defaults)
        nothing = ", ".join(["None"] * n_required)
        suite = read_suite(
            f"assert raises(TypeError, {problem.entry_point}, {nothing})",
            RULES.reading,
            entry_point=problem.entry_point,
        )
        programs = [read_candidate(each, RULES.reading) for each in programs_of(problem, rng)]
        yield Duel.crossed(problem, programs, [suite])


def main() -> None:
    """Print one line per source."""
    parser = option_parser(__doc__)
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    seed = parser.parse_args().seed
    with closing(load_sandbox("local")) as sandbox:
        for source in ("starter", "humaneval"):
            found = list(duels(source, random.Random(seed)))
            reports = Judge(sandbox, RULES).judge(found)
            pairs = [(duel.problem, each.program) for duel in found for each in duel.candidates]
            wrong = [finding.pass_rate not in (None, 1.0) for finding in run_golden(pairs, sandbox, RULES.comparison)]
            is_wrong = iter(wrong)
            n_valid = n_wrong = n_killed = 0
            for report in reports:
                valid = [bool(each.suites[0].cases) for each in report.candidates]
                n_valid += any(valid)
                for each in report.candidates:
                    if next(is_wrong) and each.suites[0].cases:
                        n_wrong += 1
                        n_killed += each.suites[0].cases[0].verdict is not Verdict.PASSED
            print(
                f"{source}: valid for {n_valid} of {len(found)} problems; fails {n_killed} of {n_wrong} wrong programs"
                f" of these ({n_killed / max(1, n_wrong):.1%}); {sum(wrong)} wrong programs in all"
            )


if __name__ == "__main__":
    main()
