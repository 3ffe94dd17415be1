"""Judge two candidates for one problem, with two suites for each, without an environment."""

from codea1_env import Referee, Tree

referee = Referee("humaneval", "fixed")
problem = referee.problems.by_id("HumanEval/53")  # add(x, y)

programs = ["def add(x, y):\n    return x + y", "def add(x, y):\n    return abs(x + y)"]
suites = ["assert add(2, 3) == 5\nassert add(0, 0) == 0", "assert add(-2, -3) == -5\nassert add(1, -1) == 1"]

rounds = referee.open([Tree(problem, n_candidates=2, n_suites=2)])
rounds.submit_programs(programs)
rounds.submit_suites(suites * 2)  # one group for each candidate
(tree,) = rounds.results()

for report, rewards in zip(tree.report.candidates, tree.rewards, strict=True):
    print(report.candidate.program.splitlines()[-1].strip())
    print("  coder", rewards.coder.value, " testers", [round(tester.value, 4) for tester in rewards.testers])
    for suite in report.suites:
        print("  ", [f"{case.case.case.expression} {case.verdict}" for case in suite.cases])
