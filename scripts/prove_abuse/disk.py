"""Attacks on the disk under the server. Each docstring says what is wanted."""

import hashlib
import pathlib
import random
import subprocess
import threading
import time

import grpc
from wan.v1 import generation_pb2, video_generation_pb2

from prove_abuse.server import CannotRun, Server, await_true, code_of, expect

CODE = grpc.StatusCode
COMPLETED = generation_pb2.JOB_STATE_COMPLETED


class SmallDisk:
    """A file system of its own size that outlives the servers on it. Use it in a with statement; `prefix` starts a program
    there. What it holds is reached from outside below `root`."""

    def __init__(self, folder, mib):
        folder.mkdir(parents=True, exist_ok=True)
        prefix = own_mounts(f'mount -t tmpfs -o size={mib}m tmpfs "$0"', folder)
        self._folder = folder
        self._holder = subprocess.Popen([str(part) for part in prefix] + ["sh", "-c", "echo ready && exec sleep infinity"],
                                        stdout=subprocess.PIPE)
        self._holder.stdout.readline()
        self.prefix = ["nsenter", f"--target={self._holder.pid}", "--user", "--mount", "--preserve-credentials"]

    @property
    def root(self):
        return pathlib.Path(f"/proc/{self._holder.pid}/root{self._folder}")

    def fill(self):
        """Fills all free space; call it again to fill space that has become free since."""
        with open(self.root / "filler", "ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass  # the disk is full

    def free(self):
        (self.root / "filler").unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._holder.kill()
        self._holder.wait()
        self._holder.stdout.close()


def own_mounts(script, folder):
    """Returns the prefix that starts a process in its own mount namespace, after a script in which $0 is the folder."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, check=False).returncode:
        raise CannotRun("this user cannot mount a file system of its own")
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script + ' && exec "$@"', folder]


def slow_disk_library(folder):
    """Builds slow_disk.c in the folder; the file says what it does."""
    library = folder / "slow_disk.so"
    source = pathlib.Path(__file__).with_name("slow_disk.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return str(library)


def download(target, artifact):
    digest = hashlib.sha256()
    for chunk in target.call("DownloadArtifact", video_generation_pb2.DownloadArtifactRequest(name=artifact.name)):
        digest.update(chunk.data)
    return digest.hexdigest()


def retention_kills(scale):
    """kill -9 at any moment while old jobs and files go: no file without a job, no job that promises a file that is gone,
    and what was removed is NOT_FOUND"""
    chooser = random.Random(3)
    count = scale.of(60)
    names = []
    flags = ["--retain-completed", "8", "--retain-artifacts", "4", "--max-attempts", "100"]
    with Server(flags=flags, environment={"WAN_FAKE_OUTPUT_BYTES": "20000"}) as target:
        for _ in range(count):
            # There are more jobs than a round may keep; the next start begins with a round.
            for _ in range(4):
                names.append(target.create().name)
            target.await_end(names[-1])
            target.kill()
            target.start(await_ready=False)
            time.sleep(chooser.uniform(0, 0.02))
            target.kill()
            target.start()
        await_true(lambda: len(target.jobs()) <= 8, 90, "at most 8 jobs stay")
        listed = {job.name: job for job in target.jobs()}
        folders = {f"jobs/{folder.name}": folder for folder in pathlib.Path(target.data, "artifacts").iterdir()}
        expect(set(folders) <= set(listed), "every folder of files belongs to a job")
        kept = 0
        for job in listed.values():
            there = {file.name for file in folders[job.name].iterdir()} if job.name in folders else set()
            promised = [artifact for artifact in job.artifacts if not artifact.HasField("delete_time")]
            expect(there == {artifact.name.rsplit("/", 1)[1] for artifact in promised}, f"{job.name} has the files that it promises")
            for artifact in promised:
                expect(download(target, artifact) == artifact.sha256, f"the file of {job.name} is whole")
            kept += len(promised)
        expect(kept <= 4, f"at most 4 jobs keep their files, not {kept}")
        for name in set(names) - set(listed):
            code, details = code_of(lambda: target.job(name))
            expect(code == CODE.NOT_FOUND and "was removed" in details, f"{name} was removed, not {code.name} ({details})")
        return f"{2 * count} kills, {len(names)} jobs, {len(listed)} stay, {kept} with their files"


def small_disk(_):
    """on a file system of 24 MiB jobs are accepted until the reserve is reached, each of them completes, the next is
    RESOURCE_EXHAUSTED, and after a DeleteJob another one is accepted"""
    environment = {"WAN_FAKE_OUTPUT_BYTES": str(1 << 20)}
    target = Server(flags=["--disk-reserve", str(6 << 20)], environment=environment)
    target.data.mkdir(parents=True)
    target.prefix = own_mounts('mount -t tmpfs -o size=24m tmpfs "$0"', target.data)
    with target:
        done = []
        while len(done) < 40:
            code, details = code_of(lambda: done.append(target.create().name))
            if code != CODE.OK:
                break
            expect(target.await_end(done[-1]).state == COMPLETED, f"{done[-1]} completes")
        expect(code == CODE.RESOURCE_EXHAUSTED and "disk_reserve" in details, f"the next job is refused, not {code.name} ({details})")
        expect(5 <= len(done) < 24, f"the reserve stays free: {len(done)} jobs of 1 MiB")
        for name in done[:2]:
            target.call("DeleteJob", video_generation_pb2.DeleteJobRequest(name=name))
        expect(target.await_end(target.create().name).state == COMPLETED, "a job is accepted again")
        return f"{len(done)} jobs of 1 MiB, then {code.name}; accepted again after two were deleted"


def read_only_disk(_):
    """a server on a read-only disk starts, lists and serves the videos of before, and refuses new jobs with UNAVAILABLE"""
    with Server() as target:
        name = target.await_end(target.create().name).name
        target.stop()
        target.prefix = own_mounts('mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"', target.data)
        target.start(await_ready=False)
        job = target.job(name)
        expect(job.state == COMPLETED, "the job of before is there")
        expect(download(target, job.artifacts[0]) == job.artifacts[0].sha256, "its video can be fetched")
        await_true(target._is_ready, 30, "the model is ready")
        code, details = code_of(target.create)
        expect(code == CODE.UNAVAILABLE, f"a new job is refused, not {code.name} ({details})")
        code, details = code_of(lambda: target.call("DeleteJob", video_generation_pb2.DeleteJobRequest(name=name)))
        expect(code == CODE.UNAVAILABLE, f"a job is not deleted, not {code.name} ({details})")
        expect(download(target, job.artifacts[0]) == job.artifacts[0].sha256, "its video is still there")
        return "started, the video was fetched, a new job and DeleteJob are UNAVAILABLE"


def slow_disk(scale):
    """on a disk where a sync takes 400 ms and a write 2 ms, GetJob is answered within 250 ms and lists within 0.5 s (they
    wait for no sync), jobs complete, no accepted job is lost at a kill -9, and SIGTERM ends the server within 20 s"""
    environment = {"WAN_SLOW_SYNC_MS": "400", "WAN_SLOW_WRITE_MS": "2"}
    with Server(environment=environment, flags=["--heartbeat-interval", "1"]) as target:
        target.kill()
        target.environment["LD_PRELOAD"] = slow_disk_library(target.folder)
        target.start()
        accepted, stop = [], threading.Event()

        def create():
            while not stop.is_set() and len(accepted) < 8:  # each job takes seconds
                try:
                    accepted.append(target.create().name)
                except (grpc.RpcError, ValueError):
                    return  # the server has been killed

        callers = [threading.Thread(target=create, daemon=True) for _ in range(4)]
        start = time.monotonic()
        for caller in callers:
            caller.start()
        longest, longest_get = 0, 0
        while time.monotonic() - start < scale.of(20):
            asked = time.monotonic()
            target.jobs()
            listed = time.monotonic()
            longest = max(longest, listed - asked)
            if accepted:
                target.job(accepted[0])
                longest_get = max(longest_get, time.monotonic() - listed)
            time.sleep(0.05)
        took = time.monotonic() - start
        expect(longest <= 0.5, f"a list took {longest:.2f} s")
        expect(longest_get <= 0.25, f"a GetJob took {longest_get * 1000:.0f} ms")
        expect(len(accepted) >= 2, f"jobs are accepted: {len(accepted)}")
        stop.set()
        target.kill()
        for caller in callers:
            caller.join(5)
        target.start()
        known = set(accepted)
        await_true(lambda: known <= {job.name for job in target.jobs() if job.state == COMPLETED}, 120, "every accepted job completes")
        code, ended = target.terminate(30)
        expect(code == 0 and ended <= 20, f"SIGTERM took {ended:.1f} s, exit code {code}")
        return (f"{len(accepted)} jobs accepted in {took:.0f} s and completed after a kill -9; a list took at most {longest:.2f} s, a "
                f"GetJob {longest_get * 1000:.0f} ms, SIGTERM {ended:.1f} s")


ATTACKS = {
    "read-only-disk": read_only_disk,
    "retention-kills": retention_kills,
    "slow-disk": slow_disk,
    "small-disk": small_disk,
}
