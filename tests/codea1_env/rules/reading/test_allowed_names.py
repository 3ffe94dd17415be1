"""No way leads from what a test may mention to what it may not."""

from __future__ import annotations

import builtins
import contextlib
import importlib
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType, TracebackType

import pytest

from codea1_env.facts.submissions import RejectionReason
from codea1_env.rules.reading.allowed_names import (
    FORBIDDEN_ATTRIBUTES,
    MODULES,
    SAFE_BUILTINS,
    holds_fields,
    may_be_attribute,
)
from tests.support.replies import accepted, block, rejected

IMPORTS = "import collections, copy, datetime, decimal, functools, json, math, operator, re, string, typing\n"


@pytest.mark.parametrize("module", MODULES)
def test_the_lists_name_what_there_is_and_no_module_but_listed_ones(module: str) -> None:
    there = importlib.import_module(module)
    for name in MODULES[module]:
        assert not name.startswith("_")
        assert name not in FORBIDDEN_ATTRIBUTES or name == "error"
        value = getattr(there, name, None)
        if isinstance(value, ModuleType):
            assert f"{module}.{name}" in MODULES


def test_nearly_every_listed_name_exists_in_this_python() -> None:
    newer_or_older = {"batched", "fma", "sumprod", "UTC", "trapz", "AnyStr"}  # 3.11 to 3.13, numpy 1 and 2
    missing = {
        name
        for module, names in MODULES.items()
        for name in names
        if not hasattr(importlib.import_module(module), name)
    }
    assert missing <= newer_or_older | {"exp2", "cbrt", "astype", "bitwise_count", "unstack", "trapezoid"}


def test_no_listed_function_takes_the_name_of_an_attribute_or_sets_what_others_depend_on() -> None:
    by_name = {"update_wrapper", "wraps", "attrgetter", "methodcaller", "get_type_hints", "Formatter", "ForwardRef"}
    settings = {"setcontext", "getcontext", "localcontext", "DefaultContext", "seterr", "set_printoptions", "purge"}
    assert not (by_name | settings) & set().union(*MODULES.values())


def test_built_in_names_make_no_classes_and_evaluate_nothing() -> None:
    assert all(hasattr(builtins, name) for name in SAFE_BUILTINS)
    powerful = {
        *("type", "object", "super", "property", "classmethod", "getattr", "setattr", "vars", "eval", "exec", "id"),
        *("hash", "open", "input", "print", "globals", "memoryview", "__import__"),
    }
    assert not SAFE_BUILTINS & powerful
    assert {"ValueError", "SystemExit"} <= SAFE_BUILTINS


@pytest.mark.parametrize(
    "use",
    [
        *("decimal.setcontext(decimal.Context(prec=1))", "decimal.getcontext()", "operator.setitem({}, 1, 2)"),
        *("json.decoder.BACKSLASH", "json.codecs", "collections.abc.Sized.register(int)", "copy.dispatch_table"),
        *("string.Formatter()", "typing.get_type_hints(f)", "typing.Type[int]('X', (), {})", "re._parser"),
        *("functools.update_wrapper([], json.dumps)", "math.sqrt.__call__(4)"),
        # loops that would bind an attribute or an item
        *("[0 for math.pi in [3]]", "{0 for collections.Counter.most_common in [abs]}", "[0 for {}['a'] in [3]]"),
        *("{0: 0 for x, (y, math.pi) in [(1, (2, 3))]}", "list(0 for [*math.pi] in [[3]])"),
        *("[0 for (lambda: 0).x in [3]]", "[0 for x in [1] for json.dumps.x in [x]]"),
    ],
)
def test_of_a_module_only_what_is_listed_may_be_used_and_nothing_changed(use: str) -> None:
    assert rejected(f"{IMPORTS}assert ({use}, f(1))[1] == 1") == [RejectionReason.FORBIDDEN_NAME]


