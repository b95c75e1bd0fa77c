"""The small world that the demo model is trained on: flat shapes that move over plain backgrounds.

A scene is one or two objects (shape, colour, motion, size) over a background. `SceneSampler` draws scenes
as tensors for frames of any size and number, `render` turns them into pixels on the device, at any window in
space and time, so that training needs no files. Words, colours and the usual video's size are in
../vocabulary.json, which the evaluation reads as well.
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
USUAL = (FRAMES, HEIGHT, WIDTH)


def held_out(colour, shape, motion):
    """True for the combinations (a ninth of all) that training never shows. Works on numbers and tensors."""
    return (colour + 3 * shape + 5 * motion) % 9 == 0


def _rgb(table):
    return torch.tensor([entry["rgb"] for entry in table.values()], dtype=torch.float32)


def colour_table():
    """[10, 3], 0..255"""
    return _rgb(VOCABULARY["colours"])


def background_table():
    """[23, 3], 0..255"""
    return _rgb(VOCABULARY["backgrounds"])


# What a caption means by leaving something unsaid: each shape has a default colour, an unnamed shape is a circle, and the
# background is the first of these on which the colours can be seen. Otherwise the noise would decide what a caption leaves open.
DEFAULT_COLOURS = {"circle": "blue", "square": "green", "triangle": "orange", "star": "yellow", "heart": "red", "cross": "purple"}
DEFAULT_BACKGROUNDS = ["white", "black"]
# From this distance of their colours on, an object can be seen over a background, and two objects can be told apart.
VISIBLE, APART = 80.0, 60.0
# A colour that is not in the vocabulary has the name of the nearest one up to this distance, and no name beyond it.
NAMED = 75.0
# Clips shorter than this show a part of the motion, at the pace that a clip of this length has; all longer ones show
# the whole motion, so that a longer clip is a slower one.
SHORTEST_WHOLE = 17
# Pixels from one frame to the next, at most: where a hop begins, and on a circle. Four frames share their latents, and what
# is farther apart in them comes back ragged. Hops are lower and circles smaller instead, more so in short clips.
FASTEST_HOP, FASTEST_CIRCLE = 20.0, 10.0
# The least radius, in pixels, of an object that a caption lets grow or shrink: a token is 32 pixels wide.
SMALLEST = 23.0


def default_background(colours):
    """The background of a caption that names none, for objects of these colours; "" if each of the defaults hides one."""
    fitting = [name for name in DEFAULT_BACKGROUNDS if all(
        colour and math.dist(VOCABULARY["colours"][colour]["rgb"], VOCABULARY["backgrounds"][name]["rgb"]) >= VISIBLE
        for colour in colours)]
    return fitting[0] if fitting else ""


@dataclass
class Scenes:
    """A batch of scenes of one frame size. Labels are indices into the lists above; tracks are in pixels and radians.

    Shapes: labels [B, 2], background and count [B], tracks (x, y, radius, angle) [B, 2, frames], colours 0..255
    paint [B, 2, 3] and ground [B, 3]. The second object of a scene with one has radius 0.
    """

    height: int
    width: int
    shape: torch.Tensor
    colour: torch.Tensor  # -1: the colour has no name
    motion: torch.Tensor
    size: torch.Tensor  # index into SIZES: 0 when the caption may not speak of it
    background: torch.Tensor  # -1: the colour has no name
    count: torch.Tensor
    free: torch.Tensor  # [B]: colours and places are any, so that only an image can tell them
    paint: torch.Tensor
    ground: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor
    radius: torch.Tensor
    angle: torch.Tensor

    def _each(self, change):
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return Scenes(*(change(value) if torch.is_tensor(value) else value for value in values))

    def __getitem__(self, rows):
        return self._each(lambda value: value[rows])

    def to(self, device):
        return self._each(lambda value: value.to(device))


def _distance(a, b):
    return (a - b).square().sum(-1).sqrt()


def _names(colours, table):
    """Returns for colours [..., 3] the index of the nearest colour in the table [N, 3]; -1 if none is near."""
    gap, index = _distance(colours.unsqueeze(-2), table).min(-1)
    return torch.where(gap < NAMED, index, torch.full_like(index, -1))


class SceneSampler:
    """Draws scenes; `unseen` chooses between the training combinations and the held-out ones."""

    # Pairs that share everything but their place, and pairs that share their motion: "two red circles spin".
    TWINS, TOGETHER = 0.05, 0.12
    # Scenes of training whose colours, and whose backgrounds, are what a caption may leave unsaid, besides those that happen to be.
    DEFAULTS = 0.25

    def __init__(self, device, seed, two_objects=0.35, shapes=range(len(SHAPES)), motions=range(len(MOTIONS))):
        """shapes, motions: what they are drawn from; one that stands there twice is drawn twice as often."""
        self.device = device
        self.two_objects = two_objects
        self.shapes, self.motions = (torch.tensor(indices, device=device) for indices in (shapes, motions))
        self.generator = torch.Generator(device).manual_seed(seed)
        self.colours, self.backgrounds = colour_table().to(device), background_table().to(device)
        self.visible = _distance(self.colours.unsqueeze(1), self.backgrounds) >= VISIBLE  # [colours, backgrounds]
        self.usual = torch.tensor([COLOURS.index(DEFAULT_COLOURS[shape]) for shape in SHAPES], device=device)
        self.grounds = torch.tensor([BACKGROUNDS.index(name) for name in DEFAULT_BACKGROUNDS], device=device)

    def _uniform(self, low, high, *shape):
        return low + (high - low) * torch.rand(*shape, generator=self.generator, device=self.device)

    def _integer(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator, device=self.device)

    def _labels(self, batch, unseen, background):
        spin, circle = MOTIONS.index("spin"), SHAPES.index("circle")
        kind = self._uniform(0, 1, batch)
        twins, together = kind < self.TWINS, kind < self.TWINS + self.TOGETHER

        def allowed(colour, shape, motion):
            visible = ~((shape == circle) & (motion == spin)) & self.visible[colour, background.unsqueeze(1)]
            return visible & (held_out(colour, shape, motion) == unseen)

        colour, shape, motion = (torch.zeros(batch, 2, dtype=torch.long, device=self.device) for _ in range(3))
        wrong = torch.ones(batch, 2, dtype=torch.bool, device=self.device)
        # A ninth is held out, and a pair with one motion needs two of it at once: this many rounds leave nothing wrong.
        for _ in range(10000 if unseen else 60):
            drawn = {"colour": self._integer(len(COLOURS), batch, 2),
                     "motion": self.motions[self._integer(len(self.motions), batch, 2)],
                     "shape": self.shapes[self._integer(len(self.shapes), batch, 2)]}
            for labels, name, shared in ((colour, "colour", twins), (shape, "shape", twins), (motion, "motion", together)):
                labels.copy_(torch.where(wrong, drawn[name], labels))
                labels[:, 1] = torch.where(shared, labels[:, 0], labels[:, 1])
            # Avoid two different objects of one colour, which could not be told apart by their colour.
            same = (colour[:, 0] == colour[:, 1]) & ~twins
            wrong = ~allowed(colour, shape, motion)
            wrong[:, 1] |= same
            wrong[:, 0] |= wrong[:, 1] & together
            if not wrong.any():
                break
        assert not wrong.any()
        return shape, colour, motion

    def _with_defaults(self, shape, colour, motion, two, background):
        """Colour and background with some of them as a caption means that does not name them. What is held out stays so."""
        batch = len(shape)
        usual = self.usual[shape]
        apart = (usual[:, 0] != usual[:, 1]) | ~two.squeeze(1)
        fits = (~held_out(usual, shape, motion) & self.visible[usual, background.unsqueeze(1)]).all(1) & apart
        chosen = fits & (self._uniform(0, 1, batch) < self.DEFAULTS)
        colour = torch.where(chosen.unsqueeze(1), usual, colour)
        seen = self.visible[colour][:, :, self.grounds]  # [B, 2, defaults]
        seen = seen[:, 0] & (seen[:, 1] | ~two)
        first = seen.long().argmax(1)
        chosen = seen.any(1) & (self._uniform(0, 1, batch) < self.DEFAULTS)
        return colour, torch.where(chosen, self.grounds[first], background)

    def _free_colours(self, batch):
        """Any colours that can be seen: paint [B, 2, 3] and ground [B, 3]."""
        paint, ground = (torch.zeros(batch, *shape, device=self.device) for shape in ((2, 3), (3,)))
        wrong = torch.ones(batch, dtype=torch.bool, device=self.device)
        for _ in range(60):
            colours = self._uniform(0, 255, batch, 3, 3)
            # A third of the colours is nearly grey, because colours drawn evenly from the cube seldom are.
            level = self._uniform(0, 255, batch, 3, 1)
            dull = self._uniform(0, 1, batch, 3, 1) < 0.33
            colours = torch.where(dull, (level + 0.1 * (colours - 127.5)).clamp(0, 255), colours)
            extreme = self._uniform(0, 1, batch, 3, 1)
            colours = torch.where(extreme < 0.04, torch.zeros_like(colours), colours)
            colours = torch.where(extreme > 0.96, torch.full_like(colours, 255.0), colours)
            choose = wrong.view(-1, 1, 1)
            paint = torch.where(choose, colours[:, :2], paint)
            ground = torch.where(wrong.view(-1, 1), colours[:, 2], ground)
            wrong = (_distance(paint, ground.unsqueeze(1)) < VISIBLE).any(1) | (_distance(paint[:, 0], paint[:, 1]) < APART)
            if not wrong.any():
                break
        assert not wrong.any()
        return paint, ground

    def sample(self, batch, unseen=False, two_objects=None, frame=USUAL, free=0.0, backgrounds=None):
        """frame: (frames, height, width); free: share of scenes of any colours and places; backgrounds: indices of
        those to draw from, all unless given (the first six, which are old, are then a third)."""
        share = self.two_objects if two_objects is None else two_objects
        two = self._uniform(0, 1, batch, 1) < share
        if backgrounds is None:
            old = self._uniform(0, 1, batch) < 0.33
            background = torch.where(old, self._integer(6, batch), self._integer(len(BACKGROUNDS), batch))
        else:
            background = torch.tensor(backgrounds, device=self.device)[self._integer(len(backgrounds), batch)]
        shape, colour, motion = self._labels(batch, unseen, background)
        if not unseen and backgrounds is None:
            colour, background = self._with_defaults(shape, colour, motion, two, background)
        is_free = self._uniform(0, 1, batch) < free
        paint, ground = self.colours[colour], self.backgrounds[background]
        any_paint, any_ground = self._free_colours(batch)
        # Some free scenes have colours of the vocabulary, but at any place.
        recoloured = is_free & (self._uniform(0, 1, batch) < 0.8)
        paint = torch.where(recoloured.view(-1, 1, 1), any_paint, paint)
        ground = torch.where(recoloured.view(-1, 1), any_ground, ground)
        colour = torch.where(recoloured.view(-1, 1), _names(paint, self.colours), colour)
        background = torch.where(recoloured, _names(ground, self.backgrounds), background)
        x, y, radius, angle, size = self._tracks(shape, motion, two, is_free, *frame)
        return Scenes(frame[1], frame[2], shape, colour, motion, size, background, 1 + two.squeeze(1).long(), is_free,
                      paint, ground, x, y, radius, angle)

    def _tracks(self, shape, motion, two, free, frames, height, width):
        """A caption says all of an object's way but a shift of a few pixels. What text leaves open is decided by the noise
        in the very first steps, where the model sees least: it draws something between all the ways, which has no corners
        (demo/README.md has figures). What turns does so clockwise, and an orbit begins at its top."""
        batch = shape.shape[0]
        done = min(1.0, (frames - 1) / (SHORTEST_WHOLE - 1))
        s = torch.linspace(0, done, frames, device=self.device).view(1, 1, -1)
        # Lengths are drawn for 256x256. Radii and circles follow the shorter side, straight ways their own side. Where a side is
        # shorter than 256, tokens are no smaller: radii shrink by its root only, and ways by more, so that they stay inside.
        across, along = _way(width / 256), _way(height / 256)
        unit = min(across, along)
        # Two objects are side by side, each in one half of the width.
        scale = torch.where(two, radius_scale(min(width / 256, height / 256 * 1.25)), radius_scale(min(width, height) / 256))
        per_clip = max(frames, SHORTEST_WHOLE) - 1  # frames of a whole motion

        def either(one, pair):
            """Returns the first value for a single object, the second one for a pair: [B, 1]."""
            return torch.where(two, float(pair), float(one))

        def shift(one, pair):
            """Returns uniform values up to so many pixels to either side: [B, 2]."""
            return either(one, pair) * self._uniform(-1, 1, batch, 2)

        is_ = {name: (motion == index) for index, name in enumerate(MOTIONS)}
        in_place = is_["spin"] | is_["grow"] | is_["shrink"]

        size = self._integer(6, batch, 2)
        size = torch.where(size < 3, torch.zeros_like(size), (size - 1) // 2)  # half unsaid, else 1 or 2
        size = size.clamp(max=2)
        # The sizes small, unsaid and large are three parts of one range.
        position = torch.tensor([0.5, 0.15, 0.85], device=self.device)[size]
        low = torch.where(two, 31.0, 42.0) + torch.where(in_place, torch.where(two, 6.0, 8.0), 0.0)
        high = torch.where(two, 40.0, 60.0) + torch.where(in_place, torch.where(two, 8.0, 10.0), 0.0)
        base = (low + (high - low) * position) * scale
        free = free.view(-1, 1)
        base = torch.where(free, torch.where(two, self._uniform(22, 46, batch, 2), self._uniform(24, 74, batch, 2)) * scale, base)
        size = torch.where(free, torch.zeros_like(size), size)
        # Two that grow stay each in its half: the largest is 1.4 times this, and a shape reaches 0.95 of its radius to the side.
        grows = (is_["grow"] | is_["shrink"]) & two & ~free
        base = torch.where(grows, base.clamp(max=0.735 * width / 4), base)

        side = torch.tensor([-1.0, 1.0], device=self.device).view(1, 2)
        swap = torch.where(self._uniform(0, 1, batch, 1) < 0.5, 1.0, -1.0)
        zone_x = torch.where(two, width / 2 + width / 4 * side * swap, width / 2)
        centre_x = zone_x + shift(4, 2) * across
        centre_y = height / 2 + shift(4, 4) * along
        # Place the object anywhere in the frame or, for a pair, in its half.
        room_x = (torch.where(two, width / 4, width / 2) - 0.8 * base).clamp(min=0)
        room_y = (height / 2 - 0.8 * base).clamp(min=0)
        centre_x = torch.where(free, zone_x + room_x * self._uniform(-1, 1, batch, 2), centre_x)
        centre_y = torch.where(free, height / 2 + room_y * self._uniform(-1, 1, batch, 2), centre_y)

        straight = 2 * s - 1
        reach_x = (either(58, 25) * across).unsqueeze(-1) * straight
        reach_y = 58 * along * straight
        x = centre_x.unsqueeze(-1) + torch.where(is_["right"].unsqueeze(-1), reach_x, 0.0)
        x = x - torch.where(is_["left"].unsqueeze(-1), reach_x, 0.0)
        y = centre_y.unsqueeze(-1) + torch.where(is_["down"].unsqueeze(-1), reach_y, 0.0)
        y = y - torch.where(is_["up"].unsqueeze(-1), reach_y, 0.0)

        # two hops, the object on its floor in the first and the last frame
        hop = torch.frac(2 * s.clamp(max=0.999))
        jump = min(108 * along, FASTEST_HOP * per_clip / 8)
        y = y + torch.where(is_["bounce"].unsqueeze(-1), jump * (0.5 - 4 * hop * (1 - hop)), 0.0)

        phase = math.pi * (2 * s - 0.5)
        orbit = (either(50, 24) * unit).clamp(max=FASTEST_CIRCLE * per_clip / (2 * math.pi)).unsqueeze(-1)
        x = x + torch.where(is_["orbit"].unsqueeze(-1), orbit * phase.cos(), 0.0)
        y = y + torch.where(is_["orbit"].unsqueeze(-1), orbit * phase.sin(), 0.0)

        change = torch.where(free, 0.4, (1 - SMALLEST / base).clamp(0, 0.4)).unsqueeze(-1) * straight
        growth = 1 + torch.where(is_["grow"].unsqueeze(-1), change, 0.0)
        growth = growth - torch.where(is_["shrink"].unsqueeze(-1), change, 0.0)
        exists = torch.cat([torch.ones_like(two), two], 1).unsqueeze(-1)
        radius = base.unsqueeze(-1) * growth * exists

        # Where an image says how it begins, an object may begin anywhere, so far that its way stays in the frame.
        half = 0.6 * base.unsqueeze(-1)
        keep_x = torch.where(two.unsqueeze(-1), width / 4, width / 2) - half
        for track, room, middle in ((x, keep_x, torch.where(two, zone_x, torch.full_like(zone_x, width / 2))),
                                    (y, height / 2 - half, torch.full_like(zone_x, height / 2))):
            middle = middle.unsqueeze(-1)
            low_end, high_end = track.amin(-1, keepdim=True), track.amax(-1, keepdim=True)
            back = (middle - room - low_end).clamp(min=0) - (high_end - middle - room).clamp(min=0)
            track.add_(torch.where(free.unsqueeze(-1), back, torch.zeros_like(back)))

        tilt = torch.where(free, self._uniform(-0.6, 0.6, batch, 2), 0.0).unsqueeze(-1)
        angle = tilt + torch.where(is_["spin"].unsqueeze(-1), 3.6 * s, 0.0)
        return x, y, radius, angle, size


def radius_scale(part):
    """Returns the factor of radii in a frame whose side is such a part of 256 pixels."""
    return math.sqrt(part) if part < 1 else part


def _way(part):
    """Returns the factor of ways in such a frame."""
    return part ** 1.5 if part < 1 else part


def _signed_distances(u, v):
    """Returns the distance of the point (u, v), in units of the radius, y down, from the edge of every shape of SHAPES."""
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
    """Returns the share of each pixel that one object covers: tracks [B, T], rows [B, H], columns [B, W] -> [B, T, H, W]."""
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


def render(scenes, first_frame=0, frames=None, top=None, left=None, height=None, width=None):
    """Returns pixels [B, 3, frames, height, width] in -1..1 and the objects' masks [B, 2, frames, height, width].

    first_frame, top and left ([B] or a number) choose a window, for training on crops; without them it is everything.
    """
    tracks = (scenes.x, scenes.y, scenes.radius, scenes.angle)
    return paint(scenes.shape, scenes.paint, scenes.ground, tracks, first_frame, frames or scenes.x.shape[2], top, left,
                 height or scenes.height, width or scenes.width)


def paint(shape, colours, ground, tracks, first_frame, frames, top, left, height, width):
    """Does what `render` does, on plain tensors, so that it can be compiled."""
    device, batch = shape.device, shape.shape[0]

    def offsets(value, length):
        start = torch.zeros(batch, device=device) if value is None else torch.as_tensor(value, device=device)
        return start.expand(batch).view(-1, 1) + torch.arange(length, device=device)

    rows, columns = offsets(top, height) + 0.5, offsets(left, width) + 0.5
    when = offsets(first_frame, frames).long()
    pixels = ground[:, :, None, None, None]
    masks = []
    for index in range(2):
        track = [torch.gather(t[:, index], 1, when) for t in tracks]
        inside = _coverage(shape[:, index], *track, rows, columns).unsqueeze(1)
        pixels = pixels + inside * (colours[:, index][:, :, None, None, None] - pixels)
        masks.append(inside)
    return pixels / 127.5 - 1, torch.cat(masks, 1)
