"""Agents for `codea1_env`, what they are worth, and the command line. Heavy parts need extras."""
