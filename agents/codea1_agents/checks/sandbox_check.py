"""Checks that a sandbox reports every kind of outcome correctly, in two runs."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.sandbox import Call, Guarantee, Job, JobReport, Limits, Sandbox

_LIMITS = Limits(cpu_s=0.5)  # one of the programs runs until it
_PROGRAMS = {
    OutcomeKind.VALUE: "def f(x):\n    return [x, x]\n",
    OutcomeKind.OPAQUE: "def f(x):\n    return object()\n",
    OutcomeKind.ERROR: "def f(x):\n    raise KeyError(x)\n",
    OutcomeKind.TIME_LIMIT: "def f(x):\n    while True:\n        pass\n",
    OutcomeKind.MEMORY_LIMIT: "def f(x):\n    return len('x' * 10**11)\n",
    OutcomeKind.OUTPUT_LIMIT: "def f(x):\n    return 'x' * 10**6\n",
    OutcomeKind.CRASHED: "import os\n\ndef f(x):\n    os.abort()\n",
    OutcomeKind.EXITED: "import os\n\ndef f(x):\n    os._exit(0)\n",
    OutcomeKind.NOT_RUN: "raise ValueError('does not load')\n",
}
"""One program per kind. INTERNAL_ERROR is missing: no program can cause it."""


@dataclass(frozen=True, slots=True)
class SandboxFinding:
    """The outcomes of one program in two runs."""

    expected: OutcomeKind
    found: tuple[OutcomeKind, ...]

    @property
    def ok(self) -> bool:
        """True iff every run gave the expected outcome."""
        return all(kind is self.expected for kind in self.found)


@dataclass(frozen=True, slots=True)
class SandboxPromise:
    """What a sandbox guarantees on this machine, and by which tier."""

    name: str
    guarantee: Guarantee
    tier: str
    refusals: tuple[str, ...] = ()
    """Why no stronger tier works here, one sentence each."""

    def sentence(self) -> str:
        """Return name, guarantee, tier and the meaning of the guarantee."""
        return f"{self.name}: {self.guarantee.value}, by {self.tier or 'its own means'} ({_MEANINGS[self.guarantee]})"


_MEANINGS = {
    Guarantee.ISOLATED: "programs reach no other process, no file but a read-only Python, and no network",
    Guarantee.BEST_EFFORT: "time, memory, processes and writing are limited; some of the host can be read",
    Guarantee.TRUSTED_ONLY: "only resources are limited; run your own programs, not strangers'",
}


def promise_of(sandbox: Sandbox) -> SandboxPromise:
    """Run one small program and return the guarantee under which it ran.

    Raises:
        SandboxError: the back end cannot be used at all.
    """
    guarantee = sandbox.guarantee  # first: a server that is none of ours is known sooner by it
    report = sandbox.run([Job("def f():\n    return 1\n", "f", (Call("f()"),))])[0]
    refusals = tuple(getattr(sandbox, "refusals", ()))  # only the local back end has tiers
    return SandboxPromise(sandbox.name, guarantee, report.tier, refusals)


def check_sandbox(sandbox: Sandbox) -> tuple[SandboxFinding, ...]:
    """Return one finding per kind of outcome.

    Raises:
        SandboxError: the back end cannot be used at all.
    """
    jobs = [Job(program, "f", (Call("f(1)"),), limits=_LIMITS) for program in _PROGRAMS.values()]
    first, second = sandbox.run(jobs), sandbox.run(jobs)
    return tuple(
        SandboxFinding(kind, (_kind(a), _kind(b))) for kind, a, b in zip(_PROGRAMS, first, second, strict=True)
    )


def _kind(report: JobReport) -> OutcomeKind:
    return report.outcomes[0].kind
