"""The page in a browser: what it recommends, opens at the side, compares, asks and exports."""

import json
import os
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tree_ensembles
from explored import digits, write_explored
from tinybayes import load, save
from tinybayes.deploy.programs.c import to_c
from tinybayes.infer import class_scores, normalize_scores, predict_codes
from tinybayes.report.front import checked_front
from tinybayes.report.html import model_report, write_page, write_report

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("choices") / "digits"
    front = write_explored(place, *digits())
    front["data"]["image_shape"] = [8, 8]
    (place / "front.json").write_text(json.dumps(front))
    return place, front


@pytest.fixture(scope="module")
def page(place):
    return write_report(place[0]).as_uri(), place[1]


@pytest.fixture(scope="module")
def axe():
    """The text of axe-core: the file named in TINYBAYES_AXE, or that of the package axe-core-python."""
    if given := os.environ.get("TINYBAYES_AXE"):
        return Path(given).read_text(encoding="utf-8")
    pytest.importorskip(
        "axe_core_python", reason="neither TINYBAYES_AXE nor axe-core-python: no check of accessibility"
    )
    return (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


def until(browser, code, *arguments):
    WebDriverWait(browser.driver, 60).until(lambda _: browser.js(f"return Boolean({code})", *arguments))


def figures(**more):
    """Return a model of the front with nothing but figures."""
    entry = {"family": "naive", "bits": 800, "operations": 10, "validation_error": 0.1, "test_error": 0.2}
    return entry | {"flash": 1000, "ram": 0, "stack": 50, "instructions": 100, "microseconds": 10, **more}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, page, axe, scheme):
    browser.open(page[0], scheme=scheme)
    assert browser.problems(axe) == []
    browser.js("Tinybayes.open('0')")
    browser.click("#panel-keep")
    browser.js("Tinybayes.open('11'); document.getElementById('rows').open = true")
    assert browser.problems(axe) == []


def test_the_page_recommends_what_the_search_chose(browser, tmp_path):
    """The chosen one has a larger error than one of a single split, than one without a file, and than one too large."""
    models = [
        figures(
            id="chosen", validation_error=0.20, test_error=0.3, checked=True, standard_error=0.01, file="a", within=True
        ),
        figures(
            id="other", validation_error=0.22, test_error=0.1, checked=True, standard_error=0.01, file="b", within=True
        ),
        figures(id="lucky", validation_error=0.15, test_error=0.2, file="c", within=True),
        figures(id="gone", validation_error=0.10, within=True),
        figures(
            id="close", validation_error=0.12, flash=1990, file="d", checked=True, standard_error=0.01, within=False
        ),
        figures(
            id="large", validation_error=0.11, flash=9000, file="e", checked=True, standard_error=0.01, within=False
        ),
    ]
    for model in models:
        model["on_front"] = True
    front = checked_front({"models": models, "chosen": "chosen", "budget": {"flash": 2000, "core": "cortex-m0+"}})
    browser.open(write_page(front, tmp_path / "p.html").as_uri())

    def named():
        return browser.find("#best strong").get_attribute("data-id")

    assert named() == "chosen"
    assert {row.get_attribute("data-id") for row in browser.all("#models tr.dim")} == {"close", "large"}
    assert browser.find("#cheating").text == ""
    Select(browser.find("#error-kind")).select_by_value("test_error")
    assert named() == "chosen"
    assert "do not choose here" in browser.find("#cheating").text
    Select(browser.find("#error-kind")).select_by_value("validation_error")
    texts = dict(zip(browser.column(1), browser.column(2), strict=True))
    assert sorted(text for text in texts.values() if "±" not in text) == ["10.00 %", "15.00 %"]
    assert "20.00 ± 1.0 %" in texts.values()
    assert "of one split" in browser.find("#table-note").text
    browser.click("#budget-reset")
    assert named() == "large"


