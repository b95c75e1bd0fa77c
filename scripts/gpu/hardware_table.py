#!/usr/bin/env python3
"""Makes the table of docs/operate/hardware.md from rows that `wan_bench memory` has measured: every card, every video.

A card that was not measured, but whose plan is that of a smaller card that was, needs no row: the same blocks under a wider
limit. Neither does the second of two cards with the same limit. The JSON file has an entry for each. Needs wan_inspect in the
PATH (or beside --inspect). Ends with 1 if a measured row is wrong.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

CARDS = ["h200-141", "h100-80", "a100-80", "a6000-48", "l40s-48", "a100-40", "rtx4090-24"]
TABLE = {
    "ti2v-5b": ["1280x704x121", "1280x704x161"],
    "t2v-a14b": ["832x480x81", "1280x720x81"],
    "i2v-a14b": ["832x480x81", "1280x720x81"],
}
GIB = 1 << 30


def limit_of(profile):
    text = pathlib.Path(__file__).resolve().parents[2].joinpath("deploy/profiles", profile + ".yaml").read_text()
    return float(re.search(r"^device_memory_limit: *([0-9.]+)GiB$", text, re.M).group(1))


def plans_of(inspect, model, limit):
    command = [inspect, "plan", "synthetic:" + model, "--memory", str(limit), "--json"]
    for shape in TABLE[model]:
        command += ["--shape", shape]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    return {video["shape"]: video for video in report["videos"]}


def same_plan(row, plan):
    return all(row.get(key) == plan.get(key) for key in ("policies", "decode_tiles", "batched_guidance",
                                                         "prefetch_experts"))


def read_rows(path):
    rows = []
    for line in pathlib.Path(path).read_text().splitlines() if pathlib.Path(path).exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # the line is incomplete, because a run was stopped
        if not row.get("residency"):
            rows.append(row)
    return rows


def find_row(rows, model, shape, limit, plan):
    """Returns the card's own row, otherwise that of the largest smaller card with the same plan; and whether it is its own."""
    candidates = [row for row in rows if row["model"] == "synthetic:" + model and row["shape"] == shape]
    own = [row for row in candidates if row["limit_gib"] == limit]
    if own:
        return own[-1], True
    smaller = [row for row in candidates if row["limit_gib"] < limit and "failed" not in row and same_plan(row, plan)]
    return (max(smaller, key=lambda row: row["limit_gib"]), False) if smaller else (None, False)


def gib(value):
    return f"{value / GIB:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="file of rows, one JSON object a line")
    parser.add_argument("--markdown", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--inspect", default="wan_inspect")
    args = parser.parse_args()
    rows = read_rows(args.results)
    lines = ["| card | video | estimate, GiB | peak | off by | device without | s a step | |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    entries = []
    shown = set()
    wrong = 0
    for card in CARDS:
        limit = limit_of(card)
        for model in TABLE:
            plans = plans_of(args.inspect, model, limit)
            for shape in TABLE[model]:
                plan = plans[shape]
                row, is_own = find_row(rows, model, shape, limit, plan)
                entry = {"card": card, "limit_gib": limit, "model": model, "shape": shape, "plan": plan, "row": row,
                         "own": is_own}
                entries.append(entry)
                start = f"| {card} | {model} {shape} | {gib(plan['peak_bytes'])} | " if plan["fits"] else \
                    f"| {card} | {model} {shape} | refused | "
                if (limit, model, shape) in shown:
                    continue
                if row is None or "peak_bytes" not in row:
                    shown.add((limit, model, shape))
                    lines.append(start + " | | | | not measured |")
                    continue
                if not is_own:
                    continue
                shown.add((limit, model, shape))
                note = ""
                if "failed" in row:
                    note = "FAILED: " + row["failed"]
                elif not row["right"]:
                    note = "WRONG"
                elif not same_plan(row, plan):
                    note = "STALE: the plan has changed since"
                wrong += note.startswith(("FAILED", "WRONG", "STALE"))
                # Leave out the first step of a process, because kernels and clocks are cold then.
                steps = row["step_seconds"]
                off = max((s["estimate_bytes"] / s["peak_bytes"] - 1 for s in row["stages"]), default=0)
                lines.append(start + " | ".join([
                    gib(row["peak_bytes"]), f"{off:.1%}", gib(row["process_bytes"]), f"{steps[-1]:.2f}" if steps else "", note]) +
                    " |")
    pathlib.Path(args.markdown).write_text("\n".join(lines) + "\n")
    pathlib.Path(args.json).write_text(json.dumps(entries, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
