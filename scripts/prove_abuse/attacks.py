"""Attacks that took a server down, or made it deaf, before it was hardened. Each docstring says what is wanted."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import re
import resource
import socket
import sqlite3
import stat
import subprocess
import tempfile
import threading
import time

import grpc
from wan.v1 import generation_pb2, model_management_pb2, video_generation_pb2

from prove_abuse import server
from prove_abuse.server import MIB, CannotRun, NotHeld, Server, await_true, code_of, expect

CODE = grpc.StatusCode


@dataclasses.dataclass
class Scale:
    """How large the attacks are."""
    quick: bool
    minutes: float

    def of(self, count):
        return max(1, count // 10) if self.quick else count


def varint(number):
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes(parts + [number])


def field(number, data):
    """Returns a length-delimited field as protobuf encodes it."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def create_request(target, extra):
    return field(1, target.request().SerializeToString() + extra)


def many_values(scale):
    """wrong counts are refused as INVALID_ARGUMENT, and a call needs at most 4 times its bytes (and 8 MiB for what the
    process allocates anyway)"""
    count = scale.of(30_000_000)
    seen = []
    with Server() as target:
        attacks = {
            "outputs": ("CreateJob", create_request(target, field(14, b"\x63" * count))),
            "loras": ("CreateJob", create_request(target, field(20, field(1, b"x")) * scale.of(2_000_000))),
            "states": ("ListJobs", field(3, b"\x63" * count)),
            "LoRAs of a model": ("LoadModel", field(1, b"m") + field(3, field(1, b"x")) * scale.of(2_000_000)),
        }
        for name, (method, request) in attacks.items():
            target.reset_peak()
            before = target.memory()
            code, details = code_of(lambda: target.call(method, request, timeout=120))
            grown = target.peak() - before
            seen.append(f"{name} of {len(request) / MIB:.1f} MiB {code.name} +{grown / MIB:.0f} MiB")
            expect(code == CODE.INVALID_ARGUMENT, f"{seen[-1]} is refused ({details})")
            expect(grown <= 4 * len(request) + 8 * MIB, f"{seen[-1]} is within the limit")
        target.expect_healthy()
    return ", ".join(seen)


def many_valid_states(scale):
    """beside ListJobs with 10 M valid states GetJob answers within 250 ms"""
    with Server() as target:
        name = target.create().name
        request = field(3, bytes([1, 2, 3, 4, 5]) * scale.of(2_000_000))
        done = threading.Event()
        outcome = []

        def attack():
            channel = target.new_channel()
            for _ in range(3):
                outcome.append(code_of(lambda: target.call("ListJobs", request, 120, channel))[0])
            channel.close()
            done.set()

        thread = threading.Thread(target=attack)
        thread.start()
        longest = 0.0
        while not done.is_set():
            start = time.monotonic()
            target.job(name)
            longest = max(longest, time.monotonic() - start)
        thread.join()
        expect(longest <= 0.25, f"the longest GetJob took {longest * 1000:.0f} ms")
        target.expect_healthy()
        return f"the longest GetJob took {longest * 1000:.0f} ms, ListJobs {outcome[0].name}"


def connections(address, count, send=b""):
    """Opens idle connections, as many as possible."""
    host, port = address.rsplit(":", 1)
    opened = []
    for _ in range(count):
        try:
            opened.append(socket.create_connection((host, int(port)), timeout=2))
            if send:
                opened[-1].sendall(send)
        except OSError:
            break
    return opened


def raise_own_descriptors():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def no_descriptors(_):
    """the soft limit becomes the hard one; after 1,100 idle connections at a limit of 1,024 a new client is served
    within 2 s of their end"""
    raise_own_descriptors()
    with Server(descriptors=(256, 2048)) as target:
        limits = pathlib.Path(f"/proc/{target.process.pid}/limits").read_text(encoding="utf-8")
        soft = limits.split("Max open files")[1].split()[0]
        expect(soft == "2048", f"the soft limit is {soft} at a hard limit of 2048")
    with Server(descriptors=(1024, 1024)) as target:
        idle = connections(target.grpc, 1100)
        time.sleep(3)
        for connection in idle:
            connection.close()
        start = time.monotonic()

        def answers():
            with target.new_channel() as channel:
                return code_of(lambda: target.call("ListJobs", b"", 1, channel))[0] == CODE.OK

        await_true(answers, 20, "a new client is served")
        took = time.monotonic() - start
        expect(took <= 2, f"a new client was served {took:.1f} s after the connections ended")
        target.expect_healthy()
        return f"{len(idle)} connections opened; a new client was served {took:.2f} s after their end"


