"""Muon (K. Jordan, 2024: momentum, made orthogonal by a Newton-Schulz iteration) for the matrices of the blocks,
AdamW for everything else. Matrices of one shape are taken as one batch, so that a step is a few dozen kernels.

Everything is done in place on tensors, learning rates included, so that a step can be part of a CUDA graph.
"""

import torch


def orthogonal(matrices):
    """[N, rows, columns], each brought near to U V^T of its singular value decomposition."""
    a, b, c = 3.4445, -4.7750, 2.0315  # the quintic that Muon's author tuned for a steep start
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.transpose(1, 2) if tall else matrices).bfloat16()
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).bfloat16()
    for _ in range(5):
        gram = x @ x.transpose(1, 2)
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return (x.transpose(1, 2) if tall else x).float()


class Muon:
    """momentum: of the gradients; decay: of weights, times the learning rate. `rate` is set from outside."""

    def __init__(self, parameters, momentum=0.95, decay=0.01):
        self.groups = {}
        for parameter in parameters:
            self.groups.setdefault(tuple(parameter.shape), []).append(parameter)
        device = next(iter(self.groups.values()))[0].device
        self.buffers = {shape: torch.zeros(len(group), *shape, device=device) for shape, group in self.groups.items()}
        self.momentum, self.decay = momentum, decay
        self.rate = torch.zeros((), device=device)

    @torch.no_grad()
    def step(self):
        for shape, group in self.groups.items():
            gradients = torch.stack([parameter.grad for parameter in group])
            buffer = self.buffers[shape]
            buffer.lerp_(gradients, 1 - self.momentum)
            update = orthogonal(gradients.lerp(buffer, self.momentum))  # Nesterov's
            # The same change in size as AdamW's of this rate, whatever the shape (Moonlight, 2025).
            update = update * (0.2 * max(shape) ** 0.5)
            for parameter, change in zip(group, update.unbind(0)):
                parameter.mul_(1 - self.rate * self.decay).sub_(self.rate * change)


def split(modules):
    """Parameters for Muon and for AdamW: the matrices inside blocks, and the rest."""
    matrices, others = [], []
    for module in modules:
        for name, parameter in module.named_parameters():
            inner = "blocks." in name and parameter.dim() == 2 and "embedding" not in name and "norm" not in name
            (matrices if inner else others).append(parameter)
    return matrices, others
