"""Makes an agent of a tiny model."""

from __future__ import annotations

from pathlib import Path

from codea1_agents.play.named_agent import NamedAgent
from codea1_env.agent import AgentContext, load_agent
from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Sandbox

_MAX_TOKENS = {"coder": 56, "tester": 96}
_SAMPLING = "prompts=tiny,temperature=1,top_p=1,batch_size=256,device=cpu"


def tiny_agent(role: str, model: Path, problems: ProblemSet, sandbox: Sandbox, seed: int) -> NamedAgent:
    """Return a tiny model in a role; it samples as in training."""
    spec = f"transformers,model={model},max_tokens={_MAX_TOKENS[role]},{_SAMPLING}"
    return NamedAgent(load_agent(spec, AgentContext(problems, sandbox, seed)), f"{role} {model}", seed=seed)
