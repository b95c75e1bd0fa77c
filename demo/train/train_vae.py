"""Trains the VAE on crops of rendered clips.

    python train_vae.py OUTPUT_FOLDER [--seconds S] [--kl K] [--seed N] [--decoder VAE]

Half of the clips have any colours, so that an image's own colours come back. They are of all sizes and durations, and fast motions
are drawn more often: where a clip is short or its frame is large, things move farther between two frames. Writes vae.safetensors
(averaged weights) and vae.jsonl (its curve). The learning rate follows the clock, so that the run ends when its time does, whatever
the card. Forward and backward are one CUDA graph for clips and one for first frames, both optimizers and averaging another. Started
by torchrun, each process has a GPU and draws its part of every batch, and all take each step with the mean of their gradients.

--first-frames is the share of steps that train on first frames alone, as an image becomes one: in a clip's loss a first
frame is one of seventeen, and it has no frames before it to be told by.

--decoder goes on from a VAE that is trained, leaves its encoder as it is, and so the latents that a transformer has learnt, and
trains its decoder alone.
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from graphs import captured
from optimizer import Update
from ranks import Ranks
from vae import LATENT_CHANNELS, Vae, channels_last, load_vae
from world import HEIGHT, MOTIONS, USUAL, WIDTH, SceneSampler, paint

CROP, CROP_FRAMES = 128, 17
# Frames, height and width of the scenes; all occur equally often. Fast motions and small objects are hard.
SPEEDS = [USUAL, USUAL, (17, 256, 256), (33, 192, 192), (33, 256, 384), (33, 384, 256), (33, 512, 512), (33, 512, 512),
          (33, 512, 320)]
# How often these motions occur compared with all others.
FAST = {"bounce": 4, "orbit": 3, "spin": 2}
BEGINNINGS = 0.4  # share of the crops that begin with the clip's first frame: a jump is fastest there
POOL = 64  # number of batches that are drawn at a time
IMAGES = 4  # first frames for each clip of a batch: a step on them is still the shorter one


def crop_windows(sampler, scenes, frames):
    """Returns windows of `frames` frames around some point of an object, because a clip's background teaches little."""
    device, (batch, _, length) = scenes.x.device, scenes.x.shape
    start = torch.randint(0, length - frames + 1, (batch,), device=device, generator=sampler.generator)
    start = start * (torch.rand(batch, device=device, generator=sampler.generator) >= BEGINNINGS)
    which = (torch.rand(batch, device=device, generator=sampler.generator) * scenes.count).long()
    row = torch.arange(batch, device=device)
    middle = (start + frames // 2)
    corners = []
    spread = 60 * min(scenes.height / HEIGHT, scenes.width / WIDTH)  # as objects grow with their frame
    for track, extent in ((scenes.y, scenes.height), (scenes.x, scenes.width)):
        shift = (torch.rand(batch, device=device, generator=sampler.generator) - 0.5) * spread
        corners.append((track[row, which, middle] - CROP / 2 + shift).clamp(0, extent - CROP).round())
    return start, frames, corners[0], corners[1], CROP, CROP


def losses(vae, video, mask, noise, learnt, fixed):
    """Mean absolute and squared error, both heavier on objects, and the divergence from a unit normal. The noise on the latents
    deviates by what the encoder says, times `learnt` (a tensor, so that one compiled program does for all), and by `fixed`
    [48, 1, 1, 1]. noise: unit normal, of the latents' shape. Where nothing is learnt, the variance is no part of the divergence."""
    mean, log_variance = vae.encode(video)
    log_variance = log_variance.float().clamp(-14, 6)
    mean = mean.float()
    latents = mean + (learnt * torch.exp(0.5 * log_variance) + fixed) * noise
    error = vae.decode(latents.to(video.dtype)).float() - video
    weight = 1 + 3 * mask
    weight = weight / weight.mean()
    variance = log_variance.exp() - 1 - log_variance
    divergence = 0.5 * (mean.square() + learnt * variance)
    # Compute the share of the latents' channels that carry information.
    active = (0.5 * (mean.square() + variance).mean((0, 2, 3, 4)) > 0.05).float().sum()
    return (error.abs() * weight).mean(), (error.square() * weight).mean(), divergence.mean(), error.square().mean(), active


def deviations(vae, video):
    """Returns the deviations of the latents that the encoder states, as the mean of each channel [48, 1, 1, 1]."""
    with torch.no_grad():
        return torch.exp(0.5 * vae.encode(video)[1].float().clamp(-14, 6)).mean((0, 2, 3, 4)).view(-1, 1, 1, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--seconds", type=float, default=420)
    parser.add_argument("--kl", type=float, default=3e-3)
    parser.add_argument("--rate", type=float, default=2e-3, help="of AdamW")
    parser.add_argument("--matrix-rate", type=float, default=3e-3, help="of Muon")
    parser.add_argument("--decoder", type=Path, help="train the decoder of this VAE, a .safetensors of an earlier run or a "
                        "Wan2.2_VAE.pth, and nothing else")
    parser.add_argument("--first-frames", type=float, default=0.0, help="share of the steps")
    parser.add_argument("--settle", type=float, default=1.0, help="part of the time after which the noise is no longer learnt but "
                        "half of each channel's mean deviation: the decoder draws sharper then")
    parser.add_argument("--encoder-width", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=48, help="clips of a step, on all GPUs together")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    options.output.mkdir(parents=True, exist_ok=True)
    ranks = Ranks()
    device, batch = ranks.device(options.device), options.batch // ranks.count
    cuda = options.device == "cuda"

    vae = load_vae(options.decoder).train() if options.decoder else Vae(options.encoder_width)
    vae = channels_last(vae.to(device))
    torch.manual_seed(options.seed + 1000 * ranks.rank)  # each rank draws clips and noise of its own
    print(f"parameters: encoder {sum(p.numel() for p in vae.encoder.parameters()):,}, "
          f"decoder {sum(p.numel() for p in vae.decoder.parameters()):,}")
    if options.decoder:
        for part in (vae.encoder, vae.conv1):
            part.requires_grad_(False)
    trained = {name: parameter for name, parameter in vae.named_parameters() if parameter.requires_grad}
    # Muon trains the convolutions but the first and the last ones, whose channels are pixels and latents.
    kernels = [parameter for name, parameter in trained.items()
               if parameter.dim() > 3 and parameter.shape[1] > 1 and ("samples" in name or "middle" in name)]
    update = Update(trained.values(), kernels, ranks, decay=1e-4)
    motions = [index for index, motion in enumerate(MOTIONS) for _ in range(FAST.get(motion, 1))]
    sampler = SceneSampler(device, options.seed + 1000 * (1 + ranks.rank), two_objects=0.4, motions=motions)

    def forward(video, mask, noise, learnt, fixed):
        with torch.autocast(options.device, torch.bfloat16, enabled=cuda):
            return losses(vae, video, mask, noise, learnt, fixed)

    draw = paint
    if cuda:
        forward, draw = torch.compile(forward, dynamic=False), torch.compile(paint, dynamic=True)
    learnt, fixed = torch.tensor(1.0, device=device), torch.zeros(LATENT_CHANNELS, 1, 1, 1, device=device)
    learns = True  # whether learnt > 0, known without waiting for the device
    values = torch.zeros(5, device=device)  # the values of the losses
    inputs, graphs = {}, {}  # of steps on first frames (True) and of others
    pool = torch.cuda.graph_pool_handle() if cuda else None

    def gradients(images):
        video, mask, noise = inputs[images]
        update.gradient.zero_()
        parts = forward(video, mask, noise.normal_(), learnt, fixed)
        (parts[0] + 10 * parts[1] + options.kl * parts[2]).backward()
        values.copy_(torch.stack([part.detach() for part in parts]))

    chance = random.Random(options.seed)  # the same on all ranks, so that none waits for a longer step
    log = (options.output / "vae.jsonl").open("a") if ranks.rank == 0 else None
    begin = time.monotonic()
    warm = None  # the clock starts after compilation
    step, spent, at = 0, 0.0, POOL * batch
    every, look = (500, 10) if cuda else (2, 1)
    while spent < options.seconds:
        part = spent / options.seconds
        rate = min(1.0, (step + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * part)))
        update.rates(options.rate * rate, options.matrix_rate * rate, min(0.998, step / (step + 10)))
        with torch.no_grad():
            # Drawing scenes waits for the device, so many are drawn at a time.
            images = chance.random() < options.first_frames
            count = batch * (IMAGES if images else 1)
            if at + count > POOL * batch:
                drawn, at = sampler.sample(POOL * batch, free=0.5, frame=chance.choice(SPEEDS)), 0
            scenes = drawn[at:at + count]
            at += count
            window = crop_windows(sampler, scenes, 1 if images else CROP_FRAMES)
            tracks = (scenes.x, scenes.y, scenes.radius, scenes.angle)
            video, masks = draw(scenes.shape, scenes.paint, scenes.ground, tracks, *window)
            if images not in inputs:
                noise = torch.zeros(count, LATENT_CHANNELS, (video.shape[2] + 3) // 4, CROP // 16, CROP // 16, device=device)
                inputs[images] = video.contiguous(memory_format=torch.channels_last_3d), masks[:, :1].clone(), noise
            for place, value in zip(inputs[images], (video, masks.amax(1, keepdim=True))):
                place.copy_(value)
            if learns and (options.decoder or part >= options.settle):
                learns = False
                learnt.zero_()
                # An encoder that is trained uses the noise that was settled.
                fixed.copy_(ranks.first((1.0 if options.decoder else 0.5) * deviations(vae, video)))
        if cuda and images not in graphs:
            graphs[images] = captured(lambda: gradients(images), pool)
        if cuda:
            graphs[images].replay()
        else:
            gradients(images)
        if cuda and step == 0:
            update.capture(pool, update.step)
        update.step()
        step += 1
        if warm is None and step == (20 if cuda else 2):
            if cuda:
                torch.cuda.synchronize()
            warm = time.monotonic()
        if warm is not None and step % look == 0:
            spent = ranks.agree(time.monotonic() - warm)
        if log and step % every == 0:
            absolute, _, divergence, plain, active = values.tolist()
            line = {"step": step, "seconds": round(time.monotonic() - begin, 1),
                    "absolute": absolute, "psnr": 10 * math.log10(4 / plain),
                    "kl": divergence, "active": active,
                    "gradient": update.norm.item()}
            print(json.dumps(line), flush=True)
            log.write(json.dumps(line) + "\n")
            log.flush()
    if ranks.rank == 0:
        average = dict(zip(trained, update.average))
        weights = {name: average.get(name, value).clone() for name, value in vae.state_dict().items()}
        if not learns:
            # The encoder uses the noise that was settled.
            weights["conv1.weight"][len(fixed):] = 0
            weights["conv1.bias"][len(fixed):] = 2 * fixed.flatten().log()
        save(weights, options.output)
    ranks.end()


def save(weights, folder):
    save_file({name: value.half().contiguous() for name, value in weights.items()}, folder / "vae.part")
    (folder / "vae.part").rename(folder / "vae.safetensors")  # another program may wait for it


if __name__ == "__main__":
    main()
