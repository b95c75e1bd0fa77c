"""The class Client, which has the calls that most programs need."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import pathlib
import time
from typing import Any, BinaryIO, Callable, Iterable, Iterator, NoReturn, Optional, TypeVar, Union

import grpc

from wanserve_client import download as _download
from wanserve_client import errors
from wanserve_client._proto.wan.v1 import (
    generation_pb2,
    model_management_pb2,
    model_management_pb2_grpc,
    telemetry_pb2,
    telemetry_pb2_grpc,
    video_generation_pb2,
    video_generation_pb2_grpc,
)

JobOrName = Union[generation_pb2.Job, str]
# The bytes of a PNG, JPEG or WebP file, the path of such a file, or such a file open in binary mode.
Image = Union[bytes, bytearray, memoryview, str, "os.PathLike[str]", BinaryIO]
OnEvent = Callable[[generation_pb2.Event], None]
T = TypeVar("T")

# With default settings, gRPC servers and proxies treat more frequent pings as abuse. A page of a thousand
# jobs may be longer than gRPC's 4 MiB, and a hundred violations longer than its 8 KiB for trailers.
_CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.max_metadata_size", 64 << 10),
)


@dataclasses.dataclass(frozen=True)
class Tls:
    """PEM texts: the authorities of the server's certificate (None: those of the machine), and the client's certificate
    and key, if the server asks for them."""

    ca: Optional[bytes] = None
    certificate: Optional[bytes] = None
    key: Optional[bytes] = None


class Stubs:
    """The generated stubs over the client's connection, for the methods that Client lacks. They send the token."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.videos = video_generation_pb2_grpc.VideoGenerationStub(channel)  # type: ignore[no-untyped-call]
        self.models = model_management_pb2_grpc.ModelManagementStub(channel)  # type: ignore[no-untyped-call]
        self.telemetry = telemetry_pb2_grpc.TelemetryStub(channel)  # type: ignore[no-untyped-call]


