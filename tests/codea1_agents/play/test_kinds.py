from __future__ import annotations

import pytest

from codea1_env import AgentContext, code_a1_v0, load_agent
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox
from tests.support import argv_problems

pytestmark = pytest.mark.slow

CODERS = ["reference", "mutant", "random"]
TESTERS = ["fuzz", "boundary", "examples", "invalid"]


@pytest.mark.parametrize(
    ("source", "kind"),
    [("starter:stdin", "stdin"), ("starter:methods", "method"), (argv_problems.SOURCE, "command_line")],
)
@pytest.mark.parametrize(("coder", "tester"), [*((c, "fuzz") for c in CODERS), *(("mutant", t) for t in TESTERS)])
def test_every_agent_plays_each_kind(source: str, kind: str, coder: str, tester: str, sandbox: Sandbox) -> None:
    problems = load_problems(source, limit=2)
    env = code_a1_v0.env(problems=problems, sandbox=sandbox)
    context = AgentContext(problems, sandbox)
    agents = {"coder_0": load_agent(coder, context), "tester_0": load_agent(tester, context)}
    verdicts, valid = set(), 0
    for episode in range(2):
        env.reset(seed=episode)
        for name in env.agent_iter():
            observation, _, terminated, truncated, info = env.last()
            assert info["kind"] == kind
            if "verdict" in info:
                verdicts.add(info["verdict"])
                valid += info["new_tests"]
            env.step(None if terminated or truncated else agents[name].act(observation, info))
    assert verdicts == {"passed"}
    assert (valid > 0) is (tester != "invalid")
