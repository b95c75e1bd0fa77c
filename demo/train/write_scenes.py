"""Writes held-out scenes for demo_evaluate: scenes.jsonl, first_frames/*.png, and on request the clips.

    write_scenes.py --count 200 --output DIR [--seed 7] [--two-objects 0.5] [--clips] [--blur S] [--noise S]

--clips renders all of every scene into DIR/clips.safetensors (`video`, uint8 [N, T, H, W, 3]), which is what
a perfect model would make: it checks the detector. --blur and --noise (in pixels, in levels of 255) make that harder.

demo/evaluate/scenes.jsonl and its first frames are `write_scenes.py --count 200 --output ../evaluate`.
"""

import argparse
import json
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import save_file

from captions import Captioner, describe
from world import SceneSampler, render


def to_bytes(pixels):
    """[B, 3, T, H, W] in -1..1 -> uint8 [B, T, H, W, 3]"""
    return ((pixels + 1) * 127.5).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 4, 1).contiguous()


def blurred(pixels, sigma):
    """A Gaussian over space, of [B, 3, T, H, W]."""
    reach = max(1, round(3 * sigma))
    offsets = torch.arange(-reach, reach + 1, dtype=torch.float32)
    kernel = torch.exp(-offsets ** 2 / (2 * sigma ** 2))
    kernel /= kernel.sum()
    batch, channels, frames, height, width = pixels.shape
    flat = pixels.transpose(1, 2).reshape(-1, 1, height, width)
    flat = torch.nn.functional.pad(flat, (reach,) * 4, mode="replicate")
    flat = torch.nn.functional.conv2d(flat, kernel.view(1, 1, 1, -1))
    flat = torch.nn.functional.conv2d(flat, kernel.view(1, 1, -1, 1))
    return flat.view(batch, frames, channels, height, width).transpose(1, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--two-objects", type=float, default=0.5, help="share of scenes with two objects")
    parser.add_argument("--clips", action="store_true")
    parser.add_argument("--blur", type=float, default=0)
    parser.add_argument("--noise", type=float, default=0)
    args = parser.parse_args()
    frames = args.output / "first_frames"
    frames.mkdir(parents=True, exist_ok=True)

    # Exactly the share asked for, not one drawn for every scene.
    two = round(args.count * args.two_objects)
    parts = [(args.count - two, 0.0, args.seed), (two, 1.0, args.seed + 1)]
    captioner = Captioner(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    clips = []
    with open(args.output / "scenes.jsonl", "w") as lines:
        for count, share, seed in parts:
            if count == 0:
                continue
            scenes = SceneSampler("cpu", seed).sample(count, unseen=True, two_objects=share)
            for row in range(count):
                scene = scenes[row:row + 1]
                number = row if share == 0 else args.count - two + row
                name = f"scene-{number:04d}"
                entry = {"id": name, **describe(scene, 0)}
                entry["caption"] = captioner.caption(entry, whole=True)
                entry["image"] = f"{name}.png"
                lines.write(json.dumps(entry) + "\n")
                first, _ = render(scene, frames=1)
                Image.fromarray(to_bytes(first)[0, 0].numpy()).save(frames / entry["image"], optimize=True)
                if args.clips:
                    pixels, _ = render(scene)
                    if args.blur:
                        pixels = blurred(pixels, args.blur)
                    if args.noise:
                        pixels = pixels + args.noise / 127.5 * torch.randn(pixels.shape, generator=generator)
                    clips.append(to_bytes(pixels)[0])
    if args.clips:
        save_file({"video": torch.stack(clips)}, args.output / "clips.safetensors")


if __name__ == "__main__":
    main()
