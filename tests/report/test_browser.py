"""The report page in a real browser."""

import json

import pytest

from explored import HOSTILE, digits, linear_net, write_explored
from tinybayes.model import Dataset, Variable
from tinybayes.report.front import checked_front
from tinybayes.report.html import model_report, write_page, write_report

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    place = tmp_path_factory.mktemp("browser") / "digits"
    front = write_explored(place, *digits())
    return write_report(place).as_uri(), front


def test_opens_complete_and_asks_for_nothing(browser, page):
    address, front = page
    browser.open(address)
    assert browser.find("h1").text == front["title"]
    assert browser.driver.title == front["title"]
    assert "15 models" in browser.find("#about").text
    assert browser.find("#command").text == front["command"]
    assert "7" in browser.find("#provenance").text
    assert browser.find("#model-title").text == "tan, 3 bits"
    assert len(browser.marks()) == 15
    for panel in ("structure", "tables", "levels", "confusion", "reliability", "breakdown", "code-panel"):
        assert browser.find(f"#{panel}").is_displayed(), panel
    assert "Cortex-M0+" in browser.find("#board-table").text
    (told,) = [m["explanations"] for m in front["models"] if m["id"] == front["chosen"]]
    shown = browser.all("#why section")
    assert [int(place.get_attribute("data-row")) for place in shown] == [item["row"] for item in told]
    assert [place.get_attribute("class") for place in shown[:2]] == ["right", "wrong"]
    assert shown[0].text.startswith(f"Row {told[0]['row'] + 1}: ")  # counted from 1, as where rows are loaded
    assert f"it is {told[1]['truth']}" in shown[1].text
    bars = browser.all("#why section:first-child .odds")
    assert [bar.get_attribute("data-feature") for bar in bars[1:]] == [c["feature"] for c in told[0]["contributions"]]
    widths = [browser.js("return arguments[0].querySelector('i').offsetWidth", bar) for bar in bars[1:]]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 20
    browser.shot("light")
    assert browser.requests() == [address]


def test_the_budget_dims_and_names_the_best(browser, page):
    address, front = page
    browser.open(address)
    models = front["models"]

    def best(bits, operations=float("inf")):
        fitting = [m for m in models if m["bits"] <= bits and m["operations"] <= operations and m["file"]]
        return min(fitting, key=lambda m: (m["validation_error"], m["bits"]))["id"]

    def named():
        return browser.find("#best strong").get_attribute("data-id")

    assert named() == best(30_600) == front["chosen"]
    assert "3.8 kB" in browser.find("#budget-memory-text").text
    browser.find("#budget-memory").send_keys(Keys.END)
    assert browser.find("#budget-memory-text").text == "no limit"
    assert named() == best(float("inf"))
    assert min(browser.marks().values()) > 0.3
    browser.slide("memory", 300)
    limit = browser.js("return Tinybayes.state.limits.bits")
    assert named() == best(limit)
    marks = browser.marks()
    for model in models:
        fits = model["bits"] <= limit or model["id"] == front["chosen"]
        assert (marks[model["id"]] > 0.3) == fits, model["label"]
    dim = {row.get_attribute("data-id") for row in browser.all("#models tr.dim")}
    assert dim == {m["id"] for m in models if m["bits"] > limit}
    browser.slide("work", 0)
    assert named() is None or best(limit, browser.js("return Tinybayes.state.limits.operations")) == named()
    browser.slide("memory", 0)
    assert "Nothing fits" in browser.find("#best").text
    browser.click("#budget-reset")
    assert named() == best(float("inf"))
    browser.click("#best-choose")
    assert browser.js("return Tinybayes.state.chosen") == best(float("inf"))


