"""The sizes of clips that training mixes, and clips of each, encoded and captioned, on the device."""

import multiprocessing
import queue
import random
from dataclasses import dataclass, replace

import numpy
import sentencepiece
import torch
import torch.nn.functional as F

from captions import Captioner, describe
from transformer import to_patches
from world import COLOURS, MOTIONS, SHAPES, SceneSampler

TEXT_TOKENS = 79  # longer than nearly any caption; one more row, which stands for padding, makes 80
VARIANTS = 6  # captions written for each clip; the first one says everything about the clip
BATCH_TOKENS = 128 * 576  # tokens of the transformer in a step, over all GPUs
# Stars and crosses have the longest outlines and are learnt last, so they are drawn more often.
DRAWN_SHAPES = [SHAPES.index(shape) for shape, times in
                {"circle": 2, "square": 2, "triangle": 3, "star": 4, "heart": 3, "cross": 3}.items() for _ in range(times)]
# The motions in which an object moves straight and stays as it is; all others, with --bent, are drawn more often than these.
STRAIGHT = ("left", "right", "up", "down")
# What a reader (train_video.py) says about an object, and how many values each has.
LABELS = {"shape": len(SHAPES), "colour": len(COLOURS), "motion": len(MOTIONS)}


@dataclass(frozen=True)
class Bucket:
    frames: int
    height: int
    width: int
    share: float  # share of the steps
    batch_tokens: int = BATCH_TOKENS

    @property
    def latent(self):
        """Returns the number of latent frames, and of tokens in each."""
        return (self.frames + 3) // 4, self.height // 32 * (self.width // 32)

    @property
    def batch(self):
        latent_frames, tokens = self.latent
        return self.batch_tokens // (latent_frames * tokens)

    @property
    def frame(self):
        return self.frames, self.height, self.width


BUCKETS = [
    Bucket(33, 256, 256, 0.18),
    Bucket(65, 256, 256, 0.07),
    Bucket(17, 256, 256, 0.06),
    Bucket(5, 256, 256, 0.03),
    Bucket(33, 256, 384, 0.08),
    Bucket(33, 384, 256, 0.06),
    Bucket(33, 192, 192, 0.12),
    Bucket(33, 320, 512, 0.08),
    Bucket(33, 384, 384, 0.04),
    Bucket(33, 512, 320, 0.03),
    Bucket(33, 512, 512, 0.19),
    Bucket(17, 512, 256, 0.03),
    Bucket(65, 192, 320, 0.03),
]
# Small sizes with which the whole program runs in seconds on a CPU.
TINY_BUCKETS = [Bucket(5, 192, 192, 0.6, 576), Bucket(9, 192, 256, 0.4, 864)]


