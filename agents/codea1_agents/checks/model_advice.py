"""What follows from the check of a language model. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, nan

from codea1_agents.checks.model_check import ModelReport, RoleReport

_MANY_CUT = 0.25
_MANY_UNREADABLE = 0.5
_TOO_EASY = 0.95


def advice(report: ModelReport, problems: str) -> tuple[str, ...]:
    """Return what follows from a report, most urgent first: obstacles, the next step, and the limits of a training.

    The last is the command of a training, or why this machine is too small for one.

    Args:
        report: what `check_model` returned.
        problems: source of the user's problems, for the commands.
    """
    return (*_obstacles(report), _next_step(report, problems), *_training(report, problems))


def _obstacles(report: ModelReport) -> Iterator[str]:
    facts = report.facts
    if not (facts.tokenizer_end or facts.generation_ends or facts.turn_end):
        yield "It lacks an end token, so replies never end by themselves: name one in its tokenizer_config.json."
    for role in report.roles:
        if role.n_unavailable:
            yield (
                f"{role.n_unavailable} prompts of the {role.role} and --max-tokens {report.max_tokens} exceed the"
                f" context of {facts.context} tokens: lower --max-tokens, or shorten the prompts (--prompts simple)."
            )
        if role.n_replies and role.seen.n_cut >= _MANY_CUT * role.n_replies:
            yield (
                f"{role.seen.n_cut} of {role.n_replies} replies of the {role.role} were cut at {report.max_tokens}"
                " tokens: raise --max-tokens, and agents.*.max_tokens in training."
            )
    if not facts.has_template:
        yield "It has no chat template, so its prompts are plain text; an instruction-tuned model follows them better."


def _next_step(report: ModelReport, problems: str) -> str:
    warm = f"codea1 sft {report.model} -p {problems} -o models/warm"
    unreadable = _unreadable(report.roles)
    if unreadable:
        return (
            f"Warm-start it first ({warm}), or give it simpler prompts (--prompts simple): {' and '.join(unreadable)}."
        )
    passed = report.figures["pass@1"].mean if "pass@1" in report.figures else nan
    if passed == 0:
        return (
            f"Warm-start it first ({warm}), or take easier problems: no program is right, so no group has a best one."
        )
    if passed > _TOO_EASY:
        return "Take harder problems: nearly all programs are right, so the groups of the coder have equal rewards."
    known = f" {passed:.0%} of its programs are right, so groups have unequal rewards." if not isnan(passed) else ""
    return f"Train it.{known}"


def _training(report: ModelReport, problems: str) -> Iterator[str]:
    proposal = report.proposal
    for role in report.roles:
        limits = proposal.lengths[role.role]
        yield (
            f"In training a prompt of the {role.role} has at most {limits.prompt} tokens, which cuts"
            f" {limits.n_prompts_cut} of {len(role.seen.prompts)}, and a reply {limits.reply}, which cuts"
            f" {limits.n_replies_cut} of {role.n_replies}."
        )
    if proposal.needs:
        yield f"Training needs further packages: {proposal.needs}"
    if proposal.size is not None and proposal.size.faults:
        yield f"It cannot be trained here, not even in the smallest batches: {'; '.join(proposal.size.faults)}."
    else:
        yield proposal.command(report.model, problems)


def _unreadable(roles: Sequence[RoleReport]) -> list[str]:
    what = {"coder": "no program", "tester": "no right test"}
    return [
        f"{each.n_unreadable} of {each.n_replies} replies of the {each.role} have {what[each.role]}"
        for each in roles
        if each.n_replies and each.n_unreadable >= _MANY_UNREADABLE * each.n_replies
    ]
