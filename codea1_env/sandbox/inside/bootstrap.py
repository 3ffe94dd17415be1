"""First code of a zygote's interpreter: `python -S -s -P bootstrap.py`, with a clean environment.

The options are a line of JSON on standard input, since a process can read its command line. Makes this project's
stdlib-only modules importable without running any package's `__init__`, then starts `zygote`.
"""

import json
import os
import sys


def start(options: dict, on_imported: object = lambda: None) -> None:  # type: ignore[type-arg]
    """Import what a zygote needs from the folder `options["root"]`, call `on_imported`, and run the zygote."""
    os.register_at_fork = lambda **_: None  # the fork hooks of random, threading and logging would cost every job time
    for name in ("codea1_env", "codea1_env.values", "codea1_env.sandbox", "codea1_env.sandbox.inside"):
        package = type(sys)(name)
        package.__path__ = [os.path.join(options["root"], *name.split("."))]
        sys.modules[name] = package
    from codea1_env.sandbox.inside import zygote  # noqa: PLC0415  -- importable only now

    zygote.main(options, on_imported)  # type: ignore[arg-type]


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    start(given)
