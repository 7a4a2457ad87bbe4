"""holdfast server: its command line, the API over HTTP, metrics, its configuration and its check."""

import concurrent.futures
import http.client
import json
import re
import signal
import sqlite3
import subprocess
import unittest

import binary
from binary import DONE, REFUSED, SECONDS_MAX, UNAVAILABLE, USAGE

JSON_PLAIN = "anNvbi9wbGFpbg=="  # In base64, as metadata are.


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read().decode()

    @property
    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return f"{self.status}\n{self.body}"


class Http:
    """A client of one port; each call has a connection of its own."""

    def __init__(self, address):
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)

    def begin(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=SECONDS_MAX)
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        connection.request(method, path, text, {k.replace("_", "-"): v for k, v in headers.items()})
        return connection

    def __call__(self, method, path, body=None, **headers):
        connection = self.begin(method, path, body, **headers)
        try:
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self("GET", path, **headers)

    def post(self, path, body, **headers):
        return self("POST", path, body, **headers)


class ServerTest(binary.CommandTest):
    def serve(self, verb, *arguments, **how):
        """Starts a server; gives the process and what it printed for programs."""
        process = self.start("server", verb, *arguments, "--json", **how)
        line = process.stdout.readline()
        if not line:
            self.fail(f"the server ended: {process.communicate(timeout=SECONDS_MAX)}")
        return process, json.loads(line)

    def dev(self, *arguments):
        """Starts a development server; gives a client of its HTTP port."""
        self.server, self.printed = self.serve(
            "start-dev", "--port", "0", "--http-port", "0", *arguments
        )
        return Http(self.printed["http"])

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(SECONDS_MAX), DONE)

    def start_order(self, api, workflow_id="order", **more):
        request = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "orders"}, **more}
        answer = api.post(f"/api/v1/namespaces/default/workflows/{workflow_id}", request)
        self.assertEqual(answer.status, 200, answer)
        return answer.json["runId"]


