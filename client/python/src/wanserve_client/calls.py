"""The calls that most programs need, over any transport: AsyncClient has them as they are, Client runs them."""

from __future__ import annotations

import os
import pathlib
import time
from typing import TYPE_CHECKING, Any, AsyncGenerator, Awaitable, Callable, Iterable, Optional, TypeVar, Union, cast

import grpc

from wanserve_client import errors
from wanserve_client._proto.wan.v1 import (
    generation_pb2,
    model_management_pb2,
    telemetry_pb2,
    video_generation_pb2,
)
from wanserve_client.download import PartialFile
from wanserve_client.request import Request, RequestFields, build, build_each, completes_fields, enum_words
from wanserve_client.transport import Stubs, Transport, closing

if TYPE_CHECKING:
    from typing_extensions import Unpack  # Type checkers know it without the package.

JobOrName = Union[generation_pb2.Job, str]
Path = Union[str, os.PathLike[str]]
OnEvent = Callable[[generation_pb2.Event], None]
OnProgress = Callable[[int, int], None]
T = TypeVar("T")


class Calls:
    """Client documents the methods: those here do the same, and return when it is done."""

    def __init__(self, transport: Transport, timeout: float, load_timeout: float) -> None:
        self._transport = transport
        self._timeout = timeout
        self._load_timeout = load_timeout

    @property
    def stubs(self) -> Stubs:
        return self._transport.stubs

    async def close(self) -> None:
        await self._transport.close()

    # Making videos

    @completes_fields
    async def generate(self, request: Optional[Request] = None, *, output: Optional[Path] = None,
                       on_event: Optional[OnEvent] = None, **fields: Unpack[RequestFields]) -> generation_pb2.Job:
        # A wrong path is an error now, not when the video has been computed.
        kind = None if output is None else _kind_of(output)
        if output is not None and not pathlib.Path(output).parent.is_dir():
            raise FileNotFoundError(f"output: is {os.fspath(output)}; must be in a folder that exists")
        complete = await self._complete(request, fields)
        if kind is not None and kind not in (complete.outputs or [generation_pb2.OUTPUT_KIND_MP4]):
            # The job needs its first output, and may lack others.
            complete.outputs.insert(0, kind)
        call = video_generation_pb2.GenerateRequest(request=complete)
        job = await self._job_of(await self._once_loaded(
            lambda: _follow(self._events(self.stubs.videos.Generate, call), on_event)))
        if output is not None:
            await self.download(job, output)
        return job

    @completes_fields
    async def submit(self, request: Optional[Request] = None, **fields: Unpack[RequestFields]) -> generation_pb2.Job:
        call = video_generation_pb2.CreateJobRequest(request=await self._complete(request, fields))
        return await self._once_loaded(lambda: self._call(self.stubs.videos.CreateJob, call, generation_pb2.Job))

    @completes_fields
    async def submit_batch(self, requests: Iterable[Union[Request, RequestFields]],
                           **fields: Unpack[RequestFields]) -> list[generation_pb2.Job]:
        complete = await self._transport.work(build_each, requests, fields)
        if any(not each.model for each in complete):
            only = await self._only_model()
            for each in complete:
                each.model = each.model or only
        call = video_generation_pb2.SubmitBatchRequest(requests=complete)
        batch = await self._once_loaded(
            lambda: self._call(self.stubs.videos.SubmitBatch, call, video_generation_pb2.SubmitBatchResponse))
        return list(batch.jobs)

    async def watch(self, job: JobOrName, *, after: int = 0,
                    reconnect_seconds: float = 120.0) -> AsyncGenerator[generation_pb2.Event, None]:
        def events() -> AsyncGenerator[generation_pb2.Event, None]:
            return self._events(self.stubs.videos.WatchJob,
                                video_generation_pb2.WatchJobRequest(name=_name(job), after_sequence=after))

        async with closing(self._reconnecting(events, reconnect_seconds)) as stream:
            async for event in stream:
                # Previews are not stored, so they have no sequence number.
                after = max(after, event.sequence)
                yield event

    async def wait(self, job: JobOrName, *, on_event: Optional[OnEvent] = None) -> generation_pb2.Job:
        return await self._job_of(await _follow(self.watch(job), on_event))

    # Jobs

    async def get(self, job: JobOrName) -> generation_pb2.Job:
        return await self._call(self.stubs.videos.GetJob, video_generation_pb2.GetJobRequest(name=_name(job)),
                                generation_pb2.Job)

    async def jobs(self, *, states: Iterable[generation_pb2.JobState] = (), filter: str = "",
                   order_by: str = "") -> AsyncGenerator[generation_pb2.Job, None]:
        request = video_generation_pb2.ListJobsRequest(states=list(states), filter=filter, order_by=order_by)
        while True:
            page = await self._call(self.stubs.videos.ListJobs, request, video_generation_pb2.ListJobsResponse)
            for job in page.jobs:
                yield job
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def cancel(self, job: JobOrName) -> generation_pb2.Job:
        return await self._call(self.stubs.videos.CancelJob, video_generation_pb2.CancelJobRequest(name=_name(job)),
                                generation_pb2.Job)

    async def report(self, job: JobOrName) -> telemetry_pb2.JobReport:
        return await self._call(self.stubs.videos.GetReport, video_generation_pb2.GetReportRequest(job=_name(job)),
                                telemetry_pb2.JobReport)

    async def download(self, job: JobOrName, output: Path, *, kind: Optional[generation_pb2.OutputKind] = None,
                       progress: Optional[OnProgress] = None, reconnect_seconds: float = 120.0) -> pathlib.Path:
        destination = pathlib.Path(output)
        wanted = _kind_of(destination) if kind is None else kind
        current = job if isinstance(job, generation_pb2.Job) and job.artifacts else await self.get(job)
        artifacts = [each for each in current.artifacts if each.kind == wanted]
        if not artifacts:
            name = generation_pb2.OutputKind.Name(wanted)
            raise errors.NotFound(f"{current.name} has no file of the kind {name}", grpc.StatusCode.NOT_FOUND)
        artifact = artifacts[0]
        file = await self._transport.work(PartialFile, artifact, destination)
        try:
            def chunks() -> AsyncGenerator[video_generation_pb2.DownloadArtifactResponse, None]:
                return self._messages(
                    self.stubs.videos.DownloadArtifact,
                    video_generation_pb2.DownloadArtifactRequest(name=artifact.name, offset=file.size),
                    video_generation_pb2.DownloadArtifactResponse)

            if file.size < artifact.size_bytes:
                async with closing(self._reconnecting(chunks, reconnect_seconds)) as stream:
                    async for chunk in stream:
                        await self._transport.work(file.append, chunk.data)
                        if progress is not None:
                            progress(file.size, artifact.size_bytes)
            await self._transport.work(file.finish)
        finally:
            file.close()
        return destination

    # The server

    async def models(self) -> list[model_management_pb2.Model]:
        request = model_management_pb2.ListModelsRequest(page_size=1000)
        models: list[model_management_pb2.Model] = []
        while True:
            page = await self._call(self.stubs.models.ListModels, request, model_management_pb2.ListModelsResponse)
            models.extend(page.models)
            if not page.next_page_token:
                return models
            request.page_token = page.next_page_token

    async def server_info(self) -> telemetry_pb2.ServerInfo:
        return await self._call(self.stubs.telemetry.GetServerInfo, telemetry_pb2.GetServerInfoRequest(),
                                telemetry_pb2.ServerInfo)

    async def _call(self, method: Any, request: Any, answer: type[T]) -> T:
        try:
            response = await self._transport.unary(method, request, self._timeout)
        except grpc.RpcError as error:
            raise errors.from_rpc_error(error) from None
        assert isinstance(response, answer)
        return response

    async def _messages(self, method: Any, request: Any, kind: type[T]) -> AsyncGenerator[T, None]:
        try:
            async with closing(self._transport.stream(method, request)) as stream:
                async for message in stream:
                    assert isinstance(message, kind)
                    yield message
        except grpc.RpcError as error:
            raise errors.from_rpc_error(error) from None

    async def _events(self, method: Any, request: Any) -> AsyncGenerator[generation_pb2.Event, None]:
        """Yields the events except heartbeats, which only keep proxies from closing the stream."""
        async with closing(self._messages(method, request, generation_pb2.Event)) as stream:
            async for event in stream:
                if not event.HasField("heartbeat"):
                    yield event

    async def _reconnecting(self, open_stream: Callable[[], AsyncGenerator[T, None]],
                            seconds: float) -> AsyncGenerator[T, None]:
        """Yields the messages of a stream. When the connection breaks, it opens the next stream, once a second for `seconds`."""
        lost: Optional[float] = None
        while True:
            try:
                async with closing(open_stream()) as stream:
                    async for message in stream:
                        lost = None
                        yield message
                return
            except errors.ConnectionLost:
                lost = lost or time.monotonic()
                if time.monotonic() - lost > seconds:
                    raise
            await self._transport.sleep(1)

    async def _once_loaded(self, call: Callable[[], Awaitable[T]]) -> T:
        end = time.monotonic() + self._load_timeout
        while True:
            try:
                return await call()
            except errors.WanError as error:
                # The server refused the request before it made a job.
                if error.reason != "MODEL_LOADING" or time.monotonic() > end:
                    raise
                delay = error.retry_delay or 1.0
            await self._transport.sleep(delay)

    async def _complete(self, request: Optional[Request], fields: RequestFields) -> generation_pb2.GenerationRequest:
        complete = await self._transport.work(build, request, fields)
        complete.model = complete.model or await self._only_model()
        return complete

    async def _only_model(self) -> str:
        models = await self.models()
        loaded = [each for each in models if each.state in (
            model_management_pb2.MODEL_STATE_READY, model_management_pb2.MODEL_STATE_LOADING)]
        candidates = [each.name.split("/", 1)[-1] for each in loaded or models]
        if len(candidates) == 1:
            return candidates[0]
        raise errors.invalid("model", "is missing; must be one of " + ", ".join(candidates) if candidates else
                             "is missing, and the server has no model; load one first")

    async def _job_of(self, end: generation_pb2.Event) -> generation_pb2.Job:
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
        return await self.get(end.job)


def _name(job: JobOrName) -> str:
    name = job.name if isinstance(job, generation_pb2.Job) else job
    return name if name.startswith("jobs/") else f"jobs/{name}"


async def _follow(events: AsyncGenerator[generation_pb2.Event, None],
                  on_event: Optional[OnEvent]) -> generation_pb2.Event:
    """Returns the event that ended the job."""
    async with closing(events):
        async for event in events:
            if on_event is not None:
                on_event(event)
            if event.WhichOneof("kind") in ("completed", "failed", "cancelled"):
                return event
    raise errors.ConnectionLost("the stream ended before the job did", grpc.StatusCode.UNAVAILABLE)


def _kind_of(path: Path) -> generation_pb2.OutputKind:
    """Returns the kind of file that the ending of the path names; the words of the kinds are their endings."""
    kinds = enum_words(generation_pb2.OutputKind.DESCRIPTOR)
    ending = pathlib.Path(path).suffix.lower()
    if ending[1:] not in kinds:
        raise ValueError(f"{path} ends in none of {', '.join('.' + each for each in kinds)}; name the file otherwise, or "
                         "give a kind")
    return cast(generation_pb2.OutputKind, kinds[ending[1:]])
