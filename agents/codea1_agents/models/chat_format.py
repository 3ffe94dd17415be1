"""Converts chat messages to a local model's token ids, and generated token ids to a reply."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codea1_agents.models.model_files import loading_errors, model_folder, require_model
from codea1_agents.prompts import Message, folded_system, plain_text
from codea1_agents.prompts.templates import TURN_OF_USER
from codea1_env.errors import UserError

_REPLY = "r0"
_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"  # what the first bytes of a character decode to
_OWN_ARGUMENTS = frozenset({"", "add_generation_prompt", "chat", "conversation", "messages", "tokenize"})
_PROBE = "def f(x):\n    return [x, -12.5, 'é'] + g(x)  # <a> of  two\n"


class ChatFormat:
    """The chat format of one model: its tokenizer's chat template, or plain text if it has none."""

    def __init__(self, tokenizer: Any, name: str, arguments: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Take what decides the format.

        Args:
            tokenizer: a tokenizer of the `transformers` package.
            name: what error messages call the model.
            arguments: what the chat template is given, e.g. `{"enable_thinking": False}`.

        Raises:
            UserError: the template reads no argument of that name, or there is no template.
        """
        self._tokenizer, self._name, self._arguments = tokenizer, name, dict(arguments)
        for argument in self._arguments:
            if argument in _OWN_ARGUMENTS or not re.search(
                rf"\b{re.escape(argument)}\b", str(getattr(tokenizer, "chat_template", None) or "")
            ):
                raise UserError(f"{name}: template_arguments: {argument!r} is no argument that its chat template takes")
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

    def ends(self, generation_config: Any) -> tuple[int, ...]:
        """Return the ids of the tokens that end a reply, sorted.

        They come from the tokenizer, the generation settings, and the template's own ends of turns. A base model with
        the chat template of its family has another end token than its turns: without the last, each reply would go on
        to the longest.
        """
        own = getattr(generation_config, "eos_token_id", None)
        listed = [own] if isinstance(own, int) else list(own or ())
        return tuple(sorted({self._tokenizer.eos_token_id, self.turn_end, *listed} - {None}))

    @property
    def turn_end(self) -> int | None:
        """Id of the control token that the template writes after a reply; None: it writes none."""
        if not self.has_template:
            return None
        _, _, after = self._reply_text([Message("user", "u")], Message("assistant", _REPLY)).rpartition(_REPLY)
        ids = self._ids(after.lstrip(), special=False)[:1]
        return next((token_id for token_id in ids if token_id in self._tokenizer.added_tokens_decoder), None)

    def require_embedding_of(self, model: Any) -> None:
        """Raise UserError if a prompt or a reply can have a token that a model has no embedding for.

        Control tokens that the template never writes, such as a padding token that was added later, do no harm.
        """
        control = {number for number, token in self._tokenizer.added_tokens_decoder.items() if token.special}
        ids = self.prompt_ids([Message("system", "s"), Message("user", "u")])
        largest = max({*ids, *(set(self._tokenizer.get_vocab().values()) - control)}, default=0)
        n_rows = model.get_input_embeddings().num_embeddings
        if largest >= n_rows:
            raise UserError(
                f"{self._name}: its tokenizer has a token {largest:,} and its embedding {n_rows:,} rows: they are of "
                "different models"
            )

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a chat, up to where the assistant begins.

        Raises:
            UserError: the chat template fails on it, with and without a system message.
        """
        safe = self._safe(messages)
        if not self.has_template:
            return self._ids(plain_text(safe), special=True)
        return self._ids(self._apply_template(safe), special=False)  # the template adds the special tokens

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
        return self._own_turn(self._decode(token_ids))

    def starts(self, token_ids: Sequence[int]) -> list[int]:
        """Return where in `reply` each token begins: after what the tokens before it decode to.

        A token that continues a character begins where the character does, and one that `reply` leaves out where the
        next one begins; those of a user turn that was cut begin at its end.
        """
        text = self._decode(token_ids)
        starts = self._starts_by_windows(token_ids, text) or [
            _n_agreeing(text, self._decode(token_ids[:n])) for n in range(len(token_ids))
        ]
        end = len(self._own_turn(text))
        return [min(start, end) for start in starts]

    def _starts_by_windows(self, token_ids: Sequence[int], text: str) -> list[int]:
        """Return the same, decoding a few tokens at a time; [] where that does not give the whole text.

        A tokenizer may decode a token differently at the beginning, so each piece is decoded behind the one before it.
        """
        starts, pieces, piece, length, before, begin = [], "", "", 0, 0, 0
        for n in range(len(token_ids)):
            starts.append(length)
            piece = self._decode(token_ids[before : n + 1])[len(self._decode(token_ids[before:begin])) :]
            if not piece.endswith(_INCOMPLETE):
                pieces += piece
                length, before, begin = len(pieces), begin, n + 1
        return starts if pieces + (piece if piece.endswith(_INCOMPLETE) else "") == text else []

    def _own_turn(self, text: str) -> str:
        return text if self.has_template else text.partition(TURN_OF_USER)[0]

    def _decode(self, token_ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(token_ids, skip_special_tokens=True))

    def _safe(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        return tuple(Message(one.role, without_control_tokens(one.content, self._control)) for one in messages)

    def _reply_text(self, messages: Sequence[Message], reply: Message) -> str:
        if not self.has_template:
            return reply.content
        prompt, whole = self._apply_template(messages), self._apply_template((*messages, reply), is_finished=True)
        return whole.removeprefix(prompt) if whole.startswith(prompt) else reply.content

    def _apply_template(self, messages: Sequence[Message], *, is_finished: bool = False) -> str:
        import jinja2  # noqa: PLC0415  comes with torch

        fault: Exception | None = None
        for form in (messages, folded_system(messages)):
            chat = [message.to_dict() for message in form]
            try:
                text = self._tokenizer.apply_chat_template(
                    chat, tokenize=False, add_generation_prompt=not is_finished, **self._arguments
                )
                return str(text)
            except jinja2.TemplateError as error:
                fault = error
        raise UserError(f"{self._name}: its chat template fails: {fault}") from fault

    def _ids(self, text: str, *, special: bool) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=special)["input_ids"])