def poison(_):
    """a job of the demo model whose attempts take the process with them ends as FAILED after three of them, says when and in
    which stage, and the job behind it completes"""
    with Server(fake=False) as target:
        # The job has hours of work, so that no attempt ends before it is killed.
        bad = target.create(request_id="bad", width=256, height=256, num_frames=33, steps=1000).name
        good = target.create(request_id="good").name
        attempts = 0
        while attempts < 10:
            await_true(lambda: target.job(bad).state != generation_pb2.JOB_STATE_QUEUED, 60, "the job runs")
            if target.job(bad).state in server.ENDED:
                break
            time.sleep(0.5)
            target.kill()
            attempts += 1
            target.start()
        await_true(lambda: target.job(bad).state in server.ENDED, 20, "the job ends")
        job = target.job(bad)
        expect(job.state == generation_pb2.JOB_STATE_FAILED,
               f"after {attempts} attempts it is {generation_pb2.JobState.Name(job.state)}")
        expect(attempts == 3, f"it took {attempts} attempts")
        reasons = [detail.value for detail in job.error.details if b"ATTEMPTS_EXHAUSTED" in detail.value]
        expect(reasons, "its error has the reason ATTEMPTS_EXHAUSTED")
        for lost in job.lost_attempts:
            moment = lost.end_time.ToDatetime().strftime("%Y-%m-%dT%H:%M:%S")
            expect(lost.stage and f"{moment}" in job.error.message and lost.stage in job.error.message,
                   f"its error says when and in which stage attempt {lost.attempt} ended: {job.error.message}")
        after = target.await_end(good, 120)
        expect(after.state == generation_pb2.JOB_STATE_COMPLETED, "the job behind it completes")
        stage = job.lost_attempts[-1].stage
        return f"FAILED (ATTEMPTS_EXHAUSTED) after {attempts} attempts, the last one in {stage}; the next job completed"


class MemoryGroup:
    """A control group with a memory limit; use it in a with statement. Works with version 1 and version 2 of control groups."""

    def __init__(self, limit):
        root = pathlib.Path("/sys/fs/cgroup")
        version1 = (root / "memory").is_dir()
        self.folder = (root / "memory" if version1 else root) / f"wan_prove_{os.getpid()}"
        self.tasks = self.folder / ("tasks" if version1 else "cgroup.procs")
        self._limit = self.folder / ("memory.limit_in_bytes" if version1 else "memory.max")
        self._bytes = limit

    def __enter__(self):
        try:
            self.folder.mkdir()
            self._limit.write_text(str(self._bytes), encoding="utf-8")
        except OSError as error:
            raise CannotRun(f"no control group can be made here: {error}") from error
        return self

    def __exit__(self, *_):
        await_true(lambda: not self.tasks.read_text(encoding="utf-8"), 10, "the group empties")
        self.folder.rmdir()


