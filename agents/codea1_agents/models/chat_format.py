"""Converts chat messages to a local model's token ids, and generated token ids to a reply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from codea1_agents.models.model_files import loading_errors, require_model
from codea1_agents.prompts import Message, folded_system, plain_text
from codea1_agents.prompts.messages import TURN_OF_USER
from codea1_env.errors import UserError

_PROBE = "def f(x):\n    return [x, -12.5, 'é'] + g(x)  # <a> of  two\n"


class ChatFormat:
    """The chat format of one model: its tokenizer's chat template, or plain text if it has none."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        """Take a tokenizer of the `transformers` package, and the model's name in error messages."""
        self._tokenizer, self._name = tokenizer, name
        self._control = tuple(
            sorted(
                (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special),
                key=len,
                reverse=True,
            )
        )

    @property
    def tokenizer(self) -> Any:
        """The tokenizer whose chat template formats the prompts."""
        return self._tokenizer

    @property
    def has_template(self) -> bool:
        """Whether the tokenizer has a chat template."""
        return bool(getattr(self._tokenizer, "chat_template", None))

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a chat, up to where the assistant begins.

        Raises:
            UserError: the chat template fails on it, with and without a system message.
        """
        safe = self._safe(messages)
        if not self.has_template:
            return self._ids(plain_text(safe), special=True)
        return self._ids(self._templated(safe), special=False)  # the template adds the special tokens

    def reply_ids(self, messages: Sequence[Message], reply: str, ends: Collection[int]) -> list[int]:
        """Return the token ids of a reply as a model should generate them after `prompt_ids`, with one end token.

        With a chat template, they are what it writes after the prompt, up to the first end token. Where it writes the
        prompt of a finished chat differently, they are the reply and the tokenizer's end token.

        Args:
            messages: the prompt's messages.
            reply: the assistant's message.
            ends: ids of tokens that end a reply.

        Raises:
            UserError: the chat template fails, or the tokenizer has no end token and the template writes none.
        """
        ids = self._ids(
            self._reply_text(self._safe(messages), *self._safe([Message("assistant", reply)])), special=False
        )
        end = next((position for position, token in enumerate(ids) if token in ends), None)
        if end is not None:
            return ids[: end + 1]
        if self._tokenizer.eos_token_id is None:
            raise UserError(f"{self._name}: its tokenizer needs an end token, or replies would never end")
        return [*ids, int(self._tokenizer.eos_token_id)]

    def reply(self, token_ids: Sequence[int]) -> str:
        """Return the generated text without control tokens; a user turn that a base model adds is cut."""
        text = str(self._tokenizer.decode(token_ids, skip_special_tokens=True))
        return text if self.has_template else text.partition(TURN_OF_USER)[0]

    def _safe(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        return tuple(Message(each.role, without_control_tokens(each.content, self._control)) for each in messages)

    def _reply_text(self, messages: Sequence[Message], reply: Message) -> str:
        if not self.has_template:
            return reply.content
        prompt, whole = self._templated(messages), self._templated((*messages, reply), is_finished=True)
        return whole.removeprefix(prompt) if whole.startswith(prompt) else reply.content

    def _templated(self, messages: Sequence[Message], *, is_finished: bool = False) -> str:
        import jinja2  # noqa: PLC0415  comes with torch

        fault: Exception | None = None
        for form in (messages, folded_system(messages)):
            chat = [each.to_dict() for each in form]
            try:
                return str(
                    self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=not is_finished)
                )
            except jinja2.TemplateError as error:
                fault = error
        raise UserError(f"{self._name}: its chat template fails: {fault}") from fault

    def _ids(self, text: str, *, special: bool) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=special)["input_ids"])


def end_tokens(tokenizer: Any, generation_config: Any) -> tuple[int, ...]:
    """Return the ids of the tokens that end a reply, sorted: the tokenizer's, and those of the generation settings."""
    found = getattr(generation_config, "eos_token_id", None)
    own = [found] if isinstance(found, int) else list(found or ())
    return tuple(sorted({tokenizer.eos_token_id, *own} - {None}))


def without_control_tokens(text: str, control: Sequence[str]) -> str:
    """Return the text with each control token broken by a space after its first character.

    Tokenizers recognise control tokens anywhere in a text: a program with `<|im_end|>` in a string could end the user's
    message and add a system message for the tester that tests the program.
    """
    for token in control:
        if len(token) > 1 and token in text:
            text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def load_chat_format(model: str) -> ChatFormat:
    """Return the chat format of a model, without its weights, after a trial.

    Args:
        model: a folder, or an id on the HuggingFace hub (its tokenizer is downloaded unless it is in the cache).

    Raises:
        UserError: the model does not exist, its tokenizer cannot be loaded, or its chat template fails.
    """
    place = require_model("transformers", model)
    with loading_errors(f"model {model!r}"):
        found = ChatFormat(load_tokenizer(place), model)
    found.prompt_ids([Message("system", "s"), Message("user", "u")])
    return found


def load_tokenizer(place: str, *, trust_remote_code: bool = False) -> Any:
    """Return the tokenizer of a model's folder or hub id, with padding on the left.

    transformers chooses the tokenizer's class by the model's type. For some types that class silently replaces the
    splitting rules of `tokenizer.json` (seen with transformers 5.23 and a Qwen2 model with other rules). This function
    then loads the tokenizer from the file, which is right.
    """
    import transformers  # noqa: PLC0415  heavy, and an extra

    options = {"padding_side": "left", "trust_remote_code": trust_remote_code}
    tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
    file = Path(place) / "tokenizer.json"
    if file.is_file():
        import tokenizers  # noqa: PLC0415  comes with transformers

        expected = tokenizers.Tokenizer.from_file(str(file)).encode(_PROBE, add_special_tokens=False).ids
        if expected != tokenizer(_PROBE, add_special_tokens=False)["input_ids"]:
            tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(place, **options)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    return tokenizer
