"""The calls of the entry point that a case makes, in canonical form, so that equal calls have equal texts.

`f(17)`, `f(n=17)`, `f(34 // 2)` and `[f(i) for i in [17]]` make the same call. So does `f(17, None)` if None is the
solution's default. The calls of a direct case are read from its text. The calls of any other case are those that it
made in the solution's run.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codea1_env import values
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.submissions import TestCase
from codea1_env.facts.verdicts import EntryPointCall
from codea1_env.python_text import UnreadableError, parse, remembered_up_to
from codea1_env.rules.reading.effects import defaults_of
from codea1_env.rules.reading.literals import LiteralError, encoded_literal
from codea1_env.values import tree

_BINDS_NAMES = re.compile(r"\b(?:for|lambda)\b|:=")
_MUTABLE_TAGS = frozenset("sdqBnk")


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, which is cheap
class CanonicalCalls:
    """The canonical form of the calls of one problem's entry point."""

    entry_point: str
    parameters: tuple[str, ...]
    """Names of the solution's positional parameters, in order; empty where its text does not show them."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """By parameter, the source of those defaults of the solution that are literals."""
    passed_by_default: Mapping[str, str] = field(default_factory=dict)
    """By parameter, what its default passes, as in `passed_arguments`."""
    default_endings: tuple[str, ...] = ()
    """The endings of calls whose last argument may be such a default; other calls need not be parsed."""
    same_input: Callable[[str], str] | None = None
    """For programs that run anew for each call, see `Programs.same_input`."""

    @classmethod
    def of_script(cls, entry_point: str, same_input: Callable[[str], str] | None) -> CanonicalCalls:
        """Return the canonical form for programs that run anew for each call."""
        return cls(entry_point, (), default_endings=(")",) if same_input else (), same_input=same_input)

    @classmethod
    @remembered_up_to(16_384)
    def of(cls, solution: str, entry_point: str) -> CanonicalCalls:
        """Return the canonical form for a problem's entry point."""
        parameters = parameters_of(solution, entry_point)
        if parameters is None:
            return cls(entry_point, ())
        positional = [*parameters.posonlyargs, *parameters.args]
        defaults = defaults_of(parameters)
        known = {argument.arg: text for argument, node in defaults if (text := _literal(node)) is not None}
        passed = {argument.arg: _content(node) for argument, node in defaults if argument.arg in known}
        default_endings = tuple(f"{text})" for text in known.values())
        return cls(entry_point, tuple(argument.arg for argument in positional), known, passed, default_endings)

    def of_case(
        self, case: TestCase, record: Sequence[EntryPointCall] = (), *, sees_arguments: bool = False
    ) -> tuple[str, ...]:
        """Return the distinct calls that a case makes of the solution; empty if they are not known.

        Args:
            case: a case of the strict reading.
            record: its calls in the solution's run; empty for a direct case.
            sees_arguments: whether the case also tests how a call changes its arguments. Its calls then differ from
                those of a direct case.
        """
        if case.direct:
            return (self._positional(case.calls[0] if case.calls else case.expression),)
        if not record:
            return tuple(map(self._positional, case.calls))
        calls = dict.fromkeys(self._read_record(call.arguments) for call in record)
        if sees_arguments:
            calls.update(dict.fromkeys([*map(with_arguments, calls)]))
        return tuple(calls)

    def _positional(self, call: str) -> str:
        """Return a call with literal arguments, whose keyword arguments are positional where the solution allows it."""
        ends_with_default = call.endswith(self.default_endings)
        if "=" not in call and not ends_with_default:  # most calls
            return call
        try:
            (statement,) = parse(call).body
        except UnreadableError:
            return call
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
            return call
        if isinstance(statement.value.func, ast.Call):  # a call of a returned function
            return call
        keywords = {keyword.arg or "**": keyword.value for keyword in statement.value.keywords}
        return self._write(statement.value.args, keywords) if keywords or ends_with_default else call

    def _read_record(self, arguments: bytes) -> str:
        try:
            source = values.to_source(arguments)
        except values.Malformed:
            source = None
        text = "" if source is None else source.expression
        if text.startswith("((") and text.endswith("), {})"):
            call = f"{self.entry_point}({text[2:-6].removesuffix(',')})"
            if not call.endswith(self.default_endings):
                return call
        if not text:
            return repr(arguments)
        try:
            (statement,) = parse(text).body
        except UnreadableError:
            return repr(arguments)
        match statement:
            case ast.Expr(value=ast.Constant(value=str() as source_call)):
                return self._positional(source_call)
            case ast.Expr(value=ast.Tuple(elts=[ast.Tuple(elts=args), ast.Dict(keys=names, values=given)])):
                keywords = {
                    str(name.value): value
                    for name, value in zip(names, given, strict=True)
                    if isinstance(name, ast.Constant)
                }
                return self._write(args, keywords)
        return repr(arguments)

    def _write(self, args: Sequence[ast.expr], keywords: Mapping[str, ast.expr]) -> str:
        """Return the shortest form of a call: omit arguments that equal a default, unless another argument follows."""
        texts = [
            repr(self.same_input(each.value))
            if self.same_input and isinstance(each, ast.Constant) and isinstance(each.value, str)
            else ast.unparse(each)
            for each in args
        ]
        named = {name: ast.unparse(value) for name, value in keywords.items()}
        given = {**self.defaults, **named}
        for name in self.parameters[: len(args)]:
            given.pop(name, None)
        for name in self.parameters[len(args) :]:
            if name not in given:
                break
            texts.append(given.pop(name))
        while 0 < len(texts) <= len(self.parameters) and texts[-1] == self.defaults.get(
            self.parameters[len(texts) - 1]
        ):
            texts.pop()
        texts += [f"{name}={value}" for name, value in sorted(given.items()) if value != self.defaults.get(name)]
        return f"{self.entry_point}({', '.join(texts)})"


