"""Captions of scenes in free words: a grammar of synonyms, word order, punctuation, plurals, British and American
words, articles left out, and words that mean nothing; and sentences.json, whole sentences of which only what a scene has
is filled in. For what a caption leaves unsaid, world.py has a default.

Capitals are not written here: the tokenizer folds case (make_tokenizer.py). `recased` writes them for the evaluation.
"""

import json
import random
import re
import string
from pathlib import Path

from world import BACKGROUNDS, COLOURS, DEFAULT_COLOURS, MOTIONS, SHAPES, SIZES, VOCABULARY, default_background

JOINTS = [", ", ", ", " and ", " and ", " while ", "; ", ". ", " & ", ", and ", " with ", ", while ", " as ", " + ", " / "]
# Words before the second of two objects, if the first one is on its left or on its right.
BESIDE = {"right": ["next to it ", "beside it ", "to the right of it ", "on its right ", "on the other side "],
          "left": ["next to it ", "beside it ", "to the left of it ", "on its left ", "on the other side "]}
ENDS = ["", "", "", ".", ".", "!", "...", ";"]
OPENINGS = ["a video of ", "an animation of ", "video: ", "a short clip of ", "animation: ", "please draw ", "show me ",
            "i want to see ", "there is ", "we see ", "make ", "video of ", "animation of ", "please show me ", "i would like ",
            "i'd like to see ", "generate ", "create ", "give me ", "draw ", "draw me ", "animate ", "a clip of ", "here is ",
            "imagine ", "a scene with ", "a video in which ", "a clip where ", "picture ", "an animated clip of ",
            "a short video of ", "a short animation of ", "a simple animation of ", "a 2d animation of ", "a cartoon of ",
            "a gif of ", "gif: ", "clip: ", "scene: ", "footage of ", "short video: ", "a video showing ", "a clip showing ",
            "an animation showing ", "a video where ", "a scene where ", "a scene in which ", "an animation in which ",
            "this video shows ", "the clip shows ", "it shows ", "render ", "produce ", "display ", "visualize ", "now show me ",
            "hi, please show me ", "hello, show me ", "please generate ", "please create ", "please animate ", "i need ",
            "i need a video of ", "i want a video of ", "let me see ", "we can see ", "generate a video of ",
            "create an animation of ", "make a video of ", "make me a short clip of ", "picture this: "]
QUESTIONS = ["can you show me ", "could you draw ", "can you make ", "could i get ", "can i see ", "would you animate "]
ORDERS = ["make ", "let ", "have ", "watch ", "i want to see ", "please make ", "can you make ", "i'd like to see "]
ADJECTIVES = ["beautiful", "shiny", "nice", "pretty", "lovely", "perfect", "cute", "flat", "simple", "single", "funny", "magic",
              "clean", "plain", "solid", "bright", "neat", "cheerful", "glossy", "elegant", "charming", "friendly", "happy",
              "silly", "adorable", "gorgeous", "wonderful", "fancy", "ordinary", "normal", "basic", "lone", "solitary", "lonely",
              "cartoon", "stylish", "modern", "vivid", "matte", "playful", "sweet", "two-dimensional", "filled", "delightful",
              "jolly", "polished"]
ADVERBS = ["slowly", "quickly", "gently", "smoothly", "steadily", "calmly", "gracefully", "happily", "very slowly", "fast",
           "quietly", "continuously", "simply", "softly", "lightly", "peacefully", "evenly", "swiftly", "rapidly", "briskly",
           "lazily", "playfully", "merrily", "cheerfully", "silently", "elegantly", "nicely", "neatly", "fluidly",
           "effortlessly", "carefully", "patiently", "joyfully", "serenely", "easily", "delicately", "proudly", "confidently",
           "speedily", "very gently"]
