"""The attacks by name. Each kind of attack is a module, which adds its own."""

import dataclasses
import re
import typing


@dataclasses.dataclass(frozen=True)
class Attack:
    name: str
    run: typing.Callable  # (Options, tokens) -> Row
    variants: tuple  # whether callers have tokens: True, False or both
    wanted: str


@dataclasses.dataclass
class Options:
    seconds: float
    kills: int
    minutes: float


@dataclasses.dataclass
class Row:
    """The result of one run of an attack."""
    seen: str
    problems: list  # empty: the server has held the attack
    cells: list = dataclasses.field(default_factory=list)  # of the table of sieges; empty for other attacks


ATTACKS = {}


def attack(name, variants=(True, False)):
    """Decorates a function (options, tokens) -> Row, whose docstring says what is wanted."""
    def add(run):
        assert name not in ATTACKS, name
        ATTACKS[name] = Attack(name, run, variants, re.sub(r"\s+", " ", run.__doc__).strip())
        return run
    return add
