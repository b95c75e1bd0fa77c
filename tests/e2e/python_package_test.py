"""The Python package: its types are checked, and docs/use/python.md's program is run against a server with the demo model."""

import asyncio
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import typing
import unittest

import python_wheel
from demo_server import DemoServer
from python_wheel import OPTIONS


class WheelTest(unittest.TestCase):
    def test_has_types_and_no_package_wan(self):
        site = OPTIONS.folder / "site"
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
        self.assertTrue(OPTIONS.wheel.name.startswith(f"wanserve_client-{version}-"), OPTIONS.wheel.name)

    def test_runs_with_protobuf_4_to_7(self):
        """As far as that can be seen without them; scripts/check_wheel tries them."""
        site = OPTIONS.folder / "site"
        metadata = next(site.glob("*.dist-info/METADATA")).read_text()
        self.assertRegex(metadata, r"Requires-Dist: protobuf ?\(?(<8,>=4\.21|>=4\.21,<8)")
        for path in (site / "wanserve_client" / "_proto").rglob("*.py"):
            self.assertNotIn("ValidateProtobufRuntimeVersion", path.read_text(), str(path))

    def mypy(self, *arguments):
        if shutil.which("mypy") is None:
            self.skipTest("there is no mypy; scripts/setup installs it")
        return subprocess.run(
            ["mypy", "--config-file", str(OPTIONS.repository / "client" / "python" / "pyproject.toml"), "--cache-dir",
             str(OPTIONS.folder / "mypy"), *arguments], cwd=OPTIONS.folder / "site", capture_output=True, text=True,
            env={**os.environ, "MYPYPATH": str(OPTIONS.folder / "site")})

    def test_types(self):
        checked = self.mypy("-p", "wanserve_client")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_types_of_a_program(self):
        right = """
            from wanserve_client import AsyncClient, Client
            Client().generate("a", image="a.png", width=64, guidance_scale=[3.0, 4.0], quality="high", output="a.mp4")
            Client().submit_batch(["a", {"prompt": "b", "seed": 7}], outputs=["mp4", "mkv"], loras={"c": 0.5})
            async def main() -> str:
                async with AsyncClient() as client:
                    return (await client.generate("a", solver="dpm++")).name
        """
        self.assertEqual(self.mypy("-c", inspect.cleandoc(right)).stdout, "Success: no issues found in 1 source file\n")
        wrong = """
            from wanserve_client import Client
            Client().generate("a", num_inference_steps=4)
            Client().submit("a", width="64")
            Client().submit_batch(["a", {"promt": "b"}])
        """
        found = self.mypy("-c", inspect.cleandoc(wrong)).stdout
        self.assertEqual(re.findall(r":(\d+): error", found), ["2", "3", "4"], found)


class DemoTest(unittest.TestCase):
    """The documented program and every call, against the real server."""

    @classmethod
    def setUpClass(cls):
        cls.server = DemoServer(OPTIONS.server, OPTIONS.folder / f"data_{cls.__name__}")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def client(self):
        from wanserve_client import Client

        return Client(self.server.address)

    def test_generate_downloads(self):
        from wanserve_client import messages

        fields = {"steps": 2, "num_frames": 5, "seed": 1, "guidance_scale": 1, "labels": {"test": "output"}}
        with self.client() as client:
            path = OPTIONS.folder / f"{type(self).__name__}.mkv"
            job = client.generate("A red kite.", output=path, quality="exact", **fields)
            self.assertEqual(job.request.prompt, "A red kite.")
            self.assertEqual(list(job.request.outputs), [messages.OUTPUT_KIND_LOSSLESS_MKV])
            self.assertEqual(path.read_bytes()[:4], b"\x1aE\xdf\xa3")
            with self.assertRaisesRegex(ValueError, "ends in none of"):
                client.generate("A red kite.", output="kite.avi", **fields)
            with self.assertRaisesRegex(FileNotFoundError, "must be in a folder that exists"):
                client.generate("A red kite.", output=OPTIONS.folder / "none" / "kite.mp4", **fields)
            self.assertEqual(len(list(client.jobs(filter='labels.test = "output"'))), 1, "jobs of wrong paths")

    def test_a_batch_is_all_or_none(self):
        from wanserve_client import InvalidRequest, messages

        with self.client() as client:
            label = type(self).__name__
            jobs = client.submit_batch(
                ["A kite.", {"prompt": "A boat.", "seed": 8}, messages.GenerationRequest(prompt="A tree.")],
                steps=2, num_frames=5, seed=7, labels={"batch": label})
            requests = [client.wait(each).request for each in jobs]
            self.assertEqual([(each.prompt, each.seed, each.steps) for each in requests],
                             [("A kite.", 7, 2), ("A boat.", 8, 2), ("A tree.", 7, 2)])
            with self.assertRaises(InvalidRequest) as refused:
                client.submit_batch(["A kite.", {"prompt": "A boat.", "width": 7}], labels={"batch": label})
            self.assertEqual([each.field for each in refused.exception.violations], ["requests[1].width"])
            self.assertEqual(len(list(client.jobs(filter=f'labels.batch = "{label}"'))), 3)

    def run_documented(self, number, *arguments):
        """Runs a program of docs/use/python.md as its readers do, in the test's folder."""
        page = (OPTIONS.repository / "docs" / "use" / "python.md").read_text()
        program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[number]
        self.assertLessEqual(program.count("\n"), 60)
        path = OPTIONS.folder / f"documented_{number}.py"
        path.write_text(program)
        return subprocess.run(
            [sys.executable, str(path), *arguments], capture_output=True, text=True, cwd=OPTIONS.folder,
            env={**os.environ, "WAN_SERVER": self.server.address, "PYTHONPATH": os.pathsep.join(sys.path)})

    def test_the_documented_program(self):
        output = OPTIONS.folder / "video.mp4"
        ran = self.run_documented(0, "A red circle moves left to right.", "--seed", "7", "--output", str(output))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("seed 7", ran.stdout)
        self.assertIn("step 1 of ", ran.stdout)
        self.assertEqual(output.read_bytes()[4:8], b"ftyp")
        wrong = self.run_documented(0, "")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("prompt", wrong.stderr)

    def test_the_documented_program_with_asyncio(self):
        ran = self.run_documented(1, "A red circle.", "A blue square.")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        for name in ("1.mp4", "2.mp4"):
            self.assertEqual((OPTIONS.folder / name).read_bytes()[4:8], b"ftyp")

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
                client.download(job, OPTIONS.folder / "none.mp4")
            with self.assertRaises(ValueError):
                client.download(job, OPTIONS.folder / "none.avi")


