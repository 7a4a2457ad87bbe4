"""holdfast dsql local and holdfast dsql gateway: started, used, told to make trouble, ended."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import binary
from binary import UNAVAILABLE, USAGE
from cluster import Cluster, token


class Local(binary.CommandTest):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # The private server is another user's.

    def cluster(self, *arguments):
        cluster = Cluster(*arguments, cwd=self.folder)
        self.addCleanup(cluster.reap)
        return cluster

    def postmaster_of(self, cluster):
        """The process id of the server below, as the system knows it."""
        found = subprocess.run(
            ["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True
        ).stdout
        # Its grandchild, by way of the watchdog.
        children = pathlib.Path(f"/proc/{cluster.process.pid}/task/{cluster.process.pid}/children")
        watchdog = children.read_text().split()[0]
        servers = pathlib.Path(f"/proc/{watchdog}/task/{watchdog}/children").read_text().split()
        lines = [line for line in found.splitlines() if line.split()[0] in servers]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("postgres", lines[0])
        return int(servers[0])

    def assert_ends(self, process):
        deadline = time.monotonic() + 30
        while os.path.exists(f"/proc/{process}"):
            self.assertLess(time.monotonic(), deadline, "the server below is left behind")
            time.sleep(0.01)

    def test_one_command_is_a_cluster(self):
        cluster = self.cluster()
        self.assertEqual(cluster.sql("SHOW server_version"), "16.15")
        self.assertEqual(cluster.sql("SELECT current_user, current_database()"), "admin|postgres")
        self.assertEqual(
            cluster.sql("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"), "f"
        )
        refused = cluster.run("psql", "-X", "-c", "CREATE TABLE t (id serial)")
        self.assertIn('type "serial" does not exist', refused.stderr)

    def test_it_says_what_a_person_has_to_copy(self):
        process = self.start("dsql", "local")
        text = ""
        while "Ctrl-C" not in text:
            line = process.stdout.readline()
            self.assertTrue(line, text)
            text += line
        self.assertRegex(
            text,
            r"  dsql://\w{26}\.dsql\.us-east-1\.on\.aws\?hostaddr=127\.0\.0\.1&port=\d+"
            r"&sslrootcert=/\S+\n",
        )
        exports = re.findall(r"^  (export \w+=.*)$", text, re.M)
        self.assertEqual(len(exports), 4)
        psql = re.search(r"^  (PGPASSWORD=.*)$", text, re.M)[1]
        # In a shell of its own, as it is.
        script = "\n".join([*exports, psql + " -XAtc 'SELECT 40 + 2'"])
        done = subprocess.run(
            ["sh", "-c", script], env=binary.clean_environment(), capture_output=True, text=True
        )
        self.assertEqual(done.stdout, "42\n", done.stderr)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(process.returncode, 130)

    def test_keys_are_made_at_the_start_and_only_their_owner_may_read_them(self):
        first, second = self.cluster(), self.cluster()
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        for name in names:
            self.assertNotEqual(
                first.offer["environment"][name], second.offer["environment"][name]
            )
        file = pathlib.Path(first.offer["credentials"])
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        keys = [first.offer["environment"][name] for name in names]
        self.assertEqual(file.read_text(), ":".join(keys) + "\n")
        # The keys of one do not open the other.
        foreign = {**second.offer, "environment": first.offer["environment"]}
        second.offer = foreign
        self.assertNotEqual(second.run("psql", "-X", "-c", "SELECT 1").returncode, 0)

    def test_keys_may_be_given(self):
        (self.folder / "keys").write_text("AKIDANN:ann+s/secret\n")
        cluster = self.cluster("--credentials", str(self.folder / "keys"))
        self.assertEqual(cluster.offer["environment"]["AWS_ACCESS_KEY_ID"], "AKIDANN")
        self.assertEqual(cluster.offer["credentials"], "")

    def test_the_doctor_finds_it_well(self):
        cluster = self.cluster()

        def doctor(**env):
            return self.run_it(
                *("dsql", "doctor", "--json", "--db", cluster.offer["url"]),
                env={**cluster.offer["environment"], **env},
            )

        done = doctor(DSQL_TOKEN_DURATION="1m")
        self.assertEqual(done.code, binary.DONE, done)
        self.assertTrue(done.json["ok"], done)
        found = {check["check"]: check["detail"] for check in done.json["checks"]}
        self.assertIn("valid for 1 min 0 s", found["token"])
        self.assertEqual(found["fleet"], "10 new connections a second, 100 at once, alone")
        # Nobody listens where the tables should be.
        with socket.create_server(("127.0.0.1", 0)) as server:
            nowhere = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = doctor(
            DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED="true",
            DSQL_DISTRIBUTED_RATE_LIMITER_TABLE="rates",
            DSQL_DYNAMODB_ENDPOINT=nowhere,
        )
        self.assertEqual(done.code, UNAVAILABLE, done)
        states = {check["check"]: check["state"] for check in done.json["checks"]}
        self.assertEqual((states["login"], states["fleet"]), ("ok", "failed"))

    def test_ctrl_c_ends_everything_even_with_somebody_connected(self):
        cluster = self.cluster()
        server = self.postmaster_of(cluster)
        scratch = pathlib.Path(cluster.offer["root_certificate"]).parent
        self.assertTrue(scratch.exists())
        sleeper = subprocess.Popen(
            ["psql", "-XAtq", "-c", "SELECT 'here'", "-c", "SELECT pg_sleep(600)"],
            env=cluster.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(self.reap, sleeper)
        self.assertEqual(sleeper.stdout.readline(), "here\n")
        err, code = cluster.stop()
        self.assertEqual((err, code), ("", 130))
        self.assertFalse(os.path.exists(f"/proc/{server}"))
        self.assertFalse(scratch.exists())
        self.assert_left_behind()

    def test_what_is_killed_leaves_no_server_behind(self):
        cluster = self.cluster()
        server = self.postmaster_of(cluster)
        cluster.stop(signal.SIGKILL)
        self.assert_ends(server)

    def test_data_survive_an_end_and_a_kill(self):
        where = ("--data", str(self.folder / "my data"))
        cluster = self.cluster(*where)
        root = pathlib.Path(cluster.offer["root_certificate"]).read_bytes()
        cluster.sql("CREATE TABLE t (id bigint PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        self.assertEqual(cluster.stop(signal.SIGTERM), ("", 143))

        cluster = self.cluster(*where)
        self.assertEqual(pathlib.Path(cluster.offer["root_certificate"]).read_bytes(), root)
        self.assertEqual(cluster.sql("INSERT INTO t VALUES (2)", "SELECT sum(id) FROM t"), "3")
        server = self.postmaster_of(cluster)
        cluster.stop(signal.SIGKILL)
        self.assert_ends(server)

        cluster = self.cluster(*where)
        self.assertEqual(cluster.sql("SELECT sum(id) FROM t"), "3")

    def test_a_port_that_is_taken_is_said(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = self.run_it("dsql", "local", "--port", str(port))
        self.assert_fails(done, UNAVAILABLE, f"127.0.0.1:{port}", "in use")

    def test_trouble_comes_by_rule_over_the_control_port(self):
        cluster = self.cluster()
        cluster.sql(
            "CREATE TABLE t (id bigint PRIMARY KEY, v bigint)", "INSERT INTO t VALUES (1, 0)"
        )
        rule = {"point": "commit", "fault": "OC000", "nth": 2}
        self.assertEqual(cluster.control("POST", "/faults", rule), (200, {}))
        update = ("-c", "UPDATE t SET v = v + 1")
        done = cluster.run("psql", "-Xq", *update, *update, *update)
        self.assertEqual(done.stderr.count("(OC000)"), 1, done.stderr)
        self.assertEqual(cluster.sql("SELECT v FROM t"), "2")

        for fault in ("53300", "53400"):
            cluster.control("POST", "/faults", {"point": "connect", "fault": fault})
            self.assertIn("Unable to accept connection", cluster.run("psql", "-c", "").stderr)
        cluster.control("POST", "/faults", {"fault": "EOF-after", "times": 5})
        self.assertEqual(cluster.control("DELETE", "/faults"), (200, {}))
        cluster.sql("UPDATE t SET v = v + 1")

        status, stats = cluster.control("GET", "/stats")
        self.assertEqual(status, 200)
        self.assertGreaterEqual(stats["opened"], 4)
        self.assertEqual(cluster.control("POST", "/early-abort", {"on": True}), (200, {}))
        self.assertEqual(cluster.control("POST", "/hang-up", {}), (200, {}))

    def test_what_the_control_port_does_not_understand_it_refuses(self):
        cluster = self.cluster()
        for path, body, word in (
            ("/faults", {"fault": "OC002"}, "OC000, OC001"),
            ("/faults", {"point": "sometime"}, "connect, statement, commit"),
            ("/faults", {"nth": 0}, "'nth'"),
            ("/faults", {"times": "often"}, "'times'"),
            ("/faults", {"fualt": "OC000"}, "'fualt'"),
            ("/faults", [], "JSON object"),
            ("/early-abort", {"on": "yes"}, "'on'"),
        ):
            status, text = cluster.control("POST", path, body)
            self.assertEqual(status, 400, body)
            self.assertIn(word, text)

    def test_a_post_without_a_body_changes_nothing(self):
        cluster = self.cluster()
        for path in ("/faults", "/hang-up", "/early-abort"):
            status, text = cluster.control("POST", path)
            self.assertEqual(status, 400, path)
            self.assertIn("the body is empty", text)
        cluster.sql("CREATE TABLE t (id bigint PRIMARY KEY)")  # No rule was made.

    def test_web_pages_of_other_sites_do_not_reach_the_control_port(self):
        cluster = self.cluster()
        rule = {"point": "commit", "fault": "OC000", "times": 100}
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Host": f"evil.example:{cluster.offer['control_port']}"},
        ):
            for method, path, body in (
                ("POST", "/faults", rule),
                ("DELETE", "/faults", None),
                ("GET", "/stats", None),
            ):
                status, _ = cluster.control(method, path, body, headers)
                self.assertEqual(status, 403, (headers, method))
        cluster.sql("CREATE TABLE t (id bigint PRIMARY KEY)")  # No rule was made.
        own = {"Origin": f"http://127.0.0.1:{cluster.offer['control_port']}"}
        self.assertEqual(cluster.control("DELETE", "/faults", None, own), (200, {}))

    def test_half_sent_requests_do_not_hold_up_the_control_port(self):
        cluster = self.cluster()
        slow = [
            socket.create_connection(("127.0.0.1", cluster.offer["control_port"]))
            for _ in range(50)
        ]
        for peer in slow:
            self.addCleanup(peer.close)
            peer.sendall(b"GET /stats HTTP/1.1\r\nHost: loc")
        self.assertEqual(cluster.control("GET", "/stats")[0], 200)
        for peer in slow:  # None had to be given up for the answer.
            peer.sendall(b"alhost\r\n\r\n")
            self.assertTrue(peer.recv(100).startswith(b"HTTP/1.1 200 OK"))


class Gateway(binary.CommandTest):
    """In front of a server that somebody else runs."""

    keys = {"AWS_ACCESS_KEY_ID": "AKIDANN", "AWS_SECRET_ACCESS_KEY": "ann+s/secret"}

    @classmethod
    def setUpClass(cls):
        # The certificates of a local cluster are as good as any.
        home = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="hf-gw-")))
        home.chmod(0o755)
        local = Cluster("--data", str(home))
        local.stop()
        cls.root = local.offer["root_certificate"]
        cls.endpoint = local.offer["endpoint"]
        cls.certificate = ("--certificate", home / "server.pem", "--key", home / "server.key")

    def gateway(self, upstream, *arguments, keys="AKIDANN:ann+s/secret"):
        return self.start(
            "dsql",
            "gateway",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            upstream,
            *self.certificate,
            *arguments,
            env={"HOLDFAST_GATEWAY_KEYS": keys} if keys else {},
        )

    def refused(self, *arguments, **how):
        process = self.gateway(*arguments, **how)
        process.stdout, process.stderr = process.communicate(timeout=binary.SECONDS_MAX)
        done = binary.Done(process)
        process.stdout = process.stderr = None
        return done

    def ask(self, port, statement):
        return subprocess.run(
            ["psql", "-XAtq", "-c", statement],
            env=binary.clean_environment(
                PGHOST=self.endpoint,
                PGHOSTADDR="127.0.0.1",
                PGPORT=port,
                PGUSER="admin",
                PGDATABASE="postgres",
                PGPASSWORD=token(self.endpoint, self.keys),
                PGSSLMODE="verify-full",
                PGSSLROOTCERT=self.root,
            ),
            capture_output=True,
            text=True,
        )

    def test_it_serves_until_it_is_told_to_end(self):
        (self.folder / "keys").write_text("# Ann\nAKIDANN:ann+s/secret\n")
        gateway = self.gateway(
            self.postgres(), "--credentials", str(self.folder / "keys"), keys=None
        )
        port = re.fullmatch(
            r"The gateway listens on 127\.0\.0\.1:(\d+)\.\n", gateway.stdout.readline()
        )[1]
        done = self.ask(port, "SELECT current_user")
        self.assertEqual(done.stdout, "admin\n", done.stderr)
        gateway.send_signal(signal.SIGTERM)
        self.assertEqual(gateway.communicate(timeout=binary.SECONDS_MAX), ("", ""))
        self.assertEqual(gateway.returncode, 143)

    def test_a_server_that_is_not_there_is_said(self):
        done = self.refused("postgres://nobody@127.0.0.1:1/postgres")
        self.assert_fails(done, UNAVAILABLE, "cannot be reached", "refused")

    def test_it_needs_a_superuser(self):
        url = self.postgres()
        self.psql_at(url, "DROP ROLE IF EXISTS mere_mortal; CREATE ROLE mere_mortal LOGIN")
        self.addCleanup(self.psql_at, url, "DROP ROLE mere_mortal")
        done = self.refused(url.replace("postgres@", "mere_mortal@"))
        self.assert_fails(done, USAGE, "'mere_mortal' is not a superuser")

    def test_somebody_must_be_able_to_sign(self):
        self.assert_fails(self.refused(self.postgres(), keys=None), USAGE, "HOLDFAST_GATEWAY_KEYS")
        self.assert_fails(self.refused(self.postgres(), keys=" , "), USAGE, "has no keys")
        done = self.refused(self.postgres(), keys="AKIDANN")
        self.assert_fails(done, USAGE, "ID:SECRET")
        self.assertNotIn("AKIDANN", done.err)

    def test_a_certificate_that_is_none_is_said(self):
        self.certificate = ("--certificate", "/dev/null", "--key", "/dev/null")
        self.assert_fails(self.refused(self.postgres()), UNAVAILABLE, "certificate /dev/null")


if __name__ == "__main__":
    unittest.main()
