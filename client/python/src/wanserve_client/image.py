"""Reads the files of a request, among them the first frame of a video, from where a program has them."""

from __future__ import annotations

import importlib
import io
import os
import pathlib
from typing import IO, Any, BinaryIO, Optional, Protocol, Union

from wanserve_client import errors


class PilImage(Protocol):
    """An image of Pillow, which this package neither needs nor imports."""

    @property
    def mode(self) -> str: ...

    def save(self, fp: IO[bytes], format: Optional[str] = ..., **params: Any) -> None: ...


# The bytes of a file, its path, or the file open in binary mode.
FileContent = Union[bytes, bytearray, memoryview, str, os.PathLike[str], BinaryIO]
# A PNG, JPEG or WebP file, or an image of Pillow.
Image = Union[FileContent, PilImage]

# The modes of Pillow that a PNG file can have.
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")


def image_bytes(image: Any) -> bytes:
    """Returns the bytes of the file. Raises InvalidRequest if there are none."""
    if hasattr(image, "save") and hasattr(image, "mode") and hasattr(image, "size"):
        image = _png(image)
    return file_bytes(image, "image", "a PNG, JPEG or WebP file", "a path, bytes, an open file or an image of Pillow")


def file_bytes(file: Any, field: str, wanted: str, types: str = "a path, bytes or an open file") -> bytes:
    """Returns the bytes of the file that a field has. Raises InvalidRequest if there are none; `wanted` says what must be
    there, and `types` in which forms."""
    if isinstance(file, (bytes, bytearray, memoryview)):
        content, problem = bytes(file), "is empty"
    elif isinstance(file, (str, os.PathLike)):
        content, problem = pathlib.Path(file).read_bytes(), f"is the empty file {os.fspath(file)}"
    elif hasattr(file, "read"):
        content = file.read()
        problem = "is an open file with nothing left to read (was it read before? then seek(0))"
        if not isinstance(content, bytes):
            raise TypeError(f'{field}: is a file in text mode; must be opened with mode "rb"')
    else:
        raise TypeError(f"{field}: is a {type(file).__name__}; must be {types}")
    if not content:
        raise errors.invalid(field, f"{problem}; must be {wanted}")
    return content


def _png(image: Any) -> bytes:
    """Returns a PNG file that is upright: Pillow keeps the orientation of a photo beside its pixels."""
    upright = importlib.import_module("PIL.ImageOps").exif_transpose(image)
    if upright.mode not in _PNG_MODES:
        upright = upright.convert("RGBA" if upright.mode in ("PA", "La", "RGBa") else "RGB")
    file = io.BytesIO()
    upright.save(file, format="PNG", compress_level=1)
    return file.getvalue()