TAILS = [", flat design", ", high quality", ", smooth animation", " slowly", " again", ", 4k", " in the video", ", please",
         " all the time", ", minimal style", " happily", ", best quality", ", nothing else", " please", " the whole time",
         ", simple and clean", ", thanks", ". thank you", " for a few seconds", ", hd", ", full hd", ", 1080p", ", 2d animation",
         ", 2d style", ", vector style", ", vector graphics", ", cartoon style", ", motion graphics", ", clean look",
         ", crisp edges", ", no text", ", no sound", ", no other objects", ", nothing else in the scene", ", static camera",
         ", fixed camera", ", the camera does not move", ", minimalist", ", professional quality", ", short clip",
         ", if possible", ", please and thank you", ", for my kids", ", for a presentation", ". the camera stays still",
         ". nothing else happens", ". nothing else moves", ". keep it simple", ". make it look nice", ". no text please",
         ". thanks in advance", ". thanks a lot", ". cheers", ". that is all", ". that's it", " throughout", " if you can",
         " for me", " for me please", " in the scene", " in this clip", " during the whole video", " from start to finish",
         " until the end"]
GROUNDS = ["background", "background", "background", "background", "background", "backdrop", "backdrop", "canvas", "screen", "wall"]
# What a caption may say about a background at its end.
BEHIND = ["{} behind it", "with {} behind it", "with everything behind it {}", "background {}", "{} bg", "on plain {}",
          "make the background {}", "the background should be {}", "please make the background {}", "background in {}"]

# Whole sentences with slots, by what they can tell: of one object; of two, the left one first; of two with their places, 1 on the
# left and 2 on the right; of two that do the same. Slots: {a} "a red star", {the} "the red star", {n} "red star", {s} "star" and
# {as} "a star" beside {c} "red"; {does}, {do}, {doing}; {bg} "dark blue", {abg} "a dark blue".
SENTENCES = json.loads((Path(__file__).parent / "sentences.json").read_text())
SLOT = re.compile(r"{([a-z]+)([12]?)}")


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
    """Returns the plural of a noun that may have several words."""
    return noun + ("es" if noun.endswith(("s", "x", "sh")) else "s")


def _told_apart(thing, other):
    """Returns whether the shape or the colour says which of two objects is meant."""
    colours = {thing["colour"], other["colour"]}
    return thing["shape"] != other["shape"] or (len(colours) == 2 and "" not in colours)


def _alike(thing, other):
    """Returns whether two objects differ only in their place."""
    return all(thing[key] == other[key] for key in thing if key != "side")


# The plainest words for each motion.
PLAIN = {"right": "moves left to right", "left": "moves right to left", "up": "moves up", "down": "moves down", "bounce": "bounces",
         "spin": "spins", "grow": "grows", "shrink": "shrinks", "orbit": "orbits the centre"}


def plain(scene):
    """Returns the plainest caption that says everything: "a small red circle spins and a blue star moves up over a grey background"."""
    things = sorted(scene["objects"], key=lambda thing: thing["side"])  # left before right
    nouns = [" ".join(filter(None, (thing["size"], thing["colour"], thing["shape"]))) for thing in things]
    motions = [PLAIN[thing["motion"]] for thing in things]
    if len(things) == 2 and _alike(*things):
        verb, *rest = motions[0].split(" ")
        text = " ".join(["two", plural(nouns[0]), verb.removesuffix("s"), *rest])
    else:
        text = " and ".join(f"{article(noun)} {noun} {motion}" for noun, motion in zip(nouns, motions))
    return f"{text} over {article(scene['background'])} {scene['background']} background"


def recased(text, random):
    """Returns the caption in other capitals: the first letter of every word, some words, all letters, or any letters."""
    way = random.randrange(4)
    if way == 0:
        return text.title()
    if way == 1:
        return " ".join(word.capitalize() if random.random() < 0.4 else word for word in text.split(" "))
    if way == 2:
        return text.upper()
    return "".join(letter.upper() if random.random() < 0.3 else letter for letter in text)


