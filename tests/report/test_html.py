import base64
import hashlib
import html
import json
import re

import numpy as np
import pytest

import zoo
from explored import HOSTILE, digits, hidden_net, linear_net, models, write_explored
from tinybayes import TinybayesError, explain, learn_classifier, save
from tinybayes.cost import model_cost
from tinybayes.errors import FileError
from tinybayes.infer import class_scores, evaluate, predict_codes
from tinybayes.infer.evaluate import page_figures
from tinybayes.infer.explain import explained_rows
from tinybayes.model import BayesNet, Dataset, Fixed, NeuralNet, Variable
from tinybayes.model.neural_net import Inputs, Layer
from tinybayes.report.cards import breakdown, model_card
from tinybayes.report.html import LIBRARY, LIMIT, model_report, page_data, page_part, page_text, write_report
from tinybayes.report.snippet import c_snippet, short_tables
from tinybayes.report.tables import cpd_table, row_names


@pytest.fixture(scope="module")
def rows():
    return digits()


@pytest.fixture(scope="module")
def explored(tmp_path_factory, rows):
    place = tmp_path_factory.mktemp("report") / "digits"
    write_explored(place, *rows)
    return place


def held(page):
    """Read back the data of a page, as a browser does: up to the next closing tag."""
    text = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    return json.loads(text)


def convolution():
    """A net over images of 4x4 pixels: a convolution of 3 channels, then a layer."""
    random = np.random.default_rng(0)
    variables = tuple(Variable(f"p{i}", (0, 1, 2)) for i in range(16))
    inputs = Inputs(np.arange(16), np.full(16, -1), np.ones(16, dtype=int), np.arange(16) % 3)
    ones = np.ones(3, dtype=int)
    first = Layer(random.integers(0, 4, (3, 3, 1, 3)), 2, ones, "relu", ones * 7, 0, 3)
    last = Layer(random.integers(0, 8, (12, 2)), 3, np.array([1, -1]))
    return NeuralNet(variables, Variable("y", ("no", "yes")), inputs, (first, last), 0.1, (4, 4))


def test_report_holds_the_search_and_asks_for_nothing(explored):
    path = write_report(explored)
    page = path.read_text(encoding="utf-8")
    assert path == explored / "report.html"
    assert path.stat().st_size < 6_000_000
    found = held(page)
    front = json.loads((explored / "front.json").read_text())
    assert [m["id"] for m in found["models"]] == [m["id"] for m in front["models"]]
    assert set(found["cards"]) == {m["id"] for m in front["models"] if m["file"]}
    assert {card["kind"] for card in found["cards"].values()} == {"network", "circuit", "net"}
    ours = page.replace(page_part(LIBRARY), "")
    assert len(ours) == len(page) - len(page_part(LIBRARY))
    assert not re.search(r'(src|href)="(?!data:|#)', ours)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|innerHTML|insertAdjacentHTML|eval\(", ours)


def test_the_same_search_gives_the_same_page(explored, tmp_path):
    assert write_report(explored, tmp_path / "a.html").read_bytes() == write_report(explored).read_bytes()


def test_the_policy_names_the_scripts_that_are_there(explored):
    page = page_text(page_data(explored))
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1]
    live = page_text(page_data(explored), live="Tinybayes.live = true;")
    assert "connect-src 'self'" in html.unescape(live)
    assert live.count("Tinybayes.live = true;") == 1


def test_hostile_names_stay_text(tmp_path):
    names = [HOSTILE + str(i) for i in range(62)] + ["\u2028&amp;", "@@DATA@@ \ud800"]
    train, test = digits(names)
    strange = Variable(f"<b>{HOSTILE}", tuple(f"<i>{k}" for k in range(10)))
    train, test = (Dataset(d.variables, strange, d.X, d.y) for d in (train, test))
    place = tmp_path / "hostile"
    front = write_explored(place, train, test)
    front["title"] = front["command"] = HOSTILE + "@@STYLE@@\ud800"
    front["data"]["name"] = front["models"][1]["label"] = front["models"][1]["family"] = HOSTILE
    front["provenance"] = {HOSTILE: HOSTILE}
    (place / "front.json").write_text(json.dumps(front))
    page = write_report(place).read_text(encoding="utf-8")
    assert page.count("</script") == 3
    assert page.count("<script") == 3
    assert "<img" not in page
    found = held(page)
    assert found["title"] == front["title"]
    assert found["variables"][0][0]["name"] == names[0]
    assert found["variables"][0][63]["name"] == names[63]
    told = [item for model in found["models"] for item in model["explanations"] or []]
    assert {item["truth"] for item in told} <= set(strange.states)
    assert {part["feature"] for item in told for part in item["contributions"]} <= set(names)


