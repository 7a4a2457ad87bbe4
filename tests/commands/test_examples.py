"""The examples do what they say, on a file and on a server. HOLDFAST_EXAMPLES is their folder."""

import os
import pathlib
import signal
import unittest

import binary
from binary import DONE

EXAMPLES = pathlib.Path(os.environ["HOLDFAST_EXAMPLES"])


class Ledger(binary.CommandTest):
    STORY = (
        "ann paid 2500 cents to bob\n"
        "account ann has changed meanwhile; looking again\n"
        "ann paid 1000 cents to bob\n"
    )

    def ledger(self, *arguments):
        return self.run_it(*arguments, binary=EXAMPLES / "ledger")

    def test_on_a_file(self):
        done = self.ledger("sqlite:ledger.db?create=1")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.out, self.STORY + "ann has 6500 cents\nbob has 3500 cents\n")
        again = self.ledger("sqlite:ledger.db")
        self.assertEqual(again.out, self.STORY + "ann has 3000 cents\nbob has 7000 cents\n")

    def test_on_a_server(self):
        done = self.ledger(self.postgres())
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.out, self.STORY + "ann has 6500 cents\nbob has 3500 cents\n")

    def test_without_a_url_it_says_how(self):
        done = self.ledger()
        self.assertEqual(done.code, 2)
        self.assertIn("usage:", done.err)

    def test_a_missing_file_is_told(self):
        done = self.ledger("sqlite:missing.db")
        self.assertEqual(done.code, 1)
        self.assertIn("missing.db", done.err)
        self.assert_left_behind()


class Workflows(binary.CommandTest):
    """Each ends with 0, in memory and in a file; a second run on the file finds it all done."""

    def story(self, name, told, told_again=None):
        for url in [], [f"sqlite:{name}.db"]:
            done = self.run_it(*url, binary=EXAMPLES / name)
            self.assertEqual(done.code, DONE, done)
            self.assertEqual(done.err, "")
            self.assertEqual(done.out, told)
        again = self.run_it(*url, binary=EXAMPLES / name)
        self.assertEqual(again.code, DONE, again)
        self.assertEqual(again.out, told if told_again is None else told_again)

    def test_checkout(self):
        ends = (
            "order-41: paid 1999 cents\n",
            "order-42: failed, no courier delivers to Atlantis\n"
            "in the ledger: order-41 1999\n",
        )
        told = (
            "order-41: stock is held\n"
            "order-41: the courier is booked\n"
            f"{ends[0]}"
            "order-42: stock is held\n"
            "hold-order-42: stock is free again\n"
            f"{ends[1]}"
        )
        self.story("checkout", told, "".join(ends))

    def test_album(self):
        self.story(
            "album",
            "37 thumbnails, the first is photo-1?width=10\n"
            "photo-13 could not be read\n"
            "photo-26 could not be read\n"
            "photo-39 could not be read\n"
            'status {"done":37,"failed":3}\n',
        )

    def test_review(self):
        self.story(
            "review",
            "loan-1: granted by bob\nloan-2: granted by ann\nloan-3: expired\n",
        )

    def test_settlement(self):
        self.story(
            "settlement",
            "settled 2310 cents in 3 executions with 21 children\nkept: 2310\n",
        )

    def test_charger(self):
        ends = "station-1: 3 orders\n", "station-2: 0 orders, then cancelled\n"
        told = (
            "station-1: 16 A\nstation-1: 32 A\nstation-1: 0 A\n"
            f"{ends[0]}"
            "station-2 has had 0 orders\nstation-2: 0 A\n"
            f"{ends[1]}"
        )
        self.story("charger", told, "".join(ends))

    def test_an_unusable_url_is_told(self):
        for name in "checkout", "album", "review", "settlement", "charger":
            done = self.run_it("nonsense", binary=EXAMPLES / name)
            self.assertEqual(done.code, 1, done)
            self.assertIn(f"{name}: ", done.err)


