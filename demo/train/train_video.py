"""Trains text encoder and transformer by flow matching on the VAE's latents.

    python train_video.py VAE SPIECE.model OUTPUT_FOLDER --steps N [--resume STATE | --warm CHECKPOINT] ...

VAE is a .safetensors of train_vae.py or a checkpoint's Wan2.2_VAE.pth; --wait-for-vae waits until it is there, while
everything else is made ready. Clips of several sizes and durations (buckets.py) are rendered and encoded into banks on
the device, part of which is drawn anew while training goes on; every step has a batch of one bucket, and all batches
have as many tokens. Drawing the batch, forward and backward are one CUDA graph for each bucket; both optimizers and
averaging are another. Started by torchrun, each process has a GPU and banks of its own, and all take each step together:
each has a part of its batch, of any bucket, and all go by the mean of their gradients. With --own-share, a part of the
steps begins on ways that the model went itself (rollouts.py). The plan is --steps, in one run or over several, and the
learning rate follows the whole of it: warm-up, flat, then cosine from --flat on. Writes, every --save-every seconds and at
the end, video.safetensors (averaged) and state.safetensors (to go on from with --resume), and all the time video.jsonl
(its curve). SIGTERM ends the run as if its time (--until) were up.
"""

import argparse
import json
import math
import random
import signal
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
import torch._dynamo
import torch.fx.experimental._config
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from buckets import BUCKETS, LABELS, TINY_BUCKETS, Bank, Tokenizer, Writers, divided
from graphs import captured
from latents import UPSTREAM_MEAN, UPSTREAM_STD, statistics, visibility
from optimizer import Update
from ranks import Ranks
from rollouts import OwnBank
from text_encoder import TextEncoder
from transformer import Transformer, to_latents
from vae import LATENT_CHANNELS, channels_last, load_vae
from world import paint

# Upstream's default negative prompt, which users send without knowing: it must mean 'nothing', as "" does.
UPSTREAM_NEGATIVE = (
    "色调艳丽，过曝，静态，细节模糊不清，字幕，风格，作品，画作，画面，静止，整体发灰，最差质量，低质量，JPEG压缩残留，丑陋的，残缺的，"
    "多余的手指，画得不好的手部，画得不好的脸部，畸形的，毁容的，形态畸形的肢体，手指融合，静止不动的画面，杂乱的背景，三条腿，背景人很多，倒着走")


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
            # A colour without a name (-1) does not count.
            entropy = F.cross_entropy(part.transpose(1, 2), target[..., column], reduction="none", ignore_index=-1)
            total = total + (entropy * owned).sum()
        return total / owned.sum().clamp(min=1)


