"""All attacks that fit one server together, beside honest callers, for an hour: memory is flat at the end."""

from prove_hostile import answers, bodies, floods, images, lists, operation, reflection, streams
from prove_hostile.measures import slope
from prove_hostile.registry import Options, Row, attack
from prove_hostile.siege import besiege, hold_back, make_honest_job, place_of, victim

# Attacks that do not keep a core busy for long, so that the server has the two cores of a small machine.
ATTACKS = [bodies.large_bodies, floods.rapid_resets, images.small_pictures, lists.dear_lists, operation.scrapes,
           reflection.names_of_dots, streams.unread_downloads, streams.health_watches, answers.unread_lists]
MIB_AN_HOUR = 32


def settled(points):
    """Returns the second half of the samples, because caches have filled by then."""
    return points[len(points) // 2:]


@attack("hour")
def hour(options, tokens):
    """nine attacks at once beside honest callers: memory no longer grows in the second half (64 MiB, and 32 MiB an hour by least
    squares), nothing fails, and SIGTERM is heard"""
    with victim(tokens, fake=False) as target:
        facts = make_honest_job(target) | streams.make_file(target) | answers.make_long_jobs(target)
        facts |= {"honest picture bytes": 0}
        hold_back(target)
        seen = besiege(Options(options.minutes * 60, 0, 0), target, place_of(target, facts), ATTACKS)
        row = seen.row()
        points = settled(seen.points)
        values = [mib for _, mib in points]
        hourly = slope(points) * 3600 if len(points) > 1 else 0.0
        text = f"memory {values[0]:.0f} to {values[-1]:.0f} MiB in the second half, {hourly:+.0f} MiB an hour" if values else ""
        # Within minutes the spread of the samples is larger than a slope could show.
        grows = values and values[-1] - values[0] > 64 or options.minutes >= 30 and hourly > MIB_AN_HOUR
        problems = row.problems + ([f"memory grows: {text}"] if grows else [])
        return Row(text, problems, row.cells)
