"""Two models against each other, each behind an OpenAI-compatible endpoint (vLLM, llama.cpp, transformers serve ...).

python two_endpoints.py http://127.0.0.1:8000/v1 http://127.0.0.1:8001/v1
"""

import sys

from codea1_agents.models.openai_endpoint import OpenAIAgent
from codea1_agents.play.runner import play

coder_url, coder_model, tester_url, tester_model = sys.argv[1:]
coder = OpenAIAgent(base_url=coder_url, model=coder_model, temperature=0.7, max_tokens=256)
tester = OpenAIAgent(base_url=tester_url, model=tester_model, temperature=0.7, max_tokens=256)


def show(game):
    last = game.record.rounds[-1]
    print(f"{game.record.problem_id}: {last.candidate.verdict.value}, coder {last.rewards.coder.value}")


summary = play("starter", coder, tester, episodes=8, seed=1, concurrency=8, on_episode=show)
print(f"programs that load: {summary.candidate_validity.mean:.2f}; valid tests: {summary.suite_validity.mean:.2f}")
print(f"tokens written: {coder.usage.completion_tokens} and {tester.usage.completion_tokens}")
