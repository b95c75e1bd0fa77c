"""Compares these modules with upstream's own results: python check_models.py UNPACKED_CHECKPOINT GOLDEN_FOLDER

UNPACKED_CHECKPOINT is ti2v-5b/original of tests/golden/checkpoints/ti2v-5b.tar.xz, GOLDEN_FOLDER is tests/golden.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from text_encoder import TextEncoder
from transformer import Transformer
from vae import Vae


def error(got, want):
    return float((got - want).norm() / want.norm())


@torch.no_grad()
def main(checkpoint, golden):
    cases = [c for c in json.loads((golden / "cases.json").read_text())["cases"] if c.get("checkpoint", "ti2v-5b") == "ti2v-5b"]
    weights = {}
    for shard in sorted(checkpoint.glob("diffusion_pytorch_model*.safetensors")):
        weights.update(load_file(shard))
    config = json.loads((checkpoint / "config.json").read_text())
    transformer = Transformer(config["dim"], config["num_heads"], config["ffn_dim"], config["num_layers"],
                              weights["text_embedding.0.weight"].shape[1])
    transformer.load_state_dict(weights)
    vae_weights = torch.load(checkpoint / "Wan2.2_VAE.pth")
    vae = Vae(vae_weights["encoder.conv1.weight"].shape[0], vae_weights["decoder.head.0.gamma"].shape[0])
    vae.load_state_dict(vae_weights)
    text_weights = torch.load(checkpoint / "models_t5_umt5-xxl-enc-bf16.pth")
    vocabulary, width = text_weights["token_embedding.weight"].shape
    blocks = 1 + max(int(name.split(".")[1]) for name in text_weights if name.startswith("blocks."))
    text = TextEncoder(vocabulary, width, text_weights["blocks.0.pos_embedding.embedding.weight"].shape[1],
                       text_weights["blocks.0.ffn.fc1.weight"].shape[0], blocks)
    text.load_state_dict(text_weights)

    for case in cases:
        if case["kind"] == "pipeline" or not (golden / case["file"]).exists():
            continue
        data = load_file(golden / case["file"])
        if case["kind"] == "vae_encode":
            got, want = vae.encode(data["video"][None])[0][0], data["latents_raw"]
        elif case["kind"] == "vae_decode":
            got, want = vae.decode(data["latents_raw"][None])[0], data["video_unclamped"]
        elif case["kind"] == "umt5":
            pairs = [(text(data[k][None])[0], data[k.replace("ids", "hidden")]) for k in data
                     if k.startswith("ids") and len(data[k]) < 200]
            got, want = (torch.cat([p[i] for p in pairs]) for i in (0, 1))
        elif case["kind"] == "dit":
            contexts = [data[k] for k in sorted(data) if k.startswith("context")]
            lengths = torch.tensor([len(c) for c in contexts])
            padded = torch.nn.utils.rnn.pad_sequence(contexts, batch_first=True)
            _, frames, height, columns = data["latents"].shape
            when = data["timestep"]
            when = when.view(len(contexts), frames, -1)[:, :, 0] if when.dim() == 2 else when[:, None].expand(-1, frames)
            latents = data["latents"][None].expand(len(contexts), -1, -1, -1, -1)
            got, want = transformer(latents, when, padded, lengths), data["output"]
        else:
            continue
        print(f"{case['id']:24} {error(got, want):.2e}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
