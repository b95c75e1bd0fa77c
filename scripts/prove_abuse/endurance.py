"""Attacks that the server has always held. Each docstring says what is wanted."""

import hashlib
import itertools
import random
import shutil
import struct
import tempfile
import threading
import time

import grpc
from wan.v1 import generation_pb2, video_generation_pb2

from prove_abuse import server
from prove_abuse.attacks import connections, raise_own_descriptors
from prove_abuse.png import png
from prove_abuse.server import MIB, Server, await_true, code_of, expect

CODE = grpc.StatusCode
COMPLETED = generation_pb2.JOB_STATE_COMPLETED


SEEDS = 4


def events_of(target, name):
    return list(target.call("WatchJob", video_generation_pb2.WatchJobRequest(name=name)))


def expect_honest(events, name):
    """Checks the events of a job: sequences without a gap, one end, and no step backwards without Requeued or Resumed."""
    sequences = [event.sequence for event in events if event.sequence]
    expect(sequences == list(range(1, len(sequences) + 1)), f"the events of {name} have no hole: {sequences}")
    kinds = [event.WhichOneof("kind") for event in events]
    ends = sum(kind in ("completed", "failed", "cancelled") for kind in kinds)
    expect(ends == 1, f"{name} has one end, not {ends}")
    step = 0
    for event, kind in zip(events, kinds):
        if kind == "requeued":
            step = 0
        elif kind == "resumed":
            step = event.resumed.step
        elif kind == "step_progress":
            expect(event.step_progress.step == step + 1, f"step {event.step_progress.step} of {name} follows {step}")
            step += 1
    return kinds


def tear_savepoint(target, chooser):
    """Damages a savepoint as a torn write would. Returns whether there was one."""
    folder = target.data / "savepoints"
    files = sorted(path for path in folder.iterdir() if path.stat().st_size) if folder.is_dir() else []
    if not files:
        return False
    path = chooser.choice(files)
    content = bytearray(path.read_bytes())
    if chooser.random() < 0.5:
        del content[chooser.randrange(len(content)):]
    else:
        content[chooser.randrange(len(content))] ^= 1 << chooser.randrange(8)
    path.write_bytes(content)
    return True


def kills(scale):
    """200 times kill -9 at any moment, every third time with a torn savepoint: each of 150 accepted jobs ends once, with the
    bits of an undisturbed run, and its events have no hole"""
    chooser = random.Random(2)
    count, jobs = scale.of(200), scale.of(150)
    accepted, torn, resumed = {}, 0, 0
    outputs = [generation_pb2.OUTPUT_KIND_MP4, generation_pb2.OUTPUT_KIND_LATENTS]

    def create(number, **fields):
        return target.create(seed=number % SEEDS, steps=24, outputs=outputs, **fields).name

    # Allow many attempts, because a job that is hit by many kills must not end as FAILED here.
    with Server(fake=False, flags=["--max-attempts", "100", "--checkpoint-interval", "0",
                                   "--queue-capacity", "1000"]) as target:
        undisturbed = {}
        for seed in range(SEEDS):
            job = target.await_end(create(seed), 60)
            expect(job.state == COMPLETED, f"an undisturbed job completes ({job.error.message})")
            undisturbed[seed] = [artifact.sha256 for artifact in job.artifacts]
        for kill in range(count):
            share = (kill + 1) * jobs // count
            deadline = time.monotonic() + 60
            while len(accepted) < share:
                number = len(accepted)
                # The same request_id makes no second job, so try again; a server that has just started is loading its model.
                code, details = code_of(lambda: accepted.update({number: create(number, request_id=f"r{number}")}))
                if code == CODE.UNAVAILABLE and time.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
                expect(code == CODE.OK, f"a job is accepted, not {code.name} ({details})")
            time.sleep(chooser.uniform(0, 2.5))
            target.kill()
            if kill % 3 == 0:
                torn += tear_savepoint(target, chooser)
            target.start(await_ready=False)
        for number, name in accepted.items():
            job = target.await_end(name, 600)
            expect(job.state == COMPLETED, f"{name} completes, not {generation_pb2.JobState.Name(job.state)}")
            resumed += "resumed" in expect_honest(events_of(target, name), name)
            expect([artifact.sha256 for artifact in job.artifacts] == undisturbed[number % SEEDS],
                   f"{name} has the bits of an undisturbed run")
            digest = hashlib.sha256()
            request = video_generation_pb2.DownloadArtifactRequest(name=job.artifacts[0].name)
            for chunk in target.call("DownloadArtifact", request):
                digest.update(chunk.data)
            expect(digest.hexdigest() == job.artifacts[0].sha256, f"the file of {name} is whole")
        expect(len(target.jobs()) == len(set(accepted.values())) + SEEDS, "there are no other jobs")
        leftovers = list((target.data / "savepoints").iterdir())
        expect(not leftovers, f"no savepoint is left: {leftovers}")
        return (f"{count} kills, {torn} torn savepoints, {len(accepted)} jobs, each ended once with the bits of an undisturbed "
                f"run, {resumed} of them from a savepoint")


