"""What travels between the parts of the environment: submissions, outcomes of jobs, verdicts, the judge's version."""
