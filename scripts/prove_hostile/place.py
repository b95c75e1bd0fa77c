"""What other processes must know about the server."""

import dataclasses
import functools
import http.client
import ssl

from wan.v1 import video_generation_pb2

from prove_abuse import server

# The principals of a server that authenticates callers. eve and vic attack; the others must not feel it.
PRINCIPALS = {"ops": "admin", "alice": "user", "bob": "user", "eve": "user", "vic": "viewer"}


@dataclasses.dataclass
class Place:
    """Addresses and tokens of a server; it is passed to other processes."""
    grpc: str
    http: str
    metrics: str
    model: str
    fake: bool
    tokens: dict  # empty if the server does not authenticate callers
    facts: dict  # what the preparation of the attack has made
    certificate: str = None  # of a server whose ports speak TLS

    def channel(self):
        """A connection of its own to gRPC."""
        return server.new_channel(self.grpc, self.certificate)

    def tls(self, *protocols):
        """What wraps a connection, or None where the server speaks plain text. `protocols`: offered with ALPN."""
        return context(self.certificate, protocols) if self.certificate else None

    def http_connection(self, address, timeout):
        """A connection of HTTP/1.1 to the port for videos or to that for metrics."""
        if self.certificate is None:
            return http.client.HTTPConnection(address, timeout=timeout)
        return http.client.HTTPSConnection(address, timeout=timeout, context=self.tls())

    def token(self, principal):
        return self.tokens.get(principal)

    def call(self, channel, method, request, principal, timeout=10):
        return server.call(channel, method, request, timeout, self.token(principal))

    def request(self, **fields):
        return server.small_request(self.model, self.fake, **fields)

    def create_request(self, **fields):
        return video_generation_pb2.CreateJobRequest(request=self.request(**fields))

    def fields(self, principal, **more):
        """Returns the header fields of an HTTP/1.1 request."""
        token = self.token(principal)
        return more | ({"Authorization": f"Bearer {token}"} if token else {})

    def header(self, method, path, principal, **more):
        """Returns the header of a request as bytes, to send by hand. Underscores in names stand for hyphens."""
        fields = self.fields(principal, Host=self.http, **{name.replace("_", "-"): value for name, value in more.items()})
        lines = [f"{method} {path} HTTP/1.1"] + [f"{name}: {value}" for name, value in fields.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def ask(self, method, path, principal, body=None, timeout=10, **more):
        """Makes a request on a new connection; returns the status and the body of the answer."""
        connection = self.http_connection(self.http, timeout)
        try:
            fields = {name.replace("_", "-"): value for name, value in more.items()}
            connection.request(method, path, body, self.fields(principal, **fields))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@functools.cache
def context(certificate, protocols=()):
    """TLS that trusts this certificate only."""
    made = ssl.create_default_context(cadata=certificate)
    if protocols:
        made.set_alpn_protocols(protocols)
    return made


def form(fields, picture=None, boundary="wan-hostile"):
    """Returns a body of multipart/form-data, and its content type."""
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() +
             (value if isinstance(value, bytes) else str(value).encode()) + b"\r\n" for name, value in fields.items()]
    if picture:
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="input_reference"; filename="a.png"\r\n'
                     "Content-Type: image/png\r\n\r\n".encode() + picture + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"
