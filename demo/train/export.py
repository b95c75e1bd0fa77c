"""Writes the trained parts as a checkpoint in upstream's layout: python export.py VAE video.safetensors FOLDER

VAE is a .safetensors of train_vae.py, or a checkpoint's Wan2.2_VAE.pth. FOLDER has the tokenizer already
(google/umt5-xxl/spiece.model) and generation_defaults.json. All weights are fp16: the trained values are small, and fp16 rounds
them eight times finer than bf16.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from latents import fold
from transformer import FREQUENCIES, TEXT_ROWS, Transformer
from vae import LATENT_CHANNELS, vae_weights


def config(weights):
    blocks = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
    hidden, width = weights["blocks.0.ffn.0.weight"].shape
    return {
        "_class_name": "WanModel", "dim": width, "eps": 1e-06, "ffn_dim": hidden, "freq_dim": FREQUENCIES,
        "in_dim": LATENT_CHANNELS, "model_type": "ti2v", "num_heads": Transformer.HEADS, "num_layers": blocks,
        "out_dim": LATENT_CHANNELS, "text_len": TEXT_ROWS}


def main(vae, video, folder):
    trained = load_file(video)
    folded = fold({name: value.float() for name, value in vae_weights(vae).items()},
                  trained["latents.mean"].float(), trained["latents.scale"].float())
    parts = {part: {name.removeprefix(part + "."): value.half().contiguous() for name, value in trained.items()
                    if name.startswith(part + ".")} for part in ("text", "transformer")}
    save_file(parts["transformer"], folder / "diffusion_pytorch_model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config(parts["transformer"]), indent=2) + "\n")
    torch.save({name: value.half() for name, value in folded.items()}, folder / "Wan2.2_VAE.pth")
    torch.save(parts["text"], folder / "models_t5_umt5-xxl-enc-bf16.pth")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
