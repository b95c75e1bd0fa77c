"""A server, honest callers and attackers, each in a process of its own, for some seconds; then SIGTERM while the attack goes on."""

import dataclasses
import multiprocessing
import os
import threading
import time
import traceback

import grpc

from prove_abuse.server import MIB, NotHeld, Server
from prove_hostile import honest
from prove_hostile.measures import COLUMNS, GRACE_SECONDS, cell, problems, process_problems
from prove_hostile.place import PRINCIPALS, Place
from prove_hostile.registry import Row

# Start new processes: a fork of this one would have threads of gRPC that do not run.
PROCESSES = multiprocessing.get_context("spawn")
# A server is killed this many seconds after SIGTERM.
STOP_PATIENCE = 70
# Seconds before the attack begins, so that the cost of first calls is not blamed on the attack.
WARM_SECONDS = 1.5


def victim(tokens, fake=True, flags=(), environment=None, **more):
    """Returns a server that listens for gRPC and HTTP; its queue has room for more jobs than an attack makes."""
    flags = ["--http-listen", "127.0.0.1:0", "--queue-capacity", "100000", "--shutdown-mode", "requeue",
             "--shutdown-grace-seconds", str(GRACE_SECONDS), *flags]
    target = Server(fake=fake, flags=flags, environment=environment, principals=PRINCIPALS if tokens else None, **more)
    quotas_of(target).write_text("*: unlimited\n", encoding="utf-8")
    target.flags += ["--quotas", quotas_of(target)]
    return target


def quotas_of(target):
    return target.folder / "quotas"


def place_of(target, facts):
    return Place(target.grpc, target.http, target.metrics, target.model, target.fake, target.tokens, facts,
                 target.certificate)


def make_honest_job(target):
    """Makes a job of alice, and waits until it has completed with a file."""
    job = target.await_end(target.create(caller="alice").name)
    return {"honest job": job.name, "honest file": job.artifacts[0].name, "honest bytes": job.artifacts[0].size_bytes}


def hold_back(target):
    """Changes the quota file so that no job begins any more; the server reads it again when it has changed."""
    quotas_of(target).write_text("*: running_jobs=0\n", encoding="utf-8")


def hold_device(target):
    """From now on all jobs wait, so that what is cancelled has not ended, and nothing computes beside the calls."""
    if not target.fake:
        hold_back(target)
        return
    target.stop()
    target.environment = {**target.environment, "WAN_FAKE_HOLD": "T5_Encoding"}
    target.start()
    target.create(caller="alice")


class Attacker:
    """An attack in a process of its own, again and again. It gives way to the server and to those who measure it."""

    def __init__(self, attack, place):
        self._ready = PROCESSES.Event()
        self._rounds = PROCESSES.Value("q", 0)
        self._refusals = PROCESSES.Value("q", 0)
        self._broken = PROCESSES.Event()
        self.name = attack.__name__
        self.process = start(self.run, attack, place, self._ready, self._rounds, self._refusals, self._broken)

    @staticmethod
    def run(attack, place, ready, rounds, refusals, broken):
        os.nice(10)
        ready.set()
        while True:
            try:
                attack(place)
                rounds.value += 1
            except (OSError, EOFError, grpc.RpcError):
                refusals.value += 1
                time.sleep(0.05)  # the server has closed or refused something: the next round opens it again
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
                broken.set()
                return

    def await_ready(self):
        self._ready.wait(30)

    def seen(self):
        """What came of it, so that an attack that does nothing does not pass for one that was held."""
        return f"{self.name} ended {self._rounds.value} times, was closed or refused {self._refusals.value} times"

    def problems(self):
        return [f"the attack {self.name} broke"] if self._broken.is_set() else []


