"""The page in a real browser, with the real server and the demo model."""

import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request
import zlib

import accessibility
import browser as browsers

SKIPPED = 77

# The demo model's smallest videos; and one that runs until it is cancelled.
QUICK = {"size": "192x192", "seconds": "0.25", "num_inference_steps": "2"}
LONG = {"size": "192x192", "seconds": "0.25", "num_inference_steps": "900"}

# Long enough that frames come while others are decoded.
WATCHED = {"size": "320x320", "seconds": "5", "num_inference_steps": "1"}

options = None  # of the command line


def png(width, height, red, green, blue):
    """A picture of one colour."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([red, green, blue]) * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def lora():
    """A LoRA for the demo model that changes nothing: all its numbers are 0."""
    names = {f"diffusion_model.blocks.0.self_attn.q.lora_{part}.weight": shape
             for part, shape in (("A", [4, 256]), ("B", [256, 4]))}
    header = json.dumps({name: {"dtype": "F16", "shape": shape, "data_offsets": [2048 * i, 2048 * (i + 1)]}
                         for i, (name, shape) in enumerate(names.items())}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4096)


class PageCase(unittest.TestCase):
    """One browser and one server for all tests of a class, and no error in the console after any of them."""

    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.server = browsers.start_server(options.server, cls.folder / "data", *cls.flags())
        cls.addClassCleanup(lambda: cls.server.stop())
        cls.browser = browsers.Browser(cls.folder / "profile")
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def flags(cls):
        return ()

    def setUp(self):
        self.browser.resize(1280, 900)
        self.browser.colours("light")
        self.browser.open(self.server)

    def expect_errors(self, *parts):
        """The console has no errors but with one of these parts."""
        self.assertEqual([error for error in self.browser.errors() if not any(part in error for part in parts)], [])

    def tearDown(self):
        self.expect_errors()

    token = None

    def ask(self, path):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(f"http://{self.server.http}{path}", headers=headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def await_ready(self):
        self.browser.wait(lambda: "demo" in self.browser.text("#model") or None, "the model is ready")

    def submit(self, prompt, **values):
        """Fills the form, presses the button, and returns the selector of the video's card."""
        known = {card.get_attribute("data-id") for card in self.browser.all("[data-id]")}
        self.browser.fill(prompt=prompt, **values)
        self.browser.click("#create button.main")

        def new():
            return [card.get_attribute("data-id") for card in self.browser.all("[data-id]")
                    if card.get_attribute("data-id") not in known]
        return f"[data-id='{self.browser.wait(new, 'a new card')[0]}']"


def see_it_made(case, card):
    """A video is played in its job's card, and goes on in its own card; the file takes over at its end."""
    browser = case.browser
    player = f'const video = document.querySelector("{card} video");'
    browser.wait(lambda: browser.js(f"{player} return video?.closest('.job') && video.currentTime > 0"), "it plays while it is made")
    state = case.ask("/v1/videos?limit=1")["data"][0]["status"]
    case.assertEqual(state, "in_progress", "its frames come before its end")
    browser.js(f"{player} window.live = video; window.times = []; window.jumps = [];"
               "let last = video.currentTime; const watch = () => { const now = video.currentTime;"
               "if (now < last && !video.loop) jumps.push([last, now]); last = now; times.push(now); requestAnimationFrame(watch) };"
               "watch()")
    browser.wait(lambda: browser.js(f"{player} return video?.closest('.video') && video.loop && video.currentTime > 0"),
                 "its file takes over")
    case.assertTrue(browser.js(f"{player} return video === window.live && !video.paused && !video.error"))
    case.assertEqual(browser.js("return window.jumps"), [], "it is played to its end")
    case.assertAlmostEqual(browser.js("return Math.max(...window.times)"), 5, delta=0.3)
    case.assertIn("content", browser.js(f"{player} return token ? 'content' : video.currentSrc"))


