"""Builds the wheel: generates wanserve_client._proto from the contract.

The generated modules lie below the package, because `wan` is the name of upstream's own package. The descriptors keep
the contract's names, so that a program may load these modules and others made from the same protos.

  WAN_PROTO_DIR       folder of the contract; if unset ../../proto, as in the repository
  WAN_GOOGLEAPIS_DIR  folder of google/api and google/rpc; if unset that of the package googleapis-common-protos
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "wanserve_client._proto"


def proto_dir() -> pathlib.Path:
    return pathlib.Path(os.environ.get("WAN_PROTO_DIR", HERE.parent.parent / "proto"))


def googleapis_dir() -> pathlib.Path:
    if "WAN_GOOGLEAPIS_DIR" in os.environ:
        return pathlib.Path(os.environ["WAN_GOOGLEAPIS_DIR"])
    from google.rpc import status_pb2

    return pathlib.Path(status_pb2.__file__).parent.parent.parent


def project_version() -> str:
    """Returns the server's version, from the project's CMakeLists.txt beside the contract."""
    text = (proto_dir().parent / "CMakeLists.txt").read_text()
    return re.search(r"project\(\w+ VERSION ([0-9.]+)", text).group(1)


def protoc() -> list:
    """Returns the compiler of grpcio-tools, or that of the distribution with its plug-in for gRPC."""
    try:
        import grpc_tools

        return [sys.executable, "-m", "grpc_tools.protoc", f"-I{pathlib.Path(grpc_tools.__file__).parent / '_proto'}"]
    except ImportError:
        plugin = shutil.which("grpc_python_plugin")
        if shutil.which("protoc") is None or plugin is None:
            sys.exit("neither grpcio-tools nor protoc with grpc_python_plugin is installed")
        return ["protoc", f"--plugin=protoc-gen-grpc_python={plugin}"]


def generate(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    protos = sorted(str(path.relative_to(proto_dir())) for path in proto_dir().rglob("*.proto"))
    subprocess.run(
        [*protoc(), f"-I{proto_dir()}", f"-I{googleapis_dir()}", f"--python_out={folder}", f"--pyi_out={folder}",
         f"--grpc_python_out={folder}", *protos], check=True)
    for path in [*folder.rglob("*.py"), *folder.rglob("*.pyi")]:
        text = path.read_text()
        path.write_text(re.sub(r"^(from|import) wan\.v1\b", rf"\1 {PACKAGE}.wan.v1", text, flags=re.MULTILINE))
    for package in [folder, folder / "wan", folder / "wan" / "v1"]:
        (package / "__init__.py").touch()


def requirements(generated: pathlib.Path) -> list:
    """Returns the requirements, from what the generated code itself demands.

    Code of protobuf X.Y, if it checks that, runs with X.Y up to all of X + 1; this is true from 5.27 on. The code of
    older compilers checks nothing; scripts/check_wheel runs it with the oldest and the newest version named here.
    """
    messages = (generated / "wan" / "v1" / "generation_pb2.py").read_text()
    stubs = (generated / "wan" / "v1" / "video_generation_pb2_grpc.py").read_text()
    protobuf = re.search(r"ValidateProtobufRuntimeVersion\(\s*[\w.]+,\s*(\d+),\s*(\d+),\s*(\d+)", messages)
    grpcio = re.search(r"GRPC_GENERATED_VERSION = '([\d.]+)'", stubs)
    oldest, end = ("4.21", 8) if protobuf is None else (".".join(protobuf.groups()), int(protobuf.group(1)) + 2)
    return [f"grpcio>={grpcio.group(1) if grpcio else '1.51'}", f"protobuf>={oldest},<{end}",
            "googleapis-common-protos>=1.56"]


class BuildWithProtos(build_py):
    def run(self) -> None:
        super().run()
        shutil.copytree(generated, pathlib.Path(self.build_lib) / "wanserve_client" / "_proto", dirs_exist_ok=True)


with tempfile.TemporaryDirectory() as folder:
    generated = pathlib.Path(folder) / "_proto"
    generate(generated)
    setup(version=project_version(), install_requires=requirements(generated), cmdclass={"build_py": BuildWithProtos})
