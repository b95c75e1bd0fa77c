"""The class Client, for programs without asyncio."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any, AsyncGenerator, Coroutine, Iterable, Iterator, Optional, TypeVar, Union

from wanserve_client._proto.wan.v1 import generation_pb2, model_management_pb2, telemetry_pb2
from wanserve_client.calls import Calls, JobOrName, OnEvent, OnProgress, Path
from wanserve_client.request import Request, RequestFields, completes_fields
from wanserve_client.transport import Address, BlockingTransport, Stubs, Tls

if TYPE_CHECKING:
    from typing_extensions import Unpack  # Type checkers know it without the package.

T = TypeVar("T")


class Client:
    """A connection to one server. Thread-safe. The first call connects; after the connection broke, the next call connects.

    Without TLS a token is sent only to this machine, unless `allow_plaintext_token` is true. `timeout` limits each
    short call, in seconds; streams have no limit. While the server is still loading the model, generate() and
    submit() wait for it, at most `load_timeout` seconds. Every call that fails raises a WanError.
    """

    def __init__(self, server: str = "localhost:50051", *, token: Optional[str] = None, tls: Optional[Tls] = None,
                 allow_plaintext_token: bool = False, timeout: float = 30.0,
                 load_timeout: float = 1800.0) -> None:
        transport = BlockingTransport(Address(server, token, tls, allow_plaintext_token))
        self._calls = Calls(transport, timeout, load_timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def stubs(self) -> Stubs:
        return self._calls.stubs

    def close(self) -> None:
        """Closes the connection, which ends all calls."""
        _run(self._calls.close())

    # Making videos

    @completes_fields
    def generate(self, request: Optional[Request] = None, *, output: Optional[Path] = None,
                 on_event: Optional[OnEvent] = None, **fields: Unpack[RequestFields]) -> generation_pb2.Job:
        """Makes a video and returns its job when it is done: generate("a red kite", seed=7, output="kite.mp4").

        `request` is the prompt, or a message whose fields the keywords replace. The keywords are the fields of
        wan.v1.GenerationRequest (RequestFields lists them). `image` may be bytes, a path, an open file, which is read
        from where it stands, or an image of Pillow. An enum may be its word: quality="high". `loras` may be
        {"name": scale}. Without a model, the only one that is loaded is taken.

        `output` is the path to which the video is downloaded; its ending decides what kind of file that is. The job
        ends with the call, also if this process ends. Raises JobFailed or JobCancelled if the job ends so, and
        TypeError for a keyword that is not a field.
        """
        return _run(self._calls.generate(request, output=output, on_event=on_event, **fields))

    @completes_fields
    def submit(self, request: Optional[Request] = None, **fields: Unpack[RequestFields]) -> generation_pb2.Job:
        """Creates a job that does not end with its caller, and returns when the job is on the server's disk.

        Takes what generate() takes. With the field request_id, a second call with the same request returns the first
        call's job.
        """
        return _run(self._calls.submit(request, **fields))

    @completes_fields
    def submit_batch(self, requests: Iterable[Union[Request, RequestFields]],
                     **fields: Unpack[RequestFields]) -> list[generation_pb2.Job]:
        """Creates up to 100 jobs as submit() does: either all of them or, if one is refused, none.

        An entry is a prompt, a message, or a dictionary of fields. The keywords are fields of all of them; an entry's
        own fields come first, except that the keywords replace those of a message. Returns the jobs in the same order,
        without their requests, which get() returns.
        """
        return _run(self._calls.submit_batch(requests, **fields))

    def watch(self, job: JobOrName, *, after: int = 0, reconnect_seconds: float = 120.0) -> Iterator[generation_pb2.Event]:
        """Yields the job's events after sequence number `after` up to the last one, each of them once.

        When the connection breaks, it tries to connect again once a second for `reconnect_seconds`, and continues after
        the last event. Leaving the loop ends only the watching, not the job.
        """
        return _iterate(self._calls.watch(job, after=after, reconnect_seconds=reconnect_seconds))

    def wait(self, job: JobOrName, *, on_event: Optional[OnEvent] = None) -> generation_pb2.Job:
        """Follows the job to its end and returns it. Raises JobFailed or JobCancelled if the job ends so."""
        return _run(self._calls.wait(job, on_event=on_event))

    # Jobs

    def get(self, job: JobOrName) -> generation_pb2.Job:
        return _run(self._calls.get(job))

    def jobs(self, *, states: Iterable[generation_pb2.JobState] = (), filter: str = "",
             order_by: str = "") -> Iterator[generation_pb2.Job]:
        """Yields jobs, the newest first unless `order_by` says otherwise; docs/use/api.md describes `filter`."""
        return _iterate(self._calls.jobs(states=states, filter=filter, order_by=order_by))

    def cancel(self, job: JobOrName) -> generation_pb2.Job:
        """Cancels the job; a running job ends within a step. A job that has ended stays as it is."""
        return _run(self._calls.cancel(job))

    def report(self, job: JobOrName) -> telemetry_pb2.JobReport:
        """Returns the job's report: time and memory of each stage. It works even while the job is running."""
        return _run(self._calls.report(job))

    def download(self, job: JobOrName, output: Path, *, kind: Optional[generation_pb2.OutputKind] = None,
                 progress: Optional[OnProgress] = None, reconnect_seconds: float = 120.0) -> pathlib.Path:
        """Downloads one file of a job to `output`, which appears only when it is complete and its SHA-256 is right.

        An interrupted download continues where it stopped, even in another process. `kind` is an OUTPUT_KIND; if it is
        None, the ending of `output` decides (.mp4, .mkv, .safetensors). `progress` is called with the bytes so far and
        the total.
        """
        return _run(self._calls.download(job, output, kind=kind, progress=progress, reconnect_seconds=reconnect_seconds))

    # The server

    def models(self) -> list[model_management_pb2.Model]:
        return _run(self._calls.models())

    def server_info(self) -> telemetry_pb2.ServerInfo:
        return _run(self._calls.server_info())


def _run(call: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine over BlockingTransport, which never suspends."""
    try:
        call.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    call.close()
    raise AssertionError("a call over the blocking transport was suspended")


def _iterate(stream: AsyncGenerator[T, None]) -> Iterator[T]:
    try:
        while True:
            try:
                message = _run(_next(stream))
            except StopAsyncIteration:
                return
            yield message
    finally:
        _run(_close(stream))


async def _next(stream: AsyncGenerator[T, None]) -> T:
    return await stream.__anext__()


async def _close(stream: AsyncGenerator[T, None]) -> None:
    await stream.aclose()
