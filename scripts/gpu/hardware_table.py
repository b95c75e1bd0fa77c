#!/usr/bin/env python3
"""Makes the table of docs/operate/hardware.md from rows that `wan_bench memory` has measured: a line for each card, and
the seconds of steps.

A card's video that was not measured, but whose plan is that of a smaller card that was, needs no row: the same blocks under a
wider limit. Neither does the second of two cards with the same limit. The JSON file has an entry for each
video. Needs wan_inspect in the PATH (or beside --inspect). Ends with 1 if a measured row is wrong.
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


def problem_of(row, plan):
    if "failed" in row:
        return "FAILED: " + row["failed"]
    if "peak_bytes" not in row or not row["right"]:
        return "WRONG"
    return "" if same_plan(row, plan) else "STALE: the plan has changed since"


def line_of(card, limit, measured):
    """The card's line; of every video the stage counts whose estimate is furthest above its peak."""
    off = [max(100 * (stage["estimate_bytes"] / stage["peak_bytes"] - 1) for stage in row["stages"]) for row in measured]
    most = max(row["process_bytes"] for row in measured) / GIB
    return f"| {card} | {min(off):.1f} to {max(off):.1f} % | {most:.2f} of {limit:g} |"


def steps_of(measured):
    """The seconds of the last steps of each shape, because kernels and clocks are cold in a process' first."""
    seconds = {}
    for row in measured:
        seconds.setdefault(row["shape"], []).append(row["step_seconds"][-1])
    return [f"{shape}: {min(times):.2f} to {max(times):.2f} s a step" for shape, times in sorted(seconds.items())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="file of rows, one JSON object a line")
    parser.add_argument("--markdown", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--inspect", default="wan_inspect")
    args = parser.parse_args()
    rows = read_rows(args.results)
    lines = ["| card | estimate above the peak | missing from the device, GiB |", "| --- | --- | --- |"]
    entries = []
    everything = []
    problems = []
    missing = []
    for card in CARDS:
        limit = limit_of(card)
        if limit in [entry["limit_gib"] for entry in entries]:
            continue  # the second card with this limit
        measured = []
        for model in TABLE:
            plans = plans_of(args.inspect, model, limit)
            for shape in TABLE[model]:
                plan = plans[shape]
                row, is_own = find_row(rows, model, shape, limit, plan)
                entries.append({"card": card, "limit_gib": limit, "model": model, "shape": shape, "plan": plan, "row": row,
                                "own": is_own})
                name = f"{card} {model} {shape}"
                if row is None:
                    missing.append(f"* {name}: not measured")
                elif is_own and (problem := problem_of(row, plan)):
                    problems.append(f"* {name}: {problem}")
                elif is_own:
                    measured.append(row)
        if measured:
            lines.append(line_of(card, limit, measured))
            everything += measured
    pathlib.Path(args.markdown).write_text("\n".join([*lines, "", *steps_of(everything), *problems, *missing]) + "\n")
    pathlib.Path(args.json).write_text(json.dumps(entries, indent=1) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
