"""A causal model of the `transformers` package, in this process, against the fuzz tester.

python model_against_fuzz.py ./my-model
"""

import sys

from codea1_agents.models.transformers_agent import TransformersAgent
from codea1_agents.play.runner import play

coder = TransformersAgent(model=sys.argv[1], temperature=0.7, max_tokens=256)
# The model replies to all games in progress in one batch; the fuzz tester needs no model.
summary = play("starter", coder, "fuzz", episodes=6, seed=1, concurrency=6)
print(f"programs that load: {summary.candidate_validity.mean:.2f}")
print(f"pass rate on new tests: {summary.pass_new.mean:.2f}")
print(f"{coder.usage.completions} replies, {coder.usage.cut} of them cut at the token limit")