class Memory:
    """Samples the peak of a process, which cannot be asked any more when it has ended."""

    def __init__(self, target):
        self._target = target
        self._ended = threading.Event()
        target.reset_peak()
        self.base = target.memory()
        self.peak = self.base
        self.points = []  # pairs of seconds and MiB
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self):
        start = time.monotonic()
        while not self._ended.wait(0.1):
            try:
                self.peak = max(self.peak, self._target.peak())
                self.points.append((time.monotonic() - start, self._target.memory() / MIB))
            except (OSError, NotHeld, IndexError):
                return

    def end(self):
        self._ended.set()
        self._thread.join()
        return (self.peak - self.base) / MIB


@dataclasses.dataclass
class Siege:
    """The measurements of a siege."""
    calls: dict
    grown_mib: float
    exit_code: int = None
    stop_seconds: float = None
    stop_code: int = None
    points: list = dataclasses.field(default_factory=list)
    witnessed: list = dataclasses.field(default_factory=list)  # texts of the attackers and of the attack's own witness
    witnessed_problems: list = dataclasses.field(default_factory=list)

    def row(self, kinds=None, stop_limit=GRACE_SECONDS):
        found = process_problems(self.grown_mib, self.exit_code, self.stop_seconds, self.stop_code, stop_limit)
        found += problems(self.calls, kinds) + self.witnessed_problems
        cells = [cell(self.calls, columns, with_p99) for _, columns, with_p99 in COLUMNS]
        failed = sum(sum(calls.failures.values()) for calls in self.calls.values())
        asked = sum(calls.count for calls in self.calls.values())
        cells += [f"{failed} of {asked}", f"{self.grown_mib:+.0f}",
                  "-" if self.stop_seconds is None else f"{self.stop_seconds:.1f}"]
        return Row("; ".join(self.witnessed), found, cells)


CELLS = [title for title, _, _ in COLUMNS] + ["failed calls", "memory MiB", "SIGTERM s"]


def start(function, *arguments):
    process = PROCESSES.Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


def run_siege(options, tokens, attacks, prepare=None, late=None, fake=True, flags=(), environment=None, kinds=None,
              witness=None, honest_picture_bytes=0, stop_limit=GRACE_SECONDS, **more):
    """`attacks`: functions of a Place, each repeated in a process of its own until the end. `prepare(target)` makes what they
    need before the device is held, `late(target)` afterwards; both return it as facts. `kinds`: honest calls that count; None:
    all. `witness(target, place, seconds)` runs in this process during the siege, and returns texts and problems."""
    with victim(tokens, fake, flags, environment, **more) as target:
        facts = make_honest_job(target) | (prepare(target) if prepare else {})
        facts["honest picture bytes"] = honest_picture_bytes
        hold_device(target)
        facts |= late(target) if late else {}
        return besiege(options, target, place_of(target, facts), attacks, witness).row(kinds, stop_limit)


def besiege(options, target, place, attacks, witness=None):
    stop, results = PROCESSES.Event(), PROCESSES.Queue()
    observer = start(honest.main, place, stop, results)
    time.sleep(WARM_SECONDS)
    memory = Memory(target)
    attackers = [Attacker(attack, place) for attack in attacks]
    try:
        for attacker in attackers:
            attacker.await_ready()
        end = time.monotonic() + options.seconds
        texts, found = witness(target, place, options.seconds) if witness else ([], [])
        while time.monotonic() < end and target.process.poll() is None:
            time.sleep(0.1)
        exit_code = target.process.poll()
        stop.set()
        calls = results.get(timeout=honest.PATIENCE * 4)
        grown = memory.end()
        texts += [attacker.seen() for attacker in attackers]
        found += [problem for attacker in attackers for problem in attacker.problems()]
        seen = Siege(calls, grown, exit_code, points=memory.points, witnessed=texts, witnessed_problems=found)
        if exit_code is None:
            try:
                seen.stop_code, seen.stop_seconds = target.terminate(STOP_PATIENCE)
            except NotHeld:
                pass  # it did not end; the row says so
        return seen
    finally:
        stop.set()
        memory.end()
        for process in [attacker.process for attacker in attackers] + [observer]:
            process.kill()
            process.join()


