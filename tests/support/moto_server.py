"""Serves moto's S3 on a free port of 127.0.0.1, prints the port, and ends with its parent's input.

    python3 moto_server.py PACKAGES [PORT]

PACKAGES is the folder into which scripts/setup unpacks moto.
"""
import os
import sys
import threading

sys.path.insert(0, sys.argv[1])

from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: E402
from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: E402


class Quiet(WSGIRequestHandler):
    """Keeps connections open, as real services do, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = make_server("127.0.0.1", port, DomainDispatcherApplication(create_backend_app), threaded=True, request_handler=Quiet)
threading.Thread(target=end_with_parent, daemon=True).start()
print(server.server_port, flush=True)
server.serve_forever()
