"""Client of wanserve, the gRPC server for the Wan2.2 video models.

    from wanserve_client import Client

    with Client("gpu1:50051") as client:
        client.generate("A red cat runs on the beach.", output="cat.mp4")

Client has the calls that most programs need, and AsyncClient has the same for asyncio. Messages are those of the
contract (wanserve_client.messages), and the generated stubs (client.stubs) have every method of it.
"""

from wanserve_client.async_client import AsyncClient
from wanserve_client.client import Client
from wanserve_client.errors import (
    ConnectionLost,
    DamagedDownload,
    FieldViolation,
    InvalidRequest,
    JobCancelled,
    JobFailed,
    NotFound,
    WanError,
)
from wanserve_client.request import RequestFields
from wanserve_client.transport import Stubs, Tls

__all__ = [
    "AsyncClient", "Client", "ConnectionLost", "DamagedDownload", "FieldViolation", "InvalidRequest", "JobCancelled",
    "JobFailed", "NotFound", "RequestFields", "Stubs", "Tls", "WanError",
]
