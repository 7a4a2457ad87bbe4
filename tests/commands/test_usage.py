"""What a user gets who mistypes, asks for help, or reads the output by program."""

import os
import signal
import socket
import subprocess
import unittest
import urllib.request

import binary
from binary import DONE, REFUSED, UNAVAILABLE, USAGE


class Usage(binary.CommandTest):
    def test_without_words_it_says_what_there_is(self):
        self.assert_fails(self.run_it(), USAGE, "demo", "schema", "bench", "config", "completion")

    def test_help_documents_verbs_and_exit_codes(self):
        done = self.run_it("--help")
        self.assertEqual(done.code, DONE)
        for word in (
            "demo",
            "flow",
            "lock",
            "schema",
            "bench",
            "--db",
            "HOLDFAST_DB",
            "--json",
            "0 done",
            "1 refused",
            "2 usage",
            "3 unavailable",
            "4 internal",
            "130",
            "143",
        ):
            self.assertIn(word, done.out)
        self.assertNotIn(
            "demo-worker", done.out, "the process that the demo kills is not a user's verb"
        )

    def test_every_verb_has_help_of_its_own(self):
        for verb in (
            ["demo"],
            ["flow"],
            ["flow", "show"],
            ["flow", "start"],
            ["lock"],
            ["lock", "run"],
            ["lock", "elect"],
            ["lock", "acquire"],
            ["lock", "purge"],
            ["schema"],
            ["schema", "apply"],
            ["schema", "status"],
            ["schema", "dump"],
            ["bench"],
            ["config", "show"],
            ["completion"],
            ["version"],
        ):
            done = self.run_it(*verb, "--help")
            self.assertEqual(done.code, DONE, done)
            self.assertIn("holdfast " + " ".join(verb), done.out)
            self.assertIn("Exit codes", done.out)

    def test_an_unknown_option_is_refused_with_the_nearest_one(self):
        done = self.run_it("schema", "apply", "--jsn", "--db", "sqlite:x.db")
        self.assert_fails(done, USAGE, "'--jsn'", "did you mean --json?")
        self.assert_left_behind()

    def test_an_option_is_never_guessed_from_its_beginning(self):
        self.assert_fails(self.run_it("config", "show", "--js"), USAGE, "'--js'")

    def test_an_unknown_word_is_refused_with_the_nearest_one(self):
        self.assert_fails(self.run_it("schema", "aply"), USAGE, "'aply'", "did you mean apply?")
        self.assert_fails(self.run_it("shcema"), USAGE, "did you mean schema?")
        self.assert_fails(self.run_it("zebra"), USAGE, "'zebra'")

    def test_a_noun_alone_asks_for_its_verb(self):
        self.assert_fails(self.run_it("schema"), USAGE, "apply, status, dump")

    def test_values_that_do_not_fit_are_refused(self):
        for arguments in (
            ["demo", "--orders", "0"],
            ["demo", "--orders", "many"],
            ["bench", "--rounds", "0"],
            ["bench", "--seconds", "-1"],
            ["bench", "--seconds", "nan"],
            ["--db"],
            ["schema", "dump"],
            ["schema", "dump", "--dialect", "mysql"],
            ["completion", "fish"],
        ):
            with self.subTest(arguments):
                self.assert_fails(self.run_it(*arguments), USAGE)

    def test_the_version_in_all_its_ways(self):
        self.assertRegex(self.run_it("--version").out, r"\Aholdfast \d+\.\d+\.\d+\n\Z")
        self.assertEqual(self.run_it("version").out, self.run_it("--version").out)
        self.assertRegex(self.run_it("version", "--json").json["version"], r"\A\d+\.\d+\.\d+\Z")

    def test_a_full_disk_behind_standard_output_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [binary.BINARY, "version"], stdout=full, stderr=subprocess.PIPE, text=True
            )
        self.assertEqual(done.returncode, UNAVAILABLE)
        self.assertIn("standard output", done.stderr)


class LongDemo(binary.CommandTest):
    def start_demo(self, **environment):
        """A demo that goes on for seconds, after its first kill."""
        environment["TMPDIR"] = str(self.folder)
        process = self.start("demo", env=environment, bufsize=1)
        for line in process.stdout:
            if "kill -9 worker 1" in line:
                return process
        self.fail(f"the demo ended: {process.stderr.read()}")


class Signals(LongDemo):
    def interrupted_by(self, number):
        process = self.start_demo()
        process.send_signal(number)
        _, err = process.communicate(timeout=binary.SECONDS_MAX)
        self.assertRegex(err, r"\Aholdfast: [^\n]*interrupted[^\n]*\n\Z")
        self.assert_left_behind()
        return process.returncode

    def test_a_first_signal_ends_in_order_and_leaves_nothing_behind(self):
        self.assertEqual(self.interrupted_by(signal.SIGINT), 130)
        self.assertEqual(self.interrupted_by(signal.SIGTERM), 143)


