"""A cluster of `holdfast dsql local` for a class of tests, and tokens that others signed for it."""

import datetime
import hashlib
import hmac
import json
import signal
import subprocess
import urllib.parse
import urllib.request

import binary


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def token(endpoint, keys, user="admin", region="us-east-1"):
    """Signature Version 4, written down once more, so that no mistake of ours can hide in it."""
    now = datetime.datetime.now(datetime.timezone.utc)
    day, second = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day}/{region}/dsql/aws4_request"
    query = urllib.parse.urlencode(
        {
            "Action": "DbConnectAdmin" if user == "admin" else "DbConnect",
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{keys['AWS_ACCESS_KEY_ID']}/{scope}",
            "X-Amz-Date": second,
            "X-Amz-Expires": "900",
            "X-Amz-SignedHeaders": "host",
        }
    )
    empty = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{query}\nhost:{endpoint}\n\nhost\n{empty}"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = ("AWS4" + keys["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in (day, region, "dsql", "aws4_request"):
        key = sign(key, part)
    signature = sign(key, f"AWS4-HMAC-SHA256\n{second}\n{scope}\n{digest}").hex()
    return f"{endpoint}/?{query}&X-Amz-Signature={signature}"


class Cluster:
    """Runs from construction until stop()."""

    def __init__(self, *arguments, **how):
        self.process = subprocess.Popen(
            [
                binary.BINARY,
                "dsql",
                "local",
                "--json",
                "--control",
                "127.0.0.1:0",
                *arguments,
            ],
            env=binary.clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,
        )
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"it does not start: {self.process.communicate()[1]}")
        self.offer = json.loads(line)

    def stop(self, how=signal.SIGINT):
        """What it still said on standard error, and its exit code."""
        self.process.send_signal(how)
        _, err = self.process.communicate(timeout=binary.SECONDS_MAX)
        return err, self.process.returncode

    def reap(self):
        self.process.kill()
        self.process.communicate()

    def token(self, user="admin"):
        return token(self.offer["endpoint"], self.offer["environment"], user)

    def environment(self, user="admin", **more):
        """For programs that use libpq."""
        return binary.clean_environment(
            PGHOST=self.offer["endpoint"],
            PGHOSTADDR="127.0.0.1",
            PGPORT=str(self.offer["port"]),
            PGUSER=user,
            PGDATABASE="postgres",
            PGPASSWORD=self.token(user),
            PGSSLMODE="verify-full",
            PGSSLROOTCERT=self.offer["root_certificate"],
            **more,
        )

    def run(self, *command, user="admin", **how):
        return subprocess.run(
            command,
            env=self.environment(user),
            capture_output=True,
            text=True,
            timeout=binary.SECONDS_MAX,
            **how,
        )

    def sql(self, *statements):
        """The rows of the last one, as psql prints them; each is a transaction of its own."""
        done = self.run("psql", "-XAtq", *(word for s in statements for word in ("-c", s)))
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout.strip()

    def control(self, method, path, body=None, headers=None):
        """The status and the answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.offer['control_port']}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=headers or {},
        )
        try:
            with urllib.request.urlopen(request, timeout=binary.SECONDS_MAX) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
