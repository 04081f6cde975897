"""Hostile raw rows at a small size, and that the comparison and the sanitizers find planted faults."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from raw_programs import programs
from raw_rows import ReportError, build, try_program

from c_host import compiler
from cases import exhaustive
from tinybayes.deploy.programs.c import to_c

PROGRAMS = programs()


@pytest.mark.parametrize("number", [7, 53, *exhaustive(*range(0, 50, 6), 50, 51, 52, *range(54, 66))])
def test_programs_say_what_python_says(tmp_path, number):
    compiler()
    built = build(PROGRAMS[number], tmp_path)
    found = try_program(built, 1, number, 4000)
    assert found["mismatches"] == 0
    assert min(found[key] for key in ("missing", "complete")) > (300 if number >= 50 else 900)
    assert found["code_rows"] == (0 if built.plan.takes_raw else 1000)


def test_there_are_66_of_all_kinds():
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) == 66
    kinds = {(type(v.encoding).__name__, program.raw) for program in PROGRAMS for v in program.net.variables}
    assert len(kinds) == 8
    states = {v.cardinality for program in PROGRAMS for v in program.net.variables}
    assert states >= {1, 2, 3, 255, 256, 257, 1000}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("number", "right", "wrong"),
    [
        (0, "v >= cut[b + h]", "v > cut[b + h]"),
        (0, "size > 0x7F800000U", "size > 0x7F800001U"),
        (3, "((uint32_t)1 << down) - 1U", "((uint32_t)1 << down)"),
        (50, "> 0x7F800000)", "> 0x7F800001)"),
        (53, ">= test_cut", "> test_cut"),
    ],
)
def test_planted_faults_are_mismatches(tmp_path, number, right, wrong):
    compiler()
    assert count_wrong(tmp_path, number, right, wrong) > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("number", "right", "wrong"),
    [
        (26, "? (uint16_t)s : (uint16_t)grid[k].top", "? (uint16_t)s : (uint16_t)(grid[k].top + 9U)"),
        (7, "x[own] >= k", "x[own] > k"),
        (11, "if (!(d < 17.0F))", "if (d >= 17.0F)"),
    ],
)
def test_sanitizers_report_planted_faults(tmp_path, number, right, wrong):
    compiler()
    with pytest.raises(ReportError, match=r"Sanitizer|runtime error"):
        count_wrong(tmp_path, number, right, wrong)


def count_wrong(directory, number, right, wrong):
    program = PROGRAMS[number]
    files = to_c(program.net, name="p", raw=program.raw, gaps=program.gaps, form=program.form)
    assert files["p.c"].count(right) >= 1
    without_selftest = "int p_selftest(void)\n{\n    if (1) return 0;\n"  # it would notice some of the faults itself
    assert files["p.c"].count("int p_selftest(void)\n{\n") == 1
    files["p.c"] = files["p.c"].replace(right, wrong).replace("int p_selftest(void)\n{\n", without_selftest)
    return try_program(build(program, directory, files=files), 1, number, 4000)["mismatches"]
