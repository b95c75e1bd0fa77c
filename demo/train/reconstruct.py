"""Takes clips through the autoencoder and back: reconstruct.py VAE CLIPS.safetensors OUTPUT.safetensors

VAE is a Wan2.2_VAE.pth, or the .safetensors of a training run; CLIPS is what write_scenes.py --clips wrote. What the
round trip costs is then `demo_evaluate detect --clips OUTPUT --reference CLIPS` (../EVALUATION.md).
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from vae import load_vae
from write_scenes import to_bytes


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("vae", "clips", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    vae = load_vae(options.vae).to(options.device)
    clips = load_file(options.clips)["video"]
    parts = []
    for part in clips.split(options.batch):
        pixels = part.to(options.device).permute(0, 4, 1, 2, 3).float() / 127.5 - 1
        parts.append(to_bytes(vae.decode(vae.encode(pixels)[0])).cpu())
    save_file({"video": torch.cat(parts)}, options.output)


if __name__ == "__main__":
    main()
