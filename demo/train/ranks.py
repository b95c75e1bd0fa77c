"""The processes that torchrun starts to train one model, each on its own GPU. Without torchrun there is one process."""

import os

import torch
import torch.distributed as dist


class Ranks:
    def __init__(self):
        self.rank, self.count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))

    def device(self, kind):
        """Returns this process's own device of this kind; from then on it may communicate with the others."""
        if kind == "cuda":
            torch.cuda.set_device(self.rank)
        if self.count > 1:
            dist.init_process_group("nccl" if kind == "cuda" else "gloo")
        self.own = f"cuda:{self.rank}" if kind == "cuda" else kind
        return self.own

    def sum(self, tensor):
        if self.count > 1:
            dist.all_reduce(tensor)

    def first(self, tensor):
        """Replaces the values in place by those of the first rank."""
        if self.count > 1:
            dist.broadcast(tensor, 0)
        return tensor

    def agree(self, number):
        """Returns the number or bool that the first rank has passed. If there are several ranks, waits for their devices."""
        if self.count == 1:
            return number
        return float(self.first(torch.tensor(number, dtype=torch.float64, device=self.own)))

    def end(self):
        """Lets all ranks end together: a rank that left while another one was still saving was seen to abort."""
        if self.count > 1:
            dist.barrier()
            dist.destroy_process_group()
