"""Attacks with texts that are not UTF-8, and with requests that two readers would read differently."""

import json
import socket

from prove_abuse.server import ENDED, code_of
from prove_hostile.place import form
from prove_hostile.registry import Row, attack
from prove_hostile.siege import place_of, victim

BAD = [b"caf\xe9", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"a\x80b"]


def exchange(place, request):
    """All that the server answers to these bytes until it closes or is silent for a second."""
    host, port = place.http.rsplit(":", 1)
    answer = bytearray()
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request)
        connection.settimeout(1)
        try:
            while data := connection.recv(1 << 16):
                answer += data
        except OSError:
            pass
    return bytes(answer)


def post(place, body, kind, extra=b""):
    header = place.header("POST", "/v1/videos", "alice", Content_Type=kind, Content_Length=len(body), Connection="close")
    return exchange(place, header[:-2] + extra + b"\r\n" + body)


def bad_requests(place):
    """(what is bad about it, its answer) of each."""
    fields = {"model": place.model, "prompt": "a"}
    body = json.dumps(fields).encode()
    for bad in BAD:
        for name in (b"Idempotency-Key", b"traceparent", b"tracestate", b"User-Agent", b"X-Request-Id"):
            yield f"{name.decode()}: {bad}", post(place, body, "application/json", name + b": " + bad + b"\r\n")
        for name in ("prompt", "negative_prompt", "user", "model", "webhook_url", "loras", "background", "size", "solver"):
            data, kind = form(fields | {name: bad})
            yield f"{name}={bad} in a form", post(place, data, kind)
        for name in ("prompt", "negative_prompt", "user"):
            text = json.dumps(fields | {name: "MARK"}).encode().replace(b"MARK", bad)
            yield f"{name}={bad} in JSON", post(place, text, "application/json")
            yield f"{bad} as a name in JSON", post(place, body[:-1] + b', "' + bad + b'": 1}', "application/json")
        data, kind = form(fields, b"PNG of a file")
        yield f"a file named {bad}", post(place, data.replace(b"a.png", bad), kind)
    for text in (rb"\ud800", rb"\udc00x", rb"\u0000"):
        yield f"prompt={text.decode()} in JSON", post(place, body.replace(b'"a"', b'"' + text + b'"'), "application/json")


def unreadable(target, place, jobs):
    """What cannot be read of the jobs that were accepted."""
    found = []
    for name in sorted(jobs):
        code, details = code_of(lambda: target.job(name))
        if code.name != "OK":
            found.append(f"{name} ({jobs[name]}): GetJob is {code.name} {details[:80]}")
        status, answer = place.ask("GET", "/v1/videos/video_" + name.removeprefix("jobs/"), "alice")
        if status != 200:
            found.append(f"{name} ({jobs[name]}): GET is {status} {answer[:80]!r}")
    listed = {job.name for job in target.jobs()}
    found += [f"{name} ({jobs[name]}) is in no list" for name in sorted(set(jobs) - listed)]
    return found


@attack("bad-texts")
def bad_texts(_, tokens):
    """a text that is not UTF-8, in a header, a form or JSON, is refused with 4xx, or the job that it made can be read before and
    after a restart, and ends"""
    with victim(tokens) as target:
        place = place_of(target, {})
        jobs, asked, problems = {}, 0, []
        for what, answer in bad_requests(place):
            asked += 1
            status = answer[9:12]
            if status == b"200":
                jobs["jobs/" + json.loads(answer.split(b"\r\n\r\n", 1)[1])["id"].removeprefix("video_")] = what
            elif not status.startswith(b"4"):
                problems.append(f"{what}: {answer[:60]!r}")
        accepted = len(jobs)
        # The bytes of a message that protobuf of gRPC's side parses.
        for bad in BAD:
            request = target.request().SerializeToString().replace(b"a red circle", bad.ljust(12, b" "))
            code, _ = code_of(lambda: target.call("CreateJob", b"\x0a" + bytes([len(request)]) + request, caller="alice"))
            asked += 1
            if code.name != "INVALID_ARGUMENT":
                problems.append(f"prompt={bad} over gRPC is {code.name}")
        problems += unreadable(target, place, jobs)
        target.kill()
        target.start()
        place = place_of(target, {})
        problems += [f"after a restart {text}" for text in unreadable(target, place, jobs)]
        for name in jobs:
            code, _ = code_of(lambda: target.await_end(name, 10))
            if code.name == "OK" and target.job(name).state not in ENDED:
                problems.append(f"{name} does not end")
        return Row(f"{asked} texts, {accepted} jobs accepted", problems[:4] + [f"{len(problems)} in all"] * (len(problems) > 4))


SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@attack("framing", variants=(False,))
def framing(_, tokens):
    """a request with a Transfer-Encoding that is not chunked, or with two Host fields, is 400 and the last of its connection"""
    with victim(tokens) as target:
        place, problems, asked = place_of(target, {}), [], 0
        header = place.header("POST", "/v1/videos", "alice", Content_Type="application/json")[:-2]
        for coding in ("gzip", "identity", "xchunked", '"chunked"', "chunked, identity", "chunked, chunked", ""):
            for length in ("", f"Content-Length: {len(SMUGGLED)}\r\n"):
                request = header + f"Transfer-Encoding: {coding}\r\n{length}\r\n".encode() + SMUGGLED
                answer = exchange(place, request)
                asked += 1
                if answer[9:12] != b"400" or answer.count(b"HTTP/1.1 ") != 1:
                    problems.append(f"Transfer-Encoding: {coding} {length.strip()}: {answer.count(b'HTTP/1.1 ')} answers, "
                                    f"{answer[9:12]!r}")
        twice = place.header("GET", "/v1/models", "alice")[:-2] + f"Host: {place.http}\r\n\r\n".encode()
        answer = exchange(place, twice + SMUGGLED)
        if answer[9:12] != b"400" or answer.count(b"HTTP/1.1 ") != 1:
            problems.append(f"two Host fields: {answer.count(b'HTTP/1.1 ')} answers, {answer[9:12]!r}")
        return Row(f"{asked + 1} requests", problems[:4] + [f"{len(problems)} in all"] * (len(problems) > 4))
