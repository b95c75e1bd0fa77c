"""Captions of scenes in free words: synonyms, word order, and now and then a thing left unsaid."""

import random

from world import BACKGROUNDS, COLOURS, MOTIONS, SHAPES, SIZES, VOCABULARY, WIDTH


def describe(scenes, row):
    """One scene as plain values: {"background", "objects": [{shape, colour, motion, size, side}]}."""
    objects = []
    for index in range(int(scenes.count[row])):
        objects.append({
            "shape": SHAPES[int(scenes.shape[row, index])],
            "colour": COLOURS[int(scenes.colour[row, index])],
            "motion": MOTIONS[int(scenes.motion[row, index])],
            "size": SIZES[int(scenes.size[row, index])],
            "side": "left" if float(scenes.x[row, index].mean()) < WIDTH / 2 else "right",
        })
    return {"background": BACKGROUNDS[int(scenes.background[row])], "objects": objects}


class Captioner:
    """Writes captions. `omit` is the chance that a word of an object is left out, so that short prompts,
    and negative ones, mean what they say."""

    def __init__(self, seed, omit=0.08):
        self.random = random.Random(seed)
        self.omit = omit

    def _noun(self, thing):
        words = []
        if thing["size"]:
            words.append(self.random.choice(VOCABULARY["sizes"][thing["size"]]))
        if self.random.random() >= self.omit:
            words.append(self.random.choice(VOCABULARY["colours"][thing["colour"]]["words"]))
        if self.random.random() >= self.omit:
            words.append(self.random.choice(VOCABULARY["shapes"][thing["shape"]]))
        else:
            words.append(self.random.choice(VOCABULARY["any_shape"]))
        return words

    @staticmethod
    def _article(word):
        return "an" if word[0].lower() in "aeiou" else "a"

    def _phrase(self, thing, say_side):
        motion = VOCABULARY["motions"][thing["motion"]]
        side = " " + self.random.choice(VOCABULARY["sides"][thing["side"]]) if say_side else ""
        noun = self._noun(thing)
        form = self.random.random()
        if self.random.random() < self.omit:
            return f"{self._article(noun[0])} {' '.join(noun)}{side}"
        if form < 0.7:
            return f"{self._article(noun[0])} {' '.join(noun)}{side} {self.random.choice(motion['verbs'])}"
        gerund = self.random.choice(motion["gerunds"])
        if form < 0.85 and " " not in gerund:
            return f"{self._article(gerund)} {gerund} {' '.join(noun)}{side}"
        return f"{self._article(noun[0])} {' '.join(noun)}{side}, {gerund}"

    def caption(self, scene, whole=False):
        """whole: says shape, colour, motion and background of everything (the evaluation's captions)."""
        return self.marked(scene, whole)[0]

    def marked(self, scene, whole=False):
        """A caption and, for each object, the characters (from, to) that speak of it."""
        omit, self.omit = self.omit, 0.0 if whole else self.omit
        order = list(range(len(scene["objects"])))
        self.random.shuffle(order)
        things = [scene["objects"][index] for index in order]
        say_side = len(things) == 2 and self.random.random() < 0.5
        phrases = [self._phrase(thing, say_side) for thing in things]
        self.omit = omit
        joint = self.random.choice([", ", " and ", " while ", "; "])
        text = joint.join(phrases)
        if whole or self.random.random() < 0.85:
            ground = self.random.choice(VOCABULARY["backgrounds"][scene["background"]]["words"])
            article = self._article(ground)
            first, *rest = phrases
            text = self.random.choice([
                f"{first} {self.random.choice(['over', 'on'])} {article} {ground} background{joint}{joint.join(rest)}"
                if rest else f"{text} over {article} {ground} background",
                f"{text} over {article} {ground} background",
                f"{text} on {article} {ground} background",
                f"{text}, {ground} background",
                f"{text}, the background is {ground}",
                f"over {article} {ground} background, {text}",
                f"on {article} {ground} background {text}",
                f"{ground} background, {text}",
            ])
        if self.random.random() < 0.4:
            text = text[0].upper() + text[1:]
        if self.random.random() < 0.4:
            text += "."
        lower, spans, start = text.lower(), [None] * len(order), 0
        for index, phrase in zip(order, phrases):
            start = lower.index(phrase.lower(), start)
            spans[index] = (start, start := start + len(phrase))
        return text, spans
