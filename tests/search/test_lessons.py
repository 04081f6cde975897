"""Lessons of a teacher: rows keep within their part, codes fit every encoding, and students learn from them."""

import os
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from prices import made_up_price
from tinybayes import TinybayesError
from tinybayes.data.encode import encode_frame
from tinybayes.errors import FileError
from tinybayes.learn.training import engine
from tinybayes.learn.training import teacher as teachers
from tinybayes.learn.training.teacher import train_teacher
from tinybayes.model import Categories, Cuts, Grid, Integers, Variable
from tinybayes.search import lessons
from tinybayes.search.budget import Budget
from tinybayes.search.checks import Score, checked, compared, doubtful, standard_error
from tinybayes.search.clock import grouped
from tinybayes.search.families import FAMILIES
from tinybayes.search.families.family import Effort
from tinybayes.search.front import choose
from tinybayes.search.lessons import check_lesson, disturbed, make_lesson, read_lesson, recoded, teach
from tinybayes.search.prepare import make_views
from tinybayes.search.study import Run, key_of
from tinybayes.search.trials import carry_out


def table(rows=240, seed=0):
    """Numbers with gaps, a column of text, and three classes."""
    random = np.random.default_rng(seed)
    frame = load_iris(as_frame=True).frame.sample(rows, replace=True, random_state=seed).reset_index(drop=True)
    frame.columns = ["a", "b", "c", "d", "y"]
    frame["text"] = random.choice(["u", "v", "w"], rows)
    frame.loc[random.random(rows) < 0.1, "a"] = np.nan
    return frame


@pytest.fixture(scope="module")
def views():
    return make_views(table(), "y")


def by_rule(X):
    """A teacher that looks at one column only."""
    share = np.clip(X[:, 3:4] / 128, 0.01, 0.98)
    return np.log(np.concatenate([1 - share - 0.01, share, np.full_like(share, 0.01)], axis=1))


def test_splits_are_parts_of_all_seen_rows_with_the_same_classes(views):
    seen = views.by_name["mdlp"].seen
    np.testing.assert_array_equal(np.sort(np.concatenate(views.splits)), np.arange(len(seen)))
    np.testing.assert_array_equal(views.splits[0], views.valid)
    shares = np.array([np.bincount(seen.y[part], minlength=3) / len(part) for part in views.splits])
    assert np.ptp(shares, axis=0).max() < 0.05
    for split in range(len(views.splits)):
        rows, valid = views.rows("fine", split=split)
        assert len(rows) + len(valid) == len(seen)
        np.testing.assert_array_equal(valid.X, views.by_name["fine"].seen.X[views.splits[split]])
    np.testing.assert_array_equal(views.rows("fine")[0].X, views.by_name["fine"].seen.X[views.train])


def test_no_row_of_a_lesson_comes_from_rows_that_validate(views):
    lesson = make_lesson(views, by_rule, seed=1)
    seen = views.by_name["fine"].seen
    np.testing.assert_array_equal(lesson.X[: len(seen)], seen.X[lesson.sources[: len(seen), 0]])  # first as they are
    inside = np.isin(lesson.sources, views.train)
    assert (inside[:, 0] == inside[:, 1]).all()  # training rows are mixed with training rows
    rows = lesson.rows(views, "mdlp", views.train, 10**9)
    assert len(rows) == inside[:, 0].sum()
    assert len(lesson.rows(views, "mdlp", views.train, 50)) == 50
    np.testing.assert_allclose(rows.soft.sum(axis=1), 1, atol=2e-3)
    np.testing.assert_allclose(lesson.soft, np.exp(by_rule(lesson.X)), atol=1e-3)


