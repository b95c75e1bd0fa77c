"""scripts/gpu/regressions and scripts/gpu/compare on made rows: no GPU, no program of ours."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()


def row(command, name, seconds, device="NVIDIA H200", **fields):
    return {"command": command, "name": name, "device": device, "seconds": seconds, **fields}


def rows(ceiling=1.0, copy=1.0, forward=0.8, vae=3.0, device="NVIDIA H200"):
    return [row("ceilings", "bf16 product", 0.002 * ceiling, device, product_flop=1e12),
            row("ceilings", "bf16 attention", 0.013 * ceiling, device, attention_flop=9e12),
            row("ceilings", "fp16 product", 0.002 * ceiling, device, product_flop=1e12),
            row("ceilings", "memory, copy", 0.001 * copy, device, bytes=4e9),
            row("forward", "5b", forward, device, product_flop=2e14, attention_flop=2e14),
            row("vae", "decode", vae, device, product_flop=2e15),
            row("encoder", "clean", 0.04, "a processor")]


class RegressionsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_text("".join(json.dumps(r) + "\n" for r in content))
        return str(path)

    def run_script(self, stored, run, *arguments):
        return subprocess.run([sys.executable, str(ROOT / "scripts/gpu/regressions"), self.write("run", run), "--stored",
                               self.write("stored", stored), *arguments], capture_output=True, text=True, check=False)

    def test_the_same_rows_pass(self):
        result = self.run_script(rows(), rows())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("2 rows judged, 0 worse", result.stdout)

    def test_a_row_that_is_two_per_cent_slower_passes(self):
        self.assertEqual(self.run_script(rows(), rows(forward=0.8 * 1.02)).returncode, 0)

    def test_a_row_that_is_five_per_cent_slower_fails_and_is_named(self):
        result = self.run_script(rows(), rows(forward=0.8 * 1.05))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"forward: 5b .*\+5\.0 % \| WORSE")
        self.assertNotRegex(result.stdout, r"vae: decode .*WORSE")

    def test_a_slower_card_is_no_regression(self):
        result = self.run_script(rows(), rows(ceiling=1.05, forward=0.84, vae=3.15))
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_row_that_stayed_while_the_card_became_faster_fails(self):
        self.assertEqual(self.run_script(rows(), rows(ceiling=0.95)).returncode, 1)

    def test_slower_copies_excuse_no_computing(self):
        self.assertEqual(self.run_script(rows(), rows(copy=1.05, forward=0.84)).returncode, 1)

    def test_one_disturbed_ceiling_excuses_nothing(self):
        run = rows(forward=0.84)
        run[1]["seconds"] *= 1.5
        self.assertEqual(self.run_script(rows(), run).returncode, 1)

    def test_the_host_is_not_judged(self):
        run = rows()
        run[-1]["seconds"] *= 3
        self.assertEqual(self.run_script(rows(), run).returncode, 0)

    def test_the_short_parts_of_a_job_are_not_judged(self):
        stored = rows() + [row("job", "demo: Step_0_Loading", 1e-6), row("job", "5b: whole job", 5.8)]
        run = rows() + [row("job", "demo: Step_0_Loading", 9e-6), row("job", "5b: whole job", 5.8)]
        self.assertEqual(self.run_script(stored, run).returncode, 0)
        run[-1]["seconds"] = 6.1
        self.assertEqual(self.run_script(stored, run).returncode, 1)

    def test_another_card_cannot_be_compared(self):
        result = self.run_script(rows(), rows(device="NVIDIA L40S"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("NVIDIA L40S", result.stderr)

    def test_without_ceilings_nothing_can_be_compared(self):
        result = self.run_script(rows(), rows()[4:])
        self.assertEqual(result.returncode, 2)
        self.assertIn("wan_bench ceilings", result.stderr)

    def test_without_a_common_row_nothing_can_be_compared(self):
        self.assertEqual(self.run_script(rows(), rows()[:4]).returncode, 2)

    def test_a_line_that_is_no_row_is_named(self):
        (self.folder / "run").write_text('{"command": "forward"}\n')
        result = subprocess.run([sys.executable, str(ROOT / "scripts/gpu/regressions"), str(self.folder / "run"), "--stored",
                                 self.write("stored", rows())], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("line 1", result.stderr)

    def test_store_replaces_the_stored_rows_by_the_last_of_each_name(self):
        self.assertEqual(self.run_script(rows(), rows(forward=1.0) + rows(forward=0.7)[4:5], "--store").returncode, 0)
        stored = [json.loads(line) for line in (self.folder / "stored").read_text().splitlines()]
        self.assertEqual(len(stored), 7)
        self.assertEqual([r["seconds"] for r in stored if r["command"] == "forward"], [0.7])

    def test_the_rows_in_the_repository_can_be_compared(self):
        for path in sorted((ROOT / "benchmarks/rows").glob("*.jsonl")):
            result = subprocess.run([sys.executable, str(ROOT / "scripts/gpu/regressions"), str(path), "--stored", str(path)],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, f"{path}: {result.stdout}{result.stderr}")


class CompareTest(unittest.TestCase):
    def test_what_is_missing_is_said_and_skipped(self):
        """A Python without torch, diffusers and FlashAttention."""
        empty = tempfile.TemporaryDirectory()
        self.addCleanup(empty.cleanup)
        result = subprocess.run([sys.executable, "-S", "-E", str(ROOT / "scripts/gpu/compare"), "--rows",
                                 os.path.join(empty.name, "rows")], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("skipped: torch is not installed", result.stdout)


if __name__ == "__main__":
    unittest.main()
