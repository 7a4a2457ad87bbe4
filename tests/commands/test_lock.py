"""holdfast lock: taking, looking, cleaning up, on every database; bad input and outages."""

import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import stat
import unittest

import binary
from binary import DONE, REFUSED, USAGE

NO_BACKEND, LOST, CONTENDED = 69, 70, 75


class LockTest(binary.CommandTest):
    """Locks in `self.url`."""

    url = "sqlite:x.db"

    def lock(self, *arguments, **how):
        return self.run_it("lock", *arguments, "--db", self.url, **how)

    def ok(self, *arguments, **how):
        """What it prints for programs."""
        done = self.lock(*arguments, "--json", **how)
        self.assertEqual(done.code, DONE, done)
        return done.json

    def acquire(self, key, *arguments):
        return self.ok("acquire", key, "--id-file", "id", *arguments)

    def apply_schema(self, *arguments):
        done = self.run_it("schema", "apply", "--part", "lock", "--db", self.url, *arguments)
        self.assertEqual(done.code, DONE, done)


class OnEveryDatabase:
    """The same stories on a file and on a server."""

    def test_a_lock_is_taken_seen_extended_and_given_back(self):
        taken = self.acquire("invoice/7", "--ttl", "30s", "--meta", "by hand")
        self.assertEqual(taken["fence"], "000000000000001")
        self.assertNotIn("lock_id", taken)
        self.assertEqual(stat.S_IMODE((self.folder / "id").stat().st_mode), 0o600)

        seen = self.ok("status", "invoice/7")
        self.assertTrue(seen["held"])
        self.assertEqual(seen["fence"], taken["fence"])
        self.assertEqual(seen["meta"], "by hand")
        self.assertEqual(seen["expires_at_ms"], taken["expires_at_ms"])
        self.assertEqual(seen["lock_id_hash"], taken["lock_id_hash"])
        self.assertRegex(seen["owner"], r"\A.+:\d+\Z")
        self.assertGreaterEqual(seen["age_ms"], 0)
        self.assertLessEqual(seen["remaining_ms"], 30_000)

        longer = self.ok("extend", "--id-file", "id", "--ttl", "1h")
        self.assertGreater(longer["expires_at_ms"], taken["expires_at_ms"] + 1_000_000)
        self.assertEqual(self.ok("release", "--id-file", "id"), {"released": True})
        self.assertFalse((self.folder / "id").exists(), "it is of no use any more")
        self.assertEqual(self.ok("status", "invoice/7"), {"key": "invoice/7", "held": False})
        self.assertEqual(self.acquire("invoice/7")["fence"], "000000000000002")

    def test_it_reads_well(self):
        done = self.lock("acquire", "invoice/7")
        self.assertEqual(done.out, "holding invoice/7 for 30.00 s, fence 000000000000001\n")
        status = self.lock("status", "invoice/7").out
        self.assertRegex(status, r"\Ainvoice/7 is held\n  owner +\S+:\d+\n  fence +0{14}1\n  since")
        self.assertRegex(status, r"\n  expires +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, in \d")
        self.assertEqual(self.lock("status", "other").out, "other is free\n")
        self.assertRegex(
            self.lock("list").out,
            r"\Akey +owner +fence +held for +expires +state\ninvoice/7 +\S+ +0{14}1 .* held\n\Z",
        )

    def test_a_held_lock_is_contended_and_a_lost_one_stays_lost(self):
        self.acquire("a")
        for how in (["--no-wait"], ["--timeout", "50ms"]):
            self.assert_fails(self.lock("acquire", "a", *how), CONTENDED, "'a'", "lock status")
        secret = (self.folder / "id").read_text()
        self.ok("release", "--id-file", "id")
        (self.folder / "id").write_text(secret)
        for verb in "extend", "release":
            self.assert_fails(self.lock(verb, "--id-file", "id"), LOST, "no longer held")

    def test_a_key_is_named_as_it_is_kept(self):
        composed, decomposed = "caf\u00e9", "cafe\u0301"
        self.assertEqual(self.ok("status", decomposed), {"key": composed, "held": False})
        self.assertEqual(self.acquire(decomposed)["key"], composed)
        self.assertEqual(self.ok("status", decomposed)["key"], composed)
        self.assertEqual([held["key"] for held in self.ok("list")["locks"]], [composed])

    def test_a_leader_is_told_under_its_own_name(self):
        done = self.run_it("lock", "elect", "a", "--json", "--db", self.url, "--", "true")
        self.assertEqual(done.code, DONE, done)
        elected = json.loads(done.err.splitlines()[0])
        self.assertEqual((elected["event"], elected["key"]), ("elected", "a"))
        self.assertRegex(elected["owner"], r"\A.+:\d+\Z")

    def test_who_waits_gets_it(self):
        self.acquire("a")
        waiting = self.start("lock", "acquire", "a", "--wait", "--json", "--db", self.url)
        self.ok("release", "--id-file", "id")
        out, err = waiting.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(waiting.returncode, DONE, err)
        self.assertIn('"fence":"000000000000002"', out)

    def test_the_id_is_shown_only_to_who_asks_for_it(self):
        shown = self.ok("acquire", "a", "--show-id", "--id-file", "id")["lock_id"]
        self.assertRegex(shown, r"\A[A-Za-z0-9_-]{22}\Z")
        self.assertEqual((self.folder / "id").read_text(), shown + "\n")
        loud = ("--log-level", "debug")
        for done in (
            self.lock("status", "a", *loud),
            self.lock("status", "a", "--json", *loud),
            self.lock("list", *loud),
            self.lock("list", "--json", *loud),
            self.lock("acquire", "a", "--no-wait", *loud),
            self.lock("extend", "--id-file", "id", *loud),
            self.lock("release", "--id-file", "id", *loud),
        ):
            self.assertNotIn(shown, done.out + done.err)

    def test_an_id_may_come_through_a_pipe(self):
        self.acquire("a")
        with open(self.folder / "id") as pipe:
            done = self.lock("release", "--id-stdin", stdin=pipe)
        self.assertEqual(done.code, DONE, done)

    def test_a_place_where_one_may_not_write_costs_no_lock(self):
        self.assert_fails(
            self.lock("acquire", "a", "--id-file", "no/such/folder"), REFUSED, "no/such/folder"
        )
        self.acquire("a")

    def test_what_is_no_plain_file_is_neither_replaced_nor_removed(self):
        os.mkfifo(self.folder / "pipe")
        os.symlink("id", self.folder / "link")
        for name in "pipe", "link", ".":
            self.assert_fails(
                self.lock("acquire", "a", "--id-file", name), REFUSED, f"'{name}'", "plain file"
            )
        self.acquire("a")
        self.ok("release", "--id-file", "link")
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertTrue((self.folder / "pipe").is_fifo())

    def test_a_contended_acquire_leaves_an_older_id_as_it_is(self):
        self.acquire("a")
        before = (self.folder / "id").read_text()
        done = self.lock("acquire", "a", "--no-wait", "--id-file", "id")
        self.assertEqual(done.code, CONTENDED, done)
        self.assertEqual((self.folder / "id").read_text(), before)
        self.assertEqual(len(list(self.folder.glob("id*"))), 1)

    def test_what_others_stored_does_not_steer_the_terminal(self):
        self.ok("acquire", "a\x1b[2J\nb", "--meta", "\x1b[31m")
        listed, status = self.lock("list").out, self.lock("status", "a\x1b[2J\nb").out
        self.assertEqual(len(listed.splitlines()), 2, listed)
        self.assertNotIn("\x1b", listed + status)
        self.assertIn("\\x1b[2J", listed)
        self.assertEqual(self.ok("list")["locks"][0]["key"], "a\x1b[2J\nb")

    def test_what_reorders_or_hides_text_is_shown_as_an_escape(self):
        self.ok("acquire", "pay\u202eexe.\u009b31m\u200b")
        for done in (self.lock("list"), self.lock("status", "pay\u202eexe.\u009b31m\u200b")):
            self.assertIn("pay\\u202eexe.\\x9b31m\\u200b", done.out)
            for hidden in "\u202e\u009b\u200b":
                self.assertNotIn(hidden, done.out)

    def test_a_list_comes_in_pages(self):
        for key in "a/1", "a/2", "a/3", "b/1":
            self.ok("acquire", key)
        first = self.ok("list", "--prefix", "a/", "--limit", "2")
        self.assertEqual([lock["key"] for lock in first["locks"]], ["a/1", "a/2"])
        self.assertEqual(first["after"], "a/2")
        second = self.ok("list", "--prefix", "a/", "--limit", "2", "--after", "a/2")
        self.assertEqual([lock["key"] for lock in second["locks"]], ["a/3"])
        self.assertIsNone(second["after"])

    def test_force_takes_a_lock_from_the_holder_that_was_seen(self):
        self.acquire("a")
        self.assert_fails(
            self.lock("force-release", "a", "--fence", "7"), REFUSED, "000000000000007"
        )
        self.ok("force-release", "a", "--fence", "000000000000001")
        self.assert_fails(self.lock("extend", "--id-file", "id"), LOST)
        later = self.ok("acquire", "a")
        self.assertGreater(later["fence"], "000000000000002", "the old holder's next is skipped")

    def test_purge_removes_the_dead_and_keeps_the_counters(self):
        self.acquire("dead")
        self.ok("acquire", "alive")
        self.execute("UPDATE holdfast_locks SET expires_at_ms = 1 WHERE key = 'dead'")
        keys = lambda *how: [lock["key"] for lock in self.ok("list", *how)["locks"]]
        self.assertEqual(keys(), ["alive"])
        self.assertEqual(keys("--dead"), ["alive", "dead"])
        self.assertEqual(self.ok("purge"), {"purged": 1, "busy": False})
        self.assertEqual(keys("--dead"), ["alive"])
        self.assertEqual(self.ok("acquire", "dead")["fence"], "000000000000002")

    def test_one_purges_at_a_time(self):
        self.ok("acquire", "holdfast/purge")
        self.assertEqual(self.ok("purge"), {"purged": 0, "busy": True})

    def test_purge_goes_on_until_it_is_told_to_stop(self):
        self.ok("acquire", "a")
        purge = self.start("lock", "purge", "--every", "10ms", "--json", "--db", self.url)
        self.assertEqual(purge.stdout.readline(), '{"purged":0,"busy":false}\n')
        self.execute("UPDATE holdfast_locks SET expires_at_ms = 1 WHERE key = 'a'")
        while purge.stdout.readline() != '{"purged":1,"busy":false}\n':
            self.assertIsNone(purge.poll())
        purge.send_signal(signal.SIGTERM)
        purge.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(purge.returncode, 143)
        self.assertFalse(self.ok("status", "holdfast/purge")["held"])

    def test_the_doctor_finds_counters_that_a_restore_has_set_back(self):
        for _ in range(3):
            self.acquire("a")
            self.ok("release", "--id-file", "id")
        self.acquire("a")
        self.assertEqual(
            self.ok("doctor"), {"behind": 0, "repaired": False, "gap": 0, "problems": []}
        )
        self.execute("UPDATE holdfast_fences SET fence = 2")
        sick = self.lock("doctor", "--json")
        self.assertEqual(sick.code, REFUSED, sick)
        self.assertEqual(sick.json["behind"], 1)
        self.assertEqual(self.ok("doctor", "--repair", "--gap", "100")["behind"], 1)
        self.assertEqual(self.ok("doctor")["behind"], 0)
        self.ok("release", "--id-file", "id")
        self.assertEqual(self.acquire("a")["fence"], "000000000000105")

    def test_the_doctor_finds_tables_that_lack_what_keeps_holders_apart(self):
        self.execute("DROP INDEX idx_holdfast_locks_lock_id")
        sick = self.lock("doctor", "--json")
        self.assertEqual(sick.code, REFUSED, sick)
        self.assertEqual(len(sick.json["problems"]), 1, sick)
        self.assertIn("lock_id", sick.json["problems"][0])

    def test_the_tables_may_have_other_names(self):
        names = ("--locks-table", "app_locks", "--fences-table", "app_fences")
        self.apply_schema(*names)
        self.ok("acquire", "a", *names)
        self.assertTrue(self.ok("status", "a", *names)["held"])
        self.assertFalse(self.ok("status", "a")["held"], "those of the usual names are others")
        self.assert_fails(self.lock("list", "--locks-table", "No;"), USAGE)

    def test_what_cannot_be_a_lock_is_refused(self):
        for arguments in (
            ["acquire", ""],
            ["acquire", "x" * 513],
            ["acquire", "a", "--ttl", "0"],
            ["acquire", "a", "--ttl", "soon"],
            ["acquire", "a", "--ttl", "400d"],
            ["acquire", "a", "--timeout", "-1s"],
            ["acquire", "a", "--wait", "--no-wait"],
            ["acquire", "a", "--wait", "--timeout", "1s"],
            ["acquire", "a", "--meta", "x" * 5000],
            ["acquire", "a", "--meta", "\udcff"],  # A byte that is no text.
            ["acquire", "\udcff"],
            ["list", "--prefix", "\udcff"],
            ["list", "--after", "\udcff"],
            ["status", "x" * 513],
            ["release"],
            ["release", "--id-stdin", "--id-file", "id"],
            ["extend", "--id-stdin"],
            ["force-release", "a"],
            ["force-release", "a", "--fence", "one"],
            ["force-release", "a", "--fence", "-1"],
            ["force-release", "a", "--fence", "1000000000000000"],
            ["list", "--limit", "0"],
            ["purge", "--every", "0"],
            ["doctor", "--gap", "5"],
            ["run", "a"],
            ["run", "a", "--"],
            ["run", "a", "--ttl", "10ms", "--", "true"],
        ):
            with self.subTest(arguments):
                self.assert_fails(self.lock(*arguments), USAGE)

    def test_a_command_without_its_mark_is_shown_where_it_belongs(self):
        for verb in "run", "elect":
            done = self.lock(verb, "a", "make", "-j4")
            self.assert_fails(done, USAGE, "'make'", f"lock {verb} KEY -- COMMAND")

    def test_a_malformed_id_is_refused_and_not_repeated(self):
        (self.folder / "id").write_text("not-an-id-but-a-secret\nx")
        done = self.lock("release", "--id-file", "id")
        self.assertNotIn("secret", done.err)
        (self.folder / "id").write_text("too short")
        self.assert_fails(self.lock("release", "--id-file", "id"), USAGE)
        self.assert_fails(self.lock("release", "--id-file", "absent"), REFUSED, "absent")


