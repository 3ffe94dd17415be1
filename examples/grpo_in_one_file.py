"""GRPO for two language models that learn against each other, in one file; read it from top to bottom.

    python grpo_in_one_file.py [SEED [STEPS [MODEL]]]

A coder writes programs for a problem. A tester sees problem and program, and writes asserts that the program should
fail. Both start as copies of one model of half a million parameters, which the script pretrains first unless MODEL is a
folder of `codea1 pretrain`. It ends with a table of trained against untrained models. With the seeds 0, 1 and 2 the
coder's pass@1 rises from .21-.24 to .33-.43, the tester's reward against the untrained coder from .10-.13 to .26-.31.

The game is that of Code-A1 (arXiv 2603.15611), the loss that of GRPO (arXiv 2402.03300) as in Code-A1's official code.
What larger trainings need besides stands in comments that begin with "Left out"; `codea1 train` has it.
"""

import sys
import time
from copy import deepcopy
from dataclasses import dataclass, replace
from math import isnan
from operator import methodcaller

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from codea1_agents.train.tiny.pretraining import PretrainingSettings, pretrain
from codea1_env import Referee, Tree, preset

ROLES = ("coder", "tester")
N, M, K = 8, 4, 4  # candidates per problem, suites per candidate, tests per suite
PROBLEMS, KEPT = 8, 2  # problems per step, and candidates for each of them whose suites train the tester
LONGEST = {"coder": 56, "tester": 96}  # tokens of a reply
LEARNING_RATE = 1e-3  # for half a million parameters; 1e-6 is usual for billions
CLIP_LOW, CLIP_HIGH = 0.2, 0.28  # a ratio of probabilities counts from 1 - CLIP_LOW to 1 + CLIP_HIGH
KL = 0.001  # weight of the divergence from the base
PRETRAINING = 400  # steps

# -- 1. Replies. The policy is a language model, its action a whole reply; the reward comes at the end. ----------------


@dataclass(frozen=True)
class Reply:
    """What a model wrote, with what the loss needs."""

    prompt: list[int]  # token ids
    tokens: list[int]  # with the end token: to stop is a decision like any other
    log_probs: list[float]  # of each token when it was sampled
    text: str


@torch.no_grad()
def write(model, tokenizer, prompts, longest):
    """Sample one reply to each prompt from the whole distribution: with top-k or top-p, another policy would write."""
    # Left out: a program can contain the text of a control token, and so end its tester's prompt.
    chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
    form = {"add_generation_prompt": True, "return_dict": True, "padding": True, "return_tensors": "pt"}
    batch = tokenizer.apply_chat_template(chats, **form)  # padded on the left, where the models look past it
    how = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": longest}
    # Left out: random numbers of its own for each reply, so that it does not depend on the others of its batch.
    ids, mask = batch["input_ids"], batch["attention_mask"]
    found = model.generate(input_ids=ids, attention_mask=mask, return_dict_in_generate=True, output_logits=True, **how)
    tokens = found.sequences[:, ids.shape[1] :]
    log_probs = torch.stack(found.logits, dim=1).log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    replies = []
    rows = map(torch.masked_select, ids, mask > 0), tokens.tolist(), log_probs.tolist()
    for prompt, row, of_row in zip(*rows, strict=True):
        end = row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else len(row)
        text = tokenizer.decode(row[:end], skip_special_tokens=True)
        replies.append(Reply(prompt.tolist(), row[:end], of_row[:end], text))
    return replies


# -- 2. The game. A round has P problems, N candidates for each, and M suites for each candidate that loads. -----------


@dataclass(frozen=True)
class Played:
    """The replies of a round, and their rewards; a reward is nan where there is none."""

    programs: list[Reply]  # (P * N,), problem by problem
    suites: list[Reply]
    places: list[tuple[int, int, int]]  # problem, candidate and number of each suite
    coder_rewards: torch.Tensor  # (P, N)
    tester_rewards: torch.Tensor  # (P, N, M)
    judged: list  # (P,) with all verdicts and the parts of the rewards