def test_the_price_of_the_program_or_of_the_parameters(browser, page, tmp_path):
    _, front = page
    path = write_page({**checked_front(front), "budget": {"flash": 3000, "core": "cortex-m0+"}}, tmp_path / "p.html")
    browser.open(path.as_uri())
    models = front["models"]

    def best(memory, limit):
        fitting = [m for m in models if m[memory] <= limit and m["file"]]
        return min(fitting, key=lambda m: (m["validation_error"], m[memory]))["id"]

    def named():
        return browser.find("#best strong").get_attribute("data-id")

    assert browser.find("#budget-memory-name").text == "Flash"
    assert browser.find("#budget-memory-text").text == "3.0 kB"
    assert named() == best("flash", 3000)
    layout = browser.js("return document.getElementById('front-plot').layout")
    assert layout["xaxis"]["title"]["text"] == "flash of the program (bytes, cortex-m0+)"
    assert layout["shapes"][0]["x0"] == 3000
    assert "Models whose program was not priced" in browser.find("#front-key").text
    one = next(m for m in models if m["label"] == "tan, 3 bits")
    browser.js("Tinybayes.choose(arguments[0], false)", one["id"])
    told = browser.find("#facts").text
    assert f"{one['flash']:,} B" in told
    assert f"{one['stack']:,} B of stack" in told
    assert f"{one['instructions']:,.0f} instructions" in told
    Select(browser.find("#price-kind")).select_by_value("papers")
    assert browser.find("#budget-memory-name").text == "Parameters"
    assert browser.find("#budget-memory-text").text == "no limit"
    assert named() == best("bits", float("inf"))
    browser.slide("memory", 300)
    assert named() == best("bits", browser.js("return Tinybayes.state.limits.bits"))
    assert browser.complaints() == []


@pytest.mark.exhaustive
def test_the_search_is_shown_in_its_order(browser, page, tmp_path):
    address, front = page
    browser.open(address)
    assert not browser.find("#search-section").is_displayed()  # models that no search has found
    models = [{**model, "seconds": 2.0, "file": None} for model in front["models"]]
    models[3]["test_error"] = None
    searched = checked_front({**front, "models": models, "chosen": None, "budget": {}})
    address = write_page(searched, tmp_path / "search.html").as_uri()
    browser.open(address)
    assert browser.find("#search-section").is_displayed()
    steps, marks = browser.js("return document.getElementById('search-plot').data")
    assert marks["customdata"] == [model["id"] for model in models]
    assert marks["x"] == [2.0 * (i + 1) for i in range(len(models))]
    errors = [100 * model["validation_error"] for model in models]
    least = [min(errors[: i + 1]) for i in range(len(errors))]
    falls = [i for i in range(len(least)) if i == 0 or least[i] < least[i - 1]]
    assert steps["x"] == [*(2.0 * (i + 1) for i in falls), 2.0 * len(models)]
    assert steps["y"] == pytest.approx([*(least[i] for i in falls), least[-1]])
    assert f"of {2 * len(models)} s" in browser.find("#search-key").text
    Select(browser.find("#error-kind")).select_by_value("test_error")
    _, marks = browser.js("return document.getElementById('search-plot').data")
    assert marks["customdata"] == [model["id"] for model in models if model["test_error"] is not None]
    Select(browser.find("#error-kind")).select_by_value("validation_error")
    browser.slide("memory", 0)
    steps, marks = browser.js("return document.getElementById('search-plot').data")
    cheapest = min(models, key=lambda model: (model["flash"], model["validation_error"]))
    assert steps["y"][-1] == pytest.approx(100 * cheapest["validation_error"])
    assert marks["marker"]["opacity"].count(0.8) == sum(model["flash"] <= cheapest["flash"] for model in models)
    assert browser.complaints() == []


@pytest.mark.exhaustive
def test_families_can_be_hidden(browser, page):
    browser.open(page[0])
    chip = browser.find('.chip[data-family="naive"]')
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert len(browser.marks()) == 10
    assert not any("naive" in name for name in browser.column(1))
    chip.send_keys(Keys.SPACE)
    assert len(browser.marks()) == 15
    browser.click("#front-only")
    front = [m for m in page[1]["models"] if m["on_front"]]
    assert len(browser.marks()) == len(front) == len(browser.column(1))


@pytest.mark.exhaustive
def test_the_table_sorts_and_filters(browser, page):
    browser.open(page[0])
    assert browser.column(2) == sorted(browser.column(2), key=lambda text: float(text.split()[0]))
    by_bits = [m["label"] for m in sorted(page[1]["models"], key=lambda m: m["bits"])]
    heading = '#models th[data-key="bits"]'
    browser.click(f"{heading} button")
    assert browser.column(1) == by_bits
    assert browser.find(heading).get_attribute("aria-sort") == "ascending"
    browser.find(f"{heading} button").send_keys(Keys.ENTER)
    assert browser.column(1) == by_bits[::-1]
    for words, found in {
        "tan 3 bits": {"tan, 3 bits"},
        "tan, 4 bits": {"tan, 4 bits"},  # the example that the filter shows
        "4 bits": {"tan, 4 bits", "naive Bayes, 4 bits", "linear net, 4 bits"},
        "4": {"tan, 4 bits", "naive Bayes, 4 bits", "linear net, 4 bits"},
        "TIED (": set(),
    }.items():
        browser.find("#filter").clear()
        browser.find("#filter").send_keys(words)
        assert set(browser.column(1)) == found, words
        assert f"{len(found)} of 15" in browser.find("#table-note").text
    assert browser.find("#filter").get_attribute("placeholder") == "Filter: tan, 4 bits"


