"""The wheel of client/python for the tests of it: builds or unpacks it, and runs them with both clients."""

import argparse
import asyncio
import importlib
import inspect
import pathlib
import shutil
import sys
import tempfile
import unittest

from demo_server import build_wheel

SKIPPED = 77
OPTIONS = argparse.Namespace()


class Awaited:
    """An AsyncClient with the methods of Client, so that a test runs with both of them."""

    def __init__(self, client):
        self._client = client
        self._loop = asyncio.new_event_loop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __getattr__(self, name):
        method = getattr(self._client, name)

        def call(*arguments, **keywords):
            answer = method(*arguments, **keywords)
            return (self._loop.run_until_complete(answer) if inspect.isawaitable(answer) else self._each(answer))

        return call

    def _each(self, messages):
        async def following():
            return await messages.__anext__()

        try:
            while True:
                yield self._loop.run_until_complete(following())
        except StopAsyncIteration:
            return
        finally:
            self._loop.run_until_complete(messages.aclose())

    def close(self):
        self._loop.run_until_complete(self._client.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def main():
    """Runs the tests of the program. OPTIONS.folder has the wheel's contents in site/, as pip would install them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repository", required=True, type=pathlib.Path)
    parser.add_argument("--server", required=True)
    parser.add_argument("--googleapis", required=True, type=pathlib.Path)
    parser.add_argument("--wheel", type=pathlib.Path, help="test this one instead of building one")
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    for module in ("grpc", "google.protobuf", *(() if OPTIONS.wheel else ("setuptools", "wheel", "pip"))):
        try:
            importlib.import_module(module)
        except ImportError as missing:
            print(f"skipped: {missing}; scripts/setup installs it")
            return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        OPTIONS.folder = pathlib.Path(folder)
        OPTIONS.wheel = OPTIONS.wheel or build_wheel(OPTIONS.folder, OPTIONS.repository, OPTIONS.googleapis)
        shutil.unpack_archive(OPTIONS.wheel, OPTIONS.folder / "site", "zip")
        sys.path[:0] = [str(OPTIONS.folder / "site"), str(OPTIONS.googleapis)]
        ended = unittest.main(module="__main__", argv=[sys.argv[0], *rest], exit=False)
    return 0 if ended.result.wasSuccessful() else 1
