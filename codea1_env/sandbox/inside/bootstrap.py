"""First code of a zygote's interpreter: `python -S -s -P -B bootstrap.py OPTIONS`, with a clean environment.

Makes this project's stdlib-only modules importable without running any package's `__init__`, then starts `zygote`.
"""

import json
import os
import sys


def _start() -> None:
    options = json.loads(sys.argv[1])
    os.register_at_fork = lambda **_: None  # what random, threading and logging do after a fork costs every job
    for name in ("codea1_env", "codea1_env.values", "codea1_env.sandbox", "codea1_env.sandbox.inside"):
        package = type(sys)(name)
        package.__path__ = [os.path.join(options["root"], *name.split("."))]
        sys.modules[name] = package
    from codea1_env.sandbox.inside import zygote  # noqa: PLC0415  -- importable only now

    zygote.main(options)


if __name__ == "__main__":
    _start()
