"""Where processes go."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.train.sizing.memory import Part
from codea1_agents.train.sizing.run_size import CONTEXT, Placement, Process, place, with_contexts


def process(kind: str, number: int, gpus: float, *, is_in_driver: bool = False) -> Process:
    parts = (Part("weights", 10), Part("copy", 1, is_on_host=True))
    return Process(kind, number, gpus, parts, is_in_driver=is_in_driver)


def names(placement: Placement) -> list[str]:
    return [" ".join(f"{each.kind[0]}{each.number}" for each in held) for held in placement.by_gpu]


def test_shares_fill_a_gpu_before_they_open_another_and_whole_ones_go_to_one_process_each() -> None:
    whole = place([process("runner", n, 1) for n in range(2)] + [process("learner", 0, 1)], 4)
    assert names(whole) == ["r0", "r1", "l0", ""]
    assert whole.n_gpus_of("runner") == 2
    found = place([process("runner", n, 0.4) for n in range(3)] + [process("learner", 0, 0.6)], 2)
    assert names(found) == ["r0 r1", "r2 l0"]
    assert found.gpu_bytes(0) == 20
    assert found.host_bytes == 4


def test_the_driver_uses_the_first_gpu_and_ray_does_not_know() -> None:
    found = place([process("runner", 0, 1, is_in_driver=True), process("learner", 0, 1)], 1)
    assert names(found) == ["r0 l0"]


def test_cuda_takes_its_part_of_a_gpu_once_for_each_process() -> None:
    driver = [process(kind, 0, 1, is_in_driver=True) for kind in ("runner", "learner")]
    found = list(with_contexts([*driver, process("runner", 1, 0.5), process("runner", 2, 0)]))
    assert [CONTEXT in each.parts for each in found] == [True, False, True, False]
    assert replace(found[2], sleeps=True).bytes_while("learner") == CONTEXT.n_bytes


def test_the_host_has_other_parts_while_processes_start() -> None:
    parts = (Part("weights", 10), Part("whole", 7, is_on_host=True, when="start"), Part("c", 2, 0, True, "later"))
    found = place([Process("learner", 0, 1, parts), process("runner", 0, 1)], 2)
    assert (found.start_bytes, found.work_bytes, found.host_bytes) == (8, 3, 8)
    assert (found.gpu_bytes(0), found.gpu_bytes(1)) == (10, 10)


def test_processes_without_a_gpu_are_on_the_host() -> None:
    found = place([process("runner", 0, 0), process("learner", 0, 1)], 0)
    assert [each.on for each in found.processes] == [(), ()]
    assert [each.kind for each in found.unplaced] == ["learner"]
    assert found.host_bytes == 12  # the learner's GPU is missing, not on the host


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]), max_size=12), st.integers(0, 8))
def test_no_gpu_is_given_twice(wanted: list[float], n_gpus: int) -> None:
    found = place([process("runner", n, gpus) for n, gpus in enumerate(wanted)], n_gpus)
    assert sorted(each.number for each in found.processes) == list(range(len(wanted)))
    for held in found.by_gpu:
        assert sum(min(each.gpus, 1.0) for each in held) <= 1.0 + 1e-9
    for each in found.processes:
        n_held = sum(each in held for held in found.by_gpu)
        assert n_held in (0, max(1, round(each.gpus)))


def test_a_process_that_sleeps_leaves_its_gpu_to_the_other() -> None:
    runner, small = (Process("runner", 0, 0.6, (Part("engines", n, 2),), sleeps=True) for n in (50, 30))
    weights, moved = Part("weights", 60, 20), Part("AdamW between iterations", 5, 5, is_on_host=True)
    learner = Process("learner", 0, 0.4, (weights, moved), sleeps=True)
    assert place([runner, learner], 1).gpu_bytes(0) == 70  # the engine works, the learner keeps its weights
    assert place([learner, small], 1).gpu_bytes(0) == 62
    assert place([replace(runner, sleeps=False), replace(learner, sleeps=False)], 1).gpu_bytes(0) == 110
