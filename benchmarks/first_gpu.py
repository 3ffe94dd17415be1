"""Measures on one GPU what only a GPU shows, in about ten minutes, and writes one JSON and one page.

    python benchmarks/first_gpu.py [--minutes 10] [--model FOLDER] [--json FILE] [--page FILE]

It needs the package with the extra `transformers`; what needs Ray or vLLM says "not run" where they are missing, as do
sections for which no time is left. No weights are read: the models have the shape of Qwen2.5-Coder-0.5B and random
weights, except for the last sections, which train the model in FOLDER (of `codea1 pretrain`). A random model spreads
its probability over the whole vocabulary; its last norm is scaled so that it is about as certain as a trained model,
because the gap between a sampler and a learner grows with certainty. `--device cpu` runs everything with a model of
two small layers; its figures say nothing, but the paths are the same.

Sections: the card's own limits; sampler against learner; kernels of the attention; learning by part, with memory beside
the arithmetic of `--dry-run`; sampling; the judge; sleep; FSDP2; the co-evolution in one file; GRPO on RLlib; vLLM.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the sandbox and Ray have processes of their own

import torch
from measuring import machine, option_parser
from transformers import AutoModelForCausalLM, Qwen2Config

from codea1_agents.models.chat_format import load_tokenizer
from codea1_agents.models.sampling import Response, SamplingRules, sample_responses
from codea1_agents.models.shapes import PUBLISHED, ModelShape
from codea1_agents.train.grpo.batch import Column, ScoredResponse, padded_batch
from codea1_agents.train.grpo.causal_models import (
    Abilities,
    ResponsePass,
    autocast,
    checkpoint_activations,
    mesh_of_learners,
    policies_of,
    sharded,
)
from codea1_agents.train.grpo.hyperparameters import LossSettings
from codea1_agents.train.grpo.loss import grpo_loss
from codea1_agents.train.grpo.sampling import TransformersEngine
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.nvidia_smi import gpu_figures
from codea1_agents.train.settings.options import ClusterOptions
from codea1_agents.train.sizing.memory import MicroBatch, SizedModule, learner_parts
from codea1_env import Referee, Tree

Figures = dict[str, Any]
_CERTAINTY = 8.0  # factor of the last norm: of random weights, logits with a deviation of some 5 instead of .6
_SMALL = ModelShape(128, 256, 2, 4, 2, 32, 512, 4096, is_tied=True, has_qkv_bias=True)
"""Heads of 32: vLLM computes no smaller ones."""
_EAGER = {"enforce_eager": True}  # graphs of a tiny model take longer to record than to run
_LONGEST_LAYOUT = 120  # seconds; on the first machine with a GPU, each of Ray's processes took 18 s to import torch
_EXAMPLE = Path(__file__).parents[1] / "examples" / "grpo_in_one_file.py"


@dataclass(frozen=True)
class Scale:
    """How much is computed."""

    shape: ModelShape
    group: int
    """Replies to one prompt."""
    n_prompts: int
    prompt: int
    """Tokens of a prompt."""
    reply: int
    """Tokens of the longest reply; the shortest has half of them."""
    sampled_rows: tuple[int, ...]
    sampled_tokens: int
    problems: int
    """Problems that the judge gets at once."""
    rounds: int
    """Repetitions of what is timed."""
    steps: int
    """Of the co-evolution in one file."""


SCALES = {
    "cuda": Scale(PUBLISHED["Qwen/Qwen2.5-Coder-0.5B-Instruct"], 8, 2, 700, 500, (64, 256), 128, 16, 3, 30),
    "cpu": Scale(_SMALL, 4, 2, 24, 16, (4,), 6, 2, 1, 1),
}


class Bench:
    """The device, the scale, and clocks that wait for the device."""

    def __init__(self, device: str, model: str) -> None:
        self.device, self.scale, self.tiny = device, SCALES[device], model
        self.is_gpu = device == "cuda"

    def wait(self) -> None:
        """Wait until the device has done what it was given."""
        if self.is_gpu:
            torch.cuda.synchronize()

    def seconds(self, run: Callable[[], object], rounds: int = 0) -> float:
        """Return the median seconds of some runs after one that warms up."""
        run()
        took = []
        for _ in range(rounds or self.scale.rounds):
            self.wait()
            begun = time.perf_counter()
            run()
            self.wait()
            took.append(time.perf_counter() - begun)
        return sorted(took)[len(took) // 2]

    def held(self) -> int:
        """Return the bytes of tensors on the device."""
        return torch.cuda.memory_allocated() if self.is_gpu else 0

    def peak(self) -> int:
        """Return the most bytes of tensors that were there at a time since `clean`."""
        return torch.cuda.max_memory_allocated() if self.is_gpu else 0

    @contextlib.contextmanager
    def clean(self) -> Iterator[None]:
        """Start from a device that holds nothing, and leave it so."""
        self.empty()
        yield
        self.empty()

    def empty(self) -> None:
        """Release what nothing holds any more, and forget the peak."""
        gc.collect()
        if self.is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def config(self) -> Qwen2Config:
        """Return the configuration of the model."""
        shape = self.scale.shape
        return Qwen2Config(
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            vocab_size=shape.vocabulary,
            max_position_embeddings=shape.context,
            tie_word_embeddings=shape.is_tied,
        )

    def model(self, dtype: torch.dtype = torch.float32, attention: str = "sdpa", device: str = "") -> Any:
        """Return the model; the same weights each time."""
        torch.manual_seed(0)
        with torch.device(self.device):  # drawing half a billion numbers takes seconds on a CPU
            made = AutoModelForCausalLM.from_config(self.config(), attn_implementation=attention, dtype=torch.float32)
        made.model.norm.weight.data *= _CERTAINTY
        return made.to(device or self.device, dtype).eval()

    def prompts(self, n: int, length: int) -> list[tuple[int, ...]]:
        """Return prompts of the bytes of this file: text repeats itself as random numbers do not."""
        text = Path(__file__).read_bytes() * (1 + n * length // 10_000)
        return [tuple(text[number * length : (number + 1) * length]) for number in range(n)]

    def batch(self, *, n_prompts: int = 0, is_even: bool = False) -> dict[str, torch.Tensor]:
        """Return a batch of groups of replies on the device; even: all replies have one length."""
        scale = self.scale
        prompts = self.prompts(n_prompts or scale.n_prompts, scale.prompt)
        rows = []
        for number, prompt in enumerate(prompts):
            for member in range(scale.group):
                length = scale.reply if is_even else scale.reply - member * scale.reply // (2 * scale.group)
                tokens = self.prompts(member + 2, length)[member + 1]
                response = Response(tokens, (-3.0,) * length, is_cut=True)
                advantage = 1.0 if member % 2 else -1.0
                weight = 1.0 / (len(prompts) * scale.group * scale.reply)
                rows.append(
                    ScoredResponse("coder", "", "coder", str(number), prompt, response, advantage, token_weight=weight)
                )
        return {name: column.to(self.device) for name, column in padded_batch(rows).items()}


# -- sections ----------------------------------------------------------------------------------------------------------


def card(bench: Bench) -> Figures:
    """Return what the card can do: the rates against which the other sections are read."""
    found: Figures = {"torch": torch.__version__, "device": bench.device}
    if bench.is_gpu:
        properties = torch.cuda.get_device_properties(0)
        found |= {"name": properties.name, "memory_gb": properties.total_memory / 1e9, "cuda": torch.version.cuda}
    size = 8192 if bench.is_gpu else 256
    one, other = (torch.randn(size, size, device=bench.device, dtype=torch.bfloat16) for _ in range(2))
    found["tflops_bf16"] = 2 * size**3 / bench.seconds(lambda: one @ other, 9) / 1e12
    many = torch.randn(2**29 if bench.is_gpu else 2**16, device=bench.device)
    copy = torch.empty_like(many)
    found["copy_tb_s"] = 2 * many.nbytes / bench.seconds(lambda: copy.copy_(many), 9) / 1e12
    host = torch.empty_like(many, device="cpu", pin_memory=bench.is_gpu)
    found["to_host_gb_s"] = many.nbytes / bench.seconds(lambda: host.copy_(many)) / 1e9
    return found


def sampler_against_learner(bench: Bench) -> Figures:
    """Return by how much log-probabilities of a sampler in bfloat16 differ from those of learners, in nats."""
    scale = bench.scale
    prompts = bench.prompts(scale.sampled_rows[0], scale.prompt // 4)
    rules = SamplingRules(max_tokens=scale.sampled_tokens, micro_batch_size=len(prompts))
    seeds = [(0, number) for number in range(len(prompts))]
    found: Figures = {}
    for sampler in ("float32", "bfloat16"):
        model = bench.model(getattr(torch, sampler))
        replies = sample_responses(model, prompts, seeds, end_tokens=(), rules=rules)
        rows = [ScoredResponse("", "", "", "", p, r, 0.0) for p, r in zip(prompts, replies, strict=True)]
        batch = {name: column.to(bench.device) for name, column in padded_batch(rows).items()}
        del model
        for learner, attention in (("float32", "sdpa"), ("bfloat16", "sdpa"), ("bfloat16", "eager")):
            policy = bench.model(attention=attention)
            with torch.no_grad(), autocast(bench.device, learner.replace("float32", "")):
                figures = ResponsePass(policy, Abilities.of(policy))(batch, prompt_once=False, logits_chunk_tokens=256)
            entropy = float(figures.entropy[batch[Column.RESPONSE_MASK]].mean())
            gap = _differences(figures.log_probs, batch) | {"entropy": entropy}
            found[f"{sampler} sampler, {learner} learner ({attention})"] = gap
    return found


def attention(bench: Bench) -> Figures:
    """Return which kernels compute the attention in a learner's passes: calls, and their share of the device's time."""
    if not bench.is_gpu:
        raise NotRunError("there are no kernels of a GPU")
    found: Figures = {}
    model = bench.model()
    policy = ResponsePass(model, Abilities.of(model))
    for name, is_even, prompt_once in (
        ("rows of one length", True, False),
        ("padded rows", False, False),
        ("prompt once", False, True),
    ):
        batch = bench.batch(n_prompts=1, is_even=is_even)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            _loss(policy, batch, prompt_once=prompt_once).backward()
            bench.wait()
        kernels = {each.key: (each.count, each.self_device_time_total) for each in profile.key_averages()}
        total = sum(took for _, took in kernels.values())
        of_kind: dict[str, list[float]] = {}
        for key, (count, took) in kernels.items():
            kind = next((kind for kind, parts in _KERNELS.items() if any(part in key for part in parts)), "")
            if kind:
                held = of_kind.setdefault(kind, [0, 0.0])
                held[0], held[1] = held[0] + count, held[1] + took / total
        found[name] = {kind: {"calls": calls, "share": share} for kind, (calls, share) in of_kind.items()}
    return found


_KERNELS = {
    "flash": ("flash_fwd", "flash_bwd", "pytorch_flash"),
    "cudnn": ("cudnn_generated", "sdpa_sm"),
    "memory-efficient": ("fmha_cutlass", "efficient_attention"),
}


def _loss(policy: ResponsePass, batch: Mapping[str, torch.Tensor], **how: Any) -> torch.Tensor:
    with autocast(batch[Column.PROMPT_IDS].device, "bfloat16"):
        figures = policy(dict(batch), **{"prompt_once": False, "logits_chunk_tokens": 256, **how})
    return grpo_loss(
        log_probs=figures.log_probs,
        old_log_probs=batch[Column.SAMPLED_LOG_PROBS],
        reference_log_probs=None,
        entropy=None,
        advantages=batch[Column.ADVANTAGES],
        mask=batch[Column.RESPONSE_MASK],
        token_weight=batch[Column.TOKEN_WEIGHT],
        settings=LossSettings(kl_coeff=0.0),
    ).loss


WAYS: dict[str, Figures] = {
    "whole rows": {},
    "prompt once": {"prompt_once": True},
    "prompt once, all logits at once": {"prompt_once": True, "logits_chunk_tokens": 0},
    "prompt once, 2048 logits": {"prompt_once": True, "logits_chunk_tokens": 2048},
    "whole rows, checkpointing": {"gradient_checkpointing": True},
    "packed": {"packed": True},
    "packed, prompt once": {"packed": True, "prompt_once": True},
    "packed, prompt once, checkpointing": {"packed": True, "prompt_once": True, "gradient_checkpointing": True},
}
"""How a batch is learned."""


def learning(bench: Bench, rates: Figures) -> Figures:
    """Return the speed and the memory of updates in bfloat16, and the memory that `--dry-run` computes for them."""
    found: Figures = {}
    for name, how in WAYS.items():
        with bench.clean():
            found[name] = _learned(bench, dict(how), rates)
    return found


def _learned(bench: Bench, how: Figures, rates: Figures) -> Figures:
    model = bench.model()
    checkpoints = how.pop("gradient_checkpointing", False)
    policy = ResponsePass(model, Abilities.of(model))
    if checkpoints:
        checkpoint_activations(model)
        model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    batch = bench.batch()
    begun = bench.held()

    def update() -> None:
        _loss(policy, batch, **how).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    try:
        took = bench.seconds(update)
    except torch.OutOfMemoryError:
        return {"failed": "out of memory"}
    size = micro_batch_of(batch, **how)
    operations = size.tokens * bench.scale.shape.parameters * (8 if checkpoints else 6)
    parts = dry_run(bench.scale.shape, size, checkpoints, how.get("logits_chunk_tokens", 256))
    return {
        "seconds": took,
        "tokens_s": size.tokens / took,
        "reply_tokens_s": int(batch[Column.RESPONSE_MASK].sum()) / took,
        "share_of_matrix_rate": operations / took / 1e12 / rates["tflops_bf16"],
        "peak_gb": bench.peak() / 1e9,
        "dry_run_gb": sum(parts.values()),
        "weights_and_batch_gb": begun / 1e9,
        "dry_run_parts_gb": {name: n for name, n in parts.items() if n},
    }


def micro_batch_of(
    batch: Mapping[str, torch.Tensor], *, prompt_once: bool = False, packed: bool = False, **_: Any
) -> MicroBatch:
    """Return the size of a batch, as `--dry-run` takes it: padded, or all tokens in one row without padding."""
    n_prompts = len(batch[Column.PROMPT_NUMBER].unique()) if prompt_once else len(batch[Column.PROMPT_NUMBER])
    replies, width = batch[Column.RESPONSE_IDS].numel(), batch[Column.PROMPT_IDS].shape[1]
    if packed:  # all prompts have one length
        replies = int(batch[Column.RESPONSE_MASK].sum())
        tokens = n_prompts * width + replies
        return MicroBatch(tokens, replies, tokens, tokens**2)
    row = width + batch[Column.RESPONSE_IDS].shape[1]
    tokens = n_prompts * width + replies
    return MicroBatch(tokens, replies, len(batch[Column.PROMPT_NUMBER]) * row, tokens * row)


def dry_run(shape: ModelShape, size: MicroBatch, checkpoints: bool, logits_chunk_tokens: int) -> dict[str, float]:
    """Return the memory by part, in GB, that `--dry-run` computes for a learner without a reference."""
    settings = ModelSettings(
        path="",
        autocast="bfloat16",
        gradient_checkpointing=checkpoints,
        logits_chunk_tokens=logits_chunk_tokens,
        with_reference=False,
    )
    parts = learner_parts([SizedModule(shape, settings, size)], ClusterOptions(gpus_per_learner=1))
    return {each.name: each.n_bytes / 1e9 for each in parts}


def sampling(bench: Bench, rates: Figures) -> Figures:
    """Return the speed of the engine `transformers` in bfloat16, and how near it comes to reading weights and cache."""
    scale, found = bench.scale, {}
    model = bench.model(torch.bfloat16)
    for rows in scale.sampled_rows:
        prompts = [prompt for prompt in bench.prompts(rows // scale.group, scale.prompt) for _ in range(scale.group)]
        rules = SamplingRules(max_tokens=scale.sampled_tokens, micro_batch_size=rows)
        seeds = [(1, number) for number in range(rows)]

        def run(prompts: Any = prompts, seeds: Any = seeds, rules: Any = rules) -> None:
            sample_responses(model, prompts, seeds, end_tokens=(), rules=rules)

        took = bench.seconds(run, 1)
        cache = rows * (scale.prompt + scale.sampled_tokens / 2) * scale.shape.cache_bytes(2)
        floor = scale.sampled_tokens * (2 * scale.shape.parameters + cache) / (rates["copy_tb_s"] * 1e12)
        found[f"{rows} rows"] = {
            "seconds": took,
            "tokens_s": rows * scale.sampled_tokens / took,
            "ms_a_token": 1e3 * took / scale.sampled_tokens,
            "share_of_bandwidth": floor / took,
            "peak_gb": bench.peak() / 1e9,
        }
    return found


def judging(bench: Bench, found: Mapping[str, Figures]) -> Figures:
    """Return the seconds of the judge for a step of full groups, and its share of one with this card's speeds."""
    from workload import N_CANDIDATES, N_CASES, N_SUITES, groups  # noqa: PLC0415  -- here and not where it is imported

    drawn = groups(bench.scale.problems, 0)
    begun = time.perf_counter()
    with contextlib.closing(Referee([each.problem for each in drawn], "fixed")) as referee:
        rounds = referee.open([Tree(each.problem, N_CANDIDATES, N_SUITES) for each in drawn])
        rounds.submit_programs([reply for each in drawn for reply in each.coder_replies])
        n_turns = len(rounds.tester_turns())
        replies = [reply for each in drawn for of_candidate in each.tester_replies for reply in of_candidate]
        rounds.submit_suites(replies[:n_turns])
        judged = rounds.results()
    took = time.perf_counter() - begun
    speeds = {name: found.get(name, {}) for name in ("sampling", "learning")}
    rate = max((each["tokens_s"] for each in speeds["sampling"].values() if isinstance(each, dict)), default=0.0)
    learned = speeds["learning"].get("prompt once", {}).get("reply_tokens_s", 0.0)
    n_programs, n_suites = len(drawn) * N_CANDIDATES, n_turns
    figures: Figures = {"programs": n_programs, "suites": n_suites, "cases_a_suite": N_CASES, "seconds": took}
    figures["cores"] = os.cpu_count()
    figures["without_verdict"] = sum(each.has_internal_error for tree in judged for each in tree.report.candidates)
    if rate and learned:
        sampled = (n_programs + n_suites) * bench.scale.reply / rate
        trained = (n_programs + len(drawn) * N_SUITES) * bench.scale.reply / learned
        figures |= {"sampling_s": sampled, "learning_s": trained, "judge_share": took / (took + sampled + trained)}
    return figures


