"""Streams of random numbers (SplitMix64): an array of one 64-bit word is the state of a stream."""

import numpy as np

from tinybayes._kernels import inlined, plain


@inlined
def mix(z):
    """Scramble 64 bits (the output function of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(random):
    """Draw a number from [0, 1)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.float64(mix(random[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@plain
def start_stream(seed, random):
    """Set a generator from a sequence of numbers."""
    random[0] = np.uint64(0)
    for k in range(len(seed)):
        random[0] = mix(random[0] + np.uint64(0x9E3779B97F4A7C15)) ^ mix(seed[k] + np.uint64(k + 1))
