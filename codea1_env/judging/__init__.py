"""Judging: run candidates and suites in the sandbox and turn the outcomes into verdicts."""
