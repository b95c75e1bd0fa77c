"""Crash consistency: kill -9 under a mixed load through both fronts."""

import json
import os
import pathlib
import random
import threading
import time

import grpc
from wan.v1 import generation_pb2, video_generation_pb2

from prove_abuse import server
from prove_abuse.disk import download
from prove_abuse.endurance import events_of, expect_honest
from prove_abuse.server import ENDED, NotHeld, await_true, code_of
from prove_hostile.histories import Watchers, differences
from prove_hostile.place import form
from prove_hostile.receivers import Receiver, webhook_flags
from prove_hostile.registry import Row, attack
from prove_hostile.siege import place_of, victim

CODE = grpc.StatusCode
COMPLETED = generation_pb2.JOB_STATE_COMPLETED
SEEDS = 4
OUTPUTS = [generation_pb2.OUTPUT_KIND_MP4, generation_pb2.OUTPUT_KIND_LATENTS]


class Books:
    """Records what the callers were told, to compare it with the server. Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.accepted = {}  # the job of each request_id
        self.seeds = {}  # the seed of each job
        self.cancelled = set()  # jobs whose cancel was answered as done
        self.deleted = set()  # jobs whose delete was answered as done
        self.asked_to_delete = set()  # jobs that may have been deleted
        self.tied = set()  # jobs of Generate, which may end with their caller
        self.doubled = []

    def note(self, request_id, job, seed):
        with self.lock:
            known = self.accepted.setdefault(request_id, job)
            self.seeds[job] = seed
            if known != job and known not in self.asked_to_delete:
                self.doubled.append(f"{request_id} made {known} and {job}")


class Load:
    """Callers over gRPC and HTTP, until the server is killed."""

    def __init__(self, target, books, watchers, url, turn):
        self._target = target
        self._place = place_of(target, {})
        self._books = books
        self._watchers = watchers
        self._url = url
        self._turn = turn
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(random.Random(turn * 10 + caller), caller), daemon=True)
                         for caller in range(4)]
        for thread in self._threads:
            thread.start()

    def end(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(20)

    def _run(self, chooser, caller):
        channel = server.new_channel(self._target.grpc)
        acts = [self._create, self._create, self._post, self._submit, self._generate, self._repeat, self._cancel, self._delete, self._delete_video]
        number = 0
        while not self._stop.is_set():
            number += 1
            if self._is_ahead():
                acts = [self._repeat, self._cancel, self._delete, self._delete_video]
            try:
                chooser.choice(acts)(chooser, channel, f"{caller}-{number}-{chooser.getrandbits(40)}")
            except (grpc.RpcError, OSError, ValueError, NotHeld):
                pass  # it was killed, or the job is one that another caller has deleted
            time.sleep(chooser.uniform(0, 0.1))
        channel.close()

    def _call(self, channel, method, request):
        return self._place.call(channel, method, request, "alice")

    def _known(self, chooser):
        with self._books.lock:
            jobs = sorted(set(self._books.accepted.values()) - self._books.asked_to_delete)
        return chooser.choice(jobs) if jobs else None

    def _request(self, seed, request_id):
        return self._place.request(seed=seed, steps=6, outputs=OUTPUTS, request_id=request_id, webhook_url=self._url,
                                   preview_interval=2)

    def _submit(self, chooser, channel, request_id):
        seeds = [chooser.randrange(SEEDS) for _ in range(3)]
        keys = [f"{request_id}-{i}" for i in range(3)]
        batch = video_generation_pb2.SubmitBatchRequest(requests=[self._request(*pair) for pair in zip(seeds, keys)])
        for key, seed, job in zip(keys, seeds, self._call(channel, "SubmitBatch", batch).jobs):
            self._books.note(key, job.name, seed)

    def _generate(self, chooser, channel, request_id):
        """Watches a job: goes away after some events, or reads to the end."""
        seed, leaves = chooser.randrange(SEEDS), chooser.choice([1, 5, 1000])
        stream = self._call(channel, "Generate", video_generation_pb2.GenerateRequest(request=self._request(seed, request_id)))
        for number, event in enumerate(stream):
            with self._books.lock:
                self._books.tied.add(event.job)
            self._books.note(request_id, event.job, seed)
            if number >= leaves or self._stop.is_set():
                stream.cancel()
                break

    def _create(self, chooser, channel, request_id, seed=None):
        seed = chooser.randrange(SEEDS) if seed is None else seed
        request = video_generation_pb2.CreateJobRequest(request=self._request(seed, request_id))
        job = self._call(channel, "CreateJob", request).name
        self._books.note(request_id, job, seed)
        if chooser.random() < 0.5:
            self._watchers.watch(job)

    def _is_ahead(self):
        """Returns whether to make no job now, so that jobs come no faster than the device ends them."""
        with self._books.lock:
            return len(self._books.seeds) > 8 * (self._turn + 2)

    def _repeat(self, chooser, channel, _):
        with self._books.lock:
            known = [(key, self._books.seeds[job]) for key, job in self._books.accepted.items()
                     if key.count("-") == 2 and job not in self._books.asked_to_delete | self._books.tied]
        if known:
            self._create(chooser, channel, *chooser.choice(known))

    def _post(self, chooser, _, request_id):
        key = "http" + request_id.replace("-", "_")
        size = {"size": "64x64", "num_frames": 5, "num_inference_steps": 6, "seed": chooser.randrange(SEEDS)}
        body, kind = form({"model": self._place.model, "prompt": "a red circle", "webhook_url": self._url, **size})
        status, answer = self._place.ask("POST", "/v1/videos", "alice", body, Content_Type=kind, Idempotency_Key=key)
        if status == 200:
            self._books.note(key, "jobs/" + json.loads(answer)["id"].removeprefix("video_"), None)

    def _cancel(self, chooser, channel, _):
        job = self._known(chooser)
        if job and chooser.random() < 0.1:
            ended = self._call(channel, "CancelJob", video_generation_pb2.CancelJobRequest(name=job))
            if ended.state == generation_pb2.JOB_STATE_CANCELLED:
                with self._books.lock:
                    self._books.cancelled.add(job)

    def _note_delete(self, job):
        with self._books.lock:
            self._books.asked_to_delete.add(job)

    def _delete(self, chooser, channel, _):
        job = self._known(chooser)
        if job and chooser.random() < 0.05 and self._target.job(job, channel).state in ENDED:
            self._note_delete(job)
            self._call(channel, "DeleteJob", video_generation_pb2.DeleteJobRequest(name=job))
            with self._books.lock:
                self._books.deleted.add(job)

    def _delete_video(self, chooser, _, __):
        job = self._known(chooser)
        if job and chooser.random() < 0.03:
            self._note_delete(job)
            status, _ = self._place.ask("DELETE", "/v1/videos/video_" + job.removeprefix("jobs/"), "alice")
            if status == 200:
                with self._books.lock:
                    self._books.deleted.add(job)


def lost(target, books):
    """Returns problems: jobs that the server no longer knows, or knows again."""
    found = list(books.doubled)
    there = {job.name for job in all_jobs(target)}
    with books.lock:
        for job in set(books.accepted.values()):
            if job in there and job not in books.deleted:
                continue
            code, details = code_of(lambda: target.job(job))
            if job in books.deleted and code != CODE.NOT_FOUND:
                found.append(f"{job} was deleted, and is {code.name}")
            elif job not in books.asked_to_delete and code != CODE.OK:
                found.append(f"{job} was accepted, and is {code.name} ({details[:80]})")
    return found


def final_problems(target, books, undisturbed):
    """Call it when all jobs have ended."""
    found = []
    by_request = {}
    listed = {job.name: job for job in all_jobs(target)}
    for job in listed.values():
        if job.request.request_id:
            by_request.setdefault(job.request.request_id, []).append(job.name)
        try:
            expect_honest(events_of(target, job.name), job.name)
        except NotHeld as error:
            found.append(str(error))
        if job.name in books.cancelled and job.state != generation_pb2.JOB_STATE_CANCELLED:
            found.append(f"{job.name} was told to be CANCELLED, and is {generation_pb2.JobState.Name(job.state)}")
        if job.state == generation_pb2.JOB_STATE_FAILED and job.name not in books.tied:
            found.append(f"{job.name} is FAILED: {job.error.message[:100]}")
        for artifact in job.artifacts:
            if not artifact.HasField("delete_time") and download(target, artifact) != artifact.sha256:
                found.append(f"{artifact.name} has another digest")
        seed = books.seeds.get(job.name)
        if job.state == COMPLETED and seed is not None and [a.sha256 for a in job.artifacts] != undisturbed[seed]:
            found.append(f"{job.name} has other bits than an undisturbed run")
    found += [f"{key} has {len(names)} jobs" for key, names in by_request.items() if len(names) > 1]
    return found + orphans(target, listed)


def all_jobs(target):
    jobs, token = [], ""
    while True:
        answer = target.call("ListJobs", video_generation_pb2.ListJobsRequest(page_size=1000, page_token=token))
        jobs += answer.jobs
        token = answer.next_page_token
        if not token:
            return jobs


def orphans(target, listed):
    """Returns problems: files that no job lists, and listed files that are missing."""
    there = {str(path.relative_to(target.data / "artifacts")) for path in pathlib.Path(target.data, "artifacts").rglob("*")
             if path.is_file()}
    promised = {artifact.name.removeprefix("jobs/").replace("/artifacts/", "/") for job in listed.values()
                for artifact in job.artifacts if not artifact.HasField("delete_time")}
    found = [f"{path} belongs to no job" for path in sorted(there - promised)]
    found += [f"{path} is promised and gone" for path in sorted(promised - there)]
    for folder in ("staging", "savepoints"):
        left = os.listdir(target.data / folder) if (target.data / folder).is_dir() else []
        found += [f"{folder} has {name}" for name in left]
    return found


def undisturbed_bits(target):
    bits = {}
    for seed in range(SEEDS):
        job = target.await_end(target.create(caller="alice", seed=seed, steps=6, outputs=OUTPUTS, preview_interval=2).name)
        bits[seed] = [artifact.sha256 for artifact in job.artifacts]
    return bits


@attack("kills", variants=(True,))
def kills(options, tokens):
    """kill -9 at any moment under a load of both fronts with request_ids, cancels, deletes, watchers and webhooks: nothing that was
    accepted is lost or doubled, each job ends once, no event has a hole or changes after it was shown, each file has its
    digest, and no file is left over"""
    chooser = random.Random(41)
    books, watchers, receiver, problems, shown = Books(), Watchers(), Receiver(), [], 0
    with webhook_flags(receiver.address) as flags:
        target = victim(tokens, fake=False, flags=[*flags, "--max-attempts", "100", "--checkpoint-interval", "0"])
        with target:
            undisturbed = undisturbed_bits(target)
            for turn in range(options.kills):
                watchers.attach(target)
                load = Load(target, books, watchers, f"http://{receiver.address}/", turn)
                time.sleep(chooser.uniform(0.3, 2.5))
                ended = target.process.poll()
                problems += [f"the process ended by itself with {ended}"] if ended is not None else []
                target.kill()
                load.end()
                watchers.detach()
                target.start()
                problems += lost(target, books)
                count, changed = differences(target, watchers)
                shown += count
                problems += changed
                if problems:
                    break
            await_true(lambda: not target.jobs(states=[generation_pb2.JOB_STATE_QUEUED, generation_pb2.JOB_STATE_RUNNING]),
                       1800, "all jobs end")
            problems += final_problems(target, books, undisturbed)
            ended = ["msg_" + job.name.removeprefix("jobs/") for job in all_jobs(target) if job.request.webhook_url]
            wait = time.monotonic() + 60
            while set(ended) - set(receiver.came) and time.monotonic() < wait:
                time.sleep(0.2)
            missing = set(ended) - set(receiver.came)
            problems += [f"{len(missing)} of {len(ended)} webhooks never came"] if missing else []
            code, seconds = target.terminate(30)
            problems += [f"SIGTERM ended with {code}"] if code else []
    receiver.close()
    return Row(f"{turn + 1} kills, {len(set(books.accepted.values()))} jobs accepted, {len(books.deleted)} deleted, "
               f"{len(books.cancelled)} cancelled, {shown} events compared, {len(ended)} webhooks, SIGTERM {seconds:.1f} s",
               problems[:5] + [f"{len(problems)} in all"] * (len(problems) > 5))
