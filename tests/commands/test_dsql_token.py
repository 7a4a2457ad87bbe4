"""holdfast dsql token and doctor: tokens of the vendor's own signer, and what is wrong on the way."""

import json
import pathlib
import socket
import unittest

import binary
from binary import DONE, REFUSED, UNAVAILABLE, USAGE

VECTORS = pathlib.Path(__file__).parents[2] / "src/dsql/auth/vectors/dsql_tokens.json"
ENDPOINT = "4zabc7defghij2klmnopqrst5u.dsql.us-east-1.on.aws"


class DsqlTest(binary.CommandTest):
    def run_it(self, *arguments, env=None, **how):
        # Nothing of the machine's own AWS set-up may be found, and no instance asked.
        alone = {
            "HOME": str(self.folder),
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "credentials"),
            "AWS_CONFIG_FILE": str(self.folder / "config"),
            **{
                name: ""
                for name in (
                    "AWS_ACCESS_KEY_ID",
                    "AWS_SECRET_ACCESS_KEY",
                    "AWS_SESSION_TOKEN",
                    "AWS_PROFILE",
                    "AWS_REGION",
                    "AWS_DEFAULT_REGION",
                    "AWS_WEB_IDENTITY_TOKEN_FILE",
                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                )
            },
        }
        return super().run_it(*arguments, env={**alone, **(env or {})}, **how)


KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s3cret"}


class Token(DsqlTest):
    def token(self, *arguments, env=KEYS):
        return self.run_it("dsql", "token", *arguments, env=env)

    def arguments_of(self, given):
        arguments = ["--endpoint", given["hostname"], "--now", given["signing_time"]]
        arguments += ["--region", given["region"]]
        if given["action"] == "DbConnectAdmin":
            arguments.append("--admin")
        if given["expires_in_seconds"] is not None:
            arguments += ["--expires", str(given["expires_in_seconds"])]
        env = {
            "AWS_ACCESS_KEY_ID": given["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": given["secret_access_key"],
            "AWS_SESSION_TOKEN": given["session_token"] or "",
        }
        return arguments, env

    def test_every_vector_is_printed_byte_for_byte(self):
        for vector in json.loads(VECTORS.read_text())["vectors"]:
            with self.subTest(vector["name"]):
                arguments, env = self.arguments_of(vector["input"])
                done = self.token(*arguments, env=env)
                self.assertEqual(done.code, DONE, done)
                self.assertEqual(done.out, vector["expected"]["token"] + "\n")
                self.assertEqual(done.err, "")

    def test_every_rejection_is_refused_in_the_signers_words(self):
        for vector in json.loads(VECTORS.read_text())["rejections"]:
            arguments, env = self.arguments_of(vector["input"])
            self.assert_fails(self.token(*arguments, env=env), USAGE, vector["expected_error"])

    def test_the_region_comes_from_the_name_the_option_or_the_environment(self):
        self.assertIn("%2Fus-east-1%2F", self.token("--endpoint", ENDPOINT).out)
        done = self.token("--endpoint", ENDPOINT, "--region", "eu-west-1")
        self.assertIn("%2Feu-west-1%2F", done.out)
        done = self.token("--endpoint", "localhost", env={**KEYS, "AWS_REGION": "sa-east-1"})
        self.assertIn("%2Fsa-east-1%2F", done.out)
        self.assert_fails(self.token("--endpoint", "localhost"), USAGE, "localhost", "--region")

    def test_a_life_may_have_a_unit(self):
        self.assertIn("X-Amz-Expires=900&", self.token("--endpoint", ENDPOINT).out)
        done = self.token("--endpoint", ENDPOINT, "--expires", "1h")
        self.assertIn("X-Amz-Expires=3600&", done.out)
        for bad in ("0", "-1", "soon", ""):
            done = self.token("--endpoint", ENDPOINT, "--expires=" + bad)
            self.assertEqual(done.code, USAGE, done)
        self.assert_fails(self.token("--endpoint", ENDPOINT, "--now", "noon"), USAGE, "'noon'")

    def test_a_profile_is_found_in_the_files(self):
        (self.folder / "credentials").write_text(
            "[work]\naws_access_key_id = AKIDWORK\naws_secret_access_key = w\n"
        )
        done = self.token("--endpoint", ENDPOINT, "--profile", "work")
        self.assertIn("X-Amz-Credential=AKIDWORK%2F", done.out)
        self.assert_fails(
            self.token("--endpoint", ENDPOINT, "--profile", "play"), USAGE, "no profile 'play'"
        )

    def test_without_credentials_it_says_where_it_looked(self):
        self.assert_fails(
            self.token("--endpoint", ENDPOINT, env={}),
            REFUSED,
            "AWS_ACCESS_KEY_ID is not set",
            "no profile 'default'",
        )

    def test_programs_get_an_object(self):
        done = self.token("--endpoint", ENDPOINT, "--admin", "--json")
        self.assertEqual(done.json["action"], "DbConnectAdmin")
        self.assertEqual(done.json["credentials"], "environment")
        self.assertTrue(done.json["token"].startswith(ENDPOINT + "/?Action=DbConnectAdmin&"))


class Doctor(DsqlTest):
    def doctor(self, url, *arguments, env=KEYS):
        return self.run_it("dsql", "doctor", "--db", url, *arguments, env=env)

    def states(self, done):
        return {check["check"]: check["state"] for check in done.json["checks"]}

    def test_a_missing_key_is_found_first(self):
        done = self.doctor("dsql://" + ENDPOINT, "--json", env={})
        self.assertEqual(done.code, REFUSED, done)
        self.assertFalse(done.json["ok"])
        states = self.states(done)
        self.assertEqual(states["region"], "ok")
        self.assertEqual(states["credentials"], "failed")
        self.assertEqual(states["login"], "not tried")

    def test_a_cluster_out_of_reach_is_told_apart_from_a_bad_token(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        done = self.doctor(f"dsql://app@{ENDPOINT}:{port}?hostaddr=127.0.0.1", "--json")
        self.assertEqual(done.code, UNAVAILABLE, done)
        states = self.states(done)
        self.assertEqual(states["token"], "ok")
        self.assertEqual(states["login"], "failed")
        self.assertEqual(states["limits"], "not tried")
        self.assertNotIn("s3cret", done.out)
        self.assertNotIn("X-Amz-Signature", done.out)

    def test_it_reads_well(self):
        done = self.doctor(f"dsql://{ENDPOINT}?sslrootcert=/no/such/file")
        self.assertEqual(done.code, USAGE, done)
        lines = done.out.splitlines()
        self.assertRegex(lines[0], r"\Acheck +state +detail\Z")
        self.assertRegex(lines[1], r"\Aregion +ok +us-east-1, by the endpoint's name\Z")
        self.assertRegex(lines[2], r"\Acertificates +failed +there is no file /no/such/file")

    def test_it_is_for_clusters_only(self):
        self.assert_fails(self.doctor("sqlite:x.db"), USAGE, "dsql://ENDPOINT")
        self.assert_fails(self.doctor("dsql://localhost"), USAGE, "?region=")
        self.assert_fails(self.run_it("dsql", "doctor"), USAGE, "--db")


if __name__ == "__main__":
    unittest.main()
