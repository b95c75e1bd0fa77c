"""Callers who misuse TLS beside honest ones who speak it, on all ports."""

import collections
import ctypes
import ssl
import time

from wan.v1 import video_generation_pb2

from prove_hostile import http2
from prove_hostile.answers import LONG_JOBS, make_long_jobs
from prove_hostile.crowds import ADDRESS, attack_connection, attack_socket
from prove_hostile.floods import HEALTH
from prove_hostile.registry import attack
from prove_hostile.siege import run_siege

HELD_HANDSHAKES = 600
# Of OpenSSL.
_MAX_PROTO_VERSION, _TLS1_2, _TLS1_3 = 124, 0x0303, 0x0304


class Records:
    """A connection of TLS, in the place of ssl.SSLSocket, each of whose bytes is sent as a record of its own."""

    def __init__(self, connection, context, name):
        self._socket = connection
        self._arrived, self._sealed = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._sealed, server_hostname=name)
        self._read(self._tls.do_handshake)
        self._socket.sendall(self._sealed.read())
        self.settimeout, self.setblocking, self.close = connection.settimeout, connection.setblocking, connection.close

    def sendall(self, data):
        for at in range(len(data)):
            self._tls.write(data[at:at + 1])
        self._socket.sendall(self._sealed.read())

    def recv(self, size):
        return self._read(lambda: self._tls.read(size))

    def _read(self, act):
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                self._socket.sendall(self._sealed.read())
                data = self._socket.recv(1 << 16)
                if not data:
                    raise ConnectionResetError("closed by the server") from None
                self._arrived.write(data)


class ByteWise:
    """In the place of ssl.SSLContext."""

    def __init__(self, context):
        self._context = context

    def wrap_socket(self, connection, server_hostname):
        return Records(connection, self._context, server_hostname)


class OpenSsl:
    """A connection with the calls of OpenSSL that Python's module does not have. OSError where the peer closes it."""

    def __init__(self, address, version):
        lib = self._lib = ctypes.CDLL("libssl.so.3")
        for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
            getattr(lib, name).restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_client_method())))
        lib.SSL_CTX_ctrl(self._context, _MAX_PROTO_VERSION, ctypes.c_long(version), None)
        lib.SSL_CTX_set_alpn_protos(self._context, b"\x02h2", 3)
        self._tls = ctypes.c_void_p(lib.SSL_new(self._context))
        self._socket = attack_socket(address, timeout=None)
        lib.SSL_set_fd(self._tls, self._socket.fileno())
        self._check(lib.SSL_connect(self._tls))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._lib.SSL_free(self._tls)
        self._lib.SSL_CTX_free(self._context)
        self._socket.close()

    @staticmethod
    def _check(result):
        if result != 1:
            raise ConnectionResetError("closed or refused by the server")

    def send(self, data):
        self._check(self._lib.SSL_write(self._tls, data, len(data)) > 0)

    def update_keys(self):
        self._check(self._lib.SSL_key_update(self._tls, 0))
        self._check(self._lib.SSL_do_handshake(self._tls))

    def renegotiate(self):
        self._check(self._lib.SSL_renegotiate(self._tls))
        self._check(self._lib.SSL_do_handshake(self._tls))


def hello_of(place):
    """The first message of a handshake."""
    arrived, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        place.tls("h2", "http/1.1").wrap_bio(arrived, sent, server_hostname="127.0.0.1").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


def halted_handshakes(place):
    """Each costs the server a signature, and its connection is kept; every fourth stops in the middle of its first message."""
    hello = hello_of(place)
    held = collections.deque()
    try:
        while True:
            for address in (place.grpc, place.http):
                for share in (1, 1, 1, 2):
                    held.append(attack_socket(address))
                    held[-1].sendall(hello[:len(hello) // share])
            while len(held) > HELD_HANDSHAKES:
                held.popleft().close()
    finally:
        for connection in held:
            connection.close()


def renegotiations(place):
    with OpenSsl(place.grpc, _TLS1_2) as connection:
        while True:
            connection.renegotiate()


def key_updates(place):
    with OpenSsl(place.grpc, _TLS1_3) as connection:
        connection.send(http2.PREFACE + http2.settings())
        while True:
            connection.update_keys()


def tiny_records(place):
    """Calls of health, each byte in a record of its own, whose answers are taken."""
    block = http2.call_fields(HEALTH, place.token("vic"))
    with http2.Connection(place.grpc, source=ADDRESS, tls=ByteWise(place.tls("h2"))) as connection:
        while True:
            connection.send(b"".join(http2.call(connection.next_stream(), block, b"") for _ in range(50)))
            connection.take()


def unread_connections(place):
    """Four that ask for long lists, leave windows open and never read."""
    block = http2.call_fields("/wan.v1.VideoGeneration/ListJobs", place.token("eve"))
    request = video_generation_pb2.ListJobsRequest(page_size=LONG_JOBS).SerializeToString()
    widest = (1 << 31) - 1
    opened = []
    try:
        while len(opened) < 4:
            opened.append(attack_connection(place, [(http2.INITIAL_WINDOW_SIZE, widest)], receive_buffer=4096))
            opened[-1].send(http2.window_update(0, widest - 65535))
            for _ in range(200):
                opened[-1].call(block, request)
        time.sleep(60)
    finally:
        for connection in opened:
            connection.socket.close()


@attack("tls-handshakes")
def handshakes(options, tokens):
    """handshakes that stop halfway, thousands a second, keep nobody from making one"""
    return run_siege(options, tokens, [halted_handshakes], tls=True)


@attack("tls-renegotiations")
def renewals(options, tokens):
    """renegotiations are refused, and changes of keys without end keep nobody waiting"""
    return run_siege(options, tokens, [renegotiations, key_updates, key_updates], tls=True)


@attack("tls-records")
def records(options, tokens):
    """calls whose every byte is a record of TLS keep nobody waiting"""
    return run_siege(options, tokens, [tiny_records, tiny_records], tls=True)


@attack("tls-unread")
def unread(options, tokens):
    """lists over TLS that nobody reads, with windows as wide as they go, take no memory out of proportion"""
    return run_siege(options, tokens, [unread_connections], make_long_jobs, tls=True)
