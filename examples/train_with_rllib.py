"""Train two language models against each other with GRPO, through RLlib's interface.

python train_with_rllib.py [CODER TESTER]

The arguments are folders or hub ids of causal language models. Without arguments the script makes two toy models with
random weights whose every token is a whole reply. They learn within a minute and need no download.
"""

import json
import math
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from codea1_agents.train.grpo import GRPO, GRPOConfig

PROGRAMS = [
    f"```python\ndef f(x):\n    {body}\n```" for body in ("return x + 1", "return 2 * x", "return x", "return [")
]
SUITES = [f"```python\nassert {case}\n```" for case in ("f(1) == 2", "f(0) == 1", "f(5) == 6", "f(3) == 9")]
PROBLEM = {"id": "toy/0", "statement": 'def f(x):\n    """Return x plus one."""\n', "entry_point": "f"}
PROBLEM |= {"solution": "def f(x):\n    return x + 1\n", "golden": [{"expression": "f(1)", "expected": "2"}]}
FIGURES = ("coder_reward", "tester_reward", "valid_candidates")


def toy(folder, replies):
    """Write a model that can only write these replies; a real training loads your model instead."""
    words = ["<unk>", "<end>", *replies]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    special = {"unk_token": "<unk>", "eos_token": "<end>", "pad_token": "<end>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Qwen2Config(vocab_size=len(words), **size, num_key_value_heads=1, eos_token_id=1, bos_token_id=None)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return str(folder)


def small_config(coder, tester, problems, rate, longest):
    return (
        GRPOConfig()  # the paper's defaults; the lines below make the training small
        .environment(rules="fixed", tester_view="white_box")
        .problems(problems)
        .llm_agents(coder=coder, tester=tester)
        .training(lr=rate, warmup_steps=0, problems_per_step=2, minibatches_per_epoch=1)
        .training(n_candidates=6, n_suites=4, max_tokens=dict.fromkeys(("coder", "tester"), longest))
        .env_runners(num_env_runners=0)  # n > 0: rollouts in n processes, with the same result
        .learners(num_learners=0)  # n > 0: DDP over n processes or GPUs
        .debugging(seed=1)
    )


def toy_config(place):
    problems = place / "toy.jsonl"
    problems.write_text(json.dumps(PROBLEM))
    return small_config(toy(place / "coder", PROGRAMS), toy(place / "tester", SUITES), str(problems), 0.02, 2)


def main(place):
    config = small_config(*sys.argv[1:], "humaneval", 1e-6, 512) if sys.argv[1:] else toy_config(place)
    algorithm = config.build_algo()
    for _ in range(15):
        result = algorithm.train()
        figures = result["env_runners"]  # without a figure, or with nan, if no rollout has a value
        text = "  ".join(f"{name} {float(figures.get(name, math.nan)):.2f}" for name in FIGURES)
        print("step", result["training_iteration"], text, flush=True)
    checkpoint = algorithm.save_to_path(place / "checkpoint")  # weights, optimisers, Mistake Book, position in the data
    algorithm.stop()
    print("continues at", GRPO.from_checkpoint(checkpoint).train()["training_iteration"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
