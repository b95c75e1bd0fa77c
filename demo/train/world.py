"""The small world that the demo model is trained on: flat shapes that move over plain backgrounds.

A scene is one or two objects (shape, colour, motion, size) over a background. `SceneSampler` draws scenes
as tensors, `render` turns them into pixels on the device, at any window in space and time, so that
training needs no files. Words, colours and the video's size are in ../vocabulary.json, which the
evaluation reads, too.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch

VOCABULARY = json.loads((Path(__file__).parent.parent / "vocabulary.json").read_text())
SHAPES = list(VOCABULARY["shapes"])
COLOURS = list(VOCABULARY["colours"])
MOTIONS = list(VOCABULARY["motions"])
BACKGROUNDS = list(VOCABULARY["backgrounds"])
SIZES = ["", "small", "large"]
WIDTH = VOCABULARY["video"]["width"]
HEIGHT = VOCABULARY["video"]["height"]
FRAMES = VOCABULARY["video"]["frames"]


def held_out(colour, shape, motion):
    """True for the combinations (a ninth of all) that training never shows. Works on numbers and tensors."""
    return (colour + 3 * shape + 5 * motion) % 9 == 0


def _rgb(table):
    return torch.tensor([entry["rgb"] for entry in table.values()], dtype=torch.float32)


def colour_table():
    """[10, 3], 0..255"""
    return _rgb(VOCABULARY["colours"])


def background_table():
    """[6, 3], 0..255"""
    return _rgb(VOCABULARY["backgrounds"])


@dataclass
class Scenes:
    """A batch of scenes. Labels are indices into the lists above; tracks are in pixels and radians.

    Shapes: labels [B, 2], background and count [B], tracks (x, y, radius, angle) [B, 2, FRAMES].
    The second object of a scene with one has radius 0.
    """

    shape: torch.Tensor
    colour: torch.Tensor
    motion: torch.Tensor
    size: torch.Tensor  # index into SIZES: 0 when the caption may not speak of it
    background: torch.Tensor
    count: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor
    radius: torch.Tensor
    angle: torch.Tensor

    def __getitem__(self, rows):
        return Scenes(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def to(self, device):
        return Scenes(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


class SceneSampler:
    """Draws scenes; `unseen` chooses between the training combinations and the held-out ones."""

    def __init__(self, device, seed, two_objects=0.35):
        self.device = device
        self.two_objects = two_objects
        self.generator = torch.Generator(device).manual_seed(seed)

    def _uniform(self, low, high, *shape):
        return low + (high - low) * torch.rand(*shape, generator=self.generator, device=self.device)

    def _integer(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator, device=self.device)

    def _labels(self, batch, unseen):
        spin, circle = MOTIONS.index("spin"), SHAPES.index("circle")

        def allowed(colour, shape, motion):
            visible = ~((shape == circle) & (motion == spin))
            return visible & (held_out(colour, shape, motion) == unseen)

        colour, shape, motion = (torch.zeros(batch, 2, dtype=torch.long, device=self.device) for _ in range(3))
        wrong = torch.ones(batch, 2, dtype=torch.bool, device=self.device)
        # A ninth is held out, so a fixed number of rounds leaves nothing wrong (8/9)^400.
        for _ in range(400 if unseen else 24):
            for labels, size in ((colour, len(COLOURS)), (shape, len(SHAPES)), (motion, len(MOTIONS))):
                labels.copy_(torch.where(wrong, self._integer(size, batch, 2), labels))
            # Two objects of one colour could not be told apart by their colour.
            same = colour[:, 0] == colour[:, 1]
            wrong = ~allowed(colour, shape, motion)
            wrong[:, 1] |= same
        assert not wrong.any()
        return shape, colour, motion

    def sample(self, batch, unseen=False, two_objects=None):
        shape, colour, motion = self._labels(batch, unseen)
        share = self.two_objects if two_objects is None else two_objects
        two = self._uniform(0, 1, batch, 1) < share
        background = self._integer(len(BACKGROUNDS), batch)
        x, y, radius, angle, size = self._tracks(shape, motion, two)
        scenes = Scenes(shape, colour, motion, size, background, 1 + two.squeeze(1).long(), x, y, radius, angle)
        return scenes

    def _tracks(self, shape, motion, two):
        batch = shape.shape[0]
        s = torch.linspace(0, 1, FRAMES, device=self.device).view(1, 1, -1)

        def pick(one, pair):
            """Uniform in one range for a lone object, in another for a pair: [B, 2]."""
            a = self._uniform(*one, batch, 2)
            b = self._uniform(*pair, batch, 2)
            return torch.where(two, b, a)

        is_ = {name: (motion == index) for index, name in enumerate(MOTIONS)}
        in_place = is_["spin"] | is_["grow"] | is_["shrink"]

        size = self._integer(6, batch, 2)
        size = torch.where(size < 3, torch.zeros_like(size), (size - 1) // 2)  # half unsaid, else 1 or 2
        size = size.clamp(max=2)
        spread = self._uniform(0, 1, batch, 2)
        # small, unsaid and large share one range, in thirds that overlap
        position = torch.where(size == 1, 0.35 * spread, torch.where(size == 2, 0.65 + 0.35 * spread, spread))
        low = torch.where(two, 31.0, 42.0) + torch.where(in_place, torch.where(two, 6.0, 8.0), 0.0)
        high = torch.where(two, 40.0, 60.0) + torch.where(in_place, torch.where(two, 8.0, 10.0), 0.0)
        base = low + (high - low) * position

        side = torch.tensor([-1.0, 1.0], device=self.device).view(1, 2)
        swap = torch.where(self._uniform(0, 1, batch, 1) < 0.5, 1.0, -1.0)
        zone_x = torch.where(two, WIDTH / 2 + WIDTH / 4 * side * swap, WIDTH / 2)
        centre_x = zone_x + pick((-10, 10), (-3, 3))
        centre_y = HEIGHT / 2 + pick((-10, 10), (-14, 14))

        reach_x = pick((52, 66), (22, 28)).unsqueeze(-1) * (2 * s - 1)
        reach_y = pick((52, 66), (52, 66)).unsqueeze(-1) * (2 * s - 1)
        x = centre_x.unsqueeze(-1) + torch.where(is_["right"].unsqueeze(-1), reach_x, 0.0)
        x = x - torch.where(is_["left"].unsqueeze(-1), reach_x, 0.0)
        y = centre_y.unsqueeze(-1) + torch.where(is_["down"].unsqueeze(-1), reach_y, 0.0)
        y = y - torch.where(is_["up"].unsqueeze(-1), reach_y, 0.0)

        # two hops, the object on its floor in the first and the last frame
        hop = torch.frac(2 * s.clamp(max=0.999))
        height = pick((95, 120), (95, 120)).unsqueeze(-1)
        y = y + torch.where(is_["bounce"].unsqueeze(-1), height * (0.5 - 4 * hop * (1 - hop)), 0.0)

        # What turns does so clockwise, and an orbit begins at its top: where a caption leaves many ways open, the model
        # draws something between them, which has no corners.
        phase = self._uniform(-0.2, 0.2, batch, 2).unsqueeze(-1) + math.pi * (2 * s - 0.5)
        orbit = pick((44, 56), (22, 26)).unsqueeze(-1)
        x = x + torch.where(is_["orbit"].unsqueeze(-1), orbit * phase.cos(), 0.0)
        y = y + torch.where(is_["orbit"].unsqueeze(-1), orbit * phase.sin(), 0.0)

        scale = 1 + torch.where(is_["grow"].unsqueeze(-1), 0.4 * (2 * s - 1), 0.0)
        scale = scale - torch.where(is_["shrink"].unsqueeze(-1), 0.4 * (2 * s - 1), 0.0)
        exists = torch.cat([torch.ones_like(two), two], 1).unsqueeze(-1)
        radius = base.unsqueeze(-1) * scale * exists

        tilt = self._uniform(-0.15, 0.15, batch, 2).unsqueeze(-1)
        whirl = self._uniform(3.4, 3.8, batch, 2).unsqueeze(-1) * s
        angle = tilt + torch.where(is_["spin"].unsqueeze(-1), whirl, 0.0)
        return x, y, radius, angle, size


def _signed_distances(u, v):
    """Of the point (u, v), in units of the radius, y down, to every shape's edge, in the order of SHAPES."""
    circle = torch.sqrt(u * u + v * v + 1e-12) - 0.85
    square = torch.maximum(u.abs(), v.abs()) - 0.76
    root3 = math.sqrt(3.0)
    triangle = torch.maximum(v - 0.5, torch.maximum(root3 / 2 * u - v / 2, -root3 / 2 * u - v / 2) - 0.5)

    # one of the star's ten edges, from a tip (1, 0) to a notch, after folding the plane onto it
    sector = math.pi / 5
    folded = torch.remainder(torch.atan2(u, -v) + sector, 2 * sector) - sector
    distance = torch.sqrt(u * u + v * v + 1e-12)
    along, across = distance * folded.cos(), (distance * folded.sin()).abs()
    notch_x, notch_y = 0.46 * math.cos(sector), 0.46 * math.sin(sector)
    length = math.hypot(notch_x - 1, notch_y)
    star = ((along - 1) * notch_y + across * (1 - notch_x)) / length

    # a heart is a square on its tip with a half disc on each upper side
    a, w = 0.56, v - 0.12
    p, q = (u - w) / math.sqrt(2), (-u - w) / math.sqrt(2)
    body = torch.maximum(p.abs(), q.abs()) - a
    lobes = torch.minimum(
        torch.sqrt((p - a) ** 2 + q * q + 1e-12), torch.sqrt(p * p + (q - a) ** 2 + 1e-12)) - a
    heart = torch.minimum(body, lobes)

    bars = (torch.maximum(u.abs() - 0.95, v.abs() - 0.33), torch.maximum(u.abs() - 0.33, v.abs() - 0.95))
    cross = torch.minimum(*bars)
    return {"circle": circle, "square": square, "triangle": triangle, "star": star, "heart": heart, "cross": cross}


