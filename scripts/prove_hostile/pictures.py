"""Makes pictures of few bytes that are expensive to decode. All functions are pure."""

import functools
import struct

from prove_abuse.png import png


def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


class Bits:
    """The entropy-coded bits of a scan, whose 0xFF bytes are followed by 0."""

    def __init__(self):
        self._value = 0
        self._count = 0

    def add(self, value, count):
        self._value = self._value << count | value
        self._count += count

    def bytes(self):
        rest = -self._count % 8
        filled = self._value << rest | (1 << rest) - 1
        return filled.to_bytes((self._count + rest) // 8, "big").replace(b"\xff", b"\xff\x00")


def progressive_jpeg(width, height, scans):
    """A valid progressive JPEG of one grey: one scan of DC, then scans of one AC coefficient of a component each, in which
    every block is empty. A decoder passes over all blocks of the component for each of them. At most 190 scans."""
    blocks = -(-width // 8) * -(-height // 8)
    table = segment(0xDB, b"\x00" + b"\x01" * 64)
    frame = segment(0xC2, struct.pack(">BHHB", 8, height, width, 3) + b"".join(bytes([c, 0x11, 0]) for c in (1, 2, 3)))
    # DC: the difference 0 is one bit. AC: a code of four bits for each EOBn, which ends 2^n blocks and as many more as n bits say.
    dc = segment(0xC4, b"\x00" + bytes([1] + [0] * 15) + b"\x00")
    ac = segment(0xC4, b"\x10" + bytes([0, 0, 0, 15] + [0] * 12) + bytes(n << 4 for n in range(15)))
    first = segment(0xDA, bytes([3, 1, 0, 2, 0, 3, 0, 0, 0, 0])) + bytes(-(-blocks * 3 // 8))
    run = Bits()
    left = blocks
    while left:
        n = min(14, left.bit_length() - 1)
        ended = min(left, (2 << n) - 1)
        run.add(n, 4)
        run.add(ended - (1 << n), n)
        left -= ended
    data = run.bytes()
    bands = [(component, k) for k in range(1, 64) for component in (1, 2, 3)][:scans - 1]
    rest = b"".join(segment(0xDA, bytes([1, component, 0, k, k, 0])) + data for component, k in bands)
    return b"\xff\xd8" + table + frame + dc + ac + first + rest + b"\xff\xd9"


@functools.cache
def honest(fake):
    """Returns a small picture that the engine accepts."""
    return b"PNG of an honest caller" if fake else png(64, 64)


@functools.cache
def small_file():
    """Returns 8 KB that unpack to 192 MiB of RGB."""
    return png(8000, 8000, bits=1, colour=0)


@functools.cache
def many_scans():
    return progressive_jpeg(7900, 7900, 100)


# Alternating combining marks: a normalization must put all of them in order.
MARKS = "a" + "\u0301\u0323" * 16_000
