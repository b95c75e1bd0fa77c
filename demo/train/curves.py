"""Draws the loss curves of README.md from the logs of training: curves.py FOLDER OUTPUT.svg

FOLDER has vae.jsonl (train_vae.py), decoder.jsonl and decoder_again.jsonl (each the vae.jsonl of a train_vae.py --decoder) and
video_1.jsonl, video_2.jsonl and so on, the video.jsonl of each stay (train_video.py, with own ways from some step on). Needs
matplotlib.
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
    for name, label in (("vae", "all of it"), ("decoder", "decoder alone"), ("decoder_again", "decoder again")):
        rows = read(folder / f"{name}.jsonl")
        vae.plot([row["step"] / 1000 for row in rows], [row["psnr"] for row in rows], label=label)
    vae.set(title="VAE: PSNR of crops around objects, dB", xlabel="thousand steps")
    # Leave out the first row of a stay, in which the averages are still rising from 0.
    rows = [row for stay in sorted(folder.glob("video_*.jsonl")) for row in read(stay)[1:]]
    steps = [row["step"] / 1000 for row in rows]
    loss.plot(steps, [row["losses"][0] for row in rows], label="true clips")
    # The second half of the losses is for own ways; it is 0 before there are any, and at first still rising from 0.
    first = len(rows[0]["losses"]) // 2
    own = [(row["step"] / 1000, row["losses"][first]) for row in rows if row["losses"][first] > 0]
    loss.plot(*zip(*own[3:]), label="own ways")
    loss.set(title="Transformer: loss at 256x256, 33 frames", xlabel="thousand steps")
    readers.plot(steps, [row["read_text"] for row in rows], label="text")
    readers.plot(steps, [row["read_picture"] for row in rows], label="picture")
    readers.set(title="Readers: cross entropy", xlabel="thousand steps")
    for axes in (vae, loss, readers):
        axes.legend()
        axes.grid(alpha=0.3, which="both")
    figure.savefig(output, metadata={"Date": None})


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
