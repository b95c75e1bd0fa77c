"""Makes PNG files of few bytes. All functions are pure."""

import struct
import zlib


def png(width, height, bits=8, colour=2, most_rows=None):
    """Returns a PNG of zeros. `colour`: 0 grey, 2 RGB. The file is valid unless `most_rows` is less than its height."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    row = bytes(1 + (width * bits * (3 if colour == 2 else 1) + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(min(height, most_rows or height))) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
