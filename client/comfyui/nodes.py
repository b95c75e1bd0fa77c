"""The nodes. Inputs have the names of the request's fields, so that the server's messages name the input that is wrong."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import folder_paths
from comfy_api.input_impl import VideoFromFile
from wanserve_client import Client, ConnectionLost, messages
from wanserve_client.request import enum_words

from . import job, pictures
from .server import DEFAULT_ADDRESS, NO_LORA, ONLY_MODEL, Offers, Server

CATEGORY = "wanserve"
# Inputs keep these values if the request shall not have the field, so that the model's default counts.
_DEFAULT = 0
_DEFAULT_GUIDANCE = -1.0
_DEFAULT_WORD = "default"
# Browsers count exactly only up to this number; the server takes seeds up to 2^63 - 1.
_MAX_SEED = 2**53 - 1

_offers = Offers()


def _number(kind: str, highest: float, tooltip: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return kind, {"default": _DEFAULT, "min": _DEFAULT, "max": highest, "tooltip": f"{tooltip} 0: the model's default.", **more}


class WanServer:
    """The server on which 'Wan Generate' makes its video. Without this node, ComfyUI's environment names it."""

    CATEGORY = CATEGORY
    FUNCTION = "choose"
    RETURN_TYPES = ("WAN_SERVER",)
    RETURN_NAMES = ("server",)

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {
                "address": ("STRING", {"default": DEFAULT_ADDRESS, "tooltip": "HOST:PORT of the server's gRPC."}),
            },
            "optional": {
                "token_variable": ("STRING", {
                    "default": "WAN_TOKEN",
                    "tooltip": "The environment variable that has the token: WAN_TOKEN or WAN_TOKEN_NAME. The token is sent only "
                               "to the address in WAN_SERVER or WAN_SERVER_NAME."}),
                "tls": ("BOOLEAN", {"default": False, "tooltip": "Whether the server speaks TLS."}),
                "tls_ca": ("STRING", {
                    "default": "", "tooltip": "A PEM file with the authorities of the server's certificate. "
                                              "Empty: those of this machine."}),
            },
        }

    def choose(self, address: str, token_variable: str = "WAN_TOKEN", tls: bool = False, tls_ca: str = "") -> tuple[Server]:
        return (Server(address.strip(), token_variable.strip(), tls, tls_ca.strip()),)


class WanLora:
    """One LoRA of the server. Link several of these nodes one after another to use several LoRAs."""

    CATEGORY = CATEGORY
    FUNCTION = "add"
    RETURN_TYPES = ("WAN_LORAS",)
    RETURN_NAMES = ("loras",)

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {
                "name": ([*_offers.current().loras] or [NO_LORA], {"tooltip": "A LoRA that the server has registered."}),
                "scale": ("FLOAT", {"default": 1.0, "min": -10.0, "max": 10.0, "step": 0.05}),
            },
            "optional": {"loras": ("WAN_LORAS", {"tooltip": "The LoRAs before this one."})},
        }

    @classmethod
    def VALIDATE_INPUTS(cls, name: str) -> bool:
        """Accepts every name: a linked 'Wan Server' may have other LoRAs than the list."""
        return True

    def add(self, name: str, scale: float, loras: tuple[Any, ...] = ()) -> tuple[tuple[Any, ...]]:
        if name == NO_LORA:
            return (loras,)
        return ((*loras, messages.LoraScale(name=name, scale=scale)),)


