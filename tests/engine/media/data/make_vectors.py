#!/usr/bin/env python3
"""Makes decode.safetensors, broken.safetensors, resize.safetensors and shown.safetensors of this folder.

Run with Python 3.11, Pillow 12.2.0 and NumPy 2.4.6:  python make_vectors.py
What each file holds, and why not a later Pillow: README.md.
"""
import io
import json
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

BACKGROUND = (32, 96, 160)  # of <name>/over
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


# What png() has put into the files that it made: samples, depth, colour type and transparent colour.
CONTENTS = {}


def png(width, height, depth, color, extra=b"", interlace=0, samples=None, split=None, transparent=None,
        after_pixels=b""):
    if samples is None:
        samples = RNG.integers(0, 2 ** depth, (height, width, CHANNELS[color]))
    rows = adam7(samples, depth) if interlace else pack_rows(samples, depth)
    data = zlib.compress(rows)
    parts = [data] if split is None else [data[i:i + split] for i in range(0, len(data), split)]
    if transparent is not None:
        extra += chunk(b"tRNS", struct.pack(f">{len(transparent)}H", *transparent))
    data = (SIGNATURE + header(width, height, depth, color, interlace) + extra
            + b"".join(chunk(b"IDAT", part) for part in parts) + after_pixels + chunk(b"IEND"))
    if color != PALETTE:
        CONTENTS[data] = samples, depth, color, transparent
    return data


def palette(count):
    return chunk(b"PLTE", RNG.integers(0, 256, count * 3).astype(np.uint8).tobytes())


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def with_opacity(data):
    """The stored picture as [h, w, 4] of 0 to 255, not rounded. Pillow keeps the upper 8 of 16 bits and compares a
    transparent colour of few bits with samples of 8, so the files that png() made are read from what it put in."""
    if data not in CONTENTS:
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")).astype(np.float64)
    samples, depth, color, transparent = CONTENTS[data]
    scaled = np.floor(samples * 255 / (2 ** depth - 1) + 0.5)
    if color in (GREY_ALPHA, RGBA):
        opacity = scaled[..., -1:]
        scaled = scaled[..., :-1]
    elif transparent is not None:
        opacity = 255.0 * (samples != np.array(transparent)).any(-1, keepdims=True)
    else:
        opacity = np.full_like(scaled[..., :1], 255)
    colors = np.broadcast_to(scaled, scaled.shape[:2] + (3,))
    return np.concatenate([colors, opacity], -1)


def shown(data, background):
    """The picture over a background, turned by Pillow."""
    stored = with_opacity(data)
    opacity = stored[..., 3:] / 255
    blended = np.floor(stored[..., :3] * opacity + np.array(background) * (1 - opacity) + 0.5).astype(np.uint8)
    turned = Image.fromarray(blended)
    turned.getexif()[0x0112] = Image.open(io.BytesIO(data)).getexif().get(0x0112, 1)
    rgb = np.asarray(ImageOps.exif_transpose(turned))

    # Pillow's own pixels: the same where it reads a file whole, one beside in its blending.
    image = Image.open(io.BytesIO(data))
    if data in CONTENTS and CONTENTS[data][1] != 8:
        return rgb
    over = Image.new("RGBA", image.size, background + (255,))
    over.alpha_composite(image.convert("RGBA"))
    over.getexif()[0x0112] = image.getexif().get(0x0112, 1)
    by_pillow = np.asarray(ImageOps.exif_transpose(over).convert("RGB"))
    far = np.abs(by_pillow.astype(int) - rgb).max()
    assert far <= (1 if (stored[..., 3] < 255).any() else 0), far
    return rgb


def exif(orientation, order="<", prefix=b"", kind="H"):
    """EXIF data with a description, an orientation and a resolution."""
    value = struct.pack(order + ("H2x" if kind == "H" else "I"), orientation)
    entries = [struct.pack(order + "HHI", 0x010e, 2, 4) + b"abc\0",
               struct.pack(order + "HHI", 0x0112, 3 if kind == "H" else 4, 1) + value,
               struct.pack(order + "HHIHxx", 0x0128, 3, 1, 2)]
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    return prefix + head + struct.pack(order + "H", len(entries)) + b"".join(entries) + bytes(4)


