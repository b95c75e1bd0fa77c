"""Chromium with the page of a server that has the demo model, for tests and for the screenshots of the documentation."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import demo_server  # noqa: E402


def start_server(program, folder, *flags, http="127.0.0.1:0"):
    return demo_server.DemoServer(program, folder, *flags, http=http)


class Browser:
    """A headless Chromium; wait() waits for conditions and never for a time."""

    WAIT_S = 30

    def __init__(self, folder):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = os.environ.get("WAN_CHROMIUM", "/usr/bin/chromium")
        for flag in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
                     "--disable-background-networking", f"--user-data-dir={folder}"):
            options.add_argument(flag)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # Chromium's sandbox does not run as root
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = os.environ.get("WAN_CHROMEDRIVER", "/usr/bin/chromedriver")
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.resize(1280, 900)
        self.colours("light")

    def quit(self):
        self.driver.quit()

    # --- The window

    def resize(self, width, height, scale=1):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def colours(self, scheme):
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def errors(self):
        """What the console has got since the last call, without what only informs."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    # --- What the page shows

    def open(self, server):
        self.driver.get(f"http://{server.http}/")
        self.wait(lambda: self.js("return document.readyState") == "complete", "the page is loaded")

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition, what):
        """Returns the first result of `condition` that is true; elements may go away meanwhile."""
        from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        waiting = WebDriverWait(self.driver, self.WAIT_S, poll_frequency=0.02,
                                ignored_exceptions=(NoSuchElementException, StaleElementReferenceException))
        return waiting.until(lambda _: condition(), f"not within {self.WAIT_S} s: {what}")

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def await_text(self, selector, part):
        return self.wait(lambda: part in self.text(selector), f"'{part}' in {selector}, which has '{self.text(selector)}'")

    def await_visible(self, selector):
        def visible():
            shown = [element for element in self.all(selector) if element.is_displayed()]
            return shown[0] if shown else None
        return self.wait(visible, f"{selector} is visible")

    def await_count(self, selector, count):
        return self.wait(lambda: len(self.all(selector)) == count or None, f"{count} of {selector}")

    def focused(self):
        return self.driver.switch_to.active_element

    # --- What a person does

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def fill(self, **values):
        """Types values into the form's fields; an empty one is emptied."""
        from selenium.webdriver.common.keys import Keys

        for name, value in values.items():
            field = self.one(f"#create [name='{name}']")
            if field.tag_name == "select":
                self.js("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
                        field, value)
                continue
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(Keys.DELETE, value)

    def click(self, selector):
        self.wait(lambda: self.await_visible(selector).click() or True, f"a click on {selector}")
