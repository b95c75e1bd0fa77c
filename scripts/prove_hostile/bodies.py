"""Attacks with bodies that are announced and never sent."""

import collections
import select
import time

from prove_hostile.crowds import ADDRESS, attack_socket, raise_descriptors
from prove_hostile.registry import attack
from prove_hostile.siege import run_siege


def keep_announcing(place, headers, sources):
    """Keeps a connection for each header, which has sent it and nothing else; one that the server has closed is made again."""
    raise_descriptors()
    opened, waiting = {}, collections.deque(headers)
    poll = select.poll()
    try:
        while True:
            while waiting:
                source = sources[len(opened) % len(sources)]
                connection = attack_socket(place.http, source=source)
                header = waiting.popleft()
                opened[connection.fileno()] = connection, header
                poll.register(connection, select.POLLIN)
                connection.sendall(header)
            for descriptor, _ in poll.poll(100):
                # The server has answered or closed the connection.
                poll.unregister(descriptor)
                connection, header = opened.pop(descriptor)
                connection.close()
                waiting.append(header)
            time.sleep(0.2)  # a place that is free is taken soon, without a flood of refused requests
    finally:
        for connection, _ in opened.values():
            connection.close()


def large_bodies(place):
    # Announce ever smaller bodies, so that together they take all room that the server gives to requests.
    sizes = [45_000_000] * 6 + [30_000_000 >> halved for halved in range(9)] + [70_000] * 5
    headers = [place.header("POST", "/v1/videos", "eve", Content_Type="application/json", Content_Length=size) for size in sizes]
    keep_announcing(place, headers, [ADDRESS])


def many_bodies(place):
    header = place.header("GET", "/v1/models", "vic", Content_Length=1)
    keep_announcing(place, [header] * 8300, ["127.0.0.2", "127.0.0.3", "127.0.0.4"])


@attack("announced-bytes")
def announced_bytes(options, tokens):
    """20 connections that announce bodies of up to 45 MB and send none take no room from others' requests"""
    return run_siege(options, tokens, [large_bodies], honest_picture_bytes=100_000)


@attack("announced-requests")
def announced_requests(options, tokens):
    """8,300 connections of three addresses that announce a byte and do not send it take no place from others' requests"""
    return run_siege(options, tokens, [many_bodies], flags=["--max-connections", "12000"])
