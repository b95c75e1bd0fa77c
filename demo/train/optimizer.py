"""Muon (K. Jordan, 2024: momentum, made orthogonal by a Newton-Schulz iteration) for the matrices of the blocks,
AdamW for everything else. Matrices of one shape are taken as one batch, so that a step is a few dozen kernels. A convolution's
weights are a matrix of a row for each output.

Everything is done in place on tensors, learning rates included, so that a step can be part of a CUDA graph.
"""

import torch

from graphs import captured


def orthogonal(matrices):
    """Brings each of the matrices [N, rows, columns] near to U V^T of its singular value decomposition."""
    a, b, c = 3.4445, -4.7750, 2.0315  # the quintic that Muon's author tuned for a steep start
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.transpose(1, 2) if tall else matrices).bfloat16()
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).bfloat16()
    for _ in range(5):
        gram = x @ x.transpose(1, 2)
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return (x.transpose(1, 2) if tall else x).float()


class Muon:
    """momentum: that of the gradients; decay: weight decay, times the learning rate. Others set `rate`."""

    def __init__(self, parameters, momentum=0.95, decay=0.01):
        self.groups = {}
        for parameter in parameters:
            self.groups.setdefault(tuple(parameter.flatten(1).shape), []).append(parameter)
        device = next(iter(self.groups.values()))[0].device
        self.buffers = {shape: torch.zeros(len(group), *shape, device=device) for shape, group in self.groups.items()}
        self.momentum, self.decay = momentum, decay
        self.rate = torch.zeros((), device=device)

    @torch.no_grad()
    def step(self):
        for shape, group in self.groups.items():
            gradients = torch.stack([parameter.grad.flatten(1) for parameter in group])
            buffer = self.buffers[shape]
            buffer.lerp_(gradients, 1 - self.momentum)
            update = orthogonal(gradients.lerp(buffer, self.momentum))  # Nesterov's
            # Make the change as large as that of AdamW with this rate, whatever the shape is (Moonlight, 2025).
            update = update * (0.2 * max(shape) ** 0.5)
            for parameter, change in zip(group, update.unbind(0)):
                parameter.mul_(1 - self.rate * self.decay).sub_(self.rate * change.view_as(parameter))


class Update:
    """A step of both optimizers by the mean of all ranks' gradients, no longer than 1, and the average of the weights over time.
    All gradients lie in one tensor, `gradient`, which whoever computes them has to clear, so that ranks exchange them at once."""

    def __init__(self, parameters, matrices, ranks, decay=0.0, compiled=False):
        """matrices: those of the parameters that Muon trains. decay: of AdamW's weights. compiled: Muon's step is, which takes
        seconds for each shape of a matrix."""
        self.parameters, self.ranks = list(parameters), ranks
        device = self.parameters[0].device
        self.gradient = torch.zeros(sum(p.numel() for p in self.parameters), device=device)
        at = 0
        for parameter in self.parameters:
            # Use the layout of the parameter, because AdamW's kernel needs it.
            parameter.grad = self.gradient.as_strided(parameter.shape, parameter.stride(), at)
            at += parameter.numel()
        self.muon = Muon(matrices)
        self.move = torch.compile(self.muon.step, dynamic=False) if compiled else self.muon.step
        taken = {id(matrix) for matrix in matrices}
        cuda = device.type == "cuda"
        self.rate = torch.zeros((), device=device)
        self.adam = torch.optim.AdamW([p for p in self.parameters if id(p) not in taken], lr=self.rate, betas=(0.9, 0.99),
                                      weight_decay=decay, capturable=cuda, fused=cuda)
        self.keep = torch.zeros((), device=device)
        self.average = [p.detach().clone() for p in self.parameters]
        self.norm = torch.zeros((), device=device)
        self.graph = None

    def rates(self, rate, matrix_rate, average):
        """Of the steps from now on: AdamW's and Muon's learning rates, and the share of the average that each step keeps."""
        self.rate.fill_(rate)
        self.muon.rate.fill_(matrix_rate)
        self.keep.fill_(1 - average)

    def step(self):
        self.ranks.sum(self.gradient)
        if self.graph:
            self.graph.replay()
        else:
            self._apply()

    def capture(self, pool, warm):
        """Makes a CUDA graph of a step, after `warm` has run three times."""
        self.graph = captured(self._apply, pool, warm)

    def _apply(self):
        self.gradient.div_(self.ranks.count)
        norm = self.gradient.norm()
        self.gradient.mul_((1 / (norm + 1e-6)).clamp(max=1))
        self.move()
        self.adam.step()
        change = torch._foreach_sub([p.detach() for p in self.parameters], self.average)
        torch._foreach_mul_(change, self.keep)
        torch._foreach_add_(self.average, change)
        self.norm.copy_(norm)
