"""Answers that nobody takes."""

import select
import time

from wan.v1 import video_generation_pb2

from prove_hostile import http2
from prove_hostile.crowds import UNREAD, attack_connection, attack_socket, keep_open
from prove_hostile.reflection import CONVERSATION, symbol
from prove_hostile.registry import attack
from prove_hostile.siege import run_siege

LONG_JOBS = 40
# A prompt may have many bytes and few tokens. In JSON a control character takes six bytes.
LONG = "a" + "\x01" * 65_000


def make_long_jobs(target):
    """Makes jobs of eve with the longest prompts, and cancels them, so that they take no device time."""
    for _ in range(LONG_JOBS):
        job = target.create(caller="eve", prompt=LONG, negative_prompt=LONG)
        target.call("CancelJob", video_generation_pb2.CancelJobRequest(name=job.name), caller="eve")
    return {}


def make_videos(target):
    """Makes as many jobs as a page of the HTTP API has."""
    for _ in range(100):
        job = target.create(caller="eve", prompt=LONG)
        target.call("CancelJob", video_generation_pb2.CancelJobRequest(name=job.name), caller="eve")
    return {}


def unread_lists(place):
    request = video_generation_pb2.ListJobsRequest(page_size=LONG_JOBS).SerializeToString()
    keep_open(place, "/wan.v1.VideoGeneration/ListJobs", request, "eve", 1, 900)


def unread_conversation(place):
    """Asks reflection, whose answer repeats the request, and does not read the answer."""
    block = http2.call_fields(CONVERSATION, place.token("vic"))
    opened = []
    try:
        while len(opened) < 12:
            opened.append(attack_connection(place, UNREAD, timeout=30))
            opened[-1].call(block, symbol("a" * (60 << 20)), end=False)
        time.sleep(60)
    finally:
        for connection in opened:
            connection.socket.close()


def unread_videos(place):
    """Opens 60 connections that ask for a list and read nothing; replaces those that the server closes."""
    header = place.header("GET", "/v1/videos?limit=100", "eve")
    opened = []
    poll = select.poll()
    try:
        while True:
            while len(opened) < 60:
                opened.append(attack_socket(place.http, receive_buffer=4096))
                opened[-1].sendall(header)
                poll.register(opened[-1], select.POLLHUP | select.POLLERR)
            for descriptor, _ in poll.poll(200):
                poll.unregister(descriptor)
                closed = next(connection for connection in opened if connection.fileno() == descriptor)
                closed.close()
                opened.remove(closed)
    finally:
        for connection in opened:
            connection.close()


@attack("unread-lists")
def lists(options, tokens):
    """900 lists of long prompts that nobody reads take no memory out of proportion"""
    return run_siege(options, tokens, [unread_lists], make_long_jobs)


@attack("unread-reflection")
def conversations(options, tokens):
    """twelve conversations of reflection with requests of 60 MiB that nobody reads take no memory out of proportion"""
    return run_siege(options, tokens, [unread_conversation])


@attack("unread-videos")
def videos(options, tokens):
    """60 lists of HTTP that nobody reads, whose prompts are control characters, take no memory out of proportion"""
    return run_siege(options, tokens, [unread_videos], make_videos)