class Captioner:
    """Writes captions. With `numbers` a third of the words without a meaning are numbers; the captions that the tokenizer was
    made of have none."""

    # Chances of captions that only training needs: single facts, as a negative prompt names them, and words without a meaning.
    FACT, NOISE = 0.05, 0.12
    # Chances to leave unsaid what world.py has a default for: an object's colour, a circle's shape, a bounce, the background.
    UNSAID = {"colour": 0.5, "shape": 0.1, "motion": 0.3, "background": 0.6}
    # The same chances if an image tells it, and for a background whose colour has a name.
    SHOWN = 0.15
    # Chance of using one of SENTENCES.
    SENTENCE = 0.3

    def __init__(self, seed, numbers=False):
        self.random = random.Random(seed)
        self.numbers = numbers

    def _chance(self, share):
        return self.random.random() < share

    def _some(self, values):
        return self.random.choice(values)

    def _word(self, words):
        """Returns one of several words that mean the same; the first one is the plainest."""
        return words[0] if self._chance(0.5) else self._some(words)

    def _noise(self):
        """Returns a word that is in no vocabulary."""
        letters = string.digits if self.numbers and self._chance(0.33) else string.ascii_lowercase
        return "".join(self._some(letters) for _ in range(self.random.randrange(2, 7)))

    def _gap(self):
        """Returns what comes before a word without a meaning at the end of a caption."""
        return ", " if self.numbers and self._chance(0.5) else " "

    def _unsaid(self, scene, thing, shown):
        """The names of what a free caption leaves unsaid of an object. shown: an image tells it."""
        usual = {"colour": thing["colour"] == DEFAULT_COLOURS[thing["shape"]], "shape": thing["shape"] == "circle",
                 "motion": thing["motion"] == "bounce" and len(scene["objects"]) == 1}
        chances = {key: self.UNSAID[key] if usual[key] else self.SHOWN if shown and key != "motion" else 0.0 for key in usual}
        return {key for key, chance in chances.items() if self._chance(chance)}

    def _verb(self, motion, form):
        """form: 0 "moves up", 1 "move up", 2 "moving up"."""
        entry = VOCABULARY["motions"][motion]
        ways, verbs = entry.get("ways", []), entry.get("verbs", [])
        if ways and (not verbs or self._chance(0.55)):
            verb = f"{self._word(VOCABULARY['travel'])} {self._word(ways)}"
        else:
            verb = self._word(verbs)
        forms, *rest = verb.split(" ")
        return " ".join([forms.split("|")[form], *rest])

    def _hurried(self, verb, noise):
        """Returns the verb, now and then with an adverb before or after it."""
        if not self._chance(noise):
            return verb
        adverb = self._some(ADVERBS)
        return f"{adverb} {verb}" if self._chance(0.5) else f"{verb} {adverb}"

    def _noun(self, thing, unsaid, noise=0.0, turned=False):
        """turned: the colour may come after the shape."""
        words, behind = [], ""
        if self._chance(noise):
            words.append(self._some(ADJECTIVES) if self._chance(0.7) else self._noise())
        if thing["size"]:
            words.append(self._word(VOCABULARY["sizes"][thing["size"]]))
        if thing["colour"] and "colour" not in unsaid:
            colour = self._word(VOCABULARY["colours"][thing["colour"]]["words"])
            if turned and self._chance(0.12):
                behind = self._some([" that is {}", " which is {}", " in {}", ", {},", " ({})", " of {} colour", " of {} color",
                                     " coloured {}", " colored {}"]).format(colour)
            else:
                words.append(colour)
                if self._chance(0.03):
                    words.append(self._some(["coloured", "colored"]))
        words.append(self._word(VOCABULARY["any_shape"] if "shape" in unsaid else VOCABULARY["shapes"][thing["shape"]]))
        words[-1] += behind
        return words

    def _named(self, thing, unsaid, noise, side):
        """Returns the noun with its article, which is now and then left out, and its place."""
        noun = self._noun(thing, unsaid, noise, turned=True)
        start = "" if self._chance(0.12) else (self._some(["the ", "one "]) if self._chance(0.08) else article(noun[0]) + " ")
        return start + " ".join(noun) + side

    def _phrase(self, thing, unsaid, noise, side, ordered):
        """One object and what it does. ordered: behind a word such as "make", which wants "a star spin"."""
        before = ""
        if side and self._chance(0.3):
            before, side = self._some([side.strip() + " ", side.strip() + ", ", thing["side"] + ": "]), ""
        if "motion" in unsaid:
            return before + self._named(thing, unsaid, noise, side)
        form = self.random.random()
        if ordered and form < 0.7:
            return f"{before}{self._named(thing, unsaid, noise, side)} {self._hurried(self._verb(thing['motion'], 1), noise)}"
        gerund = self._verb(thing["motion"], 2)
        if form < 0.5:
            return f"{before}{self._named(thing, unsaid, noise, side)} {self._hurried(self._verb(thing['motion'], 0), noise)}"
        if form < 0.62 and " " not in gerund:
            return f"{before}{article(gerund)} {gerund} {' '.join(self._noun(thing, unsaid))}{side}"
        named = self._named(thing, unsaid, noise, side)
        if form < 0.72:
            return f"{before}{named} is {self._hurried(gerund, noise)}"
        if form < 0.82:
            return f"{before}{named} {self._some(['that', 'which'])} {self._hurried(self._verb(thing['motion'], 0), noise)}"
        return f"{before}{named}{self._some([', ', ' '])}{self._hurried(gerund, noise)}"

    def _together(self, things, unsaid, noise, sides, ordered):
        """Two objects with one motion: "two red circles move right", "a star and a heart are spinning". The phrase, and
        what of it speaks of each."""
        motion = things[0]["motion"]
        form = self.random.random()
        if ordered or form < 0.7:
            action = self._hurried(self._verb(motion, 1), noise)
        else:
            action = ("are " if form < 0.85 else "") + self._hurried(self._verb(motion, 2), noise)
        both = self._some(["both ", "", ""])
        if _alike(*things):
            *words, noun = self._noun(things[0], unsaid[0])
            number = self._some(["two ", "two ", "two ", "2 ", "a pair of "])
            text = " ".join([*words, plural(noun)])
            return f"{number}{text} {action}", [text, text]
        nouns = [self._named(thing, left, noise, side) for thing, left, side in zip(things, unsaid, sides)]
        return f"{nouns[0]} and {nouns[1]} {both}{action}", nouns

    def _told_later(self, things, unsaid, noise, sides):
        """Objects first and what they do in sentences behind, or None where they cannot be told apart so. What stands between
        the two is left open as "{}": the background may go there."""
        nouns = [self._named(thing, left, noise, side) for thing, left, side in zip(things, unsaid, sides)]
        if len(things) == 1:
            names = [self._some(["it", "it", f"the {self._word(VOCABULARY['shapes'][things[0]['shape']])}"])]
        elif things[0]["shape"] != things[1]["shape"]:
            names = ["the " + self._word(VOCABULARY["shapes"][thing["shape"]]) for thing in things]
        elif things[0]["colour"] != things[1]["colour"] and all(thing["colour"] for thing in things):
            names = [f"the {self._word(VOCABULARY['colours'][thing['colour']]['words'])} one" for thing in things]
        else:
            names = [f"the {thing['side']} one" for thing in things]
        is_ = self._chance(0.25)
        told = [f"{name} " + self._hurried("is " + self._verb(thing["motion"], 2) if is_ else self._verb(thing["motion"], 0), noise)
                for name, thing in zip(names, things)]
        return (" and ".join(nouns) + "{}" + self._some([". ", ", ", "; ", " and "])
                + self._some([", ", " and ", " while ", ". "]).join(told)), nouns

    def absent(self, scene):
        """A negative prompt that names one thing of which the scene has nothing, and what kind of thing that is."""
        objects = scene["objects"]
        colours = {thing["colour"] for thing in objects} | set(scene["background"].split(" "))
        kind = self._some(["shape", "colour", "motion"])
        names, here = {"shape": (SHAPES, {thing["shape"] for thing in objects}),
                       "motion": (MOTIONS, {thing["motion"] for thing in objects}), "colour": (COLOURS, colours)}[kind]
        name = self._some([name for name in names if name not in here])
        if kind == "motion":
            return self._verb(name, 2), kind
        words = VOCABULARY["shapes"][name] if kind == "shape" else VOCABULARY["colours"][name]["words"]
        word = self._word(words)
        if kind == "colour":
            word += " " + self._word(VOCABULARY["any_shape"])
        return f"{article(word)} {word}" if self._chance(0.5) else word, kind

    def fact(self, scene):
        """Returns one thing that is true of the scene, for negative prompts."""
        thing = self._some(scene["objects"])
        facts = [self._word(VOCABULARY["shapes"][thing["shape"]]), self._verb(thing["motion"], 2)]
        if thing["colour"]:
            colour = self._word(VOCABULARY["colours"][thing["colour"]]["words"])
            facts += [colour, f"{colour} {self._word(VOCABULARY['any_shape'])}"]
        if scene["background"]:
            facts.append(f"{self._word(VOCABULARY['backgrounds'][scene['background']]['words'])} background")
        fact = self._some(facts)
        return f"{article(fact)} {fact}" if self._chance(0.5) else fact

    def _over(self, text, first, rest, joint, background):
        """The text, which is `first` and `rest` joined, with a background named somewhere."""
        ground = self._word(VOCABULARY["backgrounds"][background]["words"])
        a = "" if self._chance(0.1) else self._some([article(ground), article(ground), article(ground), "the"]) + " "
        place = self._some(["over", "over", "on", "on", "against", "in front of", "across"])
        thing = self._some(GROUNDS)
        if self._chance(0.15):
            return text + self._some([", ", ". ", " "]) + self._some(BEHIND).format(ground)
        return self._some([
            f"{first} {place} {a}{ground} {thing}" + (f"{joint}{joint.join(rest)}" if rest else ""),
            f"{text} {place} {a}{ground} {thing}",
            f"{text} {place} {a}{ground} {thing}",
            f"{text}, {ground} {thing}",
            f"{text}, {thing} {self._some(['', 'in '])}{ground}",
            f"{text} {self._some(['on', 'over', 'against'])} {ground}",
            f"{text}, the {thing} is {ground}",
            f"{text}. the {thing} is {ground}",
            f"{text} with {a}{ground} {thing}",
            f"the {thing} is {ground}{self._some([', ', '. ', ' and '])}{text}",
            f"{thing}: {ground}{self._some([', ', '. ', '; '])}{text}",
            f"{place} {a}{ground} {thing}, {text}",
            f"{place} {a}{ground} {thing} {text}",
            f"{a}{ground} {thing} with {text}",
            f"{ground} {thing}{self._some([', ', ': ', '; ', '. '])}{text}",
        ])

    def _named_background(self, scene, shown):
        """Returns the background's name, or "" if it is left unsaid. shown: an image tells it."""
        ground = scene["background"]
        usual = ground == default_background([thing["colour"] for thing in scene["objects"]])
        return "" if self._chance(self.UNSAID["background"] if usual else self.SHOWN if shown else 0.0) else ground

    def _sentence(self, objects, ground, anywhere):
        """One of SENTENCES, and the characters that name each object. anywhere: either may be named first."""
        order = sorted(range(len(objects)), key=lambda index: objects[index]["side"])  # left before right
        things = [objects[index] for index in order]
        kinds = ["one"]
        if len(things) == 2:
            kinds = ["two", "two"] + ["sided", "sided"] * (things[0]["side"] != things[1]["side"])
            kinds += ["together"] * 3 * (things[0]["motion"] == things[1]["motion"])
        kind = self._some(kinds)
        if kind in ("two", "together") and anywhere and _told_apart(*things) and self._chance(0.5):
            order.reverse()
            things.reverse()
        coloured = all(thing["colour"] for thing in things)
        chosen = self._some([text for text in SENTENCES[kind] if ("bg}" in text) == bool(ground)
                             and (coloured or not re.search(r"{c[12]?}", text))])
        word = self._word(VOCABULARY["backgrounds"][ground]["words"]) if ground else ""
        verbs = ("does", "do", "doing")
        text, end, spans = "", 0, [(0, 0)] * len(things)
        for slot in SLOT.finditer(chosen):
            text += chosen[end:slot.start()]
            end = slot.end()
            name, which = slot[1], int(slot[2] or 1) - 1
            thing = things[which]
            if name in ("bg", "abg"):
                text += word if name == "bg" else f"{article(word)} {word}"
            elif name in verbs:
                text += self._verb(thing["motion"], verbs.index(name))
            elif name == "c":
                text += self._word(VOCABULARY["colours"][thing["colour"]]["words"])
            else:
                noun = " ".join(self._noun(thing, {"colour"} if name in ("s", "as") else set(), self.NOISE / 2))
                if name == "the":
                    noun = f"the {noun}"
                elif name in ("a", "as"):
                    noun = f"{article(noun)} {noun}"
                spans[order[which]] = (len(text), len(text) + len(noun))
                text += noun
        text += chosen[end:]
        return text + (self._some(ENDS) if text[-1].isalnum() else ""), spans

    def caption(self, scene, whole=False):
        """whole: says shape, colour, motion and background of everything (the evaluation's captions)."""
        return self.marked(scene, whole)[0]

    def marked(self, scene, whole=False, anywhere=False):
        """A caption and, for each object, the characters (from, to) that speak of it. `anywhere`: an image tells where the
        objects stand and how they look, so that either may be named first, and things may be left out."""
        objects = scene["objects"]
        count = len(objects)
        if not whole and self._chance(self.FACT):
            return self.fact(scene), [(0, 0)] * count
        ground = scene["background"] if whole else self._named_background(scene, anywhere)
        if not whole and self._chance(self.SENTENCE) and not (count == 2 and _alike(*objects)):
            return self._sentence(objects, ground, anywhere)
        noise = 0.0 if whole else self.NOISE
        order = list(range(count))
        say_side = count == 2 and self._chance(0.5)
        if say_side or (anywhere and count == 2 and _told_apart(*objects)):
            self.random.shuffle(order)
        else:  # the object that is named first is on the left
            order.sort(key=lambda index: objects[index]["side"])
        things = [objects[index] for index in order]
        unsaid = [set() if whole else self._unsaid(scene, thing, anywhere) for thing in things]
        sides = [" " + self._word(VOCABULARY["sides"][thing["side"]]) if say_side else "" for thing in things]
        ordered = not whole and self._chance(0.06)
        joint = self._some(JOINTS)
        one_motion = count == 2 and things[0]["motion"] == things[1]["motion"]
        if one_motion and (_alike(*things) or self._chance(0.6)):
            text, marks = self._together(things, unsaid, noise, sides, ordered)
            first, rest = text, []
        elif self._chance(0.12) and not ordered and not any("motion" in left for left in unsaid):
            text, marks = self._told_later(things, unsaid, noise, sides)
            between = ""
            if ground and self._chance(0.6):
                word = self._word(VOCABULARY["backgrounds"][ground]["words"])
                between = f" {self._some(['on', 'over', 'against'])} {article(word)} {word} {self._some(GROUNDS)}"
                ground = ""
            text = text.format(between)
            first, rest = text, []
        else:
            marks = [self._phrase(thing, left, noise, side, ordered) for thing, left, side in zip(things, unsaid, sides)]
            if count == 2 and not say_side and things[0]["side"] != things[1]["side"] and self._chance(0.15):
                marks[1] = self._some(BESIDE[things[1]["side"]]) + marks[1]
            text, (first, *rest) = joint.join(marks), marks
        if ground:
            text = self._over(text, first, rest, joint, ground)
        asked = not whole and not ordered and self._chance(0.04)
        if ordered or asked:
            text = self._some(ORDERS if ordered else QUESTIONS) + text
        elif not whole and self._chance(self.NOISE):
            text = self._some(OPENINGS) + text
        if not whole and self._chance(self.NOISE):
            text += self._some(TAILS) if self._chance(0.7) else self._gap() + self._noise()
        text += "?" if asked else self._some(ENDS)
        spans, start = [(0, 0)] * count, 0
        for index, mark in zip(order, marks):
            begin = text.find(mark, start)
            if begin < 0:
                begin = text.index(mark)
            spans[index] = (begin, begin + len(mark))
            start = begin if marks[0] == marks[-1] else begin + len(mark)
        return text, spans
