"""The Wan2.2 VAE (16x16 pixels and 4 frames to one latent of 48 channels) for training.

Parameters carry upstream's names, so that a state dict is a `Wan2.2_VAE.pth`. Upstream runs its VAE frame by
frame through a cache of features; here a clip is taken at once, which gives the same numbers and trains in
parallel over time. What makes the two equal: every convolution is causal (padded in front only), and the first
frame passes the steps that halve or double time alone.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file

MULTIPLIERS = (1, 2, 4, 4)
TEMPORAL = (False, True, True)  # which of the encoder's steps down also halve the frames
LATENT_CHANNELS = 48


class CausalConv3d(nn.Conv3d):
    def __init__(self, inputs, outputs, kernel, stride=1):
        super().__init__(inputs, outputs, kernel, stride)
        t, h, w = self.kernel_size
        self.around = (w // 2, w // 2, h // 2, h // 2, t - 1, 0)

    def forward(self, x):
        return super().forward(F.pad(x, self.around) if any(self.around) else x)


class Norm(nn.Module):
    """Scales the channels of each position to the length sqrt(channels), times gamma."""

    def __init__(self, width, dims):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width, *(1,) * dims))

    def forward(self, x):
        square = x.float().square().mean(1, keepdim=True)
        return (x * torch.rsqrt(square + 1e-12) * self.gamma).to(x.dtype)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.residual = nn.Sequential(
            Norm(inputs, 3), nn.SiLU(), CausalConv3d(inputs, outputs, 3),
            Norm(outputs, 3), nn.SiLU(), nn.Dropout(0.0), CausalConv3d(outputs, outputs, 3))
        self.shortcut = CausalConv3d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x):
        return self.residual(x) + self.shortcut(x)


class AttentionBlock(nn.Module):
    """Attention with one head over the positions of each frame."""

    def __init__(self, width):
        super().__init__()
        self.norm = Norm(width, 2)
        self.to_qkv = nn.Conv2d(width, 3 * width, 1)
        self.proj = nn.Conv2d(width, width, 1)
        nn.init.zeros_(self.proj.weight)

    def forward(self, x):
        batch, width, frames, height, columns = x.shape
        flat = x.transpose(1, 2).reshape(batch * frames, width, height, columns)
        q, k, v = self.to_qkv(self.norm(flat)).flatten(2).transpose(1, 2).unsqueeze(1).chunk(3, dim=-1)
        out = F.scaled_dot_product_attention(q, k, v).squeeze(1).transpose(1, 2)
        out = self.proj(out.reshape(flat.shape))
        return x + out.view(batch, frames, width, height, columns).transpose(1, 2)


def _frames_apart(x):
    batch, width, frames, height, columns = x.shape
    return x.transpose(1, 2).reshape(batch * frames, width, height, columns)


def _frames_together(x, batch):
    return x.view(batch, -1, *x.shape[1:]).transpose(1, 2)


class Down(nn.Module):
    def __init__(self, width, temporal):
        super().__init__()
        self.resample = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(width, width, 3, stride=2))
        if temporal:
            self.time_conv = nn.Conv3d(width, width, (3, 1, 1), stride=(2, 1, 1))

    def forward(self, x):
        x = _frames_together(self.resample(_frames_apart(x)), x.shape[0])
        if not hasattr(self, "time_conv"):
            return x
        return torch.cat([x[:, :, :1], self.time_conv(x)], 2) if x.shape[2] > 1 else x


class Up(nn.Module):
    def __init__(self, width, temporal):
        super().__init__()
        self.resample = nn.Sequential(nn.Upsample(scale_factor=2.0, mode="nearest"), nn.Conv2d(width, width, 3, padding=1))
        if temporal:
            self.time_conv = CausalConv3d(width, 2 * width, (3, 1, 1))

    def forward(self, x):
        if hasattr(self, "time_conv") and x.shape[2] > 1:
            # Channels of the even frames first, then those of the odd ones. The zeros in front of the
            # second frame are upstream's: its cache starts empty after the first.
            even, odd = self.time_conv(x[:, :, 1:]).chunk(2, dim=1)
            x = torch.cat([x[:, :, :1], torch.stack((even, odd), 3).flatten(2, 3)], 2)
        return _frames_together(self.resample(_frames_apart(x)), x.shape[0])


def average_down(x, outputs, time, space):
    """The shortcut of a step down: turns blocks of time x space x space into channels, averaged in groups."""
    x = F.pad(x, (0, 0, 0, 0, (time - x.shape[2] % time) % time, 0))
    batch, width, frames, height, columns = x.shape
    x = x.view(batch, width, frames // time, time, height // space, space, columns // space, space)
    x = x.permute(0, 1, 3, 5, 7, 2, 4, 6).reshape(batch, outputs, -1, frames // time, height // space, columns // space)
    return x.mean(2)


def duplicate_up(x, outputs, time, space):
    """The shortcut of a step up: repeats channels and spreads them over blocks; the first frame stays one frame."""
    x = x.repeat_interleave(outputs * time * space * space // x.shape[1], dim=1)
    batch, _, frames, height, columns = x.shape
    x = x.view(batch, outputs, time, space, space, frames, height, columns).permute(0, 1, 5, 2, 6, 3, 7, 4)
    return x.reshape(batch, outputs, frames * time, height * space, columns * space)[:, :, time - 1:]


class DownStage(nn.Module):
    def __init__(self, inputs, outputs, down, temporal):
        super().__init__()
        layers = [ResidualBlock(inputs, outputs), ResidualBlock(outputs, outputs)]
        self.downsamples = nn.Sequential(*layers, *([Down(outputs, temporal)] if down else []))
        self.shortcut = (outputs, 2 if temporal else 1, 2 if down else 1)

    def forward(self, x):
        return self.downsamples(x) + average_down(x, *self.shortcut)


class UpStage(nn.Module):
    def __init__(self, inputs, outputs, up, temporal):
        super().__init__()
        layers = [ResidualBlock(inputs, outputs), ResidualBlock(outputs, outputs), ResidualBlock(outputs, outputs)]
        self.upsamples = nn.Sequential(*layers, *([Up(outputs, temporal)] if up else []))
        self.shortcut = (outputs, 2 if temporal else 1, 2) if up else None

    def forward(self, x):
        y = self.upsamples(x)
        return y + duplicate_up(x, *self.shortcut) if self.shortcut else y


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = CausalConv3d(12, width, 3)
        widths = [width, *(width * m for m in MULTIPLIERS)]
        stages = []
        for i in range(4):
            down = i < 3
            stages.append(DownStage(widths[i], widths[i + 1], down, down and TEMPORAL[i]))
        self.downsamples = nn.Sequential(*stages)
        last = widths[-1]
        self.middle = nn.Sequential(ResidualBlock(last, last), AttentionBlock(last), ResidualBlock(last, last))
        self.head = nn.Sequential(Norm(last, 3), nn.SiLU(), CausalConv3d(last, 2 * LATENT_CHANNELS, 3))

    def forward(self, x):
        return self.head(self.middle(self.downsamples(self.conv1(x))))


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        widths = [width * m for m in (MULTIPLIERS[-1], *reversed(MULTIPLIERS))]
        self.conv1 = CausalConv3d(LATENT_CHANNELS, widths[0], 3)
        self.middle = nn.Sequential(ResidualBlock(widths[0], widths[0]), AttentionBlock(widths[0]),
                                    ResidualBlock(widths[0], widths[0]))
        stages = []
        for i in range(4):
            up = i < 3
            stages.append(UpStage(widths[i], widths[i + 1], up, up and TEMPORAL[2 - i]))
        self.upsamples = nn.Sequential(*stages)
        self.head = nn.Sequential(Norm(widths[-1], 3), nn.SiLU(), CausalConv3d(widths[-1], 12, 3))

    def forward(self, z):
        return self.head(self.upsamples(self.middle(self.conv1(z))))


def patchify(x):
    """Turns pixels [B, 3, T, H, W] into [B, 12, T, H/2, W/2]; within a patch upstream counts columns first."""
    b, c, t, h, w = x.shape
    return x.view(b, c, t, h // 2, 2, w // 2, 2).permute(0, 1, 6, 4, 2, 3, 5).reshape(b, 4 * c, t, h // 2, w // 2)


def unpatchify(x):
    b, c, t, h, w = x.shape
    return x.view(b, c // 4, 2, 2, t, h, w).permute(0, 1, 4, 5, 3, 6, 2).reshape(b, c // 4, t, 2 * h, 2 * w)


class Vae(nn.Module):
    """encode: pixels -1..1 [B, 3, 1+4n, H, W] to mean and log variance [B, 48, 1+n, H/16, W/16]; decode: back."""

    def __init__(self, encoder_width=8, decoder_width=16):
        super().__init__()
        self.encoder = Encoder(encoder_width)
        self.conv1 = CausalConv3d(2 * LATENT_CHANNELS, 2 * LATENT_CHANNELS, 1)
        self.conv2 = CausalConv3d(LATENT_CHANNELS, LATENT_CHANNELS, 1)
        self.decoder = Decoder(decoder_width)

    def encode(self, x):
        return self.conv1(self.encoder(patchify(x))).chunk(2, dim=1)

    def decode(self, z):
        return unpatchify(self.decoder(self.conv2(z)))


def vae_weights(path):
    """Loads the VAE of a Wan2.2_VAE.pth, or of the .safetensors of a training run."""
    return load_file(path) if path.suffix == ".safetensors" else torch.load(path, map_location="cpu", weights_only=True)


def load_vae(path):
    weights = vae_weights(path)
    vae = Vae(weights["encoder.conv1.weight"].shape[0], weights["decoder.head.0.gamma"].shape[0])
    vae.load_state_dict({name: weight.float() for name, weight in weights.items()})
    return vae.eval()


def channels_last(vae):
    """Lays out the weights as the fast convolutions need them."""
    for module in vae.modules():
        if isinstance(module, nn.Conv3d):
            module.to(memory_format=torch.channels_last_3d)
        elif isinstance(module, nn.Conv2d):
            module.to(memory_format=torch.channels_last)
    return vae
