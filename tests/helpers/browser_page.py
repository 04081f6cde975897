"""What tests do with a page in a browser: open it, press, read, take its picture, listen to its complaints."""

import base64
import json

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


class Page:
    """A page that is open, and the few things that tests do with it."""

    def __init__(self, driver, folder):
        self.driver, self.folder = driver, folder

    def open(self, address, width=1280, height=900, scheme="light", mobile=False):
        feature = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
        self.resize(width, height, mobile)
        self.driver.get_log("performance")
        self.driver.get("about:blank")
        self.driver.get(address)
        WebDriverWait(self.driver, 20).until(
            lambda _: self.js("return Boolean(Tinybayes.data && Tinybayes.state.chosen)")
        )
        return self

    def resize(self, width, height, mobile=False):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector):
        element = self.find(selector)
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def column(self, number):
        """Return the texts of a column of the table; of the first one without marks."""
        cells = f"#models tbody tr td:nth-child({number})" + (" button" if number == 1 else "")
        return self.js(f"return [...document.querySelectorAll('{cells}')].map(c => c.innerText)")

    def problems(self, axe):
        """Return what axe-core complains about."""
        self.js(axe)
        self.driver.set_script_timeout(120)
        return self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(result => done("
            "result.violations.flatMap(rule => rule.nodes.map(node => `${rule.id}: ${node.target.join(' ')}`))))"
        )

    def slide(self, name, step):
        code = "const s = arguments[0]; s.value = arguments[1]; s.dispatchEvent(new Event('input', {bubbles: true}))"
        self.js(code, self.find(f"#budget-{name}"), step)

    def marks(self):
        """Return {id: opacity} of all marks of the front."""
        code = (
            "return Object.fromEntries(document.getElementById('front-plot').data.filter(t => t.customdata)"
            ".flatMap(t => t.customdata.map((id, i) => [id, t.marker.opacity[i]])))"
        )
        return self.js(code)

    def shot(self, name, width=1280, mobile=False):
        self.js("window.scrollTo(0, 0)")
        self.resize(width, self.js("return document.documentElement.scrollHeight"), mobile)
        WebDriverWait(self.driver, 5).until(lambda _: self.js("return document.readyState === 'complete'"))
        image = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        (self.folder / f"{name}.png").write_bytes(base64.b64decode(image["data"]))

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Return all addresses that were asked for since the page was opened."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith(("data:", "blob:", "about:"))]
