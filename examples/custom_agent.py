"""Your own agent against a built-in one: any function `observation -> reply` plays."""

from codea1_env import AgentContext, code_a1_v0, load_agent


def careful_tester(observation):
    """Reply with asserts, as a language model would."""
    name = observation["entry_point"]
    return f"```python\n{observation['examples']}\nassert {name}([]) == None\n```"


env = code_a1_v0.env(problems="starter", rules="fixed")
env.reset(seed=0)
context = AgentContext(env.unwrapped.problems, env.unwrapped.referee.sandbox, seed=0)
agents = {"coder_0": load_agent("mutant,strength=0.7", context), "tester_0": load_agent(careful_tester, context)}
for name in env.agent_iter():
    observation, reward, terminated, truncated, info = env.last()
    done = terminated or truncated
    env.step(None if done else agents[name].act(observation, info))
    if done:
        print(f"{name}: {reward:.3f}  {info['reward_parts']}")
