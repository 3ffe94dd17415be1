"""Export a tester's confirmed tests as golden tests of a problem set, in the training layout of the Code-A1 release."""

import tempfile
from pathlib import Path

from codea1_agents.evaluation.export import export_tests, write_rows
from codea1_agents.play.named_agent import NamedAgent
from codea1_env import AgentContext, load_agent, load_problems
from codea1_env.sandbox import load_sandbox

problems, sandbox = load_problems("starter"), load_sandbox("local")
context = AgentContext(problems, sandbox, seed=0)
tester = NamedAgent(load_agent("boundary", context, role="tester"), "boundary")
exported = export_tests(list(problems)[:6], tester, sandbox)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "tests.jsonl"
    write_rows(path, exported.rows)
    print(f"{exported.n_tests} tests of {len(exported.rows)} problems, left out: {dict(exported.rejections)}")
    for problem in load_problems(str(path)):
        print(f"{problem.id}: {len(problem.golden)} golden tests")
