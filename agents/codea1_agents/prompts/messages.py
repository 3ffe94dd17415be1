"""Chat messages, and the forms that some models need them in. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Speaker = Literal["system", "user", "assistant"]

TURN_OF_USER = "\n### User"
"""What a base model writes when it goes on to play the user; its reply ends before it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Speaker
    content: str

    def to_dict(self) -> dict[str, str]:
        """Return the mapping that chat templates and OpenAI-compatible endpoints take."""
        return {"role": self.role, "content": self.content}


def merged(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join neighbours of one role by a blank line, since many chat templates insist on alternation."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role:
            message = Message(message.role, f"{found.pop().content}\n\n{message.content}")  # noqa: PLW2901
        found.append(message)
    return tuple(found)


def folded_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Make the system's message the beginning of the user's, for models that know no system role."""
    return merged(Message("user", each.content) if each.role == "system" else each for each in messages)


def plain_text(messages: Sequence[Message]) -> str:
    """Return the chat as text that ends where the assistant begins, for models without a chat template."""
    turns = [f"### {each.role.capitalize()}\n{each.content}\n" for each in messages]
    return "\n".join([*turns, "### Assistant\n"])
