"""Converts between ComfyUI's IMAGE, which is a float tensor [pictures, height, width, channels] from 0 to 1, and files."""

from __future__ import annotations

import io
import pathlib
from typing import Any, Callable

import av
import numpy
import PIL.Image
import torch


def png_of(image: Any) -> bytes:
    """Returns the only picture of `image` as a PNG file."""
    if image.shape[0] != 1:
        raise ValueError(f"image: has {image.shape[0]} pictures; must have 1, for example the one that ImageFromBatch takes")
    pixels = numpy.rint(numpy.clip(image[0].cpu().numpy(), 0, 1) * 255).astype(numpy.uint8)
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def frames_of(path: pathlib.Path, before_frame: Callable[[], None]) -> Any:
    """Returns the frames of a lossless video as an IMAGE. `before_frame` may raise an exception to stop."""
    frames = []
    with av.open(str(path)) as video:
        for frame in video.decode(video=0):
            before_frame()
            frames.append(frame.to_ndarray(format="rgb24"))
    # One array of floats is allocated: a long video has gigabytes of them.
    return torch.from_numpy(numpy.divide(numpy.stack(frames), 255, dtype=numpy.float32))