@pytest.mark.exhaustive
def test_choosing_a_model_by_row_mark_and_address(browser, page):
    browser.open(page[0])
    browser.click('#models tr[data-id="11"] button')
    assert browser.find("#panel-title").text == "linear net, 4 bits"
    assert browser.js("return document.activeElement.id") == "panel-title"
    browser.click("#panel-look")
    assert not browser.find("#panel").is_displayed()
    assert browser.find("#model-title").text == "linear net, 4 bits"
    assert browser.js("return document.activeElement.id") == "model-title"
    assert browser.js("return location.hash") == "#model=11"
    assert browser.find("#weights canvas").size["width"] > 100
    assert browser.find("#history .plot .main-svg").is_displayed()
    browser.js("document.getElementById('front-plot').emit('plotly_click', {points: [{customdata: '10'}]})")
    assert browser.find("#model-title").text == "circuit, 2,000 edges"
    assert browser.find("#panel-title").text == "circuit, 2,000 edges"
    assert len(browser.all("#structure .node")) > 20
    browser.shot("circuit")
    browser.open(page[0] + "#model=b-tree")
    assert browser.find("#model-title").text == "tree, tables only"
    assert "figures of this model" in browser.find("#panels").text


@pytest.mark.exhaustive
def test_the_structure_is_searched_and_leads_to_tables(browser, page):
    browser.open(page[0])
    assert len(browser.all("#structure .node")) == 65
    browser.find("#structure .find").send_keys("pixel_3_")
    assert browser.find("#structure .found").text == "8 found"
    assert len(browser.all("#structure .node.match")) == 8
    browser.find("#structure .find").send_keys("4", Keys.ENTER)
    choice = Select(browser.find("#table-choice"))
    assert choice.first_selected_option.text.startswith("pixel_3_4 given ")
    assert browser.find("#structure .node.chosen title").get_attribute("textContent") == "pixel_3_4"
    choice.select_by_index(0)
    assert browser.find("#table-heat th[scope=row]").text == "always"
    assert len(browser.all("#table-heat td")) == 10
    assert browser.find("#structure .node.chosen").get_attribute("class").split()[1] == "class"
    total = sum(float(cell.text) for cell in browser.all("#table-heat td"))
    assert 0.3 < total < 3
    before = browser.find("#structure svg g").get_attribute("transform")
    browser.find("#structure svg").send_keys(Keys.ARROW_LEFT, "+")
    assert browser.find("#structure svg g").get_attribute("transform") != before


@pytest.mark.exhaustive
def test_code_and_command_are_copied(browser, page):
    browser.open(page[0])
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    code = browser.find("#code-source").get_attribute("textContent")
    assert "model_predict" in code
    for selector, text in [
        ("#code-panel .code:nth-of-type(3) .copy", code),
        ("#code-panel .code:nth-of-type(1) .copy", browser.find("#code-command").text),
        ("[data-copy=command]", page[1]["command"]),
    ]:
        browser.click(selector)
        WebDriverWait(browser.driver, 5).until(lambda _, s=selector: browser.find(s).text == "Copied")
        pasted = browser.driver.execute_async_script(
            "navigator.clipboard.readText().then(arguments[0], () => arguments[0](null))"
        )
        assert pasted is None or pasted.replace("\r\n", "\n") == text


@pytest.mark.exhaustive
def test_dark_follows_the_system_and_the_button(browser, page):
    browser.open(page[0], scheme="dark")
    theme = "return document.documentElement.dataset.theme"
    colour = "return getComputedStyle(document.body).backgroundColor"
    assert browser.js(theme) == "dark"
    dark = browser.js(colour)
    assert browser.js("return document.getElementById('front-plot').layout.font.color") == "#e8ebef"
    browser.shot("dark")
    browser.click("#theme")
    assert browser.js(theme) == "light"
    assert browser.js(colour) != dark
    assert browser.js("return document.getElementById('front-plot').layout.font.color") == "#16191d"
    browser.js("localStorage.clear()")


