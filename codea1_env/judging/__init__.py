"""Judging: from candidates and suites to verdicts, by programs that run in the sandbox."""
