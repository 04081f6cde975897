"""The search: what it draws, what it keeps, how it ends, and that nothing finished is lost."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris

from cases import exhaustive
from prices import made_up_price
from tinybayes import TinybayesError, evaluate, explore, load, model_cost, read_dataset
from tinybayes.deploy.files.native import load_metadata
from tinybayes.deploy.price import program_cost
from tinybayes.errors import TinybayesWarning
from tinybayes.infer.calibration import calibrate, from_metadata
from tinybayes.search.budget import Budget, check_error
from tinybayes.search.explore import Execution
from tinybayes.search.families import FAMILIES, Sampled, describe
from tinybayes.search.families.family import Effort
from tinybayes.search.front import choose, closest, on_front, pareto, ranks, shortfall
from tinybayes.search.measure import Measure
from tinybayes.search.prepare import make_views
from tinybayes.search.study import Run, Store
from tinybayes.search.titles import TITLES
from tinybayes.search.trials import carry_out


def iris():
    frame = load_iris(as_frame=True).frame
    return frame.rename(columns=lambda name: name.split(" (")[0].replace(" ", "_"))


@pytest.fixture(scope="module")
def views():
    return make_views(iris(), "target", seed=1)


def test_ctrl_c_before_the_first_run_is_an_interrupt(monkeypatch, tmp_path):
    """It was refused like bad input, with exit code 2."""
    monkeypatch.setattr(
        "tinybayes.search.explore.Search.run", lambda self, stopped: os.kill(os.getpid(), signal.SIGINT)
    )
    with pytest.raises(KeyboardInterrupt):
        explore(iris(), "target", output=tmp_path / "search", families="tree", seconds=60)
    assert json.loads((tmp_path / "search" / "progress.json").read_text())["phase"] == "failed"


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=30))
def test_front_is_what_nothing_dominates(points):
    found = pareto(np.array(points))
    for i, p in enumerate(points):
        beaten = any(
            all(a <= b for a, b in zip(q, p, strict=True)) and (q != p or j < i) for j, q in enumerate(points) if j != i
        )
        assert found[i] == (not beaten)
    rank = ranks(np.array(points))
    assert (rank >= 0).all()
    assert ((rank == 0) == found).all()


def test_rows_are_split_by_class_and_cut_on_the_rows_to_learn_from(views):
    seen = views.by_name["mdlp"].seen
    assert sorted([*views.train, *views.valid]) == list(range(len(seen)))
    assert len(views.by_name["mdlp"].test) == 30
    assert np.bincount(views.by_name["mdlp"].test.y).tolist() == [10, 10, 10]
    alone = make_views(iris(), "target", seed=1).by_name["fine"].seen
    assert alone.variables == views.by_name["fine"].seen.variables


def test_square_images_are_found_out():
    digits = load_digits(as_frame=True).frame
    assert make_views(digits, "target").image_shape == (8, 8)
    mixed = digits[[*np.random.default_rng(0).permutation(digits.columns[:-1]), "target"]]
    assert make_views(mixed, "target").image_shape is None
    assert make_views(iris(), "target").image_shape is None


def test_small_images_get_fewer_convolutions():
    pixels = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 9))).rename(columns=str)
    table = pixels.assign(target=np.arange(80) % 2)
    conv, small = FAMILIES["conv"], make_views(table, "target", image_shape=(3, 3))
    assert conv.space(small)["layers"].high == conv.guesses(small, Budget())[0]["layers"] == 1
    assert not conv.possible(make_views(table, "target", image_shape=(1, 9)))


def test_every_family_has_a_title():
    assert list(TITLES) == list(FAMILIES)


SAMPLED = [family for family in FAMILIES.values() if isinstance(family, Sampled)]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_learns_and_is_priced(views, family):
    if family.name == "conv":
        views = make_views(load_digits(as_frame=True).frame, "target")
    if isinstance(family, Sampled):
        middle = {name: d.choices[0] if hasattr(d, "choices") else d.low for name, d in family.space(views).items()}
        drawn = {"family": family.name, **middle, "learning_rate": 0.02, "seed": 0} | {"bits": 4}
        settings = [family.fitted(drawn, views, Budget())]
    else:
        settings = family.settings()[-1:]
    outcome = carry_out(views, settings, Effort(300, final=True))[0]
    assert outcome.error < 0.6
    assert outcome.tested is not None
    assert (outcome.price.bits, outcome.price.operations) == bits_and_operations(outcome.model)
    assert family.smallest_bits(views) <= outcome.price.bits
    least = family.smallest_flash(views, "cortex-m0+")
    assert outcome.price.tables_only or least <= outcome.price.flash
    assert family.shown_as(settings[0]) in FAMILIES
    assert describe(settings[0])


@pytest.mark.parametrize("name", ["dense", *exhaustive("conv")])
def test_settings_are_cut_down_to_the_budget(name):
    digits = make_views(load_digits(as_frame=True).frame, "target")
    more = {"inputs": "standard"} if name == "dense" else {}
    drawn = {"family": name, "bits": 8, "share": 1.0, "size": 3, "layers": 2, "activation": "relu", "seed": 0}
    drawn |= {"learning_rate": 0.01, "label_smoothing": 0.0, **more}
    cut = FAMILIES[name].fitted(drawn, digits, Budget(bits=20_000, operations=60_000))
    price = carry_out(digits, [cut], Effort(30))[0].price
    assert 5_000 < price.bits <= 20_000
    assert price.operations <= 60_000
    cost = FAMILIES[name].cost(cut["hidden"], cut["bits"], digits, scaled=bool(more))
    assert cost.operations == price.operations
    assert cost.bits >= price.bits


def test_linear_networks_give_up_bits_to_fit_the_budget():
    digits = make_views(load_digits(as_frame=True).frame, "target")
    drawn = {"family": "dense", "bits": 8, "share": 1.0, "size": 3, "layers": 0, "activation": "sign", "seed": 0}
    drawn |= {"learning_rate": 0.02, "label_smoothing": 0.0, "inputs": "shared"}
    family = FAMILIES["dense"]
    cut = family.fitted(drawn, digits, Budget(bits=2500))
    assert (cut["hidden"], cut["bits"]) == ([], 3)
    assert describe(cut) == "dense linear, 3 bits"
    assert family.shape(cut) == family.shape(cut | {"size": 1, "activation": "relu"})
    outcome = carry_out(digits, [cut], Effort(500))[0]
    assert outcome.price.bits <= 2500
    assert outcome.error < 0.15
    assert family.fitted(drawn, digits, Budget(bits=500)) is None


@pytest.mark.parametrize("family", SAMPLED, ids=lambda family: family.name)
def test_first_guesses_can_be_drawn_and_fit(family):
    digits = make_views(load_digits(as_frame=True).frame, "target")
    for limits in (Budget(), Budget(bits=32_000), Budget(bits=9_000, operations=9_000), Budget(flash=3_000)):
        space = family.space(digits)
        for guess in [*family.guesses(digits, limits), family.whole()]:
            assert set(guess) <= set(space)
            assert all(space[name]._contains(space[name].to_internal_repr(value)) for name, value in guess.items())
    wide = family.guesses(digits, Budget())[0]
    if "size" in wide:
        assert wide["size"] > family.guesses(digits, Budget(bits=9_000))[0]["size"]
        assert wide["size"] > family.guesses(digits, Budget(flash=2_000))[0]["size"]


def bits_and_operations(model):
    cost = model_cost(model)
    return cost.bits, cost.operations


def run_of(key, error, bits, operations=1, saved=True, loss=0.0, **more):
    price = made_up_price(bits=bits, operations=operations, **{"flash": bits, "tables": bits} | more)
    return Run(key, {"family": "naive"}, 0, error, loss, price, 0.0, [], saved)


def test_choice_is_the_most_accurate_within_the_budget_or_the_cheapest_that_is_good_enough():
    runs = [run_of("a", 0.1, 50), run_of("b", 0.05, 200), run_of("c", 0.02, 900), run_of("d", 0.01, 40, saved=False)]
    assert choose(runs, Budget()).key == "c"
    assert choose(runs, Budget(bits=500)).key == "b"
    assert choose(runs, Budget(error=0.06)).key == "b"
    assert choose(runs, Budget(bits=10)) is None
    assert choose(runs, Budget(error=0.01)) is None
    assert choose(runs, Budget(bits=500, error=0.03)) is None


def test_of_equally_accurate_runs_the_cheaper_program_is_chosen():
    runs = [
        run_of("wide", 0.1, 800, loss=0.50),
        run_of("small", 0.1, 200, loss=0.54),
        run_of("sure", 0.1, 900, loss=0.49),
    ]
    assert choose(runs, Budget()).key == "small"
    assert choose([*runs, run_of("best", 0.09, 2000, loss=3.0)], Budget()).key == "best"
    unsure = run_of("unsure", 0.1, 100, loss=0.9)  # its probabilities are far worse
    assert choose([*runs, unsure], Budget()).key == "small"


def test_tables_without_a_program_beat_no_program_and_are_not_chosen_for_flash():
    runs = [run_of("program", 0.1, 800), run_of("tables", 0.1, 200, saved=False, tables_only=True)]
    runs += [run_of("more", 0.1, 900, saved=False, tables_only=True), run_of("worse", 0.1, 850)]
    assert on_front(runs).tolist() == [True, True, False, False]
    circuit = run_of("circuit", 0.05, 200, tables_only=True)
    assert choose([*runs, circuit], Budget(flash=900)).key == "program"
    assert choose([*runs, circuit], Budget(bits=900)).key == "circuit"
    assert "whose program can be priced" in shortfall(circuit, "C", Budget(flash=900))


@pytest.mark.parametrize(
    ("limits", "key", "said"),
    [
        (Budget(error=0.01), "c", "No model with at most 1 % error was found; the closest has 2 % on validation: C."),
        (Budget(bits=500, error=0.03), "b", "at most 3 % error was found; the closest has 5 % on validation: B."),
        (Budget(bits=10), "a", "within the budget; the closest takes 50 bits of parameters: A."),
        (Budget(bits=150, operations=1), "b", "takes 200 bits of parameters and 2 operations: B."),
        (Budget(flash=10), "a", "within the budget; the closest takes about 50 bytes of flash: A."),
        (Budget(ram=10, microseconds=0.1), "c", "takes about 16 bytes of RAM and 1 us: C."),
    ],
)
def test_what_misses_the_limits_by_the_least_is_named(limits, key, said):
    runs = [run_of("a", 0.1, 50, 9), run_of("b", 0.05, 200, 2), run_of("c", 0.02, 900, 1)]
    assert choose(runs, limits) is None
    nearest = closest([*runs, run_of("d", 0.0, 1, 1, saved=False)], limits)
    assert nearest.key == key
    assert said in shortfall(nearest, key.upper(), limits)
    assert "No model that can be exported" in shortfall(closest([], limits), "", limits)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"error": -0.1}, "an error of at least 0"),
        ({"error": float("nan")}, "an error of at least 0"),
        ({"operations": 0}, "budget, operations: expected at least 1"),
        ({"bits": -1}, "budget, bits: expected at least 1"),
    ],
)
def test_errors_and_limits_of_the_papers_that_mean_nothing_are_refused(limits, said):
    with pytest.raises(TinybayesError, match=said):
        Budget(**limits)
    assert Budget(error=0.0).error == 0
    assert Budget(error=1).error == 1


def test_a_limit_is_a_value_that_the_metric_can_have():
    with pytest.raises(TinybayesError, match="the share of wrong labels, got 5; 5 % is"):
        check_error(5)
    with pytest.raises(TinybayesError, match="1 - AUC from 0 to 1"):
        check_error(1.5, Measure("auc"))
    check_error(5, Measure("logloss"))
    check_error(None)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"target": np.arange(150)}, "150 distinct values in 150 rows; cut it into classes"),
        ({"target": np.linspace(0, 1, 150)}, "150 distinct values in 150 rows; cut it into classes"),
        ({"target": [f"u{i}" for i in range(150)]}, "150 distinct values"),
        ({"sepal_length": [f"{i % 7},5" for i in range(150)]}, "column 'sepal_length': .* decimal point"),
    ],
)
def test_tables_that_mean_something_else_are_refused(columns, said):
    with pytest.raises(TinybayesError, match=said):
        make_views(iris().assign(**columns), "target")


def test_identifiers_and_few_rows_are_told_once():
    with pytest.warns(TinybayesWarning, match="identifiers or times: 'id'; ") as told:
        make_views(iris().assign(id=np.arange(150)), "target")
    assert len(told) == 1
    with pytest.warns(TinybayesWarning, match="only 9 rows of 3 classes"):
        make_views(iris().groupby("target", as_index=False).head(3), "target")
    with (
        pytest.warns(TinybayesWarning, match="only 6 rows of 3 classes"),
        pytest.raises(TinybayesError, match="enough rows to set some aside, got 6 rows of 3 classes; add rows"),
    ):
        make_views(iris().groupby("target", as_index=False).head(2), "target")


def test_search_ends_with_a_front_of_models_that_do_what_it_says(tmp_path):
    found = explore(
        iris(), "target", output=tmp_path, seconds=10, budget="1kB", families="closed-form,tied,tree,dense", seed=3
    )
    assert found.chosen is not None
    assert found.chosen["flash"] <= 1000
    document = json.loads((tmp_path / "front.json").read_text())
    kept = [m for m in document["models"] if m["file"] is not None]
    networks = [m for m in kept if m["family"] in ("naive", "tan", "subset", "tied", "tree", "forest", "boosted")]
    assert networks
    for model in kept:
        if "explanations" not in model:  # on a busy machine the time suffices for the chosen one alone
            assert model["id"] != document["chosen"]
            continue
        assert bool(model["explanations"]) == (model in networks)
        assert {len(item["contributions"]) <= 12 for item in model["explanations"]} <= {True}
    assert document["chosen"] == found.chosen["id"]
    assert len(pd.read_csv(tmp_path / "front.csv")) == len(found.front)
    for entry in found.front:
        if entry["file"] is None:
            assert entry["family"] in ("tree", "forest")
            continue
        model = load(tmp_path / entry["file"])
        assert model_cost(model).bits == entry["bits"]
        program = program_cost(model)
        assert (program.flash, program.ram, program.stack) == tuple(entry[name] for name in ("flash", "ram", "stack"))
        assert entry["instructions"] == pytest.approx(program.instructions)
        assert entry["microseconds"] == pytest.approx(program.microseconds, abs=0.02)
        views = make_views(iris(), "target", seed=3)
        test = views.by_name[entry["settings"].get("view", "fine")].test
        assert evaluate(model, test).error == pytest.approx(entry["test_error"])
        unseen = load(tmp_path / "trials" / f"{entry['id']}.tb")  # by the validation rows
        rows = views.rows(entry["settings"].get("view", "fine"))[1]
        assert from_metadata(load_metadata(tmp_path / entry["file"])) == calibrate(unseen, rows)


def test_reruns_go_on_and_do_nothing_twice(tmp_path):
    options = {"output": tmp_path, "families": "closed-form,tied", "seconds": 20}
    first = explore(iris(), "target", **options)
    before = (tmp_path / "search.journal").stat().st_size
    second = explore(iris(), "target", **options)
    assert [m["id"] for m in first.models] == [m["id"] for m in second.models]
    assert (tmp_path / "search.journal").stat().st_size <= before + 2000  # no new trial


@pytest.mark.exhaustive
def test_a_killed_search_is_taken_up(tmp_path):
    table = tmp_path / "iris.csv"
    iris().to_csv(table, index=False)
    place = tmp_path / "search"
    command = [sys.executable, "-m", "tinybayes", "explore", str(table), "--target", "target", "-o", str(place)]
    command += ["--families", "closed-form,tied,tree,forest,dense", "--workers", "1", "--time", "60s"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal, until = place / "search.journal", time.monotonic() + 60
    while time.monotonic() < until and not (journal.exists() and whole_lines(journal).count('"run"') >= 3):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    views = make_views(iris(), "target")
    meaning = json.loads(next(line for line in journal.read_text().splitlines() if "meaning" in line))
    kept = Store(place, None, meaning["user_attr"]["meaning"], Budget(), 0).runs
    assert len(kept) >= 3
    for run in kept.values():
        assert not run.saved or load(place / "trials" / f"{run.key}.tb")
    found = explore(read_frame_of(table), "target", output=place, seconds=8, families="closed-form,tied,tree,forest")
    assert set(kept) <= {m["id"] for m in found.models}
    assert len({m["id"] for m in found.models}) == len(found.models)
    assert views.target.cardinality == 3


def whole_lines(path):
    return path.read_text().rpartition("\n")[0]


@pytest.mark.parametrize("stored", [False, True])
def test_a_run_stored_by_a_process_that_ended_before_it_could_say_so_is_kept(tmp_path, monkeypatch, stored):
    views = make_views(iris(), "target")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: ended.pid)
        before = Store(tmp_path, None, {"table": "t"}, Budget(), 0)
        number, setting = before.ask("naive", FAMILIES["naive"].space(views), {"view": "mdlp", "taught": False})
    outcome = carry_out(views, [{**setting, "seed": 0}], Effort(20))[0]
    written = before.study if stored else before._asked[number]

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(written, "tell" if stored else "set_user_attr", killed)
    with pytest.raises(KeyboardInterrupt):
        before.tell(number, outcome, 0)
    after = Store(tmp_path, None, {"table": "t"}, Budget(), 0)
    assert [trial.state.name for trial in after.study.trials] == ["COMPLETE" if stored else "FAIL"]
    assert [trial.values for trial in after.study.trials if stored] == [run.objectives for run in after.runs.values()]
    assert [run.error for run in after.runs.values()] == ([outcome.error] if stored else [])


def read_frame_of(path):
    from tinybayes.data.readers import read_frame

    return read_frame(path)


def test_two_stores_of_one_search_see_each_other(tmp_path):
    one = Store(tmp_path, f"sqlite:///{tmp_path}/x.db", {"table": "t"}, Budget(), 0)
    two = Store(tmp_path, f"sqlite:///{tmp_path}/x.db", {"table": "t"}, Budget(), 0)
    views = make_views(iris(), "target")
    number, setting = one.ask("naive", FAMILIES["naive"].space(views), {"view": "mdlp", "taught": False})
    assert setting["view"] == "mdlp"
    outcome = carry_out(views, [{**setting, "seed": 0}], Effort(20))[0]
    run = one.tell(number, outcome, 0)
    assert two.read()[run.key] == run


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": Budget(bits=10)}, "a budget of at least"),
        ({"budget": "5B"}, "about [0-9]+ bytes of flash, the smallest program on cortex-m0\\+"),
        ({"budget": "four"}, "a size such as 4kB"),
        ({"families": "naive,deep"}, "some of boosted, dense, conv"),
        ({"families": "conv"}, "images"),
        ({"target": "species"}, "a column 'species'"),
        ({"image_shape": (3, 3)}, "an image of 4 pixels"),
        ({"drop": ("weight",)}, "columns of the table"),
        ({"execution": Execution(storage="sqlite:////nowhere/at/all/x.db")}, "a storage that can be reached"),
        ({"execution": Execution(dask="tcp://127.0.0.1:9")}, "a Dask scheduler"),
    ],
)
def test_bad_input_is_named_before_the_work(tmp_path, monkeypatch, options, said):
    monkeypatch.setattr("tinybayes.data.dask.PATIENCE", 1)
    if options.get("execution", Execution()).dask:
        pytest.importorskip("distributed")
    arguments = {"target": "target", "output": tmp_path / "x", "seconds": 5} | options
    with pytest.raises(TinybayesError, match=said):
        explore(iris(), **arguments)


def test_a_password_is_not_told(tmp_path):
    url = "mysql+pymysql://me:secret@127.0.0.1:1/x"
    with pytest.raises(TinybayesError) as told:
        explore(iris(), "target", output=tmp_path, seconds=5, execution=Execution(storage=url))
    assert "secret" not in str(told.value)


def test_ten_thousand_classes_are_refused(tmp_path):
    frame = pd.DataFrame({"x": np.arange(20_000) % 7, "id": np.arange(20_000) // 2})
    with pytest.raises(TinybayesError, match="2 to 1,000 classes"):
        explore(frame, "id", output=tmp_path)


def test_another_table_or_core_in_the_same_directory_is_refused(tmp_path):
    explore(iris(), "target", output=tmp_path, families="tree", seconds=5)
    with pytest.raises(TinybayesError, match="another directory"):
        explore(iris().iloc[:-1], "target", output=tmp_path, families="tree", seconds=5)
    other = Budget(core="m4")
    with pytest.raises(TinybayesError, match="priced for cortex-m4, got one that priced programs for cortex-m0"):
        explore(iris(), "target", output=tmp_path, families="tree", seconds=5, budget=other)


def test_runs_without_the_price_of_a_program_are_refused(tmp_path):
    Store(tmp_path, None, {"table": "t"}, Budget(), 0)  # as before programs were priced
    with pytest.raises(TinybayesError, match="got one of an older version, without their price; give another"):
        Store(tmp_path, None, {"table": "t", "core": "cortex-m0+"}, Budget(), 0)


def test_rows_with_gaps_and_text(tmp_path):
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 300)
    frame = pd.DataFrame({"word": np.array(["no", "yes"])[y], "size": generator.normal(y, 0.5), "label": y})
    frame.loc[::5, "word"] = None
    frame.loc[::7, "size"] = np.nan
    found = explore(frame, "label", output=tmp_path, families="closed-form,tied,circuit,dense,tree", seconds=6)
    assert found.chosen is not None
    assert found.chosen["test_error"] < 0.2
    model = load(tmp_path / found.chosen["file"])
    assert evaluate(model, read_dataset(frame, like=model)).error < 0.2


@pytest.mark.parametrize("families", ["closed-form", "dense", "boosted"])
def test_a_search_without_time_finds_something(tmp_path, families):
    found = explore(load_iris(as_frame=True).frame, "target", output=tmp_path, seconds=1e-3, families=families)
    assert found.chosen is not None
    assert (tmp_path / found.chosen["file"]).exists()
