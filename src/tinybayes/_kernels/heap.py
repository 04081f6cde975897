"""A heap of candidates with the largest key first, in arrays; of equal keys the smaller number comes first."""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import plain


class Heap(NamedTuple):
    """Candidates by falling key; ``size[0]`` of them."""

    key: np.ndarray
    candidate: np.ndarray
    size: np.ndarray


@plain
def push(heap, key, candidate):
    """Add a candidate."""
    i = heap.size[0]
    heap.size[0] += 1
    while i > 0:
        above = (i - 1) >> 1
        if heap.key[above] > key or (heap.key[above] == key and heap.candidate[above] <= candidate):
            break
        heap.key[i], heap.candidate[i] = heap.key[above], heap.candidate[above]
        i = above
    heap.key[i], heap.candidate[i] = key, candidate


@plain
def pop(heap):
    """Take the first candidate."""
    key, candidate = heap.key[0], heap.candidate[0]
    heap.size[0] -= 1
    size = heap.size[0]
    last_key, last = heap.key[size], heap.candidate[size]
    i = 0
    while True:
        c = 2 * i + 1
        if c >= size:
            break
        d = c + 1
        if d < size and (
            heap.key[d] > heap.key[c] or (heap.key[d] == heap.key[c] and heap.candidate[d] < heap.candidate[c])
        ):
            c = d
        if heap.key[c] < last_key or (heap.key[c] == last_key and heap.candidate[c] >= last):
            break
        heap.key[i], heap.candidate[i] = heap.key[c], heap.candidate[c]
        i = c
    heap.key[i], heap.candidate[i] = last_key, last
    return key, candidate
