"""Options of one target, given to another; the programs themselves are tested in `programs`."""

import pytest

from tinybayes import TinybayesError, export
from tinybayes.deploy.export import TARGETS
from zoo import naive_bayes

OWN = {"checks": ("verilog", "verilog-pipelined")}
OWN |= dict.fromkeys(("arithmetic", "calibration", "extras"), ("c", "cpp", "arduino"))
OWN |= {"query": ("c", "cpp", "arduino", "javascript")}


@pytest.mark.parametrize("target", TARGETS)
def test_options_of_other_targets_are_refused_with_the_targets_that_have_them(target):
    for option, owners in OWN.items():
        if target not in owners:
            expected = f"^{option}: expected the target {' or '.join(owners)}, got {target}; leave {option} out"
            with pytest.raises(TinybayesError, match=expected):
                export(naive_bayes(), to=target, **{option: 3})


def test_unknown_options_are_refused_with_the_known_ones():
    with pytest.raises(TinybayesError, match=r"option of verilog: expected one of .*'chekcs'; did you mean 'checks'"):
        export(naive_bayes(), to="verilog", chekcs=3)
    with pytest.raises(TinybayesError, match="option of cpp: expected one of name, raw, note"):
        export(naive_bayes(), to="cpp", net=3)
