"""Databases that are absent, not ours or not databases: one sentence, nothing left behind."""

import socket
import unittest

import binary
from binary import DONE, REFUSED, UNAVAILABLE, USAGE


class BadFiles(binary.CommandTest):
    def test_a_malformed_url_is_refused(self):
        for url in (
            "nonsense",
            "sqlite:",
            "mysql://host/x",
            "sqlite:x.db?colour=red",
            "postgres://ann:%zz@h/x",
            "postgres://ann@h/x?sslmode=sometimes",
            "postgres://ann@h/x?target_session_attrs=mine",
            "sqlite:x.db?create=1&create=1",
        ):
            with self.subTest(url):
                self.assert_fails(self.run_it("schema", "apply", "--db", url), USAGE)
        self.assert_left_behind()

    def test_a_password_is_never_shown(self):
        for url in (
            "postgres://bob:Sup3r%zz@h/x",
            "postgres://bob:Sup3r@Sup3r@h/x",
            "postgres://bob:Sup3r/y@h/x",
            "postgres://bob:Sup3r?y@h/x",
            "postgres://bob:Sup3r",
            "postgres://127.0.0.1:1/x?password=Sup3r",
            "postgres://bob:Sup3r@127.0.0.1:1/x",
            "postgres://h/x?password=Sup3r&Sup3r",
            "postgresql//bob:Sup3r@h/x",
            "host=x password=Sup3r",
            "dsql://bob:Sup3r@h/x",
            "mysql://bob:Sup3r@h/x",
            "Sup3r",
        ):
            for command in (
                ("schema", "status"),
                ("lock", "list", "--json"),
                ("flow", "list"),
                ("dsql", "doctor"),
                ("config", "show"),
                ("bench", "sql", "--seconds", "0.01"),
            ):
                with self.subTest(url=url, command=command):
                    done = self.run_it(*command, env={"HOLDFAST_DB": url})
                    self.assertNotIn("Sup3r", done.out + done.err)

    def test_no_url_at_all_names_the_ways_to_give_one(self):
        self.assert_fails(self.run_it("schema", "status"), USAGE, "--db", "HOLDFAST_DB")

    def test_a_missing_file_is_not_created_by_a_question(self):
        self.assert_fails(
            self.run_it("schema", "status", "--db", "sqlite:missing.db"), REFUSED, "missing.db"
        )
        self.assert_left_behind()

    def test_a_missing_folder_is_not_created_at_all(self):
        self.assert_fails(self.run_it("schema", "apply", "--db", "sqlite:no/x.db"), REFUSED, "no")
        self.assert_left_behind()

    def test_a_folder_is_not_a_file(self):
        self.assert_fails(
            self.run_it("schema", "apply", "--db", f"sqlite:{self.folder}"), USAGE, "folder"
        )

    def test_a_file_that_is_no_database_is_left_as_it_is(self):
        text = "Dear diary, today nobody wrote a database into me. " * 20
        (self.folder / "diary.txt").write_text(text)
        for verb in (["schema", "apply"], ["schema", "status"], ["demo"]):
            self.assert_fails(self.run_it(*verb, "--db", "sqlite:diary.txt"), USAGE, "diary.txt")
        self.assertEqual((self.folder / "diary.txt").read_text(), text)
        self.assert_left_behind("diary.txt")

    def test_a_file_that_may_not_be_written_is_left_as_it_is(self):
        how = self.as_nobody()
        self.assertEqual(self.run_it("schema", "apply", "--db", "sqlite:x.db").code, DONE)
        before = (self.folder / "x.db").read_bytes()
        (self.folder / "x.db").chmod(0o444)
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        done = self.run_it("demo", "--db", "sqlite:x.db", **how)
        self.assert_fails(done, done.code, "x.db")
        self.assertIn(done.code, (REFUSED, UNAVAILABLE))
        self.assertEqual((self.folder / "x.db").read_bytes(), before)
        self.assert_left_behind("x.db")

    def test_a_file_cannot_be_created_where_one_may_not_write(self):
        how = self.as_nobody()
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        done = self.run_it("schema", "apply", "--db", "sqlite:x.db", **how)
        self.assert_fails(done, done.code, "x.db")
        self.assertIn(done.code, (REFUSED, UNAVAILABLE))
        self.assert_left_behind()

    def test_an_unknown_part_creates_no_file(self):
        self.assert_fails(
            self.run_it("schema", "apply", "--part", "zebra", "--db", "sqlite:x.db"),
            USAGE,
            "zebra",
            "demo",
        )
        self.assert_left_behind()


class BadServers(binary.CommandTest):
    def test_nobody_listens(self):
        with socket.socket() as closed:  # Bound and not listening: connecting is refused at once.
            closed.bind(("127.0.0.1", 0))
            url = "postgres://ann@127.0.0.1:%d/x" % closed.getsockname()[1]
            self.assert_fails(
                self.run_it("schema", "status", "--db", url), UNAVAILABLE, "127.0.0.1"
            )

    def test_there_is_no_such_host(self):
        self.assert_fails(
            self.run_it("schema", "status", "--db", "postgres://ann@no-such-host.invalid/x"),
            UNAVAILABLE,
            "no-such-host.invalid",
        )

    def test_there_is_no_such_database(self):
        url = self.postgres().replace("/commands_", "/absent_")
        done = self.run_it("schema", "status", "--db", url)
        self.assert_fails(done, done.code, "absent_")
        self.assertIn(done.code, (REFUSED, UNAVAILABLE))

    def test_a_wrong_password_is_refused_and_not_repeated_to_the_screen(self):
        with binary.PasswordServer() as server:
            self.assertEqual(
                self.run_it("schema", "status", "--db", server.url("right")).code, DONE
            )
            for verb in (["schema", "status"], ["schema", "apply"], ["demo"]):
                done = self.run_it(*verb, "--db", server.url("wr0ngone"))
                self.assert_fails(done, REFUSED, "password")
                self.assertNotIn("wr0ngone", done.err)

    def test_a_schema_is_never_applied_to_a_server_by_the_way(self):
        url = self.postgres()
        self.assert_fails(self.run_it("demo", "--db", url), REFUSED, "holdfast schema apply")
        tables = self.psql_at(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        self.assertEqual(tables.strip(), "0")


if __name__ == "__main__":
    unittest.main()
