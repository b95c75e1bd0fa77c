"""A Python client of the contract, with the published googleapis modules imported at the same time."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

SKIPPED = 77


def generate(options, folder):
    """The client's modules, as `protoc --python_out` makes them from the contract's folder."""
    protos = [str(path.relative_to(options.proto)) for path in sorted(options.proto.rglob("*.proto"))]
    subprocess.run(
        [options.protoc, f"-I{options.proto}", f"-I{options.googleapis}", f"--python_out={folder}", *protos],
        check=True)


def await_ready(call, messages):
    """The fake engine loads at once; this only waits for the process."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        models = call("ModelManagement/ListModels", messages["models"].ListModelsRequest(),
                      messages["models"].ListModelsResponse).models
        if any(model.state == messages["models"].MODEL_STATE_READY for model in models):
            return
        time.sleep(0.02)
    raise AssertionError("no model became ready within 60 s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--protoc", required=True)
    parser.add_argument("--proto", required=True, type=pathlib.Path)
    parser.add_argument("--googleapis", required=True, type=pathlib.Path)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        generate(options, folder)
        # The client's own modules come first, as those of a program's folder do.
        sys.path[:0] = [folder, str(options.googleapis)]
        try:
            import grpc
            from google.api import annotations_pb2  # noqa: F401  (uses the rest of google.api)
            from google.rpc import error_details_pb2, status_pb2
        except ImportError as missing:
            print(f"skipped: {missing}; scripts/setup installs python3-grpcio and python3-protobuf")
            return SKIPPED
        from wan.v1 import generation_pb2, model_management_pb2, video_generation_pb2

        for module in (error_details_pb2, status_pb2):
            assert pathlib.Path(module.__file__).is_relative_to(options.googleapis), (
                f"the contract brings a {module.__name__} of its own, which hides the published one")
        assert generation_pb2.Job.DESCRIPTOR.fields_by_name["error"].message_type is status_pb2.Status.DESCRIPTOR, (
            "Job.error must be the published google.rpc.Status")

        server = subprocess.Popen(
            [options.server, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--http-listen", "none",
             "--data-dir", f"{folder}/data", "--model", "m=synthetic:ti2v-5b", "--log-level", "error"],
            stdout=subprocess.PIPE)
        try:
            address = json.loads(server.stdout.readline())["grpc"]
            channel = grpc.insecure_channel(address)

            def call(method, request, answer):
                return channel.unary_unary(f"/wan.v1.{method}", request_serializer=type(request).SerializeToString,
                                           response_deserializer=answer.FromString)(request, timeout=30)

            await_ready(call, {"models": model_management_pb2})
            job = call("VideoGeneration/CreateJob", video_generation_pb2.CreateJobRequest(
                request=generation_pb2.GenerationRequest(model="m", prompt="a cat")), generation_pb2.Job)
            assert job.name.startswith("jobs/"), job

            try:
                call("VideoGeneration/CreateJob", video_generation_pb2.CreateJobRequest(
                    request=generation_pb2.GenerationRequest(model="m", prompt="a cat", width=7)), generation_pb2.Job)
                raise AssertionError("a width of 7 was accepted")
            except grpc.RpcError as error:
                trailer = dict(error.trailing_metadata())["grpc-status-details-bin"]
            violations = error_details_pb2.BadRequest()
            reason = error_details_pb2.ErrorInfo()
            for detail in status_pb2.Status.FromString(trailer).details:
                detail.Unpack(violations)
                detail.Unpack(reason)
            assert [violation.field for violation in violations.field_violations] == ["width"], violations
            assert reason.domain == "wanserve", reason
            channel.close()
        finally:
            server.kill()
            server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
