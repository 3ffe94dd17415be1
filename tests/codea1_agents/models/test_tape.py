from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.models.tape import TapeAgent, TapeMiss
from codea1_agents.play.runner import play
from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import AgentUnavailable, BrokenInput, UserError

SEEN = {"problem": "p", "entry_point": "f", "examples": "", "program": "", "feedback": "", "round": 0}


def info(episode: str = "e", **changes: Any) -> dict[str, Any]:
    return {"role": "coder", "problem_id": "q", "episode_id": episode} | changes


class Counter:
    """Says how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0
        self.seeds: list[int] = []
        self.closed = False

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def act(self, observation, info) -> str:
        self.calls += 1
        return f"{observation['problem']} \ud800\x00½ {self.calls}"

    def close(self) -> None:
        self.closed = True


class Batched(Counter):
    plays = "tester"

    def act_batch(self, observations, infos) -> list[Any]:
        return [
            AgentUnavailable("down") if seen["problem"] == "bad" else self.act(seen, info)
            for seen, info in zip(observations, infos, strict=True)
        ]

    async def aact(self, observation, info) -> str:
        return self.act(observation, info)


def test_replies_come_back_character_by_character_and_nobody_is_asked(tmp_path):
    path, inner = tmp_path / "t.jsonl", Counter()
    recorder = TapeAgent(path=path, agent=inner)
    said = [recorder.act(SEEN, info(episode)) for episode in "abc"]
    recorder.close()
    player = TapeAgent(path=path)
    assert [player.act(SEEN, info(episode)) for episode in "cab"] == [said[2], said[0], said[1]]
    assert inner.calls == 3


@pytest.mark.parametrize(
    "changed",
    [
        (SEEN | {"program": "x"}, info()),
        (SEEN, info(role="tester")),
        (SEEN, info(problem_id="r")),
        (SEEN | {"round": 1}, info()),
    ],
    ids=["observation", "role", "problem", "round"],
)
def test_what_is_not_on_the_tape_is_an_error(tmp_path, changed):
    path = tmp_path / "t.jsonl"
    TapeAgent(path=path, agent=Counter()).act(SEEN, info())
    with pytest.raises(TapeMiss, match="it was recorded from another game"):
        TapeAgent(path=path).act(*changed)


def test_the_same_question_asked_again_has_the_next_reply_and_then_none(tmp_path):
    path = tmp_path / "t.jsonl"
    recorder = TapeAgent(path=path, agent=Counter())
    said = [recorder.act(SEEN, info()) for _ in range(3)]
    player = TapeAgent(path=path)
    assert [player.act(SEEN, info()) for _ in range(3)] == said
    with pytest.raises(TapeMiss, match="number 4"):
        player.act(SEEN, info())


def test_other_episodes_get_the_replies_in_the_order_of_the_tape(tmp_path):
    path = tmp_path / "t.jsonl"
    recorder = TapeAgent(path=path, agent=Counter())
    said = [recorder.act(SEEN, info(episode)) for episode in "ab"]
    player = TapeAgent(path=path)
    assert [player.act(SEEN, info(episode)) for episode in "xy"] == said
    with pytest.raises(TapeMiss):
        player.act(SEEN, info("z"))


def test_a_recording_that_was_killed_goes_on_with_what_it_has(tmp_path):
    path = tmp_path / "t.jsonl"
    said = TapeAgent(path=path, agent=Counter()).act(SEEN, info("a"))
    with path.open("a") as tape:
        tape.write('{"schema_version": 1, "role": "cod')
    inner = Counter()
    recorder = TapeAgent(path=path, agent=inner)
    assert recorder.act(SEEN, info("a")) == said
    assert inner.calls == 0
    recorder.act(SEEN, info("b"))
    assert inner.calls == 1
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 2


def test_a_torn_last_line_does_not_keep_a_tape_from_being_played(tmp_path):
    path = tmp_path / "t.jsonl"
    said = TapeAgent(path=path, agent=Counter()).act(SEEN, info("a"))
    path.write_text(path.read_text() + '{"schema')
    assert TapeAgent(path=path).act(SEEN, info("a")) == said


def test_batches_and_coroutines_are_recorded_and_what_failed_is_not(tmp_path):
    path, inner = tmp_path / "t.jsonl", Batched()
    recorder: Any = TapeAgent(path=path, agent=inner)
    assert recorder.plays == "tester"
    batch = [SEEN, SEEN | {"problem": "bad"}, SEEN | {"problem": "c"}]
    replies = recorder.act_batch(batch, [info()] * 3)
    assert isinstance(replies[1], AgentUnavailable)
    awaited = asyncio.run(recorder.aact(SEEN, info("later")))
    player = TapeAgent(path=path)
    assert [player.act(batch[0], info()), player.act(batch[2], info())] == [replies[0], replies[2]]
    assert player.act(SEEN, info("later")) == awaited
    with pytest.raises(TapeMiss):
        player.act(batch[1], info())


def test_a_batch_asks_only_for_what_is_missing(tmp_path):
    path, inner = tmp_path / "t.jsonl", Batched()
    first = TapeAgent(path=path, agent=Batched()).act(SEEN, info("a"))
    recorder: Any = TapeAgent(path=path, agent=inner)
    assert recorder.act_batch([SEEN, SEEN], [info("a"), info("b")])[0] == first
    assert inner.calls == 1


def test_a_tape_offers_no_more_than_the_agent_that_it_records(tmp_path):
    recorder = TapeAgent(path=tmp_path / "t.jsonl", agent=Counter())
    assert not hasattr(recorder, "act_batch")
    assert not hasattr(recorder, "aact")
    assert not hasattr(recorder, "plays")


def test_seeds_and_the_end_are_passed_on(tmp_path):
    inner = Counter()
    recorder = TapeAgent(path=tmp_path / "t.jsonl", agent=inner)
    recorder.reset(7)
    recorder.close()
    assert (inner.seeds, inner.closed) == ([7], True)


def test_a_whole_game_is_replayed_with_the_same_figures(tmp_path, toys, sandbox):
    paths = {role: tmp_path / f"{role}.jsonl" for role in ("coder", "tester")}
    options: dict[str, Any] = {"episodes": 4, "rounds": 2, "seed": 3, "sandbox": sandbox}
    recorded = play(
        toys,
        f"tape,path={paths['coder']},agent=mutant;strength=0.7",
        f"tape,path={paths['tester']},agent=fuzz",
        **options,
    )
    replayed = play(toys, f"tape,path={paths['coder']}", f"tape,path={paths['tester']}", **options)
    assert replayed == recorded


def test_options_of_the_recorded_agent_stand_behind_semicolons(tmp_path, toys, sandbox):
    context = AgentContext(toys, sandbox, seed=1)
    recorder = load_agent(f"tape,path={tmp_path / 't.jsonl'},agent=mutant;strength=0", context)
    reply = recorder.act(SEEN, info(problem_id="toy/add"))
    assert "return a + b" in reply


def line(**changes: Any) -> str:
    whole = {"schema_version": 1, "role": "coder", "problem_id": "q", "observation": "d", "episode_id": "e"}
    return json.dumps(whole | {"occurrence": 0, "reply": "r"} | changes) + "\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{\n", "line 1"),
        (line() + "[]\n", "line 2"),
        (line(extra=1), "extra"),
        (line(reply=5), "reply must be text"),
        (line(occurrence="0"), "occurrence must be a number"),
        (line(schema_version=2), "expected schema version 1, got 2"),
        ("\udcff\n", "cannot be read"),
    ],
)
def test_a_broken_tape_is_one_sentence_that_names_the_line(tmp_path, text, told):
    path = tmp_path / "t.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BrokenInput, match=told):
        TapeAgent(path=path)


def test_a_tape_that_is_not_there_and_one_without_a_path_are_told():
    with pytest.raises(BrokenInput, match="cannot be read"):
        TapeAgent(path=Path("nowhere.jsonl"))
    with pytest.raises(UserError, match="needs path="):
        TapeAgent()
