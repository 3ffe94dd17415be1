"""The problem source `tiny`: `tiny:train`, `tiny:held-out`, `tiny:unseen`, each also with `-eval` and `rare-`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

from codea1_agents.train.tiny.family import Composition, Split, Variant, answer_of, drawn_inputs, family, mutants
from codea1_agents.train.tiny.inputs import Arguments
from codea1_env.errors import UnknownName
from codea1_env.problems import GoldenCase, Problem, ProblemSet, WrongProgram

N_TRAINING_CASES = 16
N_EVALUATION_CASES = 64
_N_EXAMPLES = 2
_MAX_WRONG_PROGRAMS = 6
_SUBTLE_BELOW = (0.5, 0.25, 0.1)
"""Subtlety rises by one for each of these bounds that is above the share of failing golden tests."""

OPTIONS = tuple(f"{rare}{split.value}{ending}" for rare, split, ending in product(("", "rare-"), Split, ("", "-eval")))


@cache
def load(options: str = "train") -> ProblemSet:
    """Return a generated family of small problems, for language models that learn from scratch: `tiny:train`.

    `options` is `train`, `held-out`, `unseen` or `rest`, the largest part. After it, `-eval` means 64 golden tests,
    other than the usual 16. Before it, `rare-` means wrong programs whose bugs naive inputs do not reach.

    Raises:
        UnknownName: other options.
    """
    if options not in OPTIONS:
        raise UnknownName.of("option of the problems 'tiny'", options, OPTIONS)
    variant = Variant.RARE if options.startswith("rare-") else Variant.PLAIN
    is_evaluation = options.endswith("-eval")
    split = Split(options.removeprefix("rare-").removesuffix("-eval"))
    found = tuple(problem_of(each, variant, is_evaluation=is_evaluation) for each in family()[split])
    return ProblemSet(f"tiny:{options}", found)


def problem_of(composition: Composition, variant: Variant, *, is_evaluation: bool = False) -> Problem:
    """Return a composition as a problem of the game; training, evaluation and examples share no input."""
    n_all = _N_EXAMPLES + N_TRAINING_CASES + N_EVALUATION_CASES
    inputs = drawn_inputs(composition, n_all, "golden", is_narrow=variant is Variant.RARE)
    cases = [_case(composition.solution, arguments) for arguments in inputs]
    first = _N_EXAMPLES + N_TRAINING_CASES if is_evaluation else _N_EXAMPLES
    used = slice(first, n_all if is_evaluation else first + N_TRAINING_CASES)
    return Problem(
        id=f"tiny/{composition.statement}",
        statement=composition.statement,
        entry_point="f",
        solution=composition.solution,
        golden=tuple(cases[used]),
        examples=tuple(f"assert {case.expression} == {case.expected}" for case in cases[:_N_EXAMPLES]),
        source="codea1-env",
        licence="Apache-2.0",
        wrong_programs=_wrong_programs(mutants(composition, variant), variant, inputs[used], cases[used]),
    )


def _case(solution: str, arguments: Arguments) -> GoldenCase:
    expected = answer_of(solution, arguments)
    assert expected is not None
    return GoldenCase(f"f({', '.join(map(repr, arguments))})", expected)


def _wrong_programs(
    programs: Sequence[str], variant: Variant, inputs: Sequence[Arguments], cases: Sequence[GoldenCase]
) -> tuple[WrongProgram, ...]:
    found = [(each, _failing_share(each, inputs, cases)) for each in programs]
    found = [each for each in found if each[1]]
    step = max(1, len(found) // _MAX_WRONG_PROGRAMS)
    note = "Is wrong at one value, or beyond one length." if variant is Variant.RARE else "One part of it is wrong."
    return tuple(
        WrongProgram(program, note, 1 + sum(share < bound for bound in _SUBTLE_BELOW))
        for program, share in found[::step][:_MAX_WRONG_PROGRAMS]
    )


def _failing_share(program: str, inputs: Sequence[Arguments], cases: Sequence[GoldenCase]) -> float:
    wrong = sum(answer_of(program, each) != case.expected for each, case in zip(inputs, cases, strict=True))
    return wrong / len(cases)
