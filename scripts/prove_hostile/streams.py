"""Attacks in which one caller tries to take the places of all streams and downloads."""

from wan.v1 import video_generation_pb2

from prove_hostile.crowds import keep_open
from prove_hostile.registry import attack
from prove_hostile.siege import run_siege

CONNECTIONS = 17
STREAMS = 1000


def health_watches(place):
    keep_open(place, "/grpc.health.v1.Health/Watch", b"", None, CONNECTIONS, STREAMS, values=(), read=True)


def job_watches(place):
    request = video_generation_pb2.WatchJobRequest(name=place.facts["job of eve"]).SerializeToString()
    keep_open(place, "/wan.v1.VideoGeneration/WatchJob", request, "eve", CONNECTIONS, STREAMS, values=(), read=True)


def unread_downloads(place):
    request = video_generation_pb2.DownloadArtifactRequest(name=place.facts["file of eve"]).SerializeToString()
    keep_open(place, "/wan.v1.VideoGeneration/DownloadArtifact", request, "eve", 4, 64)


def make_file(target):
    job = target.await_end(target.create(caller="eve").name)
    return {"file of eve": job.artifacts[0].name}


@attack("health-watches")
def of_health(options, tokens):
    """17 connections with 1,000 Health/Watch each, without a token, take no stream from others"""
    return run_siege(options, tokens, [health_watches])


@attack("job-watches")
def of_jobs(options, tokens):
    """17 connections with 1,000 WatchJob each of one principal take no stream from others"""
    return run_siege(options, tokens, [job_watches], late=lambda target: {"job of eve": target.create(caller="eve").name})


@attack("downloads")
def downloads(options, tokens):
    """256 downloads of a small file that nobody reads, renewed as they end, take no download from others"""
    return run_siege(options, tokens, [unread_downloads], make_file, environment={"WAN_FAKE_OUTPUT_BYTES": "4096"})
