"""Lists that walk everybody's jobs."""

import sqlite3

from wan.v1 import generation_pb2, video_generation_pb2

from prove_hostile.crowds import burst
from prove_hostile.registry import attack
from prove_hostile.siege import hold_back, run_siege

JOBS = 30_000


def multiply(database, count):
    """Copies the latest job, which has ended and has no files, many times under other names."""
    number, blob = database.execute("SELECT number, job FROM jobs ORDER BY number DESC LIMIT 1").fetchone()
    job = generation_pb2.Job.FromString(blob)
    events = [(sequence, generation_pb2.Event.FromString(event)) for sequence, event in
              database.execute("SELECT sequence, event FROM events WHERE job = ?", (number,))]
    columns = [row[1] for row in database.execute("PRAGMA table_info(jobs)")]
    others = [column for column in columns if column not in ("number", "name", "job", "request_id")]
    keys = [row[1] for row in database.execute("PRAGMA table_info(job_keys)") if row[1] != "job"]

    def copies():
        for copy in range(1, count + 1):
            job.name = f"jobs/{copy:020x}"
            yield number + copy, job.name, job.SerializeToString(), number

    def copied_events():
        for copy in range(1, count + 1):
            for sequence, event in events:
                event.job = f"jobs/{copy:020x}"
                yield number + copy, sequence, event.SerializeToString()

    database.executemany(f"INSERT INTO jobs (number, name, job, {', '.join(others)}) SELECT ?, ?, ?, {', '.join(others)} "
                         "FROM jobs WHERE number = ?", copies())
    database.executemany("INSERT INTO events (job, sequence, event) VALUES (?, ?, ?)", copied_events())
    # The order of the ends goes on; the totals of ended jobs follow only changes.
    rest = ", ".join("ended + ? - job" if key == "ended" else key for key in keys)
    database.executemany(f"INSERT INTO job_keys (job, {', '.join(keys)}) SELECT ?, {rest} FROM job_keys WHERE job = ?",
                         ((number + copy, number + copy, number) for copy in range(1, count + 1)))
    database.execute("UPDATE ended_totals SET jobs = jobs + ?, entry_bytes = entry_bytes / jobs * (jobs + ?) "
                     "WHERE owner = (SELECT owner FROM job_keys WHERE job = ?) AND state = ?",
                     (count, count, number, job.state))
    database.commit()


def make_many_jobs(target):
    hold_back(target)  # so that the job is cancelled before it makes a file
    request = video_generation_pb2.CancelJobRequest(name=target.create(caller="alice").name)
    target.call("CancelJob", request, caller="alice")
    target.stop()
    database = sqlite3.connect(target.data / "jobs.db")
    multiply(database, JOBS)
    database.close()
    target.start()
    return {}


def dear_lists(place):
    comparisons = " OR ".join(f'labels.k{i} = "v"' for i in range(64))
    request = video_generation_pb2.ListJobsRequest(page_size=1000, filter=comparisons, order_by="priority")
    burst(place, "/wan.v1.VideoGeneration/ListJobs", request.SerializeToString(), "vic", 16, 60)


@attack("lists")
def lists(options, tokens):
    """16 lists at a time by priority, with 64 comparisons, of a principal without a job beside 30,000 jobs of others hold nobody
    back"""
    return run_siege(options, tokens, [dear_lists], make_many_jobs)
