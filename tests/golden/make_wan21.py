#!/usr/bin/env python3
"""Makes pipelines/wan21-t2v.safetensors: a whole run of Wan2.1's text to video by upstream's own classes, in fp32 on the CPU.

    git clone https://github.com/Wan-Video/Wan2.1 && git -C Wan2.1 checkout 9737cba
    tests/golden/make_wan21.py --upstream Wan2.1 --checkpoints build/golden/checkpoints --output FILE

Needs torch 2.11.0, diffusers 0.38.0, einops and safetensors. Flash attention is replaced by scaled_dot_product_attention. The
texts' embeddings are those of pipelines/t2v.safetensors, since text encoder, prompt and negative prompt are the same.
"""
import argparse
import importlib
import json
import math
import pathlib
import sys
import types

import torch
from safetensors.torch import load_file, save_file

GOLDEN = pathlib.Path(__file__).resolve().parent
SEED, STEPS, SHIFT, GUIDANCE, FRAMES, HEIGHT, WIDTH = 1234, 4, 5.0, 5.0, 5, 32, 48


def exact_attention(q, k, v, k_lens=None, **_):
    """[B, L, heads, width]; upstream masks the keys behind k_lens, of which these runs have none."""
    assert k_lens is None or int(k_lens.min()) == k.size(1)
    return torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)


def upstream_modules(folder):
    """The modules of the transformer, the VAE and UniPC, without upstream's packages, which import what a CPU lacks."""
    for name in ("wan", "wan.modules", "wan.utils"):
        package = types.ModuleType(name)
        package.__path__ = [str(folder / name.replace(".", "/"))]
        sys.modules[name] = package
    names = ("wan.modules.model", "wan.modules.vae", "wan.utils.fm_solvers_unipc")
    model, vae, unipc = (importlib.import_module(name) for name in names)
    model.flash_attention = exact_attention
    return model, vae, unipc


def load_model(module, folder):
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "diffusion_pytorch_model.safetensors")
    sizes = {key: config[key] for key in ("dim", "ffn_dim", "freq_dim", "num_heads", "num_layers", "in_dim", "out_dim", "text_len")}
    model = module.WanModel(model_type="t2v", text_dim=weights["text_embedding.0.weight"].shape[1], **sizes)
    model.load_state_dict(weights)
    return model.eval().requires_grad_(False)


def load_vae(module, folder):
    weights = torch.load(folder / "Wan2.1_VAE.pth", map_location="cpu", weights_only=True)
    model = module.WanVAE_(dim=weights["encoder.conv1.weight"].shape[0], z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=2,
                           attn_scales=[], temperal_downsample=[False, True, True], dropout=0.0)
    model.load_state_dict(weights)
    module._video_vae = lambda **_: model
    return module.WanVAE(vae_pth="", device="cpu")


@torch.no_grad()
def run(folder, upstream):
    model_module, vae_module, unipc = upstream_modules(upstream)
    model, vae = load_model(model_module, folder), load_vae(vae_module, folder)
    texts = load_file(GOLDEN / "pipelines/t2v.safetensors")
    shape = (16, (FRAMES - 1) // 4 + 1, HEIGHT // 8, WIDTH // 8)
    tokens = math.prod(shape[1:]) // 4
    generator = torch.Generator("cpu").manual_seed(SEED)
    latents = torch.randn(*shape, dtype=torch.float32, generator=generator)
    kept = {key: texts[key] for key in ("prompt_ids", "prompt_embeds", "negative_ids", "negative_embeds")}
    kept["noise"] = latents.clone()
    scheduler = unipc.FlowUniPCMultistepScheduler(num_train_timesteps=1000, shift=1, use_dynamic_shifting=False)
    scheduler.set_timesteps(STEPS, device="cpu", shift=SHIFT)
    outputs, after = [], []
    for t in scheduler.timesteps:
        flows = [model([latents], t=torch.stack([t]), context=[texts[key]], seq_len=tokens)[0]
                 for key in ("prompt_embeds", "negative_embeds")]
        outputs.append(flows[1] + GUIDANCE * (flows[0] - flows[1]))
        latents = scheduler.step(outputs[-1].unsqueeze(0), t, latents.unsqueeze(0), return_dict=False)[0].squeeze(0)
        after.append(latents)
    video = vae.decode([latents])[0]
    kept.update(timesteps=scheduler.timesteps, sigmas=scheduler.sigmas, model_outputs=torch.stack(outputs),
                latents=torch.stack(after), video=video, video_u8=((video + 1) / 2 * 255).to(torch.uint8))
    return {key: tensor.contiguous().clone() for key, tensor in kept.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", type=pathlib.Path, required=True)
    parser.add_argument("--checkpoints", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    save_file(run(options.checkpoints / "wan2.1-t2v-1.3b/original", options.upstream), options.output)


if __name__ == "__main__":
    main()
