#!/usr/bin/env python3
"""Writes engine/text/html_entities.inc: the named character references of the HTML standard.

Run it from the repository's root. The names come from Python's html.entities, which holds the
standard's list; the list is closed, so this is needed only if the format of the table changes.
"""
import html.entities
import pathlib
import textwrap

TARGET = pathlib.Path("engine/text/html_entities.inc")


def row(name, value):
    first, second = [*map(ord, value), 0][:2]
    return f'{{"{name}",0x{first:X},0x{second:X}}},'


def main():
    names = sorted(html.entities.html5.items())
    assert all(len(value) in (1, 2) for _, value in names)
    rows = " ".join(row(name, value) for name, value in names)
    header = (
        "// Made by scripts/gen/html_entities.py from the named character references of the HTML\n"
        "// standard (html.spec.whatwg.org/entities.json): name, code point, second code point or 0.\n"
    )
    TARGET.write_text(header + textwrap.fill(rows, 100, break_long_words=False) + "\n")
    print(f"{TARGET}: {len(names)} names")


if __name__ == "__main__":
    main()
