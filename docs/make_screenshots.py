"""Write the screenshots of the report and of the local app: python docs/make_screenshots.py [DIR], with Chromium.

The report is that of docs/example; the app shows DIR, a search that may still run, or docs/example.
"""

import io
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver

from tinybayes.report.html import write_report

DOCS = Path(__file__).parent
EXAMPLE = DOCS / "example"
WIDTH, HEIGHT = 1180, 780


def chromium() -> Any:
    """Start a browser without a window."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options)
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    return driver


def keep(driver: Any, name: str) -> None:
    """Save what is seen, in few colours."""
    time.sleep(2)
    picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    picture.quantize(96, dither=Image.Dither.NONE).save(DOCS / "figures" / f"{name}.png", optimize=True)


def main() -> None:
    """Take all of them."""
    shown = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLE
    driver = chromium()
    with tempfile.TemporaryDirectory() as folder:
        driver.get(write_report(EXAMPLE, Path(folder) / "report.html").resolve().as_uri())
        keep(driver, "report")
        driver.execute_script("document.querySelector('#models tbody tr button, table tbody tr').click()")
        keep(driver, "report_model")
    command = [sys.executable, "-m", "tinybayes", "serve", str(shown), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        driver.get(address[0])
        keep(driver, "serve")
    finally:
        server.terminate()
        server.wait(timeout=30)
        driver.quit()


if __name__ == "__main__":
    main()
