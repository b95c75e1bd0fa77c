"""deploy/models/wanserve-fetch-model against a server on this machine: what it fetches, verifies and refuses."""

import functools
import hashlib
import http.server
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

FETCH = pathlib.Path(sys.argv.pop(1))
LISTS = FETCH.parent


class Handler(http.server.SimpleHTTPRequestHandler):
    asked = []

    def do_GET(self):
        Handler.asked.append((self.path, self.headers.get("Range")))
        begin = self.headers.get("Range")
        if begin is None:
            super().do_GET()
            return
        data = pathlib.Path(self.translate_path(self.path)).read_bytes()
        first = int(begin.removeprefix("bytes=").rstrip("-"))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        self.wfile.write(data[first:])

    def log_message(self, *arguments):
        pass


class FetchModelTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        self.published = self.root / "published/owner/model/resolve/abc"
        (self.published / "tokenizer").mkdir(parents=True)
        (self.published / "weights").write_bytes(b"w" * 100_000)
        (self.published / "tokenizer/config.json").write_bytes(b"{}\n")
        Handler.asked = []
        handler = functools.partial(Handler, directory=self.root / "published")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.list = self.root / "list.txt"
        self.write_list(hashlib.sha256(b"w" * 100_000).hexdigest())
        self.folder = self.root / "models/model"

    def write_list(self, digest, size=100_000):
        blob = hashlib.sha1(b"blob 3\0{}\n").hexdigest()
        self.list.write_text(
            f"# A comment.\nrepository owner/model\nrevision abc\n{size} sha256:{digest} weights\n"
            f"3 git:{blob} tokenizer/config.json\n")

    def fetch(self, *more):
        base = f"http://127.0.0.1:{self.server.server_port}"
        return subprocess.run(["sh", FETCH, self.list, self.folder, *(more or ("--base", base))],
                              capture_output=True, text=True, timeout=60)

    def test_fetches_verifies_and_then_does_nothing(self):
        result = self.fetch()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.folder / "weights").read_bytes(), b"w" * 100_000)
        self.assertEqual((self.folder / "tokenizer/config.json").read_bytes(), b"{}\n")
        asked = len(Handler.asked)
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual(len(Handler.asked), asked)
        self.assertEqual(self.fetch("--wait").returncode, 0)

    def test_goes_on_with_a_part(self):
        self.folder.mkdir(parents=True)
        (self.folder / "weights.part").write_bytes(b"w" * 40_000)
        result = self.fetch()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(("/owner/model/resolve/abc/weights", "bytes=40000-"), Handler.asked)
        self.assertEqual((self.folder / "weights").stat().st_size, 100_000)

    def test_a_part_that_is_damaged_begins_again_at_the_next_run(self):
        self.folder.mkdir(parents=True)
        (self.folder / "weights.part").write_bytes(b"x" * 40_000)
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("weights is not what the list says", result.stderr)
        self.assertEqual(self.fetch().returncode, 0)

    def test_another_file_than_the_list_says_is_not_taken(self):
        self.write_list("0" * 64)
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertFalse((self.folder / "weights").exists())
        self.assertFalse((self.folder / ".complete").exists())

    def test_a_file_that_is_not_there_is_an_error(self):
        (self.published / "weights").unlink()
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("weights could not be fetched", result.stderr)

    def test_what_cannot_be_verified_is_not_fetched(self):
        self.list.write_text("repository owner/model\nrevision abc\n- - weights\n")
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot be verified", result.stderr)
        self.assertIn("weights", result.stderr)
        self.assertEqual(Handler.asked, [])

    def test_a_path_does_not_leave_the_folder(self):
        self.list.write_text("repository owner/model\nrevision abc\n3 sha256:0 a/../../b\n")
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("leaves the folder", result.stderr)

    def test_the_lists_that_ship_are_whole_and_agree(self):
        digests = {}
        for path in sorted(LISTS.glob("*.txt")):
            text = path.read_text()
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            self.assertRegex(lines[0], r"^repository Wan-AI/Wan2\.[12]-")
            self.assertRegex(lines[1], r"^revision [0-9a-f]{40}$")
            for line in lines[2:]:
                self.assertRegex(line, r"^[0-9]+ (sha256:[0-9a-f]{64}|git:[0-9a-f]{40}) [^ ]+$")
            files = [line.split() for line in lines[2:]]
            total = sum(int(size) for size, _, _ in files)
            self.assertIn(f"# {len(files)} files, {total:,} bytes ({total / 2**30:.1f} GiB)\n", text)
            for size, digest, name in files:
                # Text encoder, VAE and tokenizer are the same in every model that has them.
                if name.startswith(("google/", "models_t5", "Wan2.")):
                    self.assertEqual(digests.setdefault(name, (size, digest)), (size, digest), f"{path}: {name}")
        self.assertEqual(len(digests), 4)


if __name__ == "__main__":
    unittest.main()