class CommandLine(ServerTest):
    def test_it_prints_where_it_serves_in_aligned_columns(self):
        process = self.start("server", "start-dev", "--port", "0", "--http-port", "0")
        lines = [process.stdout.readline() for _ in range(6)]
        self.assertRegex(lines[0], r"\AHoldfast \S+ \(API 1\.32\.0\)\n\Z")
        self.assertRegex(lines[2], r"\ATemporal Server:      localhost:\d+\n\Z")
        self.assertEqual(lines[3], "Temporal Persistence: in-memory\n")
        self.assertRegex(lines[4], r"\ATemporal HTTP:        localhost:\d+\n\Z")
        self.assertRegex(lines[5], r"\ATemporal Metrics:     http://localhost:\d+/metrics\n\Z")
        self.stop(process)

    def test_the_http_port_is_printed_only_if_it_was_asked_for(self):
        process, printed = self.serve("start-dev", "--port", "0")
        self.assertNotIn("http", printed)
        self.assertIn("metrics", printed)
        self.stop(process)

    def test_search_attributes_are_in_every_namespace(self):
        api = self.dev(
            "--namespace", "shop",
            "--search-attribute", "City=keyword", "--search-attribute=Total=Double",
        )  # fmt: skip
        for namespace in ("default", "shop"):
            answer = api.get(f"/api/v1/namespaces/{namespace}/search-attributes")
            attributes = answer.json["customAttributes"]
            self.assertEqual(attributes["City"], "INDEXED_VALUE_TYPE_KEYWORD", answer)
            self.assertEqual(attributes["Total"], "INDEXED_VALUE_TYPE_DOUBLE", answer)
        answer = api.post(
            "/api/v1/namespaces/shop/workflows/order",
            {
                "workflowType": {"name": "Order"},
                "taskQueue": {"name": "orders"},
                "searchAttributes": {"indexedFields": {"City": "Bonn"}},
            },
        )
        self.assertEqual(answer.status, 200, answer)
        found = api.get("/api/v1/namespaces/shop/workflow-count?query=City%3D%27Bonn%27")
        self.assertEqual(found.json["count"], "1", found)

    def test_a_search_attribute_needs_a_type_that_there_is(self):
        start = ("server", "start-dev", "--port", "0", "--search-attribute")
        self.assert_fails(self.run_it(*start, "City"), USAGE, "NAME=TYPE")
        self.assert_fails(self.run_it(*start, "City=Town"), USAGE, "City", "KeywordList")
        self.assert_fails(self.run_it(*start, "RunId=Keyword"), USAGE, "RunId", "reserved")

    def test_dynamic_values_change_what_they_name(self):
        api = self.dev("--dynamic-config-value", "LIMIT.maxIdLength=10")
        self.start_order(api, "short")
        path = "/api/v1/namespaces/default/workflows/" + "long" * 5
        answer = api.post(path, {"workflowType": {"name": "T"}, "taskQueue": {"name": "q"}})
        self.assertEqual(answer.status, 400, answer)

    def test_a_dynamic_value_is_json_and_fits_its_key(self):
        start = ("server", "start-dev", "--port", "0", "--dynamic-config-value")
        self.assert_fails(self.run_it(*start, "x"), USAGE, "KEY=JSON")
        self.assert_fails(self.run_it(*start, "x=1s"), USAGE, "is not JSON", "quotes")
        self.assert_fails(self.run_it(*start, "limit.maxIDLength=0"), USAGE, "from 1 to 1000")

    def test_a_dynamic_value_without_effect_is_a_warning(self):
        process, _ = self.serve(
            "start-dev", "--port", "0", "--log-level", "warn",
            "--dynamic-config-value", "frontend.enableServerVersionCheck=false",
            "--dynamic-config-value", "system.enableNexus=true",
        )  # fmt: skip
        self.stop(process)
        warnings = process.stderr.read()
        self.assertIn("system.enableNexus", warnings)
        self.assertNotIn("enableServerVersionCheck", warnings)

    def test_a_port_that_is_taken_is_named(self):
        self.dev()
        taken = str(self.printed["port"])
        done = self.run_it("server", "start-dev", "--port", taken)
        self.assert_fails(done, UNAVAILABLE, f"can't set frontend port {taken}")
        for flag in ("--http-port", "--metrics-port"):
            done = self.run_it("server", "start-dev", "--port", "0", flag, taken)
            self.assert_fails(done, UNAVAILABLE, f"port {taken}", "in use")

    def test_it_takes_the_command_lines_of_launchers(self):
        """Those of the SDKs' test environments, with all that they may add."""
        process, _ = self.serve(
            "start-dev", "--port", "0", "--namespace", "default", "--ip", "127.0.0.1",
            "--log-format", "pretty", "--log-level", "warn", "--headless", "--ui-ip=127.0.0.1",
            "--ui-disable-news-fetch", "--output", "json", "--color=never", "--env", "x",
            "--dynamic-config-value", "frontend.enableServerVersionCheck=false",
            "--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=OFF",
        )  # fmt: skip
        self.stop(process)
        self.assertEqual(process.stderr.read(), "")

    def test_the_settings_are_shown_if_that_is_asked_for(self):
        process, _ = self.serve("start-dev", "--port", "0", "--log-config")
        self.stop(process)
        self.assertIn("log.level: error  # default", process.stderr.read())


