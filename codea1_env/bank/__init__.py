"""Banks: for each problem a fixed set of programs and suites, judged once, so that the game is a matrix game."""

from codea1_env.bank.building import BankRecipe, bank_of_run, build_bank
from codea1_env.bank.cache import BankCache
from codea1_env.bank.entries import Bank, BankEntry, ProblemBank, load_bank_file
from codea1_env.bank.judged import BankPayoffs, JudgedBank, JudgedProblem
from codea1_env.bank.judging import judge_bank
from codea1_env.bank.sources import load_bank

__all__ = [
    "Bank",
    "BankCache",
    "BankEntry",
    "BankPayoffs",
    "BankRecipe",
    "JudgedBank",
    "JudgedProblem",
    "ProblemBank",
    "bank_of_run",
    "build_bank",
    "judge_bank",
    "load_bank",
    "load_bank_file",
]
