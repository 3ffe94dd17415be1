"""Programs rewritten in other styles that do the same."""

from __future__ import annotations

import re
import textwrap

_MAIN = "def main():\n{body}\n    {last}\n\n\nif __name__ == '__main__':\n    main()\n"
_THREAD = """import sys
import threading
def main():
{body}
sys.setrecursionlimit(10_000)
threading.stack_size(1 << 24)
threading.Thread(target=main).start()
"""
_BYTES = """import os
import sys
class Output:
    def __init__(self):
        self.parts = []
    def write(self, text):
        self.parts.append(text)
    def flush(self):
        pass
given, sys.stdout = [], Output()
while part := os.read(0, 1 << 16):
    given.append(part)
import io
sys.stdin = io.StringIO(b"".join(given).decode())
{program}
os.write(1, "".join(sys.stdout.parts).encode())
os._exit(0)
"""


def scripts_like(program: str) -> dict[str, str]:
    """Return a program on standard input in five styles, by name; its functions use no names of the program."""
    body = textwrap.indent(program.strip(), "    ")
    in_function = "nonlocal" not in program and not re.search(r"^def |^class ", program, re.MULTILINE)
    main = _MAIN.format(body=body, last="raise SystemExit") if in_function else program + "\nexit(0)\n"
    return {
        "plain": program,
        "main": main,
        "thread": _THREAD.format(body=body) if in_function else "import threading\n" + program,
        "bytes": _BYTES.format(program=program),
        "exit": f"import atexit\natexit.register(print, end='')\n{program}\nimport sys\nsys.exit(None)\n",
    }


def classes_like(program: str, method: str) -> dict[str, str]:
    """Return a program with a class `Solution` in five styles, by name."""
    renamed = re.sub(r"\bclass Solution\b", "class Base", program)
    return {
        "plain": program,
        "inherited": f"{renamed}\n\nclass Solution(Base):\n    pass\n",
        "delegated": (
            f"{renamed}\n\nclass Solution:\n    def __init__(self):\n        self.inner = Base()\n\n"
            f"    def {method}(self, *args, **kwargs):\n        return self.inner.{method}(*args, **kwargs)\n"
        ),
        "static": (
            f"{renamed}\n\nclass Solution:\n    @staticmethod\n    def {method}(*args, **kwargs):\n"
            f"        return Base().{method}(*args, **kwargs)\n"
        ),
        "made for each call": (
            f"{renamed}\n\nclass Solution:\n    def __init__(self):\n        self.calls = 0\n\n"
            f"    def {method}(self, *args, **kwargs):\n        self.calls += 1\n        assert self.calls == 1\n"
            f"        return Base().{method}(*args, **kwargs)\n"
        ),
    }