def play(referee, problems, writers, n=N, m=M):
    """Let two models play one round; `writers` says by role how prompts get replies.

    The referee runs everything in its sandbox: the tests on the true solution, which shows whether their answers are
    right, and then on the program. Under its rules `fixed` the reward of a program is the share of its tests that it
    passes. That of a suite is half its validity, the share of right answers among K, and half its adversity, the share
    of K tests that are right and that the program fails: a wrong assert, which any program fails, earns nothing.
    """
    # Left out: the Mistake Book. It gives `Tree(replayed=...)` tests that programs for this problem have failed before,
    # and reads `book_report` of each judged tree. Without it, a coder may forget what its tester no longer asks.
    rounds = referee.open([Tree(problem, n, m) for problem in problems])
    # The wording is the shortest that there is; the base is pretrained on no other.
    programs = writers["coder"]([f"code {turn.observation['problem']}" for turn in rounds.coder_turns()])
    rounds.submit_programs([reply.text for reply in programs])
    turns = rounds.tester_turns()  # one for each suite of a program that loads
    seen = [(turn.observation["problem"], turn.observation["program"]) for turn in turns]
    suites = writers["tester"]([f"test {K} {problem}\n{program}" for problem, program in seen]) if turns else []
    rounds.submit_suites([reply.text for reply in suites])
    judged = rounds.results()
    places = [(turn.tree, turn.candidate, turn.suite) for turn in turns]
    rewards = stacked(each.coder_rewards for each in judged), stacked(each.tester_rewards for each in judged)
    return Played(programs, suites, places, *rewards, judged)


def stacked(arrays):
    return torch.from_numpy(np.stack(list(arrays)))


# -- 3. Advantages. GRPO has no value network: a reply is as good as it is better than others to the same prompt. ------


def centred_and_deviation(rewards):
    """Return rewards (..., G) less the mean of their group, and its standard deviation (..., 1); nan counts nowhere."""
    centred = rewards - rewards.nanmean(-1, keepdim=True)
    n_known = (~rewards.isnan()).sum(-1, keepdim=True)
    return centred, (centred.square().nansum(-1, keepdim=True) / (n_known - 1)).sqrt()


def group_advantages(rewards):
    """Return advantages (..., G); nan: a reply trains nothing, as those of a group of equal rewards."""
    centred, deviation = centred_and_deviation(rewards)
    return torch.where(deviation > 1e-8, centred / (deviation + 1e-6), torch.nan)


def suite_advantages(rewards):
    """Return the advantages of suites (P, N, M). The suites for one candidate are a group, as they have one prompt.

    All suites would train the tester on M times as many replies as the coder. Code-A1 keeps those candidates of each
    problem whose suites differ most.
    """
    deviation = centred_and_deviation(rewards)[1].squeeze(-1).nan_to_num(0.0)
    rank = deviation.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)  # (P, N)
    return torch.where((rank < KEPT)[..., None], group_advantages(rewards), torch.nan)


def replies_to_train(played):
    """Return by role the replies that train something, and their advantages (B,)."""
    of_suites = suite_advantages(played.tester_rewards)
    pairs = {
        "coder": zip(played.programs, group_advantages(played.coder_rewards).flatten().tolist(), strict=True),
        "tester": [(suite, float(of_suites[place])) for suite, place in zip(played.suites, played.places, strict=True)],
    }
    kept = {role: [pair for pair in of_role if not isnan(pair[1])] for role, of_role in pairs.items()}
    return {role: ([reply for reply, _ in each], torch.tensor([a for _, a in each])) for role, each in kept.items()}


# -- 4. The loss: what replies above the average of their group contain becomes more probable, token by token. ---------


def grpo_loss(log_probs, old_log_probs, reference_log_probs, advantages, mask):
    """Return the loss of B replies; all (B, T) but the advantages (B,). The mask is True on the tokens of replies."""
    # How much more probable a token is than when it was sampled. At the first optimiser step on a batch all ratios are
    # 1, and the gradient is that of REINFORCE. The clip matters at further steps on it, which `main` does not make.
    ratio = (log_probs - old_log_probs).exp()
    advantage = advantages[:, None]  # each token of a reply has that of the reply
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP_LOW, 1 + CLIP_HIGH) * advantage)
    # Left out: verl's bounds, of the loss of a token of a bad reply whose ratio is above 10, and of the divergence.
    # The divergence from the base holds replies near its language. This estimate, k3, is never negative and needs only
    # the sampled tokens. It weighs little, since the models are meant to change.
    difference = reference_log_probs - log_probs
    divergence = difference.exp() - difference - 1
    # A mean over all tokens of the batch, as in the official code. In GRPO's paper, tokens of long replies count less.
    return ((KL * divergence - gain) * mask).sum() / mask.sum()


