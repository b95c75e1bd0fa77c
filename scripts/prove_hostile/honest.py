"""The honest callers, in a separate process: they do what everybody else does during an attack, and measure how long it takes."""

import http.client
import json
import os
import sys
import threading
import time

import grpc
from wan.v1 import video_generation_pb2

from prove_hostile import http2, pictures
from prove_hostile.measures import LIMITS, Calls
from prove_hostile.place import form

# A call that takes longer has failed. The time exceeds every limit, and is short enough to end with the siege.
PATIENCE = 10
SERVING = b"\x08\x01"  # grpc.health.v1.HealthCheckResponse


class Wrong(Exception):
    """An answer that is not what an honest caller expects."""


def be_prompt():
    """The measure is to be the server's, so its clients go before the attackers, and before other work where root allows it."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    except PermissionError:
        pass
    sys.setswitchinterval(0.0005)


class Caller:
    """A thread with its own connection that does one thing at a steady pace."""

    def __init__(self, place, every, act):
        self.place = place
        self.channel = place.channel()
        self.calls = {}
        self._every = every
        self._act = act

    def run(self, stop):
        turn = time.monotonic()
        while not stop.wait(max(0.0, turn - time.monotonic())):
            # Do not make up for turns that were missed.
            turn = max(turn + self._every, time.monotonic())
            try:
                self._act(self)
            except Wrong:
                pass  # counted by timed()
        self.channel.close()

    def timed(self, kind, call):
        """What the call returns. Counts its time, or its failure, which is a Wrong."""
        calls = self.calls.setdefault(kind, Calls())
        start = time.monotonic()
        try:
            answer = call()
        except grpc.RpcError as error:
            calls.failed(f"{error.code().name} {(error.details() or '')[:120]}")
            raise Wrong from error
        except (OSError, http.client.HTTPException) as error:
            calls.failed(f"{type(error).__name__} {str(error)[:120]}")
            raise Wrong from error
        except Wrong as error:
            calls.failed(str(error))
            raise
        calls.milliseconds.append((time.monotonic() - start) * 1000)
        return answer

    def grpc(self, method, request, principal="alice"):
        return self.place.call(self.channel, method, request, principal, PATIENCE)

    def http(self, method, path, principal="alice", body=None, **fields):
        status, answer = self.place.ask(method, path, principal, body, PATIENCE, **fields)
        if status != 200:
            raise Wrong(f"{status} {answer[:120]!r}")
        return answer


def health(caller):
    stub = caller.channel.unary_unary("/grpc.health.v1.Health/Check", lambda data: data, lambda data: data)

    def check():
        if stub(b"", timeout=PATIENCE) != SERVING:
            raise Wrong("not SERVING")
    caller.timed("health", check)


def new_health(caller):
    def check():
        place = caller.place
        if http2.ask_once(place.grpc, "/grpc.health.v1.Health/Check", b"", timeout=PATIENCE, tls=place.tls("h2")) != SERVING:
            raise Wrong("not SERVING, or refused")
    caller.timed("health, new connection", check)


def probes(caller):
    for path in ("livez", "readyz"):
        def probe(asked=path):
            connection = caller.place.http_connection(caller.place.metrics, PATIENCE)
            try:
                connection.request("GET", f"/{asked}")
                answer = connection.getresponse()
                answer.read()
            finally:
                connection.close()
            if answer.status != 200:
                raise Wrong(f"{answer.status}")
        try:
            caller.timed(path, probe)
        except Wrong:
            pass  # ask the other one all the same


def get_job(caller):
    request = video_generation_pb2.GetJobRequest(name=caller.place.facts["honest job"])
    caller.timed("GetJob", lambda: caller.grpc("GetJob", request))


def video_of(job):
    return "video_" + job.removeprefix("jobs/")


def get_video(caller):
    path = f"/v1/videos/{video_of(caller.place.facts['honest job'])}"
    caller.timed("GET video", lambda: caller.http("GET", path))


def cancel(caller, name, principal, kind="CancelJob"):
    request = video_generation_pb2.CancelJobRequest(name=name)
    caller.timed(kind, lambda: caller.grpc("CancelJob", request, principal))


def picture_of(place):
    """Returns a picture that is at least as large as the attack needs, so that callers notice it."""
    return pictures.honest(place.fake).ljust(place.facts["honest picture bytes"], b"\0")


# The job would run for a while, so that there is something to cancel; it never gets far.
LONG = {"steps": 200}


def create_and_cancel(caller):
    request = caller.place.create_request(**LONG)
    job = caller.timed("CreateJob", lambda: caller.grpc("CreateJob", request))
    cancel(caller, job.name, "alice")


def create_with_picture(caller):
    request = caller.place.create_request(image=picture_of(caller.place), **LONG)
    job = caller.timed("CreateJob", lambda: caller.grpc("CreateJob", request, "bob"))
    cancel(caller, job.name, "bob")


def post_picture(caller):
    place = caller.place
    size = {"size": "64x32"} if place.fake else {"size": "64x64", "num_frames": 5}
    body, kind = form({"model": place.model, "prompt": "a red circle", "num_inference_steps": 200, **size},
                      picture_of(place))
    answer = caller.timed("POST video", lambda: caller.http("POST", "/v1/videos", "bob", body, Content_Type=kind))
    cancel(caller, "jobs/" + json.loads(answer)["id"].removeprefix("video_"), "bob")


def list_jobs(caller):
    caller.timed("ListJobs", lambda: caller.grpc("ListJobs", video_generation_pb2.ListJobsRequest(page_size=20), "bob"))


def watch(caller):
    def first_event():
        stream = caller.grpc("WatchJob", video_generation_pb2.WatchJobRequest(name=caller.place.facts["honest job"]))
        next(stream)
        stream.cancel()
    caller.timed("WatchJob", first_event)


def download(caller):
    facts = caller.place.facts
    request = video_generation_pb2.DownloadArtifactRequest(name=facts["honest file"])

    def fetch():
        if sum(len(piece.data) for piece in caller.grpc("DownloadArtifact", request)) != facts["honest bytes"]:
            raise Wrong("another number of bytes")
    caller.timed("DownloadArtifact", fetch)


def get_content(caller):
    facts = caller.place.facts
    path = f"/v1/videos/{video_of(facts['honest job'])}/content"

    def fetch():
        if len(caller.http("GET", path)) != facts["honest bytes"]:
            raise Wrong("another number of bytes")
    caller.timed("GET content", fetch)


# The seconds between two calls of each kind.
PACE = [(0.05, health), (0.2, new_health), (0.1, probes), (0.05, get_job), (0.1, get_video), (0.5, create_and_cancel),
        (1, create_with_picture), (1, post_picture), (1, list_jobs), (0.5, watch), (1, download), (1, get_content)]


def main(place, stop, results):
    """Runs until `stop` is set; then puts the calls, by kind, into `results`."""
    be_prompt()
    callers = [Caller(place, every, act) for every, act in PACE]
    threads = [threading.Thread(target=caller.run, args=(stop,)) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = {}
    for caller in callers:
        for kind, calls in caller.calls.items():
            known = whole.setdefault(kind, Calls())
            known.milliseconds += calls.milliseconds
            for text, often in calls.failures.items():
                known.failures[text] = known.failures.get(text, 0) + often
    assert set(whole) <= set(LIMITS), set(whole) - set(LIMITS)
    results.put(whole)
