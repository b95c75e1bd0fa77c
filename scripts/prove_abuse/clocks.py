"""The wall clock is set while the server runs. Each docstring says what is wanted."""

import glob
import threading
import time

import grpc
from google.protobuf import timestamp_pb2
from wan.v1 import generation_pb2, video_generation_pb2

from prove_abuse.server import CannotRun, Server, await_true, expect

RUNNING = generation_pb2.JOB_STATE_RUNNING
COMPLETED = generation_pb2.JOB_STATE_COMPLETED
CANCELLED = generation_pb2.JOB_STATE_CANCELLED
DAY = 24 * 3600


class FakedServer(Server):
    """A server whose wall clock can be set, without any other clock."""

    def __init__(self, **arguments):
        libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        if not libraries:
            raise CannotRun("libfaketime is not installed")
        super().__init__(**arguments)
        self.offset = self.folder / "offset"
        self.set_clock(0)
        self.environment |= {"LD_PRELOAD": libraries[0], "FAKETIME_TIMESTAMP_FILE": str(self.offset),
                             "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    def set_clock(self, seconds):
        """Sets the wall clock this far from the machine's clock, forward or (if negative) back."""
        new = self.offset.with_suffix(".new")
        new.write_text(f"{seconds:+d}s\n", encoding="ascii")
        new.rename(self.offset)


def running_job(seconds_of_jump):
    """A job of the demo model in which the clock is set: how long it says that it took, and took."""
    with FakedServer(fake=False) as target:
        shape = {"width": 128, "height": 128, "num_frames": 17, "steps": 12}
        target.await_end(target.create(**shape).name, 120)  # the estimates learn from this job
        start = time.monotonic()
        job = target.create(**shape).name
        await_true(lambda: target.job(job).progress.step >= 3, 120, "the job runs")
        before = target.job(job).eta_seconds
        target.set_clock(seconds_of_jump)
        after = target.job(job).eta_seconds
        expect(abs(after - before) < 60, f"the time left goes on: {before:.1f} s, then {after:.1f} s")
        done = target.await_end(job, 120)
        took = time.monotonic() - start
        expect(done.state == COMPLETED, f"the job completes ({done.error.message})")
        watch = video_generation_pb2.WatchJobRequest(name=job)
        said = [event.completed.seconds for event in target.call("WatchJob", watch) if event.HasField("completed")][0]
        expect(0 < said <= took + 0.1, f"it says {said:.1f} s and took at most {took:.1f} s")
        expect(0 < done.device_seconds <= took + 0.1, f"it pays for {done.device_seconds:.1f} s of {took:.1f} s")
        return said, took


def waiting_job(seconds_of_jump):
    """Heartbeats and a deadline while a job is held: what they did after the jump."""
    with FakedServer(flags=["--heartbeat-interval", "1"], environment={"WAN_FAKE_HOLD": "Step_2_Inference"}) as target:
        held = target.create().name
        await_true(lambda: target.job(held).state == RUNNING, 30, "a job is held")
        deadline = timestamp_pb2.Timestamp(seconds=int(time.time()) + 3600)
        due = target.create(deadline=deadline).name
        beats = []

        def listen():
            try:
                for event in target.call("WatchJob", video_generation_pb2.WatchJobRequest(name=held)):
                    if event.HasField("heartbeat"):
                        beats.append(time.monotonic())
            except (grpc.RpcError, ValueError):
                pass  # the server has been killed

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        await_true(lambda: len(beats) >= 2, 15, "heartbeats come")
        target.set_clock(seconds_of_jump)
        known = len(beats)
        took = await_true(lambda: len(beats) >= known + 3, 8, "heartbeats go on")
        if seconds_of_jump > 0:
            took_deadline = await_true(lambda: target.job(due).state == CANCELLED, 4, "a deadline that has passed is noticed")
            return f"three heartbeats in {took:.1f} s, the deadline noticed in {took_deadline:.1f} s"
        expect(target.job(due).state != CANCELLED, "a deadline that has moved away is waited for")
        target.set_clock(2 * DAY)
        took_deadline = await_true(lambda: target.job(due).state == CANCELLED, 4, "it is noticed when the clock is put right")
        return f"three heartbeats in {took:.1f} s, the deadline noticed in {took_deadline:.1f} s"


def clock_jumps(_):
    """when the wall clock is set three days forward or back, jobs say how long they took, the time left goes on, heartbeats
    keep their rhythm, and a deadline is noticed within 4 s"""
    seen = []
    for days in (3, -3):
        said, took = running_job(days * DAY)
        seen.append(f"{days:+d} days: a job says {said:.1f} s of {took:.1f} s, {waiting_job(days * DAY)}")
    return "; ".join(seen)


ATTACKS = {
    "clock-jumps": clock_jumps,
}
