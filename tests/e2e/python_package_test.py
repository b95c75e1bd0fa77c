"""The Python package: the wheel is built and unpacked, its types are checked, and docs/use/python.md's program is run against
a server with the demo model. A server that a test scripts breaks connections and answers with errors."""

import argparse
import concurrent.futures
import hashlib
import importlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from demo_server import DemoServer, build_wheel

SKIPPED = 77
OPTIONS = None
FOLDER = None


class WheelTest(unittest.TestCase):
    def test_has_types_and_no_package_wan(self):
        site = FOLDER / "site"
        self.assertTrue((site / "wanserve_client" / "py.typed").exists())
        self.assertTrue((site / "wanserve_client" / "_proto" / "wan" / "v1" / "generation_pb2.pyi").exists())
        self.assertFalse((site / "wan").exists(), "that is the name of upstream's package")
        for path in (site / "wanserve_client" / "_proto").rglob("*.py*"):
            self.assertNotRegex(path.read_text(), r"(?m)^(from|import) wan\b", str(path))

    def test_messages_has_every_message_and_enum(self):
        from wanserve_client import messages

        for path in sorted((OPTIONS.repository / "proto" / "wan" / "v1").glob("*.proto")):
            module = importlib.import_module(f"wanserve_client._proto.wan.v1.{path.stem}_pb2")
            for name in [*module.DESCRIPTOR.message_types_by_name, *module.DESCRIPTOR.enum_types_by_name]:
                self.assertTrue(hasattr(messages, name), f"wanserve_client.messages lacks {name} of {path.name}")

    def test_version_is_the_servers(self):
        text = (OPTIONS.repository / "CMakeLists.txt").read_text()
        version = re.search(r"VERSION ([0-9.]+)", text.split("project(")[1]).group(1)
        self.assertTrue(list(FOLDER.glob(f"wanserve_client-{version}-*.whl")))

    def test_types(self):
        if shutil.which("mypy") is None:
            self.skipTest("there is no mypy; scripts/setup installs it")
        checked = subprocess.run(
            ["mypy", "--config-file", str(OPTIONS.repository / "client" / "python" / "pyproject.toml"), "--cache-dir",
             str(FOLDER / "mypy"), "-p", "wanserve_client"],
            cwd=FOLDER / "site", capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(FOLDER / "site")})
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class DemoTest(unittest.TestCase):
    """The documented program and every call, against the real server."""

    @classmethod
    def setUpClass(cls):
        cls.server = DemoServer(OPTIONS.server, FOLDER / "data")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def client(self):
        from wanserve_client import Client

        return Client(self.server.address)

    def test_the_documented_program(self):
        page = (OPTIONS.repository / "docs" / "use" / "python.md").read_text()
        program = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
        self.assertLessEqual(program.count("\n"), 60)
        path = FOLDER / "make_video.py"
        path.write_text(program)
        output = FOLDER / "video.mp4"
        ran = subprocess.run(
            [sys.executable, str(path), "A red circle moves left to right.", "--seed", "7", "--output", str(output)],
            capture_output=True, text=True,
            env={**os.environ, "WAN_SERVER": self.server.address, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("seed 7", ran.stdout)
        self.assertIn("step 1 of ", ran.stdout)
        self.assertEqual(output.read_bytes()[4:8], b"ftyp")
        wrong = subprocess.run(
            [sys.executable, str(path), ""], capture_output=True, text=True,
            env={**os.environ, "WAN_SERVER": self.server.address, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("prompt", wrong.stderr)

    def test_generate_watch_list_report(self):
        from wanserve_client import messages

        with self.client() as client:
            events = []
            job = client.generate(prompt="A blue square spins.", steps=2, seed=1, on_event=events.append,
                                  outputs=[messages.OUTPUT_KIND_LATENTS])
            self.assertEqual(job.state, messages.JOB_STATE_COMPLETED)
            self.assertEqual(events[-1].WhichOneof("kind"), "completed")
            replayed = list(client.watch(job))
            self.assertEqual([each.sequence for each in replayed], list(range(1, job.last_sequence + 1)))
            self.assertEqual([each.sequence for each in client.watch(job.name, after=job.last_sequence - 1)],
                             [job.last_sequence])
            self.assertIn(job.name, [each.name for each in client.jobs(states=[messages.JOB_STATE_COMPLETED])])
            self.assertIn("Step_1_Inference", [each.stage for each in client.report(job).stages])
            self.assertEqual(client.models()[0].name, "models/demo")
            self.assertEqual(list(client.server_info().devices), ["cpu"])

    def test_cancel_and_errors(self):
        from wanserve_client import InvalidRequest, JobCancelled, NotFound

        with self.client() as client:
            job = client.submit(prompt="A circle.", steps=1000)
            client.cancel(job)
            with self.assertRaises(JobCancelled) as cancelled:
                client.wait(job)
            self.assertEqual(cancelled.exception.job, job.name)
            with self.assertRaises(InvalidRequest) as refused:
                client.submit(prompt="A circle.", width=7, num_frames=2)
            self.assertEqual({each.field for each in refused.exception.violations}, {"width", "num_frames"})
            self.assertEqual(refused.exception.code.name, "INVALID_ARGUMENT")
            with self.assertRaises(NotFound):
                client.get("none")
            with self.assertRaises(NotFound):
                client.download(job, FOLDER / "none.mp4")
            with self.assertRaises(ValueError):
                client.download(job, FOLDER / "none.avi")


class TokenTest(unittest.TestCase):
    def test_is_not_sent_in_the_open(self):
        from wanserve_client import Client, Tls

        with self.assertRaisesRegex(ValueError, "without encryption"):
            Client("gpu1:50051", token="secret")
        for server in ("localhost:1", "127.0.0.9:1", "[::1]:1"):
            Client(server, token="secret").close()
        Client("gpu1:50051", token="secret", tls=Tls()).close()
        Client("gpu1:50051", token="secret", allow_plaintext_token=True).close()


class ScriptedTest(unittest.TestCase):
    """What a healthy server does not do: connections that break, and bytes that are wrong."""

    def setUp(self):
        import grpc
        from wanserve_client import Client, transport
        from wanserve_client._proto.wan.v1 import video_generation_pb2_grpc

        test = self
        self.headers = []
        self.after = []
        self.offsets = []
        self.created = []
        self.content = bytes(range(256)) * 100
        self.digest = hashlib.sha256(self.content).hexdigest()
        # How many bytes each stream carries before it breaks.
        self.breaks = []

        class Videos(video_generation_pb2_grpc.VideoGenerationServicer):
            def CreateJob(self, request, context):
                return test.create(request, context)

            def WatchJob(self, request, context):
                return test.watch(request, context)

            def GetJob(self, request, context):
                return test.job(request, context)

            def DownloadArtifact(self, request, context):
                return test.chunks(request, context)

        self.grpc_server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        video_generation_pb2_grpc.add_VideoGenerationServicer_to_server(Videos(), self.grpc_server)
        port = self.grpc_server.add_insecure_port("127.0.0.1:0")
        self.grpc_server.start()
        self.addCleanup(self.grpc_server.stop, None)
        self.client = Client(f"127.0.0.1:{port}", token="secret")
        self.addCleanup(self.client.close)
        # The seconds between attempts pass at once.
        self.slept = []
        self.addCleanup(setattr, transport.time, "sleep", transport.time.sleep)
        transport.time.sleep = self.slept.append

    def job(self, request, context):
        from wanserve_client import messages

        self.headers.append(dict(context.invocation_metadata()).get("authorization"))
        job = messages.Job(name=request.name)
        job.artifacts.add(name=f"{request.name}/artifacts/video.mp4", kind=messages.OUTPUT_KIND_MP4,
                          size_bytes=len(self.content), sha256=self.digest)
        return job

    def create(self, request, context):
        """The model is being loaded until somebody has waited."""
        import grpc
        from google.protobuf import any_pb2
        from google.rpc import error_details_pb2, status_pb2
        from wanserve_client import messages

        self.created.append(request.request)
        if self.slept:
            return messages.Job(name="jobs/a1")
        details = []
        for message in (error_details_pb2.ErrorInfo(reason="MODEL_LOADING", domain="wanserve"),
                        error_details_pb2.RetryInfo(retry_delay={"seconds": 2, "nanos": 500000000})):
            details.append(any_pb2.Any())
            details[-1].Pack(message)
        status = status_pb2.Status(code=14, message="being loaded", details=details)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "being loaded")

    def watch(self, request, context):
        import grpc
        from wanserve_client import messages

        self.headers.append(dict(context.invocation_metadata()).get("authorization"))
        self.after.append(request.after_sequence)
        yield messages.Event(heartbeat=messages.Heartbeat())
        if not request.after_sequence:
            yield messages.Event(sequence=1, job=request.name, queued=messages.Event.Queued())
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
        yield messages.Event(sequence=2, job=request.name, completed=messages.Event.Completed())

    def chunks(self, request, context):
        import grpc
        from wanserve_client import messages

        self.offsets.append(request.offset)
        end = request.offset + self.breaks.pop(0) if self.breaks else len(self.content)
        yield messages.DownloadArtifactResponse(offset=request.offset, data=self.content[request.offset:end])
        if end < len(self.content):
            # As a proxy's reset arrives.
            context.abort(grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2")

    def test_watch_goes_on_behind_the_last_event(self):
        job = self.client.wait("a1")
        self.assertEqual(job.name, "jobs/a1")
        self.assertEqual(self.after, [0, 1])
        self.assertEqual(self.slept, [1])
        self.assertEqual(set(self.headers), {"Bearer secret"})

    def test_submit_waits_for_a_model_that_is_being_loaded(self):
        self.assertEqual(self.client.submit(model="m", prompt="a cat").name, "jobs/a1")
        self.assertEqual(self.slept, [2.5])

    def test_an_image_is_bytes_a_path_or_an_open_file(self):
        self.slept = [0]
        path = FOLDER / "image.png"
        path.write_bytes(b"PNG from a file")
        half_read = io.BytesIO(b"headPNG behind the head")
        half_read.read(4)
        images = {b"PNG": b"PNG", path: b"PNG from a file", str(path): b"PNG from a file",
                  half_read: b"PNG behind the head"}
        for image, content in images.items():
            self.client.submit(model="m", prompt="a cat", image=image, background="#102030")
            self.assertEqual(self.created[-1].image, content)
            self.assertEqual(self.created[-1].background, "#102030")
        self.client.submit(model="m", prompt="a cat", image=None)
        self.assertFalse(self.created[-1].HasField("image"))
        with path.open(encoding="utf-8") as text, self.assertRaisesRegex(TypeError, "text mode"):
            self.client.submit(model="m", prompt="a cat", image=text)

    def test_an_image_without_bytes_is_refused_before_anything_is_sent(self):
        from wanserve_client import InvalidRequest, messages

        path = FOLDER / "empty.png"
        path.write_bytes(b"")
        at_its_end = io.BytesIO(b"PNG")
        at_its_end.read()
        requests = [{"image": each} for each in (b"", bytearray(), path, str(path), at_its_end)]
        requests.append({"request": messages.GenerationRequest(image=b"")})
        for call in (self.client.submit, self.client.generate):
            for request in requests:
                with self.assertRaises(InvalidRequest, msg=request) as refused:
                    call(model="m", prompt="a cat", **request)
                self.assertEqual([each.field for each in refused.exception.violations], ["image"])
        self.assertEqual(self.created, [])

    def test_download_goes_on_where_it_broke(self):
        self.breaks = [1000, 500]
        seen = []
        output = self.client.download("a1", FOLDER / "scripted.mp4", progress=lambda done, total: seen.append(done))
        self.assertEqual(output.read_bytes(), self.content)
        self.assertEqual(self.offsets, [0, 1000, 1500])
        self.assertEqual(seen, [1000, 1500, len(self.content)])
        self.assertFalse(list(FOLDER.glob("scripted.mp4.*.part")))

    def test_download_goes_on_in_another_process(self):
        from wanserve_client import ConnectionLost

        self.breaks = [1000] * 3
        with self.assertRaises(ConnectionLost):
            self.client.download("a1", FOLDER / "later.mp4", reconnect_seconds=-1)
        self.assertEqual(len(list(FOLDER.glob(f"later.mp4.{self.digest[:12]}.part"))), 1)
        self.assertFalse((FOLDER / "later.mp4").exists())
        self.breaks = []
        self.client.download("a1", FOLDER / "later.mp4")
        self.assertEqual(self.offsets, [0, 1000])
        self.assertEqual((FOLDER / "later.mp4").read_bytes(), self.content)

    def test_wrong_bytes_never_get_the_name(self):
        from wanserve_client import DamagedDownload

        self.digest = hashlib.sha256(b"other").hexdigest()
        with self.assertRaises(DamagedDownload):
            self.client.download("a1", FOLDER / "damaged.mp4")
        self.assertFalse(list(FOLDER.glob("damaged.mp4*")))

    def test_nobody_there(self):
        from wanserve_client import Client, ConnectionLost

        with Client("127.0.0.1:1") as client, self.assertRaises(ConnectionLost):
            client.get("a1")


def main():
    global OPTIONS, FOLDER
    parser = argparse.ArgumentParser()
    parser.add_argument("--repository", required=True, type=pathlib.Path)
    parser.add_argument("--server", required=True)
    parser.add_argument("--googleapis", required=True, type=pathlib.Path)
    OPTIONS, rest = parser.parse_known_args()
    for module in ("grpc", "google.protobuf", "setuptools", "wheel", "pip"):
        try:
            importlib.import_module(module)
        except ImportError as missing:
            print(f"skipped: {missing}; scripts/setup installs it")
            return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        build_wheel(FOLDER, OPTIONS.repository, OPTIONS.googleapis)
        sys.path[:0] = [str(FOLDER / "site"), str(OPTIONS.googleapis)]
        ended = unittest.main(argv=[sys.argv[0], *rest], exit=False)
    return 0 if ended.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