class Model(torch.nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.text = TextEncoder(vocabulary)
        self.transformer = Transformer(hidden=hidden)
        self.readers = torch.nn.ModuleList([Reader(self.text.norm.weight.shape[0]), Reader(self.transformer.width)])

    def encode(self, ids):
        return self.text(ids), (ids != 0).sum(1)


def step_loss(model, bank, table, nulls, channels, options):
    """Flow matching: from a state at the time t the model gives the velocity away from the latents. Also both readers' losses.
    channels [48]: the weights of the latents' channels, 1 in the mean."""
    device, batch = bank.device, bank.bucket.batch
    index = torch.randint(bank.size, (batch,), device=device)
    variant = torch.randint(bank.variants, (batch,), device=device)
    patches, weight = bank.patches[index].float(), 1 + bank.weight[index].float()
    dropped = torch.rand(batch, 1, device=device) < 0.1
    ids = torch.where(dropped, nulls[torch.randint(2, (batch,), device=device)], bank.ids[index, variant].long())
    noised, t, wanted, given = bank.states(index, patches, options)
    first = torch.arange(patches.shape[1], device=device).view(1, -1) == 0
    clean = (given.unsqueeze(1) & first).view(batch, -1, 1, 1)
    noised = torch.where(clean, patches, noised)
    when = torch.where(clean.view(batch, -1), 0.0, 1000 * t.view(-1, 1))
    weight = weight * ~clean * bank.trust(t)
    rows, lengths = model.encode(ids)
    velocity, features = model.transformer.tokens(noised, when, rows, lengths, table, tap=options.tap)
    # In the head a token's channels come last, at the input first.
    target = wanted.unflatten(-1, (-1, 4)).transpose(-1, -2)
    square = ((velocity.float().unflatten(-1, (4, -1)) - target).square() * channels).mean(-1)
    labels = bank.labels[index]
    text_owner = bank.text_owner[index, variant] * ~dropped
    read_text = model.readers[0](rows, labels, text_owner)
    read_picture = model.readers[1](features.flatten(1, 2), labels, bank.owner[index].flatten(1))
    return torch.stack([(square * weight).sum() / weight.sum(), read_text, read_picture])


class Trainer:
    def __init__(self, model, banks, nulls, options, ranks):
        self.model, self.banks, self.nulls, self.options, self.ranks = model, banks, nulls, options, ranks
        device = nulls.device
        self.cuda = device.type == "cuda"
        self.parameters = list(model.parameters())
        matrices = [parameter for name, parameter in model.named_parameters()
                    if "blocks." in name and parameter.dim() == 2 and "embedding" not in name and "norm" not in name]
        self.update = Update(self.parameters, matrices, ranks, compiled=self.cuda)
        self.average = self.update.average
        self.share = torch.tensor([1.0, options.read_text, options.read_picture], device=device)
        self.losses = torch.zeros(len(banks), 3, device=device)
        self.channels = torch.ones(LATENT_CHANNELS, device=device)  # weights in the loss; the graphs read them from here
        self.tables = [model.transformer.table((bank.bucket.latent[0], bank.bucket.height // 16, bank.bucket.width // 16), device)
                       for bank in banks]
        self.graphs = [None] * len(banks)
        self.pool = torch.cuda.graph_pool_handle() if self.cuda else None
        self.shares = [bank.bucket.share for bank in banks]
        self.own_share = 0.0  # share of the steps that begin on own ways
        self.chance = random.Random(options.seed + ranks.rank)
        self.steps = self.first = 0  # first: of this run

    def gradients(self, which):
        """Computes the gradients of one batch of a bucket."""
        self.update.gradient.zero_()
        with torch.autocast(self.nulls.device.type, torch.bfloat16, enabled=self.cuda):
            loss = step_loss(self.model, self.banks[which], self.tables[which], self.nulls, self.channels, self.options)
        (loss * self.share).sum().backward()
        self.losses[which].lerp_(loss.detach(), 0.02)

    def step(self, part, which=None):
        """One update, each rank by a batch of any bucket; part: how much of the plan is done, 0 to 1."""
        options = self.options
        if which is None:
            own = self.chance.random() < self.own_share
            which = self.chance.choices(range(len(self.banks)),
                                        [share * (isinstance(bank, OwnBank) == own) for bank, share in zip(self.banks, self.shares)])[0]
        run = self.steps - self.first
        warm = min(1.0, (run + 1) / 300)
        fall = 0.0 if part < options.flat else (part - options.flat) / (1 - options.flat)
        rate = warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * fall)))
        self.update.rates(options.rate * rate, options.matrix_rate * rate, min(options.average, run / (run + 20)))
        if self.graphs[which]:
            self.graphs[which].replay()
        else:
            self.gradients(which)
        self.update.step()
        self.steps += 1

    def capture(self):
        """Compiles the blocks, for any size at once, and makes every bucket's graph."""
        # Mark the sizes as dynamic, because sizes that are equal in the first bucket are not equal in all.
        torch.fx.experimental._config.use_duck_shape = False
        torch._dynamo.config.recompile_limit = 32
        for block in self.model.transformer.blocks:
            block.compile(dynamic=True)
        # Begin with the usual size; if no time is left for a size, this rank does not train it.
        order = sorted(range(len(self.banks)), key=lambda which: -self.shares[which])
        start = time.monotonic()
        for which in order:
            begin = time.monotonic()
            if begin - start > self.options.capture_seconds:
                self.shares[which] = 0.0
                print(f"no time for {self.banks[which].bucket.frame}", flush=True)
                continue
            self.graphs[which] = captured(lambda: self.gradients(which), self.pool)
            print(f"{self.banks[which].bucket.frame} in {time.monotonic() - begin:.1f} s", flush=True)
        # Every rank makes the same number of steps here, because each step waits for all ranks.
        self.update.capture(self.pool, lambda: self.step(0.0, order[0]))

    def time_of_each(self):
        """Returns for each bucket the milliseconds that the gradients of a batch take."""
        result = {}
        for bank, graph in zip(self.banks, self.graphs):
            if not graph:
                continue
            torch.cuda.synchronize()
            begin = time.monotonic()
            for _ in range(4):
                graph.replay()
            torch.cuda.synchronize()
            result["x".join(map(str, bank.bucket.frame))] = round(250 * (time.monotonic() - begin), 1)
        return result

    @contextmanager
    def averaged_weights(self):
        """Gives the model the averaged weights, with which it will be served, while the context lasts."""
        parameters = [parameter.detach() for parameter in self.parameters]
        kept = [parameter.clone() for parameter in parameters]
        torch._foreach_copy_(parameters, self.average)
        yield
        torch._foreach_copy_(parameters, kept)

    def state(self, seconds):
        """What a later run goes on from. Moments and average are not in it: within seconds they are as they were."""
        out = {name: parameter.detach().half() for name, parameter in self.model.named_parameters()}
        out["steps"], out["seconds"] = torch.tensor(self.steps), torch.tensor(seconds)
        return out

    def resume(self, state):
        """From `state`, or from parts of it: readers that are missing begin anew."""
        with torch.no_grad():
            for (name, parameter), average in zip(self.model.named_parameters(), self.average):
                if name in state:
                    parameter.copy_(state[name])
                elif not name.startswith("readers."):
                    raise SystemExit(f"the state has no {name}")
                average.copy_(self.ranks.first(parameter))

    def averaged(self):
        names = [name for name, _ in self.model.named_parameters()]
        return {name: value.half() for name, value in zip(names, self.average) if not name.startswith("readers.")}


