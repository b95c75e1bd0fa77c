"""Captions of scenes in free words: a grammar of synonyms, word order, punctuation, plurals, British and American
words, articles left out, words that mean nothing, and now and then a thing left unsaid.

Capitals are not written here: the tokenizer folds case (make_tokenizer.py). `recased` writes them for the evaluation.
"""

import random
import string

from world import BACKGROUNDS, COLOURS, MOTIONS, SHAPES, SIZES, VOCABULARY

JOINTS = [", ", " and ", " while ", "; ", ". ", " & ", ", and ", " with "]
ENDS = ["", "", "", ".", ".", "!", "...", ";"]
OPENINGS = ["a video of ", "an animation of ", "video: ", "a short clip of ", "animation: ", "please draw ", "show me ",
            "i want to see ", "there is ", "we see ", "make "]
ADJECTIVES = ["beautiful", "shiny", "nice", "pretty", "lovely", "perfect", "cute", "flat", "simple", "single", "funny",
              "magic", "clean", "plain"]
TAILS = [", flat design", ", high quality", ", smooth animation", " slowly", " again", ", 4k", " in the video", ", please",
         " all the time", ", minimal style", " happily", ", best quality"]


def describe(scenes, row):
    """One scene as plain values: {"background", "objects": [{shape, colour, motion, size, side}]}; the name of a colour
    that has none is empty."""
    objects = []
    for index in range(int(scenes.count[row])):
        colour = int(scenes.colour[row, index])
        objects.append({
            "shape": SHAPES[int(scenes.shape[row, index])],
            "colour": COLOURS[colour] if colour >= 0 else "",
            "motion": MOTIONS[int(scenes.motion[row, index])],
            "size": SIZES[int(scenes.size[row, index])],
            "side": "left" if float(scenes.x[row, index].mean()) < scenes.width / 2 else "right",
        })
    background = int(scenes.background[row])
    return {"background": BACKGROUNDS[background] if background >= 0 else "", "objects": objects}


def article(word):
    return "an" if word[0].lower() in "aeiou" else "a"


def plural(noun):
    """Of a noun that may have several words."""
    return noun + ("es" if noun.endswith(("s", "x", "sh")) else "s")


def plural_verb(verb):
    """"goes up" to "go up": the verb's first word loses its s."""
    first, *rest = verb.split(" ")
    return " ".join(["go" if first == "goes" else first.removesuffix("s"), *rest])


def _told_apart(thing, other):
    """Whether shape or colour says which of two objects is meant."""
    colours = {thing["colour"], other["colour"]}
    return thing["shape"] != other["shape"] or (len(colours) == 2 and "" not in colours)


def recased(text, random):
    """The caption in other capitals: every word's first letter, some words, all letters, or any letters."""
    way = random.randrange(4)
    if way == 0:
        return text.title()
    if way == 1:
        return " ".join(word.capitalize() if random.random() < 0.4 else word for word in text.split(" "))
    if way == 2:
        return text.upper()
    return "".join(letter.upper() if random.random() < 0.3 else letter for letter in text)