def test_disturbed_rows_stay_between_two_rows_up_to_noise(views):
    seen = views.by_name["fine"].seen
    other = np.random.default_rng(0).permutation(len(seen))
    still = disturbed(seen, other, 0.0, np.random.default_rng(1))
    X, Z = seen.X.astype(int), seen.X[other].astype(int)
    numbers = [0, 1, 2, 3]
    known = ((X >= 0) & (Z >= 0))[:, numbers]
    low, high = np.minimum(X, Z)[:, numbers], np.maximum(X, Z)[:, numbers]
    assert ((still[:, numbers] >= low) & (still[:, numbers] <= high))[known].all()
    closer = np.abs(still - X)[:, numbers] <= np.abs(still - Z)[:, numbers] + 1
    assert closer[known].all()  # never more of the other row than of its own
    assert ((still[:, 4] == X[:, 4]) | (still[:, 4] == Z[:, 4])).all()
    assert ((still < 0) == (X < 0)).all()
    noisy = disturbed(seen, other, 0.5, np.random.default_rng(1))
    moved = (noisy - still)[:, 3].astype(float)
    assert 0.1 < moved.std() / X[:, 3].std() < 0.5
    last = np.array([v.cardinality - 1 for v in seen.variables])
    assert (noisy <= last).all()
    np.testing.assert_array_equal(noisy[:, 4], still[:, 4])


def test_codes_in_another_encoding_are_those_of_numbers_in_the_middle():
    given = (
        Variable.from_encoding("a", Grid(-2.0, 0.5, 9)),
        Variable.from_encoding("b", Grid(0, 4, 5, integer=True)),
        Variable.from_encoding("c", Integers(3, 7)),
        Variable("d", ("x", "y"), Categories()),
        Variable.from_encoding("e", Cuts([0.0, 1.0, 3.0])),
    )
    wanted = (
        Variable.from_encoding("a", Cuts([-1.0, 0.75])),
        Variable.from_encoding("b", Cuts([2, 9], integer=True)),
        Variable.from_encoding("c", Cuts([5], integer=True)),
        given[3],
        Variable.from_encoding("e", Cuts([1.5])),
    )
    X = np.array([[0, 0, 0, 1, 0], [2, 1, 2, 0, 1], [5, 2, 4, 1, 2], [8, 4, -1, -1, 3], [-1, -1, 1, 0, -1]])
    values = pd.DataFrame(
        {
            "a": [-1.75, -0.75, 0.75, 2.25, np.nan],
            "b": [1, 5, 9, 17, np.nan],
            "c": [3, 5, 7, np.nan, 4],
            "d": ["y", "x", "y", None, "x"],
            "e": [-0.5, 0.5, 2.0, 3.5, np.nan],
        }
    )
    np.testing.assert_array_equal(recoded(X, given, wanted), encode_frame(values, wanted))


def test_an_ensemble_of_float_networks_learns(views, monkeypatch):
    monkeypatch.setattr(teachers, "MOST", 60)
    monkeypatch.setattr(teachers, "WIDTH", 16)
    rows, valid = views.rows("fine")
    teacher = train_teacher(rows, seconds=60, noise=0.1, mixup=0.1)
    log_p = teacher.log_posteriors(valid.X)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, atol=1e-5)
    assert (log_p.argmax(axis=1) != valid.y).mean() < 0.12
    assert len(teacher.log_posteriors(valid.X[:0])) == 0
    assert train_teacher(rows, seconds=1e-9) is None  # too little time for an epoch


def test_students_learn_what_the_teacher_says(views, tmp_path, monkeypatch):
    """A teacher that swaps two classes is believed, so students learn from it and not from the labels."""
    path = tmp_path / "lesson.safetensors"
    seen = views.by_name["fine"].seen
    share = np.where(seen.y[:, None] == np.arange(3), 0.94, 0.03)[:, [1, 0, 2]]  # of classes 0 and 1

    def wrong(views, seconds, seed):
        known = {row.tobytes(): p for row, p in zip(seen.X.astype(np.int64), share, strict=True)}
        return lambda X: np.log([known.get(x.astype(np.int64).tobytes(), [1 / 3] * 3) for x in X]), 0.5, 1.0

    monkeypatch.setattr(lessons, "_teacher", wrong)
    said = teach(views, path, 1.0, 0)
    assert said == (str(path), 0.5, 1.0)
    assert len(read_lesson(said.path).X) == 4 * len(seen) or len(read_lesson(said.path).X) == 30 * len(seen)
    for name in ("dense", "naive"):
        family = FAMILIES[name]
        setting = {"family": name, "seed": 0, **family.guesses(views, Budget())[-1], "taught": True}
        setting = family.fitted(setting | {"input_noise": 0.0}, views, Budget())
        taught = carry_out(views, [setting], Effort(400, lesson=str(path)))[0]
        alone = carry_out(views, [{**setting, "taught": False}], Effort(400))[0]
        assert alone.error < 0.2
        assert taught.error > 0.5
        with pytest.raises(TinybayesError, match="taught: expected the lesson of a teacher"):
            carry_out(views, [setting], Effort(400))