def from_checkpoint(folder):
    """Returns the state of a checkpoint in upstream's layout (export.py)."""
    state = {f"transformer.{name}": value for name, value in
             load_file(folder / "diffusion_pytorch_model.safetensors").items()}
    text = torch.load(folder / "models_t5_umt5-xxl-enc-bf16.pth", map_location="cpu", weights_only=True)
    state |= {f"text.{name}": value for name, value in text.items()}
    # The checkpoint's VAE has its statistics folded in.
    return state | {"latents.mean": torch.tensor(UPSTREAM_MEAN), "latents.scale": torch.tensor(UPSTREAM_STD)}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("vae", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--wait-for-vae", action="store_true")
    parser.add_argument("--steps", type=int, default=20000, help="of the whole plan: with --resume what is left of them is trained")
    parser.add_argument("--until", type=float, default=math.inf, help="end this many seconds after the program's start, if that is "
                        "earlier; another run then goes on")
    parser.add_argument("--capture-seconds", type=float, default=100, help="for compiling all sizes")
    parser.add_argument("--save-every", type=float, default=60, help="seconds between two saved states")
    parser.add_argument("--resume", type=Path, help="state.safetensors of an earlier run")
    parser.add_argument("--warm", type=Path, help="a checkpoint's folder to begin from")
    parser.add_argument("--hidden", type=int, default=896)
    parser.add_argument("--batches", type=int, default=400, help="in all banks together")
    parser.add_argument("--refresh", type=int, default=40, help="steps between new batches")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--free", type=float, default=0.35, help="share of clips of any colours and places, with an image")
    parser.add_argument("--bent", type=int, default=1, help="how many times as often as along straight ways objects bounce, spin, "
                        "grow, shrink and orbit")
    parser.add_argument("--rate", type=float, default=1e-3, help="of AdamW")
    parser.add_argument("--matrix-rate", type=float, default=2e-3, help="of Muon")
    parser.add_argument("--flat", type=float, default=0.5)
    parser.add_argument("--average", type=float, default=0.9995)
    parser.add_argument("--shift", type=float, default=3.0)
    parser.add_argument("--even-share", type=float, default=0.25, help="of times that are not shifted")
    parser.add_argument("--floor", type=float, default=0.3)
    parser.add_argument("--object-weight", type=float, default=1.0)
    parser.add_argument("--edge-weight", type=float, default=3.0)
    parser.add_argument("--sight", type=float, default=0.0, help="share of the channels' weights in the loss that goes by how much "
                        "an error in a channel changes the pixels; the rest is alike for all")
    parser.add_argument("--image-share", type=float, default=0.1, help="of the clips whose colours have names")
    parser.add_argument("--read-text", type=float, default=0.1, help="weight of the text reader's loss")
    parser.add_argument("--read-picture", type=float, default=0.1, help="weight of the picture reader's loss")
    parser.add_argument("--tap", type=int, default=3, help="block after which the picture is read")
    parser.add_argument("--own-share", type=float, default=0.0, help="of the steps that begin on the model's own ways (rollouts.py)")
    parser.add_argument("--own-from", type=float, default=0.0, help="part of the plan after which they do")
    parser.add_argument("--own-refresh", type=int, default=60, help="steps between new batches of own ways")
    parser.add_argument("--own-steps", type=int, default=20, help="of own ways; as is what follows, as served")
    parser.add_argument("--own-shift", type=float, default=5.0)
    parser.add_argument("--own-guidance", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small buckets, to try the program on a processor")
    return parser.parse_args()


class Clips:
    """Banks of encoded clips of every bucket, and of the model's own ways to some (--own-share), which are drawn anew while
    training goes on. They are empty until `fill`, so that graphs can be made of them before there is an autoencoder."""

    OWN_BATCHES = 2  # in the own bank of each bucket

    def __init__(self, writers, buckets, counts, options, ranks, device):
        self.writers, self.options, self.ranks, self.device = writers, options, ranks, device
        self.cuda = options.device == "cuda"
        self.draw = torch.compile(paint, dynamic=True) if self.cuda else paint
        self.banks = [Bank(bucket, count, device) for bucket, count in zip(buckets, counts)]
        self.own = [OwnBank(bucket, self.OWN_BATCHES, device, options) for bucket in buckets] if options.own_share else []
        # The first clips of each bucket are for its bank of own ways, when the model is there.
        self.kept = [[] for _ in self.own]

    def fill(self, vae, scaling):
        """scaling: the latents' mean and scale, or None where the first clips shall tell them."""
        self.vae = channels_last(load_vae(vae).to(self.device))
        self.mean, self.scale = (None, None) if scaling is None else scaling
        for _ in range(self.writers.filling):
            self.refresh()
        latents = self.banks[0].patches.float().unflatten(-1, (-1, 4)).transpose(-1, -2).flatten(0, -2)
        deviation = [round(value, 2) for value in latents.std(0).sort(descending=True).values.tolist()]
        print(f"{self.writers.filling} batches; channels' deviation {deviation}", flush=True)

    def encode(self, video):
        """Turns pixels into normalised latents."""
        with torch.autocast(self.options.device, torch.bfloat16, enabled=self.cuda):
            raw = torch.cat([self.vae.encode(part.contiguous(memory_format=torch.channels_last_3d))[0].float()
                             for part in video.split(32)])
        if self.mean is None:
            self.mean, self.scale = (self.ranks.first(value) for value in statistics(raw, self.options.floor))
        return (raw - self.mean.view(-1, 1, 1, 1)) / self.scale.view(-1, 1, 1, 1)

    def decode(self, latents, exact=False):
        """Turns normalised latents into pixels; exact: does not round to bf16."""
        raw = latents * self.scale.view(-1, 1, 1, 1) + self.mean.view(-1, 1, 1, 1)
        with torch.autocast(self.options.device, torch.bfloat16, enabled=self.cuda and not exact):
            return torch.cat([self.vae.decode(part.contiguous(memory_format=torch.channels_last_3d)).float()
                              for part in raw.split(8)])

    def sight(self, clips=8):
        """Sets the weights of the latents' channels by how much of them is visible (latents.py)."""
        bucket, patches = self.banks[0].bucket, self.banks[0].patches[:clips]
        shape = (len(patches), LATENT_CHANNELS, bucket.latent[0], bucket.height // 16, bucket.width // 16)
        latents = to_latents(patches.float(), shape)
        # Be exact, because rounding to bf16 would change more than most channels do.
        return self.ranks.first(visibility(partial(self.decode, exact=True), latents))

    def refresh(self, wait=True):
        """Puts another batch of true clips into its bank, if one has been written."""
        taken = self.writers.take(wait)
        if taken:
            which, arrays = taken
            self.banks[which].put(arrays, self.draw, self.encode, self.options)
            if self.own and len(self.kept[which]) < self.OWN_BATCHES:
                self.kept[which].append(arrays)

    def fill_own(self, trainer):
        for which, kept in enumerate(self.kept):
            moved = [round(float(self.refresh_own(trainer, which, arrays)), 2) for arrays in kept]
            print(f"own ways of {self.own[which].bucket.frame}: moved by {moved} pixels", flush=True)

    def refresh_own(self, trainer, which, arrays):
        """Another batch of own ways, by the averaged weights. Returns by how many pixels clips were moved, in the mean."""
        with trainer.averaged_weights(), torch.autocast(self.options.device, torch.bfloat16, enabled=self.cuda):
            off = self.own[which].put_own(arrays, self.draw, self.encode, self.decode, trainer.model, trainer.nulls,
                                          trainer.tables[which], self.options)
        return off.abs().mean()


def main():
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    begin = time.monotonic()
    ranks = Ranks()
    buckets = divided(TINY_BUCKETS if options.tiny else BUCKETS, ranks.count)
    counts = [max(2, round(options.batches * bucket.share)) for bucket in buckets]
    state = load_file(options.resume) if options.resume else from_checkpoint(options.warm) if options.warm else None
    # What earlier runs of the plan did: the number of steps, which decides what this run draws, and the seconds.
    done, earlier = (int(state.get("steps", 0)), float(state.get("seconds", 0))) if state else (0, 0.0)
    writers = Writers(buckets, counts, options.tokenizer, options.seed + 7 + done + 100 * ranks.rank, options)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())  # after the writers, who end by it
    device = ranks.device(options.device)
    cuda = options.device == "cuda"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch._dynamo.config.suppress_errors = True  # slower then, but a lent machine's minutes are not lost
    tokenizer = Tokenizer(options.tokenizer)
    scaling = state and tuple(state[f"latents.{name}"].to(device) for name in ("mean", "scale"))
    clips = Clips(writers, buckets, counts, options, ranks, device)
    nulls = tokenizer(["", UPSTREAM_NEGATIVE]).to(device)
    model = Model(len(tokenizer), options.hidden).to(device)
    trainer = Trainer(model, clips.banks + clips.own, nulls, options, ranks)
    if state:
        trainer.resume(state)
    torch.manual_seed(options.seed + done + 1000 * (1 + ranks.rank))  # each rank draws batches of its own
    log = (options.output / "video.jsonl").open("a") if ranks.rank == 0 else None
    if cuda:
        trainer.capture()
        print(json.dumps(trainer.time_of_each()), flush=True)
        print(f"graphs after {time.monotonic() - begin:.0f} s", flush=True)
    while options.wait_for_vae and not options.vae.exists():
        time.sleep(0.2)
    clips.fill(options.vae, scaling)
    if options.sight:
        # One measurement for the whole plan: other clips and other noise give somewhat other weights.
        sight = state["sight"].to(device) if state and "sight" in state else clips.sight()
        print(f"channels in the pixels: {[round(value, 2) for value in sight.sort(descending=True).values.tolist()]}", flush=True)
        trainer.channels.copy_(1 - options.sight + options.sight * sight)
    ready = time.monotonic() - begin
    print(f"ready after {ready:.0f} s", flush=True)
    left = ranks.agree(options.until - ready)
    warm = time.monotonic()
    trainer.steps = trainer.first = done  # not those in which the graphs were made
    spent = saved = 0.0

    def save():
        """Saves both files. They appear whole, because another process may read them at any moment."""
        scaling = {"latents.mean": clips.mean, "latents.scale": clips.scale}
        resumable = trainer.state(earlier + spent) | ({"sight": sight} if options.sight else {})
        for name, tensors in (("state", resumable), ("video", trainer.averaged())):
            save_file({key: value.contiguous() for key, value in (tensors | scaling).items()}, options.output / f"{name}.part")
            (options.output / f"{name}.part").rename(options.output / f"{name}.safetensors")

    every, look = (500, 50) if cuda else (2, 1)
    going = left > 0
    while going and trainer.steps < options.steps:
        part = trainer.steps / options.steps
        trainer.step(part)
        if options.refresh and trainer.steps % options.refresh == 0:
            clips.refresh(wait=False)
        if clips.own and part >= options.own_from:
            if not trainer.own_share:
                clips.fill_own(trainer)
                trainer.own_share = options.own_share
            elif trainer.steps % options.own_refresh == 0:
                clips.refresh_own(trainer, *writers.take())
        # The graphs are queued faster than they run; the clock, which is the first rank's, must not run ahead of them.
        if trainer.steps % look == 0:
            if cuda:
                torch.cuda.synchronize()
            spent = ranks.agree(time.monotonic() - warm)
            going = ranks.agree(spent < left and not ended.is_set())
        if ranks.rank > 0:
            continue
        if going and spent - saved >= options.save_every:
            save()
            saved = spent
        if trainer.steps % every == 0:
            losses = trainer.losses.tolist()
            line = {"step": trainer.steps, "seconds": round(earlier + spent, 1),
                    "loss": round(losses[0][0], 4), "losses": [round(loss[0], 4) for loss in losses],
                    "read_text": round(losses[0][1], 3), "read_picture": round(losses[0][2], 3),
                    "gradient": round(trainer.update.norm.item(), 3), "ms": round(1000 * spent / (trainer.steps - done), 2)}
            print(json.dumps(line), flush=True)
            log.write(json.dumps(line) + "\n")
            log.flush()
    if ranks.rank == 0:
        save()
    writers.stop()
    ranks.end()


if __name__ == "__main__":
    main()
