"""Makes a wan.v1.GenerationRequest from keywords."""

from __future__ import annotations

import datetime
import difflib
import inspect
import numbers
import reprlib
from typing import Any, Callable, Iterable, Literal, Mapping, Optional, Sequence, TypedDict, TypeVar, Union

from google.protobuf import timestamp_pb2
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from wanserve_client import errors
from wanserve_client._proto.wan.v1 import enum_words_pb2, generation_pb2
from wanserve_client.image import FileContent, Image, file_bytes, image_bytes

# Latents of a request: the bytes of a safetensors file, its path, the file open in binary mode, or a job that has made
# such a file (its name begins with "jobs/").
Latents = Union[FileContent, generation_pb2.Job, generation_pb2.LatentsSource]

F = TypeVar("F", bound=Callable[..., Any])

# Each enum by its words in the contract, or by its numbers: messages.QUALITY_HIGH.
Solver = Union[Literal["unipc", "dpm++", "euler", "lcm"], int]
Quality = Union[Literal["exact", "high", "fast"], int]
VaePrecision = Union[Literal["fp32", "tf32", "fp16", "bf16"], int]
Decoder = Union[Literal["full", "tiny"], int]
Resume = Union[Literal["prefer", "require"], int]
Output = Union[Literal["mp4", "mkv", "safetensors"], int]


class RequestFields(TypedDict, total=False):
    """A request as keywords. A field that is left out or None takes the model's default.

    The fields are those of wan.v1.GenerationRequest, which documents them: docs/use/api.md.
    """

    model: Optional[str]
    prompt: Optional[str]
    negative_prompt: Optional[str]
    image: Optional[Image]
    width: Optional[int]
    height: Optional[int]
    num_frames: Optional[int]
    fps: Optional[int]
    steps: Optional[int]
    guidance_scale: Union[float, Sequence[float], None]
    shift: Optional[float]
    solver: Optional[Solver]
    seed: Optional[int]
    outputs: Union[Output, Sequence[Output], None]
    priority: Optional[int]
    deadline: Union[datetime.datetime, timestamp_pb2.Timestamp, None]
    request_id: Optional[str]
    labels: Optional[Mapping[str, str]]
    preview_interval: Optional[int]
    loras: Union[Mapping[str, float], Iterable[Union[str, generation_pb2.LoraScale]], None]
    vae_precision: Optional[VaePrecision]
    decoder: Optional[Decoder]
    exact_size: Optional[bool]
    webhook_url: Optional[str]
    h264_crf: Optional[int]
    profile: Optional[bool]
    background: Optional[str]
    quality: Optional[Quality]
    calibrate: Optional[bool]
    initial_latents: Optional[Latents]
    latents: Optional[Latents]
    strength: Optional[float]
    sigmas: Optional[Sequence[float]]
    boundary_step: Optional[int]
    progressive: Optional[bool]
    resume: Optional[Resume]


# A prompt, or a message of the contract.
Request = Union[str, generation_pb2.GenerationRequest]

_FIELDS: Mapping[str, FieldDescriptor] = generation_pb2.GenerationRequest.DESCRIPTOR.fields_by_name

# The names that diffusers, Wan's own scripts and other programs use, and what to write here.
_OTHER_NAMES = {
    "num_inference_steps": "steps",
    "sampling_steps": "steps",
    "sample_steps": "steps",
    "num_steps": "steps",
    "frames": "num_frames",
    "frame_num": "num_frames",
    "video_length": "num_frames",
    "seconds": "num_frames, which is fps * seconds + 1",
    "duration": "num_frames, which is fps * seconds + 1",
    "frame_rate": "fps",
    "size": "width and height",
    "resolution": "width and height",
    "guidance_scale_2": "guidance_scale=[low, high]; diffusers' guidance_scale is high, its guidance_scale_2 is low",
    "guidance": "guidance_scale",
    "guide_scale": "guidance_scale",
    "sample_guide_scale": "guidance_scale",
    "cfg": "guidance_scale",
    "cfg_scale": "guidance_scale",
    "flow_shift": "shift",
    "sample_shift": "shift",
    "scheduler": "solver",
    "sampler": "solver",
    "sample_solver": "solver",
    "generator": "seed",
    "base_seed": "seed",
    "n_prompt": "negative_prompt",
    "first_frame": "image",
    "input_reference": "image",
    "lora": "loras",
    "lora_scale": 'loras={"name": scale}',
    "attention_kwargs": 'loras={"name": scale}',
    "output_type": "outputs",
    "num_videos_per_prompt": "submit_batch",
    "callback_on_step_end": "on_event",
    "crf": "h264_crf",
}

