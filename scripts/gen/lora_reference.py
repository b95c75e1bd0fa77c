#!/usr/bin/env python3
"""Writes tests/engine/weights/testdata/adapters: adapters of every kind for a tiny transformer, and what they make of it.

    scripts/gen/lora_reference.py tests/engine/weights/testdata/adapters

base.safetensors has some weights of the transformer. Each other file or folder is an adapter as one trainer writes it, and
expected.safetensors has for each of them, under "ADAPTER/SCALE/TENSOR", the weight that merging it with that scale gives,
computed here in float64 from the formulas that the trainers publish:

  LoRA   D = B A alpha / r
  LoHa   D = (A1 B1) * (A2 B2) alpha / r, * element by element
  LoKr   D = kron(W1, W2) alpha / r; each side whole, or the product of two factors; LyCORIS does not scale whole sides
  DoRA   m (W + D) / |W + D|, the lengths of rows (PEFT, LyCORIS) or of input channels (older LyCORIS)

and W + scale ((W with the adapter) - W). Needs numpy.
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np

RANDOM = np.random.default_rng(20261128)
SCALES = (1.0, 0.5)
SHAPES = {
    "blocks.0.self_attn.q.weight": (8, 8),
    "blocks.0.ffn.0.weight": (12, 8),
    "blocks.1.ffn.2.weight": (8, 12),
    "patch_embedding.weight": (8, 3, 1, 2, 2),
    "blocks.1.self_attn.norm_q.weight": (8,),
    "blocks.0.norm3.bias": (8,),
}
QUERY, UP, DOWN, PATCH, NORM, BIAS = SHAPES
DIFFUSERS = {QUERY: "blocks.0.attn1.to_q", UP: "blocks.0.ffn.net.0.proj", DOWN: "blocks.1.ffn.net.2"}


def draw(*shape):
    return RANDOM.normal(0, 0.5, shape).astype(np.float32)


def module(target):
    return target.rsplit(".", 1)[0]


class Adapter:
    """Tensors for a file, and the weights that they lead to."""

    def __init__(self, name, spell, metadata=None, settings=None, dtype=np.float32):
        self.name, self.spell, self.dtype = name, spell, dtype
        self.metadata, self.settings = metadata or {}, settings
        self.tensors, self.results = {}, {}

    def put(self, target, part, value):
        """Stores a tensor; gives it back with the values that the file holds."""
        stored = np.asarray(value).astype(self.dtype)
        self.tensors[self.spell(target) + part] = stored
        return stored.astype(np.float64)

    def alpha(self, target, value):
        self.tensors[self.spell(target) + ".alpha"] = np.float32(value)

    def changed(self, target, difference):
        self.results[target] = BASE[target] + difference.reshape(SHAPES[target])

    def lora(self, target, rank, factor):
        rows, columns = SHAPES[target][0], int(np.prod(SHAPES[target][1:]))
        down, up = (".lora_A.weight", ".lora_B.weight") if self.settings else (".lora_down.weight", ".lora_up.weight")
        a = self.put(target, down, draw(rank, columns))
        self.changed(target, self.put(target, up, draw(rows, rank)) @ a * factor)

    def loha(self, target, rank, factor):
        rows, columns = SHAPES[target][0], int(np.prod(SHAPES[target][1:]))
        first, second = (
            self.put(target, f".hada_w{i}_a", draw(rows, rank)) @ self.put(target, f".hada_w{i}_b", draw(rank, columns))
            for i in (1, 2)
        )
        self.changed(target, first * second * factor)

    def lokr(self, target, left, right, factor, left_rank=None, right_rank=None):
        sides = []
        for number, shape, rank in ((1, left, left_rank), (2, right, right_rank)):
            if rank is None:
                sides.append(self.put(target, f".lokr_w{number}", draw(*shape)).reshape(shape[0], -1))
                continue
            columns = int(np.prod(shape[1:]))
            up = self.put(target, f".lokr_w{number}_a", draw(shape[0], rank))
            sides.append(up @ self.put(target, f".lokr_w{number}_b", draw(rank, columns)))
        self.changed(target, np.kron(*sides) * factor)

    def dora(self, target, part, shape):
        """Gives the rows of the changed weight, or its input channels, other lengths."""
        lengths = self.put(target, part, np.abs(draw(*shape)) + 0.5)
        weight = self.results[target]
        axes = tuple(i for i in range(weight.ndim) if i != (0 if lengths.size == weight.shape[0] and shape[0] != 1 else 1))
        norm = np.sqrt((weight**2).sum(axes, keepdims=True))
        self.results[target] = weight * lengths.reshape(norm.shape) / norm

    def difference(self, target, part):
        self.changed(target, self.put(target, part, draw(*SHAPES[target])))


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, value in sorted(tensors.items()):
        dtype = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16"}[value.dtype]
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def kohya(target):
    return "lora_unet_" + module(target).replace(".", "_")


def comfy(target):
    return "diffusion_model." + module(target)


def peft(target):
    return "base_model.model." + DIFFUSERS[target]


def adapters():
    loha = Adapter("loha", kohya)
    for target in (QUERY, UP, PATCH):
        loha.loha(target, 3, 1.5 / 3)
        loha.alpha(target, 1.5)
    yield loha

    loha = Adapter("loha_peft", peft, settings={"peft_type": "LOHA", "r": 2, "alpha": 3})
    loha.loha(QUERY, 2, 1.5)
    loha.loha(DOWN, 2, 1.5)
    yield loha

    lokr = Adapter("lokr", comfy)
    lokr.lokr(QUERY, (2, 4), (4, 2), 0.5, right_rank=2)
    lokr.alpha(QUERY, 1)
    lokr.lokr(UP, (3, 2), (4, 4), 1)
    lokr.alpha(UP, 1e10)  # never used, because both sides are whole
    lokr.lokr(DOWN, (4, 3), (2, 4), 2, left_rank=2, right_rank=2)
    lokr.alpha(DOWN, 4)
    lokr.lokr(PATCH, (2, 3), (4, 1, 1, 2, 2), 1)
    yield lokr

    lokr = Adapter("lokr_peft", peft, settings={"peft_type": "LOKR", "r": 8, "alpha": 4, "use_dora": None})
    lokr.lokr(QUERY, (4, 2), (2, 4), 0.5)
    lokr.lokr(DOWN, (4, 3), (2, 4), 0.5, right_rank=8)
    yield lokr

    dora = Adapter("dora_peft", peft, settings={"peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_dora": True})
    for target in (QUERY, UP, DOWN):
        dora.lora(target, 2, 2)
        dora.dora(target, ".lora_magnitude_vector", (SHAPES[target][0],))
    yield dora

    dora = Adapter("dora_of_rows", kohya, dtype=np.float16)
    for target in (QUERY, UP, PATCH):
        dora.lora(target, 4, 0.5)
        dora.alpha(target, 2)
        dora.dora(target, ".dora_scale", (SHAPES[target][0],) + (1,) * (len(SHAPES[target]) - 1))
    yield dora

    dora = Adapter("dora_of_columns", kohya)
    dora.lora(QUERY, 2, 1)
    dora.loha(UP, 2, 1)
    dora.lokr(DOWN, (4, 3), (2, 4), 1)
    dora.lora(PATCH, 2, 1)
    for target in (QUERY, UP, DOWN, PATCH):
        dora.dora(target, ".dora_scale", (1, SHAPES[target][1]) + (1,) * (len(SHAPES[target]) - 2))
    yield dora

    norms = Adapter("norms", comfy)
    norms.difference(NORM, ".diff")
    norms.difference(BIAS, ".diff_b")
    yield norms

    norms = Adapter("norms_lycoris", kohya)
    norms.difference(NORM, ".w_norm")
    norms.difference(BIAS, ".b_norm")
    yield norms


BASE = {target: draw(*shape).astype(np.float64) for target, shape in SHAPES.items()}


def main():
    folder = Path(sys.argv[1])
    write(folder / "base.safetensors", {name: value.astype(np.float32) for name, value in BASE.items()}, {})
    expected = {}
    for adapter in adapters():
        if adapter.settings is None:
            path = folder / f"{adapter.name}.safetensors"
        else:
            path = folder / adapter.name / "adapter_model.safetensors"
        write(path, adapter.tensors, adapter.metadata)
        if adapter.settings is not None:
            (path.parent / "adapter_config.json").write_text(json.dumps(adapter.settings) + "\n")
        for target, result in adapter.results.items():
            for scale in SCALES:
                merged = BASE[target] + scale * (result - BASE[target])
                expected[f"{adapter.name}/{scale:g}/{target}"] = merged.astype(np.float32)
    write(folder / "expected.safetensors", expected, {})


main()
