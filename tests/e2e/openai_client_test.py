"""OpenAI's own Python client against the real server with the demo model."""

import argparse
import base64
import hashlib
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zlib

SKIPPED = 77

# The demo model's own size, and fewer steps and frames than it takes for a good picture.
SMALL = {"model": "demo", "size": "256x256"}
QUICK = {"num_inference_steps": 2, "num_frames": 5}
# What keeps the server busy until it is deleted.
LONG = {"num_inference_steps": 500}


def png(width, height):
    """A grey picture."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x80\x80\x80" * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def raises(error, call):
    """The error that the call must raise."""
    try:
        result = call()
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} was not raised; the answer was {result}")


def await_ready(client):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if [model.id for model in client.models.list()] == ["demo"]:
            return
        time.sleep(0.05)
    raise AssertionError("the demo model was not ready within 60 s")


def check_a_video(client):
    video = client.videos.create_and_poll(**SMALL, prompt="a red ball moves to the right", poll_interval_ms=100,
                                          extra_body={**QUICK, "seed": 7})
    assert video.status == "completed", video
    assert video.progress == 100 and video.error is None, video
    assert video.size == "256x256" and video.completed_at >= video.created_at, video
    assert video.seed == 7 and video.num_frames == 5, video
    content = client.videos.download_content(video.id)
    data = content.read()
    assert data[4:8] == b"ftyp", data[:16]
    assert content.response.headers["etag"] == f'"{hashlib.sha256(data).hexdigest()}"'
    part = client.videos.download_content(video.id, extra_headers={"Range": "bytes=4-7"})
    assert part.response.status_code == 206 and part.read() == b"ftyp"
    return video


def check_an_image(client):
    video = client.videos.create_and_poll(**SMALL, prompt="a grey wall", poll_interval_ms=100, extra_body=QUICK,
                                          input_reference=("wall.png", png(64, 64), "image/png"))
    assert video.status == "completed", video
    # The client takes no object for `input_reference` itself, although its types say so.
    url = "data:image/png;base64," + base64.b64encode(png(64, 64)).decode()
    by_url = client.videos.create(**SMALL, prompt="a grey wall",
                                  extra_body={**QUICK, "input_reference": {"image_url": url}})
    assert client.videos.poll(by_url.id, poll_interval_ms=100).status == "completed"
    # Without a file name the part is no file for the client; for the server it is.
    unnamed = client.videos.create(**SMALL, prompt="a grey wall", extra_body=QUICK,
                                   input_reference=(None, png(128, 64)))
    assert client.videos.poll(unnamed.id, poll_interval_ms=100).status == "completed"
    assert unnamed.size != "256x256", "its shape is that of the image"
    return [video, by_url, unnamed]


def check_empty_images(client, openai, folder):
    file = pathlib.Path(folder, "empty.png")
    file.touch()
    url = {"input_reference": {"image_url": "data:image/png;base64,"}}
    for arguments in ({"input_reference": b""}, {"input_reference": file}, {"input_reference": io.BytesIO()},
                      {"input_reference": (None, b"")}, {"input_reference": ("a.png", b"", "image/png")},
                      {"extra_body": url}):
        error = raises(openai.BadRequestError,
                       lambda given=arguments: client.videos.create(**SMALL, prompt="a grey wall", **given))
        assert error.param == "input_reference" and "is empty" in error.message, error.body


def check_spellings(client, openai):
    """What the client makes of Python's values, and of fields of other APIs."""
    video = client.videos.create(**SMALL, prompt="a red ball",
                                 extra_body={**QUICK, "n": 1, "exact_size": True, "guidance_scale": 2.0,
                                             "num_inference_steps": 2.0, "negative_prompt": None})
    assert video.num_inference_steps == 2, video
    client.videos.delete(video.id)

    def message(fields):
        return raises(openai.BadRequestError,
                      lambda: client.videos.create(**SMALL, prompt="a red ball", extra_body=fields)).message

    told = message({"steps": 4, "shift": 5, "image": "x"})
    for field, meant in (("steps", "num_inference_steps"), ("shift", "flow_shift"), ("image", "input_reference")):
        assert f"{field}: is not a field of this API; did you mean {meant}?" in told, told
    # The client writes lists in brackets.
    told = message({"loras": [{"name": "ink", "scale": 0.5}, {"name": "oil"}]})
    assert "loras[0].name: 'ink' is not a LoRA" in told and "loras[1].name: 'oil' is not a LoRA" in told, told
    assert "n: is " in message({"n": 2})


