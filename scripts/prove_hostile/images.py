"""Requests of a few KB whose planning is dear. A form that is dear before it is refused."""

import time

from wan.v1 import video_generation_pb2

from prove_hostile import pictures
from prove_hostile.crowds import attack_socket, burst
from prove_hostile.place import form
from prove_hostile.registry import attack
from prove_hostile.siege import run_siege

QUOTE = "/wan.v1.VideoGeneration/Quote"
BATCH = "/wan.v1.VideoGeneration/SubmitBatch"
GIVE_UP = 3


def quote_of(place, **fields):
    return video_generation_pb2.QuoteRequest(request=place.request(**fields)).SerializeToString()


def small_pictures(place):
    burst(place, QUOTE, quote_of(place, image=pictures.small_file()), "eve", 200, GIVE_UP)


def long_scans(place):
    burst(place, QUOTE, quote_of(place, image=pictures.many_scans()), "eve", 4, GIVE_UP)


def batches(place):
    request = place.request(image=pictures.small_file())
    batch = video_generation_pb2.SubmitBatchRequest(requests=[request] * 100).SerializeToString()
    burst(place, BATCH, batch, "eve", 4, GIVE_UP)


def marks(place):
    burst(place, QUOTE, quote_of(place, prompt=pictures.MARKS), "eve", 60, GIVE_UP)


def posts(place, body, kind, count, seconds):
    """`count` bodies at once, each on a connection of its own; all are given up after so many seconds."""
    whole = place.header("POST", "/v1/videos", "eve", Content_Type=kind, Content_Length=len(body)) + body
    opened = []
    try:
        for _ in range(count):
            opened.append(attack_socket(place.http, seconds))
        for connection in opened:
            connection.sendall(whole)
        time.sleep(seconds)
    finally:
        for connection in opened:
            connection.close()


def posted_pictures(place):
    body, kind = form({"model": place.model, "prompt": "a", "size": "64x64", "num_frames": 5}, pictures.small_file())
    posts(place, body, kind, 100, GIVE_UP)


def controls(place):
    body, kind = form({"model": place.model, "prompt": b"\x01" * (43 << 20)})
    posts(place, body, kind, 5, 10)


@attack("pictures-png")
def png(options, tokens):
    """200 quotes at a time with a PNG of 8 KB and 64 megapixels, given up after 3 s, hold nobody back"""
    return run_siege(options, tokens, [small_pictures], fake=False)


@attack("pictures-http")
def png_over_http(options, tokens):
    """100 posts at a time with a PNG of 8 KB and 64 megapixels, given up after 3 s, hold nobody back"""
    return run_siege(options, tokens, [posted_pictures], fake=False)


@attack("pictures-jpeg")
def jpeg(options, tokens):
    """quotes with progressive JPEGs of 62 megapixels and 100 scans, given up after 3 s, hold nobody back and take no memory"""
    return run_siege(options, tokens, [long_scans] * 2, fake=False)


@attack("picture-batches")
def picture_batches(options, tokens):
    """batches of 100 PNGs of 8 KB, given up after 3 s, hold nobody back"""
    return run_siege(options, tokens, [batches], fake=False)


@attack("prompt-marks")
def prompt_marks(options, tokens):
    """quotes with prompts of 64 KB of combining marks, given up after 3 s, hold nobody back"""
    return run_siege(options, tokens, [marks], fake=False)


@attack("form-controls")
def form_controls(options, tokens):
    """forms with a text of 43 MiB of control characters are refused without a copy six times as large"""
    return run_siege(options, tokens, [controls], fake=False)
