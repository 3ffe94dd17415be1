"""Your own agent plays a built-in one. An agent can be any function from an observation to a reply."""

from codea1_env import code_a1_v0, load_agent


def tester(observation):
    return f"assert {observation['entry_point']}([]) == []"


env = code_a1_v0.env(problems="starter", render_mode="ansi")
env.reset(seed=0)
coder = load_agent("mutant", env)
for name in env.agent_iter():
    observation, reward, terminated, truncated, info = env.last()
    if terminated or truncated:
        break
    env.step(tester(observation) if name == "tester_0" else coder.act(observation, info))
print(env.render())