def divided(buckets, parts):
    """Returns the buckets with the batches for one of `parts` GPUs, which train a step together."""
    return [replace(bucket, batch_tokens=bucket.batch_tokens // parts) for bucket in buckets]


class Tokenizer:
    def __init__(self, path):
        self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def __len__(self):
        return self.model.vocab_size()

    def __call__(self, texts):
        rows = [ids[:TEXT_TOKENS - 1] + [1] for ids in self.model.encode(texts)]
        return torch.tensor([ids + [0] * (TEXT_TOKENS - len(ids)) for ids in rows])

    def marked(self, marked):
        """Returns the ids of captions with marks (captions.py), and for each token 1 or 2 if it is about that object, else 0."""
        owners = []
        texts = [text for text, _ in marked]
        for pieces, (_, spans) in zip(self.model.encode(texts, out_type=str), marked):
            owner, end = [], -1  # a piece begins with the space before its word, and the first with one that is not there
            for piece in pieces[:TEXT_TOKENS - 1]:
                begin, end = end, end + len(piece)
                owner.append(next((1 + i for i, span in enumerate(spans) if begin + 1 < span[1] and end > span[0]), 0))
            owners.append(owner + [0] * (TEXT_TOKENS - len(owner)))
        return self(texts), torch.tensor(owners, dtype=torch.uint8)


def write_clips(bucket, sampler, captioner, tokenizer, free):
    """Returns the scenes of one batch with captions: everything except pixels, as arrays by name."""
    scenes = sampler.sample(bucket.batch, frame=bucket.frame, free=free)
    plain = [describe(scenes, row) for row in range(bucket.batch)]
    ids, owner = tokenizer.marked([captioner.marked(scene, whole=variant == 0, anywhere=bool(anywhere))
                                   for scene, anywhere in zip(plain, scenes.free) for variant in range(VARIANTS)])
    arrays = {name: value.numpy() for name, value in vars(scenes).items() if torch.is_tensor(value)}
    shape = (bucket.batch, VARIANTS, TEXT_TOKENS)
    return arrays | {"ids": ids.view(shape).numpy().astype(numpy.int16), "text_owner": owner.view(shape).numpy()}


def _work(out, buckets, tokenizer, options, seed, first):
    """What a worker does: it makes the batches that fill the banks, then batches of any bucket."""
    torch.set_num_threads(1)
    tokenizer = Tokenizer(tokenizer)
    motions = [index for index, motion in enumerate(MOTIONS) for _ in range(1 if motion in STRAIGHT else options.bent)]
    sampler = SceneSampler("cpu", seed, 0.5, DRAWN_SHAPES, motions)
    captioner, chance = Captioner(seed, numbers=True), random.Random(seed)
    shares = [bucket.share for bucket in buckets]
    while True:
        index = first.pop() if first else chance.choices(range(len(buckets)), shares)[0]
        out.put((index, write_clips(buckets[index], sampler, captioner, tokenizer, options.free)))


class Writers:
    """Processes that write clips ahead. Make it before the device is used, because the processes are forks."""

    def __init__(self, buckets, batches, tokenizer, seed, options):
        """options: --free, --bent and --workers of train_video.py."""
        context = multiprocessing.get_context("fork")
        first = [index for index, count in enumerate(batches) for _ in range(count)]
        random.Random(seed).shuffle(first)
        self.filling = len(first)
        # All batches that fill the banks may be written before anybody takes them.
        self.out = context.Queue(max(8 * options.workers, len(first)))
        self.processes = [
            context.Process(target=_work, daemon=True,
                            args=(self.out, buckets, tokenizer, options, 1000 * seed + n, first[n::options.workers]))
            for n in range(options.workers)]
        for process in self.processes:
            process.start()

    def take(self, wait=True):
        """Returns (index of the bucket, arrays), or None if no batch is ready."""
        try:
            return self.out.get(block=wait)
        except queue.Empty:
            return None

    def stop(self):
        for process in self.processes:
            process.terminate()


def by_latent(pool, masks, rows, columns):
    """Pools masks [B, N, T, H, W] to the latents' frames, (T + 3) / 4, and to rows x columns."""
    first = pool(masks[:, :, :1], (1, rows, columns))
    if masks.shape[2] == 1:
        return first
    return torch.cat([first, pool(masks[:, :, 1:], ((masks.shape[2] - 1) // 4, rows, columns))], 2)


def noise_levels(batch, options, device):
    """Returns times in 0..1: most are shifted towards noise, the others are even, because outlines are decided late."""
    t = torch.rand(batch, device=device)
    shifted = options.shift * t / (1 + (options.shift - 1) * t)
    return torch.where(torch.rand(batch, device=device) < options.even_share, t, shifted)


class Bank:
    """Encoded clips of one bucket with captions, all on the device."""

    variants = VARIANTS  # number of captions that a step draws from

    def __init__(self, bucket, batches, device):
        size = bucket.batch * batches
        self.bucket, self.device, self.size, self.next = bucket, device, size, 0
        frames, tokens = bucket.latent
        self.patches = torch.zeros(size, frames, tokens, 192, dtype=torch.bfloat16, device=device)
        # The weights of the loss minus 1, for the latents of each token.
        self.weight = torch.zeros(size, frames, tokens, 4, dtype=torch.bfloat16, device=device)
        # Until clips are put in, all captions are empty: they end at once.
        self.ids = torch.zeros(size, VARIANTS, TEXT_TOKENS, dtype=torch.int16, device=device)
        self.ids[..., 0] = 1
        # What is where: the object of each token of the picture and of the text (0: none), the objects' labels.
        self.owner = torch.zeros(size, frames, tokens, dtype=torch.uint8, device=device)
        self.text_owner = torch.zeros(size, VARIANTS, TEXT_TOKENS, dtype=torch.uint8, device=device)
        self.labels = torch.zeros(size, 2, len(LABELS), dtype=torch.long, device=device)
        self.free = torch.zeros(size, dtype=torch.bool, device=device)

    def states(self, index, patches, options):
        """What a step on the clips `index`, whose latents are `patches`, begins from: states on the straight way from noise
        to the clips, t [B, 1, 1, 1], the velocity that is wanted there, and which of them have their first frame given."""
        t = noise_levels(len(index), options, self.device).view(-1, 1, 1, 1)
        # A scene that only an image can tell always begins with an image.
        given = self.free[index] | (torch.rand(len(index), device=self.device) < options.image_share)
        noise = torch.randn_like(patches)
        return (1 - t) * patches + t * noise, t, noise - patches, given

    def trust(self, t):
        """Returns the weight of a step at the time t."""
        return torch.ones_like(t)

    def arrays_on_device(self, arrays):
        return {name: torch.from_numpy(value).to(self.device, non_blocking=True) for name, value in arrays.items()}

    def render(self, on, draw):
        bucket = self.bucket
        tracks = tuple(on[name] for name in ("x", "y", "radius", "angle"))
        return draw(on["shape"], on["paint"], on["ground"], tracks, 0, bucket.frames, None, None, bucket.height, bucket.width)

    @torch.no_grad()
    def put(self, arrays, draw, encode, options):
        """Replaces the oldest batch. draw: `paint`; encode: pixels to normalised latents."""
        on = self.arrays_on_device(arrays)
        self.store(on, *self.render(on, draw), encode, options)

    def store(self, on, video, masks, encode, options):
        """`put` of scenes that are on the device and rendered already; returns the rows that they took."""
        bucket = self.bucket
        rows = slice(self.next, self.next + bucket.batch)
        self.patches[rows] = to_patches(encode(video)).bfloat16()
        height, width = bucket.height // 16, bucket.width // 16
        anything = masks.amax(1, keepdim=True)
        most = by_latent(F.adaptive_max_pool3d, anything, height, width)
        # Edges are where the least and the most of a latent's pixels differ.
        edge = most + by_latent(F.adaptive_max_pool3d, 1 - anything, height, width) - 1
        weight = options.object_weight * most + options.edge_weight * edge.clamp(min=0)
        weight = weight.squeeze(1).unflatten(-1, (-1, 2)).unflatten(2, (-1, 2)).transpose(3, 4)
        self.weight[rows] = weight.flatten(4).flatten(2, 3).bfloat16()
        covered, owner = by_latent(F.adaptive_avg_pool3d, masks, height // 2, width // 2).max(1)
        self.owner[rows] = ((owner + 1) * (covered > 0.15)).flatten(2).byte()
        self.labels[rows] = torch.stack([on[name] for name in LABELS], -1)
        for name in ("ids", "text_owner", "free"):
            getattr(self, name)[rows] = on[name]
        self.next = (self.next + bucket.batch) % self.size
        return rows
