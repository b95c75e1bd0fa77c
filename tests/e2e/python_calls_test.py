"""The Python clients against a server that a test scripts, which breaks connections and answers with errors; and how they
make requests."""

import concurrent.futures
import datetime
import hashlib
import io
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

import python_wheel
from python_wheel import OPTIONS


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
        from wanserve_client import transport
        from wanserve_client._proto.wan.v1 import video_generation_pb2_grpc

        test = self
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=OPTIONS.folder))
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
        self.client = self.connect(f"127.0.0.1:{port}", token="secret")
        self.addCleanup(self.client.close)
        # The seconds between attempts pass at once.
        self.slept = []

        async def sleep(_, seconds):
            self.slept.append(seconds)

        for each in (transport.BlockingTransport, transport.AsyncioTransport):
            patched = unittest.mock.patch.object(each, "sleep", sleep)
            patched.start()
            self.addCleanup(patched.stop)

    def connect(self, server, **options):
        from wanserve_client import Client

        return Client(server, **options)

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
        path = self.folder / "image.png"
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

    def test_latents_are_those_of_a_job_or_of_a_file(self):
        from wanserve_client import InvalidRequest, messages

        self.slept = [0]
        path = self.folder / "latents.safetensors"
        path.write_bytes(b"from a file")
        for source in ("jobs/a0", messages.Job(name="jobs/a0"), messages.LatentsSource(job="jobs/a0")):
            self.client.submit(model="m", prompt="a cat", latents=source, strength=0.6)
            self.assertEqual(self.created[-1].latents.job, "jobs/a0")
            self.assertEqual(self.created[-1].strength, 0.6)
            self.assertFalse(self.created[-1].HasField("initial_latents"))
        files = {b"latents": b"latents", path: b"from a file", str(path): b"from a file", io.BytesIO(b"open"): b"open"}
        for source, content in files.items():
            self.client.submit(model="m", prompt="a cat", initial_latents=source)
            self.assertEqual(self.created[-1].initial_latents.data, content)
        made = len(self.created)
        for source in (b"", io.BytesIO()):
            with self.assertRaises(InvalidRequest) as refused:
                self.client.submit(model="m", prompt="a cat", latents=source)
            self.assertEqual([each.field for each in refused.exception.violations], ["latents"])
        self.assertEqual(len(self.created), made)

    def test_an_image_without_bytes_is_refused_before_anything_is_sent(self):
        from wanserve_client import InvalidRequest, messages

        path = self.folder / "empty.png"
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
        output = self.client.download("a1", self.folder / "scripted.mp4", progress=lambda done, total: seen.append(done))
        self.assertEqual(output.read_bytes(), self.content)
        self.assertEqual(self.offsets, [0, 1000, 1500])
        self.assertEqual(seen, [1000, 1500, len(self.content)])
        self.assertFalse(list(self.folder.glob("scripted.mp4.*.part")))

    def test_download_goes_on_in_another_process(self):
        from wanserve_client import ConnectionLost

        self.breaks = [1000] * 3
        with self.assertRaises(ConnectionLost):
            self.client.download("a1", self.folder / "later.mp4", reconnect_seconds=-1)
        self.assertEqual(len(list(self.folder.glob(f"later.mp4.{self.digest[:12]}.part"))), 1)
        self.assertFalse((self.folder / "later.mp4").exists())
        self.breaks = []
        self.client.download("a1", self.folder / "later.mp4")
        self.assertEqual(self.offsets, [0, 1000])
        self.assertEqual((self.folder / "later.mp4").read_bytes(), self.content)

    def test_wrong_bytes_never_get_the_name(self):
        from wanserve_client import DamagedDownload

        self.digest = hashlib.sha256(b"other").hexdigest()
        with self.assertRaises(DamagedDownload):
            self.client.download("a1", self.folder / "damaged.mp4")
        self.assertFalse(list(self.folder.glob("damaged.mp4*")))

    def test_nobody_there(self):
        from wanserve_client import ConnectionLost

        with self.connect("127.0.0.1:1") as client, self.assertRaises(ConnectionLost):
            client.get("a1")


class AsyncScriptedTest(ScriptedTest):
    def connect(self, server, **options):
        from wanserve_client import AsyncClient

        return python_wheel.Awaited(AsyncClient(server, **options))