def check_pages(client, made):
    newest_first = [video.id for video in reversed(made)]
    assert [video.id for video in client.videos.list(limit=1)] == newest_first
    assert [video.id for video in client.videos.list(limit=2, order="asc")] == newest_first[::-1]
    page = client.videos.list(limit=2, after=newest_first[0])
    assert [video.id for video in page.data] == newest_first[1:3], page


def check_deletion(client, openai, ended):
    running = client.videos.create(**SMALL, prompt="a red ball", extra_body=LONG)
    for video in (running, ended):
        deleted = client.videos.delete(video.id)
        assert deleted.deleted and deleted.id == video.id and deleted.object == "video.deleted", deleted
        assert raises(openai.NotFoundError, lambda: client.videos.retrieve(video.id)).code == "expired"


def check_errors(client, viewer, openai, base_url):
    stranger = openai.OpenAI(base_url=base_url, api_key="wrong", max_retries=0)
    assert raises(openai.AuthenticationError, stranger.models.list).code == "credentials_unknown"
    assert raises(openai.PermissionDeniedError,
                  lambda: viewer.videos.create(**SMALL, prompt="a cat")).code == "role_required"
    error = raises(openai.BadRequestError,
                   lambda: client.videos.create(model="demo", prompt="a cat", size="7x256"))
    assert error.code == "invalid_argument" and error.param == "width", error.body
    error = raises(openai.BadRequestError,
                   lambda: client.videos.create(**SMALL, prompt="a cat", extra_body={"sharpness": 3}))
    assert error.param == "sharpness", error.body
    assert raises(openai.BadRequestError,
                  lambda: client.videos.create(model="sora-2", prompt="a cat")).param == "model"
    assert raises(openai.NotFoundError, lambda: client.videos.retrieve("video_0")).code == "job_not_found"
    assert raises(openai.NotFoundError, lambda: client.models.retrieve("sora-2")).code == "model_not_found"

    key = {"Idempotency-Key": "one"}
    first = client.videos.create(**SMALL, prompt="a cat", extra_body=LONG, extra_headers=key)
    again = client.videos.create(**SMALL, prompt="a cat", extra_body=LONG, extra_headers=key)
    assert again.id == first.id
    # Although this client repeats what it may, it does not repeat this.
    patient = client.with_options(max_retries=2)
    error = raises(openai.ConflictError, lambda: patient.videos.create(**SMALL, prompt="a dog", extra_headers=key))
    assert error.code == "request_id_reused", error.body
    assert raises(openai.NotFoundError,
                  lambda: client.videos.download_content(first.id)).code == "video_not_completed"

    # One runs or waits, and the server was told that one may wait.
    others = []

    def fill():
        for _ in range(3):
            others.append(client.videos.create(**SMALL, prompt="a cat", extra_body=LONG))

    error = raises(openai.RateLimitError, fill)
    assert error.code == "queue_full" and int(error.response.headers["retry-after"]) >= 1, error.body
    for video in [first, *others]:
        client.videos.delete(video.id)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--packages", required=True)
    options = parser.parse_args()
    sys.path.insert(0, options.packages)
    try:
        import openai
    except ImportError as missing:
        print(f"skipped: {missing}; scripts/setup fetches OpenAI's client for Python 3.11")
        return SKIPPED

    # About another service than this one.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message="The Sora API")
    with tempfile.TemporaryDirectory() as folder:
        tokens = f"{folder}/tokens"

        def token(principal, role):
            return subprocess.run(
                [options.server, "token", "create", "--file", tokens, "--principal", principal, "--role", role],
                check=True, capture_output=True, text=True).stdout.strip()

        alice, eve = token("alice", "user"), token("eve", "viewer")
        log = pathlib.Path(folder, "log")
        with log.open("w") as stderr:
            server = subprocess.Popen(
                [options.server, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--http-listen",
                 "127.0.0.1:0", "--data-dir", f"{folder}/data", "--auth-tokens", tokens, "--queue-capacity", "1"],
                stdout=subprocess.PIPE, stderr=stderr)
        try:
            base_url = f"http://{json.loads(server.stdout.readline())['http']}/v1"
            client = openai.OpenAI(base_url=base_url, api_key=alice, max_retries=0)
            viewer = openai.OpenAI(base_url=base_url, api_key=eve, max_retries=0)
            await_ready(client)
            made = [check_a_video(client), *check_an_image(client)]
            check_empty_images(client, openai, folder)
            check_pages(client, made)
            assert list(viewer.videos.list()) == [], "another principal's videos"
            check_spellings(client, openai)
            check_deletion(client, openai, made[0])
            check_errors(client, viewer, openai, base_url)
        except BaseException:
            print(log.read_text()[-5000:])
            raise
        finally:
            server.kill()
            server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
