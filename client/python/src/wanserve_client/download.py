"""Downloads a file so that it appears under its name only when it is complete and its SHA-256 is right."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib
from typing import Callable, Iterator, Optional

from wanserve_client import errors
from wanserve_client._proto.wan.v1 import generation_pb2, video_generation_pb2

# The caller passes an offset to `read`; the chunks begin there.
Read = Callable[[int], Iterator[video_generation_pb2.DownloadArtifactResponse]]
Progress = Callable[[int, int], None]


def part_path(artifact: generation_pb2.Artifact, destination: pathlib.Path) -> pathlib.Path:
    """Returns the path that holds the bytes until all are there; wanctl uses the same name."""
    return destination.with_name(f"{destination.name}.{artifact.sha256[:12]}.part")


def download(artifact: generation_pb2.Artifact, destination: pathlib.Path, read: Read,
             progress: Optional[Progress] = None) -> None:
    """Continues after the bytes of an earlier attempt. If `read` raises an error, the attempt ends and its bytes stay."""
    part = part_path(artifact, destination)
    with open(part, "a+b") as file:
        # Two processes that append to one file would mix their bytes.
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise errors.WanError(f"another process is downloading {destination}") from None
        file.seek(0)
        digest = hashlib.sha256()
        while data := file.read(1 << 20):
            digest.update(data)
        size = file.tell()
        if size > artifact.size_bytes:
            file.truncate(0)
            digest, size = hashlib.sha256(), 0
        if size < artifact.size_bytes:
            for chunk in read(size):
                file.write(chunk.data)
                digest.update(chunk.data)
                size += len(chunk.data)
                if progress is not None:
                    progress(size, artifact.size_bytes)
        file.flush()
        os.fsync(file.fileno())
        if size != artifact.size_bytes or digest.hexdigest() != artifact.sha256:
            part.unlink()
            raise errors.DamagedDownload(f"{artifact.name} has another size or SHA-256 than the server says")
        part.replace(destination)