class Captioner:
    """Writes captions. `omit` is the chance that a word of an object is left out, so that short prompts,
    and negative ones, mean what they say. With `numbers` a third of the words without a meaning are numbers; the captions that the
    tokenizer was made of have none."""

    # Chances of what only training needs: loose captions (below), single facts, words without a meaning.
    LOOSE, FACT, NOISE = 0.1, 0.05, 0.12

    def __init__(self, seed, omit=0.08, numbers=False):
        self.random = random.Random(seed)
        self.omit = omit
        self.numbers = numbers

    def _chance(self, share):
        return self.random.random() < share

    def _noise(self):
        """A word that is in no vocabulary."""
        letters = string.digits if self.numbers and self._chance(0.33) else string.ascii_lowercase
        return "".join(self.random.choice(letters) for _ in range(self.random.randrange(2, 7)))

    def _gap(self):
        """Before a word without a meaning that stands behind all."""
        return ", " if self.numbers and self._chance(0.5) else " "

    def _noun(self, thing, omit, noise=0.0):
        words = []
        if self._chance(noise):
            words.append(self.random.choice(ADJECTIVES) if self._chance(0.7) else self._noise())
        if thing["size"]:
            words.append(self.random.choice(VOCABULARY["sizes"][thing["size"]]))
        if thing["colour"] and not self._chance(omit):
            words.append(self.random.choice(VOCABULARY["colours"][thing["colour"]]["words"]))
            if self._chance(0.03):
                words.append(self.random.choice(["coloured", "colored"]))
        words.append(self.random.choice(VOCABULARY["any_shape"] if self._chance(omit) else VOCABULARY["shapes"][thing["shape"]]))
        return words

    def _named(self, thing, omit, noise, side):
        """The noun with its article, which is left out now and then, and its place."""
        noun = self._noun(thing, omit, noise)
        start = "" if self._chance(0.12) else (self.random.choice(["the ", "one "]) if self._chance(0.08) else article(noun[0]) + " ")
        return start + " ".join(noun) + side

    def _phrase(self, thing, omit, noise, side):
        motion = VOCABULARY["motions"][thing["motion"]]
        if self._chance(omit):
            return self._named(thing, omit, noise, side)
        form = self.random.random()
        gerund = self.random.choice(motion["gerunds"])
        if form < 0.6:
            return f"{self._named(thing, omit, noise, side)} {self.random.choice(motion['verbs'])}"
        if form < 0.72 and " " not in gerund:
            return f"{article(gerund)} {gerund} {' '.join(self._noun(thing, omit))}{side}"
        if form < 0.82:
            return f"{self._named(thing, omit, noise, side)} is {gerund}"
        return f"{self._named(thing, omit, noise, side)}{self.random.choice([', ', ' '])}{gerund}"

    def _together(self, things, omit, noise, sides):
        """Two objects with one motion: "two red circles move right", "a star and a heart are spinning". The phrase, and
        what of it speaks of each."""
        motion = VOCABULARY["motions"][things[0]["motion"]]
        action = (plural_verb(self.random.choice(motion["verbs"])) if self._chance(0.75)
                  else "are " + self.random.choice(motion["gerunds"]))
        both = self.random.choice(["both ", "", ""])
        same = all(things[0][key] == things[1][key] for key in ("shape", "colour", "size"))
        if same:
            *words, noun = self._noun(things[0], omit)
            number = self.random.choice(["two ", "two ", "two ", "2 ", "a pair of "])
            text = " ".join([*words, plural(noun)])
            return f"{number}{text} {action}", [text, text]
        nouns = [self._named(thing, omit, noise, side) for thing, side in zip(things, sides)]
        return f"{nouns[0]} and {nouns[1]} {both}{action}", nouns

    def absent(self, scene):
        """A negative prompt that names one thing of which the scene has nothing, and what kind of thing that is."""
        objects = scene["objects"]
        colours = {thing["colour"] for thing in objects} | set(scene["background"].split(" "))
        kind = self.random.choice(["shape", "colour", "motion"])
        names, here = {"shape": (SHAPES, {thing["shape"] for thing in objects}),
                       "motion": (MOTIONS, {thing["motion"] for thing in objects}), "colour": (COLOURS, colours)}[kind]
        name = self.random.choice([name for name in names if name not in here])
        if kind == "motion":
            return self.random.choice(VOCABULARY["motions"][name]["gerunds"]), kind
        words = VOCABULARY["shapes"][name] if kind == "shape" else VOCABULARY["colours"][name]["words"]
        word = self.random.choice(words)
        if kind == "colour":
            word += " " + self.random.choice(VOCABULARY["any_shape"])
        return f"{article(word)} {word}" if self._chance(0.5) else word, kind

    def _fact(self, scene):
        """One thing that is true of the scene, for short prompts and negative ones."""
        thing = self.random.choice(scene["objects"])
        facts = [self.random.choice(VOCABULARY["shapes"][thing["shape"]]),
                 self.random.choice(VOCABULARY["motions"][thing["motion"]]["gerunds"])]
        if thing["colour"]:
            colour = self.random.choice(VOCABULARY["colours"][thing["colour"]]["words"])
            facts += [colour, f"{colour} {self.random.choice(VOCABULARY['any_shape'])}"]
        if scene["background"]:
            facts.append(f"{self.random.choice(VOCABULARY['backgrounds'][scene['background']]['words'])} background")
        fact = self.random.choice(facts)
        return f"{article(fact)} {fact}" if self._chance(0.5) else fact

    def caption(self, scene, whole=False):
        """whole: says shape, colour, motion and background of everything (the evaluation's captions)."""
        return self.marked(scene, whole)[0]

    def marked(self, scene, whole=False, anywhere=False):
        """A caption and, for each object, the characters (from, to) that speak of it. `anywhere`: an image tells where the
        objects stand, so that either may be named first."""
        count = len(scene["objects"])
        if not whole and self._chance(self.FACT):
            return self._fact(scene), [(0, 0)] * count
        omit = 0.0 if whole else (0.5 if self._chance(self.LOOSE) else self.omit)
        noise = 0.0 if whole else self.NOISE
        order = list(range(count))
        say_side = count == 2 and self._chance(0.5)
        if say_side or (anywhere and count == 2 and _told_apart(*scene["objects"])):
            self.random.shuffle(order)
        else:  # what is named first is on the left
            order.sort(key=lambda index: scene["objects"][index]["side"])
        things = [scene["objects"][index] for index in order]
        sides = [" " + self.random.choice(VOCABULARY["sides"][thing["side"]]) if say_side else "" for thing in things]
        joint = self.random.choice(JOINTS)
        one_motion = count == 2 and things[0]["motion"] == things[1]["motion"]
        if one_motion and (things[0] | {"side": 0} == things[1] | {"side": 0} or self._chance(0.6)):
            text, marks = self._together(things, omit, noise, sides)
            first, rest = text, []
        else:
            marks = [self._phrase(thing, omit, noise, side) for thing, side in zip(things, sides)]
            text, (first, *rest) = joint.join(marks), marks
        if scene["background"] and (whole or self._chance(0.85 if omit == self.omit else 0.3)):
            ground = self.random.choice(VOCABULARY["backgrounds"][scene["background"]]["words"])
            a = "" if self._chance(0.1) else self.random.choice([article(ground), article(ground), article(ground), "the"]) + " "
            place = self.random.choice(["over", "over", "on", "on", "against", "in front of"])
            thing = self.random.choice(["background", "background", "background", "backdrop"])
            text = self.random.choice([
                f"{first} {place} {a}{ground} {thing}" + (f"{joint}{joint.join(rest)}" if rest else ""),
                f"{text} {place} {a}{ground} {thing}",
                f"{text} {place} {a}{ground} {thing}",
                f"{text}, {ground} {thing}",
                f"{text} {self.random.choice(['on', 'over'])} {ground}",
                f"{text}, the {thing} is {ground}",
                f"{place} {a}{ground} {thing}, {text}",
                f"{place} {a}{ground} {thing} {text}",
                f"{ground} {thing}, {text}",
                f"{ground} {thing}: {text}",
            ])
        if not whole and self._chance(self.NOISE):
            text = self.random.choice(OPENINGS) + text
        if not whole and self._chance(self.NOISE):
            text += self.random.choice(TAILS) if self._chance(0.7) else self._gap() + self._noise()
        text += self.random.choice(ENDS)
        spans, start = [(0, 0)] * count, 0
        for index, mark in zip(order, marks):
            begin = text.find(mark, start)
            if begin < 0:
                begin = text.index(mark)
            spans[index] = (begin, begin + len(mark))
            start = begin if marks[0] == marks[-1] else begin + len(mark)
        return text, spans
