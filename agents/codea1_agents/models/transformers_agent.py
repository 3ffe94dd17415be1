"""The agent `transformers`: a causal language model of the `transformers` package, in this process."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.models.completions import Completion, CompletionAgent, EndedCompletion, Sampling, draw_seed
from codea1_agents.models.gguf_files import read_source
from codea1_agents.models.model_facts import USUAL_REPLY, longest_reply
from codea1_agents.models.model_files import loading_errors, no_progress_bars, require_model
from codea1_agents.prompts import Prompts, load_prompts
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.errors import AgentUnavailable, UserError, extra_needed

if TYPE_CHECKING:
    from codea1_agents.models.sampling import Response

_GO_ON = tuple("_.'\"([{")  # characters that continue a literal
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class _Request:
    """One reply to generate."""

    prompt_ids: tuple[int, ...]
    seed: int


class TransformersAgent(CompletionAgent):
    """Generates with a causal model from a folder, a GGUF file or a hub id; a lock allows one call at a time.

    The random numbers of a reply depend only on the seed, the observation and its info, so a reply is the same in a
    batch and in a single call. The exception: padding can change the last bits of the model's arithmetic, which can
    decide a near tie between two tokens; float32 makes that rare. The global random state is not used.
    """

    def __init__(
        self,
        context: AgentContext | None = None,
        *,
        model: str = "",
        prompts: str | Prompts = "default",
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int | None = None,
        seed: int | None = None,
        batch_size: int = 16,
        device: str = "auto",
        dtype: str = "auto",
        trust_remote_code: bool = False,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Load the model.

        Args:
            context: its seed is used if `seed` is None.
            model: a folder, a GGUF file, or an id on the HuggingFace hub (downloaded unless it is in the cache).
            prompts: a wording's name, a file, or `Prompts`.
            temperature: 0: greedy.
            top_p: within (0, 1].
            max_tokens: longest reply, in tokens; None: 1024, or half of a shorter context.
            seed: seeds the sampling until `reset`.
            batch_size: most replies generated at once; halved if memory does not suffice.
            device: `cpu`, `cuda`, `cuda:1`, `mps`; auto: a GPU if there is one.
            dtype: one of `DTYPES`; auto: as the weights are stored.
            trust_remote_code: whether code of the model's repository may run.
            template_arguments: what its chat template is given, e.g. `{"enable_thinking": False}`.

        Raises:
            MissingExtra: torch or transformers is not installed.
            UserError: an option is out of range, the model does not exist, or the model does not fit the device.
        """
        super().__init__(context, seed)
        torch, _ = _import_packages()
        sampling = Sampling(temperature, top_p, USUAL_REPLY if max_tokens is None else max_tokens)
        self._prompts = load_prompts(prompts)
        if not (type(batch_size) is int and batch_size >= 1):
            raise UserError(f"batch_size must be at least 1, got {batch_size!r}")
        if dtype not in DTYPES:
            raise UserError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
        place = require_model("transformers", str(model))
        self.source = read_source(Path(place))
        self._device, self._batch_size = _device(torch, device), batch_size
        with loading_errors(f"model {str(model)!r}"), no_progress_bars():
            self._tokenizer, self._model = _load_model(place, self._device, dtype, trust_remote_code)
        self._name, self._lock = f"transformers({model})", threading.Lock()
        self._format = ChatFormat(self._tokenizer, str(model), template_arguments or {})
        self._format.require_embedding_of(self._model)
        self._context_length = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        if max_tokens is None:
            sampling = replace(sampling, max_tokens=longest_reply(self._context_length))
        self._sampling = sampling
        self._ends = self._format.ends(self._model.generation_config)

    def complete_stream(self, observations: Sequence[Observation], infos: Sequence[Info]) -> Iterator[EndedCompletion]:
        """Yield the completions, each when it ends; prompts that do not fit come last."""
        requests = dict(enumerate(self._request(*pair) for pair in zip(observations, infos, strict=True)))
        refused = {at: each for at, each in requests.items() if isinstance(each, AgentUnavailable)}
        fitting = {at: each for at, each in requests.items() if isinstance(each, _Request)}
        with self._lock:
            for ended in chain(self._generate(fitting), starmap(EndedCompletion, refused.items())):
                if isinstance(ended.result, Completion):
                    self._usage = self._usage.with_completions([ended.result])
                else:
                    self._usage = replace(self._usage, unanswered=self._usage.unanswered + 1)
                yield ended

    def __repr__(self) -> str:
        return self._name

    def answer_probabilities(
        self, observations: Sequence[Observation], infos: Sequence[Info], begun: Sequence[str], answers: Sequence[str]
    ) -> list[float]:
        """Return how probable it is that the model goes on with an answer and ends it there.

        Args:
            observations: (n,) of the turns that it replies to.
            infos: (n,)
            begun: (n,) the beginnings of its replies.
            answers: (n,) Python literals.

        Returns:
            (n,) exact probabilities of this spelling, at the temperature of its sampling (1 if that is greedy).
            Beginnings and answers are encoded together, as the model would write them in the fewest tokens; the last
            one may also be the beginning of what follows.
        """
        rows: list[list[int]] = []
        sizes: list[int] = []
        for observation, info, before, answer in zip(observations, infos, begun, answers, strict=True):
            prompt = self._format.prompt_ids(self._prompts.messages(observation, info))
            whole = self._tokenizer(before + answer, add_special_tokens=False)["input_ids"]
            short = self._tokenizer(before, add_special_tokens=False)["input_ids"]
            pairs = enumerate(zip(whole, short, strict=False))
            n_common = next((n for n, (one, other) in pairs if one != other), len(short))
            rows.append([*prompt, *whole])
            sizes.append(len(whole) - min(n_common, len(whole) - 1))
        probabilities: list[float] = []
        for start in range(0, len(rows), self._batch_size):
            part = slice(start, start + self._batch_size)
            probabilities += self._probabilities(rows[part], sizes[part])
        return probabilities

    def _probabilities(self, rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[float]:
        """Return the probabilities of the last tokens of rows, so many of each, and of an end after them."""
        torch, _ = _import_packages()
        batch = self._tokenizer.pad({"input_ids": list(map(list, rows))}, padding=True, return_tensors="pt")
        mask, ids = batch["attention_mask"].to(self._device), batch["input_ids"].to(self._device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        with torch.inference_mode():
            logits = self._model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False).logits
            log_probs = (logits.float() / (self._sampling.temperature or 1.0)).log_softmax(-1)
        probabilities = []
        for row, of_row, n in zip(ids.tolist(), log_probs, sizes, strict=True):
            total, so_far, tokens = 0.0, 0.0, row[-n:]
            for at in range(n + 1):
                rest = "".join(self._texts[token] for token in tokens[at:])
                ends = torch.tensor(self._ending_after(rest), dtype=torch.int64, device=self._device)
                total += float((so_far + of_row[at - n - 1, ends].logsumexp(-1)).exp()) if len(ends) else 0.0
                so_far += float(of_row[at - n - 1, tokens[at]]) if at < n else 0.0
            probabilities.append(total)
        return probabilities

    def _ending_after(self, rest: str) -> list[int]:
        """Return the tokens that say the rest of a literal and end it: `]`, a line feed, or both in one."""
        ordered, texts = self._ordered_tokens, self._texts
        endings = []
        for place in range(bisect_left(ordered, rest, key=texts.__getitem__), len(ordered)):
            text = texts[ordered[place]]
            if not text.startswith(rest):
                break
            after = text[len(rest) : len(rest) + 1]
            if (after or not rest) and not (after.isalnum() or after in _GO_ON):
                endings.append(ordered[place])
        return endings

    @cached_property
    def _texts(self) -> list[str]:
        """The text of each token; a control token says nothing, and ends what is before it."""
        return list(self._tokenizer.batch_decode([[n] for n in range(len(self._tokenizer))], skip_special_tokens=True))

    @cached_property
    def _ordered_tokens(self) -> list[int]:
        return sorted(range(len(self._texts)), key=self._texts.__getitem__)

    def _request(self, observation: Observation, info: Info) -> _Request | AgentUnavailable:
        ids = self._format.prompt_ids(self._prompts.messages(observation, info))
        if self._context_length is None or len(ids) + self._sampling.max_tokens <= self._context_length:
            return _Request(tuple(ids), draw_seed(self._seed, observation, info))
        return AgentUnavailable(
            f"{self._name}: a prompt of {len(ids)} tokens and max_tokens={self._sampling.max_tokens} "
            f"do not fit its context of {self._context_length}"
        )

    def _generate(self, requests: Mapping[int, _Request]) -> Iterator[EndedCompletion]:
        """Yield a completion for each request, by position, when it ends; with fewer at a time where memory lacks."""
        torch, _ = _import_packages()
        from codea1_agents.models.sampling import SamplingRules, stream_responses  # noqa: PLC0415  imports torch

        left = dict(sorted(requests.items(), key=lambda each: len(each[1].prompt_ids)))
        limits, size = self._sampling, self._batch_size
        while left:
            some = dict(islice(left.items(), None if size > 1 else 1))
            size, fault = min(size, len(some)), ""
            rules = SamplingRules(limits.max_tokens, limits.temperature, limits.top_p, micro_batch_size=size)
            prompts, seeds = [each.prompt_ids for each in some.values()], [(each.seed,) for each in some.values()]
            positions = list(some)
            try:
                for ended in stream_responses(self._model, prompts, seeds, self._ends, rules):
                    position = positions[ended.position]
                    yield EndedCompletion(position, self._completion(left.pop(position), ended.response))
            except torch.OutOfMemoryError as error:
                fault = f"{self!r}: not enough memory for one reply ({' '.join(str(error).split())[:120]})"
            if fault and size == 1:
                del left[positions[0]]
                yield EndedCompletion(positions[0], AgentUnavailable(fault))
            elif fault:
                size //= 2

    def _completion(self, request: _Request, response: Response) -> Completion:
        return Completion(
            self._format.reply(response.tokens if response.is_cut else response.tokens[:-1]),
            finish="length" if response.is_cut else "stop",
            prompt_tokens=len(request.prompt_ids),
            completion_tokens=response.n_tokens,
        )


def _load_model(place: str, device: Any, dtype: str, trust_remote_code: bool) -> tuple[Any, Any]:
    _, transformers = _import_packages()
    tokenizer = load_tokenizer(place, trust_remote_code=trust_remote_code)
    model = transformers.AutoModelForCausalLM.from_pretrained(place, dtype=dtype, trust_remote_code=trust_remote_code)
    return tokenizer, model.to(device).eval()


def _device(torch: Any, name: str) -> Any:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device {name!r} cannot be used: {str(error).splitlines()[0]}") from error
    return device


def _import_packages() -> tuple[Any, Any]:
    with extra_needed("the agent 'transformers'", "transformers"):
        import torch  # noqa: PLC0415  heavy, and an extra
        import transformers  # noqa: PLC0415  heavy, and an extra
    return torch, transformers