class OverHttp(ServerTest):
    def test_a_workflow_is_started_seen_signalled_and_ended(self):
        api = self.dev()
        workflow = "/api/v1/namespaces/default/workflows/order"
        run = self.start_order(api, input=[{"sku": 7}, None], memo={"fields": {"who": "Ann"}})

        described = api.get(f"{workflow}?execution.runId={run}").json["workflowExecutionInfo"]
        self.assertEqual(described["status"], "WORKFLOW_EXECUTION_STATUS_RUNNING")
        self.assertEqual(described["memo"], {"fields": {"who": "Ann"}})
        answer = api.post(f"{workflow}/signal/add%2Fone", {"input": ["x"], "identity": "Ann"})
        self.assertEqual(answer.json["link"]["workflowEvent"]["runId"], run, answer)

        events = api.get("/namespaces/default/workflows/order/history").json["history"]["events"]
        started = events[0]["workflowExecutionStartedEventAttributes"]
        self.assertEqual(started["input"], [{"sku": 7}, None])
        signalled = events[-1]["workflowExecutionSignaledEventAttributes"]
        self.assertEqual(signalled["signalName"], "add/one")

        answer = api.post(f"{workflow}/terminate", {"reason": "enough"})
        self.assertEqual(answer.status, 200, answer)
        query = "query=WorkflowId%3D%27order%27%20AND%20ExecutionStatus%3D%27Terminated%27"
        listed = api.get(f"/api/v1/namespaces/default/workflows?{query}&pageSize=10").json
        self.assertEqual([each["execution"]["runId"] for each in listed["executions"]], [run])

    def test_an_id_may_need_percent_coding(self):
        api = self.dev()
        self.start_order(api, "a%2Fb%20c%3Fd%25")
        answer = api.get("/api/v1/namespaces/default/workflows/a%2Fb%20c%3Fd%25")
        execution = answer.json["workflowExecutionInfo"]["execution"]
        self.assertEqual(execution["workflowId"], "a/b c?d%")

    def test_payloads_are_in_full_for_those_who_ask(self):
        api = self.dev()
        self.start_order(api, input=[1])
        history = "/api/v1/namespaces/default/workflows/order/history"
        for answer in (
            api.get(history + "?noPayloadShorthand"),
            api.get(history, Accept="application/json+no-payload-shorthand"),
        ):
            started = answer.json["history"]["events"][0]
            payloads = started["workflowExecutionStartedEventAttributes"]["input"]["payloads"]
            self.assertEqual(payloads, [{"metadata": {"encoding": JSON_PLAIN}, "data": "MQ=="}])
        self.assertIn('\n  "history": {\n    "events": [\n', api.get(history + "?pretty").body)

    def test_refusals_have_a_status_and_a_detail(self):
        api = self.dev()
        run = self.start_order(api)
        start = "/api/v1/namespaces/default/workflows/order"
        request = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "orders"}}
        answer = api.post(start, {**request, "requestId": "another"})
        self.assertEqual(answer.status, 409, answer)
        self.assertEqual(answer.json["code"], 6)
        detail = answer.json["details"][0]
        self.assertIn("WorkflowExecutionAlreadyStartedFailure", detail["@type"])
        self.assertEqual(detail["runId"], run)
        self.assertEqual(api.get("/api/v1/namespaces/default/workflows/none").status, 404)
        self.assertEqual(api.get("/api/v1/namespaces/nowhere/workflows/none").status, 404)
        self.assertEqual(api.get("/api/v1/nothing").status, 404)
        self.assertEqual(api.post(start, {"workflowNames": 1}).status, 400)
        self.assertEqual(api.post(start, "x" * (4 << 20)).status, 400)
        too_much = str((4 << 20) + 1)  # Refused before it is sent.
        self.assertEqual(api.post(start, "x", Content_Length=too_much).status, 413)
        self.assertEqual(api.get("/api/v1/namespaces/default/schedules").status, 501)
        wrong = api("DELETE", start)
        self.assertEqual((wrong.status, wrong.headers["Allow"]), (405, "GET, HEAD, POST, OPTIONS"))
        self.assertEqual(api("OPTIONS", start).status, 204)
        head = api("HEAD", "/api/v1/system-info")
        self.assertEqual((head.status, head.body), (200, ""))
        self.assertGreater(int(head.headers["Content-Length"]), 10)

    def test_curl_is_a_client(self):
        self.dev()
        url = f"http://{self.printed['http']}/api/v1/system-info"
        done = subprocess.run(["curl", "-sS", url], capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(done.stdout)["serverVersion"], "1.32.0", done)

    def test_thirty_two_calls_may_wait_and_hold_up_no_other(self):
        api = self.dev()
        self.start_order(api)
        workflow = "/api/v1/namespaces/default/workflows/order"
        newest = api.get(f"{workflow}/history?waitNewEvent=true").json["nextPageToken"]
        wait = f"{workflow}/history?waitNewEvent=true&nextPageToken=" + newest.replace(
            "+", "%2B"
        ).replace("/", "%2F").replace("=", "%3D")
        with concurrent.futures.ThreadPoolExecutor(33) as pool:
            waiting = [pool.submit(api.get, wait) for _ in range(33)]
            first = next(concurrent.futures.as_completed(waiting))
            refused = first.result()  # The 33rd to come; the others wait.
            self.assertEqual(refused.status, 429, refused)
            self.assertEqual(refused.headers["X-Resource-Exhausted-Cause"], "ConcurrentLimit")
            self.assertEqual(api.post(f"{workflow}/terminate", {}).status, 200)
            statuses = [each.result().status for each in waiting]
        self.assertEqual(sorted(statuses), [200] * 32 + [429])

    def test_a_call_that_waits_is_answered_when_the_server_stops(self):
        api = self.dev()
        self.start_order(api)
        history = "/api/v1/namespaces/default/workflows/order/history?waitNewEvent=true"
        newest = api.get(history).json["nextPageToken"].replace("=", "%3D").replace("+", "%2B")
        waiting = api.begin("GET", f"{history}&nextPageToken={newest.replace('/', '%2F')}")
        metrics = Http(re.sub(r"http://|/metrics", "", self.printed["metrics"]))
        while "holdfast_server_long_http_calls 1" not in metrics.get("/metrics").body:
            self.assertIsNone(self.server.poll())
        self.stop(self.server)
        answer = Answer(waiting.getresponse())
        waiting.close()
        self.assertEqual(answer.status, 200, answer)
        self.assertIn("nextPageToken", answer.json)

    def test_web_pages_of_other_sites_may_not_call_it(self):
        api = self.dev()
        workflow = "/api/v1/namespaces/default/workflows/order"
        foreign = {"Host": "evil.example", "Origin": "http://evil.example"}
        self.assertEqual(api.post(workflow, {}, Origin="http://evil.example").status, 403)
        self.assertEqual(api.post(workflow, {}, **foreign).status, 403)
        self.stop(self.server)
        named = 'frontend.httpAllowedHosts=["temporal.internal"]'
        api = self.dev("--dynamic-config-value", named)
        self.assertEqual(api.get("/api/v1/system-info", Host="temporal.internal").status, 200)
        self.assertEqual(api.get("/api/v1/system-info", Host="other.internal").status, 403)