def memory_group(_):
    """in a control group of 800 MB a job of 1024x1024x121 is refused and told what would fit: fewer frames, and as many of a
    smaller size. Both complete, four frames more and 64 pixels more are refused, and the server lives"""
    with MemoryGroup(800_000_000) as group, Server(fake=False, tasks=group.tasks) as target:
        def refusal(side, frames):
            code, details = code_of(lambda: target.create(width=side, height=side, num_frames=frames, steps=1))
            expect(code == CODE.INVALID_ARGUMENT, f"{side}x{side}x{frames} is refused, not {code.name} ({details[:300]})")
            return details

        details = refusal(1024, 121)
        frames = re.search(r"(?i)at this size (?:at most )?(\d+) frames? fits?", details)
        side = re.search(r"(\d+)x\d+ fits", details)
        expect(frames and side, f"the message says what would fit: {details[:300]}")
        frames, side = int(frames.group(1)), int(side.group(1))
        refusal(1024, frames + 4)
        refusal(side + 64, 121)
        for fits in ((1024, frames), (side, 121)):
            size = {"width": fits[0], "height": fits[0], "num_frames": fits[1], "steps": 1}
            # The memory that the previous job needed is given back within two seconds of its end.
            await_true(lambda: code_of(lambda: target.create(**size, request_id=f"fits {fits}"))[0] == CODE.OK, 5,
                       f"{fits} is accepted")
            job = target.await_end(target.create(**size, request_id=f"fits {fits}").name, 300)
            expect(job.state == generation_pb2.JOB_STATE_COMPLETED,
                   f"{fits} completes, not {generation_pb2.JobState.Name(job.state)} ({job.error.message[:200]})")
        target.expect_healthy(60)
        return (f"121 frames of 1024x1024 refused; {frames} of 1024x1024 and 121 of {side}x{side} completed; "
                f"peak {target.peak() / MIB:.0f} of 763 MiB")


