"""Stock PPO of RLlib, one policy per role, solves the bank game; exploitability tells how far it has come.

python examples/bank_game_ppo.py 0 6    # all problems; less than two minutes of processor time
"""

import os
import sys
import warnings

from codea1_agents.study.bank_game import BankGame, stacked
from codea1_env.bank import load_bank

warnings.simplefilter("ignore")  # Ray's own, about itself
os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # nothing listens but this process
try:
    from codea1_agents.study.rllib_bank import train_ppo
except ImportError as error:
    print(f"skipped: {error}")
    raise SystemExit(0) from None

n_problems, iterations = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (2, 2)

bank = load_bank("starter", limit=n_problems or None)
game = BankGame.of(bank.payoffs())
wanted = game.values(*stacked(game.solve()))
print("iteration  NashConv  of averages  coder  tester")
for point in train_ppo(bank, iterations=iterations, seed=0, batch=2048 if n_problems != 2 else 256):
    gaps = f"{point.exploitability:8.3f}  {point.average_exploitability:11.3f}"
    print(f"{point.iteration:9}  {gaps}  {point.coder_value:5.3f}  {point.tester_value:6.3f}", flush=True)
print(f"equilibrium{wanted[0]:27.3f}  {wanted[1]:6.3f}")
