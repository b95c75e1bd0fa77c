"""The UMT5 encoder, under upstream's parameter names."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

BUCKETS, FURTHEST = 32, 128


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6).to(x.dtype) * self.weight


def relative_buckets(length, device):
    """Returns [length, length]: the bucket of key - query; half of the buckets for each direction, far distances share one."""
    place = torch.arange(length, device=device)
    distance = place[None, :] - place[:, None]
    half, exact = BUCKETS // 2, BUCKETS // 4
    size = distance.abs()
    far = exact + (torch.log(size.clamp(min=1).float() / exact) / math.log(FURTHEST / exact) * (half - exact)).long()
    return (distance > 0).long() * half + torch.where(size < exact, size, far.clamp(max=half - 1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, bias):
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        # Unlike other transformers, T5 does not divide by the square root of the head's width.
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), scale=1.0)
        return self.o(out.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(width, hidden, bias=False), nn.GELU(approximate="tanh"))
        self.fc1 = nn.Linear(width, hidden, bias=False)
        self.fc2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.fc2(self.fc1(x) * self.gate(x))


class Positions(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.embedding = nn.Embedding(BUCKETS, heads)


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norm1 = RmsNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = RmsNorm(width)
        self.ffn = FeedForward(width, hidden)
        self.pos_embedding = Positions(heads)

    def forward(self, x, buckets, mask):
        bias = self.pos_embedding.embedding(buckets).permute(2, 0, 1).unsqueeze(0) + mask
        x = x + self.attn(self.norm1(x), bias)
        return x + self.ffn(self.norm2(x))


class TextEncoder(nn.Module):
    """Turns token ids [B, L] into hidden states [B, L, width]; both are 0 for padding."""

    def __init__(self, vocabulary, width=128, heads=4, hidden=320, layers=2):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
        self.norm = RmsNorm(width)
        nn.init.normal_(self.token_embedding.weight, std=1.0)
        for block in self.blocks:
            nn.init.normal_(block.attn.q.weight, std=(width * width / heads) ** -0.5)
            for layer in (block.attn.k, block.attn.v, block.attn.o, block.ffn.gate[0], block.ffn.fc1):
                nn.init.normal_(layer.weight, std=width ** -0.5)
            nn.init.normal_(block.ffn.fc2.weight, std=hidden ** -0.5)
            nn.init.normal_(block.pos_embedding.embedding.weight, std=0.1)

    def forward(self, ids):
        real = ids != 0
        mask = torch.zeros(ids.shape, device=ids.device).masked_fill(~real, -1e4)[:, None, None, :]
        x = self.token_embedding(ids)
        buckets = relative_buckets(ids.shape[1], ids.device)
        for block in self.blocks:
            x = block(x, buckets, mask)
        return self.norm(x) * real.unsqueeze(-1)
