"""The local app in a real browser: a front that grows, questions and answers, the button that ends a search."""

import json
import re
import shutil

import numpy as np
import pytest

from explored import HOSTILE, digits, linear_net, mark_front, write_explored

pytest.importorskip("selenium", reason="selenium is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")
from selenium.webdriver.support.ui import Select, WebDriverWait

from served import serving, write_progress
from tinybayes import class_scores, explain, load, save
from tinybayes.infer import ask_codes, compile_circuit, normalize_scores
from tinybayes.search.repeat import RETRAINING


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    place = tmp_path_factory.mktemp("served") / "digits"
    front = write_explored(place, *digits())
    with serving(place) as address:
        yield address, place, front


def until(browser, code, *arguments):
    WebDriverWait(browser.driver, 30).until(lambda _: browser.js(f"return Boolean({code})", *arguments))


def answered(browser, act):
    """Do something that asks the model, and wait for the answer."""
    before = browser.js("return +(document.getElementById('ask-answer').dataset.number || 0)")
    act()
    until(browser, "+(document.getElementById('ask-answer').dataset.number || 0) > arguments[0]", before)


def open_asking(browser, address, **more):
    browser.open(address, **more)
    until(browser, "document.querySelector('#ask-classes .odds')")


def shares(browser):
    code = "return [...document.querySelectorAll('#ask-classes .odds')].map(o => [o.dataset.class, +o.dataset.share])"
    return dict(browser.js(code))


def choose(browser, node, state):
    element = browser.find(f"#ask-{node}")
    answered(browser, lambda: Select(element).select_by_visible_text(state))


@pytest.mark.exhaustive
def test_a_model_is_asked(browser, served):
    address, place, front = served
    open_asking(browser, address)
    assert browser.find("#tables").is_displayed()  # the inside was asked for, too
    net = load(place / next(m["file"] for m in front["models"] if m["id"] == front["chosen"]))
    row = np.full(64, -1)
    for node, code in ((2, 3), (3, 0), (4, 2)):
        choose(browser, node, net.variables[node].states[code])
        row[node] = code
        scores = class_scores(net, row[None])
        wanted = np.exp(normalize_scores(scores))[0]
        assert list(shares(browser).values()) == pytest.approx(wanted.tolist())
    assert browser.find(".best-class").get_attribute("data-class") == str(wanted.argmax())
    found = explain(net, row)
    code = "return [...document.querySelectorAll('#ask-why .odds')].map(o => [o.dataset.feature, +o.dataset.odds])"
    odds = dict(browser.js(code))
    assert odds["before any feature"] == pytest.approx(found.prior)
    for item in found.strongest(10):
        assert odds[item.feature] == pytest.approx(item.log_odds)
    told = ask_codes(compile_circuit(net), np.full(65, -1), np.append(row, -1))
    assert f"logarithm {told.log_evidence:.2f}" in browser.find("#ask-evidence").text
    for name, more in {"light": {}, "dark": {"scheme": "dark"}, "phone": {"width": 390, "mobile": True}}.items():
        look(browser, address, f"serve-{name}", net, **more)


def look(page, address, name, net, **more):
    """Take a picture of the app with something asked, and see that nothing runs over the edge."""
    open_asking(page, address, **more)
    for node, code in ((2, 3), (3, 0), (4, 2)):
        choose(page, node, net.variables[node].states[code])
    width = more.get("width", 1280)
    assert page.js("return document.documentElement.scrollWidth") <= width
    page.shot(name, width, more.get("mobile", False))


@pytest.mark.exhaustive
def test_the_class_can_be_known_and_facts_forgotten(browser, served):
    address, place, front = served
    open_asking(browser, address)
    choose(browser, 64, "3")
    assert shares(browser)["3"] == 1
    assert "Forget digit" in browser.find("#ask-facts button").get_attribute("aria-label")
    answered(browser, lambda: browser.click("#ask-facts button"))
    assert shares(browser)["3"] < 1
    assert Select(browser.find("#ask-64")).first_selected_option.text == "not known"
    browser.find("#ask-filter").send_keys("pixel_7")
    assert len(browser.all(".ask-row")) == 8
    browser.find("#ask-filter").clear()
    browser.find("#ask-filter").send_keys("x")
    assert browser.find("#ask-more").text == "Show all 64 variables"
    answered(browser, lambda: browser.click("#ask-more"))
    assert len(browser.all(".ask-row")) == 64
    for family in ("circuit", "dense"):  # other models are asked the same way
        model = next(m for m in front["models"] if m["family"] == family and m["file"])
        answered(browser, lambda chosen=model["id"]: browser.js("Tinybayes.choose(arguments[0])", chosen))
        found = load(place / model["file"])
        choose(browser, 3, found.variables[3].states[1])
        row = np.full((1, 64), -1)
        row[0, 3] = 1
        wanted = np.exp(normalize_scores(class_scores(found, row)))[0]
        assert list(shares(browser).values()) == pytest.approx(wanted.tolist())
        assert not browser.all("#ask-why")
        answered(browser, lambda: browser.click("#ask-forget"))


