"""holdfast lock run while its database goes away: the program is dead before the lease ends."""

import subprocess
import time
import unittest

import binary
from binary import DONE
from test_lock import LOST, NO_BACKEND
from test_lock_run import STUBBORN, RunTest


class TheDatabaseGoesAway(RunTest):
    """A server of the test's own. The lease's end is read from its table when it is back."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(binary.PasswordServer())

    def setUp(self):
        super().setUp()
        self.url = self.server.url("right")
        self.server.start()
        self.apply_schema()
        self.sql("DELETE FROM holdfast_locks")

    def sql(self, statement):
        done = subprocess.run(
            ["psql", "-XAtq", self.url, "-c", statement],
            env=binary.clean_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def lease_end_ms(self):
        return int(self.sql("SELECT expires_at_ms FROM holdfast_locks"))

    def assert_dead_in_time(self, process, back):
        self.assert_ends()
        died_ms = time.time() * 1000  # Or before: this machine's clock is the server's.
        done = self.end_of(process)
        self.assertEqual(done.code, LOST, done)
        self.assertIn("could not be extended", done.err)
        back()
        self.assertLess(died_ms, self.lease_end_ms())

    def test_a_server_that_is_gone_ends_the_program_before_the_lease(self):
        process, _ = self.begin("a", "--ttl", "6s", "--grace", "1s")
        self.server.stop()
        self.assert_dead_in_time(process, self.server.start)

    def test_a_stubborn_program_is_dead_in_time_too(self):
        process, _ = self.begin("a", "--ttl", "8s", "--grace", "1h", script=STUBBORN)
        self.server.stop()
        self.assert_dead_in_time(process, self.server.start)

    def test_a_server_that_hangs_is_no_better(self):
        process, _ = self.begin("a", "--ttl", "6s", "--grace", "1s")
        self.server.freeze()
        self.addCleanup(self.server.thaw)
        self.assert_dead_in_time(process, self.server.thaw)

    def test_a_server_that_comes_back_in_time_is_forgiven(self):
        process, _ = self.begin("a", "--ttl", "30s")
        before = self.lease_end_ms()
        self.server.stop()
        self.server.start()
        while self.lease_end_ms() == before:
            self.assertIsNone(process.poll())
        self.let_go()
        self.assertEqual(self.end_of(process).code, DONE)

    def test_gone_at_the_end_it_costs_the_program_nothing(self):
        process, _ = self.begin("a", "--ttl", "60s")
        self.server.stop()
        self.let_go()
        done = self.end_of(process)
        self.assertEqual(done.code, DONE, done)
        told = r"\Aholdfast: could not release 'a', which stays locked [^\n]+\n\Z"
        self.assertRegex(done.err, told)

    def test_gone_while_waiting_it_is_told(self):
        self.acquire("a")
        self.server.stop()
        done = self.run_sh("a", "touch ran", "--timeout", "200ms")
        self.assert_fails(done, NO_BACKEND)


if __name__ == "__main__":
    unittest.main()
