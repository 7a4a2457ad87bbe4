"""holdfast lock run and elect: real programs under real locks, and what becomes of them."""

import json
import os
import pathlib
import select
import signal
import sqlite3
import subprocess
import unittest

import binary
from binary import DONE
from test_lock import CONTENDED, LOST, LockTest

# Says that it runs, and ends when there is something in `go`; while it lives, so does `alive`.
RUNS = "exec 3>alive; echo $$ > started"
WAITS = RUNS + '; echo "fence $HOLDFAST_FENCE"; read word < go; exit 0'
# The same, deaf to SIGTERM; its sleep may be interrupted, its loop not.
STUBBORN = f'trap "" TERM; {RUNS}; while :; do sleep 1; done'

# Extended every two seconds; lost only if that takes more than three on a busy machine.
EXTENDED = ("--ttl", "6s", "--grace", "100ms")


class RunTest(LockTest):
    def setUp(self):
        super().setUp()
        # At both ends of what is said, so that nobody waits for a reader or writer who never comes.
        self.started = self.fifo("started", os.O_RDWR)
        self.go = self.fifo("go", os.O_RDWR)
        self.alive = self.fifo("alive", os.O_RDONLY | os.O_NONBLOCK)

    def fifo(self, name, how):
        os.mkfifo(self.folder / name)
        end = os.open(self.folder / name, how)
        self.addCleanup(os.close, end)
        return end

    def begin(self, key, *options, script=WAITS, verb="run"):
        """A program under a lock, once it runs: the command, and the program's process id."""
        process = self.start(
            "lock", verb, key, "--db", self.url, *options, "--", "sh", "-c", script
        )
        return process, self.await_start(process)

    def await_start(self, process):
        """Returns the process id of the program, which the command is to start."""
        ended = os.pidfd_open(process.pid)
        self.addCleanup(os.close, ended)
        ready, _, _ = select.select([self.started, ended], [], [], binary.SECONDS_MAX)
        if self.started not in ready:
            process.kill()
            self.fail(f"the program did not start: {self.end_of(process)}")
        return int(os.read(self.started, 32))

    def assert_ends(self, why="the program has to end"):
        """Waits until the program is gone, with all that it started."""
        poll = select.poll()
        poll.register(self.alive, 0)  # That nobody writes any more is told in any case.
        self.assertTrue(poll.poll(binary.SECONDS_MAX * 1000), why)

    def let_go(self):
        os.write(self.go, b"now\n")

    def end_of(self, process):
        out, err = process.communicate(timeout=binary.SECONDS_MAX)
        return binary.Done(
            subprocess.CompletedProcess(process.args, process.returncode, out, err)
        )

    def run_sh(self, key, script, *options):
        return self.run_it("lock", "run", key, "--db", self.url, *options, "--", "sh", "-c", script)

    def assert_free(self, key):
        self.assertFalse(self.ok("status", key)["held"])

    def force_release(self, key):
        self.ok("force-release", key, "--fence", self.ok("status", key)["fence"])


