"""The Wan2.2 TI2V transformer, under upstream's parameter names.

Two things differ from upstream's code and not in the result. The timestep is given per latent frame, not per
token: image to video, the only use of more than one, sets it to 0 for the first frame. And the text's 512 rows,
zeros after its end, are not computed one by one: all padded rows have the same key and value, so one row stands
for them with the logarithm of their number added to its score.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from vae import LATENT_CHANNELS

PATCH = (1, 2, 2)
TEXT_ROWS = 512
FREQUENCIES = 256


def rotary_table(frames, rows, columns, head_width, device):
    """Returns [tokens, head_width / 2] complex: the first part has the angles of time, two equal parts those of rows and columns."""
    pairs = head_width // 2
    sixth = head_width // 6
    parts = []
    for length, count in ((frames, pairs - 2 * sixth), (rows, sixth), (columns, sixth)):
        speeds = 10000.0 ** (-torch.arange(count, dtype=torch.float64, device=device) / count)
        parts.append(torch.outer(torch.arange(length, dtype=torch.float64, device=device), speeds))
    time, height, width = parts
    shape = (frames, rows, columns, -1)
    angles = torch.cat([time[:, None, None].expand(shape), height[None, :, None].expand(shape),
                        width[None, None].expand(shape)], -1).reshape(frames * rows * columns, pairs)
    return angles.cos().float(), angles.sin().float()


def rotate(x, table):
    """Rotates neighbouring pairs of x [B, L, heads, head_width]."""
    cos, sin = (part[None, :, None, :].to(x.dtype) for part in table)
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def to_patches(latents):
    """Turns latents [B, 48, F, H, W] into patches [B, F, H/2 * W/2, 192]; each patch becomes one token."""
    batch, channels, frames, height, width = latents.shape
    patches = latents.view(batch, channels, frames, height // 2, 2, width // 2, 2).permute(0, 2, 3, 5, 1, 4, 6)
    return patches.reshape(batch, frames, height // 2 * (width // 2), channels * 4)


def to_latents(patches, shape):
    """The inverse of `to_patches`: turns [B, F, H/2 * W/2, 192] into latents of `shape` [B, 48, F, H, W]."""
    batch, channels, frames, height, width = shape
    patches = patches.view(batch, frames, height // 2, width // 2, channels, 2, 2).permute(0, 4, 1, 2, 5, 3, 6)
    return patches.reshape(shape)


def as_patches(out):
    """Puts the head's output [B, F, S, 192], in which a patch's channels come last, into the order of `to_patches`."""
    return out.unflatten(-1, (4, -1)).transpose(-1, -2).flatten(-2)


def from_patches(out, shape):
    """Turns the head's output [B, F, S, 192] into latents of `shape` [B, 48, F, H, W]."""
    return to_latents(as_patches(out), shape)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return (x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight.to(x.dtype)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.norm_q, self.norm_k = RmsNorm(width), RmsNorm(width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1))

    def self_attention(self, x, table):
        q, k = rotate(self.split(self.norm_q(self.q(x))), table), rotate(self.split(self.norm_k(self.k(x))), table)
        q, k, v = (t.transpose(1, 2) for t in (q, k, self.split(self.v(x))))
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    def text_attention(self, x, text, bias):
        q, k, v = self.split(self.norm_q(self.q(x))), self.split(self.norm_k(self.k(text))), self.split(self.v(text))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5 + bias
        return self.o((scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2))


