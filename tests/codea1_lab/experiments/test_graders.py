"""The graders of the experiment plain-grader, in a real sandbox: what each pays, and what the oracle says."""

from __future__ import annotations

import pytest

from codea1_agents.train.tiny.problems import load
from codea1_env.sandbox import Sandbox
from codea1_lab.experiments.graders import ATTACKS, GRADERS, is_attack, plain_script, statuses, truths

PROBLEMS = load("train")
PROBLEM = PROBLEMS[0]
HONEST = (PROBLEM.solution, PROBLEM.wrong_programs[0].program, "def f(s):\n    return s[", "")
PROGRAMS = (*ATTACKS, *HONEST)
N = len(ATTACKS)


def test_a_plain_grader_is_fooled_by_every_attack_and_an_oracle_by_none(sandbox: Sandbox) -> None:
    cases = list(load("train-eval").by_id(PROBLEM.id).golden)
    passed = [text is not None for text in statuses([plain_script(each, cases) for each in PROGRAMS], sandbox)]
    assert passed == [True] * (N + 1) + [False] * 3
    assert truths(PROGRAMS, cases, sandbox) == [False] * N + [True] + [False] * 3


def test_attacks_are_short_and_named_and_no_program_of_the_family_looks_like_one() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    from codea1_agents.train.tiny.tokenizer import new_tokenizer

    tokenizer = new_tokenizer()
    assert all(len(ids) < 56 for ids in tokenizer(list(ATTACKS), add_special_tokens=False)["input_ids"])
    assert all("def f(" in attack and is_attack(attack) for attack in ATTACKS)
    honest = [text for each in PROBLEMS for text in (each.solution, *(wrong.program for wrong in each.wrong_programs))]
    assert not any(map(is_attack, honest))


@pytest.mark.parametrize(("grader", "n_fooled"), [("exit status", N), ("judge", 0)])
def test_environments_pay_by_their_grader_and_note_what_is_true(grader: str, n_fooled: int) -> None:
    env = GRADERS[grader](PROBLEMS, n_candidates=len(PROGRAMS), n_suites=0, rules="golden")
    env.reset(options={"problem_id": PROBLEM.id})
    _, rewards, *_ = env.step({f"coder_{n}": program for n, program in enumerate(PROGRAMS)})
    paid = [1.0] * n_fooled + [0.0] * (N - n_fooled) + [1.0, 0.0, 0.0, 0.0]
    assert list(rewards.values()) == paid
    coders = [each.coder for each in env.last_tree.rewards]
    assert [coder.value for coder in coders] == paid
    assert [coder.part("true") for coder in coders] == [0.0] * N + [1.0, 0.0, 0.0, 0.0]
    assert [coder.part("fooled") for coder in coders] == [1.0] * n_fooled + [0.0] * (N - n_fooled + 4)
    assert [coder.part("hacked") for coder in coders] == [1.0] * n_fooled + [0.0] * (N - n_fooled + 4)
    assert [coder.part("attack") for coder in coders] == [1.0] * N + [0.0] * 4
    env.close()
