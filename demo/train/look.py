"""Looks at a model in training: makes videos of probes and of held-out captions and draws sheets of their frames.

    python look.py VAE SPIECE.model video.safetensors OUTPUT_FOLDER [--clips N] [--warm CHECKPOINT]

With --warm the model is a checkpoint's (its folder), and video.safetensors is not read. Each sheet has a row for each
video, of five frames. --save writes the clips of the usual size with their scenes, for demo_evaluate detect; what
counts is demo/evaluate.
"""

import argparse
import json
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from buckets import Tokenizer
from captions import Captioner, describe
from sampling import sample
from train_video import Model, UPSTREAM_NEGATIVE, from_checkpoint
from vae import channels_last, load_vae
from world import SceneSampler, render

SERVED = json.loads((Path(__file__).parent.parent / "model/generation_defaults.json").read_text())
# Videos that a new user tries: (frames, height, width), captions.
PROBES = {
    "usual": ((33, 256, 256), ["A Green Heart rises", "RED CIRCLE MOVES RIGHT", "an orange star orbits over light blue",
                               "a purple cross spins on a white background", "two red circles bounce",
                               "a yellow star and a blue star spin", "a pink cross grows over a dark green background",
                               "a brown square moves left, white background"]),
    "wide": ((33, 320, 512), ["a red circle moves left to right over a dark blue background", "a green heart spins on white",
                              "a yellow star orbits over a grey background", "a blue square grows over a beige background"]),
    "long": ((65, 256, 256), ["a red circle moves left to right over a dark blue background", "a green heart spins on white",
                              "a yellow star orbits over a grey background", "a blue square grows over a beige background"]),
}


def to_bytes(video):
    return ((video.float().clamp(-1, 1) + 1) * 127.5).round().byte()


def sheet(clips, path):
    """clips: uint8 [N, 3, T, H, W]; the height of a frame becomes 96."""
    rows = []
    for clip in clips:
        frames = clip[:, [round(i * (clip.shape[1] - 1) / 4) for i in range(5)]].float().transpose(0, 1)
        width = 96 * clip.shape[3] // clip.shape[2]
        small = torch.nn.functional.interpolate(frames, (96, width), mode="area")
        rows.append(torch.cat(list(small), 2))
    picture = torch.cat(rows, 1).round().byte().permute(1, 2, 0).cpu().numpy()
    Image.fromarray(picture).save(path)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser()
    for name in ("vae", "tokenizer", "model", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--clips", type=int, default=64)
    parser.add_argument("--warm", type=Path)
    parser.add_argument("--guidance", type=float, default=SERVED["guidance_scale"][0])
    parser.add_argument("--shift", type=float, default=SERVED["shift"])
    parser.add_argument("--steps", type=int, default=SERVED["steps"])
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    device = options.device
    options.output.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(options.tokenizer)
    vae = channels_last(load_vae(options.vae).to(device))
    weights = from_checkpoint(options.warm) if options.warm else load_file(options.model)
    mean, scale = (weights.pop(f"latents.{name}").to(device).view(-1, 1, 1, 1) for name in ("mean", "scale"))
    model = Model(len(tokenizer), weights["transformer.blocks.0.ffn.0.weight"].shape[0]).to(device)
    model.load_state_dict({name: value.float() for name, value in weights.items()}, strict=False)  # without readers
    model.eval()
    nulls = model.encode(tokenizer([UPSTREAM_NEGATIVE]).to(device))
    generator = torch.Generator(device).manual_seed(1)

    def videos(texts, frame, first=None):
        frames, height, width = frame
        shape = (48, (frames + 3) // 4, height // 16, width // 16)
        latents = sample(model.transformer, model.encode(tokenizer(texts).to(device)), nulls, first, options.steps,
                         options.shift, options.guidance, shape, generator) * scale + mean
        return torch.cat([to_bytes(vae.decode(part)) for part in latents.split(8)])

    report = {}
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        for name, (frame, texts) in PROBES.items():
            sheet(videos(texts, frame), options.output / f"{name}.png")
        sampler, captioner = SceneSampler(device, 99, 0.4), Captioner(99)
        # Image to video in any colours: show the first frame, and what the autoencoder alone makes of it.
        scenes = sampler.sample(16, unseen=True, free=1.0)
        truth = render(scenes)[0]
        texts = [captioner.caption(describe(scenes.to("cpu"), row), whole=True) for row in range(16)]
        first = (vae.encode(truth[:, :, :1])[0].float() - mean) / scale
        made = videos(texts, (33, 256, 256), first)
        alone = to_bytes(vae.decode(first * scale + mean))
        sheet(made[:8], options.output / "image.png")

        def decibels(got):
            error = (got.float() - to_bytes(truth)[:, :, :1].float()).square().mean((1, 2, 3, 4))
            level = 10 * torch.log10(255 ** 2 / error.clamp(min=1e-3))
            return [round(float(level.mean()), 2), round(float(level.min()), 2)]

        report["first frame, mean and worst"] = decibels(made[:, :, :1])
        report["the same, autoencoder alone"] = decibels(alone)
        print(json.dumps(report), flush=True)
        if options.save:
            scenes = sampler.sample(options.clips, unseen=True)
            host = scenes.to("cpu")
            described = [describe(host, row) for row in range(options.clips)]
            texts = [captioner.caption(scene, whole=True) for scene in described]
            clips = torch.cat([videos(texts[at:at + 32], (33, 256, 256)).cpu() for at in range(0, len(texts), 32)])
            sheet(clips[:20], options.output / "held_out.png")
            save_file({"video": clips.permute(0, 2, 3, 4, 1).contiguous()}, options.output / "clips.safetensors")
            with (options.output / "scenes.jsonl").open("w") as out:
                for row, (scene, text) in enumerate(zip(described, texts)):
                    out.write(json.dumps({"id": f"{row:03}", "caption": text, **scene}) + "\n")


if __name__ == "__main__":
    main()
