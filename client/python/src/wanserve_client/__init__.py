"""Client of wanserve, the gRPC server for the Wan2.2 video models.

    from wanserve_client import Client

    with Client("gpu1:50051") as client:
        job = client.generate(prompt="A red cat runs on the beach.")
        client.download(job, "cat.mp4")

Client has the calls that most programs need. Messages are those of the contract (wanserve_client.messages), and the
generated stubs behind Client (client.stubs) have every method of it.
"""

from wanserve_client.client import Client, Stubs, Tls
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

__all__ = [
    "Client", "ConnectionLost", "DamagedDownload", "FieldViolation", "InvalidRequest", "JobCancelled", "JobFailed",
    "NotFound", "Stubs", "Tls", "WanError",
]
