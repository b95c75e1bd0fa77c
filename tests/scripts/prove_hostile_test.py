"""What is pure in scripts/prove hostile: frames of HTTP/2, pictures, statistics and verdicts."""
import math
import pathlib
import socket
import struct
import sys
import threading
import unittest
import zlib

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

from prove_hostile import http2, measures, pictures  # pylint: disable=wrong-import-position
from prove_hostile.measures import Calls  # pylint: disable=wrong-import-position


class FrameTest(unittest.TestCase):
    def test_a_frame_has_length_type_flags_and_stream(self):
        self.assertEqual(http2.frame(http2.DATA, http2.END_STREAM, 5, b"abc"), b"\0\0\x03\0\x01\0\0\0\x05abc")
        self.assertEqual(http2.frame(http2.DATA, 0, 1, bytes(0x10203))[:3], b"\x01\x02\x03")

    def test_integers_are_those_of_rfc_7541(self):
        # The examples of its appendix C.1.
        self.assertEqual(http2.integer(10, 5), b"\x0a")
        self.assertEqual(http2.integer(1337, 5), b"\x1f\x9a\x0a")
        self.assertEqual(http2.integer(42, 8), b"\x2a")

    def test_a_literal_is_that_of_rfc_7541(self):
        # C.2.2, but with a name of its own in the place of the indexed one.
        self.assertEqual(http2.literal("password", "secret"), b"\x00\x08password\x06secret")

    def test_the_header_of_a_call_has_the_token_only_if_there_is_one(self):
        self.assertNotIn(b"authorization", http2.call_fields("/a"))
        self.assertIn(b"Bearer t", http2.call_fields("/a", "t"))

    def test_a_reader_cuts_what_comes_in_pieces(self):
        reader = http2.Reader()
        whole = http2.call(1, b"block", b"x" * 20_000) + http2.reset(1)
        frames = [frame for at in range(0, len(whole), 7) for frame in reader.feed(whole[at:at + 7])]
        self.assertEqual([frame[0] for frame in frames], [http2.HEADERS, http2.DATA, http2.DATA, http2.RST_STREAM])
        self.assertEqual(b"".join(frame[3] for frame in frames if frame[0] == http2.DATA), http2.message(b"x" * 20_000))
        self.assertEqual([bool(frame[1] & http2.END_STREAM) for frame in frames[1:3]], [False, True])


