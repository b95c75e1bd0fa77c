"""Trains the VAE on crops of rendered clips.

    python train_vae.py OUTPUT_FOLDER [--seconds S] [--kl K] [--seed N]

Writes vae.safetensors (averaged weights) and vae.jsonl (its curve). The learning rate follows the clock, so that
the run ends when its time does, whatever the card.
"""

import argparse
import json
import math
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from vae import Vae, channels_last
from world import FRAMES, HEIGHT, WIDTH, SceneSampler, render

CROP, CROP_FRAMES = 128, 17


def crop_windows(sampler, batch):
    """Scenes and windows around an object: a clip's background teaches little."""
    scenes = sampler.sample(batch)
    device = scenes.x.device
    start = torch.randint(0, FRAMES - CROP_FRAMES + 1, (batch,), device=device, generator=sampler.generator)
    which = (torch.rand(batch, device=device, generator=sampler.generator) * scenes.count).long()
    row = torch.arange(batch, device=device)
    middle = (start + CROP_FRAMES // 2)
    corners = []
    for track, extent in ((scenes.y, HEIGHT), (scenes.x, WIDTH)):
        shift = (torch.rand(batch, device=device, generator=sampler.generator) - 0.5) * 60
        corners.append((track[row, which, middle] - CROP / 2 + shift).clamp(0, extent - CROP).round())
    return scenes, start, CROP_FRAMES, corners[0], corners[1], CROP, CROP


def losses(vae, video, mask, noise):
    """Mean absolute and squared error, both heavier on objects, and the divergence from a unit normal."""
    mean, log_variance = vae.encode(video)
    log_variance = log_variance.float().clamp(-14, 6)
    mean = mean.float()
    latents = mean + noise * torch.exp(0.5 * log_variance) * torch.randn_like(mean)
    error = vae.decode(latents.to(video.dtype)).float() - video
    weight = 1 + 3 * mask
    weight = weight / weight.mean()
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance)
    # The share of a latent's channels that say something.
    active = (divergence.mean((0, 2, 3, 4)) > 0.05).float().sum()
    return (error.abs() * weight).mean(), (error.square() * weight).mean(), divergence.mean(), error.square().mean(), active


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--seconds", type=float, default=420)
    parser.add_argument("--kl", type=float, default=3e-3)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--start", type=Path, help="vae.safetensors of an earlier run")
    parser.add_argument("--decoder-only", action="store_true",
                        help="leave the latents as they are, for a transformer that was trained on them")
    parser.add_argument("--noise", type=float, default=1.0, help="of the latents, in their own deviations")
    parser.add_argument("--encoder-width", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=24)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    options.output.mkdir(parents=True, exist_ok=True)
    device = options.device

    vae = channels_last(Vae(options.encoder_width).to(device))
    if options.start:
        vae.load_state_dict(load_file(options.start, device))
    if options.decoder_only:
        vae.encoder.requires_grad_(False)
        vae.conv1.requires_grad_(False)
    print(f"parameters: encoder {sum(p.numel() for p in vae.encoder.parameters()):,}, "
          f"decoder {sum(p.numel() for p in vae.decoder.parameters()):,}")
    average = {name: value.detach().clone() for name, value in vae.state_dict().items()}
    optimizer = torch.optim.AdamW([p for p in vae.parameters() if p.requires_grad], lr=options.rate, betas=(0.9, 0.99), weight_decay=1e-4,
                                  fused=device == "cuda")
    sampler = SceneSampler(device, options.seed + 1000, two_objects=0.4)

    def forward(video, mask):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            return losses(vae, video, mask, options.noise)

    draw = render
    if device == "cuda":
        forward, draw = torch.compile(forward, dynamic=False), torch.compile(render, dynamic=False)

    log = (options.output / "vae.jsonl").open("w")
    begin = time.monotonic()
    warm = None  # the clock starts after compilation
    step = 0
    while True:
        spent = 0.0 if warm is None else time.monotonic() - warm
        part = min(spent / options.seconds, 1.0)
        if part >= 1.0:
            break
        rate = min(1.0, (step + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * part)))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * rate
        with torch.no_grad():
            video, masks = draw(*crop_windows(sampler, options.batch))
            mask = masks.amax(1, keepdim=True)
            video = video.contiguous(memory_format=torch.channels_last_3d)
        absolute, square, divergence, plain, active = forward(video, mask)
        loss = absolute + 10 * square + options.kl * divergence
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(vae.parameters(), 1.0)
        optimizer.step()
        step += 1
        with torch.no_grad():
            keep = min(0.998, step / (step + 10))
            state = vae.state_dict()
            torch._foreach_lerp_(list(average.values()), list(state.values()), 1 - keep)
        if warm is None and step == 20:
            if device == "cuda":
                torch.cuda.synchronize()
            warm = time.monotonic()
        if step % (500 if device == "cuda" else 2) == 0:
            line = {"step": step, "seconds": round(time.monotonic() - begin, 1),
                    "absolute": absolute.item(), "psnr": 10 * math.log10(4 / plain.item()),
                    "kl": divergence.item(), "active": active.item(), "gradient": norm.item()}
            print(json.dumps(line), flush=True)
            log.write(json.dumps(line) + "\n")
    save_file({name: value.half().contiguous() for name, value in average.items()}, options.output / "vae.safetensors")


if __name__ == "__main__":
    main()
