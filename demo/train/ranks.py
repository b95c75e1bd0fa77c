"""The processes of torchrun that train one model, each on a GPU of its own. Without torchrun there is one."""

import os

import torch
import torch.distributed as dist


class Ranks:
    def __init__(self):
        self.rank, self.count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))

    def device(self, kind):
        """Its own of this kind; from here on it may speak to the others."""
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
        """The first rank's values, in place."""
        if self.count > 1:
            dist.broadcast(tensor, 0)
        return tensor

    def agree(self, number):
        """The first rank's number or truth. Waits for the devices of several ranks."""
        if self.count == 1:
            return number
        return float(self.first(torch.tensor(number, dtype=torch.float64, device=self.own)))

    def end(self):
        """All ranks end together: one that left while another still saved was seen to abort."""
        if self.count > 1:
            dist.barrier()
            dist.destroy_process_group()
