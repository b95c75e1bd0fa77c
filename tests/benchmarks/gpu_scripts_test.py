"""scripts/gpu/regressions, compare, card_watch.py and check_sanitizer on made rows and programs: no GPU, none of ours."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts/gpu"))


def load_script(name):
    """A script without a suffix as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts/gpu" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


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

    def test_a_larger_error_fails_and_is_named(self):
        def with_errors(apart_by, error):
            return rows() + [row("forward", "5b, quality", 0.6, figures={"apart_by": apart_by, "without_seconds": 0.8}),
                             {"command": "forward", "name": "5b, 8 bits in block 0 alone", "device": "NVIDIA H200",
                              "figures": {"apart_by": apart_by / 4}},
                             row("attention", "of 8 bits", 0.14, figures={"error": error, "queries": 75600})]
        stored = with_errors(0.042, 0.0125)
        result = self.run_script(stored, with_errors(0.043, 0.0128))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("3 errors judged, 0 worse", result.stdout)
        result = self.run_script(stored, with_errors(0.042, 0.015))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"attention: of 8 bits: error .*\+20\.0 % \| WORSE")
        result = self.run_script(stored, with_errors(0.05, 0.0125))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"forward: 5b, 8 bits in block 0 alone: apart_by .* WORSE")
        self.assertEqual(self.run_script(stored, with_errors(0.05, 0.0125), "--error-percent", "25").returncode, 0)

    def test_the_stored_rows_are_those_of_the_runs_card(self):
        for path in sorted((ROOT / "benchmarks/rows").glob("*.jsonl")):
            result = subprocess.run([sys.executable, str(ROOT / "scripts/gpu/regressions"), str(path)], capture_output=True,
                                    text=True, check=False)
            self.assertEqual(result.returncode, 0, f"{path}: {result.stdout}{result.stderr}")
            self.assertIn("; 0 stored rows were not measured", result.stdout)
        result = subprocess.run([sys.executable, str(ROOT / "scripts/gpu/regressions"),
                                 self.write("run", rows(device="NVIDIA L40S"))], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no rows of NVIDIA L40S", result.stderr)

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
    CEILINGS = {"format": "wanserve-ceilings", "device": "NVIDIA H200", "products_flop_per_second": {"bf16": 700e12},
                "attention_flop_per_second": {"bf16": 600e12}}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.compare = load_script("compare")

    def test_what_is_missing_is_said_and_skipped(self):
        """A Python without torch, diffusers and FlashAttention."""
        result = subprocess.run([sys.executable, "-S", "-E", str(ROOT / "scripts/gpu/compare"), "--rows",
                                 str(self.folder / "rows"), "--fa3", "/no/such.so"], capture_output=True, text=True,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("skipped: torch is not installed"), 6, result.stdout)

    def test_the_shapes_are_the_published_ones(self):
        self.assertEqual({name: self.compare.tokens_of(shape) for name, shape in self.compare.SHAPES.items()},
                         {"5b": 27280, "a14b": 32760, "a14b-720p": 75600})

    def test_a_row_has_the_fields_of_wan_bench(self):
        card = {"sm_clock_mhz": 1500.0, "power_watts": 690.0, "temperature_celsius": 60, "throttle_reasons": []}
        made = self.compare.row("NVIDIA H200", "x", [3.0, 2.0, 9.0], 3, 700e12, 1200e12, card, self.CEILINGS, error=1e-3)
        self.assertEqual(made, {"command": "compare", "name": "x", "device": "NVIDIA H200", "seconds": 3.0,
                                "least_seconds": 2.0, "most_seconds": 9.0, "calls": 3, "precision": "bf16",
                                "product_flop": 700e12, "attention_flop": 1200e12, "flop_per_second": 1900e12 / 3,
                                "ceiling_seconds": 3.0, "ratio": 1.0, **card, "figures": {"error": 1e-3}})

    def test_without_ceilings_a_row_has_no_ratio(self):
        made = self.compare.row("NVIDIA H200", "x", [3.0], 5, 0, 1e12, {}, {})
        self.assertNotIn("ratio", made)
        self.assertNotIn("ceiling_seconds", made)
        self.assertNotIn("product_flop", made)
        self.assertEqual(made["calls"], 5)

    def test_ceilings_of_another_card_end_it(self):
        path = self.folder / "ceilings.json"
        path.write_text(json.dumps(self.CEILINGS))
        self.assertEqual(self.compare.read_ceilings(str(path), "NVIDIA H200"), self.CEILINGS)
        self.assertEqual(self.compare.read_ceilings(None, "NVIDIA H200"), {})
        with self.assertRaises(SystemExit) as end:
            self.compare.read_ceilings(str(path), "NVIDIA L40S")
        self.assertEqual(end.exception.code, 2)

    def test_arguments_of_flash_attention_are_given_by_name(self):
        """The order of vllm 0.33.0, with an argument that has a default."""
        arguments = self.compare.fa3_arguments([("q", None), ("k_new", None), ("num_splits", 0), ("sm_margin", 7)],
                                               {"q": "query", "num_splits": 1, "of_another_version": 3})
        self.assertEqual(arguments, ["query", None, 1, 7])


class CardWatchTest(unittest.TestCase):
    def setUp(self):
        self.card_watch = load_script("card_watch.py")

    def watch(self, read):
        with self.card_watch.CardWatch(read) as watch:
            pass
        return watch.state

    def test_the_shortest_measurement_has_one_reading(self):
        self.assertEqual(self.watch(lambda: (1500, 690.0, 61, 0x4 | 0x1)),
                         {"sm_clock_mhz": 1500, "power_watts": 690.0, "temperature_celsius": 61,
                          "throttle_reasons": ["power cap"]})

    def test_what_cannot_be_read_is_absent(self):
        self.assertEqual(self.watch(lambda: (None, None, 61, None)), {"temperature_celsius": 61})
        self.assertEqual(self.watch(None), {})

    def test_reasons_have_wan_benchs_names(self):
        self.assertEqual(self.card_watch.reason_names(0x1 | 0x2 | 0x100), [])
        self.assertEqual(self.card_watch.reason_names(0x20 | 0x80 | 0x4000), ["temperature", "power brake", "reason 0x4000"])
        source = (ROOT / "engine/monitor/nvml.cc").read_text()
        for name in self.card_watch.REASONS.values():
            self.assertIn(f'"{name}"', source)


class CheckSanitizerTest(unittest.TestCase):
    """With a compute-sanitizer that writes what SUMMARY says and ends with CODE."""

    SANITIZER = """#!/usr/bin/env bash
while [ $# -gt 0 ]; do
  case $1 in --log-file) printf "$SUMMARY" > "$2" ;; esac
  shift
done
echo "[  PASSED  ] ${PASSED:-7} tests."
exit ${CODE:-0}
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "sanitizer").write_text(self.SANITIZER)
        (self.folder / "sanitizer").chmod(0o755)

    def run_script(self, *tools, sanitizer="sanitizer", **environment):
        return subprocess.run([str(ROOT / "scripts/gpu/check_sanitizer"), *tools], capture_output=True, text=True, check=False,
                              env={**os.environ, "PACKAGE": str(self.folder), "TORCH_ROOT": str(self.folder),
                                   "OUT": str(self.folder / "out"), "TMPDIR": str(self.folder),
                                   "COMPUTE_SANITIZER": str(self.folder / sanitizer), **environment})

    def test_tools_that_find_nothing_pass(self):
        result = self.run_script("memcheck", "synccheck", SUMMARY="========= ERROR SUMMARY: 0 errors\\n")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"memcheck: 0 errors, 7 tests passed, \d+ s: ok\nsynccheck: 0 errors")

    def test_a_hazard_fails(self):
        result = self.run_script("racecheck", CODE="3",
                                 SUMMARY="========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\\n")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"racecheck: 2 errors.*FAILED: see ")

    def test_what_initcheck_finds_in_libraries_is_said_and_passes(self):
        reads = "=========     at void {}(int)+0x10\\n"
        summary = "========= ERROR SUMMARY: 2 errors\\n"
        result = self.run_script("initcheck", CODE="3", SUMMARY=2 * reads.format("gemm") + summary)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("initcheck: 0 errors, 2 in libraries' kernels", result.stdout)
        result = self.run_script("initcheck", CODE="3", SUMMARY=reads.format("gemm") + reads.format("wan::K") + summary)
        self.assertEqual(result.returncode, 1)
        self.assertIn("initcheck: 1 errors, 1 in libraries' kernels", result.stdout)

    def test_what_was_not_checked_fails(self):
        clean = "========= ERROR SUMMARY: 0 errors\\n"
        for environment in ({"SUMMARY": clean, "PASSED": "0"}, {"SUMMARY": clean, "CODE": "1"}, {"SUMMARY": ""}):
            result = self.run_script("memcheck", **environment)
            self.assertEqual(result.returncode, 1, f"{environment}: {result.stdout}")
            self.assertIn("FAILED", result.stdout)

    def test_an_unknown_tool_and_a_missing_program_are_named(self):
        result = self.run_script("lintcheck")
        self.assertEqual(result.returncode, 2)
        self.assertIn("no such tool: lintcheck", result.stderr)
        result = self.run_script("memcheck", sanitizer="nowhere")
        self.assertEqual(result.returncode, 2)
        self.assertIn("COMPUTE_SANITIZER", result.stderr)


if __name__ == "__main__":
    unittest.main()