# What a value must be, by the type of its field, and for some fields by their name.
_SCALARS = {FieldDescriptor.TYPE_INT32: "a whole number of 32 bits", FieldDescriptor.TYPE_INT64: "a whole number of 64 bits",
            FieldDescriptor.TYPE_DOUBLE: "a number", FieldDescriptor.TYPE_BOOL: "True or False",
            FieldDescriptor.TYPE_STRING: "a text"}
_COMPOUNDS = {"labels": 'a dictionary of texts, for example {"team": "video"}',
              "loras": 'a dictionary of names and scales, for example {"kite": 0.8}'}


def build(request: Optional[Request], fields: Mapping[str, Any]) -> generation_pb2.GenerationRequest:
    """Returns the request with `fields` in the place of what it has. `fields` are RequestFields.

    Raises TypeError for a keyword that is not a field and for a value of another type, and InvalidRequest for a value
    that the server would refuse.
    """
    _refuse_unknown(fields)
    complete = generation_pb2.GenerationRequest()
    if isinstance(request, str):
        if fields.get("prompt") is not None:
            raise TypeError("prompt: is given twice, as the first argument and as a keyword; must be given once")
        complete.prompt = request
    elif isinstance(request, generation_pb2.GenerationRequest):
        complete.CopyFrom(request)
    elif request is not None:
        raise TypeError(f"request: is a {type(request).__name__}; must be the prompt or a GenerationRequest, for example "
                        '"a red kite"')
    for name, value in fields.items():
        if value is not None:
            complete.ClearField(name)  # type: ignore[arg-type]
            complete.MergeFrom(_with_field(_FIELDS[name], value))
    if complete.HasField("image") and not complete.image:
        raise errors.invalid("image", "is empty; must be a PNG, JPEG or WebP file")
    return complete


def build_each(requests: Iterable[Union[Request, RequestFields]],
               fields: Mapping[str, Any]) -> list[generation_pb2.GenerationRequest]:
    """Returns a request for each entry; those that are dictionaries or prompts take what they lack from `fields`."""
    if isinstance(requests, (str, bytes, Mapping, generation_pb2.GenerationRequest)):
        raise TypeError(f"requests: is a {type(requests).__name__}; must be a list of prompts or requests")
    return [build(None, {**fields, **each}) if isinstance(each, Mapping) else build(each, fields) for each in requests]


def completes_fields(method: F) -> F:
    """Shows the fields in the signature of a method that takes **fields, for help() and for notebooks. Editors read the
    annotation."""
    signature = inspect.signature(method)
    keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None,
                                  annotation=getattr(annotation, "__forward_arg__", annotation))
                for name, annotation in RequestFields.__annotations__.items()]
    own = [each for each in signature.parameters.values() if each.kind != inspect.Parameter.VAR_KEYWORD]
    method.__signature__ = signature.replace(parameters=[*own, *keywords])  # type: ignore[attr-defined]
    return method


def enum_words(enum: EnumDescriptor) -> dict[str, int]:
    """Returns the numbers of an enum's values by their words: {"exact": 1, "high": 2, "fast": 3}."""
    words = {each.GetOptions().Extensions[enum_words_pb2.word]: each.number for each in enum.values}
    return {word: number for word, number in words.items() if word}


