"""The part of the results page about networks under budgets, written from made-up results."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.records import Point
from experiments.resource_efficient import nets_page
from experiments.resource_efficient.claims import CLAIMS, Results
from experiments.resource_efficient.nets import Chosen, Model, Nets, bayes, front
from experiments.sweep import NetSweep, TableSweep, finalists, read_sweeps
from experiments.verdicts import Claim, counted, table, verdict
from made_up import MADE
from tinybayes.data import named

FILES = [Path(nets_page.__file__).parent / f"figure{number}.toml" for number in (3, 4)]
# Errors at the smallest budget; they fall with the budget.
LEVELS = {"dense relu": 0.05, "dense sign": 0.07, "one-hot": 0.06, "conv relu": 0.02, "conv sign": 0.045}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_files_of_sweeps_over_networks_can_be_read(path):
    sweeps = read_sweeps(path)
    assert len({sweep.name for sweep in sweeps}) == len(sweeps)
    for sweep in sweeps:
        assert isinstance(sweep, NetSweep)
        assert sweep.data in named.names()
        assert sweep.kind == "dense" or {*sweep.layers} <= {1, 2}
        assert {*sweep.weight_bits} <= set(range(9))


def made_up(sweep):
    """Runs of both stages; settings of 4 bits are the best."""
    settings, done = sweep.settings, {}
    level = LEVELS.get(sweep.row, 0.06)

    def error(index):
        own = settings[index]
        return round(
            level * (1 + 0.01 * index / len(settings)) * (1 if own["bits"] == 4 else 1.1) / own["budget"] ** 0.3, 6
        )

    for stage in (1, 2):
        for index in range(len(settings)) if stage == 1 else finalists(sweep, done):
            for seed in range(1 if stage == 1 else sweep.seeds):
                own = error(index) * (1 if stage == 2 else 1.2)
                record = {"sweep": sweep.name, "stage": stage, "fold": 0, "setting": index * sweep.seeds + seed}
                record |= {"validation_error": own if stage == 1 else None, "test_error": own + 0.0001 * seed}
                record |= {"hidden": [8] * (settings[index]["layers"] - 1)}
                if stage == 2 and settings[index]["bits"]:
                    many = 100 if sweep.kind == "conv" else 2
                    record |= {"bits_used": 8000 * settings[index]["budget"], "operations": 2560 * many}
                done[stage, 0, record["setting"]] = record
    return done


def results(place):
    """Write the sweeps of usps with made-up runs; return their summaries by row and budget."""
    (place / "results").mkdir(parents=True)
    found = {}
    for path in FILES:
        text = path.read_text().split("\n[[nets]]")
        (place / path.name).write_text("\n[[nets]]".join(t for t in text if 'data = "usps"' in t or t.startswith("#")))
        lines = []
        for sweep in read_sweeps(place / path.name):
            done = made_up(sweep)
            lines += [json.dumps(record) for record in done.values()]
            found |= {(path.stem, sweep.row, row["budget"]): row for row in sweep.summary(done)["rows"]}
        (place / "results" / f"{path.stem}.jsonl").write_text("\n".join(lines) + "\n")
        (place / "results" / f"{path.stem}.json").write_text(json.dumps({"provenance": [MADE], "results": []}))
    return found


def figure6(errors):
    """Naive Bayes of these errors in percent, with 1, 2, ... bits."""
    sweep = TableSweep(name="usps naive bits", data="usps", structure="naive")
    return SimpleNamespace(
        points=lambda: [Point(sweep, {"bits": [1, w - 1]}, e, 8650.0) for w, e in enumerate(errors, start=1)]
    )


def test_a_section_from_made_up_results(tmp_path):
    rows = results(tmp_path / "nets")
    text = nets_page.section(tmp_path / "nets", figure6([9.0, 8.0, 7.0]), tmp_path / "docs")
    pictures = sorted(path.name for path in (tmp_path / "docs" / "figures").iterdir())
    assert pictures == [f"resource_efficient_figure{n}.svg" for n in (3, 4, 7)]
    assert all(f"(figures/{name})" in text for name in pictures)
    assert "| usps | naive Bayes |  | 9.00 | 8.00 | 7.00 | - |" in text
    both = [rows["figure3", "dense relu", b] for b in range(1, 9)]
    cells = [f"{100 * r['best_on_test']['error']:.2f} / {100 * r['chosen_on_validation']['error']:.2f}" for r in both]
    assert {r["settings"] for r in both} == {2}  # of the two finalists of the file, each with several seeds
    assert f"| usps | dense, ReLU | 2 | {' | '.join(cells)} |" in text
    judged = table(CLAIMS, nets_page.results(tmp_path / "nets", figure6([9.0, 8.0, 7.0])))
    assert "Dense networks beat naive Bayes consistently. | **holds** | usps at 3 of 3 budgets |" in judged
    assert "better from 2x on" in judged
    assert "10 s on cpu a (2 cores)" in text


def test_two_sweeps_over_one_budget_are_one_row():
    """The best on test rows of either; on validation rows, the one whose choice had fewer errors there."""
    first, second = Chosen(3.0, 4.0, {"bits": 1}, 0.05, 2), Chosen(2.0, 5.0, {"bits": 2}, 0.06, 20)
    for both in (first.with_more(second), second.with_more(first)):
        assert both == Chosen(2.0, 4.0, {"bits": 2}, 0.05, 22)


def test_claims_follow_the_numbers(tmp_path):
    results(tmp_path / "nets")

    def verdicts(errors, trees=()):
        nets = Nets(tmp_path / "nets" / "figure3.toml")
        operations = Nets(tmp_path / "nets" / "figure4.toml").table()
        naive, models = bayes(figure6(errors).points(), trees)
        found = Results(nets.table(), operations, naive, models + nets.models(), nets)
        return {claim.text: verdict(list(claim.ask(found))) for claim in CLAIMS}

    weak, strong, between = verdicts([9.0, 8.0, 7.0]), verdicts([0.1] * 8), verdicts([9.0] * 6 + [0.1] * 2)
    consistently = "Dense networks beat naive Bayes consistently."
    assert [found[consistently] for found in (weak, between, strong)] == ["holds", "does not hold", "does not hold"]
    fewer = "On usps, dense networks of fewer bits with one-hot inputs reach naive Bayes with 3 or more bits."
    assert between[fewer] == "holds partly"  # networks of 4 bits, with 5 and 6 but not with 7 and 8
    assert strong[fewer] == "does not hold"
    small = "CNNs with ReLU at the smallest budget beat all other models at the largest."
    assert weak[small] == "holds"
    assert strong[small] == "does not hold"
    assert weak["The sign degrades accuracy considerably."] == "holds"
    tree = "A tree improves on naive Bayes, for a considerable price in memory."
    assert weak[tree] == "not run"

    def searched(error):
        runs = [{"bits": bits, "error": error} for bits in (1, 4)]
        return {"data": "usps", "structure": "tree", "parameters": 32540, "trained": runs}

    assert verdicts([9.0, 8.0], [searched(0.05)])[tree] == "holds"
    assert verdicts([9.0, 8.0], [searched(0.5)])[tree] == "does not hold"


def test_bayesian_networks_come_from_both_experiments():
    run = {"bits": 2, "error": 0.03}
    quantised = [{"data": "usps", "structure": "naive", "parameters": 8650, "trained": [run, {**run, "error": 0.09}]}]
    naive, models = bayes(figure6([9.0, 8.0]).points(), quantised)
    best = naive["usps", "naive"]
    assert {width: chosen.test for width, chosen in best.items()} == {1: 9.0, 2: 3.0}
    assert [(m.bits, m.error) for m in models] == [(8650, 9.0), (17300, 8.0), (17300, 3.0), (17300, 9.0)]
    assert {m.operations for m in models} == {2560}


def test_verdicts_say_what_holds_and_mark_what_does_not():
    claims = [
        Claim("1", "Few.", lambda r: [(r > 1, f"{r} > 1"), (r > 3, f"{r} > 3")], ("Table", "table")),
        Claim("2", "None.", lambda r: [], ("Table", "table")),
    ]
    lines = table(claims, 2).splitlines()[3:]
    assert lines == [
        "| 1 | Few. | **holds partly** | 2 > 1; **no:** 2 > 3 | [Table](#table) |",
        "| 2 | None. | **not run** |  | [Table](#table) |",
    ]
    assert "**holds** | 4 > 1; 4 > 3 |" in table(claims, 4)
    assert "**does not hold** | 0 > 1; 0 > 3 |" in table(claims, 0)
    assert counted([(claims, 2), (claims[:1], 4)]) == "Of 3 claims 1 holds, 1 holds partly, 1 was not run."


def test_a_section_without_results(tmp_path):
    text = nets_page.section(tmp_path, figure6([9.0]), tmp_path / "docs")
    assert "Not run yet: `python -m experiments" in text
    assert "![" not in text


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=25))
def test_the_front_has_what_nothing_beats(prices):
    models = [Model("usps", "naive", *price) for price in prices]
    found = {(m.bits, m.operations, m.error) for m in front(models)}
    beaten = {p for p in prices if any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in prices)}
    assert found == {*prices} - beaten
    assert len(found) == len(front(models))
