"""The nodes of client/comfyui, called as ComfyUI calls them, against a server with the demo model."""

import importlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import python_wheel
from demo_server import DemoServer
from python_wheel import OPTIONS

SMALL = {"model": "demo", "prompt": "A red circle moves left to right.", "seed": 7, "steps": 2, "num_frames": 5,
         "width": 64, "height": 64}


def write_lora(path):
    """A LoRA of rank 1 for the first feed-forward matrix of the demo model, which is [896, 256]."""
    header, data = {}, b""
    for name, shape in (("lora_down", [1, 256]), ("lora_up", [896, 1])):
        values = struct.pack(f"<{max(shape)}f", *(0.2 for _ in range(max(shape))))
        header[f"diffusion_model.blocks.0.ffn.0.{name}.weight"] = {
            "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class NodesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        write_lora(OPTIONS.folder / "bright.safetensors")
        cls.server = DemoServer(
            OPTIONS.server, OPTIONS.folder / "data", "--model", f"demo={OPTIONS.repository / 'demo' / 'model'}",
            "--lora", f"demo/bright={OPTIONS.folder / 'bright.safetensors'}")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        from comfyui_stand_in import ComfyUi

        environment = {name: value for name, value in os.environ.items() if not name.startswith("WAN_")}
        patch = unittest.mock.patch.dict(os.environ, {**environment, "WAN_SERVER": self.server.address}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.comfy = ComfyUi(pathlib.Path(tempfile.mkdtemp(dir=OPTIONS.folder)), OPTIONS.repository / "client" / "comfyui")
        self.workflows = OPTIONS.repository / "client" / "comfyui" / "workflows"

    def generate(self, **inputs):
        graph = {"1": {"class_type": "WanserveGenerate", "inputs": {**SMALL, **inputs}}}
        return self.comfy.run(graph)["1"]

    def job(self, name):
        from wanserve_client import Client

        with Client(self.server.address) as client:
            return client.get(name)

    def test_frames_are_those_of_the_lossless_file(self):
        import numpy

        frames, video, fps, job = self.generate(preview_interval=1)
        self.assertEqual(frames.shape, (5, 64, 64, 3))
        self.assertEqual(str(frames.dtype).removeprefix("torch."), "float32")
        self.assertEqual(fps, 16.0)
        from wanserve_client import Client

        with Client(self.server.address) as client:
            lossless = client.download(job, self.comfy.folder / "own.mkv")
        raw = subprocess.run(["ffmpeg", "-v", "error", "-i", str(lossless), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                             check=True, capture_output=True).stdout
        expected = numpy.frombuffer(raw, numpy.uint8).reshape(5, 64, 64, 3)
        self.assertGreater(expected.max(), expected.min())
        self.assertTrue((numpy.asarray(frames) == expected.astype(numpy.float32) / 255).all())
        self.assertEqual(video.file.read_bytes()[4:8], b"ftyp")
        self.assertEqual([each.name for each in video.file.parent.iterdir()], [video.file.name])

    def test_progress_and_previews(self):
        self.generate(preview_interval=1)
        self.assertEqual(sorted(set(self.comfy.progress)), [(1, 3), (2, 3), (3, 3)])
        self.assertEqual(self.comfy.progress[-1], (3, 3))
        # The server leaves out a preview when the next one is there.
        self.assertEqual({(kind, image.format) for kind, image, _ in self.comfy.previews}, {("JPEG", "JPEG")})

    def test_every_input_reaches_the_request(self):
        from wanserve_client import messages

        inputs = {"negative_prompt": "blue", "fps": 8, "guidance_scale": 3.0, "shift": 4.0, "solver": "dpm++",
                  "quality": "high", "preview_interval": 0}
        request = self.job(self.generate(**inputs)[3]).request
        self.assertEqual((request.prompt, request.negative_prompt, request.seed), (SMALL["prompt"], "blue", 7))
        self.assertEqual((request.width, request.height, request.num_frames, request.fps), (64, 64, 5, 8))
        self.assertEqual((request.steps, list(request.guidance_scale), request.shift), (2, [3.0], 4.0))
        self.assertEqual((request.solver, request.quality), (messages.SOLVER_DPMPP, messages.QUALITY_HIGH))

    def test_seconds_become_frames(self):
        for seconds, fps, frames in ((0.5, 0, 9), (0.3, 0, 5), (0.5, 24, 13)):
            self.assertEqual(self.generate(num_frames=0, seconds=seconds, fps=fps)[0].shape[0], frames)
        with self.assertRaisesRegex(ValueError, "seconds: is 1; must be 0 when num_frames is 5"):
            self.generate(seconds=1.0)

    def test_seconds_need_one_model_that_the_server_has_read(self):
        from wanserve_client import messages

        nodes = sys.modules["custom_nodes_wanserve.nodes"]
        client = unittest.mock.Mock()
        client.models.return_value = [messages.Model(name="models/a"), messages.Model(name="models/b", temporal_stride=4)]
        with self.assertRaisesRegex(ValueError, "model: is not chosen; must be one of a, b when seconds is 2"):
            nodes._set_length(client, {}, 2.0)
        for fields in ({"model": "a", "fps": 16}, {"model": "b"}):
            with self.assertRaisesRegex(ValueError, "seconds: is 2; must be 0 until the server has read the model"):
                nodes._set_length(client, fields, 2.0)

    def test_choices_are_the_servers(self):
        self.generate()
        kinds = self.comfy.nodes["WanserveGenerate"].INPUT_TYPES()
        self.assertEqual(kinds["required"]["model"][0], ["(the only model)", "demo"])
        self.assertEqual(self.comfy.nodes["WanserveLora"].INPUT_TYPES()["required"]["name"][0], ["bright"])
        # Where nothing answers, the nodes load all the same.
        os.environ["WAN_SERVER"] = "127.0.0.1:1"
        kinds = self.comfy.nodes["WanserveGenerate"].INPUT_TYPES()
        self.assertEqual(kinds["required"]["model"][0], ["(the only model)"])

    def test_the_examples(self):
        import PIL.Image

        small = {name: value for name, value in SMALL.items() if name not in ("model", "prompt", "seed")}
        self.comfy.run(self.comfy.workflow(self.workflows / "text_to_video.json",
                                           **{f"1.{name}": value for name, value in small.items()}))
        self.assertEqual(self.comfy.saved[0].read_bytes()[4:8], b"ftyp")

        PIL.Image.new("RGB", (128, 64), (255, 0, 0)).save(self.comfy.folder / "example.png")
        graph = self.comfy.workflow(
            self.workflows / "image_to_video.json",
            **{"3.steps": 2, "3.seconds": 0.3, "3.width": 64, "3.height": 64})
        frames, _, _, job = self.comfy.run(graph)["3"]
        # About the area of 64x64, and wide like the image.
        self.assertEqual(frames.shape, (5, 32, 128, 3))
        self.assertTrue(self.job(job).image_sha256)
        self.assertEqual(len(self.comfy.saved), 2)

    def test_an_image_is_one_and_rounded(self):
        import io

        import numpy
        import PIL.Image
        from comfyui_stand_in import Tensor

        pictures = sys.modules["custom_nodes_wanserve.pictures"]
        pixels = numpy.arange(256, dtype=numpy.uint8).repeat(3).reshape(1, 16, 16, 3)
        image = ((pixels - numpy.float32(0.4)) / 255).view(Tensor)
        read = numpy.array(PIL.Image.open(io.BytesIO(pictures.png_of(image))))
        self.assertTrue((read == pixels[0]).all())
        with self.assertRaisesRegex(ValueError, "image: has 2 pictures; must have 1"):
            self.generate(image=numpy.concatenate([image, image]))

    def test_loras_are_a_chain(self):
        graph = {
            "1": {"class_type": "WanserveLora", "inputs": {"name": "bright", "scale": 0.5}},
            "2": {"class_type": "WanserveLora", "inputs": {"name": "(no LoRA)", "scale": 1.0, "loras": ["1", 0]}},
            "3": {"class_type": "WanserveGenerate", "inputs": {**SMALL, "loras": ["2", 0]}},
        }
        job = self.job(self.comfy.run(graph)["3"][3])
        self.assertEqual([(each.name, each.scale) for each in job.request.loras], [("bright", 0.5)])
        graph["2"]["inputs"]["name"] = "dark"
        from wanserve_client import InvalidRequest

        with self.assertRaisesRegex(InvalidRequest, "dark"):
            self.comfy.run(graph)

    def test_errors_are_the_servers(self):
        from wanserve_client import ConnectionLost, InvalidRequest

        with self.assertRaisesRegex(InvalidRequest, "width: is 7; must be a multiple of 32.*num_frames: is 2"):
            self.generate(width=7, num_frames=2)
        with self.assertRaisesRegex(InvalidRequest, "there is no model 'other'; this server has: demo"):
            self.generate(model="other")
        with self.assertRaisesRegex(ValueError, "guidance_scale: is not set"):
            self.generate(guidance_scale_high=3.0)
        os.environ["WAN_SERVER"] = "127.0.0.1:1"
        with self.assertRaisesRegex(ConnectionLost, "no answer from 127.0.0.1:1: "):
            self.generate()

    def test_an_interrupt_cancels_the_job(self):
        from comfyui_stand_in import Interrupted
        from wanserve_client import Client, messages

        def interrupt():
            self.comfy.interrupted = True

        self.comfy.on_progress = interrupt
        with self.assertRaises(Interrupted):
            self.generate(steps=1000)
        with Client(self.server.address) as client:
            newest = next(client.jobs())
            self.assertEqual(newest.request.steps, 1000)
            with self.assertRaisesRegex(Exception, "CancelJob"):
                client.wait(newest)
            self.assertEqual(client.get(newest).state, messages.JOB_STATE_CANCELLED)

    def test_an_interrupt_before_the_job_makes_none(self):
        from comfyui_stand_in import Interrupted
        from wanserve_client import Client

        with Client(self.server.address) as client:
            before = [each.name for each in client.jobs()]
            self.comfy.interrupted = True
            with self.assertRaises(Interrupted):
                self.generate()
            self.assertEqual([each.name for each in client.jobs()], before)


class LoadingTest(unittest.TestCase):
    """A model that is still being loaded."""

    def setUp(self):
        from comfyui_stand_in import ComfyUi
        from wanserve_client import WanError

        self.comfy = ComfyUi(OPTIONS.folder, OPTIONS.repository / "client" / "comfyui")
        self.job = sys.modules["custom_nodes_wanserve.job"]
        self.slept = []
        # A second of the clock passes with each sleep.
        clock = unittest.mock.patch.multiple(
            self.job.time, sleep=self.slept.append, monotonic=lambda: float(len(self.slept)))
        clock.start()
        self.addCleanup(clock.stop)
        self.client = unittest.mock.Mock()
        self.loading = WanError("demo is being loaded", reason="MODEL_LOADING", retry_delay=3.0)

    def test_is_waited_for(self):
        self.client.submit.side_effect = [self.loading, self.loading, "the job"]
        self.client.wait.return_value = "the job with its files"
        self.assertEqual(self.job.run(self.client, {"prompt": "a"}, self.job.Progress()), "the job with its files")
        self.assertEqual(len(self.slept), 6)
        self.client.submit.assert_called_with(prompt="a")

    def test_the_wait_can_be_interrupted(self):
        from comfyui_stand_in import Interrupted

        def refuse(**_):
            self.comfy.interrupted = True
            raise self.loading

        self.client.submit.side_effect = refuse
        with self.assertRaises(Interrupted):
            self.job.run(self.client, {"prompt": "a"}, self.job.Progress())
        self.assertEqual(self.slept, [])
        self.client.cancel.assert_not_called()


class TokenTest(unittest.TestCase):
    """A workflow of a stranger gets no secret of the machine, and sends no token elsewhere."""

    def setUp(self):
        from comfyui_stand_in import ComfyUi

        ComfyUi(OPTIONS.folder, OPTIONS.repository / "client" / "comfyui")
        self.server = sys.modules["custom_nodes_wanserve.server"]

    def connect(self, environment, address, *arguments):
        with unittest.mock.patch.dict(os.environ, environment, clear=True), \
                unittest.mock.patch.object(self.server, "Client") as client:
            self.server.Server(address, *arguments).connect()
        return client.call_args.kwargs["token"]

    def test_goes_to_the_address_of_its_environment_only(self):
        tokens = {"WAN_TOKEN": "one", "WAN_SERVER": "gpu1:50051", "WAN_TOKEN_GPU2": "two", "WAN_SERVER_GPU2": "gpu2:50051"}
        self.assertEqual(self.connect(tokens, "gpu1:50051"), "one")
        self.assertEqual(self.connect(tokens, "gpu2:50051", "WAN_TOKEN_GPU2"), "two")
        self.assertEqual(self.connect({"WAN_TOKEN": "one"}, "localhost:50051"), "one")
        self.assertIsNone(self.connect({}, "anywhere:50051"))
        for address, variable in (("evil:50051", "WAN_TOKEN"), ("gpu1:50051", "WAN_TOKEN_GPU2")):
            with self.assertRaisesRegex(ValueError, f"address: is {address}; the token in {variable} is only for"):
                self.connect(tokens, address, variable)

    def test_is_no_other_variable(self):
        for variable in ("AWS_SECRET_ACCESS_KEY", "PATH", "WAN_SERVER"):
            with self.assertRaisesRegex(ValueError, f"token_variable: is {variable}; must be WAN_TOKEN"):
                self.connect({variable: "secret"}, "localhost:50051", variable)

    def test_tls(self):
        ca = OPTIONS.folder / "ca.pem"
        ca.write_bytes(b"authority")
        with unittest.mock.patch.object(self.server, "Client") as client:
            self.server.Server("a:1", tls_ca=str(ca)).connect()
            self.assertEqual(client.call_args.kwargs["tls"].ca, b"authority")
            self.server.Server("a:1", tls=True).connect()
            self.assertIsNone(client.call_args.kwargs["tls"].ca)
            self.server.Server("a:1").connect()
            self.assertIsNone(client.call_args.kwargs["tls"])


def main():
    for module in ("av", "numpy", "PIL.Image"):
        try:
            importlib.import_module(module)
        except ImportError as missing:
            print(f"skipped: {missing}; scripts/setup installs it")
            return python_wheel.SKIPPED
    return python_wheel.main()


if __name__ == "__main__":
    sys.exit(main())
