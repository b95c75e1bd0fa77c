"""What several attackers do alike: bursts that are given up, and streams that are kept open and not read."""

import resource
import socket
import time

from prove_hostile import http2

# Attackers come from an address of their own, so that limits of addresses do not count them together with those whom they
# attack. All of 127.0.0.0/8 is this machine.
ADDRESS = "127.0.0.66"
FILL_SECONDS = 0.25
UNREAD = ((http2.INITIAL_WINDOW_SIZE, 0),)


def burst(place, path, request, principal, count, seconds):
    """Makes `count` calls on a new connection, which is closed after so many seconds or when all calls have ended."""
    block = http2.call_fields(path, place.token(principal))
    give_up = time.monotonic() + seconds
    with attack_connection(place, timeout=seconds) as connection:
        streams = set()
        while len(streams) < count and time.monotonic() < give_up:
            streams.add(connection.call(block, request))
        while not streams <= connection.ended and time.monotonic() < give_up:
            connection.take()
            time.sleep(0.02)


def keep_open(place, path, request, principal, connections, streams, values=UNREAD, read=False):
    """So many streams on each of so many connections. One connection at a time is filled, four a second, because this is about
    places and not about a flood of calls; then those that the server has ended are opened again. Ends when a connection is
    closed. `read`: the answers' bytes are taken, so that the windows never fill."""
    block = http2.call_fields(path, place.token(principal))
    opened, next_turn, turn = [], 0.0, 0
    try:
        while True:
            if time.monotonic() > next_turn:
                next_turn = time.monotonic() + FILL_SECONDS
                if len(opened) < connections:
                    opened.append(attack_connection(place, values))
                chosen = opened[turn % len(opened)] if len(opened) == connections else opened[-1]
                turn += 1
                for _ in range(streams - chosen.open):
                    chosen.call(block, request)
            for connection in opened:
                frames = connection.take()
                if read:
                    taken = sum(len(payload) for kind, _, _, payload in frames if kind == http2.DATA)
                    if taken:
                        connection.send(http2.window_update(0, taken))
            time.sleep(0.02)
    finally:
        for connection in opened:
            connection.socket.close()


def attack_connection(place, values=(), **more):
    """Returns an HTTP/2 connection of an attacker."""
    return http2.Connection(place.grpc, values, source=ADDRESS, tls=place.tls("h2"), **more)


def attack_socket(address, timeout=10, receive_buffer=None, source=ADDRESS):
    """Returns a connection of an attacker on which nothing has been sent."""
    host, port = address.rsplit(":", 1)
    connection = socket.socket()
    try:
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(timeout)
        connection.bind((source, 0))
        connection.connect((host, int(port)))
    except OSError:
        connection.close()
        raise
    return connection


def raise_descriptors():
    """An attacker holds thousands of connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
