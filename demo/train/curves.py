"""Draws the loss curves of README.md from the logs of training: curves.py FOLDER OUTPUT.svg

FOLDER has vae.jsonl and decoder.jsonl (train_vae.py) and video.jsonl (train_video.py). Needs matplotlib.
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def main(folder, output):
    matplotlib.rcParams.update({"svg.hashsalt": "wanserve", "svg.fonttype": "none", "font.size": 9})
    figure, (vae, loss, readers) = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
    for name, label in (("vae", "whole"), ("decoder", "decoder alone")):
        rows = read(folder / f"{name}.jsonl")
        vae.plot([row["step"] for row in rows], [row["psnr"] for row in rows], label=label)
    vae.set(title="VAE: PSNR of crops around objects, dB", xlabel="step")
    rows = read(folder / "video.jsonl")
    steps = [row["step"] for row in rows]
    loss.plot(steps, [row["loss"] for row in rows])
    loss.set(title="Transformer: flow matching loss", xlabel="step", yscale="log")
    readers.plot(steps, [row["read_text"] for row in rows], label="text")
    readers.plot(steps, [row["read_picture"] for row in rows], label="picture")
    readers.set(title="Readers: cross entropy", xlabel="step", yscale="log")
    for axes in (vae, readers):
        axes.legend()
    for axes in (vae, loss, readers):
        axes.grid(alpha=0.3, which="both")
    figure.savefig(output, metadata={"Date": None})


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
