"""Typical mistakes of somebody at a prompt: each gives one sentence that says what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

import pytest

from codea1_env import Referee, Tree, bank_v0, code_a1_v0, load_agent, load_problems
from codea1_env.bank import load_bank
from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import SuitesPer
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.remote import RemoteSandbox
from tests.support.toys import ADD, RIGHT

MAKERS: dict[str, Callable[..., Any]] = {
    "aec": code_a1_v0.env,
    "raw": code_a1_v0.raw_env,
    "parallel": code_a1_v0.parallel_env,
    "blind": code_a1_v0.blind_parallel_env,
    "group": code_a1_v0.group_env,
    "bank": bank_v0.env,
    "bank parallel": bank_v0.parallel_env,
}
FIRST, TREE = {"coder_0": RIGHT}, Tree(ADD, 2, 2, SuitesPer.PROBLEM)


starter_bank = cache(lambda: load_bank("starter"))


def made(kind: str, *, resets: bool = True) -> Any:
    options = {"n_candidates": 2, "n_suites": 1} if kind == "group" else {}
    env = MAKERS[kind](starter_bank() if kind.startswith("bank") else "starter", **options)
    if resets:
        env.reset(seed=0)
    return env


def over(kind: str) -> Any:
    env = made(kind)
    if hasattr(env, "last"):
        while env.agents:
            env.step(None if any(env.last()[2:4]) else "no code")
    else:
        env.step(dict.fromkeys(env.agents, "no code"))
    return env


def closed(kind: str) -> Any:
    env = made(kind)
    env.close()
    env.close()
    return env


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        # A wrong name
        (lambda: made("parallel").step({"codr": RIGHT}), "unknown agent 'codr': did you mean 'coder_0'?"),
        (lambda: made("blind").step({"codr": RIGHT}), "did you mean 'coder_0'?"),
        (lambda: made("group").step({"coder_2": RIGHT}), "known are coder_0, coder_1, tester_0_0, tester_1_0"),
        (lambda: made("aec").observe("coder"), "unknown agent 'coder': did you mean 'coder_0'?"),
        (lambda: made("group").action_space("tester"), "unknown agent 'tester': did you mean 'tester_1_0'?"),
        (lambda: code_a1_v0.env("humanevl"), "unknown problem source 'humanevl': did you mean 'humaneval'?"),
        (lambda: code_a1_v0.env("starter", rules="fixd"), "unknown rules 'fixd': did you mean 'fixed'?"),
        (lambda: code_a1_v0.env("starter", sandbox="locl"), "unknown sandbox 'locl': did you mean 'local'?"),
        (lambda: load_agent("mutnt", made("aec")), "unknown agent 'mutnt': did you mean 'mutant'?"),
        (lambda: made("aec").reset(options={"problem": "x"}), "reset option problem must be of type Problem, got str"),
        (lambda: load_problems("starter")["starter/axis_ticks"], "use by_id('starter/axis_ticks') for an id"),
        *[
            (lambda kind=kind: made(kind).reset(options={"problem_id": "toy/lost"}), "toy/lost")
            for kind in ("aec", "group", "bank")
        ],
        *[
            (
                lambda kind=kind: made(kind).reset(options={"problem_ids": ""}),
                "'problem_ids': did you mean 'problem_id'",
            )
            for kind in ("aec", "group")
        ],
        # A wrong value
        (lambda: made("aec").step(5), "coder_0's action must be text (str), got int"),
        (lambda: made("parallel").step({"coder_0": None}), "coder_0's action must be text (str), got NoneType"),
        (lambda: made("aec").step(b"bytes"), "coder_0's action must be text (str), got bytes"),
        (lambda: made("bank").step("x"), "coder_0's action must be a whole number from 0 to 4, got 'x'"),
        *[(lambda wrong=wrong: made("bank").step(wrong), "from 0 to 4") for wrong in (5, -1, None, 0.5)],
        (lambda: made("parallel").step("x"), "step takes a dictionary, as in {'coder_0': action}, got str ('x')"),
        (lambda: made("group").step([]), "step takes a dictionary, as in {'coder_0': action}, got list ([])"),
        (lambda: made("parallel").step({}), "step needs an action of coder_0, whose turn it is, got those of nobody"),
        (lambda: made("blind").step(FIRST), "needs an action of tester_0, whose turn it is, got those of coder_0"),
        (lambda: made("group").step(FIRST), "needs an action of coder_1, whose turn it is, got those of coder_0"),
        (lambda: made("aec").reset(seed="1"), "seed must be a whole number of at least 0, got '1'"),
        (lambda: made("bank").reset(seed=1.5), "seed must be a whole number of at least 0, got 1.5"),
        (lambda: made("group").reset(seed=True), "seed must be a whole number of at least 0, got True"),
        (lambda: made("aec").reset(options={"replay": 1}), "reset option replay must be of type bool, got int (1)"),
        (lambda: made("aec").reset(options=5), "reset options must be a mapping, got int"),
        (lambda: made("aec").reset(options={"problem_id": 3}), "problem_id must be of type str, got int"),
        (lambda: made("group").reset(options={"tree": "x"}), "tree must be of type Tree"),
        (lambda: made("group").reset(options={"tree": TREE}), "tree must have 2 candidates and 1 suites"),
        (lambda: code_a1_v0.env(max_cycles=0), "max_cycles must be a whole number from 1 to 1000000, got 0"),
        (lambda: code_a1_v0.env(max_cycles=10**30), "max_cycles must be a whole number"),
        (lambda: code_a1_v0.env(max_cycles=1.5), "max_cycles must be a whole number"),
        (lambda: code_a1_v0.env(ProblemSet("none", ())), "none: it contains no problems"),
        (lambda: code_a1_v0.env(book=5), "Mistake Book"),
        (lambda: code_a1_v0.env(render_mode="rgb_array"), "human, ansi"),
        (lambda: code_a1_v0.env(tester_view="grey_box"), "white_box, black_box"),
        (lambda: code_a1_v0.group_env(n_candidates=0), "n_candidates must be a whole number from 1"),
        (lambda: code_a1_v0.group_env(n_suites=-1), "n_suites must be a whole number from 0"),
        (lambda: code_a1_v0.group_env(suites_per="coder"), "suites_per must be one of candidate, problem"),
        (lambda: code_a1_v0.group_env(tester_view="blind"), "tester_view must be one of"),
        (lambda: bank_v0.env(starter_bank(), tester_view="grey_box"), "tester_view must be one of"),
        (lambda: bank_v0.env(starter_bank(), render_mode="html"), "render_mode must be one of"),
        (lambda: bank_v0.env(starter_bank(), rules="paper"), "rules must be passed when the bank is judged"),
        (lambda: bank_v0.env(starter_bank(), max_cycles=0), "max_cycles must be"),
        (lambda: code_a1_v0.env("starter", skip_invalid="no"), "skip_invalid must be of type bool, got str ('no')"),
        (lambda: code_a1_v0.env("starter", provenance="me"), "provenance must be of type Provenance, got str"),
        (lambda: code_a1_v0.blind_parallel_env("starter", skip_invalid=True), "skip_invalid must be False"),
        (lambda: load_agent(5, made("aec")), "agent 5: expected a function or an object with act(), got int"),
        (lambda: load_agent("mutant", "starter"), "needs an environment of code_a1_v0 or an AgentContext, got str"),
        (lambda: load_agent("mutant", made("bank")), "needs an environment of code_a1_v0 or an AgentContext, got"),
        # A wrong time
        *[(lambda kind=kind: made(kind, resets=False).step(FIRST), "call reset() to begin one") for kind in MAKERS],
        *[(lambda kind=kind: over(kind).step(FIRST), "call reset() to begin one") for kind in list(MAKERS)[:5]],
        *[(lambda kind=kind: closed(kind).reset(), "is closed; make another one") for kind in MAKERS],
        *[(lambda kind=kind: closed(kind).step(FIRST), "is closed; make another one") for kind in MAKERS],
        (lambda: made("parallel", resets=False).render(), "render: no episode has begun; call reset() first"),
        (lambda: dead().step("x"), "coder_0 is done, so its action must be None, got 'x'"),
    ],
)
def test_a_mistake_gives_one_sentence(mistake: Callable[[], Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        mistake()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def dead() -> Any:
    env = made("aec")
    env.step("no code")
    return env


@pytest.mark.parametrize("kind", MAKERS)
def test_what_can_be_closed_is_closed_at_the_end_of_a_block(kind: str) -> None:
    with made(kind) as env:
        assert env.agents
    assert repr(env).endswith("; closed>")


@pytest.mark.parametrize("make", [lambda: LocalSandbox(1), lambda: RemoteSandbox("http://localhost:1")])
def test_a_sandbox_is_closed_as_often_as_one_likes(make: Callable[[], Sandbox]) -> None:
    with make() as sandbox:
        sandbox.close()


def test_a_referee_and_a_sandbox_can_be_used_after_their_block() -> None:
    with load_sandbox("local") as sandbox, Referee("starter", sandbox=sandbox) as referee:
        assert isinstance(sandbox, Sandbox)
    (scored,) = referee.rewards(["starter/count_carries"], ["def count_carries(a, b): return 0"])
    assert scored.coder == 0.5


@pytest.mark.parametrize("kind", ["aec", "raw", "parallel", "blind", "group"])
def test_a_built_in_agent_is_made_for_an_environment(kind: str) -> None:
    env = made(kind)
    agent = load_agent("reference", env, role="coder")
    problem = env.unwrapped.problems[0]
    assert problem.solution.strip() in agent.act({"entry_point": problem.entry_point}, {"problem_id": problem.id})


@pytest.mark.parametrize("module", [code_a1_v0, bank_v0])
def test_all_views_take_the_parameters_that_the_game_declares(module: Any) -> None:
    own = signature(module.raw_env).parameters
    for view in (module.env, module.parallel_env, module.blind_parallel_env):
        assert [*signature(view).parameters] == [*own]
        assert "Args:\n    " in view.__doc__
    assert signature(module.env).parameters == own
    assert signature(module.blind_parallel_env).parameters["tester_view"].default == "black_box"
    with pytest.raises(TypeError, match="problms"):
        code_a1_v0.env(problms="starter")
