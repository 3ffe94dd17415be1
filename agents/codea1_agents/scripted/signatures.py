"""Reads from a problem's public text how to call its entry point: parameters, their types, example calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from codea1_agents.scripted.input_texts import TEXT_INPUTS, TextInputs
from codea1_agents.scripted.literals import literal
from codea1_agents.scripted.value_types import (
    UNKNOWN,
    Kind,
    ValueType,
    from_annotation,
    join_all,
    of_value,
    refine,
    with_unknown_as,
)
from codea1_env.agent import Info, Observation
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.problems.problem import Problem
from codea1_env.rules.reading.direct_calls import is_call_of

Arguments = tuple[object, ...]
"""The values of one call, in the order of the parameters; trailing ones with defaults may be missing."""

_MAX_HEADER = 2000  # characters; a signature or a call is shorter, and scanning stops here on broken text
_MAX_BRACKETS = 20  # closing brackets tried as the end of a call in prose
_GUESSES = (ValueType(Kind.STR), ValueType(Kind.LIST, (ValueType(Kind.INT),)))
_NAME_HINTS = {
    Kind.STR: ("s", "str", "string", "text", "txt", "word", "sentence", "message", "date", "name"),
    Kind.LIST: ("l", "lst", "list", "arr", "array", "nums", "numbers", "values", "words", "names", "grid", "matrix"),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the entry point."""

    name: str
    type: ValueType = UNKNOWN
    has_default: bool = False
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The header of a function."""

    parameters: tuple[Parameter, ...]
    returns: ValueType = UNKNOWN


@dataclass(frozen=True, slots=True)
class Interface:
    """The entry point with parameter types refined by the examples, and the examples' arguments."""

    entry_point: str
    parameters: tuple[Parameter, ...]
    examples: tuple[Arguments, ...]
    inputs: TextInputs | None = None
    """For programs that are given texts."""

    @property
    def keywords(self) -> tuple[str | None, ...]:
        """The keyword of each argument; None for a positional argument."""
        return tuple(parameter.name if parameter.keyword_only else None for parameter in self.parameters)

    def guesses(self) -> Iterator[Interface]:
        """Yield this interface, then copies with each unknown type replaced by a string, or by a list of integers."""
        yield self
        for guess in _GUESSES:
            known = tuple(replace(p, type=with_unknown_as(p.type, guess)) for p in self.parameters)
            if known != self.parameters:
                yield replace(self, parameters=known)


def read_signature(text: str, entry_point: str) -> Signature | None:
    """Return the signature of the last `def` of the entry point in a text, Python or not; None if there is none.

    The signature of a method does not include `self`.
    """
    name, method = read_entry_point(entry_point)
    headers = re.finditer(rf"\bdef\s+{re.escape(method or name)}\s*\(", text)
    for match in reversed(list(headers)):
        for header in _headers(text[match.start() : match.start() + _MAX_HEADER]):
            try:
                function = ast.parse(f"{header}: ...").body[0]
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            if isinstance(function, ast.FunctionDef):
                parameters = _parameters(function.args)[1 if method else 0 :]
                return Signature(parameters, from_annotation(function.returns))
    return None


def example_calls(examples: str, entry_point: str, signature: Signature | None) -> tuple[Arguments, ...]:
    """Return the literal arguments of each call of the entry point in the examples, without repetition.

    Calls with arguments other than literals, and calls that do not match the signature, are left out.
    """
    nodes = (node for statement in _with_values(example_statements(examples)) for node in ast.walk(statement))
    return _distinct(nodes, entry_point, signature)