def with_exif_chunk(webp, data):
    """Puts EXIF data at the end of a WebP file, and changes nothing else."""
    body = webp[8:] + b"EXIF" + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def with_pixels(files):
    tensors = {}
    for name, data in files.items():
        tensors[name + "/file"] = as_bytes(data)
        tensors[name + "/rgb"] = shown(data, (255, 255, 255))
        if (with_opacity(data)[..., 3] < 255).any():
            tensors[name + "/over"] = shown(data, BACKGROUND)
    return tensors


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
    files["png/grey8_transparent"] = png(21, 13, 8, GREY, transparent=(0x40,))
    files["png/rgb8_transparent"] = png(21, 13, 8, RGB, transparent=(1, 2, 3))
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
    turned = Image.Exif()
    turned[0x0112] = 6  # orientation: turn by 90 degrees
    files["jpeg/turned_by_exif"] = saved(base, "JPEG", quality=85, exif=turned)
    files["jpeg/one_pixel"] = saved(base.crop((3, 3, 4, 4)), "JPEG")
    files["jpeg/trailing_bytes"] = files["jpeg/420"] + b"and more"
    # Stray bytes between two markers, as some cameras leave them.
    files["jpeg/stray_bytes"] = files["jpeg/420"][:20] + b"\0\0\0" + files["jpeg/420"][20:]

    return with_pixels(files)