_READ_AFTER = " and its arguments"
_MAX_PARSED = 4096  # characters: keys that collide cost quadratic time


def with_arguments(call: str) -> str:
    """Return the canonical form of a call whose arguments are read after it."""
    return call + _READ_AFTER


@remembered_up_to(1024)
def passed_arguments(call: str, canonical: CanonicalCalls | None) -> str:
    """Return what a call passes to each parameter, with the defaults of those to which it passes nothing.

    Two calls pass the same if they differ in types only: `2.0` for 2 or True for 1, a tuple or a set for a list. An
    argument that is no literal is its text.

    Args:
        call: from `calls_of`.
        canonical: as for `calls_of`; None: names of parameters and defaults are not known.
    """
    text = call.removesuffix(_READ_AFTER)
    try:
        body = parse(text).body if len(text) <= _MAX_PARSED else []
    except UnreadableError:  # the text of a value that has no source
        return call
    match body:
        case [ast.Expr(value=ast.Call(func=ast.Name() | ast.Attribute(), args=args, keywords=keywords))]:
            known = canonical or CanonicalCalls("", ())
            names = map(str, itertools.chain(known.parameters, itertools.count()))
            given = [*zip(names, args, strict=False), *((str(keyword.arg), keyword.value) for keyword in keywords)]
            passed = {**known.passed_by_default, **{name: _content(node) for name, node in given}}
            return f"{sorted(passed.items())}{call[len(text) :]}"
    return call


def _content(node: ast.expr) -> str:
    try:
        return repr(_without_types(tree.parse(encoded_literal(node))))
    except (LiteralError, values.Malformed):
        return ast.unparse(node)


def _without_types(node: Any) -> Any:
    """Return a tree with numbers as integers where they are whole, and tuples and sets as lists."""
    match node:
        case bool() | float():
            return int(node) if node == int(node) else node
        case tree.Tagged("s" | "z", items):
            plain = map(_without_types, items)
            return sorted(plain, key=lambda item: (item if isinstance(item, int | float) else math.inf, repr(item)))
        case list(items) | tree.Tagged("t", items):
            return list(map(_without_types, items))
        case tree.Tagged("d", items):
            return "d", sorted(map(_without_types, items), key=repr)
    return node


