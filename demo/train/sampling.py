"""Generates clips as the server does, with Euler steps: for looking at a model while it is trained."""

import torch
import torch.nn.functional as F


def timesteps(steps, shift):
    """Returns the noise levels from 1 to 0 [steps + 1], shifted towards noise."""
    t = torch.linspace(1, 0, steps + 1)
    return shift * t / (1 + (shift - 1) * t)


@torch.no_grad()
def sample(transformer, text, null, first, steps, shift, guidance, shape, generator=None):
    """Latents [B, *shape]. text: (rows [B, L, D], lengths [B]) of the prompts; null: the same of nothing
    (or of a negative prompt); first: latents [B, 48, 1, H, W] of a first frame that is given, or None."""
    rows, lengths = text
    batch, device = rows.shape[0], rows.device
    x = torch.randn(batch, *shape, device=device, generator=generator)
    if first is not None:
        x[:, :, :1] = first
    null_rows = F.pad(null[0], (0, 0, 0, rows.shape[1] - null[0].shape[1])).expand(batch, -1, -1)
    both = torch.cat([rows, null_rows]), torch.cat([lengths, null[1].expand(batch)])
    levels = timesteps(steps, shift).to(device)
    for now, following in zip(levels[:-1], levels[1:]):
        when = (now * 1000).expand(2 * batch, shape[1]).clone()
        if first is not None:
            when[:, 0] = 0
        conditional, unconditional = transformer(torch.cat([x, x]), when, *both).chunk(2)
        velocity = unconditional + guidance * (conditional - unconditional)
        x = x + (following - now) * velocity
        if first is not None:
            x[:, :, :1] = first
    return x
