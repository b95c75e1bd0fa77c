#!/usr/bin/env python3
"""MLPerf Inference's text-to-video workload (Wan2.2-T2V-A14B) against a running wanserve, over gRPC, with LoadGen.

    benchmarks/mlperf/run.py run --server HOST:PORT --model NAME --prompts FILE --scenario SingleStream --output DIR
    benchmarks/mlperf/run.py check-test04 REFERENCE/mlperf_log_summary.txt TEST/mlperf_log_summary.txt

Needs wanserve_client (docs/use/python.md) and mlcommons-loadgen. `run` leaves LoadGen's logs and result.json in DIR and ends
with 1 if a video failed. docs/measured/mlperf.md has the whole procedure.
"""
import argparse
import array
import dataclasses
import hashlib
import json
import pathlib
import queue
import sys
import tempfile
import threading
import time

import mlperf_loadgen as lg
from wanserve_client import Client, WanError

HERE = pathlib.Path(__file__).resolve().parent
MODEL = "wan-2.2-t2v-a14b"  # LoadGen's name for the workload
SCENARIOS = {"SingleStream": lg.TestScenario.SingleStream, "Offline": lg.TestScenario.Offline}
# TEST04 asks for the fourth sample.
FEWEST_PROMPTS = 4
# TEST04 may be this much faster than the ordinary run.
TEST04_TOLERANCE = 0.10


class SystemUnderTest:
    """Makes a video for each of LoadGen's queries. `in_flight` threads wait for the server at a time, so that its queue never
    runs dry; LoadGen's own thread only fills the list of what is to be made."""

    def __init__(self, client, model, workload, prompts, in_flight, videos):
        self.errors = []
        self._client = client
        self._request = {"model": model, **workload}
        self._prompts = prompts
        self._videos = videos
        self._queries = queue.Queue()
        self._threads = [threading.Thread(target=self._work) for _ in range(in_flight)]
        for thread in self._threads:
            thread.start()

    def issue(self, samples):
        for sample in samples:
            self._queries.put((sample.id, sample.index))

    def close(self):
        for _ in self._threads:
            self._queries.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self):
        with tempfile.TemporaryDirectory() as folder:
            while (query := self._queries.get()) is not None:
                identifier, index = query
                try:
                    video = self._make(index, pathlib.Path(folder))
                except Exception as error:  # whatever it is: LoadGen would wait for the answer forever
                    self.errors.append(f"sample {index}: {error}")
                    video = b""
                buffer = array.array("B", video)
                address, length = buffer.buffer_info()
                lg.QuerySamplesComplete([lg.QuerySampleResponse(identifier, address, length)])

    def _make(self, index, folder):
        job = self._generate(index)
        # VBench finds the prompt of a video in its name.
        path = (self._videos or folder) / f"{self._prompts[index]}-0.mp4".replace("/", "_")[-200:]
        self._client.download(job, path)
        video = path.read_bytes()
        if self._videos is None:
            path.unlink()
        return video


    def _generate(self, index):
        while True:
            try:
                return self._client.generate(prompt=self._prompts[index], **self._request)
            except WanError as error:
                # First latents are large: a server takes those of some requests at a time.
                if error.reason != "SERVER_BUSY":
                    raise
                time.sleep(error.retry_delay or 1)


@dataclasses.dataclass
class Summary:
    """What LoadGen's mlperf_log_summary.txt says."""

    scenario: str = ""
    valid: bool = False
    percentile_seconds: float = 0.0  # SingleStream: the 90th percentile, as early stopping estimates it if it can
    samples_per_second: float = 0.0  # Offline

    @staticmethod
    def read(path):
        fields = {}
        for line in pathlib.Path(path).read_text().splitlines():
            name, colon, value = line.partition(":")
            if colon:
                fields.setdefault(name.strip(), value.strip())
        estimate = next((value for name, value in fields.items() if name.startswith("Early stopping 90")), None)
        nanoseconds = float(estimate or fields.get("90.0th percentile latency (ns)") or fields.get("90.00 percentile latency (ns)")
                            or 0)
        return Summary(fields.get("Scenario", ""), fields.get("Result is") == "VALID", nanoseconds / 1e9,
                       float(fields.get("Samples per second", 0)))

    @property
    def speed(self):
        """Videos in a second, by which two runs of a scenario are compared."""
        if self.scenario == "Offline":
            return self.samples_per_second
        return 1 / self.percentile_seconds if self.percentile_seconds else 0.0


def read_prompts(path, most):
    """One prompt a line, or lines of JSON with a caption as in demo/evaluate/scenes.jsonl."""
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    prompts = [json.loads(line)["caption"] for line in lines] if path.suffix == ".jsonl" else lines
    return prompts[:most]


def read_latents(path):
    """The bytes of the safetensors file that the server gets with each request."""
    file = path.read_bytes()
    if file[:4] == b"PK\x03\x04":
        sys.exit(f"--initial-latents: {path} is a file of PyTorch; must be safetensors (docs/measured/mlperf.md has the command)")
    return file


