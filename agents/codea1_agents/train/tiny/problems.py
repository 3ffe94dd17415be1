"""The problem source `tiny`: `tiny:train`, `tiny:rare-held-out`, `tiny:deep-rare-unseen-eval` and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from typing import Literal, TypeAlias, get_args

from codea1_agents.train.tiny.family import (
    VERSION,
    Composition,
    Split,
    Variant,
    answer_of,
    drawn_inputs,
    drawn_probes,
    family,
    mutants,
)
from codea1_agents.train.tiny.inputs import Arguments
from codea1_env.errors import UnknownName
from codea1_env.problems import GoldenCase, Problem, ProblemSet, WrongProgram

N_TRAINING_CASES = 16
N_NAIVE_CASES = 3
N_EVALUATION_CASES = {variant: 256 if variant.is_deep else 64 for variant in Variant}
_N_EXAMPLES = 2
_MAX_WRONG_PROGRAMS = 6
_SUBTLE_BELOW = (0.5, 0.25, 0.1)
"""Subtlety rises by one for each of these bounds that is above the share of failing golden tests."""


Golden: TypeAlias = Literal["mixed", "naive3", "eval"]
"""The golden tests of a problem. `mixed`: 16, half of them naive and half edge cases. `naive3`: the first three naive
ones of these. `eval`: 64 other ones of both kinds; of problems of four steps 256, all triggers among them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the family, by name."""

    variant: Variant
    split: Split
    golden: Golden

    @property
    def name(self) -> str:
        """The option of the source."""
        first = "" if self.variant is Variant.PLAIN else f"{self.variant.value}-"
        last = "" if self.golden == "mixed" else f"-{self.golden}"
        return f"{first}{self.split.value}{last}"


_PARTS = {part.name: part for part in (Part(*each) for each in product(Variant, Split, get_args(Golden)))}
OPTIONS = tuple(_PARTS)


@cache
def load(options: str = "train") -> ProblemSet:
    """Return a generated family of small problems, for language models that learn from scratch: `tiny:train`.

    `options` is `train`, `held-out`, `unseen` or `rest`, the largest part. Before it, `rare-` means wrong programs
    whose bugs naive inputs do not reach, and `deep-rare-` or `rarest-` problems of four steps with such bugs. After
    it, `-eval` means other and more golden tests than the usual 16, and `-naive3` three naive ones.

    Raises:
        UnknownName: other options.
    """
    if options not in _PARTS:
        raise UnknownName.of("option of the problems 'tiny'", options, OPTIONS)
    part = _PARTS[options]
    found = tuple(problem_of(each, part.variant, part.golden) for each in family(part.variant)[part.split])
    return ProblemSet(f"tiny:{options}", found)


def problem_of(composition: Composition, variant: Variant, golden: Golden = "mixed") -> Problem:
    """Return a composition as a problem of the game.

    Training, evaluation and examples share no input, but with four steps, where the evaluation has all triggers.
    """
    examples, inputs = _inputs(composition, variant, golden)
    cases = [_case(composition.solution, arguments) for arguments in inputs]
    shown = [_case(composition.solution, arguments) for arguments in examples]
    return Problem(
        id=f"tiny{VERSION}/{composition.statement}",
        statement=composition.statement,
        entry_point="f",
        solution=composition.solution,
        golden=tuple(cases),
        examples=tuple(f"assert {case.expression} == {case.expected}" for case in shown),
        source="codea1-env",
        licence="Apache-2.0",
        wrong_programs=_wrong_programs(composition, variant, inputs, cases),
    )


def _inputs(
    composition: Composition, variant: Variant, golden: Golden
) -> tuple[Sequence[Arguments], Sequence[Arguments]]:
    """Return the inputs of the examples, and of the golden tests."""
    n_evaluation = N_EVALUATION_CASES[variant]
    is_deep = variant.is_deep
    first = _N_EXAMPLES + N_TRAINING_CASES
    drawn = drawn_inputs(composition, first if is_deep else first + n_evaluation, "golden", is_narrow=variant.is_rare)
    training = drawn[_N_EXAMPLES:first]
    if golden == "naive3":
        return drawn[:_N_EXAMPLES], training[::2][:N_NAIVE_CASES]
    if golden == "mixed":
        return drawn[:_N_EXAMPLES], training
    return drawn[:_N_EXAMPLES], drawn_probes(composition, n_evaluation, "evaluation") if is_deep else drawn[first:]


def _case(solution: str, arguments: Arguments) -> GoldenCase:
    expected = answer_of(solution, arguments)
    assert expected is not None
    return GoldenCase(f"f({', '.join(map(repr, arguments))})", expected)


def _wrong_programs(
    composition: Composition, variant: Variant, inputs: Sequence[Arguments], cases: Sequence[GoldenCase]
) -> tuple[WrongProgram, ...]:
    """Return some mutants that fail a golden test, in a random order."""
    found = [(each, _failing_share(each, inputs, cases)) for each in mutants(composition, variant)]
    found = [each for each in found if each[1]]
    note = "Is wrong at few inputs." if variant.is_rare else "One part of it is wrong."
    chosen = Random(f"wrong/{composition.statement}").sample(found, min(len(found), _MAX_WRONG_PROGRAMS))
    return tuple(
        WrongProgram(program, note, 1 + sum(share < bound for bound in _SUBTLE_BELOW)) for program, share in chosen
    )


def _failing_share(program: str, inputs: Sequence[Arguments], cases: Sequence[GoldenCase]) -> float:
    wrong = sum(answer_of(program, each) != case.expected for each, case in zip(inputs, cases, strict=True))
    return wrong / len(cases)