class Client:
    """A connection to one server. Thread-safe. The first call connects; after the connection broke, the next call connects.

    Without TLS a token is sent only to this machine, unless `allow_plaintext_token` is true. `timeout` limits each
    short call, in seconds; streams have no limit. While the server is still loading the model, generate() and
    submit() wait for it, at most `load_timeout` seconds. Every call that fails raises a WanError.
    """

    def __init__(self, server: str = "localhost:50051", *, token: Optional[str] = None, tls: Optional[Tls] = None,
                 allow_plaintext_token: bool = False, timeout: float = 30.0,
                 load_timeout: float = 1800.0) -> None:
        if token and tls is None and not allow_plaintext_token and not _is_loopback(server):
            raise ValueError(f"the token would be sent to {server} without encryption, where others may read it; "
                             "use tls, or allow_plaintext_token")
        if tls is None:
            channel = grpc.insecure_channel(server, options=_CHANNEL_OPTIONS)
        else:
            channel = grpc.secure_channel(
                server, grpc.ssl_channel_credentials(tls.ca, tls.key, tls.certificate), options=_CHANNEL_OPTIONS)
        self._channel = channel
        if token:
            channel = grpc.intercept_channel(channel, _Token(token))
        self._timeout = timeout
        self._load_timeout = load_timeout
        self.stubs = Stubs(channel)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection, which ends all calls."""
        self._channel.close()

    # Making videos

    def generate(self, request: Optional[generation_pb2.GenerationRequest] = None, *,
                 on_event: Optional[OnEvent] = None, **fields: Any) -> generation_pb2.Job:
        """Makes a video and returns its job when it is done. The job ends with the call, also if this process ends.

        `fields` are fields of wan.v1.GenerationRequest, which override those of `request`: prompt="...", width=1280, seed=7.
        `image` may be bytes, a path, or an open file, which is read from where it stands; one without any bytes is an
        InvalidRequest. Without a model, the only one that is loaded is taken. Raises JobFailed or JobCancelled if the job ends so.
        """
        complete = video_generation_pb2.GenerateRequest(request=self._request(request, fields))
        return self._job_of(
            self._once_loaded(lambda: _follow(_events(self.stubs.videos.Generate(complete)), on_event)))

    def submit(self, request: Optional[generation_pb2.GenerationRequest] = None,
               **fields: Any) -> generation_pb2.Job:
        """Creates a job that does not end with its caller, and returns when the job is on the server's disk.

        With the field request_id, a second call with the same request returns the first call's job.
        """
        complete = video_generation_pb2.CreateJobRequest(request=self._request(request, fields))
        return self._once_loaded(lambda: self._call(self.stubs.videos.CreateJob, complete, generation_pb2.Job))

    def watch(self, job: JobOrName, *, after: int = 0, reconnect_seconds: float = 120.0) -> Iterator[generation_pb2.Event]:
        """Yields the job's events after sequence number `after` up to the last one, each of them once.

        When the connection breaks, it tries to connect again once a second for `reconnect_seconds`, and continues after
        the last event. Leaving the loop ends only the watching, not the job.
        """
        lost: Optional[float] = None
        while True:
            call = self.stubs.videos.WatchJob(
                video_generation_pb2.WatchJobRequest(name=_name(job), after_sequence=after))
            try:
                for event in _events(call):
                    lost = None
                    # Previews are not stored, so they have no sequence number.
                    after = max(after, event.sequence)
                    yield event
                return
            except errors.ConnectionLost:
                lost = lost or time.monotonic()
                if time.monotonic() - lost > reconnect_seconds:
                    raise
                time.sleep(1)
            finally:
                call.cancel()

    def wait(self, job: JobOrName, *, on_event: Optional[OnEvent] = None) -> generation_pb2.Job:
        """Follows the job to its end and returns it. Raises JobFailed or JobCancelled if the job ends so."""
        return self._job_of(_follow(self.watch(job), on_event))

    # Jobs

    def get(self, job: JobOrName) -> generation_pb2.Job:
        return self._call(self.stubs.videos.GetJob, video_generation_pb2.GetJobRequest(name=_name(job)),
                          generation_pb2.Job)

    def jobs(self, *, states: Iterable[generation_pb2.JobState] = (), filter: str = "",
             order_by: str = "") -> Iterator[generation_pb2.Job]:
        """Yields jobs, the newest first unless `order_by` says otherwise; docs/use/api.md describes `filter`."""
        request = video_generation_pb2.ListJobsRequest(states=list(states), filter=filter, order_by=order_by)
        while True:
            page = self._call(self.stubs.videos.ListJobs, request, video_generation_pb2.ListJobsResponse)
            yield from page.jobs
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def cancel(self, job: JobOrName) -> generation_pb2.Job:
        """Cancels the job; a running job ends within a step. A job that has ended stays as it is."""
        return self._call(self.stubs.videos.CancelJob, video_generation_pb2.CancelJobRequest(name=_name(job)),
                          generation_pb2.Job)

    def report(self, job: JobOrName) -> telemetry_pb2.JobReport:
        """Returns the job's report: time and memory of each stage. It works even while the job is running."""
        return self._call(self.stubs.videos.GetReport, video_generation_pb2.GetReportRequest(job=_name(job)),
                          telemetry_pb2.JobReport)

    def download(self, job: JobOrName, output: Union[str, pathlib.Path], *,
                 kind: Optional[generation_pb2.OutputKind] = None,
                 progress: Optional[Callable[[int, int], None]] = None,
                 reconnect_seconds: float = 120.0) -> pathlib.Path:
        """Downloads one file of a job to `output`, which appears only when it is complete and its SHA-256 is right.

        An interrupted download continues where it stopped, even in another process. `kind` is an OUTPUT_KIND; if it is
        None, the ending of `output` decides (.mp4, .mkv, .safetensors). `progress` is called with the bytes so far and
        the total.
        """
        destination = pathlib.Path(output)
        wanted = _kind_of(destination) if kind is None else kind
        current = job if isinstance(job, generation_pb2.Job) and job.artifacts else self.get(job)
        artifacts = [each for each in current.artifacts if each.kind == wanted]
        if not artifacts:
            name = generation_pb2.OutputKind.Name(wanted)
            raise errors.NotFound(f"{current.name} has no file of the kind {name}", grpc.StatusCode.NOT_FOUND)
        artifact = artifacts[0]

        def read(offset: int) -> Iterator[video_generation_pb2.DownloadArtifactResponse]:
            lost: Optional[float] = None
            while offset < artifact.size_bytes:
                call = self.stubs.videos.DownloadArtifact(
                    video_generation_pb2.DownloadArtifactRequest(name=artifact.name, offset=offset))
                try:
                    for chunk in _messages(call, video_generation_pb2.DownloadArtifactResponse):
                        lost = None
                        offset += len(chunk.data)
                        yield chunk
                    return
                except errors.ConnectionLost:
                    lost = lost or time.monotonic()
                    if time.monotonic() - lost > reconnect_seconds:
                        raise
                    time.sleep(1)
                finally:
                    call.cancel()

        _download.download(artifact, destination, read, progress)
        return destination

    # The server

    def models(self) -> list[model_management_pb2.Model]:
        request = model_management_pb2.ListModelsRequest(page_size=1000)
        models: list[model_management_pb2.Model] = []
        while True:
            page = self._call(self.stubs.models.ListModels, request, model_management_pb2.ListModelsResponse)
            models.extend(page.models)
            if not page.next_page_token:
                return models
            request.page_token = page.next_page_token

    def server_info(self) -> telemetry_pb2.ServerInfo:
        return self._call(self.stubs.telemetry.GetServerInfo, telemetry_pb2.GetServerInfoRequest(),
                          telemetry_pb2.ServerInfo)

    def _call(self, method: Any, request: Any, answer: type[T]) -> T:
        try:
            response = method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            raise errors.from_rpc_error(error) from None
        assert isinstance(response, answer)
        return response

    def _once_loaded(self, call: Callable[[], T]) -> T:
        end = time.monotonic() + self._load_timeout
        while True:
            try:
                return call()
            except errors.WanError as error:
                # The server refused the request before it made a job.
                if error.reason != "MODEL_LOADING" or time.monotonic() > end:
                    raise
                time.sleep(error.retry_delay or 1.0)

    def _request(self, request: Optional[generation_pb2.GenerationRequest],
                 fields: dict[str, Any]) -> generation_pb2.GenerationRequest:
        complete = generation_pb2.GenerationRequest()
        if request is not None:
            complete.CopyFrom(request)
        if fields.get("image") is not None:
            fields = {**fields, "image": _image_bytes(fields["image"])}
        complete.MergeFrom(generation_pb2.GenerationRequest(**fields))
        if complete.HasField("image") and not complete.image:
            _refuse_empty_image("is empty")
        if not complete.model:
            complete.model = self._only_model()
        return complete

    def _only_model(self) -> str:
        models = self.models()
        loaded = [each for each in models if each.state in (
            model_management_pb2.MODEL_STATE_READY, model_management_pb2.MODEL_STATE_LOADING)]
        candidates = [each.name.split("/", 1)[-1] for each in loaded or models]
        if len(candidates) == 1:
            return candidates[0]
        raise errors.InvalidRequest(
            "model is missing; must be one of " + ", ".join(candidates) if candidates else
            "model is missing and the server has no model", grpc.StatusCode.INVALID_ARGUMENT, "",
            (errors.FieldViolation("model", "must name a model of the server"),))

    def _job_of(self, end: generation_pb2.Event) -> generation_pb2.Job:
        """Returns the job that the event `end` has ended, or raises the error with which the job ended."""
        if end.HasField("failed"):
            failure = errors.from_status(end.failed.status, errors.JobFailed)
            assert isinstance(failure, errors.JobFailed)
            failure.job = end.job
            raise failure
        if end.HasField("cancelled"):
            ended = errors.JobCancelled(f"{end.job} was cancelled: {end.cancelled.reason}", grpc.StatusCode.CANCELLED)
            ended.job = end.job
            raise ended
        return self.get(end.job)


