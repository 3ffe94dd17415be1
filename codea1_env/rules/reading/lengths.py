"""Decide by syntax alone which iterables have at least one item."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from codea1_env.rules.reading.direct_calls import whole_number
from codea1_env.rules.reading.effects import effects_of
from codea1_env.rules.reading.frameworks import is_built_in
from codea1_env.rules.reading.statements import COMPREHENSIONS

_SAME_EMPTINESS = frozenset({"enumerate", "frozenset", "iter", "list", "reversed", "set", "sorted", "tuple"})
"""Built-in functions whose result is empty only if their argument is."""
TAKE_ITEMS = frozenset(
    {"all", "any", "dict", "frozenset", "list", "max", "min", "next", "set", "sorted", "sum", "tuple"}
)
"""Built-in functions that take at least the first item of an iterable."""
_ARRANGEMENTS = frozenset({"permutations", "product"})


class Lengths:
    """Which iterables of one condition are not empty."""

    def __init__(self, condition: ast.expr, entry_point: str, bindings: Mapping[str, str]) -> None:
        self._bindings = bindings
        self._condition, self._entry_point = condition, entry_point

    @cached_property
    def _bound(self) -> set[str]:
        return {self._entry_point} | effects_of([self._condition]).stored

    def has_items(self, node: ast.expr) -> bool:
        """Whether `node` is an iterable that certainly has at least one item."""
        return _READERS.get(type(node), _unknown)(self, node)

    def is_built_in(self, name: str) -> bool:
        """Whether `name` refers to the built-in function everywhere in the condition."""
        return name not in self._bound and is_built_in(name, self._bindings)

    def _text(self, node: ast.Constant) -> bool:
        return isinstance(node.value, str | bytes) and bool(node.value)

    def _display(self, node: ast.List | ast.Tuple | ast.Set) -> bool:
        return any(not isinstance(item, ast.Starred) or self.has_items(item.value) for item in node.elts)

    def _dict(self, node: ast.Dict) -> bool:
        return any(key is not None for key in node.keys)

    def _operation(self, node: ast.BinOp) -> bool:
        if isinstance(node.op, ast.Add):
            return self.has_items(node.left) or self.has_items(node.right)
        sides = ((node.left, node.right), (node.right, node.left))
        repeats = isinstance(node.op, ast.Mult)
        return repeats and any(self.has_items(items) and (self._number(times) or 0) > 0 for items, times in sides)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
        return all(not each.ifs and self.has_items(each.iter) for each in node.generators)

    def _call(self, node: ast.Call) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self._call_by_name(name, node.args)
            case ast.Call(func=ast.Attribute(value=thing, attr=name), keywords=[]):
                is_view = name in ("items", "keys", "values") and not node.args and isinstance(thing, ast.Dict)
                is_module = isinstance(thing, ast.Name) and thing.id not in self._bound and name in _ARRANGEMENTS
                return self.has_items(thing) if is_view else is_module and self._arranged(name, node.args)
        return False

    def _call_by_name(self, name: str, arguments: list[ast.expr]) -> bool:
        if name in _ARRANGEMENTS:
            is_known = name not in self._bound and self._bindings.get(name) == f"from itertools import {name}"
            return is_known and self._arranged(name, arguments)
        if not self.is_built_in(name) or not arguments:
            return False
        if name == "range":
            return self._counts(arguments)
        return (name == "zip" or (name in _SAME_EMPTINESS and len(arguments) == 1)) and all(
            map(self.has_items, arguments)
        )

    def _arranged(self, name: str, arguments: list[ast.expr]) -> bool:
        return (name == "product" or len(arguments) == 1) and all(map(self.has_items, arguments))

    def _counts(self, arguments: list[ast.expr]) -> bool:
        numbers = [number for argument in arguments if (number := self._number(argument)) is not None]
        is_known = len(numbers) == len(arguments) <= 3 and numbers[2:] != [0]
        return is_known and bool(range(*numbers))

    def _number(self, node: ast.expr) -> int | None:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.List(elts=items) | ast.Tuple(elts=items)]):
                is_plain = self.is_built_in("len") and not any(isinstance(item, ast.Starred) for item in items)
                return len(items) if is_plain else None
        return whole_number(node)


_READERS: dict[type[ast.expr], Callable[[Lengths, Any], bool]] = {
    ast.BinOp: Lengths._operation,
    ast.Call: Lengths._call,
    ast.Constant: Lengths._text,
    ast.Dict: Lengths._dict,
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set), Lengths._display),
    **dict.fromkeys(COMPREHENSIONS, Lengths._comprehension),
}


def _unknown(_: Lengths, __: ast.expr) -> bool:
    return False
