#!/usr/bin/env python3
"""What this card gives at the shapes of TI2V-5B, 1280x704, 121 frames: the floor that a forward is held to.

Runs the products and the attention of one forward through LibTorch's fastest paths, sustained (so that the power
limit acts as it does in a job), and prints rates and the sum over a forward. Needs torch with CUDA.
"""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

TOKENS, DIM, FFN, HEADS, LAYERS, TEXT = 27280, 3072, 14336, 24, 30, 512
SECONDS = 2.0


def sustained_seconds(work):
    """Median-free mean over at least SECONDS of back-to-back calls, after a warm-up."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    calls = max(3, int(SECONDS * 1000 / max(start.elapsed_time(end), 1e-3)))
    start.record()
    for _ in range(calls):
        work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000 / calls


def main():
    torch.manual_seed(0)
    make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    total = 0.0
    rows = [("qkv", DIM, 3 * DIM, 1), ("o, cross q, cross o", DIM, DIM, 3), ("ffn in", DIM, FFN, 1),
            ("ffn out", FFN, DIM, 1)]
    for name, inner, outer, count in rows:
        x, weight, bias = make(TOKENS, inner), make(outer, inner), make(outer)
        seconds = sustained_seconds(lambda: torch.nn.functional.linear(x, weight, bias))
        total += seconds * count * LAYERS
        print(f"{name:22s} {seconds * 1e3:8.3f} ms {2 * TOKENS * inner * outer / seconds / 1e12:7.0f} TFLOP/s")
    for name, keys in (("self-attention", TOKENS), ("cross-attention", TEXT)):
        q, k, v = make(1, HEADS, TOKENS, 128), make(1, HEADS, keys, 128), make(1, HEADS, keys, 128)
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            seconds = sustained_seconds(
                lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v))
        total += seconds * LAYERS
        print(f"{name:22s} {seconds * 1e3:8.3f} ms {4 * TOKENS * keys * DIM / seconds / 1e12:7.0f} TFLOP/s")
    source, target = make(1 << 31), make(1 << 31)
    seconds = sustained_seconds(lambda: target.copy_(source))
    print(f"{'device copy':22s} {seconds * 1e3:8.3f} ms {2 * source.nbytes / seconds / 1e12:7.2f} TB/s")
    print(f"products and attention of one forward: {total:.3f} s")


if __name__ == "__main__":
    main()