def token_log_probs(model, replies):
    """Return log-probabilities (B, T) of the tokens after the first, and a mask: True on the tokens of replies."""
    # Left out: micro-batches, and one computation of a prompt for all replies to it. Here all logits exist at once.
    lengths = torch.tensor([[len(reply.prompt), len(reply.prompt) + len(reply.tokens)] for reply in replies])
    width = int(lengths.max())
    ids = torch.tensor([(reply.prompt + reply.tokens + [0] * width)[:width] for reply in replies])
    positions, starts, ends = torch.arange(width), lengths[:, :1], lengths[:, 1:]
    logits = model(input_ids=ids, attention_mask=(positions < ends).long()).logits[:, :-1]
    log_probs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]  # a position predicts the next token
    return log_probs, ((positions >= starts) & (positions < ends))[:, 1:]


def loss_of(model, base, replies, advantages):
    log_probs, mask = token_log_probs(model, replies)
    with torch.no_grad():
        reference_log_probs, _ = token_log_probs(base, replies)
    old_log_probs = torch.zeros_like(log_probs)
    old_log_probs[mask] = torch.tensor([each for reply in replies for each in reply.log_probs])
    return grpo_loss(log_probs, old_log_probs, reference_log_probs, advantages, mask)


# -- 5. The training: play a round, then make one optimiser step with each model. --------------------------------------


def main(seed=0, steps=30, model=None):
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # more are slower at this size
    base, tokenizer = load(model, seed)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")  # rewards, made by NumPy, stay on the CPU
    models = {role: deepcopy(base.to(torch.get_default_device())) for role in ROLES}
    optimizers = {role: torch.optim.AdamW(models[role].parameters(), LEARNING_RATE, weight_decay=0.0) for role in ROLES}
    rules = replace(preset("fixed"), tests_per_suite=K)
    referee, started = Referee("tiny:train", rules), time.monotonic()
    for step in range(1, steps + 1):
        drawn = torch.randperm(len(referee.problems))[:PROBLEMS].tolist()
        played = play(referee, [referee.problems[number] for number in drawn], writers_of(models, tokenizer))
        # Both move at once. Left out: a warm-up of the learning rate, and several optimiser steps for a round.
        for role, (replies, advantages) in replies_to_train(played).items():
            if replies:
                loss_of(models[role], base, replies, advantages).backward()
                torch.nn.utils.clip_grad_norm_(models[role].parameters(), 1.0)
                optimizers[role].step()
                optimizers[role].zero_grad()
        print(f"step {step:2}  {figures(played)}", flush=True)
    print(f"{steps} steps took {time.monotonic() - started:.0f} s. On problems that no step has seen:")
    # Rewards of different steps do not compare: a coder's falls when its tester learns. So each plays the base, too.
    held_out = Referee("tiny:held-out-eval", rules, golden=True)
    for pair in (("base", "base"), ("trained", "base"), ("base", "trained"), ("trained", "trained")):
        players = {role: base if which == "base" else models[role] for role, which in zip(ROLES, pair, strict=True)}
        played = play(held_out, list(held_out.problems), writers_of(players, tokenizer), n=4, m=1)
        reports = [each for judged in played.judged for each in judged.report.candidates if not each.has_internal_error]
        right = np.mean([each.golden_pass_rate == 1 for each in reports])
        print("{:>7} coder, {:>7} tester  pass@1 {:.2f}  {}".format(*pair, right, figures(played)))


def writers_of(models, tokenizer):
    return {role: lambda prompts, r=role: write(models[r], tokenizer, prompts, LONGEST[r]) for role in ROLES}


def figures(played):
    """Return mean rewards as text, and for the tester's its parts."""
    names = ("validity", "adversarial")
    parts = (stacked(each.of_suites(methodcaller("part", name)) for each in played.judged).nanmean() for name in names)
    rewards = f"coder {played.coder_rewards.nanmean():.3f}  tester {played.tester_rewards.nanmean():.3f}"
    return rewards + " (validity {:.3f}, adversity {:.3f})".format(*parts)


def load(model, seed):
    if model:  # `AutoTokenizer` would split texts by the rules of the model's type, not by those in the folder
        tokenizer = PreTrainedTokenizerFast.from_pretrained(model, padding_side="left")
        return AutoModelForCausalLM.from_pretrained(model), tokenizer
    print(f"Pretraining for {PRETRAINING} steps; all takes some two and a half minutes of one processor.", flush=True)
    made = pretrain(PretrainingSettings(seed=seed, steps=PRETRAINING))
    made.tokenizer.padding_side = "left"
    return made.model, made.tokenizer


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:4])
