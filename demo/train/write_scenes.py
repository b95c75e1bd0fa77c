"""Writes held-out scenes for demo_evaluate: scenes.jsonl, first_frames/*.png, and on request the clips.

    write_scenes.py --count 200 --output DIR [--seed 7] [--two-objects 0.5] [--wide | --negative | --unsaid] [--clips]
        [--blur S] [--noise S]

--wide draws captions in other capitals, sizes, durations and backgrounds, which each scene names in its groups; without
it everything is as usual.

--negative gives every scene a negative prompt that names something of which the scene has nothing, so that it should change
nothing; its kind is the scene's group. Such scenes are for text alone and have no images.

--unsaid writes captions that leave the background unsaid, and half of them the colours, too, which is the scene's group: the
scenes have what world.py decides is meant then. They are for text alone, too.

--clips renders all of every scene into DIR/clips.safetensors (`video`, uint8 [N, T, H, W, 3]), which is what
a perfect model would make: it checks the detector. --blur and --noise (in pixels, in levels of 255) make that harder.

demo/evaluate/scenes.jsonl and its first frames were written before there was --wide, with the world of six backgrounds:
`git show 8582228:demo/train/write_scenes.py`.
"""

import argparse
import json
import random
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import save_file

from captions import Captioner, describe, recased
from world import BACKGROUNDS, DEFAULT_BACKGROUNDS, DEFAULT_COLOURS, USUAL, SceneSampler, default_background, render

# The sizes for --wide, in addition to the usual one: (frames, height, width).
OTHER_FRAMES = [(33, 256, 384), (33, 320, 512), (33, 384, 256), (33, 192, 192), (33, 512, 512), (17, 256, 256), (65, 256, 256)]


def to_bytes(pixels):
    """[B, 3, T, H, W] in -1..1 -> uint8 [B, T, H, W, 3]"""
    return ((pixels + 1) * 127.5).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 4, 1).contiguous()


def blurred(pixels, sigma):
    """Blurs [B, 3, T, H, W] in space with a Gaussian."""
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


def unsaid(sampler, count, share, colours):
    """So many scenes with the background that is meant where none is said; with `colours` each object also has the colour that is
    meant, else not all have. Their combinations are held out, but with `colours` they are of training: each shape has only one
    motion that is held out in its own colour."""
    many = 200 * count
    drawn = sampler.sample(many, unseen=not colours, two_objects=share,
                           backgrounds=[BACKGROUNDS.index(name) for name in DEFAULT_BACKGROUNDS])
    rows = []
    for row in range(many):
        scene = describe(drawn, row)
        usual = all(thing["colour"] == DEFAULT_COLOURS[thing["shape"]] for thing in scene["objects"])
        if usual == colours and scene["background"] == default_background([thing["colour"] for thing in scene["objects"]]):
            rows.append(row)
    assert len(rows) >= count, f"only {len(rows)} of {many} scenes fit"
    return drawn[torch.tensor(rows[:count])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--two-objects", type=float, default=0.5, help="share of scenes with two objects")
    kinds = parser.add_mutually_exclusive_group()
    for kind in ("--wide", "--negative", "--unsaid"):
        kinds.add_argument(kind, action="store_true")
    parser.add_argument("--clips", action="store_true")
    parser.add_argument("--blur", type=float, default=0)
    parser.add_argument("--noise", type=float, default=0)
    args = parser.parse_args()
    if args.wide and args.clips:
        parser.error("clips of one file have one size; leave out --wide or --clips")
    frames = args.output / "first_frames"
    args.output.mkdir(parents=True, exist_ok=True)

    # Use exactly the share that was asked for, instead of drawing for every scene.
    two = round(args.count * args.two_objects)
    parts = [(args.count - two, 0.0, args.seed), (two, 1.0, args.seed + 1)]
    captioner, chance = Captioner(args.seed), random.Random(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    clips = []
    with open(args.output / "scenes.jsonl", "w") as lines:
        for count, share, seed in parts:
            if count == 0:
                continue
            sampler = SceneSampler("cpu", seed)
            if args.unsaid:
                halves = [unsaid(sampler, count // 2, share, True), unsaid(sampler, count - count // 2, share, False)]
                usual = [half[row:row + 1] for half in halves for row in range(len(half.count))]
            else:
                drawn = sampler.sample(count, unseen=True, two_objects=share, backgrounds=None if args.wide else list(range(6)))
                usual = [drawn[row:row + 1] for row in range(count)]
            for row in range(count):
                frame = chance.choice([USUAL, *OTHER_FRAMES]) if args.wide else USUAL
                scene = usual[row] if frame == USUAL else sampler.sample(1, unseen=True, two_objects=share, frame=frame)
                number = row if share == 0 else args.count - two + row
                name = f"scene-{number:04d}"
                entry = {"id": name, **describe(scene, 0)}
                said = entry
                if args.unsaid:
                    colours = row < count // 2
                    said = entry | {"background": "", "objects": [thing | {"colour": ""} if colours else thing
                                                                  for thing in entry["objects"]]}
                    entry["groups"] = ["unsaid colours" if colours else "unsaid background"]
                entry["caption"] = captioner.caption(said, whole=True)
                if not (args.negative or args.unsaid):
                    entry["image"] = f"{name}.png"
                if args.wide:
                    capitals = chance.random() < 0.5
                    if capitals:
                        entry["caption"] = recased(entry["caption"], chance)
                    length, height, width = frame
                    entry |= {"width": width, "height": height, "frames": length, "groups": [
                        "capitals" if capitals else "small letters", f"{width}x{height}", f"{length} frames",
                        f"over {entry['background']}"]}
                if args.negative:
                    entry["negative_prompt"], kind = captioner.absent(entry)
                    entry.setdefault("groups", []).append(f"negative {kind}")
                lines.write(json.dumps(entry) + "\n")
                if "image" in entry:
                    first, _ = render(scene, frames=1)
                    frames.mkdir(parents=True, exist_ok=True)
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
