"""Looks at a model in training: samples held-out captions, scores them roughly, draws a contact sheet.

    python look.py VAE.safetensors SPIECE.model video.safetensors OUTPUT_FOLDER [--clips N]

The rough score knows which colours to look for, so it is quick and lenient; what counts is demo/evaluate. With
--save the clips are written, with their scenes, for its detector.
"""

import argparse
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file, save_file

from captions import Captioner, describe
from sampling import sample
from train_video import Bank, Model, Tokenizer, UPSTREAM_NEGATIVE
from vae import Vae, channels_last
from world import MOTIONS, SHAPES, SceneSampler, Scenes, _coverage, background_table, colour_table, render


def normalised(masks):
    """[N, H, W] to [N, 32, 32]: centred, the same area for all; also centres [N, 2] and areas [N]."""
    n, height, width = masks.shape
    area = masks.sum((1, 2)).clamp(min=1)
    rows = torch.arange(height, device=masks.device) + 0.5
    columns = torch.arange(width, device=masks.device) + 0.5
    y, x = (masks.sum(2) @ rows) / area, (masks.sum(1) @ columns) / area
    unit = torch.linspace(-1.1, 1.1, 32, device=masks.device)
    sx = (x[:, None] + unit * area.sqrt()[:, None]) / width * 2 - 1
    sy = (y[:, None] + unit * area.sqrt()[:, None]) / height * 2 - 1
    grid = torch.stack([sx[:, None, :].expand(n, 32, 32), sy[:, :, None].expand(n, 32, 32)], -1)
    return F.grid_sample(masks.unsqueeze(1), grid, align_corners=False).squeeze(1), torch.stack([x, y], 1), area


def templates(device):
    turns = 36
    angle = torch.arange(turns, device=device) * (2 * math.pi / turns)
    lines = torch.arange(128, device=device).expand(turns, 128) + 0.5
    out = []
    for shape in range(len(SHAPES)):
        kind = torch.full((turns,), shape, device=device)
        middle = torch.full((turns, 1), 64.0, device=device)
        mask = _coverage(kind, middle, middle, torch.full((turns, 1), 48.0, device=device), angle[:, None], lines, lines)
        out.append(normalised(mask[:, 0])[0].flatten(1))
    return torch.stack(out)  # [shapes, turns, 1024]


def motion_of(x, y, area):
    ratio = area[-4:].mean() / area[:4].mean()
    dx, dy = float(x[-1] - x[0]), float(y[-1] - y[0])
    range_x, range_y = float(x.max() - x.min()), float(y.max() - y.min())
    if ratio > 1.9:
        return "grow"
    if ratio < 0.53:
        return "shrink"
    if abs(dx) > 25 and abs(dx) > abs(dy):
        return "right" if dx > 0 else "left"
    if abs(dy) > 50:
        return "down" if dy > 0 else "up"
    if range_y > 50 and range_x < 0.5 * range_y:
        return "bounce"
    return "orbit" if range_x > 22 and range_y > 22 else "spin"


def score(video, scenes, shapes):
    """Counts of right colours, motions and shapes by number of objects. video [B, 3, T, H, W] in -1..1."""
    device = video.device
    colours, backgrounds = colour_table().to(device), background_table().to(device)
    result = {1: torch.zeros(4), 2: torch.zeros(4)}
    for row in range(video.shape[0]):
        pixels = ((video[row] + 1) * 127.5).permute(1, 2, 3, 0)
        palette = [backgrounds[scenes.background[row]]]
        count = int(scenes.count[row])
        palette += [colours[scenes.colour[row, i]] for i in range(count)]
        distance = torch.stack([(pixels - p).norm(dim=-1) for p in palette])
        nearest = distance.argmin(0)
        for i in range(count):
            mask = ((nearest == i + 1) & (distance[i + 1] < 70)).float()
            small, centre, area = normalised(mask)
            seen = area > 500
            tally = result[count]
            tally[0] += 1
            if seen.float().mean() < 0.8:
                continue
            tally[1] += 1
            tally[2] += motion_of(centre[:, 0], centre[:, 1], area) == MOTIONS[int(scenes.motion[row, i])]
            gap = (small.flatten(1)[:, None, None] - shapes[None]).square().mean(-1).amin(2)  # [T, shapes]
            tally[3] += int(gap[seen].mean(0).argmin()) == int(scenes.shape[row, i])
    return result


