"""Records what watchers saw, to compare it with what the server says after a kill."""

import threading

import grpc
from wan.v1 import video_generation_pb2

from prove_abuse import server


class Watchers:
    """Follows jobs and keeps every stored event that came; the keys are job and sequence."""

    def __init__(self):
        self.seen = {}
        self._lock = threading.Lock()
        self._threads = []
        self._target = None
        self._channel = None

    def attach(self, target):
        """A server that has started, under the same or a new address."""
        self._target = target
        self._channel = server.new_channel(target.grpc)

    def watch(self, name):
        thread = threading.Thread(target=self._follow, args=(name, self._channel), daemon=True)
        thread.start()
        self._threads.append(thread)

    def _follow(self, name, channel):
        request = video_generation_pb2.WatchJobRequest(name=name)
        try:
            for event in server.call(channel, "WatchJob", request, 120, self._target.tokens.get(self._target.caller)):
                # Previews and heartbeats are not stored and have no sequence.
                if event.sequence:
                    with self._lock:
                        self.seen.setdefault(name, {})[event.sequence] = event.SerializeToString()
        except (grpc.RpcError, ValueError):
            pass  # the server was killed

    def detach(self):
        """Call it after a kill: waits for the streams, which keep what they have received."""
        for thread in self._threads:
            thread.join(10)
        self._threads.clear()
        self._channel.close()


def differences(target, watchers):
    """How many events were compared, and those that the server tells otherwise now. A job that was removed is passed over."""
    count, changed = 0, []
    for name, events in watchers.seen.items():
        now = {}
        try:
            for event in target.call("WatchJob", video_generation_pb2.WatchJobRequest(name=name)):
                now[event.sequence] = event.SerializeToString()
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND and "was removed" in error.details():
                continue
            changed.append(f"{name} cannot be watched any more: {error.code().name} {error.details()[:100]}")
            continue
        for sequence, event in events.items():
            count += 1
            if now.get(sequence) != event:
                changed.append(f"event {sequence} of {name} was shown, and is "
                               f"{'gone' if sequence not in now else 'another one'} after the kill")
    watchers.seen.clear()
    return count, changed
