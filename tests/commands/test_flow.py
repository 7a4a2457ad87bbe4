"""holdfast flow on every database: start, watch, talk to, end, keep and remove workflows.

The worker is the demo's, which knows the workflow shop.checkout.
"""

import contextlib
import json
import os
import pty
import select
import signal
import sqlite3
import unittest
import uuid

import binary
from binary import DONE, REFUSED, UNAVAILABLE, USAGE

VERBS_ABOUT_ONE = (
    ["show", "ghost"],
    ["history", "ghost"],
    ["tail", "ghost"],
    ["signal", "ghost", "approval", "true"],
    ["query", "ghost", "progress"],
    ["update", "ghost", "price"],
    ["cancel", "ghost"],
    ["terminate", "ghost"],
    ["fail", "ghost"],
    ["suspend", "ghost"],
    ["resume", "ghost"],
    ["reset", "ghost", "--to-start"],
    ["export", "ghost"],
    ["delete", "ghost"],
    ["prune", "ghost"],
)


class FlowTest(binary.CommandTest):
    def setUp(self):
        super().setUp()
        self.url = self.database()
        self.assertEqual(self.run_it("schema", "apply", "--db", self.url).code, DONE)

    def database(self):
        return "sqlite:x.db"

    def flow(self, *arguments):
        return self.run_it("flow", *arguments, "--db", self.url)

    def done(self, *arguments):
        done = self.flow(*arguments, "--json")
        self.assertEqual(done.code, DONE, done)
        return done.json

    def start_order(self, name, *more, courier_fails=False):
        order = {
            "run": str(uuid.uuid4()),
            "id": name,
            "cents": 100,
            "courier_fails": courier_fails,
        }
        return self.done(
            "start", "shop.checkout", "--id", name, "--input", json.dumps([order]), *more
        )

    def start_worker(self):
        return self.start("demo-worker", "--number", "1", env={"HOLDFAST_DB": self.url})

    def tail(self, name, *more):
        return self.start("flow", "tail", name, "--db", self.url, *more, bufsize=1)

    def tail_until(self, name, kind):
        """The events of an instance up to the first of a kind."""
        process = self.tail(name, "--json")
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            if events[-1]["kind"] == kind:
                return events
        self.fail(f"{name} ended without {kind}: {process.stderr.read()} {events}")

    def ids(self, *more):
        return [one["id"] for one in self.done("list", *more)["instances"]]

    def tail_to_the_end(self, name):
        out, err = self.tail(name, "--json").communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(err, "")
        return [json.loads(line) for line in out.splitlines()]


