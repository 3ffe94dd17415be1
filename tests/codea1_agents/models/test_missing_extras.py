from __future__ import annotations

import sys

import pytest

from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import MissingExtra, install_line


@pytest.mark.parametrize(
    ("agent", "package"), [("openai", "openai"), ("transformers", "torch"), ("transformers", "transformers")]
)
def test_without_its_package_an_agent_tells_the_line_that_installs_it(agent, package, monkeypatch, toys, sandbox):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as caught:
        load_agent(f"{agent},model=x", AgentContext(toys, sandbox))
    assert str(caught.value).endswith(install_line(f"codea1-env[{agent}]"))
