"""A heap of candidates with the largest key first, in arrays; of equal keys the smaller number comes first."""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import plain


class Heap(NamedTuple):
    """Candidates by falling key; ``size[0]`` of them."""

    key: np.ndarray
    item: np.ndarray
    size: np.ndarray


@plain
def push(heap, key, item):
    """Add a candidate."""
    i = heap.size[0]
    heap.size[0] += 1
    while i > 0:
        above = (i - 1) >> 1
        if heap.key[above] > key or (heap.key[above] == key and heap.item[above] <= item):
            break
        heap.key[i], heap.item[i] = heap.key[above], heap.item[above]
        i = above
    heap.key[i], heap.item[i] = key, item


@plain
def pop(heap):
    """Take the first candidate."""
    key, item = heap.key[0], heap.item[0]
    heap.size[0] -= 1
    size = heap.size[0]
    last_key, last_item = heap.key[size], heap.item[size]
    i = 0
    while True:
        c = 2 * i + 1
        if c >= size:
            break
        d = c + 1
        if d < size and (heap.key[d] > heap.key[c] or (heap.key[d] == heap.key[c] and heap.item[d] < heap.item[c])):
            c = d
        if heap.key[c] < last_key or (heap.key[c] == last_key and heap.item[c] >= last_item):
            break
        heap.key[i], heap.item[i] = heap.key[c], heap.item[c]
        i = c
    heap.key[i], heap.item[i] = last_key, last_item
    return key, item