def sleeping(bench: Bench) -> Figures:
    """Return what it takes to move a model to the host and back, as colocated runners do."""
    engine = TransformersEngine(bench.model(torch.bfloat16))
    before = bench.held()
    bench.wait()
    begun = time.perf_counter()
    engine.sleep()
    bench.wait()
    asleep, slept = bench.held(), time.perf_counter() - begun
    begun = time.perf_counter()
    engine.wake()
    bench.wait()
    woke = time.perf_counter() - begun
    return {"held_gb": before / 1e9, "asleep_gb": asleep / 1e9, "sleep_s": slept, "wake_s": woke}


def fsdp2(bench: Bench) -> Figures:
    """Return how a model sharded over one device compares with a whole one, in bfloat16 and off the device."""
    with tempfile.TemporaryDirectory() as folder:
        backend = "nccl" if bench.is_gpu else "gloo"
        torch.distributed.init_process_group(backend, init_method=f"file://{folder}/meet", rank=0, world_size=1)
        try:
            return _sharded(bench)
        finally:
            torch.distributed.destroy_process_group()


def _sharded(bench: Bench) -> Figures:
    batch, found, whole_loss = bench.batch(n_prompts=1), {}, 0.0

    def empty() -> list[Any]:
        with torch.device("meta"):
            return [AutoModelForCausalLM.from_config(bench.config(), dtype=torch.float32).eval()]

    for name in ("whole", "sharded", "sharded, off the device"):
        with bench.clean():
            if name == "whole":
                model = bench.model()
                policy = ResponsePass(model, Abilities.of(model))
            else:
                policies = policies_of("bfloat16", is_offloaded=name != "sharded")
                mesh, prepare = mesh_of_learners(), [lambda _: None]
                (policy,) = sharded(
                    lambda: [bench.model(device="cpu")], empty, mesh, prepare=prepare, policies=policies
                )
            in_step = name != "whole"

            def update(policy: ResponsePass = policy, in_step: bool = in_step) -> float:
                loss = _loss(policy, batch, prompt_once=True, in_step=in_step)
                loss.backward()
                policy.zero_grad(set_to_none=True)
                return float(loss.detach())

            loss = update()
            whole_loss = loss if name == "whole" else whole_loss
            found[name] = {
                "seconds": bench.seconds(update),
                "peak_gb": bench.peak() / 1e9,
                "loss_differs_by": abs(loss - whole_loss),
            }
            del policy
    return found


