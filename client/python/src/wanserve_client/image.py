"""Reads the first frame of a video from where a program has it."""

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


# The bytes of a PNG, JPEG or WebP file, the path of such a file, such a file open in binary mode, or an image of Pillow.
Image = Union[bytes, bytearray, memoryview, str, os.PathLike[str], BinaryIO, PilImage]

# The modes of Pillow that a PNG file can have.
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")


def image_bytes(image: Any) -> bytes:
    """Returns the bytes of the file. Raises InvalidRequest if there are none."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        content, problem = bytes(image), "is empty"
    elif isinstance(image, (str, os.PathLike)):
        content, problem = pathlib.Path(image).read_bytes(), f"is the empty file {os.fspath(image)}"
    elif hasattr(image, "save") and hasattr(image, "mode") and hasattr(image, "size"):
        content, problem = _png(image), "is empty"
    elif hasattr(image, "read"):
        content = image.read()
        problem = "is an open file with nothing left to read (was it read before? then seek(0))"
        if not isinstance(content, bytes):
            raise TypeError('image: is a file in text mode; must be opened with mode "rb"')
    else:
        raise TypeError(f"image: is a {type(image).__name__}; must be a path, bytes, an open file or an image of Pillow")
    if not content:
        raise errors.invalid("image", f"{problem}; must be a PNG, JPEG or WebP file")
    return content


def _png(image: Any) -> bytes:
    """Returns a PNG file that is upright: Pillow keeps the orientation of a photo beside its pixels."""
    upright = importlib.import_module("PIL.ImageOps").exif_transpose(image)
    if upright.mode not in _PNG_MODES:
        upright = upright.convert("RGBA" if upright.mode in ("PA", "La", "RGBa") else "RGB")
    file = io.BytesIO()
    upright.save(file, format="PNG", compress_level=1)
    return file.getvalue()
