"""Trains the VAE on crops of rendered clips.

    python train_vae.py OUTPUT_FOLDER [--seconds S] [--kl K] [--seed N] [--from VAE [--anchor A]]

Half of the clips have any colours, so that an image's own colours come back. --anchor goes on from a VAE whose latents
a transformer knows already: where colours have names, the latents stay near what they were, and the noise on them
stays what it was. Writes vae.safetensors (averaged weights) and vae.jsonl (its curve). The learning rate follows the clock, so that
the run ends when its time does, whatever the card. Started by torchrun, each process has a GPU and clips of its own, and
all take each step with the mean of their gradients.

--first-frames is the share of steps that train on first frames alone, as an image becomes one: in a clip's loss a first
frame is one of seventeen, and it has no frames before it to be told by.
"""

import argparse
import copy
import json
import math
import random
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from latents import UPSTREAM_STD
from ranks import Ranks
from vae import Vae, channels_last, load_vae
from world import FRAMES, HEIGHT, WIDTH, SceneSampler, paint

CROP, CROP_FRAMES = 128, 17
POOL = 64  # batches
IMAGES = 4  # first frames for each clip of a batch: a step on them is still the shorter one


def crop_windows(sampler, scenes, frames):
    """Windows of so many frames around an object: a clip's background teaches little."""
    device, batch = scenes.x.device, scenes.x.shape[0]
    start = torch.randint(0, FRAMES - frames + 1, (batch,), device=device, generator=sampler.generator)
    which = (torch.rand(batch, device=device, generator=sampler.generator) * scenes.count).long()
    row = torch.arange(batch, device=device)
    middle = (start + frames // 2)
    corners = []
    for track, extent in ((scenes.y, HEIGHT), (scenes.x, WIDTH)):
        shift = (torch.rand(batch, device=device, generator=sampler.generator) - 0.5) * 60
        corners.append((track[row, which, middle] - CROP / 2 + shift).clamp(0, extent - CROP).round())
    return start, frames, corners[0], corners[1], CROP, CROP


class Anchor:
    """A copy of the encoder as it was: its latents, in units of their scale, and its mean deviation by channel."""

    def __init__(self, vae, scale):
        self.vae, self.scale = copy.deepcopy(vae).requires_grad_(False), scale.view(-1, 1, 1, 1)

    def deviation(self, video):
        with torch.no_grad():
            return torch.exp(0.5 * self.vae.encode(video)[1].float().clamp(-14, 6)).mean((0, 2, 3, 4)).view(-1, 1, 1, 1)


def anchored_losses(vae, anchor, deviation, video, mask, free, noise):
    """As `losses`, but the noise is the anchor's, and in place of the divergence stands the distance from its latents:
    whole where colours have names, and a twentieth of it elsewhere, since those it had never learnt."""
    mean = vae.encode(video)[0].float()
    with torch.no_grad():
        before = anchor.vae.encode(video)[0].float()
    latents = mean + noise * deviation * torch.randn_like(mean)
    error = vae.decode(latents.to(video.dtype)).float() - video
    weight = 1 + 3 * mask
    weight = weight / weight.mean()
    share = torch.where(free, 0.05, 1.0).view(-1, 1, 1, 1, 1)
    moved = (((mean - before) / anchor.scale).square() * share).mean()
    named = (((mean - before) / anchor.scale).square() * ~free.view(-1, 1, 1, 1, 1)).mean()
    return (error.abs() * weight).mean(), (error.square() * weight).mean(), moved, error.square().mean(), named


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
    # Not --start: torchrun takes that for the beginning of an option of its own.
    parser.add_argument("--from", dest="start", type=Path, help="vae.safetensors of an earlier run, or a checkpoint's Wan2.2_VAE.pth")
    parser.add_argument("--anchor", type=float, help="weight of the distance from the latents of --from")
    parser.add_argument("--scale", choices=["upstream", "one"], default="upstream", help="of the latents of --from")
    parser.add_argument("--decoder-only", action="store_true",
                        help="leave the latents as they are, for a transformer that was trained on them")
    parser.add_argument("--first-frames", type=float, default=0.0, help="share of the steps")
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
    ranks = Ranks()
    device = ranks.device(options.device)
    cuda = options.device == "cuda"

    vae = channels_last((load_vae(options.start) if options.start else Vae(options.encoder_width)).to(device).train())
    scale = torch.tensor(UPSTREAM_STD) if options.scale == "upstream" else torch.ones(len(UPSTREAM_STD))
    anchor = Anchor(vae, scale.to(device)) if options.anchor is not None else None
    if options.decoder_only:
        vae.encoder.requires_grad_(False)
        vae.conv1.requires_grad_(False)
    torch.manual_seed(options.seed + 1000 * ranks.rank)  # each rank draws clips and noise of its own
    print(f"parameters: encoder {sum(p.numel() for p in vae.encoder.parameters()):,}, "
          f"decoder {sum(p.numel() for p in vae.decoder.parameters()):,}")
    average = {name: value.detach().clone() for name, value in vae.state_dict().items()}
    trained = [p for p in vae.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.rate, betas=(0.9, 0.99), weight_decay=1e-4, fused=cuda)
    sampler = SceneSampler(device, options.seed + 1000 * (1 + ranks.rank), two_objects=0.4)

    def forward(video, mask, free, deviation):
        with torch.autocast(options.device, torch.bfloat16, enabled=cuda):
            if anchor:
                return anchored_losses(vae, anchor, deviation, video, mask, free, options.noise)
            return losses(vae, video, mask, options.noise)

    draw = paint
    if cuda:
        forward, draw = torch.compile(forward, dynamic=False), torch.compile(paint, dynamic=False)
    deviation = None
    chance = random.Random(options.seed)  # the same on all ranks, so that none waits for a longer step

    log = (options.output / "vae.jsonl").open("a") if ranks.rank == 0 else None
    begin = time.monotonic()
    warm = None  # the clock starts after compilation
    step, spent = 0, 0.0
    every, look = (500, 10) if cuda else (2, 1)
    while spent < options.seconds:
        part = spent / options.seconds
        rate = min(1.0, (step + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * part)))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * rate
        with torch.no_grad():
            # Drawing scenes waits for the device, so many are drawn at a time.
            images = chance.random() < options.first_frames
            count = options.batch * (IMAGES if images else 1)
            if step == 0 or at + count > POOL * options.batch:
                pool, at = sampler.sample(POOL * options.batch, free=0.5), 0
            scenes = pool[at:at + count]
            at += count
            window = crop_windows(sampler, scenes, 1 if images else CROP_FRAMES)
            tracks = (scenes.x, scenes.y, scenes.radius, scenes.angle)
            video, masks = draw(scenes.shape, scenes.paint, scenes.ground, tracks, *window)
            mask = masks.amax(1, keepdim=True)
            video = video.contiguous(memory_format=torch.channels_last_3d)
            if anchor and deviation is None:
                deviation = anchor.deviation(video)
        absolute, square, divergence, plain, active = forward(video, mask, scenes.free, deviation)
        loss = absolute + 10 * square + (options.kl if anchor is None else options.anchor) * divergence
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        ranks.mean_gradients(trained)
        norm = torch.nn.utils.clip_grad_norm_(vae.parameters(), 1.0)
        optimizer.step()
        step += 1
        with torch.no_grad():
            keep = min(0.998, step / (step + 10))
            state = vae.state_dict()
            torch._foreach_lerp_(list(average.values()), list(state.values()), 1 - keep)
        if warm is None and step == (20 if cuda else 2):
            if cuda:
                torch.cuda.synchronize()
            warm = time.monotonic()
        if warm is not None and step % look == 0:
            spent = ranks.agree(time.monotonic() - warm)
        if log and step % every == 0:
            line = {"step": step, "seconds": round(time.monotonic() - begin, 1),
                    "absolute": absolute.item(), "psnr": 10 * math.log10(4 / plain.item()),
                    ("moved" if anchor else "kl"): divergence.item(), ("named" if anchor else "active"): active.item(),
                    "gradient": norm.item()}
            print(json.dumps(line), flush=True)
            log.write(json.dumps(line) + "\n")
            log.flush()
    if ranks.rank == 0:
        save(average, options.output)
    ranks.end()


def save(average, folder):
    save_file({name: value.half().contiguous() for name, value in average.items()}, folder / "vae.part")
    (folder / "vae.part").rename(folder / "vae.safetensors")  # another program may wait for it


if __name__ == "__main__":
    main()
