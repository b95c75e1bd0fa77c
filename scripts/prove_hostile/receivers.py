"""A receiver of webhooks that does not answer."""

import base64
import contextlib
import http.server
import socket
import tempfile
import threading
import time

from wan.v1 import video_generation_pb2

from prove_hostile.registry import attack
from prove_hostile.siege import run_siege

# An attempt takes 30 s at most, and alice's report may wait for those of a host of which nothing was known yet.
LONGEST = 35


class Receiver:
    """Receives webhooks, and records when each came."""

    def __init__(self):
        self.came = {}
        arrived = self.came

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                arrived.setdefault(self.headers["webhook-id"], time.monotonic())
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def end_job(call, place, caller, url):
    """Makes a job and cancels it; returns the job's name and the time."""
    job = call("CreateJob", place.create_request(webhook_url=url), caller)
    call("CancelJob", video_generation_pb2.CancelJobRequest(name=job.name), caller)
    return job.name, time.monotonic()


def reports_to_the_dead(place):
    channel = place.channel()

    def call(method, request, caller):
        return place.call(channel, method, request, caller)

    for _ in range(24):
        end_job(call, place, "eve", place.facts["dead"])
    while True:
        end_job(call, place, "eve", place.facts["dead"])
        time.sleep(0.5)


def waits_for_reports(receiver):
    """A witness: lets a job of alice end every two seconds, and measures how long the reports take."""
    def witness(target, place, seconds):
        ended = {}
        end = time.monotonic() + seconds

        def call(method, request, caller):
            return target.call(method, request, caller=caller)

        time.sleep(1)  # let the reports of eve come first
        while time.monotonic() < end:
            name, when = end_job(call, place, "alice", f"http://{receiver.address}/")
            ended["msg_" + name.removeprefix("jobs/")] = when
            time.sleep(2)
        while set(ended) - set(receiver.came) and time.monotonic() < max(ended.values()) + LONGEST:
            time.sleep(0.1)
        waits = [receiver.came[identity] - when for identity, when in ended.items() if identity in receiver.came]
        missing = len(ended) - len(waits)
        problems = [f"{missing} of {len(ended)} reports of alice had not come after {LONGEST} s"] if missing else []
        if waits and max(waits) > LONGEST:
            problems.append(f"a report of alice took {max(waits):.1f} s, limit {LONGEST}")
        return [f"reports of alice took {max(waits):.1f} s at most" if waits else "no report of alice came"], problems
    return witness


@contextlib.contextmanager
def webhook_flags(*hosts):
    """Returns the flags of a server that may report to these hosts of this machine."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as secret:
        secret.write("whsec_" + base64.b64encode(bytes(32)).decode())
        secret.flush()
        allowed = [part for host in hosts for part in ("--webhook-host", host)]
        yield [*allowed, "--webhook-secret", secret.name, "--webhook-http", "true", "--webhook-private", "true"]


@attack("dead-receiver")
def dead_receiver(options, tokens):
    """beside a receiver of webhooks that does not answer, the reports of others come within 35 s, the time of one attempt"""
    receiver = Receiver()
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as silent:
        dead = f"localhost:{silent.getsockname()[1]}"
        try:
            with webhook_flags(dead, receiver.address) as flags:
                return run_siege(options, tokens, [reports_to_the_dead], flags=flags, witness=waits_for_reports(receiver),
                                 late=lambda target: {"dead": f"http://{dead}/"})
        finally:
            receiver.close()
