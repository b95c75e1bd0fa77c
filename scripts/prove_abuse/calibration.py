"""Runs jobs of mixed shapes on the demo model, and reports how often they ended within the times that the server had told."""

import argparse
import collections
import pathlib
import random
import sys

from wan.v1 import video_generation_pb2

from prove_abuse import server

# From this many jobs the server learns how long things take; it tells no times before the first job, and cautious ones before the tenth.
LEARNING = 10
# The share of jobs that must end within their p90, which nine of ten should do.
WANTED = 0.8

SHAPES = [{"width": side, "height": side, "num_frames": frames, "steps": steps}
          for side in (64, 96, 128) for frames in (5, 9, 17) for steps in (2, 4, 8)]


class Share:
    """Counts how many of some forecasts were right."""

    def __init__(self):
        self.count = self.p50 = self.p90 = 0
        self.ratios = []

    def add(self, p50, p90, actual):
        self.count += 1
        self.p50 += actual <= p50
        self.p90 += actual <= p90
        if p90 > 0:
            self.ratios.append(actual / p90)

    def line(self, what):
        ratios = sorted(self.ratios) or [0]
        return (f"| {what} | {self.count} | {100 * self.p50 / self.count:.0f} % | {100 * self.p90 / self.count:.0f} % | "
                f"{ratios[len(ratios) // 2]:.2f} | {ratios[-1]:.2f} |")


def seconds(timestamp):
    return timestamp.seconds + timestamp.nanos * 1e-9


def forecasts_of(target, accepted, shares):
    """Compares what the server told about one job with what happened."""
    job = target.job(accepted.name)
    if job.state != server.ENDED[0]:
        raise server.NotHeld(f"{job.name} did not complete: {job.error.message}")
    end, start = seconds(job.end_time), seconds(job.start_time)
    if accepted.HasField("eta_p90_seconds"):
        shares["accepted: until its end"].add(accepted.eta_seconds, accepted.eta_p90_seconds, end - seconds(accepted.create_time))
    for event in target.call("WatchJob", video_generation_pb2.WatchJobRequest(name=job.name)):
        now = seconds(event.time)
        if event.HasField("queued") and event.queued.HasField("eta_p90_seconds") and event.queued.position > 0:
            shares["queued: until its start"].add(event.queued.eta_seconds, event.queued.eta_p90_seconds, start - now)
        progress = event.step_progress
        if event.HasField("step_progress") and progress.HasField("eta_p90_seconds"):
            when = "first" if progress.step == 1 else "last" if progress.step == progress.total else "a later"
            shares[f"running, after {when} step: until its end"].add(progress.eta_seconds, progress.eta_p90_seconds, end - now)


def main():
    parser = argparse.ArgumentParser(prog="scripts/prove eta")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the shapes and their order")
    options = parser.parse_args()
    server.BUILD = options.build.resolve()
    chooser = random.Random(options.seed)
    shares = collections.OrderedDict((what, Share()) for what in (
        "accepted: until its end", "queued: until its start", "running, after first step: until its end",
        "running, after a later step: until its end", "running, after last step: until its end"))
    with server.Server(fake=False) as target:
        made = 0
        while made < options.jobs:
            # Submit some jobs together, so that some wait for others.
            burst = [target.create(**chooser.choice(SHAPES)) for _ in range(chooser.randint(1, 4))]
            for accepted in burst:
                target.await_end(accepted.name, 600)
                made += 1
                if made > LEARNING:
                    forecasts_of(target, accepted, shares)
    print(f"{made} jobs, {LEARNING} of them to learn from\n")
    print("| told | forecasts | within p50 | within p90 | actual / p90, median | largest |\n| --- | --- | --- | --- | --- | --- |")
    for what, share in shares.items():
        if share.count:
            print(share.line(what))
    whole = shares["accepted: until its end"]
    return 0 if whole.p90 >= WANTED * whole.count else 1


sys.exit(main())
