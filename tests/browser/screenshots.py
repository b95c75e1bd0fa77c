"""Takes the pictures of the page for the documentation: `screenshots.py --server build/bin/wanserve --packages .deps/selenium`."""

import argparse
import io
import pathlib
import sys
import tempfile

import browser as browsers

IMAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "images"
MOST_BYTES = 150_000

MADE = ("a purple circle gets larger over a dark blue background",
        "a small white circle bounces and an orange triangle grows, on a grey background",
        "a red circle moves left to right over a dark blue background, a small yellow square spins")
RUNS = "a green star orbits the centre over a black background"
WAITS = "a yellow heart shrinks over a purple background"


def take(browser, name):
    from PIL import Image

    picture = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
    picture = picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    picture.save(IMAGES / name, optimize=True)
    size = (IMAGES / name).stat().st_size
    print(f"{name}: {picture.width} x {picture.height}, {size} bytes")
    assert size <= MOST_BYTES, f"{name} has {size} bytes; the limit is {MOST_BYTES}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--packages", required=True)
    options = parser.parse_args()
    sys.path.insert(0, options.packages)
    with tempfile.TemporaryDirectory() as folder:
        server = browsers.start_server(options.server, f"{folder}/data")
        browser = browsers.Browser(f"{folder}/profile")
        browser.WAIT_S = 120
        try:
            browser.open(server)
            browser.wait(lambda: "demo" in browser.text("#model") or None, "the model is ready")
            for prompt in (*MADE, RUNS, WAITS):
                browser.js("document.querySelector('#seed').value = 7")
                browser.fill(prompt=prompt)
                browser.click("#create button.main")
                browser.await_text("#said", f"Accepted: {prompt}")
            browser.resize(1280, 960)
            browser.wait(lambda: len(browser.all(".video :is(.poster img:not([hidden]), video)")) == len(MADE), "the videos are made")
            browser.wait(lambda: len(browser.all(".strip img")) == 3, "previews of the job that runs")
            browser.await_text(".stage", "step 12 of 20")
            browser.js("document.activeElement.blur(); document.querySelector('#said').textContent = ''")
            take(browser, "page.png")
            browser.colours("dark")
            browser.resize(390, 844, 2)
            browser.js("document.querySelector('#shown').scrollIntoView()")
            take(browser, "page-phone.png")
        finally:
            browser.quit()
            server.stop()


if __name__ == "__main__":
    main()