def settings_for(options, prompts):
    settings = lg.TestSettings()
    settings.FromConfig(str(options.user_conf), MODEL, options.scenario)
    if options.audit:
        # The 2 says that this is no second user.conf, of which LoadGen allows only one.
        settings.FromConfig(str(options.audit), MODEL, options.scenario, 2)
    settings.performance_sample_count_override = prompts
    settings.scenario = SCENARIOS[options.scenario]
    settings.mode = lg.TestMode.AccuracyOnly if options.accuracy else lg.TestMode.PerformanceOnly
    if options.count:
        settings.min_query_count = settings.max_query_count = options.count
        settings.min_duration_ms = 0
    return settings


def run(options):
    workload = json.loads(options.workload.read_text())
    if options.shift is not None:
        workload["shift"] = options.shift
    fields = dict(workload)
    if options.initial_latents:
        fields["initial_latents"] = read_latents(options.initial_latents)
        workload["initial_latents"] = {"sha256": hashlib.sha256(fields["initial_latents"]).hexdigest()}
    prompts = read_prompts(options.prompts, options.samples)
    if len(prompts) < FEWEST_PROMPTS:
        sys.exit(f"--prompts: {options.prompts} has {len(prompts)} prompts; must have at least {FEWEST_PROMPTS}, one a line")
    options.output.mkdir(parents=True, exist_ok=True)
    if options.videos:
        options.videos.mkdir(parents=True, exist_ok=True)
    output = lg.LogOutputSettings()
    output.outdir = str(options.output)
    output.copy_summary_to_stdout = False
    logs = lg.LogSettings()
    logs.enable_trace = False
    logs.log_output = output
    with Client(options.server) as client:
        system = SystemUnderTest(client, options.model, fields, prompts,
                                 1 if options.scenario == "SingleStream" else options.in_flight, options.videos)
        sut = lg.ConstructSUT(system.issue, lambda: None)
        qsl = lg.ConstructQSL(len(prompts), len(prompts), lambda _: None, lambda _: None)
        try:
            lg.StartTestWithLogSettings(sut, qsl, settings_for(options, len(prompts)), logs, str(options.audit or options.output / "no audit"))
        finally:
            system.close()
            lg.DestroyQSL(qsl)
            lg.DestroySUT(sut)
        groups = [list(group.devices) for group in client.server_info().groups]
    if options.accuracy:
        result = {"scenario": options.scenario, "accuracy": True}
    else:
        result = dataclasses.asdict(Summary.read(options.output / "mlperf_log_summary.txt"))
    result.update(groups=groups, model=options.model, request=workload, errors=system.errors)
    (options.output / "result.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(json.dumps(result, ensure_ascii=False))
    return 1 if system.errors else 0


def check_test04(options):
    reference, test = Summary.read(options.reference), Summary.read(options.test)
    if reference.scenario != test.scenario or not reference.speed or not test.speed:
        sys.exit(f"the runs cannot be compared: {reference} and {test}")
    faster = test.speed / reference.speed - 1
    passed = faster < TEST04_TOLERANCE
    print(f"TEST04 {'PASS' if passed else 'FAIL'}: with one sample again and again the system is {100 * faster:+.1f} % as fast; "
          f"must be less than +{100 * TEST04_TOLERANCE:.0f} %")
    return 0 if passed else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("run", help="runs a scenario")
    make.add_argument("--server", default="localhost:50051")
    make.add_argument("--model", required=True, help="the model's name on the server")
    make.add_argument("--scenario", choices=SCENARIOS, default="SingleStream")
    make.add_argument("--prompts", type=pathlib.Path, required=True, help="one a line, or .jsonl with captions")
    make.add_argument("--samples", type=int, default=248, help="the first so many prompts (default: %(default)s)")
    make.add_argument("--workload", type=pathlib.Path, default=HERE / "wan2.2-t2v-a14b.json", help="fields of the requests")
    make.add_argument("--shift", type=float, help="of the schedule (default: the model's)")
    make.add_argument("--initial-latents", type=pathlib.Path,
                      help="safetensors file with which every video begins (default: the noise of the workload's seed)")
    make.add_argument("--output", type=pathlib.Path, required=True)
    make.add_argument("--videos", type=pathlib.Path, help="keeps the videos in this folder, with the names that VBench reads")
    make.add_argument("--user-conf", type=pathlib.Path, default=HERE / "user.conf")
    make.add_argument("--audit", type=pathlib.Path, help="LoadGen's settings of a compliance test")
    make.add_argument("--accuracy", action="store_true", help="each prompt once, with the videos in LoadGen's log")
    make.add_argument("--in-flight", type=int, default=16, help="Offline: jobs on the server at a time (default: %(default)s)")
    make.add_argument("--count", type=int, help="so many queries however long they take, which MLPerf does not count as a result")
    check = commands.add_parser("check-test04", help="compares a run of TEST04 with the ordinary run")
    check.add_argument("reference", type=pathlib.Path)
    check.add_argument("test", type=pathlib.Path)
    options = parser.parse_args()
    sys.exit({"run": run, "check-test04": check_test04}[options.command](options))


if __name__ == "__main__":
    main()