def _coverage(shape, x, y, radius, angle, rows, columns):
    """Share of each pixel that one object covers: tracks [B, T], rows [B, H], columns [B, W] -> [B, T, H, W]."""
    dx = columns[:, None, None, :] - x[:, :, None, None]
    dy = rows[:, None, :, None] - y[:, :, None, None]
    cos, sin = angle.cos()[:, :, None, None], angle.sin()[:, :, None, None]
    r = radius.clamp(min=1e-3)[:, :, None, None]
    u, v = (cos * dx + sin * dy) / r, (cos * dy - sin * dx) / r
    distances = _signed_distances(u, v)
    distance = torch.zeros_like(u)
    for index, name in enumerate(SHAPES):
        distance = torch.where((shape == index)[:, None, None, None], distances[name], distance)
    inside = (0.5 - distance * r).clamp(0, 1)
    return inside * (radius > 0)[:, :, None, None]


def render(scenes, first_frame=0, frames=FRAMES, top=None, left=None, height=HEIGHT, width=WIDTH):
    """Pixels [B, 3, frames, height, width] in -1..1 and the objects' masks [B, 2, frames, height, width].

    first_frame, top and left ([B] or a number) choose a window, for training on crops.
    """
    device = scenes.x.device
    batch = scenes.x.shape[0]

    def offsets(value, length):
        start = torch.zeros(batch, device=device) if value is None else torch.as_tensor(value, device=device)
        return start.expand(batch).view(-1, 1) + torch.arange(length, device=device)

    rows, columns = offsets(top, height) + 0.5, offsets(left, width) + 0.5
    when = offsets(first_frame, frames).long()
    colours, backgrounds = colour_table().to(device), background_table().to(device)
    pixels = backgrounds[scenes.background][:, :, None, None, None]
    masks = []
    for index in range(2):
        track = [torch.gather(t[:, index], 1, when) for t in (scenes.x, scenes.y, scenes.radius, scenes.angle)]
        inside = _coverage(scenes.shape[:, index], *track, rows, columns).unsqueeze(1)
        colour = colours[scenes.colour[:, index]][:, :, None, None, None]
        pixels = pixels + inside * (colour - pixels)
        masks.append(inside)
    return pixels / 127.5 - 1, torch.cat(masks, 1)
