"""Checks that the world keeps its limits, in scenes of every size and duration: python check_world.py

Prints the extreme of each and its limit, most of which README.md names. Exit code: 1 if one is broken. It takes a minute or two and
needs no GPU.
"""

import sys
from collections import defaultdict

import torch
from torch.linalg import vector_norm

from buckets import BUCKETS
from world import MOTIONS, SceneSampler, held_out, radius_scale, render

SCENES = 200  # of each size
# The quantities that are checked, with the most or the least that each may be.
MOST = {
    "pixels from one frame to the next, of what hops": 20.0,
    "pixels from one frame to the next, of what circles": 10.0,
    "pixels of 256 between the middle and a lone object that stays in its place": 4.0,
    "share of an object that is outside of the frame": 0.0,
    "held-out combinations in training": 0.0,
    "combinations of training among those held out": 0.0,
}
LEAST = {
    "radius of a lone object that keeps its size, in pixels of 256": 44.0,
    "radius of what grows or shrinks, in pixels": 23.0,
    "distance of an object's colour from the background's": 80.0,
    "distance of the colours of two objects that share nothing": 60.0,
}
# The times, as parts of a clip, at which ways and jumps are at their ends.
TURNS = (0, 0.25, 0.5, 0.75, 1)


def objects(scenes):
    """Returns which of the two objects exist [B, 2]."""
    return torch.arange(2) < scenes.count.view(-1, 1)


def outside(scenes, frame):
    """Returns which share of each object lies outside the frame: draws the scene in the middle of a frame of twice the size."""
    frames, height, width = frame
    scenes.x, scenes.y = scenes.x + width / 2, scenes.y + height / 2
    for part in TURNS:
        masks = render(scenes, round(part * (frames - 1)), 1, height=2 * height, width=2 * width)[1]
        inside = masks[..., height // 2:-height // 2, width // 2:-width // 2].sum((-1, -2))
        whole = masks.sum((-1, -2))
        yield 1 - inside[whole > 0] / whole[whole > 0]


def look_at(scenes, frame, seen):
    """Returns scenes that captions describe, with combinations of training."""
    _, height, width = frame
    there = objects(scenes)
    lone = there & (scenes.count == 1).view(-1, 1)
    is_ = {name: there & (scenes.motion == index) for index, name in enumerate(MOTIONS)}
    changing = is_["grow"] | is_["shrink"]
    step = torch.hypot(scenes.x.diff(), scenes.y.diff())
    seen["pixels from one frame to the next, of what hops"].append(step[is_["bounce"]])
    seen["pixels from one frame to the next, of what circles"].append(step[is_["orbit"]])
    off = 256 * torch.maximum((scenes.x / width - 0.5).abs(), (scenes.y / height - 0.5).abs())
    seen["pixels of 256 between the middle and a lone object that stays in its place"].append(off[lone & (changing | is_["spin"])])
    scale = radius_scale(min(height, width) / 256)
    seen["radius of a lone object that keeps its size, in pixels of 256"].append(scenes.radius[lone & ~changing] / scale)
    seen["radius of what grows or shrinks, in pixels"].append(scenes.radius[changing])
    ground = vector_norm(scenes.paint - scenes.ground.unsqueeze(1), dim=-1)
    seen["distance of an object's colour from the background's"].append(ground[there])
    seen["held-out combinations in training"].append(held_out(scenes.colour, scenes.shape, scenes.motion)[there])
    seen["share of an object that is outside of the frame"].extend(outside(scenes[:8], frame))


def main():
    sampler, seen = SceneSampler("cpu", seed=1), defaultdict(list)
    for bucket in BUCKETS:
        look_at(sampler.sample(SCENES, frame=bucket.frame), bucket.frame, seen)
        pairs = sampler.sample(SCENES, free=1.0, two_objects=1.0, frame=bucket.frame)
        # Twins have one colour.
        other = pairs.colour[:, 0] != pairs.colour[:, 1]
        apart = vector_norm(pairs.paint[:, 0] - pairs.paint[:, 1], dim=-1)
        seen["distance of the colours of two objects that share nothing"].append(apart[other])
        unseen = sampler.sample(SCENES, unseen=True, frame=bucket.frame)
        of_training = ~held_out(unseen.colour, unseen.shape, unseen.motion)
        seen["combinations of training among those held out"].append(of_training[objects(unseen)])
    broken = False
    for limits, kind, sign in ((MOST, "most", 1), (LEAST, "least", -1)):
        for name, limit in limits.items():
            extreme = sign * float((sign * torch.cat([values.flatten() for values in seen[name]]).float()).max())
            wrong = sign * (extreme - limit) > 1e-3  # up to rounding
            broken |= wrong
            print(f"{'BROKEN' if wrong else 'kept  '} {name}: {extreme:.2f}, at {kind} {limit:g}")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
