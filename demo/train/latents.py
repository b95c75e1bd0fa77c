"""Converts between the VAE's latents and the transformer's: by a mean and a scale for each channel.

Upstream keeps its statistics in its code, so a checkpoint in its layout cannot bring its own. `fold` therefore
changes the VAE's two 1x1x1 convolutions such that upstream's statistics become right for it: an exact change,
because both convolutions are linear.
"""

import torch

# wan/modules/vae2_2.py at upstream's commit 42bf4cf
UPSTREAM_MEAN = [
    -0.2289, -0.0052, -0.1323, -0.2339, -0.2799, 0.0174, 0.1838, 0.1557, -0.1382, 0.0542, 0.2813, 0.0891,
    0.1570, -0.0098, 0.0375, -0.1825, -0.2246, -0.1207, -0.0698, 0.5109, 0.2665, -0.2108, -0.2158, 0.2502,
    -0.2055, -0.0322, 0.1109, 0.1567, -0.0729, 0.0899, -0.2799, -0.1230, -0.0313, -0.1649, 0.0117, 0.0723,
    -0.2839, -0.2083, -0.0520, 0.3748, 0.0152, 0.1957, 0.1433, -0.2944, 0.3573, -0.0548, -0.1681, -0.0667]
UPSTREAM_STD = [
    0.4765, 1.0364, 0.4514, 1.1677, 0.5313, 0.4990, 0.4818, 0.5013, 0.8158, 1.0344, 0.5894, 1.0901,
    0.6885, 0.6165, 0.8454, 0.4978, 0.5759, 0.3523, 0.7135, 0.6804, 0.5833, 1.4146, 0.8986, 0.5659,
    0.7069, 0.5338, 0.4889, 0.4917, 0.4069, 0.4999, 0.6866, 0.4093, 0.5709, 0.6065, 0.6415, 0.4944,
    0.5726, 1.2042, 0.5458, 1.6887, 0.3971, 1.0600, 0.3943, 0.5537, 0.5444, 0.4089, 0.7468, 0.7744]


def statistics(latents, floor):
    """Mean and scale [48] of latents [N, 48, ...]. A channel that says little is not blown up to unit variance:
    no scale is below `floor` times the largest."""
    flat = latents.float().transpose(0, 1).flatten(1)
    deviation = flat.std(1)
    return flat.mean(1), deviation.clamp(min=floor * float(deviation.max()))


@torch.no_grad()
def visibility(decode, latents, error=0.2):
    """How much the same error in each channel of latents [N, 48, ...] changes the pixels that `decode` makes of them (mean
    square), 1 in the mean [48]. A loss takes all channels for alike, but a few make nearly all of a picture."""
    right, changes = decode(latents), []
    for channel in range(latents.shape[1]):
        wrong = latents.clone()
        wrong[:, channel] += error * torch.randn_like(wrong[:, channel])
        changes.append((decode(wrong) - right).square().mean())
    changes = torch.stack(changes)
    return changes / changes.mean()


def fold(weights, mean, scale):
    """Returns the VAE's state dict, changed so that upstream, with its own statistics, computes (latents - mean) / scale."""
    device = mean.device
    upstream_mean = torch.tensor(UPSTREAM_MEAN, device=device)
    gain = torch.tensor(UPSTREAM_STD, device=device) / scale
    offset = upstream_mean - gain * mean
    folded = dict(weights)
    channels = len(UPSTREAM_MEAN)
    out_weight, out_bias = weights["conv1.weight"].clone(), weights["conv1.bias"].clone()
    out_weight[:channels] *= gain.view(-1, 1, 1, 1, 1)
    out_bias[:channels] = out_bias[:channels] * gain + offset
    # The rows of the log variance, which the server does not read, stay correct as well.
    out_bias[channels:] += 2 * gain.log()
    in_weight = weights["conv2.weight"] / gain.view(1, -1, 1, 1, 1)
    folded["conv1.weight"], folded["conv1.bias"] = out_weight, out_bias
    folded["conv2.weight"] = in_weight
    folded["conv2.bias"] = weights["conv2.bias"] - (in_weight[:, :, 0, 0, 0] @ offset)
    return folded
