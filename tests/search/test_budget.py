"""Budgets: how they are written, and what is within them."""

import math

import pytest

from prices import made_up_price
from tinybayes import Budget, TinybayesError
from tinybayes.search.budget import as_budget, parse_bytes, parse_clock, parse_latency


def test_a_size_is_flash():
    assert as_budget("4kB") == Budget(flash=4000)
    assert as_budget("2KiB") == Budget(flash=2048)
    assert as_budget("32kbit") == Budget(flash=4000)
    assert as_budget(None) == Budget()
    assert not Budget(core="m4", error=0.1).limited


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_bytes, "512", 512),
        (parse_latency, "5ms", 5000),
        (parse_latency, "300 us", 300),
        (parse_latency, "0.1s", 100_000),
        (parse_clock, "48MHz", 48e6),
        (parse_clock, "32768", 32768),
        (parse_clock, "500 khz", 500e3),
    ],
)
def test_texts_with_units(parse, text, value):
    assert parse(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_bytes, "7bit"),
        (parse_bytes, "4k"),
        (parse_latency, "5"),
        (parse_latency, "5min"),
        (parse_latency, "0ms"),
        (parse_clock, "fast"),
        (parse_clock, "0MHz"),
        (parse_clock, "-1Hz"),
    ],
)
def test_other_texts_are_refused(parse, text):
    with pytest.raises(TinybayesError, match="here: expected a"):
        parse(text, "here")


@pytest.mark.parametrize(
    "limits", [{"flash": 0}, {"ram": -1}, {"microseconds": 0}, {"clock": math.inf}, {"core": "z80"}]
)
def test_limits_that_mean_nothing_are_refused(limits):
    with pytest.raises(TinybayesError, match=next(iter(limits))):
        Budget(**limits)


PRICE = made_up_price(bits=900, operations=40, flash=1000, tables=600, ram=50, stack=100, instructions=480.0)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("flash", 600 + 1.1 * 400),
        ("ram", 50 + 1.1 * 100),
        ("microseconds", 1.1 * 480 * 1.4 / 48),
        ("bits", 900),
        ("operations", 40),
    ],
)
def test_estimates_count_a_tenth_more_against_a_limit_and_tables_are_exact(name, taken):
    assert Budget(**{name: math.ceil(taken)}).allows(PRICE)
    assert not Budget(**{name: math.ceil(taken) - 1}).allows(PRICE)
    assert Budget(**{name: 10}).excess(PRICE) == pytest.approx(taken / 10)
    assert Budget(**{name: 10_000}).excess(PRICE) == 1


def test_time_is_that_of_the_clock():
    assert PRICE.microseconds() == pytest.approx(2 * PRICE.microseconds(96e6))
    limit = 1.2 * PRICE.microseconds(96e6)
    assert Budget(microseconds=limit, clock=96e6).allows(PRICE)
    assert not Budget(microseconds=limit).allows(PRICE)