class OnEveryDatabase:
    """The same stories on a file and on a server."""

    def test_an_order_from_its_start_to_its_removal(self):
        self.assertEqual(
            self.start_order("ann"),
            {
                "id": "ann",
                "workflow": "shop.checkout",
                "created": True,
            },
        )
        self.assertEqual(self.done("show", "ann")["status"], "pending")
        self.start_worker()
        self.tail_until("ann", "message_awaited")
        shown = self.done("show", "ann")
        self.assertEqual(shown["custom_status"], "waiting for approval")
        self.assertEqual(
            {step["name"] for step in shown["steps"] if step["fate"] == "open"},
            {"approval", "10 min 0 s"},
        )
        self.done("signal", "ann", "approval", "true")
        events = self.tail_to_the_end("ann")
        self.assertEqual(events[-1]["kind"], "workflow_completed")
        self.assertEqual([event["id"] for event in events], list(range(1, len(events) + 1)))
        self.assertEqual(self.done("history", "ann")["events"], events)
        shown = self.done("show", "ann")
        self.assertEqual((shown["status"], shown["output"]), ("completed", "parcel of ann"))
        fates = {step["name"]: step["fate"] for step in shown["steps"]}
        self.assertEqual(fates["shop.charge"], "done")
        self.assertEqual(fates["10 min 0 s"], "cancelled")
        stats = self.done("stats")
        self.assertEqual((stats["instances"], stats["completed"]), (1, 1))
        self.assertEqual(stats["events"], len(events))
        self.assertEqual(self.done("delete", "ann")["instances"], 1)
        self.assertEqual(self.done("list")["instances"], [])

    def test_a_failed_step_and_its_compensation_are_drawn(self):
        self.start_order("ben", courier_fails=True)
        self.done("signal", "ben", "approval", "true")
        self.start_worker()
        self.assertEqual(self.tail_to_the_end("ben")[-1]["kind"], "workflow_failed")
        done = self.flow("show", "ben")
        self.assertEqual(done.code, DONE, done)
        self.assertRegex(done.out, r"\Aben  failed\nworkflow +shop\.checkout 1\.0\.0\n")
        self.assertRegex(done.out, r"(?m)^failure +NotShipped: NoCourier")
        self.assertRegex(done.out, r"(?m)^ +\+[\d.]+ m?s  activity +shop\.ship +=+ .* ! NoCourier")
        self.assertRegex(done.out, r"(?m)^ +\+[\d.]+ m?s  timer +10 min 0 s +-+ .* x dropped$")
        self.assertRegex(done.out, r"(?m)^ +\+[\d.]+ m?s  activity +shop\.refund +=+ ")
        self.assertNotIn("\x1b", done.out, "colours are for terminals")

    def test_suspend_resume_cancel(self):
        self.start_order("cat")
        self.start_worker()
        self.tail_until("cat", "message_awaited")
        self.done("suspend", "cat", "--reason", "audit")
        self.tail_until("cat", "workflow_suspended")
        self.assertTrue(self.done("show", "cat")["suspended"])
        self.assertEqual(self.ids("--status", "suspended"), ["cat"])
        self.assertEqual(self.ids("--where", "status=suspended and prefix=c"), ["cat"])
        self.assertEqual(self.ids("--where", "status=suspended and prefix=d"), [])
        self.assertIn("running, suspended", self.flow("list").out)
        for verb in ("query", "update"):
            asked = self.flow(verb, "cat", "progress")
            self.assert_fails(asked, REFUSED, "suspended", "holdfast flow resume cat")
        self.done("resume", "cat")
        self.done("cancel", "cat", "--reason", "changed her mind")
        self.tail_to_the_end("cat")
        shown = self.done("show", "cat")
        self.assertEqual(shown["status"], "cancelled")
        self.assertIn("changed her mind", shown["failure"]["message"])
        for verb in ("cancel", "terminate", "fail", "suspend", "resume"):
            self.assert_fails(self.flow(verb, "cat"), REFUSED, "cat", "too late")
        self.assert_fails(self.flow("signal", "cat", "approval", "true"), REFUSED, "too late")

    def test_terminate_needs_no_code_of_the_workflow(self):
        self.start_order("dan")
        self.start_worker()
        self.tail_until("dan", "message_awaited")
        self.done("suspend", "dan")
        self.tail_until("dan", "workflow_suspended")
        self.done("terminate", "dan", "--reason", "enough")
        self.tail_to_the_end("dan")
        self.assertIn("enough", self.done("show", "dan")["failure"]["message"])

    def test_an_operator_fails_what_is_open(self):
        self.start_order("fin")
        self.start_order("bulk-f")
        self.start_worker()
        self.tail_until("fin", "message_awaited")
        self.done("fail", "fin", "--reason", "void")
        self.tail_to_the_end("fin")
        shown = self.done("show", "fin")
        self.assertEqual(shown["status"], "failed")
        self.assertEqual(shown["failure"]["type"], "FailedByOperator")
        self.assertIn("void", shown["failure"]["message"])
        bulk = self.done("fail", "--where", "prefix=bulk-f", "--yes")
        self.assertEqual((bulk["verb"], bulk["done"]), ("fail", 1))
        self.tail_to_the_end("bulk-f")
        self.assertEqual(self.done("show", "bulk-f")["status"], "failed")

    def test_listing_by_state_name_prefix_and_page(self):
        for name in ("a-1", "a-2", "b-1"):
            self.start_order(name)
        self.done("start", "other", "--id", "a-3")
        everything = [one["id"] for one in self.done("list")["instances"]]
        self.assertEqual(everything, ["a-3", "b-1", "a-2", "a-1"], "newest first")
        ids = lambda *how: {one["id"] for one in self.done("list", *how)["instances"]}
        self.assertEqual(ids("--prefix", "a-"), {"a-1", "a-2", "a-3"})
        self.assertEqual(ids("--prefix", "a-", "--workflow", "other"), {"a-3"})
        self.assertEqual(ids("--status", "completed"), set())
        self.assertEqual(ids("--status", "pending"), set(everything))
        self.assertEqual(ids("--younger-than", "1h"), set(everything))
        self.assertEqual(ids("--older-than", "1h"), set())
        self.done("start", "other", "--id", "c-1", "--version", "2.1.0")
        self.assertEqual(ids("--version", "2.1.0"), {"c-1"})
        self.assertEqual(ids("--attribute", "city=\"Ulm\"", "--attribute", "size=7"), set())
        self.done("delete", "c-1", "--force")
        pages, next_page = [], ""
        while True:
            page = self.done("list", "--limit", "3", *(["--page", next_page] if next_page else []))
            pages.append([one["id"] for one in page["instances"]])
            next_page = page["next"]
            if not next_page:
                break
        self.assertEqual(pages, [everything[:3], everything[3:]])

    def test_a_second_start_does_what_it_was_told(self):
        self.start_order("eve")
        self.assert_fails(self.flow("start", "shop.checkout", "--id", "eve"), REFUSED, "eve")
        self.assertFalse(self.start_order("eve", "--on-duplicate", "use-existing")["created"])
        self.assertTrue(self.start_order("eve", "--on-duplicate", "restart")["created"])

    def test_a_history_travels_as_a_file(self):
        self.start_order("fay")
        self.done("signal", "fay", "approval", "false")
        self.start_worker()
        events = self.tail_to_the_end("fay")
        self.done("export", "fay", "fay.jsonl")
        lines = (self.folder / "fay.jsonl").read_text()
        head, *rest = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual((head["export"], head["instance"], head["execution"]), (1, "fay", 1))
        self.assertEqual(rest, events)
        self.assertEqual(self.flow("export", "fay").out, lines)
        self.assertEqual(self.done("import", "fay-again", "fay.jsonl")["status"], "failed")
        again = self.flow("export", "fay-again").out
        self.assertEqual(again.splitlines()[1:], lines.splitlines()[1:])
        self.assert_fails(self.flow("import", "fay", "fay.jsonl"), REFUSED, "fay", "already")

    def test_a_failed_order_is_taken_back_and_goes_on(self):
        self.start_order("kay")
        self.done("signal", "kay", "approval", "false")
        self.start_worker()
        self.assertEqual(self.tail_to_the_end("kay")[-1]["kind"], "workflow_failed")
        awaited = self.done("history", "kay")["events"]
        point = next(event["id"] for event in awaited if event["kind"] == "message_awaited")
        self.assert_fails(self.flow("reset", "kay"), USAGE, "--before-failure", "--to-start")
        self.assert_fails(self.flow("reset", "kay", "--to", "999"), USAGE, "999")
        self.assertEqual(
            self.done("reset", "kay", "--to", str(point)), {"id": "kay", "execution": 2}
        )
        # The answer that had come is not forgotten, so it ends as before.
        self.assertEqual(self.tail_to_the_end("kay")[-1]["kind"], "workflow_failed")
        shown = self.done("show", "kay")
        self.assertEqual(
            [(one["execution"], one["status"]) for one in shown["executions"]],
            [(1, "reset"), (2, "failed")],
        )
        first = self.done("show", "kay", "--execution", "1")
        self.assertEqual(
            (first["execution"], first["status"], first["current_execution"]), (1, "reset", 2)
        )
        self.assertEqual(first["events"], len(awaited))
        text = self.flow("show", "kay", "--execution", "1").out
        self.assertRegex(text, r"\Akay  reset\n")
        self.assertRegex(text, r"(?m)^execution +1 of 2;")
        for shown in (text, self.flow("show", "kay").out):
            self.assertNotIn("waits for", shown)
        self.assertIn("execution 1 reset to event", self.flow("history", "kay").out)
        self.assertEqual(self.done("history", "kay", "--execution", "1")["events"], awaited)
        self.assertEqual(self.done("prune", "--older-than", "1h")["executions"], 0)
        for verb in ("show", "history", "export"):
            with self.subTest(verb):
                refused = self.flow(verb, "kay", "--execution", "7")
                self.assert_fails(refused, REFUSED, "'kay'", "no execution 7")
        self.assertEqual(self.done("prune", "--older-than", "0")["executions"], 1)
        self.assertEqual([one["execution"] for one in self.done("show", "kay")["executions"]], [2])

    def test_a_tail_tells_by_its_exit_code_how_the_workflow_ended(self):
        self.start_order("tom")
        self.start_order("tim")
        self.done("signal", "tom", "approval", "false")
        self.done("signal", "tim", "approval", "true")
        self.start_worker()
        for name, code in (("tom", REFUSED), ("tim", DONE)):
            process = self.tail(name)
            process.communicate(timeout=binary.SECONDS_MAX)
            self.assertEqual(process.returncode, code, name)

    def test_a_reset_goes_to_the_cause_of_the_end(self):
        self.start_order("una", courier_fails=True)
        self.done("signal", "una", "approval", "true")
        self.start_worker()
        self.tail_to_the_end("una")
        plan = self.done("reset", "una", "--before-failure", "--dry-run")
        self.assertEqual((plan["dry_run"], plan["execution"]), (True, 2))
        self.assertEqual(plan["cause"]["kind"], "activity_failed")
        self.assertEqual([step["name"] for step in plan["again"]], ["shop.ship"])
        self.assertIn("shop.charge", [step["name"] for step in plan["kept"]])
        self.assertIn("shop.refund", [step["name"] for step in plan["undone"]])
        text = self.flow("reset", "una", "--before-failure", "--dry-run").out
        self.assertRegex(text, r"(?m)^runs again +event \d+ +activity shop\.ship, open$")
        self.assertEqual(self.done("show", "una")["execution"], 1, "nothing was done")
        self.done("reset", "una", "--before-failure")
        self.tail_to_the_end("una")
        names = [step["name"] for step in self.done("show", "una")["steps"]]
        self.assertEqual(names.count("shop.charge"), 1)

    def test_many_are_steered_by_a_filter(self):
        for name in ("bulk-1", "bulk-2", "bulk-3", "other"):
            self.start_order(name)
        where = ["--where", "prefix=bulk- and workflow=shop.checkout"]
        self.assert_fails(self.flow("cancel", *where), USAGE, "3 workflows", "--yes")
        dry = self.done("cancel", *where, "--dry-run")
        self.assertEqual((dry["matched"], dry["first"]), (3, ["bulk-3", "bulk-2", "bulk-1"]))
        sent = self.done("signal", *where, "approval", "false", "--yes")
        self.assertEqual((sent["matched"], sent["done"], sent["next"]), (3, 3, ""))
        self.start_worker()
        for name in ("bulk-1", "bulk-2", "bulk-3"):
            self.assertEqual(self.tail_to_the_end(name)[-1]["failure"]["type"], "Declined")
        self.assertEqual(self.done("cancel", *where, "--yes")["matched"], 0)
        failed = ["--where", "status=failed and prefix=bulk-"]
        reset = self.done("reset", *failed, "--to-start", "--yes")
        self.assertEqual((reset["done"], reset["failed"]), (3, 0))
        self.assert_fails(self.flow("reset", *failed, "--to", "3"), USAGE, "--to", "--where")
        self.assertEqual(self.done("terminate", "--where", "prefix=other", "--yes")["done"], 1)
        self.tail_to_the_end("other")
        self.assertEqual(self.done("show", "other")["status"], "cancelled")

    def test_a_schedule_is_shown_and_can_be_ended(self):
        self.start_order("lea", "--cron", "0 3 * * *")
        self.start_worker()
        shown = self.done("show", "lea")
        self.assertEqual((shown["status"], shown["cron"]), ("pending", "0 3 * * *"))
        self.assertEqual(shown["due_ms"] // 1000 % 86_400, 3 * 3600)
        self.assertRegex(self.flow("show", "lea").out, r"(?m)^due +\d{4}-\d\d-\d\d 03:00:00 UTC$")
        self.done("cancel", "lea")
        self.tail_to_the_end("lea")
        self.assertEqual(self.done("show", "lea")["status"], "cancelled")

    def test_what_does_not_exist_is_refused_by_every_verb(self):
        for verb in VERBS_ABOUT_ONE:
            with self.subTest(verb):
                self.assert_fails(self.flow(*verb), REFUSED, "'ghost'", "holdfast flow list")

    def test_an_early_message_waits_for_its_workflow(self):
        self.assertTrue(self.done("signal", "gil", "approval", "false", "--early")["early"])
        self.start_order("gil")
        self.start_worker()
        self.assertEqual(self.tail_to_the_end("gil")[-1]["failure"]["type"], "Declined")

    def test_old_ones_are_removed_together(self):
        self.start_order("hal")
        self.start_order("ida")
        self.done("signal", "hal", "approval", "false")
        self.start_worker()
        self.tail_to_the_end("hal")
        self.assertEqual(self.done("delete", "--older-than", "1h")["instances"], 0)
        self.assertEqual(self.done("delete", "--older-than", "0")["instances"], 1)
        self.assert_fails(self.flow("delete", "ida"), REFUSED, "has not ended", "force")
        self.assertEqual(self.done("delete", "ida", "--force")["instances"], 1)


class OnSqlite(OnEveryDatabase, FlowTest):
    def test_an_attribute_is_found_however_it_is_spelt(self):
        self.start_order("a")
        with contextlib.closing(sqlite3.connect(self.folder / "x.db")) as db, db:
            for name, value in (("size", "7"), ("city", '"Ulm"'), ("share", "0.5")):
                db.execute("INSERT INTO flow_attributes VALUES ('a', ?, ?)", (name, value))
        for spelt in ("size=7", "size= 7.0", "size=70e-1", 'city="\\u0055lm"', "share=5.0e-1"):
            self.assertEqual(len(self.done("list", "--attribute", spelt)["instances"]), 1, spelt)
        for other in ("size=8", 'size="7"', 'city="ulm"', "size=7e999"):
            self.assertEqual(self.done("list", "--attribute", other)["instances"], [], other)


class OnPostgres(OnEveryDatabase, FlowTest):
    def database(self):
        return self.postgres()


class Refusals(FlowTest):
    def test_what_is_not_understood(self):
        for arguments, words in (
            (["start", "w", "--input", "7"], ["array", "[7]"]),
            (["start", "w", "--input", "[7"], ["JSON"]),
            (["start", "w", "--delay", "soon"], ["--delay", "soon"]),
            (["start", "w", "--on-duplicate", "panic"], ["use-existing"]),
            (["start", "w", "--version", "latest"], ["latest", "1.2.3"]),
            (["start", "w", "--cron", "sometimes"], ["sometimes", "@daily"]),
            (["start", "w", "--cron", "0 0 30 2 *"], ["never"]),
            (["list", "--attribute", "city=Ulm"], ["NAME=JSON", "quotes"]),
            (["list", "--younger-than", "soon"], ["--younger-than"]),
            (["list", "--status", "tired"], ["running", "failed"]),
            (["list", "--limit", "0"], []),
            (["list", "--where", "tired"], ["NAME=VALUE", "status=failed"]),
            (["list", "--where", "mood=good"], ["mood=good", "attribute.NAME"]),
            (["list", "--where", "status="], ["no value"]),
            (["list", "--where", "status=failed and status=running"], ["twice"]),
            (["list", "--where", "status=failed", "--status", "failed"], ["status", "once"]),
            (["cancel"], ["id", "--where"]),
            (["cancel", "x", "--where", "status=running"], ["--where"]),
            (["signal", "x"], ["channel"]),
            (["terminate", "--where", "status=tired"], ["running", "suspended"]),
            (["list", "--page", "nonsense"], ["page"]),
            (["signal", "x", "c", "yes"], ["JSON", "quote a string"]),
            (["delete"], ["--older-than"]),
            (["delete", "x", "--older-than", "1h"], ["--older-than"]),
            (["prune"], ["--older-than"]),
            (["prune", "--older-than", "1h", "--keep", "3"], ["--keep"]),
            (["prune", "--older-than", "soon"], ["--older-than", "soon"]),
            (["start", "w", "--id", b"a\xffb"], ["id", "UTF-8"]),
            (["start", "w", "--id", ""], ["--id", "empty"]),
            (["start", ""], ["name of a workflow"]),
            (["delete", "", "--older-than", "1h"], ["empty"]),
            (["prune", "", "--older-than", "1h"], ["empty"]),
            (["signal", "x", "", "1", "--early"], ["channel"]),
            (["signal", "x", "c" * 257, "1", "--early"], ["channel", "257"]),
            (["show", "x", "--execution", "-1"], ["--execution"]),
            (["export", "x", "--execution", "0"], ["--execution"]),
            (["reset", "x", "--to", "-1"], ["--to"]),
            (["show"], []),
            (["shwo"], ["did you mean show?"]),
        ):
            with self.subTest(arguments):
                self.assert_fails(self.flow(*arguments), USAGE, *words)
        self.assertEqual(self.done("stats")["instances"], 0)

    def test_what_has_not_begun_is_not_exported(self):
        self.start_order("new")
        self.assert_fails(self.flow("export", "new"), REFUSED, "'new'", "not begun")

    def test_replay_names_the_way_to_do_it(self):
        self.assert_fails(self.flow("replay", "x.jsonl"), USAGE, "flow::command_line", "replay")

    def test_a_question_that_nobody_answers_ends(self):
        self.start_order("jim")
        self.assert_fails(
            self.flow("query", "jim", "progress", "--timeout", "50ms"), UNAVAILABLE, "worker"
        )

    def test_a_file_that_cannot_be_imported(self):
        self.assert_fails(self.flow("import", "x", "no.jsonl"), REFUSED, "no.jsonl")
        self.assert_fails(self.flow("import", "x", "."), REFUSED, "cannot read '.'")
        (self.folder / "bad.jsonl").write_text('{"id":1}\n')
        self.assert_fails(self.flow("import", "x", "bad.jsonl"), USAGE)
        self.assertEqual(self.done("stats")["instances"], 0)


class WithoutTables(binary.CommandTest):
    def test_a_missing_file_is_not_created(self):
        self.assert_fails(self.run_it("flow", "list", "--db", "sqlite:x.db"), REFUSED, "x.db")
        self.assert_left_behind()

    def test_tables_are_not_created_by_the_way(self):
        for url in ("sqlite:x.db", self.postgres()):
            self.run_it("schema", "apply", "--part", "demo", "--db", url)
            self.assert_fails(
                self.run_it("flow", "list", "--db", url), REFUSED, "holdfast schema apply"
            )
            status = self.run_it("schema", "status", "--part", "flow", "--json", "--db", url).json
            self.assertEqual(status["parts"][0]["version"], 0)


class WhenTheServerCrashes(FlowTest):
    def database(self):
        self.server = self.enterContext(binary.PasswordServer())
        return self.server.url("right")

    def test_a_worker_and_whoever_watches_go_on_when_it_is_back(self):
        self.start_order("nan")
        self.start_worker()
        watching = self.tail("nan", "--json")
        kinds = []
        while "message_awaited" not in kinds:
            kinds.append(json.loads(watching.stdout.readline())["kind"])
        self.server.stop()
        self.assert_fails(self.flow("show", "nan"), UNAVAILABLE, "check that the server runs")
        self.server.start()
        self.done("signal", "nan", "approval", "true")
        kinds += [json.loads(line)["kind"] for line in watching.stdout]
        self.assertEqual((watching.wait(), watching.stderr.read()), (DONE, ""))
        events = self.done("history", "nan")["events"]
        self.assertEqual(kinds, [event["kind"] for event in events], "none missing, none twice")
        self.assertEqual(kinds[-1], "workflow_completed")


class ForPeople(FlowTest):
    def test_tables(self):
        self.start_order("kim")
        self.assertRegex(
            self.flow("list").out,
            r"\Aid +workflow +status +created +took +about\n"
            r"kim +shop\.checkout +pending +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +[\d.]+ m?s\n\Z",
        )
        self.assertRegex(self.flow("stats").out, r"\Awhat +count\ninstances +1\npending +1\n")
        self.assertEqual(self.flow("cancel", "kim").out, "requested cancellation of kim\n")

    def test_tail_ends_in_order_at_an_interrupt(self):
        self.start_order("leo")
        self.start_worker()
        process = self.tail("leo")
        for line in process.stdout:
            if "message_awaited" in line:
                break
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual((process.returncode, err), (130, ""))

    def test_on_a_terminal_the_timeline_has_colours(self):
        self.start_order("may")
        self.done("signal", "may", "approval", "true")
        self.start_worker()
        self.tail_to_the_end("may")
        main, terminal = pty.openpty()
        self.addCleanup(os.close, main)
        child = os.fork()
        if child == 0:
            os.dup2(terminal, 1)
            os.chdir(self.folder)
            os.execve(
                binary.BINARY,
                ["holdfast", "flow", "show", "may", "--db", self.url],
                binary.clean_environment(),
            )
        os.close(terminal)
        text = b""
        while select.select([main], [], [], binary.SECONDS_MAX)[0]:
            try:
                piece = os.read(main, 65536)
            except OSError:  # The other end is closed.
                break
            if not piece:
                break
            text += piece
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertIn("\x1b[32m", text.decode())
        self.assertIn("━", text.decode())


if __name__ == "__main__":
    unittest.main()