@pytest.mark.exhaustive
def test_a_search_is_followed_and_stopped(browser, served, tmp_path):
    _, place, front = served
    kept = [{**m, "test_error": None, "confusion": None, "reliability": None} for m in front["models"] if m["file"]]
    shutil.copytree(place / "models", tmp_path / "models")

    def live(count, name="live.json"):
        few = [dict(model) for model in kept[:count]]
        mark_front(few)
        part = tmp_path / ".part"
        part.write_text(json.dumps({**front, "chosen": few[0]["id"], "models": few}))
        part.replace(tmp_path / name)

    best = {"id": "x", "label": "tan, 3 bits", "error": 0.0725, "bits": 6000, "operations": 5, "flash": 1000}
    write_progress(tmp_path, phase="starting", runs=0)
    with serving(tmp_path) as address:
        browser.driver.get("about:blank")
        browser.driver.get(address)
        until(browser, "!document.getElementById('live').hidden")
        assert browser.find("#live-title").text == "Starting"
        assert not browser.find("#front-section").is_displayed()
        write_progress(tmp_path, best=best)
        live(2)
        until(browser, "Tinybayes.data.models.length === 2 && document.querySelector('#tables')")
        assert browser.find("#front-section").is_displayed()
        said = r"12 runs · 1 min [123]?[0-9] s left · best so far 7.25 % error in 1.0 kB: tan, 3 bits"
        assert re.search(said, browser.find("#live-text").text)
        assert 0.25 <= browser.find("#live-bar").get_property("value") < 0.5  # time goes on between two words of it
        browser.slide("memory", 500)
        choose(browser, 3, "8 to 12")
        limit = browser.js("return Tinybayes.state.limits.bits")
        shown = browser.find("#tables")
        live(4)
        until(browser, "Tinybayes.data.models.length === 4")
        assert len(browser.marks()) == 4
        assert browser.js("return Tinybayes.state.limits.bits") == limit  # what was set stays
        assert shown.is_displayed()  # and whoever looks at a model is not disturbed
        assert Select(browser.find("#ask-3")).first_selected_option.text == "8 to 12"
        browser.shot("serve-live")
        browser.resize(1280, 900)
        browser.click("#stop")
        until(browser, "document.getElementById('stop').textContent === 'Stopping…'")
        assert (tmp_path / "stop").exists()
        (tmp_path / "stop").unlink()
        write_progress(tmp_path, phase=RETRAINING)
        until(browser, "document.getElementById('live-title').textContent === 'Retraining the front'")
        live(len(kept), "front.json")
        write_progress(tmp_path, phase="done")
        until(browser, "document.getElementById('live-title').textContent === 'The search has ended'")
        until(browser, "Tinybayes.data.models.length === arguments[0]", len(kept))
        assert not browser.find("#stop").is_displayed()


def test_hostile_names_are_text(browser, tmp_path):
    names = [f"{HOSTILE}{number}" for number in range(64)]
    train, _ = digits(names)
    save(linear_net(train), tmp_path / "x.tb")
    entry = {"family": HOSTILE, "bits": 8, "operations": 1, "validation_error": 0.5, "file": "x.tb", "label": HOSTILE}
    models = [{**entry, "id": HOSTILE}, {**entry, "id": "b"}]
    (tmp_path / "front.json").write_text(json.dumps({"title": HOSTILE, "models": models, "chosen": HOSTILE}))
    write_progress(tmp_path, best={"label": HOSTILE, "error": 0.5, "bits": 8}, phase="searching")
    with serving(tmp_path) as address:
        open_asking(browser, address)
        choose(browser, 2, "8 to 12")
        assert browser.driver.title == HOSTILE
        assert HOSTILE in browser.find("#ask-rows").text.replace("\n", "")
        assert not browser.all("img")
