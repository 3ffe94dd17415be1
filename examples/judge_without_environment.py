"""The whole matrix without an environment: one problem, two candidates, two suites for each."""

from codea1_env import Duel, Judge, load_problems, preset, score
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.sandbox import load_sandbox

problem = load_problems("humaneval").by_id("HumanEval/53")  # add(x, y)
rules = preset("fixed")

programs = ["def add(x, y):\n    return x + y", "def add(x, y):\n    return abs(x + y)"]
replies = ["assert add(2, 3) == 5\nassert add(0, 0) == 0", "assert add(-2, -3) == -5\nassert add(1, -1) == 1"]

candidates = tuple(read_candidate(text, rules.reading, entry_point="add") for text in programs)
suites = tuple(read_suite(text, rules.reading, entry_point="add", tests_per_suite=8) for text in replies)
duel = Duel(problem, candidates, (suites, suites))

for report in Judge(load_sandbox("local"), rules).judge([duel])[0].candidates:
    rewards = score(report, rules)
    print(report.candidate.program.splitlines()[-1].strip())
    print("  coder", rewards.coder.value, " testers", [round(tester.value, 4) for tester in rewards.testers])
    for suite in report.suites:
        print("  ", [f"{case.case.case.expression} {case.verdict}" for case in suite.cases])
