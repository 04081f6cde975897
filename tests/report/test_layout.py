import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.report.layout import ROW, components, layout


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 60))
    most = draw(st.integers(0, 3))
    return [sorted(draw(st.sets(st.integers(0, i - 1), max_size=most))) if i else [] for i in range(n)]


@given(graphs())
def test_nodes_never_overlap_and_parents_stand_left(parents):
    labels = [f"node {i}" for i in range(len(parents))]
    found = layout(parents, labels)
    places = np.column_stack([found.x, found.y])
    distance = np.abs(places[:, None] - places[None])
    apart = (distance[..., 0] > 40) | (distance[..., 1] >= ROW - 1e-6)
    assert (apart | np.eye(len(parents), dtype=bool)).all()
    for node, family in enumerate(parents):
        assert all(found.x[parent] < found.x[node] for parent in family)
    assert 0 <= min(found.x) <= max(found.x) < found.width
    assert -1e-6 <= min(found.y) <= max(found.y) < found.height


@given(graphs())
def test_components_are_those_of_a_search(parents):
    near = {i: set() for i in range(len(parents))}
    for node, family in enumerate(parents):
        for parent in family:
            near[node].add(parent)
            near[parent].add(node)
    for part in components(parents):
        seen, todo = set(), [part[0]]
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo += near[node]
        assert sorted(seen) == part
    assert sorted(node for part in components(parents) for node in part) == list(range(len(parents)))


def test_many_lonely_nodes_make_a_grid_of_the_wanted_shape():
    found = layout([[]] * 300, ["name"] * 300)
    assert 1.2 < found.width / found.height < 2.4


def test_a_long_chain_is_no_recursion():
    found = layout([[], *([i] for i in range(3000))], ["x"] * 3001)
    assert found.height == ROW
