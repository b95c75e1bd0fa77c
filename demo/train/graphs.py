"""CUDA graphs of whole training steps."""

import torch


def captured(work, pool, warm=None):
    """A graph of `work`, after `warm`, or itself, ran three times. pool: of memory, one for all graphs, which never run at once:
    what they leave lies outside of it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            (warm or work)()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # Only calls of this thread belong to the graph, because threads of NCCL query events.
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        work()
    return graph
