"""Clips that the model makes itself during training, with the true clips that they should have become.

Flow matching shows the model only states on straight ways from noise to true clips. At service it walks by its own steps, and
what it does a little wrong it then takes for true: an outline that became lumpy stays so. So a part of the steps begins from
states on the model's own ways, and leads to the true clip (as DAgger, Ross et al., 2011, for policies). Which clip that is, a
caption tells but for a shift of a few pixels (world.py), which is read from what the model made; with an image, nothing is open.
"""

import torch
import torch.nn.functional as F

from buckets import Bank
from sampling import timesteps
from transformer import as_patches, to_latents, to_patches


@torch.no_grad()
def own_way(transformer, text, null, first, given, noise, levels, guidance, table):
    """Generates clips from `noise` [B, F, S, 192] as the server does, by guided steps of second order (Adams-Bashforth)
    between `levels`. `first` [B, 1, S, 192] replaces the first frame where `given` [B]. Returns the states before all steps
    [B, steps, F, S, 192] and the end of the way."""
    rows, lengths = text
    batch = rows.shape[0]
    null_rows = F.pad(null[0], (0, 0, 0, rows.shape[1] - null[0].shape[1])).expand(batch, -1, -1)
    both = torch.cat([rows, null_rows]), torch.cat([lengths, null[1].expand(batch)])
    clean = given.view(-1, 1, 1, 1) & (torch.arange(noise.shape[1], device=noise.device) == 0).view(1, -1, 1, 1)
    x = torch.where(clean, first, noise)
    states, before, last = [], None, 0.0
    for now, following in zip(levels[:-1], levels[1:]):
        states.append(x.bfloat16())
        when = torch.where(clean.view(batch, -1), 0.0, 1000 * now)
        out = transformer.tokens(torch.cat([x, x]), torch.cat([when, when]), *both, table)
        conditional, unconditional = as_patches(out).chunk(2)
        velocity = unconditional + guidance * (conditional - unconditional)
        step = following - now
        change = velocity if before is None else velocity + step / (2 * last) * (velocity - before)
        x = torch.where(clean, first, x + step * change)
        before, last = velocity, step
    return torch.stack(states, 1), x


def _places(masks):
    """Returns area [B, N, T] and centre [B, N, T, 2] (x, y) of the pixels above a half in masks [B, N, T, H, W]."""
    solid = (masks > 0.5).float()
    area = solid.sum((-1, -2))
    columns = torch.arange(masks.shape[-1], device=masks.device) + 0.5
    rows = torch.arange(masks.shape[-2], device=masks.device) + 0.5
    middle = torch.stack([(solid.sum(-2) * columns).sum(-1), (solid.sum(-1) * rows).sum(-1)], -1)
    return area, middle / area.clamp(min=1).unsqueeze(-1)


def shifts(on, made, masks, bucket):
    """By how many pixels (x, y) [B, 2, 2] each object of the scenes `on` stands elsewhere in the pixels `made`: the median over
    the frames in which something of its colour and of about its size is there, and no more than two drawn scenes can differ."""
    colours = torch.stack([on["paint"][:, i] - on["ground"] for i in range(2)], 1)[..., None, None, None] / 127.5
    above = made - (on["ground"] / 127.5 - 1)[:, :, None, None, None]
    seen = torch.stack([(above * colour).sum(1) / colour.square().sum(1).clamp(min=1e-3) for colour in colours.unbind(1)], 1)
    # If there are two objects, each stays in its half.
    two = (on["radius"][:, 1, :1] > 0).view(-1, 1, 1, 1, 1)
    left = (on["x"].mean(-1) < bucket.width / 2).view(-1, 2, 1, 1, 1)
    left_half = (torch.arange(bucket.width, device=made.device) < bucket.width / 2).view(1, 1, 1, 1, -1)
    seen = torch.where(two & (left != left_half), torch.zeros_like(seen), seen)
    area, middle = _places(seen)
    true_area, true_middle = _places(masks)
    alike = (area > 0.5 * true_area) & (area < 2 * true_area) & (true_area > 0)
    off = torch.where(alike.unsqueeze(-1), middle - true_middle, torch.full_like(middle, float("nan")))
    off = off.nanmedian(2).values.nan_to_num(0.0)
    most = off.new_tensor([8 * bucket.width / 256, 8 * bucket.height / 256])
    most = torch.where(two.view(-1, 1, 1), most * most.new_tensor([0.5, 1.0]), most)
    return torch.minimum(torch.maximum(off, -most), most)


class OwnBank(Bank):
    """The states on the model's own ways to clips of one bucket, and the true clips."""

    variants = 1  # the caption that says everything, because the true clip has decided what another one leaves open

    def __init__(self, bucket, batches, device, options):
        super().__init__(bucket, batches, device)
        self.levels = timesteps(options.own_steps, options.own_shift).tolist()
        frames, tokens = bucket.latent
        self.way = torch.zeros(self.size, options.own_steps, frames, tokens, 192, dtype=torch.bfloat16, device=device)
        self.given = torch.zeros(self.size, dtype=torch.bool, device=device)
        self.level = torch.tensor(self.levels[:-1], device=device)

    def states(self, index, patches, options):
        step = torch.randint(len(self.level), (len(index),), device=self.device)
        t = self.level[step].view(-1, 1, 1, 1)
        state = self.way[index, step].float()
        return state, t, (state - patches) / t, self.given[index]

    def trust(self, t):
        """Returns the weight of a step: late on a way, an error of a clip is a large velocity."""
        return (2 * t).clamp(max=1).square()

    @torch.no_grad()
    def put_own(self, arrays, draw, encode, decode, model, nulls, table, options):
        """Replaces the oldest batch by clips that the model makes now. decode: turns normalised latents into pixels."""
        bucket = self.bucket
        on = self.arrays_on_device(arrays)
        video, masks = self.render(on, draw)
        given = on["free"] | (torch.rand(bucket.batch, device=self.device) < options.image_share)
        text = model.encode(on["ids"][:, 0].long())
        # The latents of an image are those of the first frame alone.
        first = to_patches(encode(video[:, :, :1]))
        noise = torch.randn(bucket.batch, *self.patches.shape[1:], device=self.device)
        # The negative prompt is the default one, which users send without knowing; it is the second of `nulls`.
        way, end = own_way(model.transformer, text, model.encode(nulls[1:2]), first, given, noise, self.levels,
                           options.own_guidance, table)
        shape = (bucket.batch, 48, bucket.latent[0], bucket.height // 16, bucket.width // 16)
        off = shifts(on, decode(to_latents(end, shape)), masks, bucket) * ~given.view(-1, 1, 1)
        on["x"], on["y"] = (on[name] + off[..., axis].unsqueeze(-1) for axis, name in enumerate(("x", "y")))
        rows = self.store(on, *self.render(on, draw), encode, options)
        self.way[rows], self.given[rows] = way, given
        return off