def test_marks_of_the_front_are_hit_first(browser, tmp_path):
    """Every mark of the front opens its own model, though smaller ones lie on all of them."""
    random = np.random.default_rng(0)
    models = []
    for i in range(12):
        flash = int(500 * 1.4**i)
        front = figures(id=f"front {i}", validation_error=0.3 / (i + 1), flash=flash, instructions=5000, on_front=True)
        models.append(front)
        models += [
            figures(
                id=f"{i} {k}",
                validation_error=0.3 / (i + 1) * (1.0 + 0.01 * random.random()),
                flash=flash + k,
                instructions=10,
            )
            for k in range(4)
        ]
    browser.open(write_page(checked_front({"models": models}), tmp_path / "p.html").as_uri())
    until(browser, "document.querySelector('#front-plot .nsewdrag')")
    places = browser.js(
        "const chart = document.getElementById('front-plot'), {xaxis, yaxis} = chart._fullLayout;"
        "const area = chart.querySelector('.nsewdrag').getBoundingClientRect();"
        "return Tinybayes.data.models.filter(m => m.on_front).map(m => [m.id, area.left + xaxis.d2p(m.flash),"
        " area.top + yaxis.d2p(100 * m.validation_error)])"
    )
    assert len(places) == 12
    for ident, x, y in places:
        mouse = ActionChains(browser.driver, duration=0)
        mouse.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        mouse.perform()
        until(browser, "document.querySelector('#front-plot .hoverlayer .hovertext')")  # the chart looks now and then
        ActionChains(browser.driver, duration=0).click().perform()
        until(browser, "!document.getElementById('panel').hidden")
        assert browser.js("return Tinybayes.state.chosen") == ident
        browser.find("#panel-close").send_keys(Keys.ESCAPE)
        until(browser, "document.getElementById('panel').hidden")


def test_back_closes_the_panel_and_two_models_stand_side_by_side(browser, page):
    address, front = page
    browser.open(address)
    browser.js("Tinybayes.open('0')")
    assert browser.find("#panel").is_displayed()
    assert browser.js("return document.activeElement.id") == "panel-title"
    browser.click("#panel-keep")
    assert "choose the other" in browser.find("#panel-hint").text
    browser.js("Tinybayes.open('11')")
    heads = [head.text for head in browser.all("#panel-table thead th")]
    one, other = (next(m for m in front["models"] if m["id"] == key) for key in ("0", "11"))
    assert heads == [one["label"], other["label"]]
    rows = {row.text.split("\n")[0]: row for row in browser.all("#panel-table tbody tr")}
    row = browser.js(
        "const rows = [...document.querySelectorAll('#panel-table tbody tr')];"
        "return Object.fromEntries(rows.map(r => [r.cells[0].textContent,"
        " [...r.cells].slice(1).map(c => [c.firstChild ? c.firstChild.textContent : '', c.className])]))"
    )
    assert rows
    assert [cell[0] for cell in row["validation error"]] == [
        f"{100 * m['validation_error']:.2f} %" for m in (one, other)
    ]
    better = min((0, 1), key=lambda i: (one, other)[i]["flash"])
    assert row["flash"][better][1] == "better"
    assert row["flash"][1 - better][1] != "better"
    browser.driver.back()
    until(browser, "document.getElementById('panel').hidden")
    assert browser.js("return location.href").split("#")[0] == address
    browser.js("Tinybayes.open('0')")
    browser.click("#panel-close")
    until(browser, "document.getElementById('panel').hidden")


def test_the_code_is_whole_and_its_command_is_of_this_model(browser, place, page):
    directory, front = place
    browser.open(page[0])
    key = front["chosen"]
    texts = to_c(load(directory / "models" / f"{key}.tb"), name="model")
    for name, ident in (("model.h", "code-header"), ("model.c", "code-source")):
        assert browser.find(f"#{ident}").get_attribute("textContent") == texts[name]
    assert browser.find("#code-command").text == f"tinybayes export {directory} --model {key} --to c -o firmware"
    browser.js("URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return '#'; }")
    browser.click("#code-panel .code:nth-of-type(3) .save")
    until(browser, "window.saved")
    assert browser.js("return window.saved") == texts["model.c"]
    layout = browser.js("return document.getElementById('front-plot').layout")
    assert layout["xaxis"]["title"]["text"] == "memory of the parameters (bytes)"
    assert layout["shapes"][0]["x0"] == 30_600 / 8


def shares(browser):
    code = "return [...document.querySelectorAll('#ask-classes .odds')].map(o => +o.dataset.share)"
    return browser.js(code)


