"""holdfast dsql leases, and the settings of a fleet, against the emulator of DynamoDB that npm brings."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

import binary
from binary import DONE, REFUSED, UNAVAILABLE, USAGE

SKIPPED = 77  # For ctest, which then says so in its summary.
EMULATOR = pathlib.Path(os.environ["HOLDFAST_NODE_MODULES"]) / "@dynoxide/linux-x64/dynoxide"
ENDPOINT = "4zabc7defghij2klmnopqrst5u.dsql.us-east-1.on.aws"


def free_port():
    """Below those that the kernel gives to callers, so that it stays free until it is used."""
    while True:
        port = random.randrange(10_240, 32_768)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


class Leases(binary.CommandTest):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.url = f"http://127.0.0.1:{port}"
        cls.emulator = subprocess.Popen(
            [EMULATOR, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        cls.addClassCleanup(cls.stop)
        end = time.monotonic() + binary.SECONDS_MAX
        while not cls.answers(port):
            if time.monotonic() > end:
                raise TimeoutError("the emulator does not answer")
            time.sleep(0.01)

    @staticmethod
    def answers(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    @classmethod
    def stop(cls):
        cls.emulator.kill()
        cls.emulator.wait()

    def leases(self, *arguments, env=None):
        return self.run_it(
            "dsql",
            "leases",
            *arguments,
            env={
                "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
                "AWS_SECRET_ACCESS_KEY": "s3cret",
                "DSQL_DYNAMODB_ENDPOINT": self.url,
                **(env or {}),
            },
        )

    def put(self, table, **item):
        body = {
            "TableName": table,
            "Item": {k: {"N": str(v)} if isinstance(v, int) else {"S": v} for k, v in item.items()},
        }
        request = urllib.request.Request(
            self.url,
            json.dumps(body).encode(),
            {
                "X-Amz-Target": "DynamoDB_20120810.PutItem",
                "Content-Type": "application/x-amz-json-1.0",
                "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, "
                "SignedHeaders=host, Signature=00",
                "X-Amz-Date": "20260101T000000Z",
            },
        )
        urllib.request.urlopen(request).close()

    def test_tables_are_made_once(self):
        region = ("--region", "us-east-1")
        both = ("--leases-table", "made-leases", "--limiter-table", "made-rates")
        first = self.leases("setup", *both, *region, "--json")
        self.assertEqual(first.code, DONE, first)
        self.assertEqual(
            json.loads(first.out)["tables"],
            [
                {"table": "made-leases", "created": True, "expiry_enabled": True},
                {"table": "made-rates", "created": True, "expiry_enabled": True},
            ],
        )
        again = self.leases("setup", *both, *region)
        self.assertEqual(again.out, "made-leases was there; made-rates was there\n", again)

    def test_dead_owners_are_shown_and_reaped(self):
        env = {"DSQL_DISTRIBUTED_CONN_LEASE_TABLE": "leases", "CLUSTER_ENDPOINT": ENDPOINT.upper()}
        self.assertEqual(self.leases("setup", env=env).code, DONE)
        now = int(time.time())
        for block, owner, until in ((0, "ann", now + 100), (1, "bob", now - 100), (2, "", 0)):
            key = f"connslots#{ENDPOINT}#block-{block}"
            self.put("leases", pk=key, owner_id=owner, ttl_epoch=until, slots=25, epoch=3)
        shown = self.leases("show", "--json", env=env)
        self.assertEqual(
            [(block["block"], block["state"]) for block in json.loads(shown.out)["blocks"]],
            [(0, "held"), (1, "dead"), (2, "free")],
            shown,
        )
        self.assertRegex(self.leases("show", env=env).out, r"(?m)^ *1 +dead +25 .* ago +3$")
        self.assertEqual(
            self.leases("reap", env=env).out, "freed 25 slots in 1 blocks of 1 dead owners\n"
        )
        self.assertEqual(json.loads(self.leases("reap", "--json", env=env).out)["freed"], [])

    def test_leases_of_single_connections_are_shown_and_reaped(self):
        env = {
            "DSQL_DISTRIBUTED_CONN_LEASE_TABLE": "singles",
            "CLUSTER_ENDPOINT": ENDPOINT,
            "DSQL_CONN_LEASE_MODE": "counter",
        }
        self.assertEqual(self.leases("setup", env=env).code, DONE)
        now_ms = int(time.time() * 1000)
        self.put("singles", pk=f"dsqllease_counter#{ENDPOINT}", active=7, updated_ms=now_ms)
        for owner, until_ms in (("ann", now_ms + 100_000), ("bob", now_ms - 100_000)):
            key = f"dsqlowner#{ENDPOINT}#{owner}"
            self.put("singles", pk=key, lease_until_ms=until_ms, service_name=f"{owner}s")
            self.put("singles", pk=f"dsqllease#{ENDPOINT}#of-{owner}", owner_id=owner)
        shown = json.loads(self.leases("show", "--json", env=env).out)
        self.assertEqual(shown["counted"], 7)
        self.assertEqual(
            [(owner["owner"], owner["state"], owner["leases"]) for owner in shown["owners"]],
            [("ann", "alive", 1), ("bob", "dead", 1)],
        )
        self.assertRegex(self.leases("show", env=env).out, r"(?m)^dead +1 +bobs .* ago$")
        self.assertEqual(
            self.leases("reap", env=env).out,
            "freed 1 leases of 1 dead owners; the counter was off by -5\n",
        )
        self.assertEqual(json.loads(self.leases("show", "--json", env=env).out)["counted"], 1)

    def test_leases_of_the_unheard_and_of_nobody_are_told_apart(self):
        env = {
            "DSQL_DISTRIBUTED_CONN_LEASE_TABLE": "mixed",
            "CLUSTER_ENDPOINT": ENDPOINT,
            "DSQL_CONN_LEASE_MODE": "counter",
        }
        self.assertEqual(self.leases("setup", env=env).code, DONE)
        now_ms = int(time.time() * 1000)
        self.put("mixed", pk=f"dsqllease_counter#{ENDPOINT}", active=3, updated_ms=now_ms)
        self.put("mixed", pk=f"dsqllease#{ENDPOINT}#1", owner_id="cid", created_ms=now_ms)
        self.put("mixed", pk=f"dsqllease#{ENDPOINT}#2", service_name="old", created_ms=now_ms)
        shown = self.leases("show", env=env).out
        self.assertRegex(shown, r"(?m)^dead +1 .* never heard$")
        self.assertRegex(shown, r"(?m)^unowned +1 .* never heard$")
        owners = json.loads(self.leases("show", "--json", env=env).out)["owners"]
        self.assertEqual(
            [(owner["owner"], owner["state"], owner["until_ms"]) for owner in owners],
            [("", "unowned", None), ("cid", "dead", None)],
        )
        self.assertIn("freed 1 leases of 1 dead owners; the counter", self.leases("reap", env=env).out)
        shown = json.loads(self.leases("show", "--json", env=env).out)
        self.assertEqual((shown["counted"], len(shown["owners"])), (2, 1))

    def test_what_is_missing_is_named(self):
        self.assert_fails(self.leases("show", "--region", "us-east-1"), USAGE, "--endpoint")
        self.assert_fails(
            self.leases("show", "--endpoint", ENDPOINT), USAGE, "DSQL_DISTRIBUTED_CONN_LEASE_TABLE"
        )
        self.assert_fails(
            self.leases("show", "--endpoint", ENDPOINT, "--leases-table", "none"),
            REFUSED,
            "holdfast dsql leases setup",
        )
        self.assert_fails(
            self.leases(
                "show",
                *("--endpoint", ENDPOINT, "--leases-table", "leases"),
                env={"DSQL_DYNAMODB_ENDPOINT": f"http://127.0.0.1:{free_port()}"},
            ),
            UNAVAILABLE,
            "cannot be reached",
        )

    def test_the_url_of_a_database_says_where_its_tables_are(self):
        table = ("--leases-table", "by-url")
        self.assertEqual(self.leases("setup", "--region", "eu-west-1", *table).code, DONE)
        shown = self.leases(
            "show", "--json", "--db", "dsql://Orders.example.com:5433?region=eu-west-1", *table
        )
        self.assertEqual(shown.code, DONE, shown)
        self.assertEqual(
            json.loads(shown.out), {"endpoint": "orders.example.com", "blocks": []}, shown
        )
        self.assert_fails(
            self.leases("show", "--endpoint", "orders.example.com", *table), USAGE, "--region"
        )

    def test_the_settings_are_shown_with_their_source(self):
        shown = self.run_it(
            *("config", "show", "--json"),
            env={"DSQL_CONNECTION_RATE_LIMIT": "7", "DSQL_SLOT_BLOCK_SIZE": "many"},
        )
        settings = {entry["key"]: entry for entry in json.loads(shown.out)["settings"]}
        self.assertEqual(settings["dsql.rate"]["value"], "7")
        self.assertEqual(settings["dsql.rate"]["source"], "environment DSQL_CONNECTION_RATE_LIMIT")
        self.assertEqual(settings["dsql.leases.block_size"]["value"], "25")
        self.assertIn("DSQL_SLOT_BLOCK_SIZE", shown.err)

    def test_who_looks_at_the_settings_is_told_what_cannot_work(self):
        shown = self.run_it("config", "show", env={"DSQL_CONNECTION_RATE_LIMIT": "-5"})
        self.assertEqual(shown.code, DONE, shown)
        self.assertIn("dsql.rate is -5; give 1 or more", shown.err)
        shown = self.run_it("config", "show", env={"DSQL_TOKEN_DURATION": "1s"})
        self.assertIn("15s is in force", shown.err)
        self.assertEqual(self.run_it("config", "show").err, "")

    def test_contradictions_are_refused_before_anything_is_opened(self):
        done = self.run_it(
            *("lock", "list", "--db", f"dsql://{ENDPOINT}"),
            env={"DSQL_DISTRIBUTED_CONN_LEASE_ENABLED": "true"},
        )
        self.assert_fails(done, USAGE, "dsql.leases.table")


if __name__ == "__main__":
    if not EMULATOR.exists():
        print(f"skipped: npm has not brought {EMULATOR}; ./run test tries to")
        sys.exit(SKIPPED)
    unittest.main()
