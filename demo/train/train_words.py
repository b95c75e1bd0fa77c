"""Teaches a trained text encoder other words for what it knows: train_words.py WEIGHTS SPIECE.model OUTPUT.safetensors

WEIGHTS is a video.safetensors of train_video.py or a checkpoint's folder; OUTPUT is the same with another text encoder, for
export.py. The transformer stays, and tells what a caption means: for a scene's plainest caption, which it has learnt, and for
another caption in free words the velocity should be the same. At the time 1, from noise alone, the caption decides all; half of
the steps begin there, the others between there and the half of the way to the clip that the model sees from there. No clip is
drawn or encoded, so a processor is enough.
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from buckets import Tokenizer
from captions import Captioner, describe, plain
from text_encoder import TextEncoder
from train_video import UPSTREAM_NEGATIVE, from_checkpoint
from transformer import Transformer, as_patches
from vae import LATENT_CHANNELS
from world import SceneSampler

FRAME = (17, 192, 192)  # the smallest in which a whole motion is seen
KEPT = 0.1  # share of texts that mean what they meant: facts, as negative prompts name them, and nothing


class Pairs(IterableDataset):
    """Ids of batches of texts that the teacher knows, and of others that should mean the same; endless."""

    def __init__(self, tokenizer, batch, seed):
        self.tokenizer, self.batch, self.seed = tokenizer, batch, seed

    def __iter__(self):
        worker = get_worker_info()
        seed = self.seed + (1 + worker.id if worker else 0) * 1000
        chance, sampler, captioner = random.Random(seed), SceneSampler("cpu", seed), Captioner(seed, numbers=True)
        captioner.FACT = 0.0  # those are among the texts that are kept
        while True:
            drawn = sampler.sample(self.batch, two_objects=0.5, frame=FRAME)
            known, free = [], []
            for scene in (describe(drawn, row) for row in range(self.batch)):
                if chance.random() < KEPT:
                    known.append(chance.choice([captioner.fact(scene), captioner.fact(scene), "", UPSTREAM_NEGATIVE]))
                    free.append(known[-1])
                else:
                    known.append(plain(scene))
                    free.append(captioner.caption(scene, whole=chance.random() < 0.2))
            yield self.tokenizer(known), self.tokenizer(free)


def split(weights, part):
    return {name.removeprefix(part): value.float() for name, value in weights.items() if name.startswith(part)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("weights", "tokenizer", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--rate", type=float, default=1.5e-3, help="of AdamW")
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=0, help="processes that write captions")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    weights = from_checkpoint(options.weights) if options.weights.is_dir() else load_file(options.weights)
    device, tokenizer = torch.device(options.device), Tokenizer(options.tokenizer)
    transformer = Transformer(hidden=weights["transformer.blocks.0.ffn.0.weight"].shape[0]).to(device)
    transformer.load_state_dict(split(weights, "transformer."))
    teacher, learner = (TextEncoder(len(tokenizer)).to(device) for _ in range(2))
    for encoder in (teacher, learner):
        encoder.load_state_dict(split(weights, "text."))
    for part in (transformer, teacher):
        part.requires_grad_(False)
    frames, height, width = (FRAME[0] + 3) // 4, FRAME[1] // 16, FRAME[2] // 16
    shape = (options.batch, frames, height // 2 * (width // 2), 4 * LATENT_CHANNELS)
    table = transformer.table((frames, height, width), device)

    def velocity(encoder, x, t, ids):
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            when = 1000 * t.view(-1, 1).expand(-1, frames)
            return transformer.tokens(x, when, encoder(ids), (ids != 0).sum(1), table).float()

    batches = iter(DataLoader(Pairs(tokenizer, options.batch, options.seed), batch_size=None, num_workers=options.workers))
    optimizer = torch.optim.AdamW(learner.parameters(), lr=options.rate, betas=(0.9, 0.99), weight_decay=0.0)
    average = {name: parameter.detach().clone() for name, parameter in learner.named_parameters()}
    begin, step, spent, mean = time.monotonic(), 0, 0.0, None
    while spent < options.seconds:
        known, free = (ids.to(device) for ids in next(batches))
        with torch.no_grad():
            x, t = torch.randn(shape, device=device), torch.ones(options.batch, device=device)
            wanted = velocity(teacher, x, t, known)
            if step % 2:
                t = 0.5 + 0.5 * torch.rand_like(t)
                x = torch.lerp(x - as_patches(wanted), torch.randn_like(x), t.view(-1, 1, 1, 1))
                wanted = velocity(teacher, x, t, known)
        loss = (velocity(learner, x, t, free) - wanted).square().mean()
        rate = min(1.0, (step + 1) / 30) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * spent / options.seconds)))
        optimizer.param_groups[0]["lr"] = options.rate * rate
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 0.05)
        optimizer.step()
        step += 1
        keep = min(0.99, step / (step + 10))
        torch._foreach_lerp_(list(average.values()), [parameter.detach() for parameter in learner.parameters()], 1 - keep)
        mean = loss.detach() if mean is None else torch.lerp(mean, loss.detach(), 0.05)
        spent = time.monotonic() - begin
        if step % 50 == 0:
            print(json.dumps({"step": step, "seconds": round(spent, 1), "loss": round(mean.item(), 5)}), flush=True)
    changed = {f"text.{name}": value.half().cpu() for name, value in average.items()}
    save_file({name: value.contiguous() for name, value in (weights | changed).items()}, options.output)


if __name__ == "__main__":
    main()
