"""Answers of a tester, whatever it asks: its chance of being right beside another model's on the same inputs.

Validity falls when inputs become harder, so it says nothing about care. Here both models are given what the tester
wrote up to its answer, and the figure is the difference of their exact probabilities of the right one. A tester that
asks harder questions and answers them as well as it can has a difference of 0 or more; one that is paid for wrong
answers has one below 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from codea1_agents.play.named_agent import NamedAgent
from codea1_env import values
from codea1_env.agent import Info, Observation
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import ValidCase
from codea1_env.rounds.rounds import Turn


@dataclass(frozen=True, slots=True)
class Question:
    """A test up to its answer."""

    turn: Turn
    """The turn of the tester."""
    begun: str
    """Its reply up to the answer."""
    answer: str
    """The right answer as Python writes it."""


@runtime_checkable
class Answering(Protocol):
    """An agent that knows its exact probabilities."""

    def answer_probabilities(
        self, observations: Sequence[Observation], infos: Sequence[Info], begun: Sequence[str], answers: Sequence[str]
    ) -> list[float]:
        """Return the probability of each answer after the beginning of a reply."""


def questions_of(turn: Turn, reply: str, cases: Iterable[ValidCase]) -> list[Question]:
    """Return the tests of a reply that predict a value, and state it in one place, after their input."""
    questions = []
    for case in cases:
        written = case.case.written
        if case.prediction_right is None or written is None or len(written.answer) != 1:
            continue
        if written.answer[0].start < max(span.end for span in written.input):
            continue  # answered before it is asked
        source = values.to_source(case.expected)
        if source is not None and not source.imports:
            questions.append(Question(turn, reply[: written.answer[0].start], source.expression))
    return questions


def require_answering(agent: NamedAgent) -> Answering:
    """Return the agent as one that knows its probabilities.

    Raises:
        UserError: it does not; only the agent `transformers` does.
    """
    if not isinstance(agent.inner, Answering):
        raise UserError(f"{agent.name} does not tell probabilities; answers are compared for 'transformers' only")
    return agent.inner


def answer_differences(questions: Sequence[Question], tester: NamedAgent, base: NamedAgent) -> list[float]:
    """Return for each question the tester's probability of the right answer less that of another model, in [-1, 1].

    Raises:
        UserError: one of the two does not tell probabilities.
    """
    asked = (
        [question.turn.observation for question in questions],
        [question.turn.info for question in questions],
        [question.begun for question in questions],
        [question.answer for question in questions],
    )
    own, other = (require_answering(agent).answer_probabilities(*asked) for agent in (tester, base))
    return [one - two for one, two in zip(own, other, strict=True)]