@pytest.mark.parametrize(
    "text",
    [
        *("assert (json, f(1))[1] == 1", "assert f(json) == 1", "assert (lambda m: m.codecs)(json) == f(1)"),
        *("assert [collections.abc][0] and f(1)", "m = json\nassert m.dumps(f(1)) == '1'", "assert str(json) == f(1)"),
        *("import numpy as np\nassert (np.linalg, f(1))[1] == 1", "import numpy as np\nassert f(np.lib) == 1"),
        *("import numpy.linalg as la\nassert f(la) == 1", "from collections import abc\nassert f(abc) == 1"),
        # classes that would be made
        *("assert type(f(1))", "assert type(f(1))()", "assert type('X', (), {})() == f(1)"),
        *("assert type(int)('X', (), {}) == f(1)", "assert [type(x) for x in [int]][0]('X', (), {}) == f(1)"),
        *("assert (type(int),)[0]('X', (), {}) == f(1)", "assert list(map(type, [f(1)]))"),
        *("assert type[int]('X', (), {}) == f(1)", "assert (lambda t=type: t)() is f(1)"),
        *("assert type(*['X', (), {}]) == f(1)", "assert isinstance(f(1), type('X', (), {}))"),
        "assert {type(int): f(1)}",
        "assert (lambda isinstance: isinstance(f(1), type(int)))(lambda a, b: b('X', (), {}))",
        "str = lambda thing: thing('X', (), {})\nassert str(type(int)) == f(1)",
    ],
)
def test_modules_are_good_for_nothing_but_what_is_in_them_and_no_class_can_be_made(text: str) -> None:
    assert rejected(IMPORTS + text) == [RejectionReason.FORBIDDEN_NAME]


@pytest.mark.parametrize(
    "text",
    [
        "import numpy.linalg as la\nassert la.norm(f(1)) == 1",
        "import numpy as np\nassert np.linalg.norm(f(1)) == 1",
        "from numpy import linalg\nassert linalg.norm(f(1)) == 1",
        "import collections.abc\nassert isinstance(f(1), collections.abc.Iterable)",
        "from collections import abc\nassert isinstance(f(1), abc.Iterable)",
        "from datetime import datetime\nassert f(datetime(2020, 1, 1)) == 1",
        "import datetime\nassert f(datetime.date(2020, 1, 1).year) == 1",
        "import math\nassert [math.sqrt(f(m)) for m in (1, 4)] == [1, 2]",
        "import math\nassert (lambda math: math.real)(f(1)) == 1",
        "assert [x.real for x, [y] in [(f(1), [2])] if [0][0] == x.imag] == [1]",  # a loop may look at attributes
    ],
)
def test_listed_names_may_be_used_by_whatever_way_they_were_imported(text: str) -> None:
    accepted(text)


@pytest.mark.parametrize(
    "condition",
    [
        *("type(f(1)) is int", "type(f(1)) == int", "int == type(f(1))", "type(f(1)) in (int, type(None))"),
        *("isinstance(f(1), type(None))", "isinstance(f(1), (int, type(None)))", "all(type(x) is int for x in f(1))"),
        "str(type(f(1))) == \"<class 'int'>\"",
    ],
)
def test_the_type_of_a_value_can_be_compared_and_shown(condition: str) -> None:
    assert "type" in accepted(f"assert {condition}").expression


@pytest.mark.parametrize("template", ["{}", "{0:>5}", "{x:.2f}", "{:{}}", "a.b {} [c]", "{0!r:.3}"])
def test_templates_that_only_fill_in_may_be_used(template: str) -> None:
    assert len(block(f"assert {template!r}.format(f(1), x=1) == ''").cases) == 1
    assert len(block(f"t = {template!r}\nassert t.format(f(1), 2) == ''").cases) == 1


@pytest.mark.parametrize(
    "template", ["{0.real}", "{x.__class__}", "{0[0]}", "{0[:].__class__}", "{:{0.__class__}}", "{.x}"]
)
def test_templates_that_look_into_what_they_fill_in_may_not(template: str) -> None:
    assert holds_fields(template)
    assert rejected(f"assert {template!r}.format(f(1), x=1) == ''") == [RejectionReason.FORBIDDEN_NAME]
    assert rejected(f"t = {template!r}\nassert t.format_map({{'x': f(1)}}) == ''") == [RejectionReason.FORBIDDEN_NAME]


@pytest.mark.parametrize("text", ["(f(1) + '{}').format(1)", "str.format('{}', f(1))", "''.join(f(1)).format(2)"])
def test_a_template_that_is_not_known_may_not_be_used(text: str) -> None:
    assert rejected(f"assert {text} == ''") == [RejectionReason.FORBIDDEN_NAME]


@pytest.mark.parametrize(
    ("written", "read"),
    [("f(+1)", "f(1)"), ("f(+1.5)", "f(1.5)"), ("f(-1)", "f(-1)"), ("f(+True)", "f(1)"), ("f(+(1))", "f(1)")],
)
def test_a_plus_sign_makes_no_other_case(written: str, read: str) -> None:
    case = accepted(f"assert {written} == 1")
    assert (case.expression, case.direct) == (read, True)