class OnEveryDatabase:
    def test_its_end_is_the_programs_and_the_lock_is_free_again(self):
        self.assertEqual(self.run_sh("a", "exit 0").code, 0)
        self.assertEqual(self.run_sh("a", "exit 42").code, 42)
        self.assertEqual(self.run_sh("a", "kill -9 $$").code, 128 + signal.SIGKILL)
        self.assert_free("a")

    def test_the_program_learns_its_fence_and_never_the_id(self):
        done = self.run_sh("a b/é", "env", "--json", "--log-level", "debug")
        self.assertEqual(done.code, DONE, done)
        told = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
        self.assertEqual(told["HOLDFAST_FENCE"], "000000000000001")
        self.assertEqual(told["HOLDFAST_LOCK_KEY"], "a b/é")
        events = [line for line in done.err.splitlines() if line.startswith("{")]  # Not the log.
        acquired, released = map(json.loads, events)
        self.assertEqual(acquired["event"], "acquired")
        self.assertEqual(told["HOLDFAST_LOCK_ID_HASH"], acquired["lock_id_hash"])
        self.assertEqual(told["HOLDFAST_LOCK_EXPIRES_MS"], str(acquired["expires_at_ms"]))
        self.assertEqual(released, {"event": "released", "key": "a b/é"})
        self.assertNotIn("lock_id", acquired)
        ours = [value for name, value in told.items() if name.startswith("HOLDFAST")]
        for text in done.err, *ours:
            self.assertNotRegex(text, r"(?<![\w-])[\w-]{22}(?![\w-])", "that could be an id")

    def test_who_comes_second_does_not_run(self):
        first, _ = self.begin("a")
        for how in (["--no-wait"], ["--timeout", "50ms"]):
            done = self.run_sh("a", "touch ran", *how)
            self.assert_fails(done, CONTENDED, "'a'")
        self.assertFalse((self.folder / "ran").exists())
        self.let_go()
        self.assertEqual(self.end_of(first).out, "fence 000000000000001\n")
        self.assertEqual(self.run_sh("a", "echo $HOLDFAST_FENCE").out, "000000000000002\n")

    def test_the_words_after_the_mark_are_the_programs(self):
        done = self.run_it(
            "lock", "run", "a", "--db", self.url, "--", "echo", "--json", "--help", "--", "lock"
        )
        self.assertEqual(done.out, "--json --help -- lock\n", done)

    def test_a_program_that_cannot_be_started_leaves_no_lock(self):
        (self.folder / "text").write_text("no program")
        for program, code in ("no-such-program", 127), ("./text", 126), (".", 126):
            done = self.run_it("lock", "run", "a", "--db", self.url, "--", program)
            self.assert_fails(done, code, program)
            self.assert_free("a")

    def test_a_long_program_keeps_its_lock(self):
        process, _ = self.begin("a", *EXTENDED)
        seen = {self.ok("status", "a")["expires_at_ms"]}
        while len(seen) < 4:  # Extended three times.
            status = self.ok("status", "a")
            self.assertTrue(status["held"])
            self.assertEqual(status["fence"], "000000000000001")
            seen.add(status["expires_at_ms"])
        self.let_go()
        self.assertEqual(self.end_of(process).code, DONE)
        self.assert_free("a")

    def test_a_signal_is_passed_on_and_the_program_answers_it(self):
        polite = f'trap "exit 7" TERM INT; {RUNS}; read word < go'
        for number in signal.SIGTERM, signal.SIGINT:
            process, _ = self.begin("a", script=polite)
            process.send_signal(number)
            self.assert_ends()
            self.assertEqual(self.end_of(process).code, 7)
            self.assert_free("a")
        process, _ = self.begin("a")
        process.send_signal(signal.SIGTERM)
        self.assert_ends()
        self.assertEqual(self.end_of(process).code, 128 + signal.SIGTERM)
        self.assert_free("a")

    def test_a_signal_ends_the_wait_for_the_lock(self):
        self.acquire("a")
        waiting = self.start("lock", "run", "a", "--wait", "--db", self.url, "--", "touch", "ran")
        # Its own line of waiters is the sign that it has come to wait.
        while self.waiters() == 0:
            self.assertIsNone(waiting.poll())
        waiting.send_signal(signal.SIGTERM)
        self.assertEqual(self.end_of(waiting).code, 143)
        self.assertFalse((self.folder / "ran").exists())

    def test_a_lock_taken_by_force_ends_the_program(self):
        process, _ = self.begin("a", *EXTENDED)
        self.force_release("a")
        self.assert_ends()
        done = self.end_of(process)
        self.assertEqual(done.code, LOST, done)
        self.assertIn("holdfast: the lock 'a' was taken away; the command was ended\n", done.err)

    def test_what_does_not_heed_sigterm_is_killed_with_all_it_started(self):
        process, _ = self.begin("a", *EXTENDED, script=f"({STUBBORN}) & wait")
        self.force_release("a")
        self.assert_ends("held open by what the program started")
        self.assertEqual(self.end_of(process).code, LOST)

    def test_killed_itself_it_takes_the_program_along_and_leaves_the_lock_to_expire(self):
        process, _ = self.begin("a", "--ttl", "8s")  # More than a slow start of the next takes.
        process.kill()
        self.assert_ends()
        # The next one has to wait for the end of the lease, and gets a later fence.
        self.assertEqual(self.run_sh("a", "true", "--no-wait").code, CONTENDED)
        after = self.run_sh("a", "echo $HOLDFAST_FENCE", "--wait")
        self.assertEqual(after.code, DONE, after)
        self.assertGreater(after.out, "000000000000001\n")

    def test_one_leads_and_the_next_follows(self):
        first = self.start("lock", "elect", "boss", "--json", "--db", self.url)
        elected = json.loads(first.stdout.readline())
        self.assertEqual((elected["event"], elected["fence"]), ("elected", "000000000000001"))
        second = self.start("lock", "elect", "boss", "--json", "--db", self.url)
        sees = json.loads(second.stdout.readline())
        self.assertEqual((sees["event"], sees["fence"]), ("leader", "000000000000001"))
        self.assertTrue(sees["owner"].endswith(f":{first.pid}"), sees)
        first.send_signal(signal.SIGTERM)
        out, _ = first.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(json.loads(out), {"event": "resigned", "key": "boss"})
        self.assertEqual(first.returncode, 143)
        follows = json.loads(second.stdout.readline())
        self.assertEqual(follows["event"], "elected")
        self.assertGreater(follows["fence"], "000000000000001")

    def test_a_leader_runs_its_program_again_when_it_is_elected_again(self):
        process, program = self.begin("boss", *EXTENDED, verb="elect")
        self.force_release("boss")
        self.await_start(process)
        self.assertFalse(pathlib.Path(f"/proc/{program}").exists(), "who lost must not run")
        self.let_go()
        done = self.end_of(process)
        self.assertEqual(done.code, DONE, done)
        first, again = done.out.splitlines()
        self.assertEqual(first, "fence 000000000000001")
        self.assertGreater(again, first)
        told = r"(?s)\Aelected, fence .*was taken away.*elected, fence .*resigned\n\Z"
        self.assertRegex(done.err, told)


class OnSqlite(OnEveryDatabase, RunTest):
    def setUp(self):
        super().setUp()
        self.apply_schema()

    def waiters(self):
        with sqlite3.connect(self.folder / "x.db", timeout=binary.SECONDS_MAX) as connection:
            return connection.execute("SELECT count(*) FROM holdfast_locks_waiters").fetchone()[0]


class OnPostgres(OnEveryDatabase, RunTest):
    def setUp(self):
        super().setUp()
        self.url = self.postgres()
        self.apply_schema()

    def waiters(self):
        return int(self.psql_at(self.url, "SELECT count(*) FROM holdfast_locks_waiters"))


if __name__ == "__main__":
    unittest.main()
