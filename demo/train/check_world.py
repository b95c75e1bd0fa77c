"""Checks that the world keeps the limits that README.md names, in scenes of every size and duration: python check_world.py

Prints the extreme of each and its limit. Exit code: 1 if one is broken. It takes a minute and needs no GPU.
"""

import math
import sys
from dataclasses import dataclass

import torch

from buckets import BUCKETS
from world import APART, FASTEST_CIRCLE, FASTEST_HOP, MOTIONS, SMALLEST, VISIBLE, SceneSampler, held_out, render

SCENES = 200  # of each size
LONE_RADIUS = 44.0  # pixels of 256, at least, of a lone object that a caption describes
SHIFT = 4.0  # pixels of 256, at most, by which a seed moves what a caption describes


@dataclass
class Limit:
    name: str
    bound: float
    upper: bool  # it is the most, not the least
    seen: float = math.nan

    def look(self, values):
        if values.numel():
            extreme = float(values.max() if self.upper else values.min())
            self.seen = extreme if math.isnan(self.seen) else (max if self.upper else min)(self.seen, extreme)

    def kept(self):
        """Up to rounding; what was never seen keeps nothing."""
        return self.seen <= self.bound + 1e-3 if self.upper else self.seen >= self.bound - 1e-3


def limits():
    return {
        "hop": Limit("pixels from one frame to the next, of what hops", FASTEST_HOP, True),
        "circle": Limit("pixels from one frame to the next, of what circles", FASTEST_CIRCLE, True),
        "lone": Limit("radius of a lone object, as in a frame of 256 pixels or more", LONE_RADIUS, False),
        "changing": Limit("radius of what grows or shrinks", SMALLEST, False),
        "off": Limit("pixels of 256 by which a lone object's place differs from the middle", SHIFT, True),
        "outside": Limit("share of an object that is outside of the frame", 0.0, True),
        "visible": Limit("distance of an object's colour from the background's", VISIBLE, False),
        "apart": Limit("distance of two objects' colours, where they are any", APART, False),
        "held_out": Limit("held-out combinations in training", 0, True),
        "not_held_out": Limit("combinations of training among those held out", 0, True)}


def look_at(scenes, frame, of):
    """Scenes that captions describe, of combinations of training."""
    frames, height, width = frame
    there = torch.arange(2).view(1, 2) < scenes.count.view(-1, 1)  # [B, 2], as are all labels
    lone = there & (scenes.count == 1).view(-1, 1)
    is_ = {name: there & (scenes.motion == index) for index, name in enumerate(MOTIONS)}
    step = torch.stack([scenes.x.diff(), scenes.y.diff()]).square().sum(0).sqrt()  # [B, 2, frames - 1]
    of["hop"].look(step[is_["bounce"]])
    of["circle"].look(step[is_["orbit"]])
    changing = is_["grow"] | is_["shrink"]
    shorter = min(height, width) / 256
    # Radii shrink by the root where a side is below 256, and the limit with them.
    scale = math.sqrt(shorter) if shorter < 1 else shorter
    of["lone"].look(scenes.radius[lone & ~changing] / scale)
    of["changing"].look(scenes.radius[changing])
    in_place = lone & (changing | is_["spin"])
    off = torch.stack([(scenes.x - width / 2).abs() / width, (scenes.y - height / 2).abs() / height]).amax(0) * 256
    of["off"].look(off[in_place])
    gap = (scenes.paint - scenes.ground.unsqueeze(1)).square().sum(-1).sqrt()
    of["visible"].look(gap[there])
    of["held_out"].look(held_out(scenes.colour, scenes.shape, scenes.motion)[there].sum())
    # In a frame of twice the size, with the same scene in its middle, what lies around this one's. Ways begin and end at their ends.
    few = scenes[:16]
    few.x, few.y = few.x + width / 2, few.y + height / 2
    for when in (0, frames - 1):
        masks = render(few, when, 1, height=2 * height, width=2 * width)[1]
        inside = masks[..., height // 2:height // 2 + height, width // 2:width // 2 + width].sum((-1, -2))
        whole = masks.sum((-1, -2))
        of["outside"].look(1 - inside[whole > 0] / whole[whole > 0])


def main():
    of, sampler = limits(), SceneSampler("cpu", seed=1)
    for bucket in BUCKETS:
        look_at(sampler.sample(SCENES, frame=bucket.frame), bucket.frame, of)
        any_colours = sampler.sample(SCENES, free=1.0, two_objects=1.0, frame=bucket.frame)
        different = any_colours.colour[:, 0] != any_colours.colour[:, 1]  # twins have one colour, and two without a name may be near
        apart = (any_colours.paint[:, 0] - any_colours.paint[:, 1]).square().sum(-1).sqrt()
        of["apart"].look(apart[different])
        unseen = sampler.sample(SCENES, unseen=True, frame=bucket.frame)
        there = torch.arange(2).view(1, 2) < unseen.count.view(-1, 1)
        of["not_held_out"].look((~held_out(unseen.colour, unseen.shape, unseen.motion))[there].sum())
    for limit in of.values():
        print(f"{'kept  ' if limit.kept() else 'BROKEN'} {limit.name}: {limit.seen:.2f}, at {'most' if limit.upper else 'least'} {limit.bound:g}")
    return 0 if all(limit.kept() for limit in of.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
