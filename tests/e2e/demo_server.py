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
    """A server with the demo model; its addresses are in its first line. `http` is None unless it is asked for."""

    def __init__(self, program, folder, *flags, http="none"):
        self._process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--http-listen", http,
             "--data-dir", str(folder), "--log-level", "error", *flags], stdout=subprocess.PIPE)
        addresses = json.loads(self._process.stdout.readline())
        self.address = addresses["grpc"]
        self.http = addresses.get("http")

    def stop(self):
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()
