"""Runs one job on a server so that ComfyUI shows its progress and can interrupt it."""

from __future__ import annotations

import concurrent.futures
import io
import logging
import queue
import time
from typing import Any, Callable

import comfy.model_management
import comfy.utils
import PIL.Image
from wanserve_client import Client, WanError, messages

# How often a wait looks whether ComfyUI's user has pressed Cancel.
_POLL_SECONDS = 0.2
# An answer of gRPC that says when to call again has a delay; this one is for answers without.
_RETRY_SECONDS = 1.0

stop_if_interrupted: Callable[[], None] = comfy.model_management.throw_exception_if_processing_interrupted


class Progress:
    """Shows a job's events in ComfyUI. The bar is full only after finish(): frames still have to be decoded and downloaded
    after the last step."""

    def __init__(self) -> None:
        self._bar = comfy.utils.ProgressBar(1)
        self._step, self._steps = 0, 1

    def show(self, event: Any) -> None:
        kind = event.WhichOneof("kind")
        if kind == "queued":
            logging.info("wanserve: %s waits for %d other jobs", event.job, event.queued.position)
        elif kind == "step_progress":
            self._step, self._steps = event.step_progress.step, event.step_progress.total
            self._update(None)
        elif kind == "preview":
            self._update(("JPEG", PIL.Image.open(io.BytesIO(event.preview.jpeg)), None))

    def finish(self) -> None:
        self._bar.update_absolute(self._steps + 1, self._steps + 1)

    def _update(self, preview: Any) -> None:
        self._bar.update_absolute(self._step, self._steps + 1, preview)


def run(client: Client, fields: dict[str, Any], progress: Progress) -> Any:
    """Makes a job of the request's fields and returns it when it has completed. Raises the server's error if there is no video.
    If ComfyUI interrupts, or this function ends with any other exception, the job is cancelled."""
    job = _submit(client, fields)
    try:
        return _follow(client, job, progress)
    except BaseException:
        try:
            # A job that has ended stays as it is.
            client.cancel(job)
        except WanError as error:
            logging.warning("wanserve: %s could not be cancelled: %s", job.name, error)
        raise


def _submit(client: Client, fields: dict[str, Any]) -> Any:
    """Waits while the server is still loading the model."""
    while True:
        stop_if_interrupted()
        try:
            return client.submit(**fields)
        except WanError as error:
            if error.reason != "MODEL_LOADING":
                raise
            logging.info("wanserve: %s", error)
            _pause(error.retry_delay or _RETRY_SECONDS)


def _pause(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stop_if_interrupted()
        time.sleep(_POLL_SECONDS)


def _follow(client: Client, job: messages.Job, progress: Progress) -> Any:
    """Another thread watches the job, since no event may come for the minutes of a long step. It ends with the job, or when
    the client is closed. Progress is shown by this thread, because ComfyUI knows by the thread which node it belongs to."""
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    watcher = concurrent.futures.ThreadPoolExecutor(1)
    ended = watcher.submit(client.wait, job, on_event=events.put)
    watcher.shutdown(wait=False)
    ended.add_done_callback(lambda _: events.put(None))
    while True:
        stop_if_interrupted()
        try:
            event = events.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            continue
        if event is None:
            return ended.result()
        progress.show(event)
