"""Facts about a causal language model that need no weights: from its configuration, tokenizer, generation settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codea1_agents.models.chat_format import ChatFormat, load_chat_format
from codea1_agents.models.gguf_files import GgufSource, read_source
from codea1_agents.models.model_files import loading_errors, require_model
from codea1_env.errors import extra_needed

USUAL_REPLY = 1024
"""Limit of a reply in tokens, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model."""

    architecture: str
    """Its class in transformers, such as `Qwen2ForCausalLM`."""
    n_parameters: int
    """Tied ones counted once."""
    dtype: str
    """Type of the stored weights, such as `bfloat16`; `float32` if the configuration does not say."""
    context: int | None
    """Most tokens of a prompt and its reply together; None: unknown."""
    has_template: bool
    """Whether its tokenizer has a chat template. Otherwise prompts are plain text."""
    tokenizer_end: str
    """The tokenizer's end token; empty if it has none."""
    generation_ends: tuple[str, ...]
    """End tokens of the model's generation settings."""
    turn_end: str
    """Token with which its chat template ends a reply; empty: none. It ends replies, too."""
    source: GgufSource | None = None
    """The GGUF file that it was converted from; None: it is a folder or an id."""

    def longest_reply(self, usual: int = USUAL_REPLY) -> int:
        """Return a limit for replies in tokens: the usual one, or half of the context if that is less."""
        return longest_reply(self.context, usual)


def longest_reply(context: int | None, usual: int = USUAL_REPLY) -> int:
    """Return a limit for replies in tokens: the usual one, or half of the context if that is known and less."""
    return usual if context is None else max(1, min(usual, context // 2))


def model_facts(model: str) -> ModelFacts:
    """Return the facts about a model.

    Args:
        model: a folder, a GGUF file or an id on the HuggingFace hub.

    Raises:
        MissingExtra: torch or transformers is not installed.
        UserError: the model does not exist, is not a causal language model, or its chat template fails.
    """
    place = require_model("transformers", model)
    with extra_needed("a language model", "transformers"):
        import torch  # noqa: PLC0415  heavy, and an extra
        import transformers  # noqa: PLC0415  heavy, and an extra
    chat = load_chat_format(model)
    with loading_errors(f"model {model!r}"):
        config = transformers.AutoConfig.from_pretrained(place)
        with torch.device("meta"):
            empty = transformers.AutoModelForCausalLM.from_config(config)
    chat.require_embedding_of(empty)
    dtype = str(getattr(config, "dtype", None) or torch.float32).removeprefix("torch.")
    return ModelFacts(
        architecture=type(empty).__name__,
        n_parameters=sum(parameter.numel() for parameter in empty.parameters()),
        dtype=dtype,
        context=getattr(config.get_text_config(), "max_position_embeddings", None),
        has_template=chat.has_template,
        tokenizer_end=chat.tokenizer.eos_token or "",
        generation_ends=_generation_ends(place, chat),
        source=read_source(Path(place)),
        turn_end="" if chat.turn_end is None else str(chat.tokenizer.convert_ids_to_tokens(chat.turn_end)),
    )


def _generation_ends(place: str, chat: ChatFormat) -> tuple[str, ...]:
    from transformers import GenerationConfig  # noqa: PLC0415  heavy, and an extra

    try:
        ends = GenerationConfig.from_pretrained(place).eos_token_id
    except OSError:  # a model without generation settings has none
        return ()
    ids = [ends] if isinstance(ends, int) else list(ends or ())
    return tuple(map(str, chat.tokenizer.convert_ids_to_tokens(ids)))
