"""One wanserve process that an attack may ruin, and the calls that attacks make to it."""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import grpc
from google.protobuf import empty_pb2
from wan.v1 import generation_pb2, model_management_pb2, telemetry_pb2, video_generation_pb2

MIB = 1 << 20
BUILD = pathlib.Path()  # set by __main__

# No server may have more private memory, so that an attack that is not held does not take the machine down.
MEMORY_LIMIT = 5 * 1024 * MIB

# For each method its service and the type of its answer.
_VIDEO, _MODELS, _TELEMETRY = "VideoGeneration", "ModelManagement", "Telemetry"
_METHODS = {
    "CreateJob": (_VIDEO, generation_pb2.Job),
    "SubmitBatch": (_VIDEO, video_generation_pb2.SubmitBatchResponse),
    "Generate": (_VIDEO, generation_pb2.Event),
    "GetJob": (_VIDEO, generation_pb2.Job),
    "ListJobs": (_VIDEO, video_generation_pb2.ListJobsResponse),
    "CancelJob": (_VIDEO, generation_pb2.Job),
    "DeleteJob": (_VIDEO, empty_pb2.Empty),
    "WatchJob": (_VIDEO, generation_pb2.Event),
    "DownloadArtifact": (_VIDEO, video_generation_pb2.DownloadArtifactResponse),
    "GetReport": (_VIDEO, telemetry_pb2.JobReport),
    "ListModels": (_MODELS, model_management_pb2.ListModelsResponse),
    "LoadModel": (_MODELS, model_management_pb2.Model),
    "WarmupModel": (_MODELS, model_management_pb2.Model),
    "GetServerInfo": (_TELEMETRY, telemetry_pb2.ServerInfo),
}
_STREAMS = {"Generate", "WatchJob", "DownloadArtifact"}

ENDED = (generation_pb2.JOB_STATE_COMPLETED, generation_pb2.JOB_STATE_FAILED, generation_pb2.JOB_STATE_CANCELLED)


class NotHeld(Exception):
    """The server did not do what is wanted."""


class CannotRun(Exception):
    """The attack needs something that this machine does not have."""


def expect(condition, text):
    if not condition:
        raise NotHeld(text)


def await_true(condition, seconds, text):
    """Waits until the condition holds and returns the seconds that it took; raises NotHeld after the limit."""
    start = time.monotonic()
    while not condition():
        expect(time.monotonic() - start < seconds, f"{text} within {seconds:g} s")
        time.sleep(0.02)
    return time.monotonic() - start


def code_of(call):
    """Returns the status code with which a call ends, and the details."""
    try:
        call()
        return grpc.StatusCode.OK, ""
    except grpc.RpcError as error:
        return error.code(), error.details()