class MakingTest(PageCase):
    @classmethod
    def flags(cls):
        pathlib.Path(cls.folder, "ink.safetensors").write_bytes(lora())
        model = pathlib.Path(__file__).resolve().parents[2] / "demo" / "model"
        return "--model", f"demo={model}", "--lora", f"ink={cls.folder}/ink.safetensors"

    def setUp(self):
        super().setUp()
        self.await_ready()

    def test_makes_shows_and_plays_a_video(self):
        browser = self.browser
        browser.fill(prompt="a red circle moves left to right over a dark blue background", **QUICK)
        browser.await_text("#quote", "About")
        self.assertRegex(browser.text("#quote"), r"About \d+.(s|min)")
        card = self.submit("a red circle moves left to right over a dark blue background", **{**QUICK, "num_inference_steps": "8"})
        browser.await_visible(f"{card} .strip img")
        browser.await_visible(f"{card} .poster img")
        self.assertIn("192\u00d7192", browser.text(f"{card} .facts"))
        self.assertEqual(browser.all(f"{card} video"), [], "nothing is loaded before somebody plays it")
        browser.click(f"{card} .poster")
        playing = f"const video = document.querySelector(\"{card} video\");"
        browser.wait(lambda: browser.js(playing + "return video && video.readyState >= 2 && video.currentTime > 0"), "it plays")
        self.assertAlmostEqual(browser.js(playing + "return video.duration"), 5 / 16, delta=0.01)
        red, green, blue, alpha = browser.js(playing + """
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
          canvas.getContext("2d").drawImage(video, 0, 0);
          return [...canvas.getContext("2d").getImageData(4, 4, 1, 1).data];""")
        self.assertEqual(alpha, 255)
        self.assertGreater(blue, red + 20, "the corner is dark blue")
        self.assertGreater(blue, green + 20)
        self.assertEqual(browser.focused().tag_name, "video")

    def test_shows_three_frames_of_a_preview(self):
        browser = self.browser
        card = self.submit("a blue cross moves right to left", **{**QUICK, "seconds": "1", "num_inference_steps": "900"})
        browser.await_count(f"{card} .strip img", 3)
        pictures = "return [...document.querySelectorAll(arguments[0])].map((one) => [one.alt, one.naturalWidth])"
        browser.wait(lambda: browser.js(pictures, f"{card} .strip img") ==
                     [[f"Preview of the {one} frame", 192] for one in ("first", "middle", "last")], "three frames")
        browser.click(f"{card} .cancel")
        browser.await_count(card, 0)

    def test_plays_a_video_while_it_is_made(self):
        browser = self.browser
        card = self.submit("a green circle moves left to right over a grey background", **WATCHED)
        see_it_made(self, card)

    def test_tries_once_a_stream_that_the_browser_refuses(self):
        browser = self.browser
        browser.js("MediaSource.prototype.addSourceBuffer = () => { throw new DOMException('refused', 'NotSupportedError') };"
                   "window.tries = []; const real = window.fetch; window.fetch = (url, options) => {"
                   "if (String(url).endsWith('variant=live')) tries.push(options.signal); return real(url, options) }")
        card = self.submit("a red square moves left to right", **WATCHED)
        browser.wait(lambda: browser.js("return tries.length"), "it is tried")
        browser.await_count(f"{card} .poster", 1)
        self.assertEqual(browser.js("return tries.map((signal) => signal.aborted)"), [True], "and its connection is closed")

    def test_takes_the_file_of_a_video_that_was_played_to_its_end_before(self):
        browser = self.browser
        card = self.submit("a yellow square moves right to left", **WATCHED)
        player = f'const video = document.querySelector("{card} video");'
        browser.wait(lambda: browser.js(f"{player} return video?.closest('.job') && video.currentTime > 0"), "it plays while it is made")
        # The page learns that it is ready after it has been played.
        browser.js("window.show = setVideos; window.setVideos = (next) => { window.latest = next }")
        browser.wait(lambda: browser.js(f"{player} return video.closest('.job') && video.ended"), "it is played to its end")
        browser.js(f"{player} window.ends = 0; video.addEventListener('ended', () => ends++);"
                   "window.setVideos = show; setVideos(latest)")
        browser.wait(lambda: browser.js(f"{player} return video?.closest('.video') && video.loop && video.currentTime > 0"),
                     "its file takes over")
        self.assertEqual(browser.js(f"{player} return [ends, video.paused, video.error]"), [0, False, None])

    def test_sends_again_what_got_no_answer(self):
        browser = self.browser
        # The server takes the request, but its answer does not arrive; then the page cannot reach it.
        browser.js("""
          const real = window.fetch; let sent = 0; window.keys = [];
          window.fetch = async (url, options) => {
            if (options.method !== "POST" || url.endsWith("/quote")) return real(url, options);
            window.keys.push(options.headers["Idempotency-Key"]);
            if (++sent === 1) await real(url, options);
            if (sent < 3) throw new TypeError("Failed to fetch");
            return real(url, options);
          }""")
        before = len(self.ask("/v1/videos?limit=100")["data"])
        card = self.submit("a cross that is asked for once", **QUICK)
        browser.wait(lambda: len(browser.js("return window.keys")) == 3, "it is sent until there is an answer")
        browser.await_visible(f"{card} .poster")
        self.assertEqual(len(self.ask("/v1/videos?limit=100")["data"]), before + 1)
        browser.click("#create button.main")
        browser.wait(lambda: len(self.ask("/v1/videos?limit=100")["data"]) == before + 2, "the next click makes another one")
        keys = browser.js("return window.keys")
        self.assertEqual(len(keys), 4)
        self.assertEqual(len(set(keys)), 2, keys)

    def test_cancels_what_runs_and_what_waits(self):
        browser = self.browser
        first = self.submit("a long video", **LONG)
        browser.await_visible(f"{first} progress")
        browser.await_text(f"{first} .stage", "step")
        self.assertIn("\u00a0%", browser.driver.title.replace(" %", "\u00a0%"))
        second = self.submit("a video that waits", **LONG)
        browser.await_text(f"{second} .facts", "Next")
        third = self.submit("another video that waits", **LONG)
        browser.await_text(f"{third} .facts", "1 before it")
        browser.await_text("#quote", "2 before it")
        browser.click(f"{second} .cancel")
        browser.await_count(second, 0)
        browser.await_text(f"{third} .facts", "Next")
        for card in (third, first):
            browser.click(f"{card} .cancel")
            browser.await_count(card, 0)
            self.assertEqual(browser.focused().get_attribute("id"), "queue-title")
        browser.await_text("#said", "Cancelled")
        browser.wait(lambda: "before it" not in browser.text("#quote"), "the quote counts them no more")
        self.assertNotIn("a long video", [video["prompt"] for video in self.ask("/v1/videos")["data"]])

    def test_makes_a_video_again_and_varied(self):
        browser = self.browser
        browser.click("details summary")
        card = self.submit("a green star spins", **QUICK, seed="9007199254740993", negative_prompt="a cat")
        browser.await_visible(f"{card} .poster")
        video = self.ask("/v1/videos?limit=1")["data"][0]
        self.assertEqual(video["seed"], 9007199254740993, "a seed that JavaScript's numbers cannot hold")
        browser.open(self.server)
        self.await_ready()
        browser.click(f"{card} .again")
        values = {name: browser.one(f"#create [name='{name}']").get_attribute("value")
                  for name in ("prompt", "size", "seconds", "num_inference_steps", "seed", "negative_prompt")}
        self.assertEqual(values, {"prompt": "a green star spins", "seed": "9007199254740993", "negative_prompt": "a cat", **QUICK})
        self.assertEqual(browser.focused().get_attribute("id"), "prompt")
        browser.click("#create button.main")
        same = browser.wait(lambda: self.newer_than(video), "the same video again")
        browser.click(f"{card} .vary")
        varied = browser.wait(lambda: self.newer_than(same), "the varied video")
        self.assertEqual(same["seed"], video["seed"])
        self.assertNotEqual(varied["seed"], video["seed"])
        for made in (same, varied):
            for name in ("prompt", "size", "seconds", "num_frames", "num_inference_steps", "quality", "negative_prompt"):
                self.assertEqual(made[name], video[name], name)
            browser.await_visible(f"[data-id='{made['id']}'] .poster")

    def newer_than(self, video):
        newest = self.ask("/v1/videos?limit=1")["data"][0]
        return newest if newest["id"] != video["id"] else None

    def test_uses_a_lora_of_the_server(self):
        browser = self.browser
        browser.await_visible("#add-lora")
        browser.js("const select = document.querySelector('#add-lora'); select.value = 'ink';"
                   "select.dispatchEvent(new Event('change'))")
        strength = browser.await_visible(".lora input")
        self.assertEqual(browser.focused(), strength)
        strength.clear()
        strength.send_keys("11")
        browser.await_text(".lora ~ .wrong, #loras .wrong", "from -10 to 10")
        strength.clear()
        strength.send_keys("0.5")
        card = self.submit("a blue square", **QUICK)
        browser.await_visible(f"{card} .poster")
        self.assertEqual([(one["name"], one["scale"]) for one in self.ask("/v1/videos?limit=1")["data"][0]["loras"]], [("ink", 0.5)])
        self.assertIn("ink", browser.text(f"{card} .facts"))
        self.expect_errors("400")

    def test_keeps_a_strength_for_each_expert(self):
        browser = self.browser
        browser.await_visible("#add-lora")
        asked = {"name": "ink", "high_scale": 2, "low_scale": 0.5}
        sent = "return JSON.parse(valuesOf().get('loras'))"
        browser.js("fillFrom({prompt: 'a red circle', loras: [arguments[0]]})", asked)
        self.assertEqual(browser.js(sent), [asked])
        strength = browser.await_visible(".lora input")
        strength.clear()
        strength.send_keys("1.5")
        self.assertEqual(browser.js(sent), [{"name": "ink", "scale": 1.5}])

    def test_offers_the_decoders_of_a_model(self):
        browser = self.browser
        browser.click("details summary")
        self.assertFalse(browser.one("#decoder").is_displayed(), "the demo model has one")
        self.assertIsNone(browser.js("return valuesOf().get('decoder')"))
        browser.js("models[0].decoders.push('tiny'); modelChanged()")
        browser.await_visible("#decoder")
        self.assertEqual([option.text for option in browser.all("#decoder option")], ["default", "full", "tiny"])
        browser.fill(decoder="tiny")
        browser.await_text("#decoder-wrong", "Decoder is tiny; must be full")
        browser.js("fillFrom({prompt: 'a cat', decoder: 'full', loras: []})")
        self.assertEqual(browser.js("return valuesOf().get('decoder')"), "full")
        browser.await_count("#decoder[aria-invalid]", 0)
        self.expect_errors("400")

    def test_goes_on_after_an_answer_that_broke_off(self):
        browser = self.browser
        self.await_ready()
        browser.js("const real = window.fetch; let left = 2; window.fetch = (url, options) => left-- > 0"
                   " ? Promise.resolve(new Response('<html>', {status: 200})) : (window.fetch = real, real(url, options))")
        browser.js("poll()")
        browser.await_text("#lost", "The page keeps trying.")
        browser.wait(lambda: not browser.text("#lost"), "the page asked again")

    def test_says_errors_at_their_fields(self):
        browser = self.browser
        browser.fill(prompt="a cat", size="7x192", num_inference_steps="5000")
        for name, said in (("size", "multiple of"), ("num_inference_steps", "from 1 to ")):
            field = browser.wait(lambda one=name: browser.one(f"[name='{one}'][aria-invalid]"), f"{name} is wrong")
            wrong = browser.one(f"#{field.get_attribute('aria-errormessage')}")
            self.assertIn(said, wrong.text)
        self.assertEqual(browser.focused().get_attribute("name"), "num_inference_steps", "typing goes on")
        browser.click("#create button.main")
        browser.wait(lambda: browser.focused().get_attribute("name") == "size", "the first wrong field has the focus")
        browser.fill(size="192x192", num_inference_steps="2")
        browser.await_count("[aria-invalid]", 0)
        browser.await_text("#quote", "About")
        self.expect_errors("400")

    def test_takes_an_image_from_a_file_a_drop_and_the_clipboard(self):
        browser = self.browser
        file = self.folder / "green.png"
        file.write_bytes(png(256, 192, 0, 160, 0))
        browser.one("#image").send_keys(str(file))
        browser.await_visible("#preview")
        browser.click("#no-image")
        self.assertFalse(browser.one("#preview").is_displayed())
        box = browser.js("const {x, y} = document.querySelector('#drop').getBoundingClientRect(); return {x, y}")
        for kind in ("dragEnter", "dragOver", "drop"):
            browser.cdp("Input.dispatchDragEvent", type=kind, x=box["x"] + 20, y=box["y"] + 20,
                        data={"items": [], "files": [str(file)], "dragOperationsMask": 1})
        browser.await_visible("#preview")
        browser.click("#no-image")
        browser.js("""
          const box = new DataTransfer(), bytes = Uint8Array.from(arguments[0]);
          box.items.add(new File([bytes], "pasted.png", {type: "image/png"}));
          document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData: box, bubbles: true, cancelable: true}));""",
                   list(file.read_bytes()))
        browser.await_visible("#preview")
        card = self.submit("a green wall", **QUICK)
        browser.await_visible(f"{card} .poster")
        video = self.ask("/v1/videos?limit=1")["data"][0]
        self.assertEqual((video["input_reference"]["width"], video["input_reference"]["height"]), (256, 192))
        # The page still has the image, so that a variation begins with it as well.
        browser.click(f"{card} .vary")
        varied = browser.wait(lambda: self.newer_than(video), "the varied video")
        self.assertEqual(varied["size"], video["size"])
        self.assertEqual(varied["input_reference"], video["input_reference"])
        browser.await_visible(f"[data-id='{varied['id']}'] .poster")

    def test_opens_the_report_of_a_video(self):
        browser = self.browser
        card = self.submit("a yellow cross", **QUICK)
        browser.click(f"{card} .report")
        self.see_report()

    def see_report(self):
        browser, driver = self.browser, self.browser.driver
        page = driver.current_window_handle
        browser.wait(lambda: len(driver.window_handles) == 2, "a tab for the report")
        driver.switch_to.window(next(handle for handle in driver.window_handles if handle != page))
        browser.await_text("body", "Time Budget of a Step")
        browser.wait(lambda: browser.js("return getComputedStyle(document.body).maxWidth") != "none", "the report has its style")
        self.expect_errors("favicon.ico")
        driver.close()
        driver.switch_to.window(page)

    def test_needs_no_mouse(self):
        from selenium.webdriver.common.keys import Keys

        browser = self.browser
        seen = []

        def tab_to(selector):
            for _ in range(60):
                browser.press(Keys.TAB)
                focused = browser.focused()
                seen.append(focused.get_attribute("id") or focused.get_attribute("class"))
                outline = browser.js("const style = getComputedStyle(document.activeElement);"
                                     "return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2")
                self.assertTrue(outline, f"{seen[-1]} shows that it has the focus")
                if browser.js("return document.activeElement.matches(arguments[0])", selector):
                    return focused
            raise AssertionError(f"{selector} is not reached: {seen}")

        tab_to("#prompt")
        browser.press("a purple heart grows")
        for field, value in (("#size", "192x192"), ("#seconds", "0.25"), ("#steps", "900")):
            tab_to(field)
            browser.press(value)
        tab_to("summary")
        browser.press(Keys.ENTER)
        tab_to("#seed")
        browser.press("5", Keys.ENTER)
        browser.await_visible(".job .stage")
        self.assertEqual(self.ask("/v1/videos?limit=1")["data"][0]["seed"], 5)
        tab_to(".cancel")
        browser.press(Keys.ENTER)
        browser.await_count(".job", 0)