@pytest.mark.exhaustive
@pytest.mark.parametrize("ident", ["6", "12"])
def test_a_phone_needs_no_sideways_scrolling(browser, page, ident):
    browser.open(f"{page[0]}#model={ident}", 360, 740, mobile=True)
    assert browser.js("return document.documentElement.scrollWidth") <= 360
    wide = browser.js(
        "return [...document.querySelectorAll('button, select, input')].filter(e => e.offsetParent"
        " && !e.closest('.scroll, .heat-scroll, #boards') && e.getBoundingClientRect().right > 361)"
        ".map(e => e.outerHTML)"
    )
    assert wide == []
    browser.shot(f"phone-{ident}", 360, mobile=True)


@pytest.mark.exhaustive
def test_everything_is_reached_by_the_keyboard(browser, page):
    browser.open(page[0])
    reached = set()
    body = browser.find("body")
    body.send_keys(Keys.TAB)
    for _ in range(110):
        element = browser.driver.switch_to.active_element
        reached.add(element.get_attribute("id") or element.get_attribute("class"))
        element.send_keys(Keys.TAB)
    wanted = {
        "skip",
        "theme",
        "chip",
        "budget-memory",
        "budget-work",
        "filter",
        "table-scroll",
        "table-choice",
        "find",
    }
    assert wanted <= reached
    unnamed = browser.js(
        "return [...document.querySelectorAll('button, input, select, svg[tabindex]')]"
        ".filter(e => e.checkVisibility() && !e.innerText"
        " && !e.getAttribute('aria-label') && !(e.labels && e.labels.length)).map(e => e.outerHTML)"
    )
    assert unnamed == []


@pytest.mark.exhaustive
def test_text_has_contrast(browser, page):
    """Colours of text against their backgrounds, by the formula of WCAG 2: at least 4.5."""
    code = """
    const parse = (colour) => {
      const context = document.createElement('canvas').getContext('2d');
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const linear = (v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const light = (name) => parse(Tinybayes.css(name)).map(v => linear(v / 255))
      .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    return arguments[0].map(([a, b]) => {
      const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
      return [a + b, (x + .05) / (y + .05)];
    });
    """
    pairs = [(a, b) for a in ("--text", "--quiet") for b in ("--surface", "--back", "--raised")]
    pairs += [
        ("--accent", "--surface"),
        ("--accent-text", "--accent"),
        ("--mark", "--surface"),
    ]
    cells = """
    const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3)
      .map(v => colour.startsWith('color(') ? +v : v / 255)
      .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    return Math.min(...[...document.querySelectorAll('.heat td, #models tr.dim td')].map((cell) => {
      const style = getComputedStyle(cell), back = style.backgroundColor;
      const surface = back === 'rgba(0, 0, 0, 0)' ? getComputedStyle(cell.closest('.card')).backgroundColor : back;
      const [x, y] = [light(style.color), light(surface)].sort((p, q) => q - p);
      return (x + .05) / (y + .05);
    }));
    """
    for scheme in ("light", "dark"):
        browser.open(page[0], scheme=scheme)
        low = [pair for pair in browser.js(code, pairs) if pair[1] < 4.5]
        assert low == [], scheme
        assert len(browser.all("#models tr.dim")) > 2
        assert browser.js(cells) >= 4.5, scheme


def test_hostile_names_do_nothing(browser, tmp_path):
    train, test = digits([HOSTILE + str(i) for i in range(64)])
    target = Variable(HOSTILE, tuple(f"{HOSTILE}{k}" for k in range(10)))
    train, test = (Dataset(d.variables, target, d.X, d.y) for d in (train, test))
    place = tmp_path / "hostile"
    front = write_explored(place, train, test)
    for entry in front["models"]:
        entry["label"] += HOSTILE
    front["title"] = f"title {HOSTILE}"
    front["provenance"] = {HOSTILE: HOSTILE}
    (place / "front.json").write_text(json.dumps(front))
    address = write_report(place).as_uri()
    browser.open(address)
    for ident in ("6", "10", "11"):
        browser.js("Tinybayes.choose(arguments[0])", ident)
    assert browser.driver.title == front["title"]
    assert browser.all("img, iframe") == []
    assert len(browser.all("script")) == 3
    assert HOSTILE in browser.find("#model-title").text
    assert browser.requests() == [address]


