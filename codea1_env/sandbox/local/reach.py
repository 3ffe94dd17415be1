"""Which programs may get all calls of a job at once: those that cannot see a call before they must answer it.

The calls of a job lie in the memory of the program's process. A program that reaches the frames above it, all objects
of the garbage collector, the process's memory or its descriptors could read the later ones, and one test's input is
often another one's answer. A program whose syntax shows that it reaches none of these gets all calls at once, which is
quicker; every other one gets each call after its previous answer (`Execution`). What a program remembers of earlier
calls it may use in either case.

The lists are of what is harmless; a program that uses anything else merely gets its calls one by one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from codea1_env.facts.submissions import RejectionReason
from codea1_env.python_text import TextBudget, UnreadableError, parse, remembered_up_to

_PARSING_US = 100_000  # a longer program is not parsed here, but gets its calls one by one

_HARMLESS_MODULES = """
    __future__ abc array bisect cmath collections collections.abc copy datetime decimal fractions functools
    hashlib heapq itertools json math numbers operator random re statistics string struct textwrap time typing
    unicodedata
"""
_REACHING_BUILTINS = "breakpoint compile delattr eval exec getattr globals locals memoryview open setattr vars"
_FRAME_ATTRIBUTES = """
    ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals f_locals f_trace
    gi_code gi_frame gi_yieldfrom tb_frame tb_next
"""
_REACHING_FUNCTIONS = """
    attrgetter caller eval_type evaluate evaluate_forward_ref format_map ForwardRef Formatter get_field get_type_hints
    methodcaller redirect_stderr redirect_stdout RedirectStream singledispatch singledispatchmethod update_wrapper
    vformat wraps
"""
_REACHING_MODULES = """
    annotationlib ast bltns builtins calendar codecs contextlib copyreg ctypes dataclasses dis enum faulthandler gc
    importlib inspect io keyword linecache locale marshal mmap multiprocessing opcode os pdb pickle platform posix
    posixpath reprlib resource runpy signal socket sre subprocess sys thread threading traceback tracemalloc types
    warnings weakref
"""
_HARMLESS_METHODS = """
    abs add all and await bool call ceil class class_getitem complex contains delitem divmod doc enter eq
    exit float floor floordiv format future ge getitem gt hash iadd iand ifloordiv ilshift imod imul index init
    init_subclass int invert ior ipow irshift isub iter itruediv ixor le len length_hint lshift lt main matmul
    missing mod module mul name ne neg new next or pos post_init pow qualname radd rand rdivmod repr reversed
    rfloordiv rlshift rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor set_name slots str sub truediv trunc
    version xor
"""
_MODULES, _BUILTINS = frozenset(_HARMLESS_MODULES.split()), frozenset(_REACHING_BUILTINS.split())
_FRAMES = frozenset(_FRAME_ATTRIBUTES.split())
"""In a text they may be the fields of a template."""
_FUNCTIONS = frozenset(_REACHING_FUNCTIONS.split())
"""Functions of harmless modules that reach whatever a text names: `update_wrapper` reads attributes, for example."""
_ATTRIBUTES = _FUNCTIONS | frozenset(_REACHING_MODULES.split())
"""These, and modules that the harmless ones have imported. `enum.property` reads an attribute by its name."""
_WORD = re.compile(r"\w+")
_WATCHED = _BUILTINS | _FRAMES | _ATTRIBUTES | {"case", "format", "import"}
_METHODS = frozenset(f"__{name}__" for name in _HARMLESS_METHODS.split())


@remembered_up_to(4096)
def may_see_calls(program: str) -> bool:
    """Return whether a program might read the calls that its process holds, as far as its syntax shows."""
    # Python reads some other letters as if they were ASCII.
    if program.isascii() and "__" not in program:
        words = _WORD.findall(program)
        if _WATCHED.isdisjoint([word.strip("_") for word in words]) and _private_names().isdisjoint(words):
            return False  # as of most, so that they need not be parsed: no word, whatever it means, is watched for
    try:
        tree = parse(program, TextBudget(_PARSING_US))
    except UnreadableError as error:
        return error.reason is RejectionReason.TOO_LONG  # else it does not load
    return any(_READERS[type(node)](node) for node in ast.walk(tree) if type(node) in _READERS)


@cache
def _private_names() -> frozenset[str]:
    """Return the private names of the harmless modules: what they do changes with each version of Python."""
    names = {name for module in _MODULES for name in dir(import_module(module))}
    return frozenset(name for name in names if name[0] == "_" and name[:2] != "__")


def _import_from(node: ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names]
    return bool(node.level) or node.module not in _MODULES or any(map(_is_reaching, names))


def _attribute(node: ast.Attribute) -> bool:
    is_literal = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return (node.attr == "format" and not is_literal) or _is_reaching(node.attr)


def _constant(node: ast.Constant) -> bool:
    text = node.value
    if not isinstance(text, str) or text == "__main__":
        return False
    return "__" in text or any(name in text for name in _FRAMES)


def _is_reaching(name: str) -> bool:
    return name in _FRAMES or name.lstrip("_") in _ATTRIBUTES or _is_hidden(name) or name in _private_names()


def _is_hidden(name: str) -> bool:
    return name[:2] == name[-2:] == "__" and name not in _METHODS


_READERS: dict[type[ast.AST], Callable[[Any], bool]] = {
    ast.Import: lambda node: any(alias.name not in _MODULES for alias in node.names),
    ast.ImportFrom: _import_from,
    ast.Name: lambda node: node.id in _BUILTINS or node.id in _FUNCTIONS or _is_hidden(node.id),
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.MatchClass: lambda node: bool(node.patterns) or any(map(_is_reaching, node.kwd_attrs)),  # `__match_args__`
    ast.keyword: lambda node: node.arg is not None and _is_hidden(node.arg),
}