def _refuse_unknown(fields: Mapping[str, Any]) -> None:
    problems = []
    for name in fields:
        if name in _FIELDS:
            continue
        near = difflib.get_close_matches(name.lower(), _FIELDS, n=1)
        if name.lower() in _OTHER_NAMES:
            problems.append(f"{name}: is not a field of a request; use {_OTHER_NAMES[name.lower()]}")
        elif near:
            problems.append(f"{name}: is not a field of a request; did you mean {near[0]}?")
        else:
            problems.append(f"{name}: is not a field of a request; must be one of {', '.join(_FIELDS)}")
    if problems:
        raise TypeError("\n".join(problems))


def _with_field(field: FieldDescriptor, value: Any) -> generation_pb2.GenerationRequest:
    """Returns a request that has only this field."""
    name = field.name
    if name == "image":
        value = image_bytes(value)
    elif name in ("initial_latents", "latents"):
        value = _latents(name, value)
    elif name == "deadline":
        value = _timestamp(value)
    elif _is_repeated(field) and isinstance(value, (str, numbers.Number)):
        value = [value]
    if field.enum_type is not None:
        value = [_enum_number(field, each) for each in value] if _is_repeated(field) else _enum_number(field, value)
    try:
        return generation_pb2.GenerationRequest(**{name: _loras(value) if name == "loras" else value})
    except (TypeError, ValueError, AttributeError):
        wanted = _COMPOUNDS.get(name) or _SCALARS.get(field.type) or f"a {field.message_type.name}"
        raise TypeError(f"{name}: is {reprlib.repr(value)}; must be {wanted}") from None


def _is_repeated(field: FieldDescriptor) -> bool:
    # Older versions of protobuf lack is_repeated; newer ones warn of label.
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED)


def _enum_number(field: FieldDescriptor, value: Any) -> int:
    """Returns the number for a number, a word ("high") or a name ("QUALITY_HIGH")."""
    if isinstance(value, numbers.Integral):
        return int(value)
    words = enum_words(field.enum_type)
    if not isinstance(value, str):
        raise TypeError(f"{field.name}: is {reprlib.repr(value)}; must be one of {', '.join(words)}")
    names = {each.name: each.number for each in field.enum_type.values}
    number = words.get(value.lower(), names.get(value))
    if number is None:
        raise errors.invalid(field.name, f'is "{value}"; must be one of {", ".join(words)}')
    return number


def _timestamp(value: Any) -> timestamp_pb2.Timestamp:
    if isinstance(value, timestamp_pb2.Timestamp):
        return value
    if not isinstance(value, datetime.datetime):
        raise TypeError(f"deadline: is a {type(value).__name__}; must be a datetime with a time zone")
    if value.tzinfo is None:
        raise errors.invalid("deadline", f"is {value}, which has no time zone; must have one, for example "
                                         "datetime.now(timezone.utc) + timedelta(hours=1)")
    timestamp = timestamp_pb2.Timestamp()
    timestamp.FromDatetime(value)
    return timestamp


def _latents(field: str, value: Any) -> generation_pb2.LatentsSource:
    if isinstance(value, generation_pb2.LatentsSource):
        return value
    if isinstance(value, generation_pb2.Job):
        return generation_pb2.LatentsSource(job=value.name)
    if isinstance(value, str) and value.startswith("jobs/"):
        return generation_pb2.LatentsSource(job=value)
    return generation_pb2.LatentsSource(data=file_bytes(value, field, "a safetensors file"))


def _loras(value: Any) -> list[generation_pb2.LoraScale]:
    if isinstance(value, Mapping):
        return [generation_pb2.LoraScale(name=name, scale=scale) for name, scale in value.items()]
    if isinstance(value, (str, generation_pb2.LoraScale)):
        value = [value]
    return [generation_pb2.LoraScale(name=each) if isinstance(each, str) else each for each in value]