class OnSqlite(OnEveryDatabase, LockTest):
    def setUp(self):
        super().setUp()
        self.apply_schema()

    def execute(self, statement):
        with sqlite3.connect(self.folder / "x.db", timeout=binary.SECONDS_MAX) as connection:
            connection.execute(statement)
        connection.close()


class OnPostgres(OnEveryDatabase, LockTest):
    def setUp(self):
        super().setUp()
        self.url = self.postgres()
        self.apply_schema()

    def execute(self, statement):
        self.psql_at(self.url, statement)


class OnAConnectionOfOnesOwn(LockTest):
    """The statements of docs/locks.md, for people who do not use our library."""

    @staticmethod
    def documented(title):
        guide = pathlib.Path(__file__).resolve().parents[2] / "docs/locks.md"
        return re.search(rf"```sql\n-- {title}[^\n]*\n(.*?)```", guide.read_text(), re.S)[1]

    def assert_guards(self, ask):
        """`ask` runs the statement with a key and an id, and gives the fences it finds."""
        held = self.ok("acquire", "a", "--show-id")["lock_id"]
        self.assertEqual(ask("a", held), ["000000000000001"])
        self.assertEqual(ask("a", "AAECAwQFBgcICQoLDA0ODw"), [])
        self.assertEqual(ask("b", held), [])
        self.lock("extend", "--id-stdin", "--ttl", "1ms", stdin=self.file_with(held))
        return held

    def assert_ends_with_the_lease(self, ask, held):
        while found := ask("a", held):  # It ends at its expiry, without any grace.
            self.assertEqual(found, ["000000000000001"])
        self.assertTrue(self.ok("list", "--dead")["locks"])

    def file_with(self, text):
        (self.folder / "secret").write_text(text + "\n")
        file = open(self.folder / "secret")
        self.addCleanup(file.close)
        return file

    def test_on_a_file(self):
        self.apply_schema()
        connection = sqlite3.connect(self.folder / "x.db", isolation_level=None, timeout=60)
        self.addCleanup(connection.close)
        statement = self.documented("SQLite")

        def ask(key, lock_id):
            connection.execute("BEGIN IMMEDIATE")
            found = [row[0] for row in connection.execute(statement, (key, lock_id))]
            connection.execute("COMMIT")
            return found

        # The statement does not know the clock of leases: it ends when another holder has the lock.
        held = self.assert_guards(ask)
        self.ok("acquire", "a", "--wait")
        self.assertEqual(ask("a", held), [])

    def test_on_a_server(self):
        self.url = self.postgres()
        self.apply_schema()
        statement = self.documented("PostgreSQL")

        def ask(key, lock_id):
            text = statement.replace("$1", f"'{key}'").replace("$2", f"'{lock_id}'")
            return self.psql_at(self.url, text).split()

        self.assert_ends_with_the_lease(ask, self.assert_guards(ask))
        fence = self.documented("one row").replace("$1", "'r'").replace(";", " RETURNING 1;")
        for number, accepted in ("2", "1"), ("2", "1"), ("1", ""), ("3", "1"):
            told = self.psql_at(self.url, fence.replace("$2", number)).strip()
            self.assertEqual(told, accepted)


