#!/usr/bin/env python3
"""Writes the golden checkpoints in the other forms in which weights are published, and what each form's values are.

    pack_files.py CHECKPOINTS FOLDER     from the unpacked golden checkpoints; a test fixture runs it
    pack_files.py --oracle               compares the formulas of blocks below with PyPI's gguf package (with numpy)

FOLDER gets for the model t2v-a14b, whose experts are two transformers:
  comfy/       as ComfyUI's repackaged files: a prefix for transformers, the text encoder with the names of transformers
  fp8/         codes of 8 bits: high.safetensors with a scale for each row, low.safetensors and the text encoder with one each
  int8/        codes of 8 bits with a scale for each tile of 128 x 128
  gguf/        GGUF: high.gguf and umt5.gguf in Q8_0
  types/       types.gguf: a tensor of each type of blocks, made of random bytes
  wide/        two transformers as wide as two heads of 128, in blocks of many types; no other file gives their dimensions
Beside NAME lies NAME.expected.safetensors: the widened tensors' values in BF16, under upstream's names.
Only the standard library is used.
"""
import bisect
import json
import math
import pathlib
import random
import struct
import sys

PREFIX = "model.diffusion_model."
MATRICES = ("q", "k", "v", "o", "ffn.0", "ffn.2", "fc1", "fc2", "gate.0")


# ---------------------------------------------------------------------------- numbers


def f32(value):
    """Rounds to fp32, in which the values are computed."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def half(raw):
    return struct.unpack("<e", raw)[0]


def bf16(value):
    """The bits of the nearest bf16 number, to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def e4m3(code):
    sign = -1 if code & 0x80 else 1
    exponent, mantissa = code >> 3 & 15, code & 7
    if code & 0x7F == 0x7F:
        return math.nan
    return sign * (mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10))


POSITIVE = [e4m3(code) for code in range(0x7F)]


def to_e4m3(value):
    size = min(abs(value), POSITIVE[-1])
    at = min(bisect.bisect_left(POSITIVE, size), len(POSITIVE) - 1)
    if at > 0 and size - POSITIVE[at - 1] <= POSITIVE[at] - size:
        at -= 1
    return at | (0x80 if value < 0 else 0)


# ---------------------------------------------------------------------------- blocks of GGUF
# Each function returns the values of one block, by the formulas of ggml's reference.