class ConnectionTest(unittest.TestCase):
    def setUp(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        host, port = listener.getsockname()
        self.connection = http2.Connection(f"{host}:{port}", timeout=5)
        self.addCleanup(self.connection.socket.close)
        self.peer, _ = listener.accept()
        self.addCleanup(self.peer.close)
        self.peer.settimeout(5)

    def test_take_returns_at_once_when_nothing_has_come(self):
        self.assertEqual(self.connection.take(), [])

    def test_a_call_waits_for_the_windows_of_the_peer(self):
        sent = []
        caller = threading.Thread(target=lambda: sent.append(self.connection.call(b"", b"x" * 100_000)))
        caller.start()
        received = bytearray()
        first = 24 + 9 + 9 + 65535 + 4 * 9  # preface, settings, header, and DATA up to the window in four frames
        while len(received) < first:
            received += self.peer.recv(1 << 16)
        self.assertEqual(len(received), first)
        self.assertTrue(caller.is_alive())
        self.peer.sendall(http2.window_update(0, 1 << 20) + http2.window_update(1, 1 << 20))
        caller.join(5)
        self.assertEqual(sent, [1])
        self.assertEqual(self.connection.open, 1)

    def test_streams_that_the_server_ends_are_not_open(self):
        self.connection.call(b"", b"")
        self.connection.call(b"", b"")
        self.peer.sendall(http2.reset(3))
        self.connection.receive()
        self.assertEqual(self.connection.ended, {3})
        self.assertEqual(self.connection.open, 1)

    def test_an_error_of_the_peer_is_an_end(self):
        self.peer.sendall(http2.frame(http2.GOAWAY, 0, 0, struct.pack(">II", 0, 11) + b"calm down"))
        with self.assertRaisesRegex(ConnectionResetError, "calm down"):
            self.connection.receive()


class PictureTest(unittest.TestCase):
    def test_a_png_has_the_rows_that_it_announces(self):
        file = pictures.png(100, 30, bits=1, colour=0)
        size = struct.unpack(">I", file[file.index(b"IDAT") - 4:file.index(b"IDAT")])[0]
        data = file[file.index(b"IDAT") + 4:][:size]
        self.assertEqual(len(zlib.decompress(data)), 30 * (1 + 13))
        self.assertLess(len(pictures.small_file()), 8192)

    def test_a_jpeg_has_the_scans_that_were_asked_for(self):
        file = pictures.progressive_jpeg(640, 480, 100)
        self.assertEqual(file.count(b"\xff\xda"), 100)
        self.assertIn(b"\xff\xc2" + struct.pack(">HBHH", 17, 8, 480, 640), file)

    def test_bits_are_filled_with_ones_and_ff_is_followed_by_0(self):
        bits = pictures.Bits()
        bits.add(0b11111111, 8)
        bits.add(0b01, 2)
        self.assertEqual(bits.bytes(), b"\xff\x00\x7f")


def honest_calls(**others):
    calls = {kind: Calls([1.0] * 200) for kind in measures.LIMITS}
    return calls | others


class VerdictTest(unittest.TestCase):
    def test_a_percentile_is_a_value_that_was_measured(self):
        self.assertEqual(measures.percentile(range(1, 101), 0.99), 99)
        self.assertEqual(measures.percentile([7], 0.99), 7)
        self.assertTrue(math.isnan(measures.percentile([], 0.5)))

    def test_honest_calls_within_their_limits_are_no_problem(self):
        self.assertEqual(measures.problems(honest_calls()), [])

    def test_one_slow_call_in_a_hundred_is_within_a_p99(self):
        self.assertEqual(measures.problems(honest_calls(health=Calls([1.0] * 198 + [500.0] * 2))), [])
        found = measures.problems(honest_calls(health=Calls([1.0] * 197 + [500.0] * 3)))
        self.assertEqual(found, ["health p99 500 ms, limit 100"])

    def test_every_picture_has_its_limit(self):
        found = measures.problems(honest_calls(CreateJob=Calls([1.0] * 500 + [2001.0])))
        self.assertEqual(found, ["CreateJob took 2001 ms, limit 2000"])

    def test_a_failure_is_a_problem_and_the_most_frequent_text_is_told(self):
        found = measures.problems(honest_calls(GetJob=Calls([1.0], {"UNAVAILABLE a": 1, "UNAVAILABLE b": 2})))
        self.assertEqual(found, ["3 of 4 GetJob failed (2 times: UNAVAILABLE b)"])

    def test_a_call_that_was_never_answered_is_a_problem(self):
        self.assertEqual(measures.problems(honest_calls(livez=Calls())), ["livez was never answered"])

    def test_kinds_that_do_not_count_are_passed_over(self):
        self.assertEqual(measures.problems(honest_calls(CreateJob=Calls([9999.0])), {"health"}), [])

    def test_the_process_must_live_stay_small_and_hear_sigterm(self):
        self.assertEqual(measures.process_problems(600, None, 10, 0), [])
        self.assertEqual(measures.process_problems(601, None, 1, 0), ["memory +601 MiB, limit 600"])
        self.assertEqual(measures.process_problems(0, None, 10.5, 0), ["SIGTERM took 10.5 s, limit 10"])
        self.assertEqual(measures.process_problems(0, None, None, None), ["SIGTERM was not heard"])
        self.assertEqual(measures.process_problems(0, None, 1, -6), ["SIGTERM ended with -6"])
        self.assertEqual(measures.process_problems(5000, -6, None, None), ["the process ended with -6 (memory +5000 MiB)"])

    def test_a_slope_is_that_of_the_line(self):
        self.assertAlmostEqual(measures.slope([(0, 1), (1, 3), (2, 5)]), 2)
        self.assertEqual(measures.slope([(1, 1), (1, 2)]), 0)

    def test_a_cell_joins_kinds(self):
        calls = {"livez": Calls([1.0, 2.0]), "readyz": Calls([30.4])}
        self.assertEqual(measures.cell(calls, ["livez", "readyz"], True), "30/30")
        self.assertEqual(measures.cell(calls, ["livez"], False), "2")
        self.assertEqual(measures.cell({}, ["GetJob"], True), "-")


if __name__ == "__main__":
    unittest.main()
