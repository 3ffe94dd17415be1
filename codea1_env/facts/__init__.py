"""Facts that the parts of the environment exchange: submissions, outcomes of jobs, verdicts, the judge's version."""