class WithoutTables(LockTest):
    def test_no_file_is_created(self):
        for verb in ["acquire", "a"], ["status", "a"], ["run", "a", "--", "true"], ["purge"]:
            with self.subTest(verb):
                done = self.run_it("lock", verb[0], "--db", self.url, *verb[1:])
                self.assert_fails(done, REFUSED, "x.db")
                self.assert_left_behind()

    def test_a_file_gets_its_tables_from_who_takes_a_lock_and_not_from_who_asks(self):
        sqlite3.connect(self.folder / "x.db").execute("CREATE TABLE mine (x)").connection.close()
        self.assert_fails(self.lock("status", "a"), REFUSED, "holdfast schema apply")
        self.ok("acquire", "a")
        self.assertTrue(self.ok("status", "a")["held"])

    def test_a_server_gets_none_by_the_way(self):
        self.url = self.postgres()
        for verb in ["acquire", "a"], ["status", "a"], ["elect", "a"]:
            self.assert_fails(self.lock(*verb), REFUSED, "holdfast schema apply", "lock")


class OnAServerThatForgets(LockTest):
    """A crash could give one fence to two holders; whoever accepts that says so."""

    def test_it_is_refused_unless_that_is_asked_for_by_name(self):
        self.url = self.postgres()
        self.apply_schema()
        name = re.search(r"/(\w+)\?", self.url)[1]
        self.psql_at(self.url, f"ALTER DATABASE {name} SET synchronous_commit = off")
        self.assert_fails(
            self.lock("acquire", "a"), USAGE, "synchronous_commit", "accept_lost_commits"
        )
        accepted = {"HOLDFAST_LOCK_ACCEPT_LOST_COMMITS": "true"}
        self.assertEqual(self.ok("acquire", "a", env=accepted)["fence"], "000000000000001")


class Outages(LockTest):
    def test_a_database_out_of_reach_has_a_code_of_its_own(self):
        (self.folder / "id").write_text("AAECAwQFBgcICQoLDA0ODw\n")
        with socket.socket() as closed:  # Bound and not listening: connecting is refused at once.
            closed.bind(("127.0.0.1", 0))
            self.url = "postgres://ann@127.0.0.1:%d/x" % closed.getsockname()[1]
            for verb in (
                ["acquire", "a"],
                ["release", "--id-file", "id"],
                ["extend", "--id-file", "id"],
                ["status", "a"],
                ["list"],
                ["force-release", "a", "--fence", "1"],
                ["purge"],
                ["doctor"],
            ):
                with self.subTest(verb):
                    self.assert_fails(self.lock(*verb), NO_BACKEND, "127.0.0.1")
            self.assert_fails(
                self.run_it("lock", "run", "a", "--db", self.url, "--", "touch", "ran"), NO_BACKEND
            )
        self.assertTrue((self.folder / "id").exists(), "the lock may still be ours")
        self.assertFalse((self.folder / "ran").exists())


if __name__ == "__main__":
    unittest.main()