def new_channel(address, certificate=None):
    """Returns a new connection, over TLS if the server has a certificate."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 * MIB),
               ("grpc.max_send_message_length", -1), ("grpc.max_metadata_size", 1 * MIB)]
    if certificate is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(certificate.encode()), options)


def call(channel, method, request, timeout=60, token=None):
    """Makes a call of wan.v1; `request` is a message, or bytes that need not be one. A stream is returned as an iterator."""
    service, answer = _METHODS[method]
    kind = channel.unary_stream if method in _STREAMS else channel.unary_unary
    stub = kind(f"/wan.v1.{service}/{method}",
                request_serializer=lambda r: r if isinstance(r, bytes) else r.SerializeToString(),
                response_deserializer=answer.FromString)
    return stub(request, timeout=timeout, metadata=(("authorization", f"Bearer {token}"),) if token else None)


def small_request(model, fake, /, **fields):
    values = {"model": model, "prompt": "a red circle"}
    if not fake:
        values |= {"width": 64, "height": 64, "num_frames": 5, "steps": 2}
    return generation_pb2.GenerationRequest(**(values | fields))


class Server:
    """A server on free ports of 127.0.0.1. Use it in a with statement: nothing of it is left then.

    `principals`: from names to roles, if callers are to be authenticated. Calls without a channel of their own are those of
    `caller`, which is the first of them. `errors`: what stderr is, in the place of the log. `tls`: all ports speak TLS, with a
    certificate of their own."""

    def __init__(self, fake=True, flags=(), environment=None, folder=None, prefix=(), descriptors=None, tasks=None,
                 principals=None, errors=None, tls=False):
        self.fake = fake
        self.flags = list(flags)
        self.environment = environment or {}
        self.prefix = list(prefix)
        self.descriptors = descriptors
        self.tasks = tasks  # path of the tasks file of a control group
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="wan_prove_"))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.errors = errors
        self.process = None
        self.certificate = self._make_certificate() if tls else None
        self.tokens = self._issue_tokens(principals or {})
        self.caller = next(iter(self.tokens), None)

    def _issue_tokens(self, principals):
        file = self.folder / "tokens"
        if principals:
            self.flags += ["--auth-tokens", file]
        return {name: subprocess.run([BUILD / "bin/wanserve", "token", "create", "--file", file, "--principal", name,
                                      "--role", role], check=True, capture_output=True, text=True).stdout.strip()
                for name, role in principals.items()}

    def _make_certificate(self):
        """For 127.0.0.1, as PEM."""
        key, file = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", file], check=True, capture_output=True)
        self.flags += ["--tls-cert", file, "--tls-key", key]
        return file.read_text(encoding="utf-8")

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def model(self):
        return "m" if self.fake else "demo"

    def start(self, await_ready=True):
        binary = "tests/bin/wanserve_with_fake_engine" if self.fake else "bin/wanserve"
        command = self.prefix + [BUILD / binary, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                                 "--data-dir", self.data]
        command += [] if "--http-listen" in self.flags else ["--http-listen", "none"]
        command += ["--model", "m=synthetic:ti2v-5b"] if self.fake else []
        command = [str(part) for part in command + self.flags]

        def limit():
            if self.tasks:
                pathlib.Path(self.tasks).write_text(str(os.getpid()), encoding="utf-8")
            if self.descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, self.descriptors)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors or log, preexec_fn=limit,
                                            env={**os.environ, **self.environment})
        line = self.process.stdout.readline()
        expect(line, f"the server starts; its log ends with: {self.log_lines()[-1:]}")
        listening = json.loads(line)
        self.grpc, self.metrics = listening["grpc"], listening["metrics"]
        self.http = listening.get("http")  # with --http-listen
        self.channel = self.new_channel()
        if await_ready:
            await_true(self._is_ready, 60, "the model is ready")

    def _is_ready(self):
        models = self.call("ListModels", model_management_pb2.ListModelsRequest()).models
        return any(model.state == model_management_pb2.MODEL_STATE_READY for model in models)

    def kill(self):
        """kill -9; harmless for a server that has ended."""
        if self.process is None:
            return
        self.channel_close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process = None

    def terminate(self, seconds):
        """SIGTERM; returns the exit code and how long it took."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise NotHeld(f"SIGTERM ends the server within {seconds} s") from error
        return code, time.monotonic() - start

    def stop(self):
        """SIGTERM, after which it can start again."""
        self.terminate(30)
        self.channel_close()
        self.process.stdout.close()

    def channel_close(self):
        if getattr(self, "channel", None):
            self.channel.close()
            self.channel = None

    def new_channel(self):
        return new_channel(self.grpc, self.certificate)

    def call(self, method, request, timeout=60, channel=None, caller=None):
        return call(channel or self.channel, method, request, timeout, self.tokens.get(caller or self.caller))

    def request(self, **fields):
        """Returns a small request."""
        return small_request(self.model, self.fake, **fields)

    def create(self, timeout=60, caller=None, **fields):
        request = video_generation_pb2.CreateJobRequest(request=self.request(**fields))
        return self.call("CreateJob", request, timeout, caller=caller)

    def job(self, name, channel=None, timeout=60):
        return self.call("GetJob", video_generation_pb2.GetJobRequest(name=name), timeout, channel)

    def jobs(self, **fields):
        return self.call("ListJobs", video_generation_pb2.ListJobsRequest(page_size=1000, **fields)).jobs

    def await_end(self, name, seconds=60):
        await_true(lambda: self.job(name).state in ENDED, seconds, f"{name} ends")
        return self.job(name)

    def expect_healthy(self, seconds=30):
        """Checks that the process lives, answers, and runs a new job to its end."""
        expect(self.process.poll() is None, "the server is alive")
        job = self.await_end(self.create(timeout=seconds).name, seconds)
        expect(job.state == generation_pb2.JOB_STATE_COMPLETED, f"a new job completes ({job.error.message})")

    def scrape(self, timeout=1):
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=timeout) as answer:
            return answer.read().decode()

    def _status(self, field):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(text.split(field + ":")[1].split()[0]) * 1024

    def memory(self):
        return self._status("VmRSS")

    def reset_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5", encoding="utf-8")

    def peak(self):
        """Returns the peak of resident memory since reset_peak."""
        expect(self.process.poll() is None, "the server is alive")
        return self._status("VmHWM")

    def open_descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def log_lines(self):
        return self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
