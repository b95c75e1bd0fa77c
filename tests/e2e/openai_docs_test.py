"""Every program of docs/use/openai.md is run as its readers do, against a server with the demo model."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import demo_server

SKIPPED = 77

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Other values than on the page: the demo model makes its videos on a CPU, and no player shows them.
INSTEAD = (("1280x704", "192x192"), ("seconds=4", "seconds=0.25"), ('seconds="4"', 'seconds="0.25"'),
           ('"seconds": 4', '"seconds": 0.25'), ('"seconds": 5', '"seconds": 0.25'), ("| ffplay -", "> live.mp4"))


def programs(page, language, address):
    found = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    for shown, used in (("127.0.0.1:8000", address), *INSTEAD):
        found = [program.replace(shown, used) for program in found]
    return found


def run(command, program, folder, packages):
    # A warning of OpenAI's client about OpenAI's own service is none here.
    ran = subprocess.run([*command, program], cwd=folder, capture_output=True, text=True, check=False,
                         env={**os.environ, "token": "unused", "PYTHONPATH": packages})
    assert ran.returncode == 0, f"{program}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def take_video(path):
    assert path.read_bytes()[4:8] == b"ftyp", f"{path} is no MP4 file"
    path.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--packages", required=True)
    options = parser.parse_args()
    if not pathlib.Path(options.packages, "openai").exists():
        print(f"skipped: {options.packages} has no OpenAI client; scripts/setup fetches it for Python 3.11")
        return SKIPPED
    page = (REPOSITORY / "docs" / "use" / "openai.md").read_text()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = demo_server.DemoServer(options.server, folder / "data", "--model", f"ti2v-5b={REPOSITORY / 'demo' / 'model'}",
                                        http="127.0.0.1:0")
        try:
            run(["bash", "-c"], f"curl -sS --fail --retry 60 --retry-delay 1 http://{server.http}/health", folder, options.packages)
            # Later lines use the video of the first ones. Each program must answer without an error.
            lines = programs(page, "sh", server.http)
            assert len(lines) == 4, lines
            told = run(["bash", "-euo", "pipefail", "-c"], "\n".join(lines), folder, options.packages)
            assert "event: status" in told and '"p50"' in told and '"error": {' not in told, told
            take_video(folder / "cat.mp4")
            take_video(folder / "live.mp4")
            with_python = programs(page, "python", server.http)
            assert len(with_python) == 2, with_python
            for program in with_python:
                run([sys.executable, "-c"], f"token = 'unused'\n{program}", folder, options.packages)
                take_video(folder / "cat.mp4")
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
