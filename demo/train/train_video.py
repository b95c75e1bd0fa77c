"""Trains text encoder and transformer by flow matching on the VAE's latents.

    python train_video.py VAE.safetensors SPIECE.model OUTPUT_FOLDER --seconds S [--resume] ...

Clips are rendered and encoded once into a bank on the device, part of which is drawn anew while training goes on.
A step (drawing the batch, forward, backward, both optimizers, averaging) is one CUDA graph. The learning rate
follows the whole plan (--plan seconds of training, over several runs): warm-up, flat, then cosine from --flat on.
Writes, every --save-every seconds and at the end, video.safetensors (averaged) and state.safetensors (to go on from
with --resume), and all the time video.jsonl (its curve).
"""

import argparse
import json
import math
import time
from pathlib import Path

import sentencepiece
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from captions import Captioner, describe
from latents import statistics
from optimizer import Muon, split
from text_encoder import TextEncoder
from transformer import Transformer
from vae import Vae, channels_last
from world import COLOURS, MOTIONS, SHAPES, SceneSampler, render

TOKENS = 63  # longer than any caption; with the row that stands for padding 64
VARIANTS = 6  # captions written for each clip
# What a reader (below) tells of an object, and of how many.
LABELS = {"shape": len(SHAPES), "colour": len(COLOURS), "motion": len(MOTIONS)}
# Upstream's default negative prompt, which users send without knowing: it must mean 'nothing', as "" does.
UPSTREAM_NEGATIVE = (
    "色调艳丽，过曝，静态，细节模糊不清，字幕，风格，作品，画作，画面，静止，整体发灰，最差质量，低质量，JPEG压缩残留，丑陋的，残缺的，"
    "多余的手指，画得不好的手部，画得不好的脸部，畸形的，毁容的，形态畸形的肢体，手指融合，静止不动的画面，杂乱的背景，三条腿，背景人很多，倒着走")


class Tokenizer:
    def __init__(self, path):
        self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def __len__(self):
        return self.model.vocab_size()

    def __call__(self, texts):
        rows = [ids[:TOKENS - 1] + [1] for ids in self.model.encode(texts)]
        return torch.tensor([ids + [0] * (TOKENS - len(ids)) for ids in rows])

    def marked(self, marked):
        """Ids of captions with marks (captions.py), and for each token 1 or 2 if it speaks of that object, else 0."""
        owners = []
        texts = [text for text, _ in marked]
        for pieces, (_, spans) in zip(self.model.encode(texts, out_type=str), marked):
            owner, end = [], -1  # a piece begins with the space before its word, and the first with one that is not there
            for piece in pieces[:TOKENS - 1]:
                begin, end = end, end + len(piece)
                owner.append(next((1 + i for i, span in enumerate(spans) if begin + 1 < span[1] and end > span[0]), 0))
            owners.append(owner + [0] * (TOKENS - len(owner)))
        return self(texts), torch.tensor(owners, dtype=torch.uint8)


def by_latent(pool, masks, size):
    """Masks [B, N, 33, H, W] pooled to a latent's frames, 9, and to size x size."""
    return torch.cat([pool(masks[:, :, :1], (1, size, size)), pool(masks[:, :, 1:], (8, size, size))], 2)


