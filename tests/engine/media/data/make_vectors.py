#!/usr/bin/env python3
"""Makes decode.safetensors, broken.safetensors and resize.safetensors of this folder.

Run with Python 3.11, Pillow 12.2.0 and NumPy 2.4.6:  python make_vectors.py
What each file holds, and why not a later Pillow: README.md.
"""
import io
import json
import struct
import zlib

import numpy as np
from PIL import Image

RNG = np.random.default_rng(20251)


def write_safetensors(path, tensors):
    names = {np.dtype("uint8"): "U8"}
    header, blobs, offset = {}, [], 0
    for name, array in tensors.items():
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(data)]}
        blobs.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def as_bytes(data):
    return np.frombuffer(data, np.uint8)


def picture(width, height):
    """Smooth shapes, hard coloured edges and some noise."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    out = np.stack([127 + 120 * np.sin(x / 5 + y / 9), 255 * (y / max(height - 1, 1)),
                    127 + 120 * np.cos(x * y / 90)], -1)
    out[(x // 6 + y // 6) % 5 == 0] = (250, 10, 30)
    out[(x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 5) ** 2] = (5, 40, 240)
    return np.clip(out + RNG.normal(0, 6, out.shape), 0, 255).astype(np.uint8)


# PNG files are assembled here, since Pillow writes only a few of the kinds that it reads.

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}


def chunk(kind, data=b"", checksum=None):
    if checksum is None:
        checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def header(width, height, depth, color, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace))


def pack_rows(samples, depth):
    """Rows of [height, width, channels] samples, each behind filter byte 0."""
    rows = b""
    for row in samples:
        flat = row.reshape(-1)
        if depth == 16:
            data = flat.astype(">u2").tobytes()
        elif depth == 8:
            data = flat.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(int(v), f"0{depth}b") for v in flat)
            bits += "0" * (-len(bits) % 8)
            data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
        rows += b"\0" + data
    return rows


def adam7(samples, depth):
    rows = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                           (1, 0, 2, 2), (0, 1, 1, 2)):
        part = samples[y0::dy, x0::dx]
        if part.size:
            rows += pack_rows(part, depth)
    return rows


def png(width, height, depth, color, extra=b"", interlace=0, samples=None, split=None):
    if samples is None:
        samples = RNG.integers(0, 2 ** depth, (height, width, CHANNELS[color]))
    rows = adam7(samples, depth) if interlace else pack_rows(samples, depth)
    data = zlib.compress(rows)
    parts = [data] if split is None else [data[i:i + split] for i in range(0, len(data), split)]
    return (SIGNATURE + header(width, height, depth, color, interlace) + extra
            + b"".join(chunk(b"IDAT", part) for part in parts) + chunk(b"IEND"))


def palette(count):
    return chunk(b"PLTE", RNG.integers(0, 256, count * 3).astype(np.uint8).tobytes())


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def decodable():
    files = {}
    for depth in (1, 2, 4, 8, 16):
        files[f"png/grey{depth}"] = png(21, 13, depth, GREY)
        files[f"png/grey{depth}_interlaced"] = png(21, 13, depth, GREY, interlace=1)
    for depth in (8, 16):
        files[f"png/grey_alpha{depth}"] = png(21, 13, depth, GREY_ALPHA)
        files[f"png/rgb{depth}"] = png(21, 13, depth, RGB)
        files[f"png/rgba{depth}"] = png(21, 13, depth, RGBA)
        files[f"png/rgba{depth}_interlaced"] = png(21, 13, depth, RGBA, interlace=1)
    for depth in (1, 2, 4, 8):
        files[f"png/palette{depth}"] = png(21, 13, depth, PALETTE, palette(2 ** depth))
        files[f"png/palette{depth}_interlaced"] = png(21, 13, depth, PALETTE, palette(2 ** depth),
                                                      interlace=1)
    files["png/palette8_transparent"] = png(
        21, 13, 8, PALETTE, palette(256) + chunk(b"tRNS", bytes(range(256))))
    files["png/grey8_transparent"] = png(21, 13, 8, GREY, chunk(b"tRNS", b"\0\x40"))
    files["png/rgb8_transparent"] = png(21, 13, 8, RGB, chunk(b"tRNS", b"\0\1\0\2\0\3"))
    files["png/rgb8_suggested_palette"] = png(21, 13, 8, RGB, palette(16))
    files["png/rgb8_gamma"] = png(21, 13, 8, RGB, chunk(b"gAMA", struct.pack(">I", 100000)))
    files["png/rgb8_many_chunks"] = png(
        21, 13, 8, RGB, chunk(b"tEXt", b"Comment\0x") + chunk(b"pHYs", bytes(9)), split=50)
    files["png/one_pixel"] = png(1, 1, 8, RGB)
    files["png/trailing_bytes"] = png(5, 4, 8, RGB) + b"and more"
    files["png/filters"] = saved(Image.fromarray(picture(64, 48)), "PNG", optimize=True)
    frames = [Image.fromarray(picture(20, 16)) for _ in range(3)]
    files["png/animated"] = saved(frames[0], "PNG", save_all=True, append_images=frames[1:])

    base = Image.fromarray(picture(75, 53))
    for sampling in ("4:4:4", "4:2:2", "4:2:0"):
        name = sampling.replace(":", "")
        files[f"jpeg/{name}"] = saved(base, "JPEG", quality=85, subsampling=sampling)
        files[f"jpeg/{name}_progressive"] = saved(base, "JPEG", quality=70, subsampling=sampling,
                                                  progressive=True)
    files["jpeg/low_quality"] = saved(base, "JPEG", quality=5)
    files["jpeg/grey"] = saved(base.convert("L"), "JPEG", quality=80)
    files["jpeg/cmyk"] = saved(base.convert("CMYK"), "JPEG", quality=90)
    files["jpeg/stored_as_rgb"] = saved(base, "JPEG", quality=90, keep_rgb=True)
    files["jpeg/restart_markers"] = saved(base, "JPEG", quality=80, restart_marker_blocks=3)
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn by 90 degrees
    files["jpeg/turned_by_exif"] = saved(base, "JPEG", quality=85, exif=exif)
    files["jpeg/one_pixel"] = saved(base.crop((3, 3, 4, 4)), "JPEG")
    files["jpeg/trailing_bytes"] = files["jpeg/420"] + b"and more"
    # Stray bytes between two markers, as some cameras leave them.
    files["jpeg/stray_bytes"] = files["jpeg/420"][:20] + b"\0\0\0" + files["jpeg/420"][20:]

    tensors = {}
    for name, data in files.items():
        rgb = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        tensors[name + "/file"] = as_bytes(data)
        tensors[name + "/rgb"] = rgb
    return tensors


def deep_progressive(data, scans):
    """Repeats the last scan of a progressive JPEG."""
    start = data.rindex(b"\xff\xda")
    return data[:start] + data[start:-2] * scans + b"\xff\xd9"


def broken():
    rows = pack_rows(RNG.integers(0, 256, (8, 8, 3)), 8)
    head = SIGNATURE + header(8, 8, 8, RGB)
    end = chunk(b"IEND")
    idat = chunk(b"IDAT", zlib.compress(rows))
    bad_filter = bytearray(rows)
    bad_filter[25] = 9
    image = Image.fromarray(picture(40, 30))
    jpeg = saved(image, "JPEG", quality=85)
    size_at = jpeg.index(b"\xff\xc0") + 5
    huge = jpeg[:size_at] + struct.pack(">HH", 65500, 65500) + jpeg[size_at + 4:]
    no_height = jpeg[:size_at] + b"\0\0" + jpeg[size_at + 2:]
    # All ones is no code word, and 0xff00 stands for a 0xff of the data.
    scan_at = jpeg.index(b"\xff\xda") + 40
    scrambled = jpeg[:scan_at] + b"\xff\0" * 20 + jpeg[scan_at + 40:]
    progressive = saved(image, "JPEG", quality=85, progressive=True)
    files = {
        "png_signature_only": SIGNATURE,
        "png_no_header": SIGNATURE + idat + end,
        "png_short_header": SIGNATURE + chunk(b"IHDR", bytes(12)) + idat + end,
        "png_huge": SIGNATURE + header(65535, 65535, 8, RGB) + idat + end,
        "png_largest_sides": SIGNATURE + header(0xffffffff, 0xffffffff, 8, RGB) + idat + end,
        "png_no_width": SIGNATURE + header(0, 8, 8, RGB) + idat + end,
        "png_bad_depth": SIGNATURE + header(8, 8, 3, RGB) + idat + end,
        "png_bad_color": SIGNATURE + header(8, 8, 8, 5) + idat + end,
        "png_no_pixels": head + end,
        "png_no_end": head + idat,
        "png_few_rows": head + chunk(b"IDAT", zlib.compress(rows[:75])) + end,
        "png_cut_stream": head + chunk(b"IDAT", zlib.compress(rows)[:90]) + end,
        "png_not_deflate": head + chunk(b"IDAT", bytes(range(60))) + end,
        "png_bad_filter": head + chunk(b"IDAT", zlib.compress(bytes(bad_filter))) + end,
        "png_bad_checksum": head + chunk(b"IDAT", zlib.compress(rows), 12345) + end,
        "png_bad_checksum_of_text": head + chunk(b"tEXt", b"a\0b", 1) + idat + end,
        "png_no_palette": png(8, 8, 8, PALETTE),
        "png_long_chunk": head + struct.pack(">I", 0xffffffff) + b"IDATxxxx" + end,
        "jpeg_signature_only": b"\xff\xd8\xff",
        "jpeg_no_scan": jpeg[:jpeg.index(b"\xff\xda")] + b"\xff\xd9",
        "jpeg_huge": huge,
        "jpeg_no_height": no_height,
        "jpeg_half": jpeg[:(jpeg.index(b"\xff\xda") + len(jpeg)) // 2],
        "jpeg_no_end": jpeg[:-30],
        "jpeg_scrambled": scrambled,
        "jpeg_many_scans": deep_progressive(progressive, 200),
        "gif": saved(image.convert("P"), "GIF"),
        "gif_animated": saved(image.convert("P"), "GIF", save_all=True,
                              append_images=[image.rotate(90).convert("P")]),
        "webp": saved(image, "WEBP"),
        "bmp": saved(image.resize((8, 8)), "BMP"),
        "tiff": saved(image.resize((8, 8)), "TIFF"),
        "text": b"a photo of a cat",
        "zeros": bytes(64),
        "one_byte": b"\x89",
    }
    return {name: as_bytes(data) for name, data in files.items()}


def resized():
    tensors = {}
    cases = [((100, 70), (96, 67)), ((100, 70), (37, 41)), ((40, 30), (97, 64)), ((33, 65), (33, 20)),
             ((65, 33), (20, 33)), ((64, 64), (1, 1)), ((1, 1), (7, 5)), ((2, 3), (64, 3)),
             ((200, 150), (31, 17)), ((17, 90), (90, 17)), ((5, 5), (5, 5))]
    for i, (size, target) in enumerate(cases):
        image = picture(*size)
        if i == 1:
            # Nothing but black and white: the kernel overshoots at every edge.
            image = np.where(image > 127, 255, 0).astype(np.uint8)
        out = Image.fromarray(image).resize(target, Image.LANCZOS)
        tensors[f"{i}/image"] = image
        tensors[f"{i}/resized"] = np.asarray(out)
    return tensors


write_safetensors("decode.safetensors", decodable())
write_safetensors("broken.safetensors", broken())
write_safetensors("resize.safetensors", resized())