def watches(scale):
    """10,000 watches opened and dropped leave neither memory (32 MiB) nor descriptors (20) behind"""
    count = scale.of(10_000)
    with Server(environment={"WAN_FAKE_HOLD": "T5_Encoding"}) as target:
        name = target.create().name
        request = video_generation_pb2.WatchJobRequest(name=name)

        def round_of(watchers):
            channel = target.new_channel()
            streams = [target.call("WatchJob", request, 60, channel) for _ in range(watchers)]
            next(streams[0])
            for stream in streams:
                stream.cancel()
            channel.close()

        round_of(500)
        memory, descriptors = target.memory(), target.open_descriptors()
        for _ in range(max(1, count // 500)):
            round_of(500)
        await_true(lambda: target.open_descriptors() <= descriptors + 20, 10, "the descriptors are closed")
        grown = target.memory() - memory
        expect(grown < 32 * MIB, f"the server grew by {grown / MIB:.0f} MiB")
        return f"{count} watches, the server grew by {grown / MIB:.1f} MiB"


def idle_connections(scale):
    """beside 3,000 idle connections a client of another address is served within 2 s, and afterwards all is well"""
    raise_own_descriptors()
    with Server() as target:
        memory = target.memory()
        idle = connections(target.grpc, scale.of(3000))
        # All of 127.0.0.0/8 is this machine; use another address, because limits hold for each address.
        start = time.monotonic()
        with grpc.insecure_channel(target.grpc) as channel:
            code = code_of(lambda: target.call("ListJobs", b"", 10, channel))[0]
        took = time.monotonic() - start
        grown = target.memory() - memory
        for connection in idle:
            connection.close()

        def served():
            with target.new_channel() as channel:
                return code_of(lambda: target.call("ListJobs", b"", 1, channel))[0] == CODE.OK

        after = await_true(served, 2, "a new client is served after their end")
        target.expect_healthy()
        return (f"{len(idle)} connections, a client beside them got {code.name} in {took:.2f} s, one after them was served in "
                f"{after:.2f} s, the server grew by {grown / MIB:.0f} MiB")


def lists(scale):
    """5,000 ListJobs at once are all answered, with OK or RESOURCE_EXHAUSTED"""
    count = scale.of(5000)
    with Server() as target:
        for i in range(20):
            target.create(request_id=f"r{i}")
        channels = [target.new_channel() for _ in range(8)]
        method = [channel.unary_unary("/wan.v1.VideoGeneration/ListJobs", lambda b: b, lambda b: b) for channel in channels]
        futures = [method[i % 8].future(b"", timeout=120) for i in range(count)]
        codes = {}
        for future in futures:
            name = future.code().name
            codes[name] = codes.get(name, 0) + 1
        for channel in channels:
            channel.close()
        expect(set(codes) <= {"OK", "RESOURCE_EXHAUSTED"}, f"the codes are {codes}")
        target.expect_healthy()
        return f"{codes}"


def random_requests(scale):
    """2,500 random requests are answered without INTERNAL, UNKNOWN or a lost connection"""
    chooser = random.Random(3)
    count = scale.of(2500)
    codes = {}
    whole = [2, 3, 16, 63, 64, 65, 96, 100, 4096, 4097, -1, 0, 2**31 - 1, -2**31]
    number = [0, 1, 5, -1, 1e308, float("nan"), float("inf"), 5e-324]
    text = ["", "a red circle", "\u732b\n" * 50, "x" * 100_000, "\x00", "\u202e"]
    with Server(fake=False) as target:
        names = ["", "jobs/", "jobs/none", "models/demo", "../../etc/passwd", target.create().name]
        for _ in range(count):
            if chooser.random() < 0.5:
                values = {}
                for key, pool in (("width", whole), ("height", whole), ("num_frames", whole), ("steps", [1, 2, 0, -1, 10**6]),
                                  ("fps", whole), ("shift", number), ("prompt", text), ("negative_prompt", text),
                                  ("priority", whole), ("model", ["demo", "none", ""]), ("image", [b"", b"\x89PNG", chooser.randbytes(99)]),
                                  ("preview_interval", whole), ("solver", [0, 1, 2, 3, 77]), ("outputs", [[1], [2, 3], [9], []])):
                    if chooser.random() < 0.3:
                        values[key] = chooser.choice(pool)
                call = lambda: target.call("CancelJob", video_generation_pb2.CancelJobRequest(name=target.create(**values).name))
            else:
                method = chooser.choice(["GetJob", "CancelJob", "GetReport", "ListJobs"])
                request = {"GetJob": lambda: video_generation_pb2.GetJobRequest(name=chooser.choice(names)),
                           "CancelJob": lambda: video_generation_pb2.CancelJobRequest(name=chooser.choice(names)),
                           "GetReport": lambda: video_generation_pb2.GetReportRequest(job=chooser.choice(names)),
                           "ListJobs": lambda: video_generation_pb2.ListJobsRequest(
                               page_size=chooser.choice(whole), page_token=chooser.choice(text), states=[chooser.choice([0, 1, 9])])}[method]()
                call = lambda: target.call(method, request)
            code, details = code_of(call)
            codes[code.name] = codes.get(code.name, 0) + 1
            expect(code not in (CODE.INTERNAL, CODE.UNKNOWN, CODE.UNAVAILABLE), f"{code.name} ({details})")
        target.expect_healthy()
    return f"{codes}"


def corrupted_databases(scale):
    """60 corrupted databases: the server starts and answers, or says why it does not with exit code 1; it never crashes"""
    chooser = random.Random(4)
    outcomes = {"started": 0, "refused": 0}
    with Server() as target:
        for i in range(10):
            target.await_end(target.create(request_id=f"r{i}").name)
        target.stop()
        whole = tempfile.mkdtemp(prefix="wan_prove_whole_")
        shutil.copytree(target.data, whole, dirs_exist_ok=True)
        try:
            for _ in range(scale.of(60)):
                shutil.rmtree(target.data)
                shutil.copytree(whole, target.data)
                path = target.data / "jobs.db"
                data = bytearray(path.read_bytes())
                for _ in range(chooser.choice([1, 10, 1000])):
                    data[chooser.randrange(len(data))] = chooser.randrange(256)
                if chooser.random() < 0.3:
                    data = data[:chooser.randrange(len(data))]
                path.write_bytes(data)
                try:
                    target.start(await_ready=False)
                except server.NotHeld:
                    code = target.process.wait(10)
                    expect(code == 1, f"the exit code is {code}")
                    outcomes["refused"] += 1
                    target.process.stdout.close()
                    continue
                outcomes["started"] += 1
                code, details = code_of(target.jobs)
                expect(code in (CODE.OK, CODE.DATA_LOSS, CODE.INTERNAL), f"ListJobs is {code.name} ({details})")
                expect(target.process.poll() is None, "the server is alive")
                target.kill()
        finally:
            shutil.rmtree(whole)
    return f"{outcomes}"


def image_bombs(scale):
    """30 images that unpack to gigabytes are INVALID_ARGUMENT, and the server grows by less than 400 MiB"""
    chooser = random.Random(5)
    sizes = [(60_000, 60_000), (2**31 - 1, 1), (20_000, 20_000), (1, 2**31 - 1), (9_000, 9_000)]
    # The image has enough rows to be expensive to decode; only the header says how many there should be.
    bombs = [png(width, height, most_rows=3000) if width < 10**6 else
             png(60, 60)[:16] + struct.pack(">II", width, height) + png(60, 60)[24:] for width, height in sizes]
    count = scale.of(30)
    with Server(fake=False) as target:
        memory = target.memory()
        target.reset_peak()
        for i in range(count):
            bomb = bytearray(bombs[i % len(bombs)])
            if i >= len(bombs):
                bomb[chooser.randrange(33, len(bomb))] ^= 1
            code, details = code_of(lambda: target.create(image=bytes(bomb)))
            expect(code == CODE.INVALID_ARGUMENT, f"bomb {i} is {code.name} ({details})")
        grown = target.peak() - memory
        expect(grown < 400 * MIB, f"the server grew by {grown / MIB:.0f} MiB")
        target.expect_healthy()
        return f"{count} bombs refused, the server grew by {grown / MIB:.0f} MiB"


def mixed_load(scale):
    """jobs, watches, lists, downloads, cancels, wrong requests and scrapes at once for the given minutes: no call ends
    badly, and after the first fifth memory grows by less than 10 % and 64 MiB, and descriptors and threads by less than 32"""
    end = time.monotonic() + scale.minutes * 60
    bad, calls = [], itertools.count()
    names = []

    def user(seed):
        chooser = random.Random(seed)
        with target.new_channel() as channel:
            while time.monotonic() < end and not bad:
                next(calls)
                try:
                    kind = chooser.randrange(7)
                    if kind == 0 and len(target.jobs(states=[generation_pb2.JOB_STATE_QUEUED])) < 20:
                        names.append(target.create(seed=chooser.randrange(100)).name)
                    elif kind == 1 and names:
                        for event in target.call("WatchJob", video_generation_pb2.WatchJobRequest(name=chooser.choice(names)), 120, channel):
                            if chooser.random() < 0.1:
                                break
                    elif kind == 2:
                        target.jobs()
                    elif kind == 3 and names:
                        job = target.job(chooser.choice(names), channel)
                        for artifact in job.artifacts:
                            for _ in target.call("DownloadArtifact", video_generation_pb2.DownloadArtifactRequest(name=artifact.name), 60, channel):
                                pass
                    elif kind == 4 and names and chooser.random() < 0.3:
                        target.call("CancelJob", video_generation_pb2.CancelJobRequest(name=chooser.choice(names)), 60, channel)
                    elif kind == 5:
                        code = code_of(lambda: target.create(width=-5, outputs=[9] * 50))[0]
                        expect(code == CODE.INVALID_ARGUMENT, f"a wrong request is {code.name}")
                    else:
                        target.scrape(10)
                        time.sleep(0.2)
                except Exception as error:  # pylint: disable=broad-except
                    bad.append(f"{type(error).__name__}: {str(error)[:200]}")
                time.sleep(0.02)

    with Server(fake=False, flags=["--queue-capacity", "200"]) as target:
        threads = [threading.Thread(target=user, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(scale.minutes * 60 / 5)
        samples = [(target.memory(), target.open_descriptors(), target.threads()) for _ in range(10) if not time.sleep(0.2)]
        early, descriptors, threads_then = (max(column) for column in zip(*samples))
        for thread in threads:
            thread.join()
        expect(not bad, f"a call ended with {bad[:1]}")
        late = target.memory()
        expect(late <= early * 1.1 + 64 * MIB, f"memory went from {early / MIB:.0f} to {late / MIB:.0f} MiB")
        open_now, threads_now = target.open_descriptors(), target.threads()
        expect(open_now < descriptors + 32, f"descriptors went from {descriptors} to {open_now}")
        expect(threads_now < threads_then + 32, f"threads went from {threads_then} to {threads_now}")
        for name in names:
            target.await_end(name, 120)
        target.expect_healthy()
        return (f"{next(calls)} calls, {len(names)} jobs in {scale.minutes:g} min, memory {early / MIB:.0f} to {late / MIB:.0f} MiB, "
                f"descriptors {descriptors} to {open_now}, threads {threads_then} to {threads_now}")


ATTACKS = {
    "kills": kills,
    "watches": watches,
    "idle-connections": idle_connections,
    "lists": lists,
    "random-requests": random_requests,
    "corrupt-databases": corrupted_databases,
    "image-bombs": image_bombs,
    "mixed-load": mixed_load,
}
