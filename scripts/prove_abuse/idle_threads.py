"""Runs jobs of the demo model with idle OpenMP threads that spin for several lengths: alone, and with a second server."""

import argparse
import pathlib
import statistics
import sys

from wan.v1 import video_generation_pb2

from prove_abuse import server

# Numbers of turns of libgomp's waiting loop; the last entry is what wanserve sets by itself.
SETTINGS = [("0", {"OMP_WAIT_POLICY": "PASSIVE"})]
SETTINGS += [(turns, {"GOMP_SPINCOUNT": turns}) for turns in ("300", "1000", "10000", "30000", "300000")]
SETTINGS += [("what wanserve sets", {})]
JOB = {"width": 256, "height": 256, "num_frames": 17, "steps": 20, "seed": 1}
JOBS = 4


def seconds(target, name):
    target.await_end(name, 600)
    report = target.call("GetReport", video_generation_pb2.GetReportRequest(job=name))
    return next(stage.seconds for stage in report.stages if stage.stage == "Total_Execution")


def main():
    parser = argparse.ArgumentParser(prog="scripts/prove idle-threads", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=6, help="servers of each setting that run alone, in turn")
    options = parser.parse_args()
    server.BUILD = options.build.resolve()
    alone = {turns: [] for turns, _ in SETTINGS}
    beside = {turns: [] for turns, _ in SETTINGS}
    for _ in range(options.rounds):
        for turns, environment in SETTINGS:
            with server.Server(fake=False, environment=environment) as target:
                seconds(target, target.create(**JOB).name)  # the first job is slower
                alone[turns] += [seconds(target, target.create(**JOB).name) for _ in range(JOBS)]
    for turns, environment in SETTINGS:
        with server.Server(fake=False, environment=environment) as one, server.Server(fake=False, environment=environment) as other:
            for _ in range(JOBS):
                jobs = [(target, target.create(**JOB).name) for target in (one, other)]
                beside[turns] += [seconds(target, name) for target, name in jobs]
    print("| turns | alone, median s | two servers at once, s |\n| --- | --- | --- |")
    for turns, _ in SETTINGS:
        print(f"| {turns} | {statistics.median(alone[turns]):.2f} | {min(beside[turns]):.1f} to {max(beside[turns]):.1f} |")
    return 0


sys.exit(main())