def turned_blended_and_webp():
    files = {}
    # Transparent colours, with pixels that have them.
    for color, depths in ((GREY, (1, 2, 4, 16)), (RGB, (16,))):
        for depth in depths:
            name = f"png/{'grey' if color == GREY else 'rgb'}{depth}_transparent"
            samples = RNG.integers(0, 2 ** depth, (13, 21, CHANNELS[color]))
            samples[3:9, 4:15] = samples[0, 0]
            # Equal in the upper 8 bits only: opaque.
            if depth == 16:
                samples[5, 5] = samples[0, 0] ^ 1
            transparent = tuple(int(v) for v in samples[0, 0])
            files[name] = png(21, 13, depth, color, samples=samples, transparent=transparent)
            files[name + "_interlaced"] = png(21, 13, depth, color, samples=samples, transparent=transparent,
                                              interlace=1)
    for depth in (1, 2, 4):
        opacities = chunk(b"tRNS", bytes(range(0, 250, 40))[:2 ** depth])
        files[f"png/palette{depth}_transparent"] = png(21, 13, depth, PALETTE, palette(2 ** depth) + opacities)
    files["png/rgba8_opaque"] = png(
        21, 13, 8, RGBA, samples=np.concatenate([RNG.integers(0, 256, (13, 21, 3)), np.full((13, 21, 1), 255)], -1))
    ramp = np.linspace(0, 65535, 128).round().astype(int).reshape(1, 128, 1).repeat(2, 0)
    files["png/grey16_ramp"] = png(128, 2, 16, GREY, samples=ramp)

    # EXIF orientations in every container, in both byte orders.
    small = Image.fromarray(picture(24, 17))
    for orientation in range(1, 9):
        order = "<>"[orientation % 2]
        files[f"png/exif_{orientation}"] = png(13, 9, 8, RGB, chunk(b"eXIf", exif(orientation, order)))
        files[f"jpeg/exif_{orientation}"] = saved(small, "JPEG", exif=exif(orientation, order, b"Exif\0\0"))
        files[f"webp/exif_{orientation}"] = saved(small, "WEBP", lossless=True, exif=exif(orientation, order))
    files["png/exif_after_pixels"] = png(13, 9, 8, RGB, after_pixels=chunk(b"eXIf", exif(6)))
    files["png/exif_with_prefix"] = png(13, 9, 8, RGB, chunk(b"eXIf", exif(6, ">", b"Exif\0\0")))
    files["png/exif_and_opacity"] = png(13, 9, 8, RGBA, chunk(b"eXIf", exif(7)))
    files["png/exif_and_16_bits"] = png(13, 9, 16, GREY_ALPHA, chunk(b"eXIf", exif(8)), interlace=1)
    files["jpeg/exif_as_a_long"] = saved(small, "JPEG", exif=exif(8, ">", b"Exif\0\0", "I"))
    files["jpeg/exif_of_grey"] = saved(small.convert("L"), "JPEG", exif=exif(5, "<", b"Exif\0\0"))
    files["jpeg/exif_of_cmyk"] = saved(small.convert("CMYK"), "JPEG", exif=exif(3, "<", b"Exif\0\0"))
    # Orientations that mean nothing, and a directory beyond the data.
    files["jpeg/exif_0"] = saved(small, "JPEG", exif=exif(0, "<", b"Exif\0\0"))
    files["jpeg/exif_9"] = saved(small, "JPEG", exif=exif(9, "<", b"Exif\0\0"))
    files["jpeg/exif_cut_off"] = saved(small, "JPEG", exif=exif(6, "<", b"Exif\0\0")[:24])
    # Adobe's mark says which transform the inks have: YCCK if it ends in 2. Without it they are plain inks.
    cmyk = saved(small.convert("CMYK"), "JPEG", quality=90)
    mark = cmyk.index(b"\xff\xee\0\x0eAdobe")
    files["jpeg/ycck"] = cmyk[:mark + 15] + b"\2" + cmyk[mark + 16:]
    files["jpeg/cmyk_without_mark"] = cmyk[:mark] + cmyk[mark + 16:]

    opacity = Image.fromarray(np.add.outer(np.arange(17) * 9, np.arange(24) * 6).clip(0, 255).astype(np.uint8))
    clear = small.copy()
    clear.putalpha(opacity)
    files["webp/lossy"] = saved(small, "WEBP", quality=80)
    files["webp/lossy_odd"] = saved(small.crop((0, 0, 23, 15)), "WEBP", quality=50)
    files["webp/lossless"] = saved(small, "WEBP", lossless=True)
    files["webp/lossy_opacity"] = saved(clear, "WEBP", quality=80, exact=True)
    files["webp/lossless_opacity"] = saved(clear, "WEBP", lossless=True, exact=True)
    files["webp/exif_and_opacity"] = saved(clear, "WEBP", lossless=True, exact=True, exif=exif(6))
    files["webp/exif_of_lossy"] = saved(small, "WEBP", quality=80, exif=exif(5, ">"))
    without = files["webp/exif_8"][:-8 - len(exif(8))]
    files["webp/exif_with_prefix"] = with_exif_chunk(without, exif(8, prefix=b"Exif\0\0"))
    files["webp/exif_of_simple_file"] = with_exif_chunk(files["webp/lossless"], exif(8))
    flags = bytearray(files["webp/exif_8"])
    flags[20] &= ~8
    files["webp/exif_without_flag"] = bytes(flags)
    files["webp/one_pixel"] = saved(small.crop((3, 3, 4, 4)), "WEBP")
    files["webp/trailing_bytes"] = files["webp/lossy"] + b"and more"

    return with_pixels(files)


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
    webp = saved(image, "WEBP")
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
        "webp_animated": saved(image, "WEBP", save_all=True, append_images=[image.rotate(90)]),
        "webp_signature_only": webp[:12],
        "webp_no_riff": b"RIFX" + webp[4:],
        "webp_half": webp[:len(webp) // 2],
        "webp_no_pixels": webp[:12] + b"VP8 " + bytes(4),
        "webp_bad_pixels": b"RIFF" + struct.pack("<I", 24) + b"WEBPVP8 " + struct.pack("<I", 12) + bytes(12),
        "webp_huge": b"RIFF" + struct.pack("<I", 30) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff" * 3
                     + b"\xff\0\0" + bytes(8),
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
write_safetensors("shown.safetensors", turned_blended_and_webp())
