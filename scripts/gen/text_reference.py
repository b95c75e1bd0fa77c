#!/usr/bin/env python3
"""Writes tests/engine/text/testdata/reference.jsonl: random prompts and what the reference gives.

    scripts/gen/text_reference.py CHECKPOINT_DIR [COUNT] > tests/engine/text/testdata/reference.jsonl

CHECKPOINT_DIR holds the golden checkpoints, unpacked; the tokenizer of ti2v-5b is used. Each line has
  raw      the prompt
  cleaned  upstream's cleaning of it, with ftfy's repair of damaged encodings switched off
  ids      ids of the cleaned prompt, with the end mark, cut to 512
Needs ftfy==6.3.1 and transformers==5.23.0 on CPython 3.11.
"""
import html
import html.entities
import json
import random
import re
import sys

import ftfy
from transformers import AutoTokenizer

CONFIG = ftfy.TextFixerConfig(fix_encoding=False)

# Texts that interact: entity parts, characters that become entity parts, marks of the tokenizer, line ends,
# escapes, controls, accents and what the tokenizer's normalization treats as one unit.
FRAGMENTS = (
    ["a", "the ", "sooooo", "haha", "T", ".", "e", " ", "3", "1", "m", "x", "a red cat"]
    + ["&", "&amp;", "&#", "&#x", "&#1", "12;", ";", "amp;", "lt;", "&lt;pad&gt;", "&#x301;", "&EACUTE;"]
    + ["\uff06", "\uff1b", "\u037e", "\uff1cpad\uff1e", "<", ">", "</s>", "<pad>", "<unk>"]
    + ["<0x41>", "<extra_id_7>", "<extra_id_299>", "<extra_id_300>", "\u2581"]
    + ["\r\n", "\n", "\r", "\u2028", "\x85", "\x0b", "\x1b[", "\x1b[0m", "\ufeff", "\u206a", "\x93"]
    + ["\u0301", "\u0327", "\ufe0f", "\u200d", "\u200b", "\u00ad", "\xb2", "\xbd", "\u2122", "\xa9"]
    + ["\ufb01", "\u0149", "\uff76\uff9e", "\u201c", "\u2019", "\u3000", "\xa0", "\u1100\u1161\u11a8"]
    + ["\u732b", "\uff0c", "\u0e19\u0e33", "\u0641\u064e", "\U0001f999", "\u2167", "\ufdfa", "\xe9"]
)
NAMES = sorted(html.entities.html5)
NUMBERS = [0, 1, 27, 31, 38, 59, 65, 127, 128, 150, 255, 0xD800, 0xFDD0, 0xFFFF, 0x1F600, 0x110000, 10**11]


def entity(rng):
    kind = rng.random()
    if kind < 0.3:
        name = f"#{rng.choice(NUMBERS)}" + rng.choice(["", ";"])
    elif kind < 0.4:
        name = f"#x{rng.choice(NUMBERS):x}" + rng.choice(["", ";", "z"])
    else:
        name = rng.choice(NAMES)
        name = rng.choice([name, name, name.upper(), name.rstrip(";"), "amp;" + name])
    return "&" + name + rng.choice(["", "x", " ", "1"])


def prompt(rng):
    parts = [
        entity(rng) if rng.random() < 0.2 else rng.choice(FRAGMENTS)
        for _ in range(rng.randint(1, 18))
    ]
    if rng.random() < 0.03:
        parts *= 40
    return "".join(parts)


def clean(text):
    text = ftfy.fix_text(text, CONFIG)
    text = html.unescape(html.unescape(text)).strip()
    return re.sub(r"\s+", " ", text).strip()


def main():
    folder = f"{sys.argv[1]}/ti2v-5b/original/google/umt5-xxl"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rng = random.Random(20260101)
    for _ in range(count):
        raw = prompt(rng)
        cleaned = clean(raw)
        ids = tokenizer(cleaned, truncation=True, max_length=512).input_ids
        print(json.dumps({"raw": raw, "cleaned": cleaned, "ids": ids}, separators=(",", ":")))


if __name__ == "__main__":
    main()
