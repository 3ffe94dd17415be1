"""Analyses Python source from datasets: whether it parses, and what it imports, defines and calls."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from difflib import get_close_matches

from codea1_env import python_text
from codea1_env.errors import BrokenInput
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.submissions import RejectionReason
from codea1_env.python_text import TextBudget, UnreadableError

_FUTURE = re.compile(r"^from __future__ import .*\n?", re.MULTILINE)
_IMPORT_LINE = re.compile(r"^(?:import|from)\s+\w.*$", re.MULTILINE)


def parse(source: str, what: str) -> ast.Module:
    """Return the syntax tree.

    Raises:
        BrokenInput: the source is not Python, or costs more than a row may; the message calls it `what` and names the
            line.
    """
    try:
        return python_text.parse(source, TextBudget.of_row())
    except UnreadableError as error:
        where = "" if error.line is None else f" (line {error.line})"
        fault = "takes too long to read" if error.reason is RejectionReason.TOO_LONG else "is not Python"
        raise BrokenInput(f"{what} {fault}: {error.detail}{where}") from error


def require_expression(source: str, what: str) -> None:
    """Check that a source is one expression.

    Raises:
        BrokenInput: it is not; the message calls it `what` and names the line.
    """
    tree = parse(source.strip(), what)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        raise BrokenInput(f"{what} is not one expression")


def unparse(node: ast.AST) -> str:
    """Return a tree as text.

    Raises:
        BrokenInput: it is nested too deeply.
    """
    try:
        return ast.unparse(node)
    except RecursionError as error:
        raise BrokenInput("it is nested too deeply") from error


def join_sources(*sources: str) -> str:
    """Return one program made of several; their imports from `__future__` come first."""
    futures = dict.fromkeys(line.strip() for source in sources for line in _FUTURE.findall(source))
    return "\n".join([*futures, *(_FUTURE.sub("", source).rstrip() for source in sources)]).lstrip() + "\n"


def require_definition(source: str, name: str, what: str, *, owner: str = "the solution") -> None:
    """Check that a source is a program that could define `name`: a function, or a class and its method.

    A program without an entry point, which defines nothing, has the name "".

    Raises:
        BrokenInput: it is not a program (the message calls it `what`), or nothing in it binds the name (`owner`).
    """
    tree = require_program(source, what)
    for part in filter(None, read_entry_point(name)):
        if not _binds(tree, part):
            near = get_close_matches(part, functions_of(tree), n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise BrokenInput(f"{owner} does not define {part}{hint}")


def require_program(source: str, what: str) -> ast.Module:
    """Return the syntax tree of a program that compiles.

    Raises:
        BrokenInput: it does not; the message calls it `what`.
    """
    tree = parse(source, what)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Finds errors that the grammar allows, such as a return outside a function.
            compile(tree, "<solution>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BrokenInput(f"{what} is not Python: {error}") from error
    return tree


def expression(source: str) -> ast.expr | None:
    """Return the syntax tree of one expression, None if the text is not one."""
    try:
        tree = parse(f"({source}\n)", "")  # parentheses allow several lines; the line break ends a comment
    except BrokenInput:
        return None
    match tree.body:
        case [ast.Expr(value=value)]:
            return value
    return None


def imports_of(source: str) -> str:
    """Return the top-level import statements of a program, or of a problem's statement that does not parse."""
    try:
        tree = parse(source, "")
    except BrokenInput:
        return "\n".join(line for line in _IMPORT_LINE.findall(source) if _parses(line))
    return "\n".join(unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))


def before_function(statement: str, name: str) -> str:
    """Return the text before the last top-level `def name`: imports and helper functions.

    If the function is missing, or the text before it is not a program (prose, a decorator), return only imports.
    """
    definition = re.compile(rf"^(?:async\s+)?def\s+{re.escape(name)}\b", re.MULTILINE)
    starts = [match.start() for match in definition.finditer(statement)]
    before = statement[: starts[-1]] if starts else ""
    return before.rstrip() if starts and _parses(before) else imports_of(before or statement)


def _binds(tree: ast.Module, name: str) -> bool:
    """Return whether running the module could define `name` (by def, class, import or assignment at any depth)."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound) | ast.AsyncFunctionDef(name=bound):
                pass
            case ast.Name(id=bound, ctx=ast.Store()):
                pass
            case ast.alias(name=original, asname=renamed):
                bound = renamed or original
            case _:
                continue
        if bound == name:
            return True
    return False


def functions_of(tree: ast.Module) -> list[str]:
    """Return the names of the top-level functions, in order."""
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def with_declaration(statement: str, solution: ast.Module, name: str) -> str:
    """Return a statement that names the function: its declaration is added if the statement shows neither a call nor
    the quoted name."""
    if re.search(rf"\b{re.escape(name)}\s*\(|[`'\"*]{re.escape(name)}[`'\"*]", statement):
        return statement
    functions = (node for node in solution.body if isinstance(node, ast.FunctionDef) and node.name == name)
    lines = [_declaration(node) for node in functions]
    return "\n\n".join([statement.rstrip(), *lines]) + "\n"


def with_starter_code(statement: str, starter_code: str) -> str:
    """Return a statement that ends with the code with which programs begin, if there is any."""
    return "\n\n".join(filter(None, (statement.strip(), starter_code.rstrip())))


def _declaration(function: ast.FunctionDef) -> str:
    bare = ast.FunctionDef(function.name, function.args, [ast.Pass()], [], function.returns, lineno=1)
    return unparse(bare).partition("\n")[0]


def functions_of_text(source: str) -> list[str]:
    """Return the names of the top-level functions of a text; none if it is not a program."""
    return functions_of(parse(source, "")) if _parses(source) else []


def calls_of(tree: ast.AST) -> Counter[str]:
    """Return how often each plain name is called, and each method of a new instance (`Solution().two_sum`)."""
    return Counter(called_name(node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def called_name(node: ast.Call) -> str:
    """Return the name under which a call calls a function or a method of a new instance; empty for other calls."""
    match node.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[]), attr=method):
            return f"{name}().{method}"
    return ""


def literal(node: ast.expr) -> bool:
    """Return whether the expression is a literal, without names."""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def whole_solution(statement: str, code: str, entry_point: str) -> str:
    """Return the program that defines the entry point: `code` itself, or `statement` with `code` as the body.

    Raises:
        BrokenInput: neither is a program that can define it.
    """
    if _parses(code) and _binds(parse(code, ""), read_entry_point(entry_point).name):
        return code
    solution = statement + code
    require_definition(solution, entry_point, "the statement with the solution's body")
    return solution


def _parses(source: str) -> bool:
    try:
        parse(source, "")
    except BrokenInput:
        return False
    return True
