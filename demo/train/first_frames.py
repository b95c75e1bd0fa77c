"""Measures how well an autoencoder reproduces single images of any colours: first_frames.py VAE [--count N] [--seed S] [--named]

VAE is a Wan2.2_VAE.pth, or the .safetensors of a training run. The images are first frames of 256x256 with one or two
objects anywhere, or, with --named, as captions name them. Prints their PSNR in dB: mean, median, worst, and how many have
40 or more. An image's first frame depends on the autoencoder alone, so this is what image to video begins with.
"""

import argparse
from pathlib import Path

import torch

from vae import load_vae
from world import SceneSampler, render
from write_scenes import to_bytes


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vae", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    vae = load_vae(options.vae).to(options.device)
    scenes = SceneSampler("cpu", options.seed, two_objects=0.5).sample(options.count, free=0.0 if options.named else 1.0)
    levels = []
    for at in range(0, options.count, options.batch):
        images = to_bytes(render(scenes[at:at + options.batch], frames=1)[0])
        pixels = images.to(options.device).permute(0, 4, 1, 2, 3).float() / 127.5 - 1
        error = to_bytes(vae.decode(vae.encode(pixels)[0])).cpu().float() - images.float()
        levels.append(10 * torch.log10(255 ** 2 / error.square().mean((1, 2, 3, 4)).clamp(min=1e-3)))
    level = torch.cat(levels)
    print(f"{options.count} images: mean {level.mean():.1f} dB, median {level.median():.1f}, worst {level.min():.1f}, "
          f"{int((level >= 40).sum())} with 40 or more")


if __name__ == "__main__":
    main()