def test_a_teacher_without_time_leaves_nothing(views, tmp_path, monkeypatch):
    monkeypatch.setattr(lessons, "_teacher", lambda views, seconds, seed: None)
    assert teach(views, tmp_path / "x", 1.0, 0).path is None
    assert not list(tmp_path.iterdir())


def test_what_is_late_is_dropped(views):
    family = FAMILIES["naive"]
    setting = {"family": "naive", "seed": 0, "taught": False, **family.guesses(views, Budget())[0]}
    assert carry_out(views, [setting], Effort(100_000, deadline=0.0)) == []


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("tan", [{"bits": 4, "structure_noise": 0.2}, {"bits": 3}, {"bits": 2, "structure_noise": 0.1}]),
        ("dense", [{"hidden": [4]}, {"hidden": [30]}, {"hidden": [5]}]),
    ],
)
def test_models_keep_their_settings_where_a_deadline_leaves_others_undone(name, kinds, views, monkeypatch):
    """The first and the third are compiled together; time is over before the second begins."""
    hours, kept = [0.0], engine.Run.kept

    def late(run):
        hours[0] = 1.0
        return kept(run)

    monkeypatch.setattr(engine.Run, "kept", late)
    monkeypatch.setattr(engine, "time", SimpleNamespace(time=lambda: hours[0], perf_counter=time.perf_counter))
    family = FAMILIES[name]
    guess = {"family": name, "seed": 0, "taught": False, "sharing": 0.0, **family.guesses(views, Budget())[0]}
    settings = [{**family.fitted(guess, views, Budget()), **kind} for kind in kinds]
    assert len({family.shape(setting) for setting in settings}) == 1
    done = carry_out(views, settings, Effort(50, deadline=0.5))
    assert [outcome.setting for outcome in done] == [settings[0], settings[2]]
    for outcome in done:
        if name == "tan":
            assert outcome.model.cpds[0].format.bits == outcome.setting["bits"]
        else:
            assert [len(layer.bias) for layer in outcome.model.layers[:-1]] == outcome.setting["hidden"]


def run(error, loss=1.0, family="naive", seed=0, flash=1000, **more):
    setting = {"family": family, "seed": seed, "view": "mdlp", **more}
    return Run(key_of(setting, 0), setting, 0, error, loss, made_up_price(flash=flash), 1.0, [], True)


def test_runs_close_to_the_best_are_checked_few_of_one_shape():
    assert standard_error(0.1, 100) == pytest.approx(0.03)
    assert standard_error(0.0, 100) == pytest.approx(0.005)
    best = run(0.10, view="coarse")
    others = [run(0.12, seed=k) for k in range(1, 5)]
    far, large = run(0.15, family="tan"), run(0.05, flash=5000, seed=9)
    close = doubtful([far, *others, large, best], Budget(flash=2000), 100)
    assert close == [best, *others[:2]]
    second = run(0.14, family="tan")  # within one and a half standard errors: the best of its family comes early
    assert doubtful([second, *others, best], Budget(), 100) == [best, second, *others[:2]]
    assert doubtful([best, far], Budget(error=0.2), 100) == []
    assert doubtful([large], Budget(flash=2000), 100) == []
    many = [run(0.1, family="tan", sharing=float(k)) for k in range(40)]
    assert len(doubtful(many, Budget(), 100)) == 16
    forests = [run(0.1, family="forest", flash=500 * k, trees=k, n=n) for k in (1, 2) for n in range(3)]
    assert len(doubtful(forests, Budget(), 100)) == 4  # two of each size