def test_models_answer_in_the_page(browser, place, page):
    """A row is pasted, loaded out of a table and painted; answers are those of Python."""
    directory, front = place
    _, test = digits()
    browser.open(page[0])
    raw = np.array([[2.0, 6.0, 10.0, 14.0][code] for code in test.X[:3].reshape(-1)]).reshape(3, 64)
    kept = [m for m in front["models"] if m["file"]]
    assert {m["family"] for m in kept} >= {"tan", "naive", "dense", "circuit"}
    browser.js("document.getElementById('rows').open = true")
    for number, model in enumerate(kept):
        found = load(directory / model["file"])
        browser.js("Tinybayes.choose(arguments[0], false)", model["id"])
        values = [*map(str, raw[number % 3]), str(test.target.states[test.y[number % 3]])]
        values[number % 64] = ""
        text = browser.find("#rows-text")
        browser.js("arguments[0].value = arguments[1]", text, ",".join(values))
        before = browser.js("return document.getElementById('ask-answer').dataset.number || '0'")
        browser.click("#rows-use")
        until(browser, "+document.getElementById('ask-answer').dataset.number > +arguments[0]", before)
        assert "63 of 64 features are known" in browser.find("#rows-note").text
        row = test.X[number % 3].astype(int).copy()
        row[number % 64] = -1
        expected = np.exp(normalize_scores(class_scores(found, row[None])))[0]
        assert shares(browser) == pytest.approx(expected.tolist(), abs=2e-4), model["label"]
        best = browser.find("#ask-classes .best-class").get_attribute("data-class")
        assert best == found.target.states[int(predict_codes(found, row[None])[0])]
        assert str(test.target.states[test.y[number % 3]]) in browser.find("#ask-truth").text
    assert "zero" in browser.js(
        "Tinybayes.choose(arguments[0], false); return document.getElementById('ask-unknown').textContent",
        next(m["id"] for m in kept if m["family"] == "dense"),
    )


