"""Supervised fine-tuning of a tester on golden tests, before or instead of reinforcement learning (paper, 4.1).

`sft_examples` makes the examples; this module has the training loop. The result is a plain folder of `transformers`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from codea1_agents.models.model_files import writing_errors
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.prompts import load_prompts
from codea1_agents.train.tiny.sft_examples import SftExample, failing_programs, sft_examples
from codea1_env.agent import AgentContext, agent_name, load_agent
from codea1_env.errors import CodeA1Error, UserError, extra_needed
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_env.secret import read_secrets

if TYPE_CHECKING:
    import torch

_IGNORED = -100  # targets that `cross_entropy` ignores
_ADAM_BETAS = (0.9, 0.999)
_PROBE = "def f(x):\n    return [x, -12]\nassert f(1) == [1, -12]"


@dataclass(frozen=True, slots=True)
class SupervisedSettings:
    """The examples and the optimiser of a fine-tuning.

    Raises:
        UserError: a number out of range.
    """

    prompts: str = "simple"
    """Wording of the tester's prompts, here and when it plays: a name or a file."""
    coder: str = ""
    """Agent that writes the programs; empty: the model itself."""
    samples: int = 8
    """Programs per problem."""
    tests: int = 8
    """Golden tests per example."""
    max_tokens: int = 1024
    """Longest program in tokens, if the model itself writes the programs."""
    epochs: int = 2
    lessons_per_step: int = 16
    """Examples per optimiser step."""
    lr: float = 1e-5
    """Highest learning rate. It rises over the first tenth of the steps and then falls to 0, both linearly."""
    weight_decay: float = 0.0
    grad_clip: float = 1.0
    seed: int = 0
    """Seed of programs, tests and the order of examples."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "coder", read_secrets(self.coder))
        if min(self.samples, self.tests, self.max_tokens, self.epochs, self.lessons_per_step) < 1 or self.seed < 0:
            raise UserError(
                "fine-tuning: samples, tests, max_tokens, epochs, lessons_per_step must be at least 1, seed at least 0"
            )
        if not (0 < self.lr < math.inf and 0 <= self.weight_decay < math.inf and self.grad_clip > 0):
            raise UserError("fine-tuning: lr and grad_clip must be above 0, weight_decay at least 0")


@dataclass(frozen=True, slots=True)
class FineTuned:
    """A fine-tuned model that is not on disk yet."""

    model: Any
    tokenizer: Any
    losses: tuple[float, ...]
    """Mean per token of the replies, epoch by epoch."""
    n_steps: int
    n_tokens: int
    """Tokens of all replies, each reply counted once."""

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as a plain folder of `transformers`.

        Raises:
            UserError: the folder cannot be written.
            CodeA1Error: the tokenizer loaded from the folder gives other tokens.
        """
        from codea1_agents.models.chat_format import load_tokenizer  # noqa: PLC0415  -- slow to import

        with writing_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
        if load_tokenizer(str(folder))(_PROBE)["input_ids"] != self.tokenizer(_PROBE)["input_ids"]:
            raise CodeA1Error(f"the tokenizer loaded from {folder} gives other tokens than the one that was saved")


def fine_tuned(place: str, examples: Sequence[SftExample], settings: SupervisedSettings) -> FineTuned:
    """Return a model that was trained on the replies of the examples.

    The loss is the mean over the reply tokens of a step. The same settings give the same weights. The global random
    state is neither used nor changed.

    Args:
        place: directory or hub id of a causal language model.
        examples: at least one.
        settings: of the optimiser.

    Raises:
        MissingExtra: torch or transformers is not installed.
        UserError: there is no example or no model.
    """
    with extra_needed("fine-tuning", "transformers"):
        import torch  # noqa: PLC0415  -- slow to import, and an extra

        from codea1_agents.models.chat_format import ChatFormat, load_tokenizer  # noqa: PLC0415  -- likewise
    if not examples:
        raise UserError("nothing to fine-tune on: no sampled program fails a golden test that is an assert")
    model, tokenizer = _loaded(place), load_tokenizer(place)
    format_ = ChatFormat(tokenizer, place)
    rows = [_row(each, format_, tokenizer) for each in examples]
    parameters = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=settings.lr, betas=_ADAM_BETAS, weight_decay=settings.weight_decay)
    n_steps = settings.epochs * math.ceil(len(rows) / settings.lessons_per_step)
    done, losses = 0, []
    for epoch in range(settings.epochs):
        total = 0.0
        for batch in _batches(rows, settings, epoch):
            for group in optimizer.param_groups:
                group["lr"] = settings.lr * _lr_share(done, n_steps)
            summed, n_tokens = _summed_loss(model, batch)
            optimizer.zero_grad(set_to_none=True)
            (summed / n_tokens).backward()
            torch.nn.utils.clip_grad_norm_(parameters, settings.grad_clip)
            optimizer.step()
            total += float(summed.detach())
            done += 1
        losses.append(total / sum(len(row.reply) for row in rows))
    return FineTuned(model.eval(), tokenizer, tuple(losses), done, sum(len(row.reply) for row in rows))


