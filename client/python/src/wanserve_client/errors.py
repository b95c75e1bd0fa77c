"""The errors that calls raise. Every error of a call is a WanError."""

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
    """A call failed. `code` is the code of gRPC, `reason` the word of the server (docs/use/api.md): "QUEUE_FULL"."""

    def __init__(self, message: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN, reason: str = "",
                 violations: Tuple[FieldViolation, ...] = (), retry_delay: Optional[float] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        # All fields that are wrong, not only the first one.
        self.violations = violations
        # After how many seconds to call again; None if the server did not say.
        self.retry_delay = retry_delay


class InvalidRequest(WanError):
    """The server refuses the request as it is (INVALID_ARGUMENT); `violations` names the fields."""


class NotFound(WanError):
    """The job, file or model does not exist, or does not exist any more (NOT_FOUND)."""


class ConnectionLost(WanError):
    """There was no connection, or it broke and could not be made again. A job that was created goes on."""


class JobFailed(WanError):
    """The job ran and failed. `job` is its name."""

    job: str = ""


class JobCancelled(WanError):
    """A caller or a deadline ended the job. `job` is its name."""

    job: str = ""


class DamagedDownload(WanError):
    """The bytes that came are not those of the file; the next download starts from the beginning."""


def invalid(field: str, description: str) -> InvalidRequest:
    """Returns the error for a request that need not be sent, because the server would refuse it."""
    return InvalidRequest(f"{field}: {description}", grpc.StatusCode.INVALID_ARGUMENT, "",
                          (FieldViolation(field, description),))


def from_status(status: status_pb2.Status, kind: Optional[type[WanError]] = None) -> WanError:
    """Returns the error for a google.rpc.Status, whose details the server has filled in."""
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
        # If the server is there but refuses work, the error has a reason; if the connection broke, it has none.
        # If a proxy has waited too long, it resets the stream, which gRPC reports as INTERNAL.
        cut = code == grpc.StatusCode.INTERNAL and "RST_STREAM" in status.message
        if (code == grpc.StatusCode.UNAVAILABLE or cut) and not info.reason:
            kind = ConnectionLost
    return kind(status.message, code, info.reason,
                tuple(FieldViolation(each.field, each.description) for each in violations.field_violations), retry_delay)


def from_rpc_error(error: grpc.RpcError) -> WanError:
    """Returns the error for an exception of grpcio."""
    status = status_pb2.Status(code=error.code().value[0], message=error.details() or "")
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    return from_status(status)