class Metrics(ServerTest):
    def test_calls_and_outcomes_are_counted(self):
        api = self.dev()
        self.start_order(api)
        api.post("/api/v1/namespaces/default/workflows/order/terminate", {})
        api.get("/api/v1/namespaces/default/workflows/none")
        metrics = Http(re.sub(r"http://|/metrics", "", self.printed["metrics"]))
        text = metrics.get("/metrics").body
        start = 'namespace="default",operation="StartWorkflowExecution",service_name="frontend"'
        self.assertIn(f"service_requests{{{start}}} 1\n", text)
        self.assertIn("service_latency_bucket{", text)
        self.assertIn('workflow_terminate{namespace="default"} 1\n', text)
        self.assertRegex(text, r'service_error_with_type\{error_type="serviceerror_NotFound"')
        self.assertRegex(text, r"holdfast_server_run_commits_total 2\n")
        self.assertRegex(text, r"holdfast_sql_\w+")

    def test_health_is_on_both_ports(self):
        api = self.dev()
        metrics = Http(re.sub(r"http://|/metrics", "", self.printed["metrics"]))
        for port in (api, metrics):
            self.assertEqual((port.get("/healthz").status, port.get("/readyz").status), (200, 200))

    def test_a_server_whose_database_another_one_took_is_not_ready(self):
        file = str(self.folder / "server.db")
        first = self.dev("--db-filename", file)
        self.dev("--db-filename", file)
        first.post(  # It finds out at its next write.
            "/api/v1/namespaces/default/workflows/w",
            {"workflowType": {"name": "T"}, "taskQueue": {"name": "q"}},
        )
        answer = first.get("/readyz")
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("another process", answer.body)


