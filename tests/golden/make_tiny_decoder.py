#!/usr/bin/env python3
"""Makes tests/golden/tiny: tiny decoders in the layout of TAEW2.1 and TAEW2.2 with random weights, and what they decode.

    tests/golden/make_tiny_decoder.py [FOLDER]

Needs torch and safetensors. The forward is that of madebyollin/taehv (`decode_video`, commit 1f14a56), written anew: all frames
at once, enlarged before they become more, in fp32. Only the widths are small.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch.nn.functional import conv2d, interpolate, pad, pixel_shuffle, relu

WIDTHS, BLOCKS, GROWTH = (4, 4, 2, 2), 3, (1, 2, 2)
# Name of the file: latent channels, side of a patch, shape of the latents [frames, rows, columns].
CASES = {"taew2_1": (16, 1, (3, 1, 2)), "taew2_2": (48, 2, (2, 1, 1))}


def random(generator, *shape):
    fan_in = max(1, torch.Size(shape[1:]).numel())
    # Half precision, as in the published files, and exact in every program that reads it.
    return (torch.randn(shape, generator=generator) * (1.5 / fan_in) ** 0.5).half()


def make_weights(generator, channels, patch):
    weights = {}

    def add(name, *shape, bias=True):
        weights[f"{name}.weight"] = random(generator, *shape)
        if bias:
            weights[f"{name}.bias"] = random(generator, shape[0]) * 0.1

    add("decoder.1", WIDTHS[0], channels, 3, 3)
    number = 3
    for width, after, growth in zip(WIDTHS, WIDTHS[1:], GROWTH):
        for _ in range(BLOCKS):
            for layer, inputs in ((0, 2 * width), (2, width), (4, width)):
                add(f"decoder.{number}.conv.{layer}", width, inputs, 3, 3)
            number += 1
        add(f"decoder.{number + 1}.conv", growth * width, width, 1, 1, bias=False)
        add(f"decoder.{number + 2}", after, width, 3, 3, bias=False)
        number += 3
    add(f"decoder.{number + 1}", 3 * patch * patch, WIDTHS[-1], 3, 3)
    weights[f"decoder.{number + 1}.bias"] += 0.5  # few of the colours are cut at black and white
    add("encoder.0", 2, 3 * patch * patch, 3, 3)  # files have an encoder, which the server ignores
    return weights


def decode(weights, latents, patch):
    """latents [channels, frames, rows, columns] as the network takes them -> video [3, frames, rows, columns] from -1 to 1."""

    def layer(name, x):
        weight = weights[f"{name}.weight"].float()
        bias = weights.get(f"{name}.bias")
        return conv2d(x, weight, None if bias is None else bias.float(), padding=weight.shape[-1] // 2)

    x = latents.transpose(0, 1)
    x = relu(layer("decoder.1", 3 * torch.tanh(x / 3)))
    number = 3
    for growth in GROWTH:
        for _ in range(BLOCKS):
            before = pad(x, (0, 0, 0, 0, 0, 0, 1, 0))[:-1]
            y = relu(layer(f"decoder.{number}.conv.0", torch.cat([x, before], 1)))
            y = relu(layer(f"decoder.{number}.conv.2", y))
            x = relu(layer(f"decoder.{number}.conv.4", y) + x)
            number += 1
        x = interpolate(x, scale_factor=2)
        x = layer(f"decoder.{number + 1}.conv", x)
        x = x.reshape(-1, x.shape[1] // growth, *x.shape[2:])
        x = layer(f"decoder.{number + 2}", x)
        number += 3
    x = layer(f"decoder.{number + 1}", relu(x))
    x = pixel_shuffle(x, patch).clamp(0, 1)[3:]
    return (2 * x - 1).transpose(0, 1).contiguous()


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "tiny"
    folder.mkdir(exist_ok=True)
    cases = {}
    for seed, (name, (channels, patch, shape)) in enumerate(CASES.items()):
        generator = torch.Generator().manual_seed(seed)
        weights = make_weights(generator, channels, patch)
        save_file(weights, folder / f"{name}.safetensors")
        latents = 2 * torch.randn((channels, *shape), generator=generator)
        cases[f"{name}.latents"] = latents
        cases[f"{name}.video"] = decode(weights, latents, patch)
    save_file(cases, folder / "decoded.safetensors")


if __name__ == "__main__":
    main()
