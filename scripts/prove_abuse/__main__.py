"""Attacks servers of its own, one attack after the other, and prints a line for each."""

import argparse
import pathlib
import re
import sys
import time
import traceback

import grpc

from prove_abuse import attacks, clocks, disk, endurance, network, server


def main():
    parser = argparse.ArgumentParser(prog="scripts/prove abuse")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the counts and a minute of mixed load")
    parser.add_argument("--minutes", type=float, help="duration of the mixed load (10; with --quick 1)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these attacks")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    options = parser.parse_args()
    server.BUILD = options.build.resolve()
    scale = attacks.Scale(quick=options.quick, minutes=options.minutes or (1 if options.quick else 10))

    table = {**attacks.ATTACKS, **clocks.ATTACKS, **disk.ATTACKS, **network.ATTACKS, **endurance.ATTACKS}
    unknown = set(options.only or ()) - set(table)
    if unknown:
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; --list names them")
    outcomes = []
    for name, attack in table.items():
        wanted = re.sub(r"\s+", " ", attack.__doc__)
        if options.list:
            print(f"{name:18} {wanted}")
            continue
        if options.only and name not in options.only:
            continue
        start = time.monotonic()
        try:
            outcome, seen = "held", attack(scale)
        except server.NotHeld as error:
            outcome, seen = "NOT HELD", f"not so: {error}"
        except server.CannotRun as error:
            outcome, seen = "not run", str(error)
        except grpc.RpcError as error:
            outcome, seen = "NOT HELD", f"a call ended with {error.code().name}: {error.details()[:200]}"
        except Exception as error:  # pylint: disable=broad-except
            traceback.print_exc()
            outcome, seen = "NOT HELD", f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - start
        outcomes.append((name, outcome, seconds, seen))
        print(f"{outcome:8} {name:18} {seconds:5.0f} s  seen: {seen}; wanted: {wanted}", flush=True)
    if options.list:
        return 0
    print_table(outcomes)
    failed = sum(outcome == "NOT HELD" for _, outcome, _, _ in outcomes)
    skipped = sum(outcome == "not run" for _, outcome, _, _ in outcomes)
    print(f"{failed} not held, {skipped} not run, {sum(seconds for _, _, seconds, _ in outcomes) / 60:.1f} min")
    return 1 if failed else 0


def print_table(outcomes):
    """Prints the table that docs/operate/reliability.md shows."""
    print("\n| attack | outcome | seconds | seen |\n| --- | --- | --- | --- |")
    for name, outcome, seconds, seen in outcomes:
        print(f"| `{name}` | {outcome} | {seconds:.0f} | {seen.replace('|', '/')} |")
    print()


sys.exit(main())
