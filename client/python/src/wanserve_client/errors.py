"""What calls fail with. Every error of a call is a WanError."""

from __future__ import annotations

import dataclasses
from typing import Optional, Tuple

import grpc
from google.rpc import error_details_pb2, status_pb2


@dataclasses.dataclass(frozen=True)
class FieldViolation:
    """A field of the request that the server refuses, for example "width", and what would be right."""

    field: str
    description: str


class WanError(Exception):
    """A call failed. `code` is gRPC's; `reason` is the server's (docs/use/api.md), for example "QUEUE_FULL"."""

    def __init__(self, message: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN, reason: str = "",
                 violations: Tuple[FieldViolation, ...] = (), retry_delay: Optional[float] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        # Every field that is wrong, not only the first.
        self.violations = violations
        # The seconds after which the server wants to be asked again; None if it did not say.
        self.retry_delay = retry_delay


class InvalidRequest(WanError):
    """The server refuses the request as it is (INVALID_ARGUMENT); `violations` names the fields."""


class NotFound(WanError):
    """There is no such job, file or model, or no longer (NOT_FOUND)."""


class ConnectionLost(WanError):
    """There was no connection, or it broke and did not come back. A job that was created goes on."""


class JobFailed(WanError):
    """The job ran and failed. `job` is its name."""

    job: str = ""


class JobCancelled(WanError):
    """A caller or a deadline ended the job. `job` is its name."""

    job: str = ""


class DamagedDownload(WanError):
    """The bytes that came are not those of the file; the next download starts at the first byte."""


def from_status(status: status_pb2.Status, kind: Optional[type[WanError]] = None) -> WanError:
    """The error for a google.rpc.Status, whose details the server fills in."""
    violations = error_details_pb2.BadRequest()
    info = error_details_pb2.ErrorInfo()
    retry = error_details_pb2.RetryInfo()
    retry_delay = None
    for detail in status.details:
        detail.Unpack(violations)
        detail.Unpack(info)
        if detail.Unpack(retry):
            retry_delay = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    code = next((code for code in grpc.StatusCode if code.value[0] == status.code), grpc.StatusCode.UNKNOWN)
    if kind is None:
        kind = {grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest, grpc.StatusCode.NOT_FOUND: NotFound}.get(code, WanError)
        # A server that is there but refuses work gives a reason; a connection that broke has none.
        # A proxy that has waited too long resets the stream, which gRPC calls INTERNAL.
        cut = code == grpc.StatusCode.INTERNAL and "RST_STREAM" in status.message
        if (code == grpc.StatusCode.UNAVAILABLE or cut) and not info.reason:
            kind = ConnectionLost
    return kind(status.message, code, info.reason,
                tuple(FieldViolation(each.field, each.description) for each in violations.field_violations), retry_delay)


def from_rpc_error(error: grpc.RpcError) -> WanError:
    """The error for what grpcio raised."""
    status = status_pb2.Status(code=error.code().value[0], message=error.details() or "")
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    return from_status(status)