class Bank:
    """Encoded clips with captions, all on the device; the latents are raw until `normalise`."""

    def __init__(self, size, vae, tokenizer, device, seed):
        self.vae, self.tokenizer, self.device = vae, tokenizer, device
        self.sampler = SceneSampler(device, seed, two_objects=0.5)
        self.captioner = Captioner(seed)
        self.latents = torch.zeros(size, 48, 9, 16, 16, dtype=torch.bfloat16, device=device)
        self.weight = torch.zeros(size, 1, 9, 16, 16, dtype=torch.bfloat16, device=device)
        self.ids = torch.zeros(size, VARIANTS, TOKENS, dtype=torch.long, device=device)
        # What is where: the object of each token of the picture and of the text (0: none), the objects' labels.
        self.owner = torch.zeros(size, 9, 64, dtype=torch.uint8, device=device)
        self.text_owner = torch.zeros(size, VARIANTS, TOKENS, dtype=torch.uint8, device=device)
        self.labels = torch.zeros(size, 2, len(LABELS), dtype=torch.long, device=device)
        self.mean, self.scale = torch.zeros(48, device=device), torch.ones(48, device=device)
        self.next = 0
        self.encode = torch.compile(self._encode, dynamic=False) if device == "cuda" else self._encode
        self.render = torch.compile(render, dynamic=False) if device == "cuda" else render

    def _encode(self, video):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            return self.vae.encode(video)[0].float()

    @torch.no_grad()
    def refresh(self, count=64):
        """Replaces the oldest clips by new ones."""
        scenes = self.sampler.sample(count)
        video, masks = self.render(scenes)
        latents = self.encode(video.contiguous(memory_format=torch.channels_last_3d))
        rows = slice(self.next, self.next + count)
        self.latents[rows] = ((latents - self.view(self.mean)) / self.view(self.scale)).bfloat16()
        self.weight[rows] = by_latent(F.adaptive_max_pool3d, masks.amax(1, keepdim=True), 16).bfloat16()
        covered, owner = by_latent(F.adaptive_avg_pool3d, masks, 8).max(1)
        self.owner[rows] = ((owner + 1) * (covered > 0.15)).flatten(2).byte()
        self.labels[rows] = torch.stack([getattr(scenes, name) for name in LABELS], -1)
        host = scenes.to("cpu")
        plain = [describe(host, row) for row in range(count)]
        marked = [self.captioner.marked(plain[row]) for row in range(count) for _ in range(VARIANTS)]
        ids, owner = self.tokenizer.marked(marked)
        shape = (count, VARIANTS, TOKENS)
        self.ids[rows] = ids.view(shape).to(self.device, non_blocking=True)
        self.text_owner[rows] = owner.view(shape).to(self.device, non_blocking=True)
        self.next = (self.next + count) % self.latents.shape[0]

    @staticmethod
    def view(channels):
        return channels.view(-1, 1, 1, 1)

    def fill(self):
        for _ in range(self.latents.shape[0] // 64):
            self.refresh()

    def normalise(self, floor):
        part = self.latents[:4096].float()
        self.mean, self.scale = statistics(part, floor)
        for rows in range(0, self.latents.shape[0], 1024):
            chunk = self.latents[rows:rows + 1024].float()
            self.latents[rows:rows + 1024] = ((chunk - self.view(self.mean)) / self.view(self.scale)).bfloat16()


class Reader(torch.nn.Module):
    """Tells from features which shape, colour and motion they stand for; for training only, to make them stand for it."""

    def __init__(self, width):
        super().__init__()
        self.read = torch.nn.Linear(width, sum(LABELS.values()))

    def forward(self, features, labels, owner):
        """Cross entropy, mean over owned tokens: features [B, L, width], labels [B, 2, 3], owner [B, L] 0 to 2."""
        logits = self.read(F.layer_norm(features.float(), features.shape[-1:])).float()
        index = (owner.long() - 1).clamp(min=0).unsqueeze(-1).expand(-1, -1, len(LABELS))
        target = labels.gather(1, index)
        owned = (owner > 0).float()
        total = 0
        for column, part in enumerate(logits.split(list(LABELS.values()), -1)):
            total = total + (F.cross_entropy(part.transpose(1, 2), target[..., column], reduction="none") * owned).sum()
        return total / owned.sum().clamp(min=1)


class Model(torch.nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.text = TextEncoder(vocabulary)
        self.transformer = Transformer(hidden=hidden)
        self.readers = torch.nn.ModuleList([Reader(self.text.norm.weight.shape[0]), Reader(self.transformer.width)])

    def encode(self, ids):
        return self.text(ids), (ids != 0).sum(1)


def step_loss(model, bank, nulls, options):
    """Flow matching: noised = (1 - t) latents + t noise, the model gives noise - latents. Also both readers' losses."""
    device, batch = bank.latents.device, options.batch
    index = torch.randint(bank.latents.shape[0], (batch,), device=device)
    variant = torch.randint(VARIANTS, (batch,), device=device)
    latents, weight = bank.latents[index].float(), 1 + options.object_weight * bank.weight[index].float()
    ids = bank.ids[index, variant]
    dropped = torch.rand(batch, 1, device=device) < 0.1
    ids = torch.where(dropped, nulls[torch.randint(2, (batch,), device=device)], ids)
    t = torch.rand(batch, device=device)
    t = options.shift * t / (1 + (options.shift - 1) * t)
    t = t.view(-1, 1, 1, 1, 1)
    given = (torch.rand(batch, 1, device=device) < options.image_share)
    first = torch.arange(latents.shape[2], device=device).view(1, -1) == 0
    clean = (given & first).view(batch, 1, -1, 1, 1)
    noise = torch.randn_like(latents)
    noised = torch.where(clean, latents, (1 - t) * latents + t * noise)
    when = torch.where(clean.view(batch, -1), 0.0, 1000 * t.view(-1, 1))
    weight = weight * ~clean
    rows, lengths = model.encode(ids)
    velocity, features = model.transformer(noised, when, rows, lengths, tap=options.tap)
    square = (velocity.float() - (noise - latents)).square().mean(1, keepdim=True)
    labels = bank.labels[index]
    text_owner = bank.text_owner[index, variant] * ~dropped
    read_text = model.readers[0](rows, labels, text_owner)
    read_picture = model.readers[1](features.flatten(1, 2), labels, bank.owner[index].flatten(1))
    return torch.stack([(square * weight).sum() / weight.sum(), read_text, read_picture])


class Trainer:
    def __init__(self, model, bank, nulls, options):
        self.model, self.bank, self.nulls, self.options = model, bank, nulls, options
        matrices, others = split([model])
        self.muon = Muon(matrices) if options.muon else None
        groups = others if options.muon else matrices + others
        device = bank.latents.device
        self.rate = torch.zeros((), device=device)
        cuda = device.type == "cuda"
        self.adam = torch.optim.AdamW(groups, lr=self.rate, betas=(0.9, 0.99), weight_decay=0.0, capturable=cuda, fused=cuda)
        self.keep = torch.zeros((), device=device)
        self.average = [p.detach().clone() for p in model.parameters()]
        self.share = torch.tensor([1.0, options.read_text, options.read_picture], device=device)
        self.loss, self.norm = torch.zeros(3, device=device), torch.zeros((), device=device)
        def compute():
            with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
                return step_loss(model, bank, nulls, options)
        self.compute = torch.compile(compute, dynamic=False) if cuda else compute
        self.update = torch.compile(self.muon.step, dynamic=False) if cuda and options.muon else (self.muon.step if options.muon else None)
        self.graph = None
        self.steps = self.first = 0  # first: of this run

    def body(self):
        for parameter in self.model.parameters():
            parameter.grad = None
        loss = self.compute()
        (loss * self.share).sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if self.update:
            self.update()
        self.adam.step()
        change = torch._foreach_sub([p.detach() for p in self.model.parameters()], self.average)
        torch._foreach_mul_(change, self.keep)
        torch._foreach_add_(self.average, change)
        self.loss.lerp_(loss.detach(), 0.01)
        self.norm.copy_(norm)

    def step(self, part):
        """One update; part: how much of the plan is done, 0 to 1."""
        options = self.options
        run = self.steps - self.first
        warm = min(1.0, (run + 1) / 500)
        fall = 0.0 if part < options.flat else (part - options.flat) / (1 - options.flat)
        rate = warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * fall)))
        self.rate.fill_(options.rate * rate)
        if self.muon:
            self.muon.rate.fill_(options.matrix_rate * rate)
        self.keep.fill_(1 - min(options.average, run / (run + 20)))
        if self.graph:
            self.graph.replay()
        else:
            self.body()
        self.steps += 1

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                self.step(0.0)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.body()

    def state(self):
        """What a later run goes on from. Moments and average are not in it: within seconds they are as they were."""
        out = {name: parameter.detach().clone() for name, parameter in self.model.named_parameters()}
        out["steps"] = torch.tensor(self.steps)
        return out

    def resume(self, state):
        with torch.no_grad():
            for (name, parameter), average in zip(self.model.named_parameters(), self.average):
                parameter.copy_(state[name])
                average.copy_(parameter)
        self.steps = self.first = int(state["steps"])

    def averaged(self):
        names = [name for name, _ in self.model.named_parameters()]
        return {name: value.clone() for name, value in zip(names, self.average) if not name.startswith("readers.")}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("vae", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seconds", type=float, default=480, help="of training in this run")
    parser.add_argument("--plan", type=float, help="of training in all runs; the schedule's length")
    parser.add_argument("--done", type=float, default=0, help="seconds of the plan that earlier runs did")
    parser.add_argument("--save-every", type=float, default=60, help="seconds between two saved states")
    parser.add_argument("--resume", type=Path, help="state.safetensors of an earlier run")
    parser.add_argument("--encoder-width", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=896)
    parser.add_argument("--bank", type=int, default=24576)
    parser.add_argument("--refresh", type=int, default=40, help="steps between 64 new clips; 0: never")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3, help="of AdamW")
    parser.add_argument("--matrix-rate", type=float, default=2e-3, help="of Muon")
    parser.add_argument("--no-muon", dest="muon", action="store_false")
    parser.add_argument("--flat", type=float, default=0.7)
    parser.add_argument("--average", type=float, default=0.9995)
    parser.add_argument("--shift", type=float, default=3.0)
    parser.add_argument("--floor", type=float, default=0.3)
    parser.add_argument("--object-weight", type=float, default=2.0)
    parser.add_argument("--image-share", type=float, default=0.35)
    parser.add_argument("--read-text", type=float, default=0.1, help="weight of the text reader's loss")
    parser.add_argument("--read-picture", type=float, default=0.1, help="weight of the picture reader's loss")
    parser.add_argument("--tap", type=int, default=3, help="block after which the picture is read")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    options.plan = options.plan or options.seconds
    return options