class LookTest(PageCase):
    def show_everything(self):
        """One video, one failed field, one job that runs and one that waits, and the open settings."""
        browser = self.browser
        self.await_ready()
        cards = [self.submit("an orange triangle bounces, " + "and so on " * 20, **QUICK)]
        browser.await_visible(f"{cards[0]} .poster")
        for prompt in ("a job that runs", "unbroken" * 20):
            cards.append(self.submit(prompt, **LONG))
        browser.await_text(f"{cards[1]} .stage", "step")
        browser.click("details summary")
        browser.fill(size="7x7")
        browser.await_count("#size[aria-invalid]", 1)
        return cards

    def tearDown(self):
        # One after the other, because the others move up when one goes.
        for left in reversed(range(len(self.browser.all(".job")))):
            self.browser.click(".job .cancel")
            self.browser.await_count(".job", left)
        self.expect_errors("400")

    def test_can_be_read_by_everybody_and_everywhere(self):
        browser = self.browser
        cards = self.show_everything()
        for scheme in ("light", "dark"):
            browser.colours(scheme)
            for width in (320, 768, 1280, 2560):
                browser.resize(width, 800)
                with self.subTest(scheme=scheme, width=width):
                    self.assertLessEqual(browser.js("return document.documentElement.scrollWidth"), width)
                    outside = browser.js("""
                      return [...document.querySelectorAll("main *, header *, footer *")].filter((element) =>
                        element.checkVisibility() && !element.classList.contains("unseen") && !element.closest(".strip") &&
                        element.getBoundingClientRect().right > innerWidth + 0.5).map((element) => element.outerHTML.slice(0, 80))""")
                    self.assertEqual(outside, [])
                    self.assertEqual(accessibility.problems(browser), [])
        browser.resize(320, 800)
        self.assertTrue(browser.one(f"{cards[1]} .cancel").is_displayed())

    def test_says_what_happens_to_who_does_not_see_it(self):
        browser = self.browser
        self.await_ready()
        self.assertEqual(browser.one("#said").get_attribute("role"), "status")
        self.submit("a video to hear of", **QUICK)
        browser.await_text("#said", "Finished: a video to hear of")
        browser.fill(size="7x7")
        browser.await_count("#size[aria-invalid]", 1)