def _n_agreeing(one: str, other: str) -> int:
    """Return the length of the longest beginning of both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


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
        model: a folder, a GGUF file, or an id on the HuggingFace hub (its tokenizer is downloaded unless it is in the
            cache).

    Raises:
        UserError: the model does not exist, its tokenizer cannot be loaded, or its chat template fails.
    """
    place = require_model("transformers", model)
    with loading_errors(f"model {model!r}"):
        chat_format = ChatFormat(load_tokenizer(place), model)
    chat_format.prompt_ids([Message("system", "s"), Message("user", "u")])
    return chat_format


def load_tokenizer(place: str, *, trust_remote_code: bool = False) -> Any:
    """Return the tokenizer of a model's folder, GGUF file or hub id, with padding on the left.

    transformers chooses the tokenizer's class by the model's type. For some types that class silently replaces the
    splitting rules of `tokenizer.json` (seen with transformers 5.23 and a Qwen2 model with other rules). This function
    then loads the tokenizer from the file, which is right.

    Before a download it asks once whether the hub answers: transformers would ask for minutes.
    """
    import transformers  # noqa: PLC0415  heavy, and an extra
    from huggingface_hub import constants, get_session, try_to_load_from_cache  # noqa: PLC0415  comes with transformers

    place = str(model_folder(place))
    with loading_errors(f"model {place!r}, sought on {constants.ENDPOINT} as this machine's cache lacks it,"):
        if not Path(place).is_dir() and not isinstance(try_to_load_from_cache(place, "config.json"), str):
            get_session().head(constants.ENDPOINT, timeout=5.0)
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
