"""Judges whether what honest callers measured is within the limits. All functions are pure."""

import dataclasses
import math

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Limit:
    """Most milliseconds that a kind of call may take: all calls but one in a hundred, and every call. None: no limit."""
    p99: float = None
    longest: float = None


# The limits that docs/operate/reliability.md promises.
LIMITS = {
    "health": Limit(p99=100),
    "health, new connection": Limit(p99=100),
    "livez": Limit(p99=100),
    "readyz": Limit(p99=100),
    "GetJob": Limit(p99=250),
    "GET video": Limit(p99=250),
    "CancelJob": Limit(p99=250),
    "CreateJob": Limit(longest=2000),
    "POST video": Limit(longest=2000),
    "ListJobs": Limit(longest=2000),
    "WatchJob": Limit(longest=2000),
    "DownloadArtifact": Limit(longest=2000),
    "GET content": Limit(longest=2000),
}
MOST_MEMORY_MIB = 600
# The setting shutdown_grace_seconds of the attacked servers.
GRACE_SECONDS = 10


@dataclasses.dataclass
class Calls:
    """The measurements of all calls of one kind."""
    milliseconds: list = dataclasses.field(default_factory=list)  # of those that were answered as they should be
    failures: dict = dataclasses.field(default_factory=dict)  # from what was said to how often

    def failed(self, text):
        self.failures[text] = self.failures.get(text, 0) + 1

    @property
    def count(self):
        return len(self.milliseconds) + sum(self.failures.values())


def percentile(values, share):
    """Returns the smallest value that at least this share of all values does not exceed; NaN if there are none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def problems(calls, kinds=None):
    """Returns texts about what is beyond the limits. `kinds`: the kinds of calls that count; None: all."""
    found = []
    for kind, limit in LIMITS.items():
        if kinds is not None and kind not in kinds:
            continue
        seen = calls.get(kind) or Calls()
        if seen.failures:
            text, often = max(seen.failures.items(), key=lambda item: item[1])
            found.append(f"{sum(seen.failures.values())} of {seen.count} {kind} failed ({often} times: {text})")
        if not seen.milliseconds:
            if not seen.failures:
                found.append(f"{kind} was never answered")
            continue
        p99, longest = percentile(seen.milliseconds, 0.99), max(seen.milliseconds)
        if limit.p99 is not None and p99 > limit.p99:
            found.append(f"{kind} p99 {p99:.0f} ms, limit {limit.p99:.0f}")
        if limit.longest is not None and longest > limit.longest:
            found.append(f"{kind} took {longest:.0f} ms, limit {limit.longest:.0f}")
    return found


def process_problems(grown_mib, exit_code, stop_seconds, stop_code, stop_limit=GRACE_SECONDS):
    """`exit_code`: with which the process ended under the attack, None if it did not; `stop_seconds`: what SIGTERM took, None
    where the process had not ended when the patience did."""
    found = []
    if exit_code is not None:
        return [f"the process ended with {exit_code} (memory +{grown_mib:.0f} MiB)"]
    if grown_mib > MOST_MEMORY_MIB:
        found.append(f"memory +{grown_mib:.0f} MiB, limit {MOST_MEMORY_MIB}")
    if stop_seconds is None:
        found.append("SIGTERM was not heard")
    elif stop_seconds > stop_limit:
        found.append(f"SIGTERM took {stop_seconds:.1f} s, limit {stop_limit}")
    elif stop_code != 0:
        found.append(f"SIGTERM ended with {stop_code}")
    return found


def slope(points):
    """Returns by least squares how much y grows for each x."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def together(calls, kinds):
    """Joins the calls of several kinds."""
    whole = Calls()
    for kind in kinds:
        seen = calls.get(kind) or Calls()
        whole.milliseconds += seen.milliseconds
        for text, often in seen.failures.items():
            whole.failures[text] = whole.failures.get(text, 0) + often
    return whole


# The columns of the table: the title, the kinds of calls, and whether both p99 and the longest time are shown, or only the longest.
COLUMNS = [
    ("health p99/max", ["health", "health, new connection"], True),
    ("probes p99/max", ["livez", "readyz"], True),
    ("GetJob p99/max", ["GetJob", "GET video"], True),
    ("CancelJob p99/max", ["CancelJob"], True),
    ("CreateJob max", ["CreateJob", "POST video"], False),
    ("others max", ["ListJobs", "WatchJob", "DownloadArtifact", "GET content"], False),
]


def cell(calls, kinds, with_p99):
    """Returns the milliseconds as text; a dash if nothing was answered."""
    seen = together(calls, kinds)
    if not seen.milliseconds:
        return "-"
    longest = f"{max(seen.milliseconds):.0f}"
    return f"{percentile(seen.milliseconds, 0.99):.0f}/{longest}" if with_p99 else longest