class Configuration(LongDemo):
    def value(self, key, *arguments, **how):
        done = self.run_it("config", "show", "--json", *arguments, **how)
        self.assertEqual(done.code, DONE, done)
        return {entry["key"]: (entry["value"], entry["source"]) for entry in done.json["settings"]}[
            key
        ]

    def test_flags_win_over_environment_over_file_over_defaults(self):
        (self.folder / "h.yaml").write_text("db: sqlite:file.db\nretry:\n  max_retries: 7\n")
        file, environment = ("--config", "h.yaml"), {"HOLDFAST_DB": "sqlite:environment.db"}
        self.assertEqual(self.value("db"), ("", "default"))
        self.assertEqual(self.value("db", *file), ("sqlite:file.db", "h.yaml:1"))
        self.assertEqual(
            self.value("db", *file, env=environment),
            ("sqlite:environment.db", "environment HOLDFAST_DB"),
        )
        self.assertEqual(
            self.value("db", *file, "--db", "sqlite:flag.db", env=environment),
            ("sqlite:flag.db", "flag --db"),
        )
        self.assertEqual(self.value("retry.max_retries", *file), ("7", "h.yaml:3"))

    def test_a_file_may_have_a_name_that_is_no_text(self):
        self.assertEqual(self.value("db", "--db", "sqlite:\udcff.db")[0], "sqlite:\ufffd.db")
        done = self.run_it("schema", "apply", "--part", "lock", "--db", "sqlite:\udcff.db", "--json")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.json["parts"][0]["part"], "lock")
        self.assert_left_behind("\udcff.db")

    def test_a_password_is_never_shown(self):
        done = self.run_it("config", "show", "--db", "postgres://ann:hush@host/x")
        self.assertEqual(done.code, DONE)
        self.assertNotIn("hush", done.out + done.err)

    def test_the_table_has_a_line_for_each_setting(self):
        done = self.run_it("config", "show")
        self.assertRegex(done.out.splitlines()[0], r"^key +value +source$")
        self.assertRegex(done.out, r"(?m)^retry\.base_delay +100ms +default$")

    def test_what_is_not_understood_is_refused_with_its_place(self):
        (self.folder / "h.yaml").write_text("retry:\n  max_retry: 7\n")
        self.assert_fails(
            self.run_it("--config", "h.yaml", "config", "show"), USAGE, "h.yaml:2", "max_retries"
        )
        (self.folder / "h.yaml").write_text("retry:\n  base_delay: 30\n")
        self.assert_fails(
            self.run_it("--config", "h.yaml", "config", "show"), USAGE, "h.yaml:2", "base_delay"
        )
        self.assert_fails(self.run_it("--config", "no.yaml", "config", "show"), REFUSED, "no.yaml")
        self.assert_fails(
            self.run_it("--log-level", "loud", "config", "show"), USAGE, "--log-level", "loud"
        )
        self.assert_fails(
            self.run_it("config", "show", env={"HOLDFAST_RETRY_MAX_RETRIES": "many"}),
            USAGE,
            "HOLDFAST_RETRY_MAX_RETRIES",
        )

    def test_metrics_are_served_while_a_long_command_runs(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
        process = self.start_demo(HOLDFAST_METRICS_ADDRESS=address)
        with urllib.request.urlopen(
            f"http://{address}/metrics", timeout=binary.SECONDS_MAX
        ) as answer:
            self.assertRegex(
                answer.read().decode(), r'tx_attempts_count{.*operation="InstanceInfo"} [1-9]'
            )
        with urllib.request.urlopen(
            f"http://{address}/readyz", timeout=binary.SECONDS_MAX
        ) as answer:
            self.assertEqual(answer.status, 200)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(process.returncode, 143)


class Completion(binary.CommandTest):
    def bash_offers(self, *words):
        script = self.run_it("completion", "bash")
        self.assertEqual(script.code, DONE)
        quoted = " ".join(f"'{word}'" for word in words)
        program = f"{script.out}\nCOMP_WORDS=(holdfast {quoted}); COMP_CWORD={len(words)}\n"
        program += 'COMPREPLY=(); _holdfast; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "-c", program], capture_output=True, text=True, check=True, cwd=self.folder
        )
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_offers_verbs_options_and_values(self):
        self.assertEqual(self.bash_offers("sch"), ["schema"])
        self.assertEqual(self.bash_offers("schema", "a"), ["apply"])
        self.assertEqual(
            self.bash_offers("--db", "sqlite:x", "schema", "dump", "--dia"), ["--dialect"]
        )
        self.assertEqual(
            self.bash_offers("schema", "dump", "--dialect", ""), ["sqlite", "postgres", "dsql"]
        )
        self.assertEqual(
            self.bash_offers("schema", "apply", "--part", ""), ["flow", "lock", "demo", "store"]
        )
        self.assertIn("sql", self.bash_offers("bench", ""))
        self.assertIn("--orders", self.bash_offers("demo", "--"))
        self.assertNotIn("--orders", self.bash_offers("bench", "--"))
        self.assertEqual(self.bash_offers("flow", "sh"), ["show"])
        self.assertIn("restart", self.bash_offers("flow", "start", "w", "--on-duplicate", ""))
        self.assertEqual(self.bash_offers("lock", "acq"), ["acquire"])
        self.assertIn("--grace", self.bash_offers("lock", "run", "k", "--"))
        (self.folder / "some.yaml").touch()
        self.assertEqual(self.bash_offers("config", "show", "--config", "some"), ["some.yaml"])

    def test_hidden_verbs_are_not_offered(self):
        self.assertNotIn("demo-worker", self.run_it("completion", "bash").out)
        self.assertNotIn("demo-worker", self.run_it("completion", "zsh").out)

    def test_zsh_gets_a_completion_file(self):
        done = self.run_it("completion", "zsh")
        self.assertTrue(done.out.startswith("#compdef holdfast\n"))
        for word in ("apply", "--dialect", "(sqlite postgres dsql)", "--orders", "--on-duplicate"):
            self.assertIn(word, done.out)

    @unittest.skipUnless(os.access("/usr/bin/zsh", os.X_OK), "there is no zsh here")
    def test_zsh_understands_it(self):
        script = self.run_it("completion", "zsh").out
        subprocess.run(["zsh", "-n"], input=script, text=True, check=True)


if __name__ == "__main__":
    unittest.main()
