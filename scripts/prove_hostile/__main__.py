"""Attacks servers beside honest callers, one attack after the other, and prints a line for each."""

import argparse
import importlib
import pathlib
import sys
import time
import traceback

import grpc

from prove_abuse import server
from prove_hostile.registry import ATTACKS, Options, Row
from prove_hostile.siege import CELLS


# The modules in the order in which they run: first what the machine adds by itself, then the attacks by kind, last those that take long.
MODULES = ["calibration", "floods", "tls", "reflection", "images", "streams", "bodies", "operation", "answers", "lists",
           "receivers", "texts", "disks", "kills", "hour"]


def parse():
    parser = argparse.ArgumentParser(prog="scripts/prove hostile")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="12 s of each attack, 20 kills")
    parser.add_argument("--seconds", type=float, help="duration of an attack (120; with --quick 12)")
    parser.add_argument("--kills", type=int, help="how often 'kills' ends its server (200; with --quick 20)")
    parser.add_argument("--minutes", type=float, help="duration of 'hour' (60; with --quick 2)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these attacks")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    tokens = parser.add_mutually_exclusive_group()
    tokens.add_argument("--tokens", action="store_true", help="only with tokens")
    tokens.add_argument("--no-tokens", action="store_true", help="only without tokens")
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(ATTACKS)
    if unknown:
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; --list names them")
    return options


def run(attack, options, tokens):
    """Returns the row, and "held", "NOT HELD" or "not run"."""
    try:
        row = attack.run(options, tokens)
    except server.CannotRun as error:
        return Row(str(error), []), "not run"
    except server.NotHeld as error:
        row = Row("", [f"not so: {error}"])
    except grpc.RpcError as error:
        row = Row("", [f"a call ended with {error.code().name}: {error.details()[:200]}"])
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()
        row = Row("", [f"{type(error).__name__}: {error}"])
    return row, "NOT HELD" if row.problems else "held"


def main():
    for module in MODULES:
        importlib.import_module(f"prove_hostile.{module}")  # adds its attacks
    options = parse()
    server.BUILD = options.build.resolve()
    scale = Options(seconds=options.seconds or (12 if options.quick else 120),
                    kills=options.kills or (20 if options.quick else 200),
                    minutes=options.minutes or (2 if options.quick else 60))
    rows = []
    for attack in ATTACKS.values():
        if options.only and attack.name not in options.only:
            continue
        if options.list:
            print(f"{attack.name:18} {attack.wanted}")
            continue
        for tokens in attack.variants:
            if tokens and options.no_tokens or not tokens and options.tokens:
                continue
            start = time.monotonic()
            row, outcome = run(attack, scale, tokens)
            seconds = time.monotonic() - start
            rows.append((attack.name, tokens, outcome, seconds, row))
            numbers = ", ".join(f"{title} {value}" for title, value in zip(CELLS, row.cells))
            said = "; ".join(part for part in (*row.problems, row.seen, numbers) if part)
            print(f"{outcome:8} {attack.name:18} {'tokens' if tokens else 'nobody':6} {seconds:4.0f} s  {said}; "
                  f"wanted: {attack.wanted}", flush=True)
    if options.list:
        return 0
    print_table(rows)
    failed = sum(outcome == "NOT HELD" for _, _, outcome, _, _ in rows)
    skipped = sum(outcome == "not run" for _, _, outcome, _, _ in rows)
    print(f"{failed} not held, {skipped} not run, {sum(row[3] for row in rows) / 60:.1f} min")
    return 1 if failed else 0


def print_table(rows):
    """docs/operate/reliability.md shows the most of it. Milliseconds, but for the last columns."""
    titles = ["attack", "tokens", *CELLS, "outcome", "seen"]
    print("\n| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles))
    for name, tokens, outcome, _, row in rows:
        cells = row.cells or [""] * len(CELLS)
        seen = "; ".join(part for part in (row.seen, *row.problems) if part).replace("|", "/")
        print("| " + " | ".join([f"`{name}`", "yes" if tokens else "no", *cells, outcome, seen]) + " |")
    print()


if __name__ == "__main__":
    sys.exit(main())