class Worker(binary.CommandTest):
    URL = "sqlite:jobs.db"

    def serve(self, url=URL):
        process = self.start("serve", url, binary=EXAMPLES / "worker")
        self.assertEqual(process.stdout.readline(), "serving\n")
        return process

    def submit(self, job, steps):
        return self.run_it("submit", self.URL, job, steps, binary=EXAMPLES / "worker")

    def test_one_process_asks_and_another_works(self):
        server = self.serve()
        done = self.submit("job-7", "3")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.out, "job-7: 14\n")
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(server.returncode, 0, err)
        steps = "".join(f"job-7: step {i}\n" for i in (1, 2, 3))
        self.assertEqual(out, steps + "stopped, nothing was left half done\n")

    def test_a_killed_worker_is_replaced(self):
        killed = self.serve()
        waiting = self.start(
            "submit", self.URL, "job-8", "1000", binary=EXAMPLES / "worker"
        )
        self.assertEqual(killed.stdout.readline(), "job-8: step 1\n")
        killed.kill()
        self.serve()
        out, err = waiting.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(waiting.returncode, DONE, err)
        self.assertEqual(out, f"job-8: {sum(i * i for i in range(1, 1001))}\n")

    def test_at_rest_it_is_small(self):
        process = pathlib.Path("/proc", str(self.serve().pid))
        self.assertNotIn("libpq", (process / "maps").read_text(), "nobody needs it for a file")
        kilobytes = {
            key: int(value.split()[0])
            for key, _, value in (
                line.partition(":") for line in (process / "status").read_text().splitlines()
            )
            if key in ("VmSize", "VmRSS")
        }
        sanitized = kilobytes["VmSize"] > 1 << 30  # The shadow memory of a sanitizer is enormous.
        if not sanitized:
            self.assertLess(kilobytes["VmRSS"], 10_000)

    def test_a_server_is_spoken_to_through_libpq(self):
        url = self.postgres()
        done = self.run_it("schema", "apply", "--db", url)
        self.assertEqual(done.code, DONE, done)
        process = pathlib.Path("/proc", str(self.serve(url).pid))
        self.assertIn("libpq", (process / "maps").read_text())

    def test_without_a_verb_it_says_how(self):
        done = self.run_it(binary=EXAMPLES / "worker")
        self.assertEqual(done.code, 2)
        self.assertIn("usage:", done.err)


class Locks(binary.CommandTest):
    LATE_WRITER = (
        "ann begins, and is paused\n"
        "bob takes over with a later fence: true\n"
        "bob writes: true\n"
        "ann wakes up and writes: false\n"
        "ann asserts her lock: it is not held\n"
        "the report is by bob\n"
    )

    def test_a_late_writer_does_no_harm(self):
        for url in "sqlite:reports.db?create=1", "sqlite:reports.db", self.postgres():
            done = self.run_it(url, binary=EXAMPLES / "fenced_writer")
            self.assertEqual(done.code, DONE, done)
            self.assertEqual(done.out, self.LATE_WRITER)

    def stand(self, url, name):
        return self.start(url, name, binary=EXAMPLES / "leader")

    def tells(self, process, *lines):
        for line in lines:
            self.assertEqual(process.stdout.readline(), line + "\n")

    def test_one_leads_until_it_dies_or_resigns(self):
        for url in "sqlite:jobs.db?create=1", self.postgres():
            ann = self.stand(url, "ann")
            self.tells(ann, "elected", "working")
            bob = self.stand(url, "bob")
            self.tells(bob, "ann leads")
            ann.kill()
            self.tells(bob, "elected", "working")
            cid = self.stand(url, "cid")
            self.tells(cid, "bob leads")
            bob.send_signal(signal.SIGTERM)
            self.tells(bob, "resigned")
            self.assertEqual(bob.wait(binary.SECONDS_MAX), DONE)
            self.tells(cid, "elected", "working")

    def test_without_a_url_they_say_how(self):
        for name in "fenced_writer", "leader":
            done = self.run_it(binary=EXAMPLES / name)
            self.assertEqual(done.code, 2)
            self.assertIn("usage:", done.err)


if __name__ == "__main__":
    unittest.main()