def test_runs_are_compared_on_the_splits_that_all_have():
    figures = {
        "a": [(0.1, 1.0, 0.1), (0.3, 3.0, 0.2), (0.9, 9.0, 0.9)],
        "b": [(0.2, 2.0, 0.2)] * 2,
        "c": [(0.0, 0.0, 0.0)],
    }
    scores = compared(figures, [100, 90, 80])
    assert set(scores) == {"a", "b"}  # nothing but luck is known of the third
    assert scores["a"] == (pytest.approx(0.2), pytest.approx(2.0), 190, pytest.approx(0.15))
    assert scores["b"].error == pytest.approx(0.2)
    assert compared({"a": figures["a"], "c": figures["c"]}, [100, 90, 80]) == {}
    both = compared({"a": figures["a"], "b": [(0.2, 2.0, 0.2)] * 3}, [100, 90, 80])
    assert both["a"].rows == 270


def test_the_mean_over_splits_decides():
    lucky, solid, other = run(0.1, seed=1), run(0.11, seed=2), run(0.105, seed=3)
    scores = {lucky.key: Score(0.15, 2.0, 300), solid.key: Score(0.12, 1.0, 300)}
    runs = [checked(r, scores) for r in (lucky, solid, other)]
    assert [r.error for r in runs] == [0.15, 0.12, 0.105]
    assert choose(runs, Budget(), scores).key == solid.key
    assert choose(runs, Budget()).key == other.key
    assert choose(runs, Budget(flash=1), scores) is None


def test_groups_share_shape_and_rung():
    a, b, c = run(0.1, seed=1), run(0.2, family="tan"), run(0.3, seed=2)
    assert grouped([a, b, c]) == [[a, c], [b]]


@pytest.fixture
def lesson_file(views, tmp_path):
    from safetensors.numpy import save_file

    lesson = make_lesson(views, by_rule, seed=1)
    parts = {"X": lesson.X, "soft": lesson.soft, "sources": lesson.sources}
    path = tmp_path / "lesson.safetensors"
    save_file(parts, path)
    return path, parts


def test_a_sound_lesson_is_read(views, lesson_file):
    path, parts = lesson_file
    check_lesson(str(path), views)
    np.testing.assert_array_equal(read_lesson(str(path)).soft, parts["soft"])


def changed(parts, **changes):
    return {name: value for name, value in (parts | changes).items() if value is not None}


DAMAGED = {
    "no rows": lambda parts: {name: part[:0] for name, part in parts.items()},
    "less": lambda parts: changed(parts, soft=None),
    "more": lambda parts: changed(parts, other=parts["X"]),
    "lengths": lambda parts: changed(parts, soft=parts["soft"][:-1]),
    "axes": lambda parts: changed(parts, sources=parts["sources"][:, 0].copy()),
    "types": lambda parts: changed(parts, X=parts["X"].astype(np.float32)),
    "columns": lambda parts: changed(parts, X=parts["X"][:, :-1].copy()),
    "codes": lambda parts: changed(parts, X=np.where(parts["X"] == parts["X"].max(), 120, parts["X"]) + 1),
    "classes": lambda parts: changed(parts, soft=parts["soft"][:, :2].copy()),
    "nan": lambda parts: changed(parts, soft=parts["soft"] * np.float16(np.nan)),
    "sources": lambda parts: changed(parts, sources=parts["sources"] + 1000),
    "before": lambda parts: changed(parts, sources=-1 - parts["sources"]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_lessons_of_wrong_parts_are_refused(views, lesson_file, damage):
    from safetensors.numpy import save_file

    path, parts = lesson_file
    save_file(DAMAGED[damage](parts), path)
    with pytest.raises(FileError, match="remove the file"):
        check_lesson(str(path), views)


@pytest.mark.parametrize("kind", ["empty", "garbage", "cut", "link", "pipe", "directory", "gone"])
def test_what_is_no_lesson_is_refused_at_once(views, lesson_file, kind):
    path, _ = lesson_file
    content = path.read_bytes()
    path.unlink()
    if kind == "link":
        path.with_name("other").write_bytes(content)
        path.symlink_to(path.with_name("other"))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind != "gone":
        path.write_bytes({"empty": b"", "garbage": b"\xff" * 100, "cut": content[: len(content) // 2]}[kind])
    with pytest.raises(FileError, match="the lesson of a teacher"):
        check_lesson(str(path), views)