def calls_of(
    case: TestCase,
    canonical: CanonicalCalls | None,
    record: Sequence[EntryPointCall] = (),
    *,
    sees_arguments: bool = False,
) -> tuple[str, ...]:
    """Return the calls of a case: in canonical form, or as the case writes them if `canonical` is None."""
    if canonical is not None:
        return canonical.of_case(case, record, sees_arguments=sees_arguments)
    return (case.expression,) if case.direct else case.calls


def may_see_arguments(expression: str, record: Iterable[EntryPointCall]) -> bool:
    """Whether an expression can read an argument after a call: it binds names, and a call has a mutable argument."""
    return _BINDS_NAMES.search(expression) is not None and any(
        _has_mutable_arguments(call.arguments) for call in record
    )


def _has_mutable_arguments(arguments: bytes) -> bool:
    try:
        node = tree.parse(arguments)
    except values.Malformed:
        return True
    match node:
        case str():  # the text of a closed call, whose arguments no test can read
            return False
        case tree.Tagged("t", [args, tree.Tagged("d", named)]):
            return _is_mutable(args) or any(_is_mutable(value) for _, value in named)
    return True


def _is_mutable(node: Any) -> bool:
    if type(node) is not tree.Tagged:
        return type(node) is list
    return node.tag in _MUTABLE_TAGS or (node.tag == "t" and any(map(_is_mutable, node.payload)))


def parameters_of(solution: str, entry_point: str) -> ast.arguments | None:
    """Return the parameters of the only definition of a function; None if other code may rebind or wrap it."""
    try:
        tree_of_solution = parse(solution)
    except UnreadableError:
        return None
    name, method = read_entry_point(entry_point)
    definitions = [node for node in ast.walk(tree_of_solution) if name in _names_bound(node)]
    match definitions:
        case [ast.ClassDef(decorator_list=[], bases=[], keywords=[], body=body) as owner] if method:
            functions = [node for node in body if method in _names_bound(node)]
            return _without_self(_parameters_of(functions)) if owner in tree_of_solution.body else None
        case [function] if not method and function in tree_of_solution.body:
            return _parameters_of(definitions)
    return None


def fits(parameters: ast.arguments, arguments: bytes) -> bool:
    """Whether Python can bind the encoded pair of positional and keyword arguments to parameters."""
    try:
        node = tree.parse(arguments)
    except values.Malformed:
        return True
    match node:
        case tree.Tagged("t", [tree.Tagged("t", args), tree.Tagged("d", named)]):
            names = {name for name, _ in named}
        case _:  # the text of a closed call
            return True
    positional = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    by_name = {each.arg for each in (*parameters.args, *parameters.kwonlyargs)}
    required = set(positional[: len(positional) - len(parameters.defaults)])
    keyword_only = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    required |= {each.arg for each, default in keyword_only if default is None}
    filled = set(positional[: len(args)])
    too_many = len(args) > len(positional) and parameters.vararg is None
    unknown = not names <= by_name and parameters.kwarg is None
    return not (too_many or unknown or filled & names or required - filled - names)


def _parameters_of(definitions: Sequence[ast.AST]) -> ast.arguments | None:
    match definitions:
        case [ast.FunctionDef(decorator_list=[], args=parameters)]:
            return None if parameters.posonlyargs and parameters.kwarg else parameters
    return None


def _without_self(parameters: ast.arguments | None) -> ast.arguments | None:
    if parameters is None or not parameters.args or parameters.posonlyargs:
        return None
    if len(parameters.defaults) == len(parameters.args):  # a default for self
        return None
    fields = {**dict(ast.iter_fields(parameters)), "args": parameters.args[1:]}
    return ast.arguments(**fields)


def _names_bound(node: ast.AST) -> Sequence[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.alias(name=name, asname=asname):
            return (asname or name,)
    return ()


def _literal(node: ast.expr) -> str | None:
    """Return the source of a default as `_write` formats it; None if it is not a literal."""
    try:
        source = values.to_source(encoded_literal(node))
        return None if source is None else ast.unparse(parse(source.expression).body[0])
    except (LiteralError, UnreadableError):
        return None