def q4_0(b):
    d = half(b[:2])
    return [f32(d * ((b[2 + i % 16] >> 4 * (i // 16) & 15) - 8)) for i in range(32)]


def q4_1(b):
    d, m = half(b[:2]), half(b[2:4])
    return [f32(f32(d * (b[4 + i % 16] >> 4 * (i // 16) & 15)) + m) for i in range(32)]


def five_bits(b, at, i):
    high = struct.unpack("<I", b[at : at + 4])[0] >> i & 1
    return (b[at + 4 + i % 16] >> 4 * (i // 16) & 15) | high << 4


def q5_0(b):
    d = half(b[:2])
    return [f32(d * (five_bits(b, 2, i) - 16)) for i in range(32)]


def q5_1(b):
    d, m = half(b[:2]), half(b[2:4])
    return [f32(f32(d * five_bits(b, 4, i)) + m) for i in range(32)]


def q8_0(b):
    d = half(b[:2])
    return [f32(d * n) for n in struct.unpack("<32b", b[2:34])]


def q2_k(b):
    d, dmin = half(b[80:82]), half(b[82:84])
    out = []
    for i in range(256):
        number = b[16 + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3
        scale = b[i // 16]
        out.append(f32(f32(f32(d * (scale & 15)) * number) - f32(dmin * (scale >> 4))))
    return out


def q3_k(b):
    # ggml unpacks the 16 scales of 6 bits with masks over words of 32 bits.
    words = list(struct.unpack("<3I", b[96:108]))
    low, high = 0x0F0F0F0F, 0x03030303
    packed = struct.pack(
        "<4I",
        words[0] & low | (words[2] & high) << 4,
        words[1] & low | (words[2] >> 2 & high) << 4,
        words[0] >> 4 & low | (words[2] >> 4 & high) << 4,
        words[1] >> 4 & low | (words[2] >> 6 & high) << 4,
    )
    d = half(b[108:110])
    out = []
    for i in range(256):
        number = b[32 + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3
        number -= 0 if b[i % 32] >> (i // 32) & 1 else 4
        out.append(f32(f32(d * (packed[i // 16] - 32)) * number))
    return out


def scale_and_minimum(s, j):
    if j < 4:
        return s[j] & 63, s[j + 4] & 63
    return s[j + 4] & 15 | s[j - 4] >> 6 << 4, s[j + 4] >> 4 | s[j] >> 6 << 4


def q45_k(b, fifth):
    d, dmin = half(b[:2]), half(b[2:4])
    numbers = b[48:] if fifth else b[16:]
    out = []
    for i in range(256):
        part = i // 32
        scale, minimum = scale_and_minimum(b[4:16], part)
        number = numbers[32 * (part // 2) + i % 32] >> 4 * (part % 2) & 15
        if fifth:
            number |= (b[16 + i % 32] >> part & 1) << 4
        out.append(f32(f32(f32(d * scale) * number) - f32(dmin * minimum)))
    return out


def q4_k(b):
    return q45_k(b, False)


def q5_k(b):
    return q45_k(b, True)


def q6_k(b):
    d = half(b[208:210])
    scales = struct.unpack("<16b", b[192:208])
    out = []
    for i in range(256):
        n, part = i // 128, i % 128 // 32
        low = b[64 * n + 32 * (part % 2) + i % 32] >> 4 * (part // 2) & 15
        high = b[128 + 32 * n + i % 32] >> 2 * part & 3
        out.append(f32(f32(d * scales[i // 16]) * ((low | high << 4) - 32)))
    return out


# name: number, elements, bytes, where the halves are, values
BLOCKS = {
    "Q4_0": (2, 32, 18, (0,), q4_0),
    "Q4_1": (3, 32, 20, (0, 2), q4_1),
    "Q5_0": (6, 32, 22, (0,), q5_0),
    "Q5_1": (7, 32, 24, (0, 2), q5_1),
    "Q8_0": (8, 32, 34, (0,), q8_0),
    "Q2_K": (10, 256, 84, (80, 82), q2_k),
    "Q3_K": (11, 256, 110, (108,), q3_k),
    "Q4_K": (12, 256, 144, (0, 2), q4_k),
    "Q5_K": (13, 256, 176, (0, 2), q5_k),
    "Q6_K": (14, 256, 210, (208,), q6_k),
}


def random_blocks(kind, elements, rng):
    """Random bytes, but for the scales, which are small numbers of either sign."""
    _, per_block, size, halves, _ = BLOCKS[kind]
    data = bytearray(rng.randbytes(elements // per_block * size))
    for block in range(0, len(data), size):
        for at in halves:
            data[block + at : block + at + 2] = struct.pack("<e", rng.uniform(-0.002, 0.002))
    return bytes(data)


def values_of(kind, data):
    _, _, size, _, values = BLOCKS[kind]
    return [v for at in range(0, len(data), size) for v in values(data[at : at + size])]


def to_q8_0(values):
    data = bytearray()
    for at in range(0, len(values), 32):
        block = values[at : at + 32]
        raw = struct.pack("<e", max(map(abs, block)) / 127)
        d = half(raw)
        data += raw + struct.pack("<32b", *(max(-127, min(127, round(v / d))) if d else 0 for v in block))
    return bytes(data)


# ---------------------------------------------------------------------------- files


def read_safetensors(paths):
    """name -> (dtype, shape, bytes)"""
    tensors = {}
    for path in paths:
        raw = path.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        for name, entry in json.loads(raw[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                tensors[name] = (entry["dtype"], entry["shape"], raw[8 + size + begin : 8 + size + end])
    return tensors


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def write_gguf(path, architecture, tensors, original_shapes=None):
    """`tensors` are (name, type's number, shape, bytes); shapes are in the order of safetensors."""

    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    def value(key, kind, data):
        return text(key) + struct.pack("<I", kind) + data

    values = [value("general.architecture", 8, text(architecture)), value("general.file_type", 4, struct.pack("<I", 7))]
    # A tokenizer's pieces and their scores, which a reader of tensors passes over.
    values.append(value("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 3) + text("<pad>") + text("</s>") + text("a")))
    values.append(value("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, 3) + struct.pack("<3f", 0, 0, -1)))
    for name, shape in (original_shapes or {}).items():
        array = struct.pack("<IQ", 5, len(shape)) + struct.pack(f"<{len(shape)}i", *shape)
        values.append(value("comfy.gguf.orig_shape." + name, 9, array))
    table, data = b"", b""
    for name, kind, shape, raw in tensors:
        data += bytes(-len(data) % 32)
        dimensions = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        table += text(name) + struct.pack("<I", len(shape)) + dimensions + struct.pack("<IQ", kind, len(data))
        data += raw
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + b"".join(values) + table
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + bytes(-len(header) % 32) + data)


def floats(tensor):
    dtype, _, data = tensor
    assert dtype == "F32", dtype
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def as_bf16(shape, values):
    return ("BF16", shape, struct.pack(f"<{len(values)}H", *map(bf16, values)))


def expected_beside(path, tensors):
    write_safetensors(path.with_name(path.name + ".expected.safetensors"), tensors)


# ---------------------------------------------------------------------------- forms


def is_matrix(name, tensor):
    return name.startswith("blocks.") and len(tensor[1]) == 2 and name.endswith(tuple(m + ".weight" for m in MATRICES))


def pack_codes(tensors, scales_of, kind="F8_E4M3", weight=".weight", scale=".weight_scale", names=lambda name: name):
    """Returns the tensors with codes for matrices, and the values of these. `scales_of` gives the shape of a matrix's scales
    and the index of each element's scale."""
    packed, expected = {}, {}
    for name, tensor in tensors.items():
        if not is_matrix(name, tensor):
            packed[names(name)] = tensor
            continue
        shape, values = tensor[1], floats(tensor)
        scale_shape, index_of = scales_of(*shape)
        largest = [0.0] * math.prod(scale_shape)
        for i, v in enumerate(values):
            at = index_of(i // shape[1], i % shape[1])
            largest[at] = max(largest[at], abs(v))
        scales = [f32(v / (448 if kind == "F8_E4M3" else 127)) for v in largest]
        codes = bytearray()
        widened = []
        for i, v in enumerate(values):
            s = scales[index_of(i // shape[1], i % shape[1])]
            n = v / s if s else 0.0
            if kind == "F8_E4M3":
                codes.append(to_e4m3(n))
                widened.append(f32(e4m3(codes[-1]) * s))
            else:
                codes.append(round(n) & 0xFF)
                widened.append(f32(round(n) * s))
        stem = names(name)[: -len(".weight")]
        packed[stem + weight] = (kind, shape, bytes(codes))
        packed[stem + scale] = ("F32", scale_shape, struct.pack(f"<{len(scales)}f", *scales))
        expected[name] = as_bf16(shape, widened)
    return packed, expected


def one_scale(rows, columns):
    return [], lambda row, column: 0


def row_scales(rows, columns):
    return [rows, 1], lambda row, column: row


def tile_scales(rows, columns):
    across = -(-columns // 128)
    return [-(-rows // 128), across], lambda row, column: row // 128 * across + column // 128


def pack_gguf(path, architecture, tensors, names):
    entries, expected = [], {}
    for name, tensor in tensors.items():
        if is_matrix(name, tensor) or name == "token_embedding.weight":
            data = to_q8_0(floats(tensor))
            entries.append((names(name), BLOCKS["Q8_0"][0], tensor[1], data))
            expected[name] = as_bf16(tensor[1], values_of("Q8_0", data))
        else:
            entries.append((names(name), 0, tensor[1], tensor[2]))
    write_gguf(path, architecture, entries)
    expected_beside(path, expected)


def types_file(path):
    rng = random.Random(45)
    entries, expected = [], {}
    for kind, (number, _, _, _, _) in BLOCKS.items():
        data = random_blocks(kind, 1024, rng)
        entries.append((kind, number, [2, 512], data))
        expected[kind] = as_bf16([2, 512], values_of(kind, data))
    # ComfyUI's converter stores a tensor whose rows are not a multiple of 256 in rows of 256.
    data = random_blocks("Q4_K", 512, rng)
    entries.append(("reshaped", BLOCKS["Q4_K"][0], [2, 256], data))
    expected["reshaped"] = as_bf16([8, 64], values_of("Q4_K", data))
    write_gguf(path, "wan", entries, {"reshaped": [8, 64]})
    expected_beside(path, expected)


def wide_transformer(path, kinds, seed, text_dim):
    """A transformer of one block, of two heads; its matrices are of these types, one after the other."""
    rng = random.Random(seed)
    dim, ffn = 256, 512
    entries, expected = [], {}

    def plain(name, shape, deviation=0.02, mean=0.0):
        values = [rng.gauss(mean, deviation) for _ in range(math.prod(shape))]
        entries.append((name, 0, shape, struct.pack(f"<{len(values)}f", *values)))

    def linear(stem, rows, columns):
        plain(stem + ".bias", [rows])
        kind = kinds[len(expected) % len(kinds)] if columns % 256 == 0 else "Q8_0"
        data = random_blocks(kind, rows * columns, rng)
        entries.append((stem + ".weight", BLOCKS[kind][0], [rows, columns], data))
        size = BLOCKS[kind][2] * columns // BLOCKS[kind][1]
        expected[stem + ".weight"] = as_bf16([1, columns], values_of(kind, data[:size]))  # the first row

    plain("patch_embedding.weight", [dim, 16, 1, 2, 2])
    plain("patch_embedding.bias", [dim])
    linear("text_embedding.0", dim, text_dim)
    linear("text_embedding.2", dim, dim)
    linear("time_embedding.0", dim, 256)
    linear("time_embedding.2", dim, dim)
    linear("time_projection.1", 6 * dim, dim)
    plain("blocks.0.modulation", [1, 6, dim])
    for attention in ("self_attn", "cross_attn"):
        for layer in "qkvo":
            linear(f"blocks.0.{attention}.{layer}", dim, dim)
        for norm in ("norm_q", "norm_k"):
            plain(f"blocks.0.{attention}.{norm}.weight", [dim], mean=1.0)
    plain("blocks.0.norm3.weight", [dim], mean=1.0)
    plain("blocks.0.norm3.bias", [dim])
    linear("blocks.0.ffn.0", ffn, dim)
    linear("blocks.0.ffn.2", dim, ffn)
    plain("head.modulation", [1, 2, dim])
    linear("head.head", 64, dim)
    write_gguf(path, "wan", entries)
    expected_beside(path, expected)


LLAMA_MODULES = {
    "layer.0.layer_norm": "attn_norm",
    "layer.0.SelfAttention.q": "attn_q",
    "layer.0.SelfAttention.k": "attn_k",
    "layer.0.SelfAttention.v": "attn_v",
    "layer.0.SelfAttention.o": "attn_o",
    "layer.0.SelfAttention.relative_attention_bias": "attn_rel_b",
    "layer.1.layer_norm": "ffn_norm",
    "layer.1.DenseReluDense.wi_0": "ffn_gate",
    "layer.1.DenseReluDense.wi_1": "ffn_up",
    "layer.1.DenseReluDense.wo": "ffn_down",
}


def llama_name(name):
    """llama.cpp's name of a tensor of T5, from that of the transformers library."""
    for module, short in LLAMA_MODULES.items():
        name = name.replace(module, short)
    name = name.replace("encoder.block.", "enc.blk.").replace("encoder.final_layer_norm", "enc.output_norm")
    return name.replace("shared", "token_embd")


def pack(checkpoints, folder):
    model = checkpoints / "t2v-a14b"
    experts = {
        noise: read_safetensors([model / "original" / f"{noise}_noise_model" / "diffusion_pytorch_model.safetensors"])
        for noise in ("high", "low")
    }
    text = read_safetensors([model / "diffusers" / "text_encoder" / "model.safetensors"])
    vae = read_safetensors([model / "diffusers" / "vae" / "diffusion_pytorch_model.safetensors"])
    to_diffusers = json.loads((pathlib.Path(__file__).parent / "key_map.json").read_text())
    pieces = (model / "original" / "google" / "umt5-xxl" / "spiece.model").read_bytes()
    text.setdefault("shared.weight", text.get("encoder.embed_tokens.weight"))
    text.pop("encoder.embed_tokens.weight", None)
    hf_of = {name: other for name, other in to_diffusers["text_encoder"].items()}
    hf_of["token_embedding.weight"] = "shared.weight"
    upstream_text = {name: text[hf_of[name]] for name in hf_of}
    hf = hf_of.__getitem__

    comfy = folder / "comfy"
    for noise, tensors in experts.items():
        write_safetensors(comfy / f"{noise}.safetensors", {PREFIX + name: t for name, t in tensors.items()})
    write_safetensors(comfy / "umt5.safetensors", {**text, "spiece_model": ("U8", [len(pieces)], pieces)})
    vae_map = to_diffusers["vae2.1"]
    write_safetensors(comfy / "vae.safetensors", {name: vae[other] for name, other in vae_map.items()})

    fp8 = folder / "fp8"
    packed, expected = pack_codes(experts["high"], row_scales)
    write_safetensors(fp8 / "high.safetensors", packed)
    expected_beside(fp8 / "high.safetensors", expected)
    packed, expected = pack_codes(experts["low"], one_scale, scale=".scale_weight", names=lambda name: PREFIX + name)
    packed[PREFIX + "scaled_fp8"] = ("F8_E4M3", [2], b"\0\0")
    packed[PREFIX + "blocks.0.self_attn.q.scale_input"] = ("F32", [], struct.pack("<f", 1))
    write_safetensors(fp8 / "low.safetensors", packed)
    expected_beside(fp8 / "low.safetensors", expected)
    packed, expected = pack_codes(upstream_text, one_scale, scale=".scale_weight", names=hf)
    packed["scaled_fp8"] = ("F8_E4M3", [0], b"")
    packed["spiece_model"] = ("U8", [len(pieces)], pieces)
    write_safetensors(fp8 / "umt5.safetensors", packed)
    expected_beside(fp8 / "umt5.safetensors", expected)

    packed, expected = pack_codes(experts["high"], tile_scales, "I8", ".int8_weight", ".scale")
    write_safetensors(folder / "int8" / "high.safetensors", packed)
    expected_beside(folder / "int8" / "high.safetensors", expected)

    pack_gguf(folder / "gguf" / "high.gguf", "wan", experts["high"], lambda name: name)
    pack_gguf(folder / "gguf" / "umt5.gguf", "t5encoder", upstream_text, lambda name: llama_name(hf(name)))
    types_file(folder / "types" / "types.gguf")
    width = text["shared.weight"][1][1]
    wide_transformer(folder / "wide" / "high.gguf", ["Q4_K", "Q6_K", "Q3_K"], 1, width)
    wide_transformer(folder / "wide" / "low.gguf", ["Q5_K", "Q8_0", "Q2_K"], 2, width)


def compare_with_oracle():
    import gguf
    import numpy

    rng = random.Random(46)
    for kind, (number, _, _, _, _) in BLOCKS.items():
        data = random_blocks(kind, 1 << 14, rng)
        want = gguf.quants.dequantize(numpy.frombuffer(data, numpy.uint8), gguf.GGMLQuantizationType(number))
        got = numpy.array(values_of(kind, data), numpy.float32)
        difference = numpy.abs(got - want.ravel()).max()
        print(f"{kind}: largest difference {difference}")
        if difference != 0:
            sys.exit(f"{kind} differs from the gguf package")


if __name__ == "__main__":
    if sys.argv[1:] == ["--oracle"]:
        compare_with_oracle()
    elif len(sys.argv) == 3:
        pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
