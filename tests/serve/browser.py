"""A browser without a window, and the page in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

_OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900",
)  # fmt: skip
_SECONDS = 10


class Page:
    """One of our pages in a browser.

    Parameters
    ----------
    driver
        The browser.
    downloads
        The folder that it downloads to.
    """

    def __init__(self, driver: Chrome, downloads: Path) -> None:
        self.driver, self.downloads = driver, downloads

    def open(self, url: str) -> None:
        """Open a page."""
        self.driver.get(url)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript."""
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: Callable[[], Any]) -> Any:
        """Return what a condition returns, as soon as it holds."""
        return WebDriverWait(self.driver, _SECONDS, poll_frequency=0.03).until(lambda _: condition())

    def until_status(self, *parts: str) -> str:
        """Wait until the page says something; return all that it says."""
        self.until(lambda: all(part in self.text("#status") for part in parts))
        return self.text("#status")

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        return [str(one) for one in self.run(script, selector)]

    def write(self, text: str) -> None:
        """Replace the text as if it was pasted: the driver cannot type all characters."""
        self.run(
            "const box = document.getElementById('text'); box.value = arguments[0];"
            " box.dispatchEvent(new InputEvent('input', {bubbles: true}))",
            text,
        )

    def suggest(self, text: str) -> list[str]:
        """Write a text, and return the names of the suggestions once they are explained."""
        self.write(text)
        # What is found afterwards is new.
        self.run("document.getElementById('suggestions').replaceChildren(); document.getElementById('suggest').click()")
        self.until(lambda: self.all("#suggestions .fact") and not self.all("#suggestions[aria-busy]"))
        return self.names()

    def names(self) -> list[str]:
        return self.texts("#suggestions .name > bdi:last-child")

    def move(self, name: str, value: float) -> None:
        """Move a slider."""
        script = (
            "const slider = document.getElementById(arguments[0]); slider.value = arguments[1];"
            " slider.dispatchEvent(new InputEvent('input', {bubbles: true}))"
        )
        self.run(script, name, value)

    def marks(self) -> list[tuple[int, str, str]]:
        """Return where highlights begin (in characters), what they cover, and whether they are for or against."""
        script = """
            const found = [];
            let before = "";
            for (const node of document.getElementById("backdrop").childNodes) {
              if (node.nodeName === "MARK") found.push([[...before].length, node.textContent, node.className]);
              before += node.textContent;
            }
            return found;"""
        return [(begin, covered, kind) for begin, covered, kind in self.run(script)]

    def emulate(self, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Set the size of the window, and whether the user prefers light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def requests(self) -> list[str]:
        """Return the addresses of all requests since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]

    def errors(self) -> list[str]:
        """Return the errors of the browser's console since the last call."""
        return [entry["message"] for entry in self._log("browser") if entry["level"] == "SEVERE"]

    def _log(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.driver.get_log(kind)  # type: ignore[no-untyped-call]
        return found


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """Start Chromium with a profile in a folder; skip the test if it is not installed."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("Chromium is not installed: install the packages chromium and chromium-driver to run this")
    downloads = folder / "downloads"
    options = ChromeOptions()
    options.binary_location = browser
    for option in (*_OPTIONS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(option)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = Chrome(options=options, service=Service(driver))
    try:
        yield Page(started, downloads)
    finally:
        started.quit()
