"""A reader of the log that stands still. Scrapes that nobody reads."""

import collections
import os
import time

from wan.v1 import video_generation_pb2

from prove_hostile.crowds import attack_socket, burst
from prove_hostile.registry import attack
from prove_hostile.siege import run_siege


def audited_calls(place):
    request = video_generation_pb2.CancelJobRequest(name="jobs/none").SerializeToString()
    burst(place, "/wan.v1.VideoGeneration/CancelJob", request, "eve", 200, 10)


def scrapes(place):
    """Makes so many scrapes a second, of which the latest 200 stay open."""
    opened = collections.deque()
    turn = time.monotonic()
    while True:
        turn = max(turn + 0.002, time.monotonic() - 1)
        time.sleep(max(0.0, turn - time.monotonic()))
        opened.append(attack_socket(place.metrics))
        opened[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        if len(opened) > 200:
            opened.popleft().close()


@attack("log-pipe")
def log_pipe(options, tokens):
    """a log that nobody reads, a full pipe, stops nothing: lines are dropped"""
    reader, writer = os.pipe()
    try:
        return run_siege(options, tokens, [audited_calls], errors=writer)
    finally:
        os.close(reader)
        os.close(writer)


@attack("scrapes")
def unread_scrapes(options, tokens):
    """beside 1,000 scrapes a second that nobody reads, probes are answered"""
    return run_siege(options, tokens, [scrapes] * 2, fake=False)