def main():
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = options.device
    begin = time.monotonic()
    tokenizer = Tokenizer(options.tokenizer)
    vae = channels_last(Vae(options.encoder_width).to(device))
    vae.load_state_dict(load_file(options.vae, device))
    bank = Bank(options.bank, vae, tokenizer, device, options.seed + 7 + int(options.done))
    bank.fill()
    state = load_file(options.resume, device) if options.resume else None
    if state:
        bank.mean, bank.scale = state["latents.mean"], state["latents.scale"]
        for rows in range(0, options.bank, 1024):
            chunk = bank.latents[rows:rows + 1024].float()
            bank.latents[rows:rows + 1024] = ((chunk - bank.view(bank.mean)) / bank.view(bank.scale)).bfloat16()
    else:
        bank.normalise(options.floor)
    deviation = bank.latents[:4096].float().transpose(0, 1).flatten(1).std(1)
    print(f"bank {options.bank} in {time.monotonic() - begin:.0f} s; channels' deviation "
          f"{[round(v, 2) for v in deviation.sort(descending=True).values.tolist()]}", flush=True)

    nulls = tokenizer(["", UPSTREAM_NEGATIVE]).to(device)
    model = Model(len(tokenizer), options.hidden).to(device)
    trainer = Trainer(model, bank, nulls, options)
    if state:
        trainer.resume(state)
    log = (options.output / "video.jsonl").open("a")
    compile_begin = time.monotonic()
    if device == "cuda":
        trainer.capture()
        torch.cuda.synchronize()
    print(f"compiled in {time.monotonic() - compile_begin:.0f} s", flush=True)
    warm = time.monotonic()
    first = trainer.steps
    saved = 0.0

    def save():
        """Both files appear whole: another process may take them at any moment."""
        scaling = {"latents.mean": bank.mean, "latents.scale": bank.scale}
        averaged = {name: value.half() for name, value in trainer.averaged().items()}
        for name, tensors in (("state", trainer.state()), ("video", averaged)):
            save_file(tensors | scaling, options.output / f"{name}.part")
            (options.output / f"{name}.part").rename(options.output / f"{name}.safetensors")

    while (spent := time.monotonic() - warm) < options.seconds:
        part = min((options.done + spent) / options.plan, 1.0)
        if spent - saved >= options.save_every:
            save()
            saved = spent
        trainer.step(part)
        if options.refresh and trainer.steps % options.refresh == 0:
            bank.refresh()
        if trainer.steps % 500 == 0:
            line = {"step": trainer.steps, "seconds": round(options.done + time.monotonic() - warm, 1),
                    "loss": round(trainer.loss[0].item(), 4),
                    "read_text": round(trainer.loss[1].item(), 3), "read_picture": round(trainer.loss[2].item(), 3), "gradient": round(trainer.norm.item(), 3),
                    "ms": round(1000 * (time.monotonic() - warm) / (trainer.steps - first), 2)}
            print(json.dumps(line), flush=True)
            log.write(json.dumps(line) + "\n")
            log.flush()
    save()


if __name__ == "__main__":
    main()
