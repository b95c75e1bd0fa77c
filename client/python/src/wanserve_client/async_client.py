"""The class AsyncClient, for programs that use asyncio."""

from __future__ import annotations

from typing import Optional

from wanserve_client.calls import Calls
from wanserve_client.transport import Address, AsyncioTransport, Tls


class AsyncClient(Calls):
    """A connection to one server for the tasks of one event loop, with the methods of Client, which documents them.

        async with AsyncClient("gpu1:50051") as client:
            job = await client.generate("a red kite", output="kite.mp4")

    Each returns when it is awaited; watch() and jobs() are for `async for`. If the task is cancelled, the call is.
    Files are read and written in threads.
    """

    def __init__(self, server: str = "localhost:50051", *, token: Optional[str] = None, tls: Optional[Tls] = None,
                 allow_plaintext_token: bool = False, timeout: float = 30.0,
                 load_timeout: float = 1800.0) -> None:
        super().__init__(AsyncioTransport(Address(server, token, tls, allow_plaintext_token)), timeout, load_timeout)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
