"""Train a coder and a tester with TRL in turns: each learns against the other one, which is frozen meanwhile.

    codea1 pretrain -o models/tiny
    python coevolve_with_trl.py models/tiny tiny

The arguments are a folder or hub id of a causal language model, with which both begin, and a source of problems. The
trained models are in runs/trl.
"""

import sys

import torch
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from codea1_agents.adapters.trl import dataset, reward_function
from codea1_env import Referee, load_problems

ROUNDS, STEPS = 2, 2


def main(model, source):
    is_tiny = source.startswith("tiny")  # models of `codea1 pretrain` read short prompts and learn fast
    wording, rate, longest = ("tiny", 1e-3, 64) if is_tiny else ("default", 1e-6, 1024)
    problems = load_problems(source, limit=16)
    control = AutoTokenizer.from_pretrained(model).all_special_tokens  # a program must not end its tester's prompt
    referee, models = Referee(problems), {"coder": model, "tester": model}
    for number in range(1, ROUNDS + 1):
        for role, other in (("coder", "tester"), ("tester", "coder")):
            frozen = f"transformers,model={models[other]},prompts={wording},max_tokens={longest}"
            if role == "coder":  # the frozen tester writes a suite for each program
                rewards = reward_function("coder", referee, against=frozen, logs_parts=True)
                rows = dataset("coder", problems, wording=wording, control_tokens=control)
            else:  # the frozen coder has written the programs that the tester sees
                rewards = reward_function("tester", referee, logs_parts=True)
                rows = dataset("tester", problems, against=frozen, wording=wording, control_tokens=control)
            models[role] = trained(models[role], f"runs/trl/{role}-{number}", rewards, rows, rate, longest)


def trained(model, folder, rewards, rows, rate, longest):
    """Train a model for some steps; return the folder that it is saved in."""
    args = GRPOConfig(
        folder,
        max_steps=STEPS,
        per_device_train_batch_size=16,
        num_generations=8,
        max_completion_length=longest,
        learning_rate=rate,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = GRPOTrainer(model=model, reward_funcs=rewards, train_dataset=rows, args=args)
    trainer.train()
    trainer.save_model()
    found = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    print(folder, "rewards", *(f"{reward:.2f}" for reward in found), flush=True)
    return folder


if __name__ == "__main__":
    main(*sys.argv[1:3])
