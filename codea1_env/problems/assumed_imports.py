"""Imports that the evaluators of data sets put before every program, and on which their solutions rely."""

from __future__ import annotations

from codea1_env.python_text import free_names

_MODULES = (
    "bisect collections copy datetime fractions functools heapq itertools math operator os random re string sys time"
    " traceback typing warnings"
)
_MEMBERS = {
    "typing": (
        "Any Callable DefaultDict Deque Dict FrozenSet Generator Generic Iterable Iterator List Mapping NamedTuple"
        " Optional Sequence Set Tuple Type TypeVar Union"
    ),
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "itertools": (
        "accumulate chain combinations combinations_with_replacement count cycle groupby islice pairwise permutations"
        " product repeat zip_longest"
    ),
    "functools": "cache cmp_to_key lru_cache partial reduce",
    "math": "ceil comb cos exp fabs factorial floor gcd inf isqrt lcm log log2 pi sin sqrt tan",
    "heapq": "heapify heappop heappush heappushpop heapreplace nlargest nsmallest",
    "bisect": "bisect_left bisect_right insort",
}
_IMPORTS = (
    {name: f"import {name}" for name in _MODULES.split()}
    | {name: f"from {module} import {name}" for module, names in _MEMBERS.items() for name in names.split()}
    | {"np": "import numpy as np", "pd": "import pandas as pd", "numpy": "import numpy", "pandas": "import pandas"}
)


def assumed_imports(*programs: str) -> str:
    """Return the import statements for well-known names that the programs use and do not define.

    Args:
        programs: Python source; a text that is not Python counts as using no names.
    """
    missing = {name for program in programs for name in free_names(program)}
    return "\n".join(line for name, line in _IMPORTS.items() if name in missing)
