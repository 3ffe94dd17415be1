"""Memory and time that a training needs, by arithmetic: no model is loaded, and neither torch nor Ray is imported.

From the settings of a run and the GPUs to a verdict: `run_size` puts all of it together, `fitting` refuses a run that
does not fit and names what to change. The formulas are in `learning` (bytes of a learner), `sampling` (bytes of a
runner and its engines) and `timing` (tokens and seconds of a step), over the shapes in `codea1_agents.models.shapes`.
`placement` puts processes on GPUs as Ray does, `devices` knows the GPUs, `proposing` finds settings for lengths that
were seen. Bytes of a learner equal what a CPU allocates, within 10 % (`benchmarks/training_arithmetic.py`). GB are 10^9
bytes.
"""