class Run(ServerTest):
    def write(self, text):
        (self.folder / "server.yaml").write_text(text)
        return ("--config", "server.yaml")

    def test_it_serves_what_its_file_says(self):
        config = self.write(
            "db: sqlite:server.db?create=1\n"
            "server:\n"
            "  address: 127.0.0.1:0\n"
            "  http_address: 127.0.0.1:0\n"
            "  namespaces:\n    shop: {retention: 72h}\n"
            "  search_attributes:\n    City: {type: Keyword}\n"
            "metrics: {address: 127.0.0.1:0}\n"
            "log: {level: info, format: json}\n"
        )
        process, printed = self.serve("run", *config)
        api = Http(printed["http"])
        described = api.get("/api/v1/namespaces/shop").json
        self.assertEqual(described["config"]["workflowExecutionRetentionTtl"], "259200s")
        attributes = api.get("/api/v1/namespaces/shop/search-attributes").json
        self.assertIn("City", attributes["customAttributes"])
        self.assertIn("/metrics", printed["metrics"])
        self.stop(process)
        self.assertTrue((self.folder / "server.db").exists())

    def test_what_is_wrong_with_the_file_is_said_with_its_place(self):
        self.assert_fails(self.run_it("server", "run"), USAGE, "--config FILE")
        for text, *words in (
            ("server: {adress: x}", "server.yaml:1", "server.adress"),
            ("db: sqlite:x.db\nserver:\n  address: nowhere", "server.address", "host:port"),
            ("server: {address: 127.0.0.1:0}", "--db"),
            ("server: {namespaces: {shop: {retention: 1m}}}", "retention", "1h"),
            ("db: sqlite:x.db\nserver: {tls: {certificate_file: c}}", "key_file"),
            (
                "server: {search_attributes: {City: {type: Town}}}",
                "server.search_attributes.City.type",
            ),
        ):
            self.assert_fails(self.run_it("server", "run", *self.write(text)), USAGE, *words)

    def test_certificates_that_cannot_be_read_are_named(self):
        tls = "db: sqlite:x.db\nserver: {tls: {certificate_file: none.pem, key_file: key.pem}}"
        done = self.run_it("server", "run", *self.write(tls))
        self.assert_fails(done, UNAVAILABLE, "server.tls.certificate_file", "none.pem")
        (self.folder / "none.pem").write_text("not a certificate")
        done = self.run_it("server", "run", *self.write(tls))
        self.assert_fails(done, USAGE, "none.pem", "PEM")

    def test_http_without_tls_stays_on_this_machine_beside_tls(self):
        for name in ("c.pem", "k.pem"):
            (self.folder / name).write_text("-----BEGIN X-----\n")
        config = self.write(
            "db: sqlite:x.db\n"
            "server: {http_address: ':7243', tls: {certificate_file: c.pem, key_file: k.pem}}"
        )
        done = self.run_it("server", "run", *config)
        self.assert_fails(done, USAGE, "server.http_address", "proxy")


class Check(ServerTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "server.db"
        api = self.dev("--db-filename", str(self.file))
        self.run_id = self.start_order(api)
        self.start_order(api, "other")
        self.stop(self.server)
        self.db = ("--db", f"sqlite:{self.file}")

    def test_what_a_server_stored_is_right(self):
        done = self.run_it("server", "check", *self.db)
        self.assertEqual((done.code, done.out), (DONE, "2 runs with 4 events: all right\n"), done)
        self.assertEqual(
            self.run_it("server", "check", *self.db, "--json").json,
            {"runs": 2, "events": 4, "wrong_runs": 0},
        )

    def test_a_run_that_is_not_right_is_named_with_its_problem(self):
        with sqlite3.connect(self.file) as db:
            db.execute("UPDATE executions_visibility SET status = 2 WHERE workflow_id = 'order'")
        db.close()
        done = self.run_it("server", "check", *self.db)
        self.assertEqual(done.code, REFUSED, done)
        self.assertIn(f"default order {self.run_id}: lists say", done.out)
        self.assertIn("2 runs with 4 events: 1 not right", done.out)
        lines = self.run_it("server", "check", *self.db, "--json").out.splitlines()
        self.assertEqual(json.loads(lines[-1])["wrong_runs"], 1)
        self.assertTrue(json.loads(lines[0])["problems"])

    def test_a_database_without_a_server_is_refused(self):
        done = self.run_it("server", "check", "--db", "sqlite:new.db?create=1")
        self.assert_fails(done, REFUSED, "schema")
        self.assert_fails(self.run_it("server", "check"), USAGE, "--db")


if __name__ == "__main__":
    unittest.main(verbosity=2)
