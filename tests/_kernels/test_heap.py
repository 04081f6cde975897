import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tinybayes._kernels.heap import Heap, pop, push


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), max_size=40), st.integers(0, 40))
def test_the_largest_key_comes_first_and_ties_go_by_number(entries, taken):
    heap = Heap(np.zeros(64), np.zeros(64, np.int64), np.zeros(1, np.int64))
    waiting = []
    for key, item in entries:
        push(heap, float(key), item)
        waiting.append((-key, item))
        if len(waiting) > taken:
            first = min(waiting)
            waiting.remove(first)
            assert pop(heap) == (-first[0], first[1])
    assert heap.size[0] == len(waiting)
    for first in sorted(waiting):
        assert pop(heap) == (-first[0], first[1])
