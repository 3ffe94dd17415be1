"""Two learners with tables solve the bank game; how far they are from an equilibrium can be computed, and falls.

python examples/bank_game_tabular.py 0 30000    # all problems; less than two minutes of processor time
"""

import sys

from codea1_agents.study.bank_game import BankGame, stacked
from codea1_agents.study.tabular import learn_tabular
from codea1_env.bank import BankRecipe, load_bank

n_problems, episodes = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (2, 1_000)
rules = sys.argv[3] if len(sys.argv) > 3 else "fixed"
recipe = BankRecipe(solution="no-solution" not in sys.argv)

bank = load_bank("starter", rules=rules, recipe=recipe, limit=n_problems or None)
game = BankGame.of(bank.payoffs())
wanted = game.values(*stacked(game.solve()))
curve = learn_tabular(bank, episodes=episodes, seed=0, n_points=20)
print("episode  NashConv  of averages  coder  tester")
rows = zip(curve.episodes, curve.exploitability, curve.average_exploitability, curve.values, strict=True)
for episode, gap, average, values in rows:
    print(f"{episode:7}  {gap:8.3f}  {average:11.3f}  {values[0]:5.3f}  {values[1]:6.3f}")
print(f"equilibrium{wanted[0]:25.3f}  {wanted[1]:6.3f}")
