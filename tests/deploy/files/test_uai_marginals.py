"""Marginals as UAI text."""

import numpy as np
import pytest

from tinybayes.deploy.files.uai_marginals import format_marginals, read_marginals, write_marginals
from tinybayes.errors import FileError


def test_what_is_written_reads_back_bit_by_bit(tmp_path):
    rng = np.random.default_rng(0)
    parts = [rng.dirichlet(np.ones(states)) for states in (2, 3, 1, 5)]
    for name in ("a.MAR", "b.MAR.gz"):
        write_marginals(parts, tmp_path / name)
        for p, q in zip(read_marginals(tmp_path / name), parts, strict=True):
            np.testing.assert_array_equal(p, q)
    assert format_marginals([np.array([0.25, 0.75])]) == "MAR\n1 2 0.25 0.75\n"


def test_the_older_form_has_the_number_of_cases(tmp_path):
    (tmp_path / "old.MAR").write_text("MAR\n1\n2 2 0.5 0.5 1 1.0\n")
    assert [part.tolist() for part in read_marginals(tmp_path / "old.MAR")] == [[0.5, 0.5], [1.0]]
    (tmp_path / "one.MAR").write_text("MAR\n1 2 0.5 0.5\n")
    assert [part.tolist() for part in read_marginals(tmp_path / "one.MAR")] == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BAYES 1", "'MAR'"),
        ("MAR", "number of variables"),
        ("MAR\n2 2 0.5 0.5", "number of states"),
        ("MAR\n1 2 0.5", "2 probabilities"),
        ("MAR\n1 2 0.5 -0.5", "a probability"),
        ("MAR\n1 2 0.5 0.6", "sum to one"),
        ("MAR\n1 2 0.5 half", "half"),
        ("MAR\n2 2 0.5 0.5 1 1.0 7", "end of the file"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    (tmp_path / "bad.MAR").write_text(text)
    with pytest.raises(FileError, match=message):
        read_marginals(tmp_path / "bad.MAR")