def test_a_table_is_loaded_row_by_row(browser, page, tmp_path):
    _, test = digits()
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    lines = [",".join(["digit", *names])]
    lines += [",".join([str(test.y[i]), *(str(4 * code + 1) for code in test.X[i])]) for i in range(5)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    browser.open(page[0])
    browser.js("document.getElementById('rows').open = true")
    browser.find("#rows-file").send_keys(str(tmp_path / "rows.csv"))
    until(browser, "document.getElementById('rows-note').textContent.startsWith('Row 1 of 5: 64 of 64')")
    browser.click("#rows-next")
    until(browser, "document.getElementById('rows-note').textContent.startsWith('Row 2 of 5')")
    until(browser, f"document.getElementById('ask-truth').textContent.includes('says {test.y[1]}.')")
    shown = browser.js(
        "const {about, known} = Tinybayes.asking;"
        "return about.variables.slice(0, 64).map(v => v.states.indexOf(known.get(v.name)))"
    )
    assert shown == test.X[1].tolist()
    browser.click("#rows-blank")
    assert browser.js("return [...Tinybayes.asking.known.values()].every(state => state === '< 4')")
    canvas = browser.find("#rows-pixels")
    browser.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(browser.driver, duration=0).move_to_element_with_offset(canvas, 12, 12).click().perform()
    painted = (
        "const {about, known} = Tinybayes.asking;"
        "return about.variables.filter(v => known.get(v.name) === '>= 12').map(v => v.name)"
    )
    assert browser.js(painted) == ["pixel_4_4"]
    canvas.send_keys(Keys.ARROW_RIGHT, " ")
    assert browser.js(painted) == ["pixel_4_4", "pixel_4_5"]


def test_trees_answer_in_the_page(browser, tmp_path):
    model = tree_ensembles.kinds()["class 7 trees"]
    path = model_report(model, None, tmp_path / "trees.html")
    save(model, tmp_path / "trees.tb")
    browser.open(path.as_uri())
    until(browser, "document.querySelector('#ask-classes .odds')")
    row = np.full((1, len(model.variables)), -1)
    assert shares(browser) == pytest.approx(np.exp(normalize_scores(class_scores(model, row)))[0].tolist())
    assert "side that was learned" in browser.find("#ask-unknown").text


def explained(values, groups):
    """Epsilon squared by its definition: the adjusted share of the variance between groups."""
    values, kinds = np.array(values), sorted(set(groups))
    parts = [values[np.array(groups) == kind] for kind in kinds]
    inside = sum(((part - part.mean()) ** 2).sum() for part in parts)
    total = ((values - values.mean()) ** 2).sum()
    error = inside / (len(values) - len(kinds))
    return max(0.0, float((total - inside - (len(kinds) - 1) * error) / total))


def test_the_importance_of_hyper_parameters(browser, tmp_path):
    random = np.random.default_rng(1)
    models = []
    for i in range(40):
        bits, rate = int(random.integers(2, 6)), float(10 ** random.uniform(-4, -1))
        wrong = 0.4 / bits * float(np.exp(0.1 * random.normal()))
        settings = {"family": "naive", "bits": bits, "rate": rate, "seed": i, "same": 3, "kind": "ab"[i % 2]}
        settings |= {f"smoothing_of_labels_{k}": float(random.random()) for k in range(4)} | {"hidden": [19, 23]}
        models.append(figures(id=str(i), settings=settings, validation_error=wrong, flash=300 * bits, on_front=i == 0))
    browser.open(write_page(checked_front({"models": models}), tmp_path / "p.html").as_uri())
    found = {
        bar.get_attribute("data-name"): float(bar.get_attribute("data-share"))
        for bar in browser.all("#hyper-bars .odds")
    }
    assert next(iter(found)) == "bits"
    assert set(found) == {"bits", "rate", "kind", *(f"smoothing_of_labels_{k}" for k in range(4))}
    logs = np.log([m["validation_error"] for m in models])
    assert found["bits"] == pytest.approx(explained(logs, [m["settings"]["bits"] for m in models]))
    assert found["kind"] == pytest.approx(explained(logs, [m["settings"]["kind"] for m in models]), abs=1e-12)
    assert found["bits"] > 0.5 > found["rate"]
    axes = [g.get_attribute("data-axis") for g in browser.all("#hyper-lines g")]
    assert axes[0] == "bits"
    assert axes[-2:] == ["flash", "error"]
    boxes = [text.rect for text in browser.all("#hyper-lines .name")]
    assert len(boxes) == 8
    assert all(left["x"] + left["width"] <= right["x"] for left, right in pairwise(boxes))
    browser.js("Tinybayes.choose('3', false)")
    told = browser.find("#settings").text.splitlines()
    assert "19, 23" in told
    assert str(float(f"{models[3]['settings']['rate']:.4g}")) in told
    assert len(browser.all("#hyper-lines .run")) == 40
    bar = browser.find("#hyper-lines g[data-axis=bits] .hit")
    browser.js("arguments[0].scrollIntoView({block: 'center'})", bar)
    high = bar.size["height"]
    mouse = (
        ActionChains(browser.driver, duration=0).move_to_element_with_offset(bar, 0, -int(0.49 * high)).click_and_hold()
    )
    mouse.move_by_offset(0, int(0.2 * high)).release().perform()
    out = {path.get_attribute("data-id") for path in browser.all("#hyper-lines .run.out")}
    assert out == {m["id"] for m in models if m["settings"]["bits"] < 5}
    browser.js("document.querySelector('#hyper-lines .run:not(.out)').dispatchEvent(new Event('click'))")
    assert browser.find("#panel").is_displayed()
    assert "hidden 19, 23" in browser.find("#panel").text


def test_paper_is_white(browser, page):
    browser.open(page[0], scheme="dark")
    browser.js("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.js("return document.documentElement.dataset.theme") == "light"
    assert browser.js("return document.getElementById('front-plot').layout.font.color") == "#16191d"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    for hidden in ("#theme", "#ask", ".chips", "#budget-memory", "#filter", ".copy"):
        assert not browser.find(hidden).is_displayed(), hidden
    assert browser.find("#best strong").is_displayed()
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.js("window.dispatchEvent(new Event('afterprint'))")
    assert browser.js("return document.documentElement.dataset.theme") == "dark"