@pytest.mark.parametrize("number", range(13))
def test_every_kind_of_model_has_a_page_of_its_own(number, rows, tmp_path):
    family, label, settings, model = models(rows[0])[number]
    metadata = {"label": label, "settings": settings, "seed": 3, "title": "One", "history": [[1, 0.5], [2, None]]}
    path = model_report(model, rows[1], tmp_path / "one.html", command="tinybayes fit", metadata=metadata)
    assert path.stat().st_size < 6_000_000
    found = held(path.read_text(encoding="utf-8"))
    (entry,) = found["models"]
    assert entry["bits"] == model_cost(model).bits
    assert entry["family"] == ("tan" if family == "tied" else family)
    assert entry["test_error"] == pytest.approx(evaluate(model, rows[1]).error)
    assert found["seed"] == 3
    assert found["cards"]["1"]["graph"]["x"]
    assert len(entry["explanations"]) == (3 if isinstance(model, BayesNet) else 0)


@pytest.mark.parametrize("make", [zoo.sprinkler, zoo.naive_bayes, zoo.tan, zoo.tree_tan])
def test_pages_without_rows_or_class(make, tmp_path):
    found = held(model_report(make(), None, tmp_path / "x.html").read_text(encoding="utf-8"))
    assert found["models"][0]["test_error"] is None
    assert found["models"][0]["confusion"] is None


def all_models(rows):
    return [model for *_, model in models(rows[0])] + [
        convolution(),
        zoo.sprinkler(),
        zoo.naive_bayes(),
        zoo.tan(),
        zoo.tree_tan(),
    ]


def test_breakdowns_add_up_to_the_price(rows):
    for model in all_models(rows):
        parts, cost = breakdown(model), model_cost(model)
        assert sum(part[1] for part in parts) == cost.bits
        assert sum(part[2] for part in parts) == cost.operations


def decoded(card, table):
    codes = np.frombuffer(base64.b64decode(table["data"]), "<u2" if table["width"] == 2 else "u1")
    worth = card["worths"][table["worth"]]
    if "values" in worth:
        return np.array([-np.inf if v is None else v for v in worth["values"]])[codes]
    values = worth["offset"] - worth["step"] * codes
    return np.where(codes == worth.get("last"), -np.inf, values)


def test_tables_in_the_page_are_those_of_the_model(rows):
    for model in all_models(rows):
        if not isinstance(model, BayesNet):
            continue
        card = model_card(model)
        assert [t["node"] for t in card["tables"]] in (
            [len(model.variables), *range(len(model.variables))],
            list(range(len(model.variables))),
        )
        for table in card["tables"]:
            cpd = model.cpds[table["node"]]
            exact = card["worths"][table["worth"]]["exact"]
            true = cpd.log_parameters.reshape(-1)
            np.testing.assert_allclose(decoded(card, table), true, rtol=0, atol=0 if exact else 1e-3)


def test_rows_of_decision_trees_have_the_names_of_their_paths():
    net = zoo.tree_tan()
    names = row_names(net.cpds[1].tree, 3, net.nodes)
    assert names == ["class = ham", "class = spam, a = 0", "class = spam, a = 1"]
    assert cpd_table(1, net.cpds[1], net.nodes)["names"] == names


@pytest.mark.exhaustive
def test_large_searches_stay_below_the_limit(tmp_path):
    random = np.random.default_rng(0)
    variables = tuple(Variable(f"a feature with a long name {i}", tuple(range(8))) for i in range(150))
    data = Dataset(variables, Variable("y", tuple("abcdefgh")), random.integers(0, 8, (500, 150)), np.arange(500) % 8)
    net = learn_classifier(data, structure="chow-liu", number_format=Fixed(3, 2))
    (tmp_path / "models").mkdir()
    entries = []
    for number in range(50):
        save(net, tmp_path / "models" / f"{number}.tb")
        entries.append({"id": number, "bits": number, "on_front": True, "file": f"models/{number}.tb"})
    (tmp_path / "front.json").write_text(json.dumps({"models": entries, "chosen": 40}))
    path = write_report(tmp_path)
    found = held(path.read_text(encoding="utf-8"))
    assert path.stat().st_size < LIMIT + 50_000
    assert "40" in found["cards"]
    assert 0 < found["cards"]["40"]["left_out"] < 151


def test_figures_of_a_classifier_match_evaluate(rows):
    model = linear_net(rows[0])
    found = page_figures(model, rows[1])
    np.testing.assert_array_equal(found["confusion"], evaluate(model, rows[1]).confusion)
    bins = np.array(found["reliability"])
    assert bins[:, 2].sum() == len(rows[1])
    assert bins[:, 1] @ bins[:, 2] == pytest.approx(len(rows[1]) * (1 - evaluate(model, rows[1]).error))
    assert (np.diff(bins[:, 0]) > 0).all()


