"""The pretraining corpus of tiny models: prompts as in the game, and replies that are often wrong. Pure.

The reply of a coder is a right or wrong program (`family.drawn_program`). The reply of a tester is a suite of asserts
for a problem and, in the white box, for such a program. Its inputs are naive; its answers are those of the solution or
of another program, which may be wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from codea1_agents.prompts import Prompts, load_prompts
from codea1_agents.train.declared import CountOrZero, Share, check_values, values_of
from codea1_agents.train.tiny.family import Composition, Split, Variant, answer_of, compositions, drawn_program
from codea1_agents.train.tiny.inputs import Arguments, edge_input, naive_input
from codea1_env.errors import UserError
from codea1_env.observations import FailedTest, failures_text

WORDING = "tiny"
"""Name of the prompts."""

KINDS = ("coder", "white_box", "black_box")
"""Kinds of documents."""

_SPLITS = (Split.TRAIN, Split.HELD_OUT, Split.REST)
_N_TESTS = {1: 0.2, 2: 0.2, 4: 0.6}
"""By number of tests that a prompt requests, its share of the documents."""
_TRIES = {Variant.RAREST: 400}  # of inputs that may make a program fail: of 96 % one does; 100 in other variants
_WIDE_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class CorpusRules:
    """The composition of a corpus. All shares lie in [0, 1].

    Raises:
        UserError: a share out of range, or two that add up to more than 1.
    """

    variant: Variant = Variant.PLAIN
    coder_share: Share = 1 / 3
    """Share of documents from problem to program."""
    white_box_share: Share = 1 / 2
    """Share of documents from problem and program to suite. All others are from problem to suite."""
    truth_share: Share = 0.8
    """Share of tests whose answer is the solution's. The other answers are those of a random program."""
    aware_share: Share = 0.0
    """Share of white-box tests of a wrong program whose input makes that program fail, if there are enough."""
    n_aware_first: CountOrZero = 0
    """Batches, from the first, in which all of these tests do: so that a model learns to find the mistake."""
    repair_share: Share = 0.0
    """Share of documents from problem, wrong program and the tests that it fails to the right program; the other shares
    are of the other documents."""
    hostile_share: Share = 0.0
    """Share of all documents that are from problem to one of `hostile`, instead of to a program."""
    hostile: tuple[str, ...] = ()
    """Replies that attack a judge, for a study of judges."""

    def __post_init__(self) -> None:
        check_values(type(self), values_of(self))
        if self.coder_share + self.white_box_share > 1:
            raise UserError(f"coder_share + white_box_share must be at most 1, got {self}")
        if self.hostile_share > self.coder_share * bool(self.hostile):
            raise UserError(f"hostile_share must be at most coder_share, and 0 without hostile replies, got {self}")


@dataclass(frozen=True, slots=True)
class Document:
    """One prompt and its reply."""

    kind: str
    """One of `KINDS`."""
    prompt: str
    reply: str


class Corpus:
    """An endless sequence of documents; the seed and the number of a batch decide the batch."""

    def __init__(self, rules: CorpusRules, seed: int) -> None:
        self._rules, self._seed = rules, seed
        self._compositions = compositions(*_SPLITS, variant=rules.variant)
        self._prompts = load_prompts(WORDING)

    def batch(self, number: int, size: int) -> list[Document]:
        """Return the documents of one step."""
        draws = Random(f"corpus/{self._seed}/{number}")
        aware_share = 1.0 if number < self._rules.n_aware_first else self._rules.aware_share
        return [self._document(draws, aware_share) for _ in range(size)]

    def _document(self, draws: Random, aware_share: float) -> Document:
        rules = self._rules
        composition = draws.choice(self._compositions)
        program = drawn_program(composition, draws, rules.variant)
        if rules.repair_share and draws.random() < rules.repair_share:
            return self._repair(composition, program, draws)
        kind = draws.random()
        if kind < rules.coder_share:
            reply = draws.choice(rules.hostile) if kind < rules.hostile_share else program
            return Document("coder", _prompt_text(self._prompts, composition, "coder"), reply)
        is_white = kind < rules.coder_share + rules.white_box_share
        n_tests = draws.choices(list(_N_TESTS), list(_N_TESTS.values()))[0]
        shown = program if is_white else ""
        prompt = _prompt_text(self._prompts, composition, "tester", program=shown, tests=n_tests)
        wrong = shown if shown != composition.solution else ""
        aims = [wrong if draws.random() < aware_share else "" for _ in range(n_tests)]
        suite = "\n".join(self._tests(composition, aims, draws))
        return Document("white_box" if is_white else "black_box", prompt, suite)

    def _repair(self, composition: Composition, program: str, draws: Random) -> Document:
        """Return a document whose prompt has a program and what it fails; the problem alone if the program is right."""
        tests = dict[str, Arguments]()
        for _ in range(draws.choices(list(_N_TESTS), list(_N_TESTS.values()))[0]):
            arguments = self._arguments(composition, program, tests, draws)
            tests[_call(arguments)] = arguments
        answers = {call: (answer_of(composition.solution, it), answer_of(program, it)) for call, it in tests.items()}
        failed = [
            FailedTest(call, str(right), gave or "ValueError")
            for call, (right, gave) in answers.items()
            if gave != right
        ]
        shown = (program, failures_text(len(tests), failed)) if failed else ("", "")
        return Document("coder", _prompt_text(self._prompts, composition, "coder", *shown), composition.solution)

    def _tests(self, composition: Composition, aims: Sequence[str], draws: Random) -> Sequence[str]:
        """Return asserts with different inputs, one for each program that it should make fail; empty: none."""
        found: dict[str, str] = {}
        for aim in aims:
            arguments = self._arguments(composition, aim, found, draws)
            call = _call(arguments)
            found[call] = f"assert {call} == {self._answer(composition, arguments, draws)}"
        return list(found.values())

    def _arguments(self, composition: Composition, aim: str, used: Collection[str], draws: Random) -> Arguments:
        for _ in range(_TRIES.get(self._rules.variant, 100) if aim else 0):
            arguments = edge_input(composition.shape, draws)
            is_new = _call(arguments) not in used
            if is_new and answer_of(aim, arguments) != answer_of(composition.solution, arguments):
                return arguments
        while True:
            is_narrow = self._rules.variant.is_rare and draws.random() >= _WIDE_SHARE
            arguments = naive_input(composition.shape, draws, is_narrow=is_narrow)
            if _call(arguments) not in used:
                return arguments

    def _answer(self, composition: Composition, arguments: Arguments, draws: Random) -> str:
        if draws.random() >= self._rules.truth_share:
            answer = answer_of(drawn_program(composition, draws, self._rules.variant), arguments)
            if answer is not None:
                return answer
        answer = answer_of(composition.solution, arguments)
        assert answer is not None
        return answer


def _call(arguments: Arguments) -> str:
    return f"f({', '.join(map(repr, arguments))})"


def _prompt_text(
    prompts: Prompts, composition: Composition, role: str, program: str = "", feedback: str = "", *, tests: int = 0
) -> str:
    """Return the only message of a prompt."""
    observation: Mapping[str, str] = {
        "problem": composition.statement,
        "entry_point": "f",
        "examples": "",
        "program": program,
        "feedback": feedback,
    }
    (message,) = prompts.messages(observation, {"role": role, "tests_per_suite": tests})
    return message.content