def _with_values(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements with the assigned expression in place of each name, as in `xs = [1]`, `f(xs)`."""
    known = _Values()
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known.by_name[name] = known.visit(value)
        yield known.visit(statement)


class _Values(ast.NodeTransformer):
    def __init__(self) -> None:
        self.by_name: dict[str, ast.expr] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.by_name.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def mentioned_calls(text: str, entry_point: str, signature: Signature | None) -> tuple[Arguments, ...]:
    """Return the same for calls anywhere in prose, as in "so that f(3) gives 2"."""
    return _distinct(_nodes_in_prose(text, entry_point), entry_point, signature)


def example_statements(examples: str) -> Iterator[ast.stmt]:
    """Yield the statements of the examples; if they do not parse as a whole, of each line that parses alone."""
    for text in (examples, *examples.splitlines()):
        try:
            module = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        yield from module.body
        if text is examples:
            return


def read_interface(
    entry_point: str, statement: str, examples: str = "", program: str = "", *, kind: str = ""
) -> Interface | None:
    """Return how to call the entry point; None if the number of its arguments is unknown.

    Args:
        entry_point: its name.
        statement: the problem's text; the signature is searched here first.
        examples: asserts, one per line.
        program: the coder's program; its signature is used only if the statement has none.
        kind: the problem's kind; where programs are given texts, only the examples show the format of inputs.
    """
    if kind in TEXT_INPUTS:
        return _text_interface(entry_point, examples, TEXT_INPUTS[kind])
    signature = read_signature(statement, entry_point) or read_signature(program, entry_point)
    calls = example_calls(examples, entry_point, signature) or mentioned_calls(statement, entry_point, signature)
    if signature is None and not calls:
        return None
    parameters = signature.parameters if signature else _unnamed_parameters(calls)
    refined = []
    for position, parameter in enumerate(parameters):
        observed = join_all(of_value(arguments[position]) for arguments in calls if position < len(arguments))
        known = refine(parameter.type, observed)
        refined.append(replace(parameter, type=_named_like(parameter.name) if known == UNKNOWN else known))
    return Interface(entry_point, tuple(refined), calls)


def interface_of(observation: Observation, info: Info) -> Interface | None:
    """Return how to call the observed problem's entry point; None if that is unknown."""
    texts = observation["problem"], observation["examples"], observation["program"]
    return read_interface(observation["entry_point"], *texts, kind=info.get("kind", ""))


def interface_of_problem(problem: Problem) -> Interface | None:
    """Return the same to those who know the solution, whose signature stands in for a program's."""
    texts = problem.statement, "\n".join(problem.examples), problem.solution
    return read_interface(problem.entry_point, *texts, kind=problem.kind)


def _text_interface(entry_point: str, examples: str, inputs: TextInputs) -> Interface | None:
    parameters = tuple(Parameter(name, ValueType(Kind.STR)) for name in inputs.names or ())
    calls = example_calls(examples, entry_point, Signature(parameters) if parameters else None)
    return Interface(entry_point, parameters, calls, inputs) if calls else None


def _headers(text: str) -> Iterator[str]:
    """Yield candidates for the header at the beginning of the text, without its colon.

    The first ends at the colon or the end of the line, the second at the bracket that closes the parameters.
    """
    depth, closed = 0, 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            closed = closed or (position + 1 if depth == 0 else 0)
        elif depth == 0 and character in ":\n":
            yield text[:position]
            break
    yield text[:closed] if closed else text


def _parameters(arguments: ast.arguments) -> tuple[Parameter, ...]:
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    parameters = [
        Parameter(node.arg, from_annotation(node.annotation), has_default=position >= first_default)
        for position, node in enumerate(positional)
    ]
    for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(Parameter(node.arg, from_annotation(node.annotation), default is not None, keyword_only=True))
    return tuple(parameters)


def _unnamed_parameters(calls: Sequence[Arguments]) -> tuple[Parameter, ...]:
    shortest, longest = min(map(len, calls)), max(map(len, calls))
    return tuple(Parameter(f"argument_{i}", has_default=i >= shortest) for i in range(longest))


def _distinct(nodes: Iterable[ast.AST], entry_point: str, signature: Signature | None) -> tuple[Arguments, ...]:
    calls: dict[str, Arguments] = {}
    for node in nodes:
        if is_call_of(node, entry_point):
            try:
                arguments = _bind_arguments(node, signature)
                calls.setdefault(literal(arguments), arguments)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
    return tuple(calls.values())


def _nodes_in_prose(text: str, entry_point: str) -> Iterator[ast.AST]:
    for match in re.finditer(rf"(?<!def )\b{re.escape(entry_point)}\(", text):
        rest = text[match.start() : match.start() + _MAX_HEADER]
        ends = (position for position, character in enumerate(rest) if character == ")")
        for end in islice(ends, _MAX_BRACKETS):
            try:
                yield ast.parse(rest[: end + 1], mode="eval").body
                break
            except (SyntaxError, ValueError):
                continue


def _named_like(name: str) -> ValueType:
    """Guess a type from a parameter's name, for problems without annotations and examples; UNKNOWN if none."""
    words = re.split(r"[_\d]+", name.lower())
    for kind, hints in _NAME_HINTS.items():
        if any(word in hints for word in words):
            return ValueType(kind, (UNKNOWN,) if kind is Kind.LIST else ())
    return UNKNOWN


def _bind_arguments(node: ast.Call, signature: Signature | None) -> Arguments:
    """Return the call's arguments in the order of the parameters.

    Raises:
        ValueError: an argument is not a literal, or they do not match the signature.
    """
    positional = [ast.literal_eval(argument) for argument in node.args]
    if signature is None:
        if node.keywords:
            raise ValueError("keywords need a signature")
        return tuple(positional)
    named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    values: list[object] = []
    for position, parameter in enumerate(signature.parameters):
        if position < len(positional) and not parameter.keyword_only:
            values.append(positional[position])
        elif parameter.name in named:
            values.append(named.pop(parameter.name))
        elif parameter.has_default:
            break
        else:
            raise ValueError(f"no value for {parameter.name}")
    if named or len(positional) > len(values):
        raise ValueError("more arguments than parameters, or a default before a given one")
    return tuple(values)
