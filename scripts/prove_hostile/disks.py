"""A disk that takes long. A disk that is full, and a kill."""

import random
import threading
import time

import grpc
from wan.v1 import generation_pb2, video_generation_pb2

from prove_abuse.disk import SmallDisk, slow_disk_library
from prove_abuse.server import ENDED, await_true, code_of
from prove_hostile.crowds import burst
from prove_hostile.histories import Watchers, differences
from prove_hostile.registry import Row, attack
from prove_hostile.siege import place_of, run_siege, victim

CODE = grpc.StatusCode
CANCELLED = generation_pb2.JOB_STATE_CANCELLED
RUNNING = generation_pb2.JOB_STATE_RUNNING
SYNC_SECONDS = 15


def creates(place):
    burst(place, "/wan.v1.VideoGeneration/CreateJob", place.create_request().SerializeToString(), "eve", 8, 60)


def load_library(target):
    """Makes the server load a library that slows the disk down, but only while a file exists."""
    target.environment |= {"LD_PRELOAD": slow_disk_library(target.folder), "WAN_SLOW_SYNC_MS": str(SYNC_SECONDS * 1000),
                           "WAN_SLOW_WHILE": str(target.folder / "slow")}
    return {}


def slow_down(target):
    (target.folder / "slow").touch()
    return {}


@attack("slow-sync")
def slow_sync(options, tokens):
    """eight CreateJobs at a time on a disk whose syncs take 15 s: health, probes and GetJob wait for none of them, and SIGTERM for
    three at most: the one that runs, that of the accepted jobs, that of the last events"""
    kinds = {"health", "health, new connection", "livez", "readyz", "GetJob", "GET video"}
    return run_siege(options, tokens, [creates], load_library, slow_down, kinds=kinds, stop_limit=3 * SYNC_SECONDS + 10)


class Filler:
    """Fills a disk and keeps it full, or leaves some room."""

    def __init__(self, disk):
        self._disk = disk
        self._lock = threading.Lock()
        self._full = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._ended.wait(0.005):
            with self._lock:
                if self._full:
                    self._disk.fill()

    def set(self, full):
        with self._lock:
            self._full = full
            if full:
                self._disk.fill()
            else:
                self._disk.free()

    def end(self):
        self._ended.set()
        self._thread.join()
        self._disk.free()


def on_small_disk(tokens, flags=(), **more):
    """Returns a server that accepts jobs until the disk is full; it has not been started there yet."""
    target = victim(tokens, flags=["--disk-reserve", "0", *flags], **more)
    return target, SmallDisk(target.data, 48)


def cancel(target, name, over_http):
    """Returns whether the server answered that the job is cancelled."""
    if not over_http:
        request = video_generation_pb2.CancelJobRequest(name=name)
        return code_of(lambda: target.call("CancelJob", request, 15, caller="alice"))[0] == CODE.OK
    status, _ = place_of(target, {}).ask("DELETE", "/v1/videos/video_" + name.removeprefix("jobs/"), "alice", timeout=15)
    return status == 200


@attack("full-disk-cancel")
def full_disk_cancel(options, tokens):
    """on a full disk a cancel is refused, or it stands after a kill -9: no job that was told to be CANCELLED runs again"""
    problems, refused, told, rounds = [], 0, 0, max(2, int(options.seconds // 12))
    target, disk = on_small_disk(tokens, environment={"WAN_FAKE_HOLD": "T5_Encoding"})
    target.prefix = disk.prefix
    with disk, target:
        for turn in range(rounds):
            names = [target.create(caller="alice").name for _ in range(4)]
            filler = Filler(disk)
            filler.set(True)
            done = {name: cancel(target, name, over_http=turn % 2 == 1) for name in names}
            shown = {name for name in names if code_of(lambda: target.job(name))[0] == CODE.OK
                     and target.job(name).state == CANCELLED}
            target.kill()
            filler.end()
            target.start()
            for name, accepted in done.items():
                code, _ = code_of(lambda: target.job(name))
                is_ended = code == CODE.NOT_FOUND or code == CODE.OK and target.job(name).state == CANCELLED
                told += accepted or name in shown
                refused += not accepted
                if accepted and not is_ended:
                    problems.append(f"a cancel of {name} was answered as done, and it goes on after the kill")
                elif name in shown and not is_ended:
                    problems.append(f"{name} was shown as CANCELLED, and goes on after the kill")
            for job in target.jobs():
                if job.state not in ENDED:
                    target.call("CancelJob", video_generation_pb2.CancelJobRequest(name=job.name))
    if not told + refused:
        problems.append("nothing was cancelled")
    return Row(f"{rounds} kills on a full disk, {refused} cancels refused, {told} told or shown as done", problems)


def cancel_quietly(target, name):
    code_of(lambda: target.call("CancelJob", video_generation_pb2.CancelJobRequest(name=name), 5))


@attack("full-disk-events")
def full_disk_events(options, tokens):
    """jobs, cancels and watchers on a disk that is full now and then, and kill -9: no event that a watcher saw is another one
    afterwards, and no ended job ends otherwise"""
    chooser = random.Random(19)
    rounds, seen, problems = max(3, int(options.seconds // 4)), 0, []
    target, disk = on_small_disk(tokens, fake=False, flags=["--max-attempts", "100"])
    target.prefix = disk.prefix
    with disk, target:
        watchers = Watchers()
        for _ in range(rounds):
            filler = Filler(disk)
            # Also soon after the start: a database that has written much writes on where it has room.
            end, names = time.monotonic() + chooser.choice([0.1, 0.5, 3]), []
            watchers.attach(target)
            while time.monotonic() < end:
                filler.set(chooser.random() < 0.4)
                for _ in range(chooser.randrange(1, 4)):
                    code_of(lambda: names.append(target.create(timeout=5, steps=chooser.choice([1, 30])).name))
                    if names:
                        watchers.watch(names[-1])
                        if chooser.random() < 0.3:
                            cancel_quietly(target, names[-1])
                time.sleep(chooser.uniform(0, 0.3))
            # The events that are shown now have no room on the disk.
            filler.set(True)
            for name in names[-8:]:
                cancel_quietly(target, name)
            time.sleep(chooser.uniform(0, 0.3))
            ended = target.process.poll()
            problems += [f"the process ended by itself with {ended}"] if ended is not None else []
            target.kill()
            watchers.detach()
            filler.end()
            target.start()
            await_true(lambda: all(job.state in ENDED for job in target.jobs()), 60, "all jobs end")
            count, changed = differences(target, watchers)
            seen += count
            problems += changed
    if not seen:
        problems.append("no watcher saw an event")
    return Row(f"{rounds} kills, {seen} events seen by watchers", problems[:5])