def modulate(x, shift, scale):
    """Layer norm without weights, then the timestep's shift and scale [B, F, 1, width]; x is [B, F, S, width]."""
    return F.layer_norm(x.float(), x.shape[-1:], eps=1e-6) * (1 + scale) + shift


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.self_attn = Attention(width, heads)
        self.norm3 = nn.LayerNorm(width, eps=1e-6)
        self.cross_attn = Attention(width, heads)
        self.ffn = nn.Sequential(nn.Linear(width, hidden), nn.GELU(approximate="tanh"), nn.Linear(hidden, width))
        self.modulation = nn.Parameter(torch.randn(1, 6, width) / width ** 0.5)

    def forward(self, x, time, text, bias, table):
        """x [B, F, S, width] fp32, time [B, F, 6, width], text [B, M, width]."""
        shape = x.shape
        e = [part.unsqueeze(2) for part in (self.modulation + time).unbind(2)]
        y = self.self_attn.self_attention(modulate(x, e[0], e[1]).flatten(1, 2), table)
        x = x + y.view(shape) * e[2]
        y = self.cross_attn.text_attention(self.norm3(x).flatten(1, 2), text, bias)
        x = x + y.view(shape)
        y = self.ffn(modulate(x, e[3], e[4]))
        return x + y * e[5]


class Head(nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.head = nn.Linear(width, outputs)
        self.modulation = nn.Parameter(torch.randn(1, 2, width) / width ** 0.5)

    def forward(self, x, time):
        shift, scale = (part.unsqueeze(2) for part in (self.modulation + time.unsqueeze(2)).unbind(2))
        return self.head(modulate(x, shift, scale))


class Transformer(nn.Module):
    """Computes the velocity (noise - latents) of noised latents.

    latents [B, 48, F, H, W]; timestep [B, F] in 0..1000, per latent frame; text [B, M, text_width], zero after
    `lengths` [B] rows; returns [B, 48, F, H, W].
    """

    HEADS = 4

    def __init__(self, width=256, heads=HEADS, hidden=896, layers=6, text_width=128):
        super().__init__()
        patch = LATENT_CHANNELS * math.prod(PATCH)
        self.heads, self.width = heads, width
        self.patch_embedding = nn.Conv3d(LATENT_CHANNELS, width, PATCH, PATCH)
        self.text_embedding = nn.Sequential(nn.Linear(text_width, width), nn.GELU(approximate="tanh"), nn.Linear(width, width))
        self.time_embedding = nn.Sequential(nn.Linear(FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))
        self.time_projection = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
        self.head = Head(width, patch)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.xavier_uniform_(self.patch_embedding.weight.flatten(1))
        nn.init.normal_(self.text_embedding[0].weight, std=0.02)
        nn.init.normal_(self.text_embedding[2].weight, std=0.02)
        nn.init.normal_(self.time_embedding[0].weight, std=0.02)
        nn.init.normal_(self.time_embedding[2].weight, std=0.02)
        nn.init.zeros_(self.head.head.weight)

    def forward(self, latents, timestep, text, lengths):
        table = self.table(latents.shape[2:], latents.device)
        return from_patches(self.tokens(to_patches(latents), timestep, text, lengths, table), latents.shape)

    def table(self, size, device):
        """Returns the rotary angles for latents of `size` (frames, height, width)."""
        frames, height, width = size
        return rotary_table(frames, height // 2, width // 2, self.width // self.heads, device)

    def tokens(self, patches, timestep, text, lengths, table, tap=None):
        """`forward` of patches [B, F, S, 192], for training: nothing in it knows how the S are arranged. With `tap` it
        returns also what the first `tap` blocks made of the tokens [B, F, S, width]."""
        x = F.linear(patches, self.patch_embedding.weight.flatten(1), self.patch_embedding.bias).float()

        half = FREQUENCIES // 2
        speeds = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
        angles = timestep.float().unsqueeze(-1) * speeds
        time = self.time_embedding(torch.cat([angles.cos(), angles.sin()], -1))
        projected = self.time_projection(time).float().unflatten(-1, (6, -1))

        # one row stands for all padding, after the text's rows
        text = self.text_embedding(F.pad(text, (0, 0, 0, 1)))
        place = torch.arange(text.shape[1], device=text.device)
        bias = torch.where(place[None] < lengths[:, None], 0.0, -1e4)
        bias[:, -1] = torch.log((TEXT_ROWS - lengths).float())
        bias = bias[:, None, None, :]

        tapped = None
        for index, block in enumerate(self.blocks):
            x = block(x, projected, text, bias, table)
            if index + 1 == tap:
                tapped = x
        out = self.head(x, time.float()).float()
        return out if tap is None else (out, tapped)