class TokenTest(PageCase):
    @classmethod
    def flags(cls):
        tokens = cls.folder / "tokens"
        cls.token = subprocess.run(
            [options.server, "token", "create", "--file", str(tokens), "--principal", "alice", "--role", "user"],
            check=True, capture_output=True, text=True).stdout.strip()
        return "--auth-tokens", str(tokens)

    def test_asks_for_a_token_and_uses_it_for_everything(self):
        browser = self.browser
        browser.await_visible("#token")
        self.assertFalse(browser.one("#create").is_displayed())
        self.assertEqual(accessibility.problems(browser), [])
        browser.one("#token").send_keys("wrong")
        browser.click("#access button")
        browser.await_text("#access .wrong", "token")
        browser.one("#token").send_keys(self.token)
        browser.click("#access button")
        self.await_ready()
        card = self.submit("a white square spins", **QUICK)
        browser.await_visible(f"{card} .poster img")
        self.expect_errors("401")
        browser.click(f"{card} .report")
        MakingTest.see_report(self)
        browser.click(f"{card} .poster")
        browser.wait(lambda: browser.js(f"return document.querySelector(\"{card} video\")?.readyState >= 2"), "it plays")
        see_it_made(self, self.submit("a red heart spins over a white background", **WATCHED))
        # The browser keeps the token for this tab, and until it is told to forget it.
        browser.open(self.server)
        self.await_ready()
        browser.await_visible(card)
        browser.click("#forget")
        browser.await_visible("#token")
        self.assertEqual(browser.all(card), [])
        self.expect_errors("401")


class RestartTest(PageCase):
    def test_goes_on_after_a_restart(self):
        browser = self.browser
        self.await_ready()
        card = self.submit("a job that outlives its server", **LONG)
        browser.await_text(f"{card} .stage", "step")
        address = self.server.http
        self.server.stop()
        browser.await_text("#lost", "The server does not answer. The page keeps trying.")
        type(self).server = browsers.start_server(options.server, self.folder / "data", http=address)
        browser.wait(lambda: not browser.text("#lost"), "the page is connected again")
        browser.await_text(f"{card} .stage", "step")
        browser.click(f"{card} .cancel")
        browser.await_count(card, 0)
        self.expect_errors("ERR_", "503")


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--packages", required=True)
    options, rest = parser.parse_known_args()
    sys.path.insert(0, options.packages)
    try:
        import selenium  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}; scripts/setup fetches Selenium")
        return SKIPPED
    return unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result.wasSuccessful() is False


if __name__ == "__main__":
    sys.exit(main())
