"""Memory and time that a training needs, by arithmetic: no model is loaded, and neither torch nor Ray is imported.

`shapes` counts the parameters of a model, `learning` the bytes of a learner, `sampling` those of a runner, `placement`
puts processes on GPUs, `timing` counts tokens and seconds of a step, and `devices` knows the GPUs. Bytes of a learner
equal what a CPU allocates, within 10 % (`benchmarks/training_arithmetic.py`). `train.loop.fitting` applies all of it to
the settings of a run. GB are 10^9 bytes.
"""
