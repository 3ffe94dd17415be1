from __future__ import annotations

from typing import Any

import pytest

from codea1_agents.adapters.comlrl import JointGame
from codea1_env import Referee
from tests.support.language_models import phrase_model, phrase_tokenizer
from tests.support.toys import ADD

RIGHT, WRONG = "def add(a, b):\n    return a + b", "def add(a, b):\n    return a - b"
SUITE = "assert add(1, 2) == 3"
REPLIES = [f"```python\n{text}\n```" for text in (RIGHT, WRONG, SUITE)]


def test_the_joint_reward_is_of_both_replies_and_that_of_a_masked_round_zero(broken_sandbox):
    referee = Referee([ADD])
    (scored,) = referee.rewards([ADD.id], [WRONG], [SUITE])
    item = {"prompt": ADD.id}
    assert JointGame(referee).reward([WRONG], [SUITE], batch_items=[item]) == [scored.coder + scored.tester]
    product = JointGame(referee, joint=lambda coder, tester: 10 * coder - tester)
    assert product.reward([WRONG, RIGHT], [SUITE] * 2, batch_items=[item])[0] == 10 * scored.coder - scored.tester
    game = JointGame(Referee([ADD], sandbox=broken_sandbox))
    assert game.reward([RIGHT], [SUITE], batch_items=[{"prompt": ADD.id}]) == [0.0]


def test_the_tester_is_shown_the_program_from_the_second_turn_on():
    game = JointGame(Referee([ADD]))
    coder, tester = (formatter({"prompt": ADD.id}) for formatter in game.formatters)
    assert WRONG not in tester
    found = game.transition(prompt=ADD.id, agent_completions=[REPLIES[1], "nothing"], num_agents=2)
    assert found[0] == coder
    assert WRONG in found[1]
    assert "```python\n```" not in found[1]
    assert game.formatters[1]({"prompt": "changed"}, external_prompts=found[1]) == found[1]


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of CoMLRL and what it imports
def test_two_steps_of_magrpo_with_two_turns_move_both_models():
    pytest.importorskip("comlrl", reason="the extra comlrl is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from comlrl.trainers.reinforce import MAGRPOConfig, MAGRPOTrainer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    game = JointGame(Referee([ADD]), joint=lambda coder, tester: coder)
    judged: list[float] = []

    def reward(programs: list[str], suites: list[str], *, batch_items: Any) -> list[float]:
        judged.extend(found := game.reward(programs, suites, batch_items=batch_items))
        return found

    agents = [phrase_model(seed, REPLIES, max_position_embeddings=4096) for seed in range(2)]
    before = [[weight.detach().clone() for weight in agent.parameters()] for agent in agents]
    rows = game.dataset()
    turns = {"num_train_epochs": 1, "num_turns": 2, "num_generations": 4, "early_termination_threshold": None}
    sampling = {"max_new_tokens": 2, "temperature": 1.0, "top_p": 1.0, "top_k": None}  # the loss drops the last token
    updates = {"rollout_buffer_size": 1, "eval_interval": 0}
    trainer = MAGRPOTrainer(
        agents=agents,
        tokenizer=[phrase_tokenizer(REPLIES) for _ in agents],
        reward_func=reward,
        formatters=game.formatters,
        external_transition=game.transition,
        train_dataset=rows.select([0, 0]),
        args=MAGRPOConfig(agent_learning_rate=1e-2, agent_devices="cpu", **turns, **sampling, **updates),
    )
    trainer.train()
    assert len(set(judged)) > 1
    for old, agent in zip(before, agents, strict=True):
        assert not all(map(torch.equal, old, agent.parameters()))