def coevolution(bench: Bench) -> Figures:
    """Return the last lines of `examples/grpo_in_one_file.py` on this device and on the CPU."""
    if not bench.tiny:
        raise NotRunError("it needs --model, a folder of `codea1 pretrain`")
    command = [sys.executable, str(_EXAMPLE), "0", str(bench.scale.steps), bench.tiny]
    running, begun, found = {}, time.perf_counter(), dict[str, Any]()
    for device in dict.fromkeys((bench.device, "cpu")):  # both at once: they share nothing but the judge's cores
        visible = {} if device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
        running[device] = subprocess.Popen(
            command, env=os.environ | visible, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    for device, process in running.items():
        text, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(text[-2000:])
        found[device] = {"seconds": time.perf_counter() - begun, "lines": text[text.find("step") :].strip()}
    return found


def rllib(bench: Bench) -> Figures:
    """Return steps of GRPO on RLlib with learner and runner in the driver, and in processes that share the device."""
    _require("ray")
    if not bench.tiny:
        raise NotRunError("it needs --model, a folder of `codea1 pretrain`")
    found: Figures = {}
    of_gpu = ["one process", "processes that share the GPU", "colocated processes"]
    if importlib.util.find_spec("vllm"):
        of_gpu.append("colocated processes with vLLM")
    layouts = ("on the CPU", *of_gpu) if bench.is_gpu else ("on the CPU", "processes on the CPU")
    for layout in layouts:
        command = [sys.executable, __file__, "--device", bench.device, "--model", bench.tiny, "--rllib", layout]
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
            try:
                text, _ = process.communicate(timeout=_LONGEST_LAYOUT)
            except subprocess.TimeoutExpired:
                process.kill()
            if process.wait():
                log.seek(0)
                found[layout] = {"failed": log.read()[-1500:]}
                continue
        for number, step in enumerate(json.loads(text.splitlines()[-1]), 1):
            found[f"{layout}, step {number}"] = step
    return found


def rllib_steps(layout: str, model: str) -> list[Figures]:
    """Return the figures of three steps in one layout, trained in this process."""
    import ray  # noqa: PLC0415  -- only here

    from codea1_agents.train.grpo import GRPOConfig  # noqa: PLC0415  -- it imports RLlib
    from codea1_env import preset  # noqa: PLC0415

    faulthandler.dump_traceback_later(_LONGEST_LAYOUT - 10)  # where it waits, should it wait too long
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    gpus = 0 if "CPU" in layout else 1
    if not gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    ray.init("local", num_cpus=8, num_gpus=gpus, include_dashboard=False, log_to_driver=False)
    config = GRPOConfig().environment(rules=replace(preset("fixed"), tests_per_suite=4)).problems("tiny:train")
    settings = ModelSettings(model)
    if "vLLM" in layout:
        settings = replace(settings, rollout_engine="vllm", engine_options=_EAGER, sampling_dtype="bfloat16")
    config.llm_agents(coder=settings, tester=settings, prompts="tiny")
    lengths = {"coder": 56, "tester": 96}
    config.training(lr=1e-3, problems_per_step=8, n_suites=4, n_kept=2, max_tokens=lengths, warmup_steps=0)
    config.training(sampling_batch_size=256, micro_batch_size=0, minibatches_per_epoch=1)
    if "processes" in layout:
        config.env_runners(num_env_runners=1, num_gpus_per_env_runner=0.6 * gpus)
        config.learners(num_learners=1, num_gpus_per_learner=0.4 * gpus)
    else:
        config.learners(num_gpus_per_learner=gpus)
    if "colocated" in layout:
        config.learners(placement="colocated")
    config.debugging(seed=0)
    begun = time.perf_counter()  # the time of the build counts to the first step
    algorithm, steps = config.build_algo(), list[Figures]()
    for _ in range(3):
        result = algorithm.train()
        of_learner = result["learners"].get("coder", {})
        steps.append(
            {
                "seconds": time.perf_counter() - begun,
                "coder_reward": float(result["env_runners"]["coder_reward"]),
                "tester_reward": float(result["env_runners"].get("tester_reward", float("nan"))),
                "sampler_gap": float(of_learner.get("sampler_gap", float("nan"))),
                "sampler_gap_max": float(of_learner.get("sampler_gap_max", float("nan"))),
                "gpu_gb_of_driver": torch.cuda.max_memory_allocated() / 1e9 if gpus else 0.0,
            }
        )
        begun = time.perf_counter()
    algorithm.stop()
    ray.shutdown()
    return steps


def vllm(bench: Bench) -> Figures:
    """Return the speed of the engine vLLM, its gap to the learner, and what sleep and hand-overs take.

    The engine has a process of its own, in which it can sleep. The learner's weights move between the two hand-overs.
    """
    _require("vllm")
    if not bench.tiny:
        raise NotRunError("it needs --model, a folder of `codea1 pretrain`")
    from codea1_agents.train.grpo.vllm_engine import VllmEngine  # noqa: PLC0415  -- only here

    scale = bench.scale
    model = bench.model(torch.bfloat16, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        load_tokenizer(bench.tiny).save_pretrained(folder)  # nothing reads it: a folder without one is refused
        options = {"max_num_seqs": max(scale.sampled_rows), "max_model_len": scale.prompt + scale.reply}
        options |= {} if bench.is_gpu else _EAGER
        settings = ModelSettings(folder, rollout_engine="vllm", sampling_dtype="bfloat16", engine_options=options)
        engine, starting = _timed(lambda: VllmEngine(settings, model, gpus_per_runner=0.5, sleeps=True))
    found: Figures = {"start_s": starting, "hand_over_s": _timed(lambda: engine.load_weights(0))[1]}
    for rows in scale.sampled_rows:
        prompts = [prompt for prompt in bench.prompts(rows // scale.group, scale.prompt) for _ in range(scale.group)]
        seeds, rules = [(1, number) for number in range(rows)], SamplingRules(max_tokens=scale.sampled_tokens)
        engine.sample(prompts, seeds, (), rules)
        replies, took = _timed(lambda p=prompts, s=seeds, r=rules: engine.sample(p, s, (), r))
        gap = _gap(bench, model, prompts[:16], replies[:16])
        found[f"{rows} rows"] = {"seconds": took, "tokens_s": rows * scale.sampled_tokens / took} | gap
    bench.empty()  # or what this process held counts, too
    held = _gpu_gb()
    found["sleep_s"] = _timed(engine.sleep)[1]
    found |= {"awake_gb": held, "asleep_gb": _gpu_gb(), "wake_s": _timed(engine.wake)[1]}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.01)
    found["second_hand_over_s"] = _timed(lambda: engine.load_weights(1))[1]
    if bench.is_gpu:
        found["third_hand_over_s"] = _timed(lambda: engine.load_weights(2))[1]
        engine._way = "cpu"
        found["hand_over_by_files_s"] = _timed(lambda: engine.load_weights(3))[1]
    found["after sleep"] = _gap(bench, model, prompts[:16], engine.sample(prompts[:16], seeds[:16], (), rules))
    engine.close()
    return found


def _gap(bench: Bench, model: Any, prompts: Sequence[Any], replies: Sequence[Response]) -> Figures:
    """Return by how much a learner in bfloat16 differs from the log-probabilities of some replies, in nats."""
    rows = [ScoredResponse("", "", "", "", p, r, 0.0) for p, r in zip(prompts, replies, strict=True)]
    batch = {name: column.to(bench.device) for name, column in padded_batch(rows).items()}
    policy = bench.model()
    policy.load_state_dict(model.state_dict())
    with torch.no_grad(), autocast(bench.device, "bfloat16"):
        figures = ResponsePass(policy, Abilities.of(policy))(batch, prompt_once=False, logits_chunk_tokens=256)
    return _differences(figures.log_probs, batch)


def _differences(log_probs: torch.Tensor, batch: Mapping[str, torch.Tensor]) -> Figures:
    gap = (log_probs - batch[Column.SAMPLED_LOG_PROBS])[batch[Column.RESPONSE_MASK]].abs().float()
    return {
        "mean": float(gap.mean()),
        "p95": float(gap.quantile(0.95)),
        "max": float(gap.max()),
        "ratios_beyond_1.1": float((gap.exp() > 1.1).float().mean()),
    }


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.perf_counter()
    return run(), time.perf_counter() - begun


def _gpu_gb() -> float:
    """Return what all processes hold on the first GPU; nan without one."""
    return next((float(used) / 1024 for (used,) in gpu_figures("memory.used")), float("nan"))


# -- running them ------------------------------------------------------------------------------------------------------


class NotRunError(Exception):
    """A section cannot run here; the message says why."""


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise NotRunError(f"{package} is not installed")


def measured(bench: Bench, minutes: float, say: Callable[[str], None]) -> Iterator[dict[str, Figures]]:
    """Yield what is known after each section. One that fails leaves its error and does not end the others."""
    end, found = time.monotonic() + 60 * minutes, dict[str, Figures]()
    sections: dict[str, Callable[[], Figures]] = {
        "card": lambda: card(bench),
        "sampler against learner": lambda: sampler_against_learner(bench),
        "attention": lambda: attention(bench),
        "learning": lambda: learning(bench, found["card"]),
        "sampling": lambda: sampling(bench, found["card"]),
        "judging": lambda: judging(bench, found),
        "sleeping": lambda: sleeping(bench),
        "fsdp2": lambda: fsdp2(bench),
        "coevolution": lambda: coevolution(bench),
        "rllib": lambda: rllib(bench),
        "vllm": lambda: vllm(bench),
    }
    for number, (name, section) in enumerate(sections.items(), 1):
        begun = time.monotonic()
        if begun > end:
            found[name] = {"not_run": f"no time was left of {minutes:g} minutes"}
            yield found
            continue
        say(f"{number}/{len(sections)} {name}")
        try:
            with bench.clean():
                found[name] = section()
        except NotRunError as error:
            found[name] = {"not_run": str(error)}
        except Exception:  # noqa: BLE001  -- whatever fails on a card that nobody has seen, the rest is still wanted
            found[name] = {"failed": traceback.format_exc(limit=-4)}
        say(f"    {time.monotonic() - begun:.1f} s {next((x for x in ('failed', 'not_run') if x in found[name]), '')}")
        yield found


def page_of(found: Mapping[str, Any]) -> str:
    """Return the figures as a page: one table for each section."""
    about = found["about"]
    lines = [f"# {about['title']}", "", about["text"], ""]
    for name, section in found["sections"].items():
        lines += [f"## {name[0].upper()}{name[1:]}", ""]
        if "not_run" in section:
            lines += [f"Not run: {section['not_run']}.", ""]
        elif "failed" in section:
            lines += ["Failed:", "", "```", section["failed"].strip(), "```", ""]
        else:
            lines += [*_table(section), ""]
    return "\n".join(lines)


def _table(section: Figures) -> Iterator[str]:
    rows = {name: value for name, value in section.items() if isinstance(value, dict)}
    texts = {name: row["lines"] for name, row in rows.items() if "lines" in row}
    for name, text in texts.items():
        yield from (f"{name}, {rows.pop(name)['seconds']:.0f} s:", "", "```", text, "```", "")
    single = {name: value for name, value in section.items() if not isinstance(value, dict)}
    if single:
        yield from ("| | |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in single.items()), "")
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    if rows:
        yield f"| | {' | '.join(columns)} |"
        yield f"|---|{'---|' * len(columns)}"
        for name, row in rows.items():
            yield f"| {name} | {' | '.join(_cell(row.get(column, '')) for column in columns)} |"


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(each)}" for name, each in value.items())
    if not isinstance(value, float):
        return str(value).replace("|", "\\|").replace("\n", " ")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = option_parser(__doc__)
    parser.add_argument("--device", choices=sorted(SCALES), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=10, help="no section starts later")
    parser.add_argument("--model", default="", help="a folder of `codea1 pretrain`, for the sections that train it")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--page", type=Path, help="file for the page")
    parser.add_argument("--rllib", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    options = parsed()
    if options.rllib:
        print(json.dumps(rllib_steps(options.rllib, options.model)))
        return
    bench = Bench(options.device, options.model)
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    text = f"Made by `python benchmarks/first_gpu.py` on {time.strftime('%Y-%m-%d')}: {facts}."
    page = ""
    for sections in measured(bench, options.minutes, lambda line: print(line, file=sys.stderr, flush=True)):
        title = f"First figures of {sections['card'].get('name', 'a CPU')}"
        found = {"about": {"title": title, "text": text}, "sections": sections}
        page = page_of(found)
        if options.json:  # after each section: what is known stays should the machine be taken away
            options.json.write_text(json.dumps(found, indent=2) + "\n")
        if options.page:
            options.page.write_text(page)
    if not options.page:
        print(page)


if __name__ == "__main__":
    main()