def warm_up(_):
    """400 shapes are refused, a huge shape is refused or cancelled with its caller so that a job starts within 1 s,
    and SIGTERM ends the server within 5 s"""
    huge = model_management_pb2.Shape(width=1024, height=1024, num_frames=121)
    with Server(fake=False) as target:
        shapes = [model_management_pb2.Shape(width=64 + 32 * (i % 20), height=64 + 32 * (i // 20), num_frames=5)
                  for i in range(400)]
        request = model_management_pb2.WarmupModelRequest(name="demo", shapes=shapes, wait=True)
        code, _ = code_of(lambda: target.call("WarmupModel", request, 2))
        seen = [f"400 shapes {code.name}"]
        expect(code == CODE.INVALID_ARGUMENT, f"400 shapes are INVALID_ARGUMENT, not {code.name}")
        request = model_management_pb2.WarmupModelRequest(name="demo", shapes=[huge], wait=True)
        code, _ = code_of(lambda: target.call("WarmupModel", request, 2))
        start = time.monotonic()
        name = target.create().name
        await_true(lambda: target.job(name).state != generation_pb2.JOB_STATE_QUEUED, 30, "a job starts")
        took = time.monotonic() - start
        seen.append(f"huge shape {code.name}, a job started {took:.2f} s later")
        expect(took <= 1, seen[-1])
        target.await_end(name)
        threading.Thread(target=lambda: code_of(lambda: target.call("WarmupModel", request, 60)), daemon=True).start()
        time.sleep(1)
        code, took = target.terminate(30)
        seen.append(f"SIGTERM {took:.1f} s, exit code {code}")
        expect(took <= 5 and code == 0, seen[-1])
    return ", ".join(seen)


def slow_scrapers(scale):
    """/metrics answers within 1 s beside 300 connections that are silent or send a byte a second, a POST of 300 MB
    needs less than 32 MiB, and nothing of them is left after 30 s"""
    raise_own_descriptors()
    with Server() as target:
        before = target.open_descriptors()
        target.scrape(5)
        silent = connections(target.metrics, 298)
        slow = connections(target.metrics, 2, b"G")
        start = time.monotonic()
        for _ in range(3):
            try:
                target.scrape(timeout=5)
            except OSError as error:
                raise NotHeld(f"/metrics answers ({error})") from error
            for connection in slow:
                try:
                    connection.send(b"E")
                except OSError:
                    pass
        took = (time.monotonic() - start) / 3
        expect(took <= 1, f"/metrics took {took:.1f} s")

        target.reset_peak()
        memory = target.memory()
        size = scale.of(300_000_000)
        post = connections(target.metrics, 1, f"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode())
        sent = 0
        try:
            while post and sent < size:
                sent += post[0].send(b"x" * MIB)
        except OSError:
            pass
        grown = target.peak() - memory
        expect(grown < 32 * MIB, f"a POST grew the server by {grown / MIB:.0f} MiB")
        await_true(lambda: target.open_descriptors() <= before + 10, 30, "the server closes the connections")
        for connection in silent + slow + post:
            connection.close()
        target.expect_healthy()
        return f"/metrics took {took:.2f} s, a POST grew the server by {grown / MIB:.0f} MiB"


def bytes_in_flight(scale):
    """1,500 downloads that nobody reads and 30 requests of 60 MiB at once stay below 1 GiB, and memory is given back"""
    raise_own_descriptors()
    with Server(fake=False) as target:
        job = target.await_end(target.create(width=256, height=256, num_frames=33, steps=1,
                                             outputs=[generation_pb2.OUTPUT_KIND_LOSSLESS_MKV]).name, 120)
        artifact = job.artifacts[0]
        before = target.memory()
        descriptors = target.open_descriptors()
        target.reset_peak()
        channel = target.new_channel()
        request = video_generation_pb2.DownloadArtifactRequest(name=artifact.name)
        streams = [target.call("DownloadArtifact", request, 120, channel) for _ in range(scale.of(1500))]
        time.sleep(5)
        grown, opened = target.peak() - before, target.open_descriptors() - descriptors
        seen = [f"{len(streams)} downloads of {artifact.size_bytes / MIB:.1f} MiB +{grown / MIB:.0f} MiB, {opened} descriptors"]
        for stream in streams:
            stream.cancel()
        channel.close()
        expect(grown < 1024 * MIB and opened < 200, seen[-1])

        target.reset_peak()
        image = create_request(target, field(4, bytes(60 * MIB)))
        with concurrent.futures.ThreadPoolExecutor(scale.of(30)) as pool:
            codes = [future.result()[0].name for future in
                     [pool.submit(code_of, lambda: target.call("CreateJob", image, 120)) for _ in range(scale.of(30))]]
        grown = target.peak() - before
        seen.append(f"{len(codes)} requests {'/'.join(sorted(set(codes)))} +{grown / MIB:.0f} MiB")
        expect("OK" not in codes and grown < 1024 * MIB, seen[-1])
        await_true(lambda: target.memory() - before < 256 * MIB, 15, "memory is given back")
        target.expect_healthy()
        seen.append(f"{(target.memory() - before) / MIB:.0f} MiB kept")
    return ", ".join(seen)


def full_disk(_):
    """a server on a full disk starts, lists and serves the videos of before, and refuses new jobs with
    RESOURCE_EXHAUSTED or UNAVAILABLE"""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, check=False).returncode:
        raise CannotRun("this user cannot mount a file system of its own")
    with Server() as target:
        name = target.await_end(target.create().name).name
        target.stop()
        # Make a file system of 12 MiB that has the data, including the ballast, and no free space.
        script = ('d=$(mktemp -d) && cp -r "$0"/. "$d" && mount -t tmpfs -o size=12m tmpfs "$0" && cp -r "$d"/. "$0" && '
                  'rm -r "$d" && (cat /dev/zero > "$0/full" 2>/dev/null; true) && exec "$@"')
        target.prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, target.data]
        target.start(await_ready=False)
        job = target.job(name)
        expect(job.state == generation_pb2.JOB_STATE_COMPLETED, "the job of before is there")
        request = video_generation_pb2.DownloadArtifactRequest(name=job.artifacts[0].name)
        size = sum(len(chunk.data) for chunk in target.call("DownloadArtifact", request))
        expect(size == job.artifacts[0].size_bytes, "its video can be fetched")
        await_true(target._is_ready, 30, "the model is ready")
        code, details = code_of(target.create)
        expect(code in (CODE.RESOURCE_EXHAUSTED, CODE.UNAVAILABLE), f"a new job is refused, not {code.name} ({details})")
        return f"started, a video of {size} bytes was fetched, a new job is {code.name}"


def damaged_row(_):
    """with one damaged row of jobs the server starts, the log names the row, and all else works"""
    with Server() as target:
        names = [target.await_end(target.create(request_id=f"r{i}").name).name for i in range(5)]
        target.stop()
        with sqlite3.connect(target.data / "jobs.db") as database:
            columns = database.execute("PRAGMA table_info(jobs)").fetchall()
            # Replace every blob of the row by garbage.
            blobs = [column[1] for column in columns if column[2].upper() == "BLOB"]
            identity = names[2].split("/")[1]
            keys = [column[1] for column in columns if column[1] in ("id", "name")]
            value = identity if keys[0] == "id" else names[2]
            changed = database.execute(f"UPDATE jobs SET {', '.join(f'{blob} = ?' for blob in blobs)} WHERE {keys[0]} IN (?, ?)",
                                       [b"\xff\xff\xff garbage"] * len(blobs) + [value, names[2]]).rowcount
        database.close()
        expect(changed == 1, "the attack finds its row")
        target.start()
        listed = [job.name for job in target.jobs()]
        expect(set(names) - set(listed) <= {names[2]}, f"the other jobs are listed: {listed}")
        expect(any(identity in line for line in target.log_lines()), "the log names the row")
        target.expect_healthy()
        return f"{len(listed)} of 5 jobs listed, the log names the damaged one"


def not_protobuf(scale):
    """requests that do not parse are INVALID_ARGUMENT, every line of the log is JSON, and lines are limited in rate but
    for those of the audit"""
    chooser = random.Random(1)
    codes = {}
    count = scale.of(1000)
    with Server() as target:
        for _ in range(count):
            # The field has a length that exceeds the message.
            request = bytes([10, 100]) + chooser.randbytes(chooser.randrange(40))
            code = code_of(lambda: target.call(chooser.choice(["CreateJob", "GetJob", "CancelJob"]), request))[0]
            codes[code.name] = codes.get(code.name, 0) + 1
        target.expect_healthy()
        lines = target.log_lines()
        broken = [line for line in lines if not is_json(line)]
        expect(not broken, f"{len(broken)} of {len(lines)} lines are not JSON, the first is: {broken[:1]}")
        # The audit log has an entry for every call that would change something, however the call ends.
        lines = [line for line in lines if json.loads(line)["message"] != "audit"]
        expect(len(lines) < 200, f"{len(lines)} lines for {count} requests, without those of the audit log")
        expect(set(codes) == {"INVALID_ARGUMENT"}, f"the codes are {codes}")
        return f"{codes}, {len(lines)} lines of log without those of the audit"


def is_json(line):
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def outputs_of_wanctl(_):
    """wanctl refuses an output that it cannot write, or that is not a regular file, before it makes a job (exit code 2)"""
    with Server() as target, tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "fifo.mp4")
        os.mkfifo(fifo)
        device = os.path.join(folder, "device.mp4")
        os.symlink("/dev/null", device)
        for output in (fifo, device, "/proc/a.mp4", os.path.join(folder, "none", "a.mp4"), os.path.join(folder, "a" * 251 + ".mp4")):
            done = subprocess.run([server.BUILD / "bin/wanctl", "--server", target.grpc, "generate", "--model", "m",
                                   "--prompt", "a", "--output", output], capture_output=True, timeout=60, check=False)
            expect(done.returncode == 2, f"{output}: exit code {done.returncode}, {done.stderr.decode()[-100:]}")
        expect(not target.jobs(), "no job was made")
        expect(stat.S_ISFIFO(os.stat(fifo).st_mode) and os.path.islink(device), "nothing was replaced")
        output = os.path.join(folder, "a.mp4")
        pathlib.Path(output).write_text("old", encoding="utf-8")
        done = subprocess.run([server.BUILD / "bin/wanctl", "--server", target.grpc, "generate", "--model", "m",
                               "--prompt", "a", "--output", output], capture_output=True, timeout=60, check=False)
        expect(done.returncode == 0 and pathlib.Path(output).read_text(encoding="utf-8") != "old", "a regular file is replaced")
        return "5 outputs refused with exit code 2 and no job, a regular file replaced"


ATTACKS = {
    "a-many-values": many_values,
    "b-many-states": many_valid_states,
    "c-descriptors": no_descriptors,
    "d-poison": poison,
    "d-memory-group": memory_group,
    "e-warm-up": warm_up,
    "f-slow-scrapers": slow_scrapers,
    "g-bytes-in-flight": bytes_in_flight,
    "h-full-disk": full_disk,
    "i-damaged-row": damaged_row,
    "j-not-protobuf": not_protobuf,
    "k-outputs": outputs_of_wanctl,
}
