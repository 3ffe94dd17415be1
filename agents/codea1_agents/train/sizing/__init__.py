"""Memory and time that a training needs, by arithmetic: no model is loaded, and neither torch nor Ray is imported.

From the settings of a run and the GPUs to a verdict: `run_size` puts all of it together, and puts processes on GPUs as
Ray does; `fitting` refuses a run that does not fit, names what to change, and proposes settings for lengths that were
seen. `memory` has the formulas of bytes, over the shapes in `codea1_agents.models.shapes`; `devices` knows the GPUs.
Bytes of a learner equal what a CPU allocates, within 10 % (`benchmarks/training_arithmetic.py`). GB are 10^9
bytes.
"""
