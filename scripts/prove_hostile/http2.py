"""Frames of HTTP/2 made by hand, for what no well-behaved library sends. Pure but for Connection."""

import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
INITIAL_WINDOW_SIZE = 4
CANCEL = 8
_HEADER = struct.Struct(">BHBBI")


def frame(kind, flags, stream, payload=b""):
    return _HEADER.pack(len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, stream) + payload


def integer(value, prefix_bits, first=0):
    """Returns an integer as HPACK encodes it; `first` has the bits before the prefix."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes([first | value])
    parts = [first | limit]
    value -= limit
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes(parts + [value])


def text(value):
    """Returns a string literal of HPACK, without Huffman coding."""
    value = value if isinstance(value, bytes) else value.encode()
    return integer(len(value), 7) + value


def literal(name, value):
    """Returns a header field that does not change the peer's table."""
    return b"\x00" + text(name) + text(value)


def call_fields(path, token=None, authority="localhost"):
    """Returns the header block of a gRPC call."""
    block = b"\x83\x86" + b"\x04" + text(path) + b"\x01" + text(authority)  # POST, http
    block += literal("content-type", "application/grpc") + literal("te", "trailers")
    return block + (literal("authorization", f"Bearer {token}") if token else b"")


def settings(values=(), ack=False):
    return frame(SETTINGS, ACK if ack else 0, 0, b"".join(struct.pack(">HI", *pair) for pair in values))


def message(data):
    """Returns the frame of a gRPC message that is not compressed."""
    return b"\x00" + struct.pack(">I", len(data)) + data


def call(stream, block, request):
    """A whole unary call. A request over 16 KiB is divided; the peer's window must have room for it."""
    data = message(request)
    frames = [frame(HEADERS, END_HEADERS, stream, block)]
    pieces = [data[at:at + 16384] for at in range(0, len(data), 16384)]
    frames += [frame(DATA, END_STREAM if piece is pieces[-1] else 0, stream, piece) for piece in pieces]
    return b"".join(frames)


def window_update(stream, bytes_more):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", bytes_more))


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


class Reader:
    """Cuts bytes into frames as they come."""

    def __init__(self):
        self._bytes = bytearray()

    def feed(self, data):
        """Returns the frames that are complete now: (kind, flags, stream, payload)."""
        self._bytes += data
        frames = []
        while len(self._bytes) >= 9:
            high, low, kind, flags, stream = _HEADER.unpack_from(self._bytes)
            end = 9 + (high << 16 | low)
            if len(self._bytes) < end:
                break
            frames.append((kind, flags, stream & 0x7FFFFFFF, bytes(self._bytes[9:end])))
            del self._bytes[:end]
        return frames


class Connection:
    """A connection whose preface and settings have been sent. OSError where the peer closes it."""

    def __init__(self, address, values=(), acknowledge=True, receive_buffer=None, timeout=10, source=None, tls=None):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(timeout)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect((host, int(port)))
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self.socket.sendall(PREFACE + settings(values))
        self._reader = Reader()
        self._timeout = timeout
        self._acknowledge = acknowledge
        self._next = 1
        self._window = 65535  # bytes that may be sent on the whole connection
        self._stream_window = 65535  # and on a new stream
        self._more = {}  # streams' own updates, while something is being sent on them
        self.ended = set()  # the streams that the server has ended

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def next_stream(self):
        self._next += 2
        return self._next - 2

    @property
    def open(self):
        """Returns how many streams were begun and have not been ended by the server."""
        return self._next // 2 - len(self.ended)

    def send(self, data):
        """Sends the bytes without regard to the peer's windows."""
        self.socket.sendall(data)

    def call(self, block, request, end=True):
        """A whole call within the peer's windows; waits for them. Returns its stream."""
        stream, data, sent = self.next_stream(), message(request), 0
        self._more[stream] = 0
        self.send(frame(HEADERS, END_HEADERS, stream, block))
        while sent < len(data) and stream not in self.ended:
            room = min(16384, self._window, self._stream_window + self._more[stream] - sent, len(data) - sent)
            if room <= 0:
                self.receive()
                continue
            last = sent + room == len(data)
            self.send(frame(DATA, END_STREAM if last and end else 0, stream, data[sent:sent + room]))
            self._window -= room
            sent += room
        del self._more[stream]
        return stream

    def receive(self):
        """Waits for bytes; returns the frames that are whole, and answers settings and pings."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("closed by the server")
        return self._note(self._reader.feed(data))

    def take(self):
        """Returns the frames that have come; never waits."""
        frames = []
        while True:
            try:
                # The module waits for its timeout even with MSG_DONTWAIT.
                self.socket.setblocking(False)
                data = self.socket.recv(1 << 16)
            except (BlockingIOError, ssl.SSLWantReadError):
                return frames
            finally:
                self.socket.settimeout(self._timeout)
            if not data:
                raise ConnectionResetError("closed by the server")
            frames += self._note(self._reader.feed(data))

    def _note(self, frames):
        for kind, flags, stream, payload in frames:
            if kind == SETTINGS and not flags & ACK:
                for key, value in struct.iter_unpack(">HI", payload):
                    if key == INITIAL_WINDOW_SIZE:
                        self._stream_window = value
                if self._acknowledge:
                    self.send(settings(ack=True))
            elif kind == WINDOW_UPDATE:
                more, = struct.unpack(">I", payload)
                if stream == 0:
                    self._window += more
                elif stream in self._more:
                    self._more[stream] += more
            elif kind == PING and not flags & ACK:
                self.send(frame(PING, ACK, 0, payload))
            elif kind == RST_STREAM or (kind in (HEADERS, DATA) and flags & END_STREAM):
                self.ended.add(stream)
            elif kind == GOAWAY and struct.unpack(">I", payload[4:8])[0]:
                raise ConnectionResetError(f"closed by the server: {payload[8:].decode(errors='replace')}")
        return frames


def ask_once(address, path, request, token=None, timeout=10, tls=None):
    """A unary call on a connection of its own, as a probe makes it. The bytes of the answer, or None if the call failed."""
    with Connection(address, timeout=timeout, tls=tls) as connection:
        connection.send(call(1, call_fields(path, token), request))
        answer = bytearray()
        while 1 not in connection.ended:
            for kind, _, stream, payload in connection.receive():
                if kind == DATA and stream == 1:
                    answer += payload
        return bytes(answer[5:]) if answer else None

