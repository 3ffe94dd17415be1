"""A chat endpoint that plays both roles, and the Python of an adapter's page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.chat_server import FaultyServer, chat_servers, completion
from tests.support.code_blocks import blocks_of


@pytest.fixture
def chat_server() -> Iterator[Callable[[Callable[[str], str]], FaultyServer]]:
    """Start an endpoint of chat completions whose replies are a function of the last message of the user."""
    with chat_servers() as begin:

        def start(reply: Callable[[str], str]) -> FaultyServer:
            def behaviour(handler: Any, body: dict[str, Any]) -> None:
                content = body["messages"][-1]["content"]
                text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                handler.send(200, json.dumps(completion(reply(text))))

            return begin(behaviour)

        yield start


@pytest.fixture
def broken_sandbox_name() -> str:
    """What names it, for adapters that take a name."""
    return "tests.conftest:broken"


def python_of(page: str) -> str:
    """Return the Python of an adapter's page; what it needs is there."""
    blocks = blocks_of(ROOT / "docs" / "adapters" / f"{page}.md")
    found = [block.code for block in blocks if block.language == "python"]
    assert found
    return "\n".join(found)