@pytest.mark.parametrize(
    "made",
    [
        *("np.ndarray(3)", "ndarray(3)", "list(map(np.ndarray, [3]))", "[ndarray][0](3)", "int.mro()[1]()"),
        "collections.Counter.mro()",
    ],
)
def test_no_array_is_made_of_what_was_in_memory_and_the_bases_of_a_class_are_out_of_reach(made: str) -> None:
    text = f"{IMPORTS}import numpy as np\nfrom numpy import ndarray\nassert f({made}) == 1"
    assert rejected(text) == [RejectionReason.FORBIDDEN_NAME]


@pytest.mark.parametrize(
    "condition", ["isinstance(f(1), np.ndarray)", "isinstance(f(1), (list, A))", "type(f(1)) is A"]
)
def test_a_result_can_be_told_to_be_an_array(condition: str) -> None:
    suite = block(f"import numpy as np\nfrom numpy import ndarray as A\nassert {condition}")
    assert suite.rejections == ()
    assert len(suite.cases[0].imports) == 1


@pytest.mark.parametrize(
    "tests",
    [
        "assert [i for i in {lambda: 1, lambda: 2}][0]() + f(7) == 29",
        "assert sorted([lambda: 1, lambda: 2], key=str)[0]() == f(1)",
        *("assert int('%s' % (lambda: f(6)), 16) % 2 == 0", "assert int(f'{(x for x in [f(5)])}'[-4], 16) % 2 == 0"),
        *("assert str(lambda: f(1)) == ''", "assert {(lambda: 1) if f(1) else (lambda: 2)} == {1}"),
        *("assert [(i for i in [f(1)])] == []", "assert f(1) == (lambda: 36)"),
        "assert (x for x in [f(1)]).gi_running == 0",
        "a = lambda: 1\nb = lambda: 2\nassert [i for i in {a, b}][0]() == f(1)",
    ],
)
def test_functions_and_generators_go_to_calls_and_loops_only_as_their_addresses_must_decide_nothing(tests: str) -> None:
    assert rejected(tests) == [RejectionReason.FORBIDDEN_NAME]


@pytest.mark.parametrize(
    "tests",
    [
        *("assert sorted(f([3, 1]), key=lambda x: -x) == [3, 1]", "assert all(x > 0 for x in f([3, 1]))"),
        *("assert sum(x for x in (y for y in f([3, 1]))) == 4", "assert [*(x for x in f([3, 1]))] == [1, 3]"),
        *("assert (lambda x: x + 1)(f(1)) == 2", "key = lambda x: -x\nassert sorted(f([3, 1]), key=key) == [3, 1]"),
        *("assert f(lambda x: x, 1) == 1", "assert list(map(lambda x: x + 1, f([1, 2]))) == [2, 3]"),
    ],
)
def test_functions_and_generators_that_are_used_at_once_may_be_used(tests: str) -> None:
    accepted(tests)


def _reachable(path: str, thing: object, seen: set[int], depth: int) -> Iterator[tuple[str, object]]:
    yield path, thing
    if id(thing) in seen or depth == 0 or isinstance(thing, int | float | str | bytes):
        return
    seen.add(id(thing))
    for name in filter(may_be_attribute, dir(thing)):
        with contextlib.suppress(Exception):
            yield from _reachable(f"{path}.{name}", getattr(thing, name), seen, depth - 1)


@pytest.mark.filterwarnings("ignore")
def test_no_chain_of_attributes_leads_from_a_listed_name_to_power_or_to_shared_data() -> None:
    powerful = {
        id(getattr(builtins, name)) for name in ("eval", "exec", "compile", "getattr", "setattr", "open", "vars")
    }
    powerful |= {id(thing) for thing in (type, object, builtins.__import__, globals)}
    wrong = (ModuleType, FrameType, CodeType, TracebackType, dict, list, set, bytearray)
    starts = {name: getattr(builtins, name) for name in SAFE_BUILTINS}
    for module, names in MODULES.items():
        there = {f"{module}.{name}": getattr(importlib.import_module(module), name, None) for name in names}
        starts |= {path: thing for path, thing in there.items() if path not in MODULES}
    seen: set[int] = set()
    found = [
        path
        for start, thing in starts.items()
        for path, reached in _reachable(start, thing, seen, 3)
        if id(reached) in powerful or isinstance(reached, wrong)
    ]
    assert found == []