class _Token(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """Sends the token with every call; gRPC's own call credentials refuse to work without TLS."""

    def __init__(self, token: str) -> None:
        self._header = ("authorization", f"Bearer {token}")

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with_header(details), request)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with_header(details), request)

    def _with_header(self, details: Any) -> Any:
        return _CallDetails(details.method, details.timeout, [*(details.metadata or ()), self._header],
                            details.credentials, details.wait_for_ready, details.compression)


@dataclasses.dataclass
class _CallDetails(grpc.ClientCallDetails):  # type: ignore[misc]
    method: str
    timeout: Optional[float]
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any


def _refuse_empty_image(problem: str) -> NoReturn:
    description = f"{problem}; must be a PNG, JPEG or WebP file"
    raise errors.InvalidRequest(f"image: {description}", grpc.StatusCode.INVALID_ARGUMENT, "",
                                (errors.FieldViolation("image", description),))


def _image_bytes(image: Image) -> bytes:
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if isinstance(image, (str, os.PathLike)):
        content = pathlib.Path(image).read_bytes()
        if not content:
            _refuse_empty_image(f"is the empty file {os.fspath(image)}")
        return content
    content = image.read()
    if not isinstance(content, bytes):
        raise TypeError("image is a file in text mode; open it with mode \"rb\"")
    if not content:
        _refuse_empty_image("is an open file with nothing left to read (was it read before? then seek(0))")
    return content


def _name(job: JobOrName) -> str:
    name = job.name if isinstance(job, generation_pb2.Job) else job
    return name if name.startswith("jobs/") else f"jobs/{name}"


def _messages(call: Any, kind: type[T]) -> Iterator[T]:
    try:
        for message in call:
            assert isinstance(message, kind)
            yield message
    except grpc.RpcError as error:
        raise errors.from_rpc_error(error) from None


def _events(call: Any) -> Iterator[generation_pb2.Event]:
    """Yields the events except heartbeats, which only keep proxies from closing the stream."""
    for event in _messages(call, generation_pb2.Event):
        if not event.HasField("heartbeat"):
            yield event


def _follow(events: Iterator[generation_pb2.Event], on_event: Optional[OnEvent]) -> generation_pb2.Event:
    """Returns the event that ended the job."""
    for event in events:
        if on_event is not None:
            on_event(event)
        if event.WhichOneof("kind") in ("completed", "failed", "cancelled"):
            return event
    raise errors.ConnectionLost("the stream ended before the job did", grpc.StatusCode.UNAVAILABLE)


def _kind_of(path: pathlib.Path) -> generation_pb2.OutputKind:
    kinds = {".mp4": generation_pb2.OUTPUT_KIND_MP4, ".mkv": generation_pb2.OUTPUT_KIND_LOSSLESS_MKV,
             ".safetensors": generation_pb2.OUTPUT_KIND_LATENTS}
    if path.suffix.lower() not in kinds:
        raise ValueError(f"{path} ends in none of {', '.join(kinds)}; name the file otherwise, or give a kind")
    return kinds[path.suffix.lower()]


def _is_loopback(server: str) -> bool:
    host = server.rsplit(":", 1)[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