def test_a_right_a_wrong_and_an_unsure_row_are_explained(rows):
    for model in (m for *_, m in models(rows[0]) if isinstance(m, BayesNet)):
        y = rows[1].y.copy()
        y[::2] = -1  # unknown: not explained
        test = Dataset(rows[1].variables, rows[1].target, rows[1].X, y)
        right, wrong, unsure = found = explained_rows(model, test)
        known = np.flatnonzero(y >= 0)
        good = predict_codes(model, test.X[known]) == y[known]
        assert (right["row"], wrong["row"]) == (known[good][0], known[~good][0])
        gaps = np.diff(np.sort(class_scores(model, test.X[known]), axis=1)[:, -2:])[:, 0]
        others = [gap for place, gap in zip(known, gaps, strict=True) if place not in (right["row"], wrong["row"])]
        assert unsure["total"] == pytest.approx(min(others), abs=1e-9)
        for item in found:
            whole = explain(model, test.X[item["row"]])
            assert (item["label"], item["truth"]) == (whole.label, test.target.states[y[item["row"]]])
            said = [part["log_odds"] for part in item["contributions"]]
            assert len(said) + item["others"] == np.count_nonzero([c.log_odds for c in whole.contributions])
            assert len(said) == 12 or item["others"] == 0
            assert sum(said) + item["prior"] + item["rest"] == pytest.approx(whole.total)
            assert min(map(abs, said)) >= np.sort(np.abs([c.log_odds for c in whole.contributions]))[-len(said)]


def test_what_rules_a_class_out_is_explained_without_infinities():
    wet = Dataset((Variable("rain", (0, 1)),), Variable("wet", ("no", "yes")), np.array([[0], [1]]), np.array([0, 1]))
    net = learn_classifier(wet, structure="naive", smoothing=0)
    found = explained_rows(net, wet)
    assert [(item["row"], item["total"]) for item in found] == [(0, None), (1, None)]
    assert found[1]["contributions"] == [{"feature": "rain", "value": "1", "log_odds": None}]
    assert found[1]["rest"] == found[1]["others"] == 0
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_weights_and_unknown_classes_count(rows):
    model, test = linear_net(rows[0]), rows[1]
    y = test.y.copy()
    y[::3] = -1
    weight = np.linspace(0, 2, len(test))
    found = page_figures(model, Dataset(test.variables, test.target, test.X, y, weight))
    assert np.sum(found["confusion"]) == pytest.approx(weight[y >= 0].sum())
    with pytest.raises(TinybayesError, match="rows with a known class"):
        page_figures(model, Dataset(test.variables, test.target, test.X, np.full(len(test), -1)))


def test_snippets_are_short_and_hold_the_function(rows):
    for model in (all_models(rows)[0], hidden_net(rows[0]), all_models(rows)[10]):
        found = c_snippet(model)
        for text in (found["header"], found["source"]):
            assert re.search(r"\bmodel_(predict|posterior)\(", text), text
        assert len(found["source"].splitlines()) <= 121
        assert found["bytes"] > 1000
    assert "no class" in c_snippet(zoo.sprinkler())["note"]


def test_tables_in_snippets_are_cut():
    lines = ["int x[] = {", *["    1, 2, 0x3F,"] * 9, "};", "return 0;", "5,"]
    short = short_tables(lines)
    assert short[:4] == lines[:4]
    assert short[4].strip() == "/* ... 6 more lines ... */"
    assert short[5:] == lines[10:]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.pop("models"), "a list of models"),
        (lambda f: f["models"][0].pop("id"), "an id"),
        (lambda f: f["models"][0].update(bits="many"), "bits"),
        (lambda f: f["models"][0].update(bits=-1), "not negative"),
        (lambda f: f["models"][0].update(flash=-1), "not negative"),
        (lambda f: f["models"][0].update(instructions="many"), "instructions"),
        (lambda f: f["models"][0].update(validation_error=3), "share from 0 to 1"),
        (lambda f: f["models"][1].update(id="0"), "distinct ids"),
        (lambda f: f["models"][0].update(confusion=[[1, 2]]), "confusion"),
        (lambda f: f["models"][0].update(explanations={}), "explanations"),
        (lambda f: f["models"][0].update(explanations=[{"row": 1}]), "explanations"),
        (lambda f: f["models"][0]["explanations"][0].update(prior="<b>"), "explanations"),
        (lambda f: f["models"][0]["explanations"][0]["contributions"][0].update(log_odds="1"), "explanations"),
        (lambda f: f["models"][0].update(file="../../etc/passwd"), "below the directory"),
        (lambda f: f["models"][0].update(file="/etc/passwd"), "below the directory"),
        (lambda f: f.update(chosen="nobody"), "chosen"),
        (lambda f: f.update(budget=[1]), "budget"),
    ],
)
def test_damaged_fronts_are_refused(explored, tmp_path, change, message):
    front = json.loads((explored / "front.json").read_text())
    change(front)
    (tmp_path / "front.json").write_text(json.dumps(front))
    with pytest.raises(FileError, match=message):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, "\xff", "3"])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "front.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match=r"front\.json"):
        write_report(tmp_path)


def test_no_directory_is_told(tmp_path):
    with pytest.raises(FileError, match="tinybayes explore"):
        write_report(tmp_path / "nowhere")


def test_unknown_errors_are_allowed(tmp_path):
    entry = {"id": 1, "validation_error": float("nan"), "history": [[1, float("nan")]]}
    (tmp_path / "front.json").write_text(json.dumps({"models": [entry]}))
    assert held(write_report(tmp_path).read_text())["models"][0]["validation_error"] is None