@pytest.mark.exhaustive
def test_one_model_has_a_page_without_a_front(browser, tmp_path):
    train, test = digits()
    path = model_report(linear_net(train), test, tmp_path / "one.html", command="tinybayes fit digits.csv")
    browser.open(path.as_uri())
    assert not browser.find("#front-section").is_displayed()
    assert not browser.find("#table-section").is_displayed()
    assert browser.find("#confusion").is_displayed()
    assert "neural net" in browser.find("#facts").text
    browser.shot("one")


def test_a_page_is_brought_up_to_date_in_place(browser, page):
    """What a server of a running search does."""
    browser.open(page[0])
    browser.slide("memory", 500)
    browser.click('.chip[data-family="naive"]')
    limit = browser.js("return Tinybayes.state.limits.bits")
    browser.js(
        "const next = structuredClone(Tinybayes.data);"
        "next.models.push({...next.models[0], id: 'new', family: 'conv', label: 'new one'});"
        "next.cards = JSON.parse(document.getElementById('data').textContent).cards; Tinybayes.update(next)"
    )
    assert "16 models" in browser.find("#about").text
    assert len(browser.marks()) == 11
    assert browser.js("return Tinybayes.state.limits.bits") == limit
    assert browser.js("return Tinybayes.state.chosen") == page[1]["chosen"]
    assert browser.find('.chip[data-family="conv"]').is_displayed()


@pytest.mark.exhaustive
def test_groups_are_shown_one_at_a_time(browser, tmp_path):
    common = {"family": "naive", "on_front": True, "operations": None, "parameters": None}
    models = [
        {"id": i, "group": group, "label": f"{group} {i}", "test_error": 0.1 * (i + 1), "bits": 10 ** (i + 1), **common}
        for i, group in enumerate(["letter", "letter", "usps", "usps", "usps"])
    ]
    front = checked_front({"title": "Sweeps", "chosen": 1, "models": models})
    browser.open(write_page(front, tmp_path / "groups.html").as_uri())
    assert set(browser.marks()) == {"0", "1"}
    assert sorted(browser.column(1)) == ["letter 0", "letter 1"]
    assert "operations" not in browser.find("#best").text
    Select(browser.find("#group-kind")).select_by_visible_text("usps")
    assert set(browser.marks()) == {"2", "3", "4"}
    assert "Best of 3" in browser.find("#best").text
    browser.find("#budget-memory").send_keys(Keys.HOME)
    assert browser.find("#best strong").text == "usps 2"
    browser.js("Tinybayes.choose('0', false)")
    assert Select(browser.find("#group-kind")).first_selected_option.text == "letter"
    assert set(browser.marks()) == {"0", "1"}
    browser.shot("groups")


def test_a_metric_is_called_by_its_name(browser, tmp_path):
    front = write_explored(tmp_path, *digits())
    for model in front["models"]:
        wrong = model["test_error"]
        model |= {"validation_value": model["validation_error"] / 7, "test_value": None if wrong is None else wrong / 7}
    front["metric"] = {"name": "auc", "title": "1 - AUC <b>", "percent": False}
    (tmp_path / "front.json").write_text(json.dumps(front))
    browser.open(write_report(tmp_path).as_uri())
    values = [model["validation_value"] for model in front["models"]]
    shown = [mark for mark in browser.marks() if mark]
    assert len(shown) == len(values)
    for part in ("#best", "#front-key", "#search-key"):
        assert " error" not in browser.find(part).text
    assert "1 - AUC <b>" in browser.find("#best").text
    assert browser.find("#error-name").text == "1 - AUC <b>"
    heads = [head.text for head in browser.all("#models thead th")]
    expected = ["1 - AUC <b>, validation", "1 - AUC <b>, test", "Validation error", "Flash", "Test error"]
    assert [head.lower() for head in heads[1:6]] == [name.lower() for name in expected]
    assert "validation 1 - AUC" in browser.find("#facts").text
    assert browser.js("return document.getElementById('front-plot').layout.yaxis.title.text").startswith("validation 1")
    order = browser.js("return [...document.querySelectorAll('#models tbody tr')].map((row) => row.dataset.id)")
    by_id = {model["id"]: model["validation_value"] for model in front["models"]}
    assert [by_id[key] for key in order] == sorted(values)