class AsyncDemoTest(DemoTest):
    def client(self):
        from wanserve_client import AsyncClient

        return python_wheel.Awaited(AsyncClient(self.server.address))

    # The programs run on their own.
    test_the_documented_program = None
    test_the_documented_program_with_asyncio = None

    def test_a_cancelled_task_ends_its_job(self):
        from wanserve_client import AsyncClient, messages

        async def cancel_when_queued():
            async with AsyncClient(self.server.address) as client:
                queued = asyncio.get_running_loop().create_future()

                def seen(event):
                    if not queued.done():
                        queued.set_result(event.job)

                task = asyncio.create_task(client.generate("A kite.", steps=1000, on_event=seen))
                job = await queued
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                async for event in client.watch(job):
                    pass
                return event, await client.get(job)

        last, job = asyncio.run(cancel_when_queued())
        self.assertEqual(last.WhichOneof("kind"), "cancelled")
        self.assertEqual(job.state, messages.JOB_STATE_CANCELLED)

    def test_calls_of_one_client_run_at_the_same_time(self):
        from wanserve_client import AsyncClient

        async def both():
            async with AsyncClient(self.server.address) as client:
                return await asyncio.gather(*(client.generate(each, steps=2, num_frames=5) for each in ("A kite.", "A boat.")))

        self.assertEqual([each.request.prompt for each in asyncio.run(both())], ["A kite.", "A boat."])


class InterfaceTest(unittest.TestCase):
    def test_both_clients_have_the_same_methods(self):
        from wanserve_client import AsyncClient, Client

        def methods(client):
            return {name: inspect.signature(each).replace(return_annotation=inspect.Signature.empty)
                    for name, each in inspect.getmembers(client, inspect.isfunction) if not name.startswith("_")}

        self.assertEqual(methods(AsyncClient), methods(Client))
        self.assertEqual(inspect.signature(AsyncClient), inspect.signature(Client))

    def test_fields_are_those_of_the_contract(self):
        """Whoever adds a field to GenerationRequest adds it to RequestFields."""
        from google.protobuf.descriptor import FieldDescriptor
        from wanserve_client import Client, RequestFields, messages
        from wanserve_client.request import enum_words

        fields = messages.GenerationRequest.DESCRIPTOR.fields_by_name
        hints = typing.get_type_hints(RequestFields)
        self.assertEqual(set(hints), set(fields))
        scalars = {"INT32": int, "INT64": int, "DOUBLE": float, "BOOL": bool, "STRING": str}
        kinds = {getattr(FieldDescriptor, f"CPPTYPE_{name}"): kind for name, kind in scalars.items()}
        for name, field in fields.items():
            parts = self.parts(hints[name])
            if field.enum_type is not None:
                self.assertLessEqual(set(enum_words(field.enum_type)), parts, name)
            elif field.cpp_type in kinds:
                self.assertIn(bytes if name == "image" else kinds[field.cpp_type], parts, name)
        for method in (Client.generate, Client.submit, Client.submit_batch):
            self.assertLessEqual(set(fields), set(inspect.signature(method).parameters))

    def parts(self, hint):
        """Returns the types and the words that a hint consists of."""
        inner = [part for each in typing.get_args(hint) if not isinstance(each, str) for part in self.parts(each)]
        return {hint, *(each for each in typing.get_args(hint) if isinstance(each, str)), *inner}


if __name__ == "__main__":
    sys.exit(python_wheel.main())
