"""The agent `human`: a person at the keyboard plays either role, line by line."""

from __future__ import annotations

import sys
from typing import TextIO

from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.errors import UserError
from codea1_env.rendering import harmless

_HELP = """Type {what}.
  .   send it (or end the input)   :u  take a line back       :c  start again
  :p  show it                      :o  show the task again    :q  leave the game"""
_WHAT = {"coder": "the program", "tester": "one assert per line, as many as you like"}


class HumanAgent:
    """Prompts a person at the terminal: prints the task and prompts to stderr, and reads the reply from stdin.

    No line of Python begins with a colon or is a dot, so these are commands.
    """

    interactive = True

    def __init__(
        self,
        context: AgentContext | None = None,
        *,
        keyboard: TextIO | None = None,
        screen: TextIO | None = None,
    ) -> None:
        """Make an agent.

        Args:
            context: not needed.
            keyboard: the stream to read lines from; None: stdin.
            screen: the stream to print the task to; None: stderr.
        """
        self._keyboard, self._screen = keyboard, screen

    def act(self, observation: Observation, info: Info, *, is_again: bool = False) -> str:
        """Show the task, unless it is the same again, and return the typed reply.

        Raises:
            UserError: the input ended before anything was typed.
            KeyboardInterrupt: the person left the game.
        """
        turn = _Turn(observation, info, self._keyboard or sys.stdin, self._screen or sys.stderr)
        if not is_again:
            turn.show_task()
            turn.say(_HELP.format(what=_WHAT.get(turn.role, "the reply")))
        while turn.take_line():
            pass
        return turn.text

    def __repr__(self) -> str:
        return "human"


class _Turn:
    """One turn of the person: the task, and the reply typed so far."""

    def __init__(self, observation: Observation, info: Info, keyboard: TextIO, screen: TextIO) -> None:
        self._observation, self._keyboard, self._screen = observation, keyboard, screen
        self.role = str(info.get("role", ""))
        self._tests = info.get("tests_per_suite")
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def say(self, text: str) -> None:
        self._screen.write(harmless(text, keep="\n") + "\n")
        self._screen.flush()

    def show_task(self) -> None:
        from rich.console import Console, Group  # noqa: PLC0415  rich is slow to import
        from rich.panel import Panel  # noqa: PLC0415
        from rich.syntax import Syntax  # noqa: PLC0415

        def block(title: str, text: str, lexer: str) -> Panel:
            # Texts of agents are untrusted: remove control characters and markup.
            shown = Syntax(harmless(text, keep="\n\t"), lexer, word_wrap=True, background_color="default")
            return Panel(shown, title=title, title_align="left")

        seen = self._observation
        later = f", round {seen['round'] + 1}" if seen["round"] else ""
        parts = [block(f"problem{later}", seen["problem"], "python")]
        if seen["examples"]:
            parts.append(block("known tests", seen["examples"], "python"))
        if seen["program"]:
            title = "your previous program" if self.role == "coder" else "the program to break"
            parts.append(block(title, seen["program"], "python"))
        if seen["feedback"]:
            parts.append(block("result of the previous round", seen["feedback"], "text"))
        console = Console(file=self._screen)
        console.print(Group(*parts))
        counted = f"; at most {self._tests} tests count" if self.role == "tester" and self._tests else ""
        self.say(f"You are the {self.role or 'player'} ({seen['entry_point']}{counted}).")

    def take_line(self) -> bool:
        """Read one line; return whether to read another."""
        self._screen.write(f"{len(self._lines) + 1:>3}> ")
        self._screen.flush()
        line = self._keyboard.readline()
        if not line:
            self._screen.write("\n")
            if not self._lines:
                raise UserError("human: the input ended before anything was typed")
            return False
        line = line.removesuffix("\n").removesuffix("\r")
        if line.startswith(":"):
            self._command(line[1:].strip())
            return True
        if line == ".":
            return False
        self._lines.append(line)
        return True

    def _command(self, name: str) -> None:
        if name == "q":
            raise KeyboardInterrupt
        if name == "u" and self._lines:
            self.say(f"took back: {self._lines.pop()}")
        elif name == "c":
            self._lines.clear()
        elif name == "p":
            self.say("\n".join(f"{number:>3}  {line}" for number, line in enumerate(self._lines, start=1)))
        elif name == "o":
            self.show_task()
        elif name != "u":
            self.say(f"no such command: :{name}")
