"""benchmarks/mlperf against a server with the demo model: both scenarios, TEST04, and videos that fail."""

import argparse
import array
import hashlib
import importlib
import itertools
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
OPTIONS = None
FOLDER = None
SMALL = {"width": 128, "height": 128, "num_frames": 5, "steps": 1, "seed": 42}


class MlperfTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from demo_server import DemoServer
        model = OPTIONS.repository / "demo" / "model"
        cls.server = DemoServer(OPTIONS.server, FOLDER / "data", "--model", f"demo={model}")
        cls.prompts = FOLDER / "prompts.txt"
        cls.prompts.write_text("A red circle moves right\n\nA blue square grows\nA star\nA ring\n")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def program(self, *arguments):
        return subprocess.run([sys.executable, OPTIONS.repository / "benchmarks/mlperf/run.py", *map(str, arguments)],
                              capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})

    def run_scenario(self, scenario, name, *arguments, workload=None, returns=0):
        path = FOLDER / f"{name}.json"
        path.write_text(json.dumps(workload or SMALL))
        output = FOLDER / name
        ended = self.program("run", "--server", self.server.address, "--model", "demo", "--scenario", scenario, "--prompts",
                             self.prompts, "--workload", path, "--output", output, *arguments)
        self.assertEqual(ended.returncode, returns, ended.stdout + ended.stderr)
        result = json.loads((output / "result.json").read_text())
        self.assertEqual(result, json.loads(ended.stdout.splitlines()[-1]))
        return output / "mlperf_log_summary.txt", result

    def test_single_stream_and_test04(self):
        summary, result = self.run_scenario("SingleStream", "single", "--count", 2)
        self.assertEqual(result["scenario"], "SingleStream")
        self.assertGreater(result["percentile_seconds"], 0)
        self.assertEqual(result["groups"], [["cpu"]])
        self.assertEqual(result["errors"], [])
        self.assertIn("min_query_count : 2", summary.read_text())
        # LoadGen tells in its log that it read the file, and asks for one sample only.
        audit = OPTIONS.repository / "benchmarks/mlperf/audit.config"
        test, _ = self.run_scenario("SingleStream", "test04", "--count", 2, "--audit", audit)
        self.assertIn("performance_issue_same : 1", test.read_text())
        # So short a run says nothing about the speed; the comparison itself is what is tested.
        compared = self.program("check-test04", summary, test)
        self.assertRegex(compared.stdout, r"^TEST04 (PASS|FAIL): .* the system is [+-][0-9.]+ % as fast; must be less than \+10 %")
        faster = FOLDER / "faster.txt"
        faster.write_text("Scenario : SingleStream\n90.0th percentile latency (ns) : 1\nResult is : VALID\n")
        self.assertEqual(self.program("check-test04", summary, faster).returncode, 1)
        self.assertEqual(self.program("check-test04", faster, summary).returncode, 0)

    def test_offline_keeps_the_videos(self):
        videos = FOLDER / "videos"
        _, result = self.run_scenario("Offline", "offline", "--count", 2, "--videos", videos)
        self.assertEqual(result["scenario"], "Offline")
        self.assertGreater(result["samples_per_second"], 0)
        # Random samples may be the same one twice.
        names = {path.name for path in videos.iterdir()}
        self.assertTrue(names)
        self.assertLessEqual(names, {f"{prompt}-0.mp4" for prompt in (
            "A red circle moves right", "A blue square grows", "A star", "A ring")})

    def test_every_video_begins_with_the_given_latents(self):
        latents = FOLDER / "latents.safetensors"
        values = array.array("f", (((7 * i) % 13 - 6) / 4 for i in range(48 * 2 * 8 * 8)))
        header = json.dumps({"latents": {"dtype": "F32", "shape": [1, 48, 2, 8, 8], "data_offsets": [0, 4 * len(values)]}}).encode()
        latents.write_bytes(struct.pack("<Q", len(header)) + header + values.tobytes())
        digest = hashlib.sha256(latents.read_bytes()).hexdigest()
        _, result = self.run_scenario("Offline", "fixed", "--count", 2, "--initial-latents", latents)
        self.assertEqual(result["request"]["initial_latents"], {"sha256": digest})
        from wanserve_client import Client
        with Client(self.server.address) as client:
            for job in itertools.islice(client.jobs(), 2):
                self.assertEqual(job.request.initial_latents.sha256, digest)
        torch = FOLDER / "latents.pt"
        torch.write_bytes(b"PK\x03\x04")
        ended = self.program("run", "--model", "demo", "--prompts", self.prompts, "--output", FOLDER, "--initial-latents", torch)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("must be safetensors", ended.stderr)

    def test_the_accuracy_run_makes_each_prompt_once(self):
        summary, result = self.run_scenario("Offline", "accuracy", "--accuracy", "--videos", FOLDER / "each")
        self.assertTrue(result["accuracy"])
        self.assertEqual(len(json.loads((summary.parent / "mlperf_log_accuracy.json").read_text())), 4)
        self.assertEqual(len(list((FOLDER / "each").iterdir())), 4)

    def test_a_video_that_fails_ends_with_an_error(self):
        _, result = self.run_scenario("SingleStream", "wrong", "--count", 1, workload={**SMALL, "width": 100}, returns=1)
        self.assertEqual(len(result["errors"]), 1)
        self.assertIn("width", result["errors"][0])

    def test_too_few_prompts_are_refused(self):
        few = FOLDER / "few.txt"
        few.write_text("A red circle moves right\n")
        ended = self.program("run", "--server", self.server.address, "--model", "demo", "--prompts", few, "--output", FOLDER)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("has 1 prompts; must have at least 4, one a line", ended.stderr)


def main():
    global OPTIONS, FOLDER
    parser = argparse.ArgumentParser()
    parser.add_argument("--repository", required=True, type=pathlib.Path)
    parser.add_argument("--server", required=True)
    parser.add_argument("--googleapis", required=True)
    parser.add_argument("--packages", required=True, help="where mlcommons-loadgen is")
    OPTIONS, rest = parser.parse_known_args()
    sys.path.insert(0, OPTIONS.packages)
    for module in ("grpc", "google.protobuf", "setuptools", "wheel", "pip", "mlperf_loadgen"):
        try:
            importlib.import_module(module)
        except ImportError as missing:
            print(f"skipped: {missing}; scripts/setup installs it, and LoadGen is for Python 3.11")
            return SKIPPED
    sys.path.insert(0, str(OPTIONS.repository / "tests" / "e2e"))
    from demo_server import build_wheel
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        shutil.unpack_archive(build_wheel(FOLDER, OPTIONS.repository, OPTIONS.googleapis), FOLDER / "site", "zip")
        sys.path[:0] = [str(FOLDER / "site"), OPTIONS.googleapis]
        ended = unittest.main(argv=[sys.argv[0], *rest], exit=False)
    return 0 if ended.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
