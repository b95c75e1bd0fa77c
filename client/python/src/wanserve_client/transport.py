"""How calls reach the server: over grpcio's blocking channel, or over its asyncio channel.

wanserve_client.calls is written once, as coroutines over a Transport. Those of BlockingTransport never suspend: they
block instead, so that Client runs them without an event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import time
from typing import Any, AsyncGenerator, AsyncIterator, Callable, Optional, Protocol, TypeVar

import grpc
import grpc.aio

from wanserve_client._proto.wan.v1 import (
    model_management_pb2_grpc,
    telemetry_pb2_grpc,
    video_generation_pb2_grpc,
)

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


@dataclasses.dataclass(frozen=True)
class Address:
    """Where the server is, and what the client shows it. Raises ValueError if others could read the token."""

    server: str
    token: Optional[str]
    tls: Optional[Tls]
    allow_plaintext_token: bool

    def __post_init__(self) -> None:
        if self.token and self.tls is None and not self.allow_plaintext_token and not _is_loopback(self.server):
            raise ValueError(f"the token would be sent to {self.server} without encryption, where others may read it; "
                             "use tls, or allow_plaintext_token")

    def open(self, library: Any, **options: Any) -> Any:
        """Returns a channel of `library`, which is grpc or grpc.aio."""
        if self.tls is None:
            return library.insecure_channel(self.server, options=_CHANNEL_OPTIONS, **options)
        credentials = grpc.ssl_channel_credentials(self.tls.ca, self.tls.key, self.tls.certificate)
        return library.secure_channel(self.server, credentials, options=_CHANNEL_OPTIONS, **options)


class Stubs:
    """The generated stubs over the client's connection, for the methods that the client lacks. They send the token."""

    def __init__(self, channel: Any) -> None:
        self.videos = video_generation_pb2_grpc.VideoGenerationStub(channel)  # type: ignore[no-untyped-call]
        self.models = model_management_pb2_grpc.ModelManagementStub(channel)  # type: ignore[no-untyped-call]
        self.telemetry = telemetry_pb2_grpc.TelemetryStub(channel)  # type: ignore[no-untyped-call]


class Transport(Protocol):
    """`method` is a method of one of the stubs. Errors are those of grpcio."""

    @property
    def stubs(self) -> Stubs: ...

    async def unary(self, method: Any, request: Any, timeout: float) -> Any: ...

    def stream(self, method: Any, request: Any) -> AsyncGenerator[Any, None]:
        """Yields the messages. Closing the generator cancels the call."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def work(self, function: Callable[..., T], *arguments: Any) -> T:
        """Returns what the function returns, which may read and write files."""
        ...

    async def close(self) -> None: ...


class BlockingTransport:
    """Used by any number of threads at a time."""

    def __init__(self, address: Address) -> None:
        self._channel = address.open(grpc)
        with_token = grpc.intercept_channel(self._channel, _Token(address.token)) if address.token else self._channel
        self.stubs = Stubs(with_token)

    async def unary(self, method: Any, request: Any, timeout: float) -> Any:
        return method(request, timeout=timeout)

    async def stream(self, method: Any, request: Any) -> AsyncGenerator[Any, None]:
        call = method(request)
        try:
            for message in call:
                yield message
        finally:
            call.cancel()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def work(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    async def close(self) -> None:
        self._channel.close()


class AsyncioTransport:
    """Used by the tasks of one event loop, that of the first call."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._channel: Any = None
        self._stubs: Optional[Stubs] = None

    @property
    def stubs(self) -> Stubs:
        # A channel belongs to the loop that runs when it is made.
        if self._stubs is None:
            token = self._address.token
            interceptors = [_AsyncUnaryToken(token), _AsyncStreamToken(token)] if token else []
            self._channel = self._address.open(grpc.aio, interceptors=interceptors)
            self._stubs = Stubs(self._channel)
        return self._stubs

    async def unary(self, method: Any, request: Any, timeout: float) -> Any:
        return await method(request, timeout=timeout)

    async def stream(self, method: Any, request: Any) -> AsyncGenerator[Any, None]:
        call = method(request)
        try:
            async for message in call:
                yield message
        finally:
            call.cancel()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def work(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(function, *arguments)

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()


@contextlib.asynccontextmanager
async def closing(stream: AsyncGenerator[T, None]) -> AsyncIterator[AsyncGenerator[T, None]]:
    """Closes the generator at the end of the block, as contextlib.aclosing does from Python 3.10 on."""
    try:
        yield stream
    finally:
        await stream.aclose()


# gRPC's own call credentials refuse to work without TLS, therefore interceptors send the token.


@dataclasses.dataclass
class _CallDetails(grpc.ClientCallDetails):  # type: ignore[misc]
    method: str
    timeout: Optional[float]
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any


class _Token(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._header = ("authorization", f"Bearer {token}")

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with_header(details), request)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with_header(details), request)

    def _with_header(self, details: Any) -> Any:
        return _CallDetails(details.method, details.timeout, [*(details.metadata or ()), self._header],
                            details.credentials, details.wait_for_ready, details.compression)


class _AsyncToken:
    """grpc.aio takes an interceptor for one kind of call only."""

    def __init__(self, token: str) -> None:
        self._header = ("authorization", f"Bearer {token}")

    async def _send(self, continuation: Any, details: Any, request: Any) -> Any:
        metadata = grpc.aio.Metadata(*(details.metadata or ()), self._header)
        return await continuation(details._replace(metadata=metadata), request)


class _AsyncUnaryToken(_AsyncToken, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return await self._send(continuation, details, request)


class _AsyncStreamToken(_AsyncToken, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return await self._send(continuation, details, request)


def _is_loopback(server: str) -> bool:
    host = server.rsplit(":", 1)[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
