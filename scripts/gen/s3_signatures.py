#!/usr/bin/env python3
"""Prints the reference signatures of tests/server/objects/signer_values.inc, computed by botocore.

Run it with the packages of scripts/setup: PYTHONPATH=.deps/moto scripts/gen/s3_signatures.py
"""

import datetime
import urllib.parse

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
botocore.auth.get_current_datetime = lambda *_, **__: NOW.replace(tzinfo=None)
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

# Method, host, path, query, further fields, body, session token, region.
REQUESTS = [
    ("GET", "b.s3.us-east-1.amazonaws.com", "/k", [], [], "", "", "us-east-1"),
    ("GET", "127.0.0.1:9000", "/b/artifacts/5f/1/video.mp4", [], [("range", "bytes=5-9")], "", "", "eu-west-1"),
    ("HEAD", "127.0.0.1:9000", "/b/artifacts/5f/1/video.mp4", [], [], "", "", "eu-west-1"),
    ("PUT", "b.s3.eu-central-1.amazonaws.com", "/a/b", [], [], "some bytes", "", "eu-central-1"),
    ("PUT", "b.s3.eu-central-1.amazonaws.com", "/a/b", [], [], "", "a/session+token==", "eu-central-1"),
    ("POST", "h:1", "/b/k", [("uploads", "")], [], "", "", "us-east-1"),
    ("PUT", "h:1", "/b/k", [("uploadId", "a+/=&b c"), ("partNumber", "10")], [], "part", "", "us-east-1"),
    ("POST", "h:1", "/b/k", [("uploadId", "x")], [], "<Complete/>", "t", "us-east-1"),
    ("DELETE", "h:1", "/b/k", [("uploadId", "x")], [], "", "", "us-east-1"),
    ("GET", "h:1", "/b/", [("prefix", "wan/savepoints/"), ("list-type", "2")], [], "", "", "us-east-1"),
    ("GET", "h:1", "/b/", [("list-type", "2"), ("prefix", ""), ("continuation-token", "1/~x=*")], [], "", "", "us-east-1"),
    ("GET", "h:1", "/b/sp%20ace/%C3%BC~%2B%21", [], [("if-match", '"e  tag"')], "", "", "us-east-1"),
]


def signature(method, host, path, query, fields, body, token, region):
    """Returns the field Authorization that botocore computes."""
    text = "&".join(f"{urllib.parse.quote(n, safe='')}={urllib.parse.quote(v, safe='')}" for n, v in query)
    request = AWSRequest(method=method, url=f"https://{host}{path}" + (f"?{text}" if text else ""), data=body.encode())
    for name, value in fields:
        request.headers[name] = value
    request.headers["host"] = host
    signer = botocore.auth.S3SigV4Auth(Credentials("AKIDEXAMPLE", SECRET, token or None), "s3", region)
    signer._should_sha256_sign_payload = lambda _: True
    signer.add_auth(request)
    return request.headers["Authorization"]


def text(value):
    """Returns the value as a string literal of C++."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pairs(values):
    """Returns the pairs as a list of C++."""
    return "{" + ", ".join("{" + text(n) + ", " + text(v) + "}" for n, v in values) + "}"


print("// Written by scripts/gen/s3_signatures.py.")
for request in REQUESTS:
    method, host, path, query, fields, body, token, region = request
    print(f"{{{{{text(method)}, {text(host)}, {text(path)}, {pairs(query)}, {pairs(fields)}, {text(body)}}},")
    print(f" {text(token)}, {text(region)},")
    print(f" {text(signature(*request))}}},")
