"""Chat messages, and the conversions that some models need. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Speaker = Literal["system", "user", "assistant"]

TURN_OF_USER = "\n### User"
"""What a base model writes when it continues with a turn of the user; its reply ends before this text."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Speaker
    content: str

    def to_dict(self) -> dict[str, str]:
        """Return the message as chat templates and OpenAI-compatible endpoints expect it."""
        return {"role": self.role, "content": self.content}


def merged(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join consecutive messages of one role by a blank line, since many chat templates require alternating roles."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role:
            message = Message(message.role, f"{found.pop().content}\n\n{message.content}")  # noqa: PLW2901
        found.append(message)
    return tuple(found)


def folded_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Prepend the system message to the user's message, for models without a system role."""
    return merged(Message("user", each.content) if each.role == "system" else each for each in messages)


def plain_text(messages: Sequence[Message]) -> str:
    """Return the chat as text that ends where the assistant's reply begins, for models without a chat template."""
    turns = [f"### {each.role.capitalize()}\n{each.content}\n" for each in messages]
    return "\n".join([*turns, "### Assistant\n"])