class RequestTest(unittest.TestCase):
    """How keywords become a GenerationRequest."""

    def build(self, request=None, **fields):
        from wanserve_client.request import build

        return build(request, fields)

    def refused(self, error, **fields):
        with self.assertRaises(error) as raised:
            self.build(**fields)
        return str(raised.exception)

    def test_the_prompt_may_be_the_first_argument(self):
        self.assertEqual(self.build("a red kite").prompt, "a red kite")
        with self.assertRaisesRegex(TypeError, "prompt: is given twice"):
            self.build("a red kite", prompt="a boat")
        with self.assertRaisesRegex(TypeError, "request: is a int"):
            self.build(7)

    def test_keywords_replace_the_fields_of_a_message(self):
        from wanserve_client import messages

        request = messages.GenerationRequest(prompt="a", priority=3, guidance_scale=[3, 4], labels={"a": "1"}, steps=9)
        built = self.build(request, priority=0, guidance_scale=5, labels={"b": "2"}, steps=None)
        self.assertEqual(built, messages.GenerationRequest(prompt="a", guidance_scale=[5], labels={"b": "2"}, steps=9))
        self.assertEqual(request.priority, 3)

    def test_names_of_other_programs_are_told_the_right_one(self):
        for other, ours in {"num_inference_steps": "use steps", "frames": "use num_frames", "flow_shift": "use shift",
                            "guidance_scale_2": "use guidance_scale=[low, high]", "generator": "use seed",
                            "size": "use width and height", "callback_on_step_end": "use on_event"}.items():
            self.assertIn(f"{other}: is not a field of a request; {ours}", self.refused(TypeError, **{other: 1}))

    def test_hints_name_fields(self):
        from wanserve_client import request

        self.assertFalse(set(request._OTHER_NAMES) & set(request._FIELDS))
        methods = {"submit_batch", "on_event"}
        for hint in request._OTHER_NAMES.values():
            self.assertTrue(set(re.findall(r"\w+", hint)) & (set(request._FIELDS) | methods), hint)

    def test_misspelt_names_are_told_the_nearest(self):
        self.assertEqual(self.refused(TypeError, promt="a", heigth=64),
                         "promt: is not a field of a request; did you mean prompt?\n"
                         "heigth: is not a field of a request; did you mean height?")
        self.assertIn("must be one of model, prompt, ", self.refused(TypeError, xyzzy=1))

    def test_values_of_another_type(self):
        self.assertEqual(self.refused(TypeError, width="64"), "width: is '64'; must be a whole number of 32 bits")
        self.assertEqual(self.refused(TypeError, width=1 << 40), f"width: is {1 << 40}; must be a whole number of 32 bits")
        self.assertEqual(self.refused(TypeError, prompt=3), "prompt: is 3; must be a text")
        self.assertEqual(self.refused(TypeError, guidance_scale=["a"]), "guidance_scale: is ['a']; must be a number")
        for wrong in ({"x": "y"}, 5, [1.5]):
            self.assertIn("must be a dictionary of names and scales", self.refused(TypeError, loras=wrong))
        self.assertEqual(self.refused(TypeError, labels=[1]),
                         'labels: is [1]; must be a dictionary of texts, for example {"team": "video"}')
        self.assertIn("quality: is 0.5; must be one of exact, high, fast", self.refused(TypeError, quality=0.5))
        self.assertIn("image: is a dict; must be a path", self.refused(TypeError, image={}))

    def test_enums_are_words_names_or_numbers(self):
        from wanserve_client import InvalidRequest, messages

        for quality in ("high", "HIGH", "QUALITY_HIGH", messages.QUALITY_HIGH):
            self.assertEqual(self.build(quality=quality).quality, messages.QUALITY_HIGH)
        self.assertEqual(self.build(solver="dpm++").solver, messages.SOLVER_DPMPP)
        kinds = [messages.OUTPUT_KIND_MP4, messages.OUTPUT_KIND_LATENTS]
        self.assertEqual(list(self.build(outputs=["mp4", "safetensors"]).outputs), kinds)
        self.assertEqual(list(self.build(outputs="mp4").outputs), kinds[:1])
        self.assertEqual(self.refused(InvalidRequest, quality="best"), 'quality: is "best"; must be one of exact, high, fast')

    def test_loras(self):
        from wanserve_client import messages

        scaled = [messages.LoraScale(name="a", scale=0.5)]
        self.assertEqual(list(self.build(loras={"a": 0.5}).loras), scaled)
        self.assertEqual(list(self.build(loras=scaled).loras), scaled)
        for named in ("a", ["a"]):
            self.assertEqual(list(self.build(loras=named).loras), [messages.LoraScale(name="a")])

    def test_deadline(self):
        from wanserve_client import InvalidRequest

        zone = datetime.timezone(datetime.timedelta(hours=2))
        self.assertEqual(self.build(deadline=datetime.datetime(2030, 1, 1, 2, tzinfo=zone)).deadline.seconds, 1893456000)
        self.assertIn("has no time zone", self.refused(InvalidRequest, deadline=datetime.datetime(2030, 1, 1)))
        self.assertIn("must be a datetime", self.refused(TypeError, deadline=60))

    def test_an_image_of_pillow_is_sent_upright(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("there is no Pillow; scripts/setup installs it")
        photo = Image.new("RGB", (4, 2), "red")
        photo.putpixel((0, 0), (0, 0, 255))
        exif = Image.Exif()
        exif[0x0112] = 6  # The camera was held upright: the left edge of the pixels is the top of the picture.
        file = io.BytesIO()
        photo.save(file, "PNG", exif=exif)
        sent = Image.open(io.BytesIO(self.build(image=Image.open(file)).image))
        self.assertEqual((sent.format, sent.size, sent.getpixel((1, 0))), ("PNG", (2, 4), (0, 0, 255)))
        self.assertNotIn(0x0112, sent.getexif())
        for mode, kept in {"RGBA": "RGBA", "CMYK": "RGB", "L": "L", "F": "RGB"}.items():
            sent = Image.open(io.BytesIO(self.build(image=Image.new(mode, (2, 2))).image))
            self.assertEqual((sent.format, sent.mode), ("PNG", kept))

    def test_a_batch_is_a_list(self):
        from wanserve_client.request import build_each

        for wrong in ("a red kite", {"prompt": "a"}):
            with self.assertRaisesRegex(TypeError, "requests: is a .*; must be a list"):
                build_each(wrong, {})


if __name__ == "__main__":
    sys.exit(python_wheel.main())
