"""A file that is being downloaded: it appears under its name only when it is complete and its SHA-256 is right."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib

from wanserve_client import errors
from wanserve_client._proto.wan.v1 import generation_pb2


class PartialFile:
    """The bytes of an artifact so far, which another attempt or another process may have left. wanctl uses the same name.

    If a download ends early, the bytes stay. Close it in every case.
    """

    def __init__(self, artifact: generation_pb2.Artifact, destination: pathlib.Path) -> None:
        self._artifact = artifact
        self._destination = destination
        self._path = destination.with_name(f"{destination.name}.{artifact.sha256[:12]}.part")
        self._file = open(self._path, "a+b")
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise

    @property
    def size(self) -> int:
        return self._size

    def append(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)

    def finish(self) -> None:
        """Gives the file its name. Raises DamagedDownload and removes the bytes if they are not those of the artifact."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._size != self._artifact.size_bytes or self._digest.hexdigest() != self._artifact.sha256:
            self._path.unlink()
            raise errors.DamagedDownload(f"{self._artifact.name} has another size or SHA-256 than the server says")
        self._path.replace(self._destination)

    def close(self) -> None:
        self._file.close()

    def _lock(self) -> None:
        # Two processes that append to one file would mix their bytes.
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise errors.WanError(f"another process is downloading {self._destination}") from None

    def _read(self) -> None:
        self._file.seek(0)
        self._digest = hashlib.sha256()
        while data := self._file.read(1 << 20):
            self._digest.update(data)
        self._size = self._file.tell()
        if self._size > self._artifact.size_bytes:
            self._file.truncate(0)
            self._digest, self._size = hashlib.sha256(), 0