class WanGenerate:
    """Makes a video on a wanserve server, of a text or of a text and an image."""

    CATEGORY = CATEGORY
    FUNCTION = "generate"
    RETURN_TYPES = ("IMAGE", "VIDEO", "FLOAT", "STRING")
    RETURN_NAMES = ("frames", "video", "fps", "job")
    OUTPUT_TOOLTIPS = ("The frames without loss.", "The server's MP4 file.", "Frames per second.", "The job's name, for reports.")

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {
                "model": ([ONLY_MODEL, *_offers.current().models], {"tooltip": "A model of the server."}),
                "prompt": ("STRING", {"multiline": True}),
                "seed": ("INT", {"default": 0, "min": 0, "max": _MAX_SEED, "control_after_generate": True}),
            },
            "optional": {
                "negative_prompt": ("STRING", {"default": "", "multiline": True, "tooltip": "Empty: the model's default."}),
                "width": _number("INT", 4096, "Width in pixels. With an image only the area counts, see exact_size."),
                "height": _number("INT", 4096, "Height in pixels."),
                "num_frames": _number("INT", 4093, "The number of frames, 4n+1."),
                "seconds": _number("FLOAT", 300.0, "The length, instead of num_frames.", step=0.1),
                "fps": _number("INT", 120, "Frames per second of the file."),
                "steps": _number("INT", 1000, "Denoising steps."),
                "guidance_scale": ("FLOAT", {
                    "default": _DEFAULT_GUIDANCE, "min": _DEFAULT_GUIDANCE, "max": 100.0, "step": 0.1,
                    "tooltip": "Of models with two experts: the guidance of the low-noise one. -1: the model's default."}),
                "guidance_scale_high": ("FLOAT", {
                    "default": _DEFAULT_GUIDANCE, "min": _DEFAULT_GUIDANCE, "max": 100.0, "step": 0.1,
                    "tooltip": "Of models with two experts: the guidance of the high-noise one. -1: as guidance_scale."}),
                "shift": _number("FLOAT", 100.0, "The time shift of the noise schedule.", step=0.1),
                "solver": ([_DEFAULT_WORD, *enum_words(messages.Solver.DESCRIPTOR)], {}),
                "quality": ([_DEFAULT_WORD, *enum_words(messages.Quality.DESCRIPTOR)], {
                    "tooltip": "How exactly the video is computed."}),
                "exact_size": ("BOOLEAN", {
                    "default": False,
                    "tooltip": "Whether an image is cropped to width and height. Otherwise it keeps its aspect ratio."}),
                "preview_interval": ("INT", {
                    "default": 5, "min": 0, "max": 1000, "tooltip": "Steps between previews. 0: no previews."}),
                "image": ("IMAGE", {"tooltip": "The first frame, for image to video."}),
                "loras": ("WAN_LORAS", {}),
                "server": ("WAN_SERVER", {"tooltip": "Without one: the environment's WAN_SERVER."}),
            },
        }

    @classmethod
    def VALIDATE_INPUTS(cls, model: str) -> bool:
        """Accepts every name: a linked 'Wan Server' may have other models than the list, and the server refuses a wrong one."""
        return True

    def generate(self, model: str, prompt: str, seed: int, server: Server | None = None, image: Any = None,
                 seconds: float = _DEFAULT, **inputs: Any) -> tuple[Any, Any, float, str]:
        fields = {"prompt": prompt, "seed": seed, **_fields(inputs)}
        if model != ONLY_MODEL:
            fields["model"] = model
        if image is not None:
            fields["image"] = pictures.png_of(image)
        progress = job.Progress()
        server = server or Server.of_environment()
        try:
            with server.connect() as client:
                if seconds != _DEFAULT:
                    _set_length(client, fields, seconds)
                made = job.run(client, fields, progress)
                frames, video = _results(client, made)
        except ConnectionLost as error:
            raise ConnectionLost(f"no answer from {server.address}: {error.message}", error.code) from error
        progress.finish()
        return frames, video, float(made.request.fps), made.name


def _fields(inputs: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of the request for the inputs that were changed from 'default'."""
    inputs = dict(inputs)
    fields: dict[str, Any] = {"outputs": ["mkv", "mp4"]}
    low = inputs.pop("guidance_scale", _DEFAULT_GUIDANCE)
    high = inputs.pop("guidance_scale_high", _DEFAULT_GUIDANCE)
    if low >= 0:
        fields["guidance_scale"] = [low, high] if high >= 0 else [low]
    elif high >= 0:
        raise ValueError(f"guidance_scale: is not set; must be 0 to 100 when guidance_scale_high is {high:g}")
    for name in ("solver", "quality"):
        if inputs.get(name) == _DEFAULT_WORD:
            del inputs[name]
    # The other inputs have the request's own names, and are 0, empty or false where nothing was chosen.
    return {**fields, **{name: value for name, value in inputs.items() if value}}


def _set_length(client: Client, fields: dict[str, Any], seconds: float) -> None:
    """Sets the number of frames that comes nearest to the seconds. A model that does not exist is left to the server's answer."""
    if "num_frames" in fields:
        raise ValueError(f"seconds: is {seconds:g}; must be 0 when num_frames is {fields['num_frames']}")
    models = {each.name.removeprefix("models/"): each for each in client.models()}
    if "model" not in fields and len(models) > 1:
        raise ValueError(f"model: is not chosen; must be one of {', '.join(models)} when seconds is {seconds:g}")
    model = models.get(fields["model"]) if "model" in fields else next(iter(models.values()), None)
    if model is None:
        return
    fps, stride = fields.get("fps", model.defaults.fps), model.temporal_stride
    if not fps or not stride:
        raise ValueError(f"seconds: is {seconds:g}; must be 0 until the server has read the model, for example with num_frames 81")
    fields["num_frames"] = stride * round(seconds * fps / stride) + 1


def _results(client: Client, made: Any) -> tuple[Any, Any]:
    """Downloads the job's files. ComfyUI empties its temporary folder when it starts and ends."""
    folder = pathlib.Path(folder_paths.get_temp_directory())
    folder.mkdir(parents=True, exist_ok=True)

    def stop(*_: Any) -> None:
        job.stop_if_interrupted()

    with tempfile.TemporaryDirectory(dir=folder) as lossless:
        path = client.download(made, pathlib.Path(lossless) / "frames.mkv", progress=stop)
        frames = pictures.frames_of(path, stop)
    video = client.download(made, folder / f"wanserve-{made.name.removeprefix('jobs/')}.mp4", progress=stop)
    return frames, VideoFromFile(str(video))


NODE_CLASS_MAPPINGS = {"WanserveServer": WanServer, "WanserveLora": WanLora, "WanserveGenerate": WanGenerate}
NODE_DISPLAY_NAME_MAPPINGS = {
    "WanserveServer": "Wan Server", "WanserveLora": "Wan LoRA", "WanserveGenerate": "Wan Generate"}
