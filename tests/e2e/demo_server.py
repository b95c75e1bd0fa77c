"""What tests in Python share: the wheel of client/python, and a server with the demo model."""

import json
import os
import shutil
import subprocess
import sys


def build_wheel(folder, repository, googleapis):
    """Returns the wheel, made in the folder. The sources are copied, since setuptools leaves its files beside them."""
    source = folder / "source"
    shutil.copytree(repository / "client" / "python", source)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
         "--disable-pip-version-check", "--wheel-dir", str(folder), str(source)],
        check=True, env={**os.environ, "WAN_PROTO_DIR": str(repository / "proto"), "WAN_GOOGLEAPIS_DIR": str(googleapis)})
    wheels = list(folder.glob("wanserve_client-*-py3-none-any.whl"))
    assert len(wheels) == 1, list(folder.iterdir())
    return wheels[0]


class DemoServer:
    """A server with the demo model; the address is in its first line."""

    def __init__(self, program, folder, *flags):
        self._process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--http-listen", "none",
             "--data-dir", str(folder), "--log-level", "error", *flags], stdout=subprocess.PIPE)
        self.address = json.loads(self._process.stdout.readline())["grpc"]

    def stop(self):
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()
