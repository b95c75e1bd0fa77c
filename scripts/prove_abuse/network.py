"""Peers that vanish without a word, and the HTTP front. Each docstring says what is wanted."""

import ctypes
import http.client
import json
import os
import random
import socket
import struct
import threading
import time

import grpc
from wan.v1 import generation_pb2, video_generation_pb2

from prove_abuse.attacks import connections, raise_own_descriptors
from prove_abuse.server import ENDED, MIB, Server, await_true, expect

RUNNING = generation_pb2.JOB_STATE_RUNNING
SO_ATTACH_FILTER = 26


def go_deaf(descriptor):
    """The kernel drops all that comes for the socket from now on, so that nothing is acknowledged: to its peer the machine is
    gone."""
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0 bytes
    program = struct.pack("HL", 1, ctypes.addressof(drop_all))
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def own_connections_to(address):
    """Returns the descriptors of this process that are connected to the address."""
    port = int(address.rsplit(":", 1)[1])
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.getpeername()[1] == port:
                    found.append(int(name))
        except OSError:
            pass  # not a socket, or not connected
    return found


def half_open(scale):
    """when the machines of 150 watchers and of 150 callers of HTTP and metrics vanish without a word, nothing of them is left in
    the server within 75 s, and others are served meanwhile"""
    raise_own_descriptors()
    count = scale.of(150)
    flags = ["--heartbeat-interval", "1", "--http-listen", "127.0.0.1:0"]
    with Server(flags=flags, environment={"WAN_FAKE_HOLD": "Step_2_Inference"}) as target:
        held = target.create().name
        await_true(lambda: target.job(held).state == RUNNING, 30, "a job is held")
        before = target.open_descriptors()
        channels, streams = [], []
        for _ in range(count):
            channels.append(target.new_channel())
            streams.append(target.call("WatchJob", video_generation_pb2.WatchJobRequest(name=held), 600, channels[-1]))
            next(streams[-1])
        own = set(own_connections_to(target.grpc))
        silent = connections(target.http, count // 3) + connections(target.metrics, count // 3)
        silent += connections(target.http, count // 3, b"POST /v1/videos HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
        opened = target.open_descriptors() - before
        expect(opened >= count, f"the connections are there: {opened}")
        for descriptor in own | {connection.fileno() for connection in silent}:
            go_deaf(descriptor)
        asked = []

        def is_free():
            start = time.monotonic()
            with target.new_channel() as channel:
                target.call("GetJob", video_generation_pb2.GetJobRequest(name=held), 5, channel)
            asked.append(time.monotonic() - start)
            return target.open_descriptors() <= before + 10

        took = await_true(is_free, 75, "the server lets go of them")
        for stream in streams:
            stream.cancel()
        for connection in silent:
            connection.close()
        for channel in channels:
            channel.close()
        return f"{opened} descriptors given back after {took:.0f} s; a call beside them took at most {max(asked):.2f} s"


def ask(address, method, path, body=None, fields=None, timeout=20):
    """Returns the status, the fields and the body of an answer."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request(method, path, body, fields or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def http_front(scale):
    """beside 300 slow connections and 50 downloads that nobody reads, requests of HTTP are answered within 2 s; 1,000 wrong
    ones get 4xx with a typed JSON error; the server grows by less than 128 MiB, and all connections are closed at the end"""
    raise_own_descriptors()
    chooser = random.Random(7)
    flags = ["--http-listen", "127.0.0.1:0", "--queue-capacity", "2000", "--max-connections", "2000",
             "--max-connections-per-address", "1000"]
    with Server(flags=flags, environment={"WAN_FAKE_OUTPUT_BYTES": str(8 * MIB)}) as target:
        good = json.dumps({"model": "m", "prompt": "a cat"}).encode()
        form = {"Content-Type": "application/json"}
        status, _, body = ask(target.http, "POST", "/v1/videos", good, form)
        expect(status == 200, f"a video is accepted, not {status}: {body[:200]!r}")
        video = json.loads(body)["id"]
        target.await_end("jobs/" + video.removeprefix("video_"))
        before, memory = target.open_descriptors(), target.memory()
        slow = connections(target.http, scale.of(150), b"GET /v1/vid")
        slow += connections(target.http, scale.of(150), b"POST /v1/videos HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n"
                            b"Content-Type: application/json\r\n\r\n{")
        path = f"/v1/videos/{video}/content"
        unread = connections(target.http, scale.of(50), f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        stop = threading.Event()

        def trickle():
            while not stop.wait(1):
                for connection in slow:
                    try:
                        connection.send(b"x")
                    except OSError:
                        pass  # the server has closed the connection

        threading.Thread(target=trickle, daemon=True).start()
        longest, statuses = 0, {}
        bodies = [b"", b"{", b"[]", b"null", b'{"model": 7}', b'{"model": "m"}', b'{"model": "m", "prompt": "a", "size": "9x9"}',
                  b'{"model": "m", "prompt": "a", "surprise": 1}', b"\xff\xfe", b"[" * 10_000, b'{"a":' * 2_000]
        types = ["application/json", "multipart/form-data", "multipart/form-data; boundary=b", "text/plain", ""]
        paths = ["/v1/videos", "/v1/videos/video_0", f"/v1/videos/{'x' * 2000}", "/v1/videos?limit=0", "/v1/videos?after=%00",
                 "/index.html", "/v1/videos/../../etc/passwd", "/v1/models/none", f"{path}?variant=none"]
        for _ in range(scale.of(1000)):
            method = chooser.choice(["POST", "POST", "GET", "DELETE", "PUT"])
            asked = paths[0] if method == "POST" else chooser.choice(paths[1:])
            start = time.monotonic()
            status, fields, body = ask(target.http, method, asked, chooser.choice(bodies) if method == "POST" else None,
                                       {"Content-Type": chooser.choice(types)})
            longest = max(longest, time.monotonic() - start)
            statuses[status] = statuses.get(status, 0) + 1
            expect(400 <= status < 500, f"{method} {asked[:60]} is the caller's error, not {status}: {body[:100]!r}")
            expect(fields.get("Content-Type") == "application/json", f"{method} {asked[:60]} is answered with JSON")
            error = json.loads(body)["error"]
            expect(error["message"] and error["type"] and error["code"], f"{method} {asked[:60]} has a typed error")
        expect(longest <= 2, f"a request beside the slow ones took {longest:.1f} s")
        status, _, body = ask(target.http, "POST", "/v1/videos", good, form)
        expect(status == 200, f"a video is accepted beside them, not {status}")
        name = "jobs/" + json.loads(body)["id"].removeprefix("video_")
        await_true(lambda: target.job(name).state in ENDED, 30, "it ends")
        grown = target.memory() - memory
        expect(grown < 128 * MIB, f"the server grew by {grown / MIB:.0f} MiB")
        stop.set()
        for connection in slow + unread:
            connection.close()
        await_true(lambda: target.open_descriptors() <= before + 10, 30, "their connections are closed")
        counts = ", ".join(f"{count} of {status}" for status, count in sorted(statuses.items()))
        return f"{counts}; the longest took {longest:.2f} s, the server grew by {grown / MIB:.0f} MiB"


ATTACKS = {
    "half-open": half_open,
    "http-front": http_front,
}
