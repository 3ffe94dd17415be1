"""Evaluate a tester: mutation score and validity of its tests, with intervals over problems."""

from codea1_agents.evaluation.tester import TesterTask, evaluate_tester
from codea1_agents.evaluation.tester_figures import figures_of_tester
from codea1_agents.play.named_agent import NamedAgent
from codea1_env import AgentContext, load_agent, load_problems
from codea1_env.sandbox import load_sandbox

problems, sandbox = load_problems("starter"), load_sandbox("local")
context = AgentContext(problems, sandbox, seed=0)
task = TesterTask(tests=5, max_mutants=10)

for name in ("boundary", "examples"):
    tester = NamedAgent(load_agent(name, context, role="tester"), name)
    records = [record for batch in evaluate_tester(list(problems)[:4], tester, sandbox, task) for record in batch]
    figures = figures_of_tester(records, tests=task.tests).figures
    for measure in ("validity", "mut_fixed@5", "Mul_fixed"):
        found = figures[measure]
        print(f"{name:9} {measure:12} {found.mean:.3f} ({found.low:.3f} to {found.high:.3f})")
