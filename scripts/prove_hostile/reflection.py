"""Names that cost reflection hours."""

import time

from prove_abuse.attacks import field
from prove_hostile import http2
from prove_hostile.crowds import attack_connection
from prove_hostile.registry import attack
from prove_hostile.siege import run_siege

CONVERSATION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def symbol(name):
    """Returns a ServerReflectionRequest for the file with this name."""
    return field(4, name.encode())


def names_of_dots(place):
    """Begins three conversations, and cancels them after a second."""
    block = http2.call_fields(CONVERSATION, place.token("vic"))
    request = symbol("a." * (2 << 20))
    opened = []
    try:
        for _ in range(3):
            opened.append(attack_connection(place, timeout=5))
            opened[-1].call(block, request)
        time.sleep(1)
        for connection in opened:
            connection.send(http2.reset(1))
    finally:
        for connection in opened:
            connection.socket.close()
    time.sleep(1)


@attack("reflection-dots")
def dots(options, tokens):
    """names of 4 MB of dots, cancelled after a second, are refused and hold nobody back"""
    return run_siege(options, tokens, [names_of_dots])
