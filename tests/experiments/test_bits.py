"""Other folds of Figure 6, added to what the first fold has chosen."""

from experiments.resource_efficient.bits import of_first_fold, with_fold

FIRST = {
    "data": "satimage",
    "float": 0.1,
    "trained": [{"bits": 1, "error": 0.2}, {"bits": 2, "error": 0.3}],
    "rounded": [{"bits": 1, "error": 0.4}],
    "runs": 7,
    "provenance": "first",
}
MORE = {"float": 0.3, "trained": [0.4, 0.1], "rounded": [0.2], "runs": 2}


def test_errors_become_means_of_the_folds():
    two = with_fold(FIRST, MORE | {"provenance": "second"})
    three = with_fold(two, MORE | {"provenance": "third"})
    assert [run["error"] for run in two["trained"]] == [0.3, 0.2]
    assert [run["error"] for run in three["trained"]] == [0.333333, 0.166667]
    assert three["trained"][0]["errors"] == [0.2, 0.4, 0.4]
    assert three["rounded"][0] == {"bits": 1, "error": 0.266667, "errors": [0.4, 0.2, 0.2]}
    assert (three["float"], three["floats"], three["runs"]) == (0.233333, [0.1, 0.3, 0.3], 11)
    assert three["provenances"] == ["first", "second", "third"]


def test_the_first_fold_can_be_had_again():
    three = with_fold(with_fold(FIRST, MORE | {"provenance": "2"}), MORE | {"provenance": "3"})
    first = of_first_fold(three)
    assert [run["error"] for run in first["trained"]] == [0.2, 0.3]
    assert (first["rounded"][0]["error"], first["float"]) == (0.4, 0.1)
    assert of_first_fold(FIRST) is FIRST