@dataclass(frozen=True, slots=True)
class FineTunedTester:
    """A fine-tuned tester, and the numbers of its examples."""

    found: FineTuned
    settings: SupervisedSettings
    n_failing: int
    """Distinct failing programs."""
    n_lessons: int
    """Examples."""
    n_problems: int
    """Problems of the examples."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return plain data."""
        return {
            "n_failing_programs": self.n_failing,
            "n_lessons": self.n_lessons,
            "n_problems": self.n_problems,
            "losses": list(self.found.losses),
            "steps": self.found.n_steps,
            "reply_tokens": self.found.n_tokens,
            "settings": asdict(self.settings),
        }


def fine_tuned_tester(
    model: str, problems: ProblemSet, sandbox: Sandbox, settings: SupervisedSettings
) -> FineTunedTester:
    """Sample programs, keep those that fail, and fine-tune the model on golden tests.

    Args:
        model: directory or hub id of a causal language model.
        problems: those without golden tests are left out.
        sandbox: runs the programs.
        settings: of examples and optimiser.

    Raises:
        MissingExtra: torch or transformers is not installed.
        UserError: there is no such model or agent, an agent failed, or there is no example.
        SandboxError: the sandbox cannot be used at all.
    """
    prompts = load_prompts(settings.prompts)
    own = f"transformers,model={model},prompts={settings.prompts},max_tokens={settings.max_tokens},batch_size=64"
    spec = settings.coder or own
    agent = load_agent(spec, AgentContext(problems, sandbox, settings.seed), role="coder")
    with closing(NamedAgent(agent, f"coder {agent_name(spec, agent)}", seed=settings.seed)) as coder:
        failing = failing_programs(problems, coder, sandbox, samples=settings.samples)
    examples = sft_examples(failing, prompts, tests=settings.tests, seed=settings.seed)
    found = fine_tuned(model, examples, settings)
    n_problems = len({each.problem_id for each in examples})
    return FineTunedTester(found, settings, len(failing), len(examples), n_problems)


def sft_tester(
    model: str | Path, problems: str, out: Path, settings: SupervisedSettings | None = None, *, sandbox: str = "local"
) -> FineTunedTester:
    """Fine-tune a tester and write it, as `codea1 sft-tester` does.

    Args:
        model: directory or hub id of a causal language model.
        problems: a source for `load_problems`.
        out: folder of the new model.
        settings: of examples and optimiser; None: the defaults.
        sandbox: name of the back end; it stays open for others in this process.

    Raises:
        UserError: see `fine_tuned_tester`; or the folder cannot be written.
        SandboxError: the sandbox cannot be used at all.
    """
    done = fine_tuned_tester(
        str(model), load_problems(problems), load_sandbox(sandbox), settings or SupervisedSettings()
    )
    done.found.save(out)
    return done


@dataclass(frozen=True, slots=True)
class _Row:
    """An example in tokens."""

    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    """Includes the end token."""


def _loaded(place: str) -> Any:
    import torch  # noqa: PLC0415  -- slow to import, and an extra
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  -- likewise

    from codea1_agents.models.model_files import loading_errors, require_model  # noqa: PLC0415  -- likewise

    found = require_model("transformers", place)
    with loading_errors(f"model {place!r}"):
        model = AutoModelForCausalLM.from_pretrained(found, dtype=torch.float32)
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()  # no dropout: nothing random


def _row(example: SftExample, format_: Any, tokenizer: Any) -> _Row:
    reply = tokenizer(example.reply, add_special_tokens=False)["input_ids"]
    return _Row(tuple(format_.prompt_ids(example.messages)), (*reply, tokenizer.eos_token_id))


def _batches(rows: Sequence[_Row], settings: SupervisedSettings, epoch: int) -> Iterator[list[_Row]]:
    order = list(range(len(rows)))
    Random(f"{settings.seed}/{epoch}").shuffle(order)
    for start in range(0, len(order), settings.lessons_per_step):
        yield [rows[position] for position in order[start : start + settings.lessons_per_step]]


def _lr_share(step: int, n_steps: int) -> float:
    """Return the factor of the learning rate in a step, numbered from 0; it is above 0 in the last step."""
    warm = max(1, n_steps // 10)
    return min(1.0, (step + 1) / warm) if step < warm else (n_steps - step) / (n_steps - warm)


def _summed_loss(model: Any, batch: Sequence[_Row]) -> tuple[torch.Tensor, int]:
    """Return the sum of the losses of the reply tokens, and the number of these tokens."""
    import torch  # noqa: PLC0415  -- slow to import, and an extra

    width = max(len(row.prompt) + len(row.reply) for row in batch)
    ids = torch.zeros((len(batch), width), dtype=torch.int64)
    mask, targets = torch.zeros_like(ids), torch.full_like(ids, _IGNORED)
    for number, row in enumerate(batch):
        start, end = len(row.prompt), len(row.prompt) + len(row.reply)
        ids[number, :end] = torch.tensor(row.prompt + row.reply)
        mask[number, :end] = 1
        targets[number, start:end] = ids[number, start:end]
    ids, mask, targets = (each.to(model.device) for each in (ids, mask, targets))
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1].float()
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets[:, 1:].flatten(), ignore_index=_IGNORED, reduction="sum"
    )
    return loss, sum(len(row.reply) for row in batch)