def show(result):
    names = ("colour", "motion", "shape")
    return {f"{count} object{'s' if count > 1 else ''}":
            {name: round(100 * float(tally[1 + i] / tally[0].clamp(min=1)), 1) for i, name in enumerate(names)}
            for count, tally in result.items()}


def sheet(video, path, clips=16):
    frames = [0, 8, 16, 24, 32]
    rows = [torch.cat([clip[:, f, ::2, ::2] for f in frames], 2) for clip in video[:clips]]
    half = len(rows) // 2
    picture = torch.cat([torch.cat(rows[:half], 1), torch.cat(rows[half:2 * half], 1)], 2)
    Image.fromarray(((picture + 1) * 127.5).clamp(0, 255).byte().permute(1, 2, 0).cpu().numpy()).save(path)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser()
    for name in ("vae", "tokenizer", "model", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--clips", type=int, default=128)
    parser.add_argument("--encoder-width", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=896)
    parser.add_argument("--guidance", type=float, default=4.0)
    parser.add_argument("--shift", type=float, default=5.0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    device = options.device
    options.output.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(options.tokenizer)
    vae = channels_last(Vae(options.encoder_width).to(device))
    vae.load_state_dict(load_file(options.vae, device))
    weights = load_file(options.model, device)
    mean, scale = (Bank.view(weights.pop(f"latents.{name}")) for name in ("mean", "scale"))
    model = Model(len(tokenizer), options.hidden).to(device)
    model.load_state_dict(weights, strict=False)  # the readers are not there
    model.eval()
    sampler, captioner = SceneSampler(device, 99, 0.4), Captioner(99)
    shapes = templates(device)
    scenes = sampler.sample(options.clips, unseen=True)
    host = scenes.to("cpu")
    described = [describe(host, row) for row in range(options.clips)]
    texts = [captioner.caption(scene, whole=True) for scene in described]
    ids = tokenizer(texts).to(device)
    nulls = tokenizer([UPSTREAM_NEGATIVE]).to(device)
    clips, totals = {}, {}
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        def decode(latents):
            return vae.decode(latents).float().clamp(-1, 1)
        for mode in ("reconstructed", "text", "image"):
            parts, total = [], None
            for at in range(0, options.clips, 32):
                rows = slice(at, at + 32)
                truth = render(scenes[rows])[0]
                raw = vae.encode(truth)[0].float()
                if mode == "reconstructed":
                    latents = raw
                else:
                    first = ((raw[:, :, :1] - mean) / scale) if mode == "image" else None
                    latents = sample(model.transformer, model.encode(ids[rows]), model.encode(nulls), first, options.steps,
                                     options.shift, options.guidance) * scale + mean
                video = torch.cat([decode(part) for part in latents.split(16)])
                if mode == "reconstructed":
                    error = (video - truth).square().mean((1, 2, 3, 4))
                    totals.setdefault("psnr", []).extend((10 * torch.log10(4 / error)).tolist())
                got = score(video, scenes[rows], shapes)
                total = got if total is None else {count: total[count] + got[count] for count in got}
                parts.append(((video + 1) * 127.5).round().byte().permute(0, 2, 3, 4, 1).cpu() if options.save else video[:16].cpu())
            totals[mode] = show(total)
            if options.save:
                clips[mode] = torch.cat(parts)
                save_file({"video": clips[mode]}, options.output / f"{mode}.safetensors")
                sheet(clips[mode][:16].permute(0, 4, 1, 2, 3).float() / 127.5 - 1, options.output / f"{mode}.png")
            else:
                sheet(parts[0], options.output / f"{mode}.png")
    psnr = torch.tensor(totals.pop("psnr"))
    totals["psnr"] = {"mean": round(float(psnr.mean()), 2), "worst": round(float(psnr.min()), 2)}
    with (options.output / "scenes.jsonl").open("w") as out:
        for row, (scene, text) in enumerate(zip(described, texts)):
            out.write(json.dumps({"id": f"{row:03}", "caption": text, **scene}) + "\n")
    print(json.dumps(totals), flush=True)


if __name__ == "__main__":
    main()
