"""Models as programs, one module for each target.

Every target is one function from the plan of a model (`plan.py`: rows of codes, the value of a code, proven ranges of
sums) to files. The scores of a program are defined by `infer.integers` and `infer.neural_net`; one contract test runs
all targets over all structures and formats. C, C++ and Arduino print the same records, so all three add the same
numbers in the same order.
"""
