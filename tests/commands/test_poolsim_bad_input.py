"""holdfast poolsim: whatever is wrong with a scenario, the answer names file, line and key."""

import unittest

import binary
from binary import DONE, USAGE

ONE = "services: [{name: a}]\n"

# What is written, and where it is told to be wrong: line, column and key.
BAD = {
    "empty": ("", "1:1: services"),
    "only_comment": ("# nothing\n", "1:1: services"),
    "null": ("~\n", "1:1: services"),
    "scalar": ("hello\n", "1:1: services"),
    "list": ("- a\n- b\n", "1:1: services"),
    "no_services": ("duration: 1m\n", "1:1: services"),
    "services_null": ("duration: 1m\nservices:\n", "2:1: services"),
    "services_empty": ("services: []\n", "1:11: services"),
    "services_map": ("services: {name: a}\n", "1:11: services"),
    "services_scalar": ("services: 3\n", "1:11: services"),
    "service_scalar": ("services: [a]\n", "1:12: services[0]"),
    "service_null": ("services:\n  -\n", "3:1: services"),
    "service_no_name": ("services:\n  - targetReady: 3\n", "2:5: services[0].name"),
    "service_name_list": ("services:\n  - name: [a]\n", "2:11: services[0].name"),
    "service_name_empty": ("services:\n  - name: ''\n", "2:11: services[0].name"),
    "dup_service": ("services:\n  - name: a\n  - name: a\n", "3:11: services[1].name"),
    "dup_key": ("duration: 1m\nduration: 2m\n" + ONE, "2:1: duration: set twice"),
    "dup_nested": (
        "services:\n  - name: a\n    jitter: 1s\n    jitter: 2s\n",
        "4:5: services[0].jitter: set twice",
    ),
    "unknown_top": ("durration: 1m\n" + ONE, "1:12: durration"),
    "unknown_service": (
        "services:\n  - name: a\n    tragetReady: 3\n",
        "3:18: services[0].tragetReady",
    ),
    "unknown_workload": (
        "services:\n  - name: a\n    workload: {enbaled: true}\n",
        "3:25: services[0].workload.enbaled",
    ),
    "neg_target": (
        "services:\n  - name: a\n    targetReady: -1\n",
        "3:18: services[0].targetReady",
    ),
    "zero_target": (
        "services:\n  - name: a\n    targetReady: 0\n",
        "3:18: services[0].targetReady",
    ),
    "frac_target": (
        "services:\n  - name: a\n    targetReady: 1.5\n",
        "3:18: services[0].targetReady",
    ),
    "huge_target": (
        "services:\n  - name: a\n    targetReady: 99999999999999999999\n",
        "3:18: services[0].targetReady",
    ),
    "big_target": (
        "services:\n  - name: a\n    targetReady: 2000000000\n",
        "3:18: services[0].targetReady",
    ),
    "text_target": (
        "services:\n  - name: a\n    targetReady: many\n",
        "3:18: services[0].targetReady",
    ),
    "hex_target": (
        "services:\n  - name: a\n    targetReady: 0x10\n",
        "3:18: services[0].targetReady",
    ),
    "plus_target": (
        "services:\n  - name: a\n    targetReady: +5\n",
        "3:18: services[0].targetReady",
    ),
    "nan": ("cluster: {rate: .nan}\n" + ONE, "1:17: cluster.rate"),
    "nan2": ("cluster: {rate: nan}\n" + ONE, "1:17: cluster.rate"),
    "inf": ("cluster: {rate: inf}\n" + ONE, "1:17: cluster.rate"),
    "neg_rate": ("cluster: {rate: -1}\n" + ONE, "1:17: cluster.rate"),
    "zero_rate": ("cluster: {rate: 0}\n" + ONE, "1:17: cluster.rate"),
    "dur_unit": ("duration: 10 parsecs\n" + ONE, "1:11: duration"),
    "dur_bare": ("duration: 60\n" + ONE, "1:11: duration"),
    "dur_neg": ("duration: -5m\n" + ONE, "1:11: duration"),
    "dur_zero": ("duration: 0s\n" + ONE, "1:11: duration"),
    "dur_long": ("duration: 1000000h\n" + ONE, "1:11: duration"),
    "dur_over": ("duration: 99999999999999d\n" + ONE, "1:11: duration"),
    "dur_list": ("duration: [1m]\n" + ONE, "1:11: duration"),
    "dur_map": ("duration: {a: 1}\n" + ONE, "1:11: duration"),
    "dur_null": ("duration:\nseed: 3\n" + ONE, "1:1: duration"),
    "seed_neg": ("seed: -1\n" + ONE, "1:7: seed"),
    "seed_over": ("seed: 18446744073709551616\n" + ONE, "1:7: seed"),
    "seed_float": ("seed: 1e3\n" + ONE, "1:7: seed"),
    "sample_zero": ("sampleEvery: 0s\n" + ONE, "1:14: sampleEvery"),
    "sample_tiny": ("sampleEvery: 1ns\n" + ONE, "1:14: sampleEvery"),
    "sample_long": ("sampleEvery: 2h\n" + ONE, "1:14: sampleEvery"),
    "limiter_zero": ("limiterPerSec: 0\n" + ONE, "1:16: limiterPerSec"),
    "limiter_text": ("limiterPerSec: fast\n" + ONE, "1:16: limiterPerSec"),
    "bool": ("assertZeroEmptyEvents: yes\n" + ONE, "1:24: assertZeroEmptyEvents"),
    "bool_num": ("assertZeroEmptyEvents: 1\n" + ONE, "1:24: assertZeroEmptyEvents"),
    "guard_long": (
        "services:\n  - name: a\n    guardWindow: 50m\n",
        "3:18: services[0].guardWindow",
    ),
    "profile": ("profile: compt\n" + ONE, "1:10: profile"),
    "profile_list": ("profile: [compat]\n" + ONE, "1:10: profile"),
    "fault_kind": ("faults:\n  - {kind: meteor}\n" + ONE, "2:12: faults[0].kind"),
    "fault_nokind": ("faults:\n  - {at: 1m}\n" + ONE, "2:5: faults[0].kind"),
    "fault_service": (
        "faults:\n  - {kind: crash, services: zz}\n" + ONE,
        "2:29: faults[0].services",
    ),
    "fault_frac": (
        "faults:\n  - {kind: mass_drop, fraction: 1.5}\n" + ONE,
        "2:33: faults[0].fraction",
    ),
    "fault_unheard": (
        "faults:\n  - {kind: outage, fraction: 0.5}\n" + ONE,
        "2:30: faults[0].fraction",
    ),
    "fault_map": ("faults: {kind: crash}\n" + ONE, "1:9: faults"),
    "fault_at_neg": ("faults:\n  - {kind: crash, at: -1m}\n" + ONE, "2:23: faults[0].at"),
    "assert_kind": ("assertions:\n  - {kind: maxRejects}\n" + ONE, "2:12: assertions[0].kind"),
    "assert_nolimit": ("assertions:\n  - {kind: maxWait}\n" + ONE, "2:5: assertions[0].within"),
    "assert_neg": (
        "assertions:\n  - {kind: maxServerRejects, value: -1}\n" + ONE,
        "2:37: assertions[0].value",
    ),
    "assert_event": (
        "assertions:\n  - {kind: recoverWithin, within: 1s, event: flood}\n" + ONE,
        "2:46: assertions[0].event",
    ),
    "tab": ("services:\n\t- name: a\n", "2:2: services: this is not YAML"),
    "tab2": ("cluster:\n\trate: 5\n" + ONE, "2:6: after cluster: this is not YAML"),
    "unclosed": ("services: [{name: a}\n", "2:1: services: this is not YAML"),
    "unquoted": ("services: 'a\n", "1:11: services"),
    "twodocs": ("services: [{name: a}]\n---\n" + ONE, "2:1: something follows the document"),
    "alias_unknown": ("services: *x\n", "1:11: services: this is not YAML"),
    "bom": ("\ufeffservices: [{name: a, targetReady: -3}]\n", "1:35: services[0].targetReady"),
    "crlf": (
        "services:\r\n  - name: a\r\n    targetReady: -1\r\n",
        "3:18: services[0].targetReady",
    ),
    "complexkey": ("? [a, b]\n: 1\n" + ONE, "1:3: a key must be a word"),
    "intkey": ("1: 2\n" + ONE, "1:4: 1"),
    "replicas_neg": (
        "services:\n  - {name: 'a{i}', replicas: -1}\n",
        "2:30: services[0].replicas",
    ),
    "replicas_zero": ("services:\n  - {name: 'a{i}', replicas: 0}\n", "2:3: services"),
    "replicas_big": (
        "services:\n  - {name: 'a{i}', replicas: 1000000}\n",
        "2:30: services[0].replicas",
    ),
    "replicas_noi": ("services:\n  - {name: a, replicas: 2}\n", "2:12: services[0].name"),
    "name_fmt": ("services:\n  - {name: 'a{i:x}', replicas: 2}\n", "2:12: services[0].name"),
    "var_missing": ("duration: ${long}\n" + ONE, "1:11: duration"),
    "var_unclosed": ("duration: ${long\n" + ONE, "1:11: duration"),
    "vars_list": ("vars: [a]\n" + ONE, "1:7: vars must hold keys, each with a value"),
    "include_missing": ("include: nowhere.yaml\n" + ONE, "1:10: include"),
    "latency_uniform": (
        "cluster: {connect: {from: 5ms, to: 1ms}}\n" + ONE,
        "1:36: cluster.connect.to",
    ),
    "latency_empty": ("cluster: {connect: {}}\n" + ONE, "1:20: cluster.connect.listed"),
    "latency_listed": (
        "cluster: {connect: {listed: [5ms, fast]}}\n" + ONE,
        "1:35: cluster.connect.listed",
    ),
    "latency_unknown": ("cluster: {connect: {mean: 5ms}}\n" + ONE, "1:20: cluster.connect.listed"),
    "slots_kind": ("slots: blcoks\n" + ONE, "1:8: slots"),
    "slots_word": ("slots: blocks\ncluster: {ceiling: 10}\n" + ONE, "1:8: slots: a block has"),
    "slots_ttl": ("slots: {kind: blocks, ttl: 1s}\n" + ONE, "1:28: slots.ttl"),
    "limiter_kind": ("limiter: {kind: redis}\n" + ONE, "1:17: limiter.kind"),
    "limiter_burst": ("limiter: {burst: 0}\n" + ONE, "1:18: limiter.burst"),
    "work_norate": (
        "services:\n  - name: a\n    workload: {enabled: true, arrivals: poisson}\n",
        "3:15: services[0].workload.rate",
    ),
    "work_trace": (
        "services:\n  - name: a\n    workload: {enabled: true, arrivals: trace, trace: [{at: 5s},{at: 1s}]}\n",
        "3:70: services[0].workload.trace[1].at",
    ),
    "work_tracefile": (
        "services:\n  - name: a\n    workload: {enabled: true, arrivals: trace, traceFile: nix.csv}\n",
        "3:59: services[0].workload.traceFile",
    ),
    "scenario_kind": ("scenario: {kind: flood}\n" + ONE, "1:18: scenario.kind"),
    "scenario_frac": (
        "scenario: {kind: mass_drop, dropFraction: 2}\n" + ONE,
        "1:43: scenario.dropFraction",
    ),
    "age": ("cluster: {maxAge: 0s}\n" + ONE, "1:19: cluster.maxAge"),
    "ceiling": ("cluster: {ceiling: 0}\n" + ONE, "1:20: cluster.ceiling"),
    "lead": ("services:\n  - {name: a, lead: 50m}\n", "2:21: services[0].lead"),
    "pools": ("services:\n  - {name: a, pools: 0}\n", "2:22: services[0].pools"),
    "slash": ("services:\n  - {name: a/b}\n", "2:12: services[0].name"),
    "control": ("services:\n  - {name: \"a\\nb\"}\n", "2:12: services[0].name"),
    "skew": ("dynamodb: {skew: -1s}\n" + ONE, "1:18: dynamodb.skew"),
    "endpoint_list": ("endpoint: [a]\n" + ONE, "1:11: endpoint"),
    "spawn": (
        "services:\n  - {name: a, workload: {enabled: true, maxInUse: 5, spawnEvery: 1ns}}\n",
        "2:66: services[0].workload.spawnEvery: give 1ms or more",
    ),
    "probe": ("services:\n  - {name: a, probeEvery: 1us}\n", "2:27: services[0].probeEvery: give"),
    "poll": ("services:\n  - {name: a, pollEvery: 999us}\n", "2:26: services[0].pollEvery: give"),
    "roll": ("faults:\n  - {kind: rolling_restart, every: 1ns}\n" + ONE, "2:36: faults[0].every"),
    "startdelay": ("services:\n  - {name: a, startDelay: -1s}\n", "2:27: services[0].startDelay"),
    "startdelay2": ("services:\n  - {name: a, startDelay: {evry: 1s}}\n", "2:34: services[0].startDelay.evry"),
}


def nested(anchors):
    """Ten times ten times ten ... of a few lines."""
    lines = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for i in range(1, anchors):
        lines += f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n"
    return lines


# Those that no text editor makes.
ODD = {
    "bomb": (nested(9) + ONE, "the keys are too many"),
    "many_keys": ("".join(f"k{i}: 1\n" for i in range(50_000)) + ONE, "the keys are too many"),
    "deep_list": ("a: " + "[" * 5_000 + "]" * 5_000 + "\n" + ONE, "1:19: a[0][0]"),
    "deep_map": ("".join(" " * i + "a:\n" for i in range(300)), "17:17: a.a.a"),
    "cycle": ("a: &x [*x]\n" + ONE, "1:8: a: an alias must come after what it repeats"),
    "cycle_of_services": (
        "services: &s\n  - name: a\n    workload: *s\n",
        "3:15: services[0].workload: an alias must come after what it repeats",
    ),
    "other_encoding": (b"seed: 1\nendpoint: \xff\xfe\n" + ONE.encode(), "2: this is not text"),
    "other_name": (b'services: [{name: "\xe4"}]\n', "1: this is not text"),
    "surrogate": (b'services: [{name: "\xed\xa0\x80"}]\n', "1: this is not text"),
    "nul": (b"endpoint: a\x00b\n" + ONE.encode(), "1: this is not text"),
    "bytes": (bytes(range(256)), "1: this is not text"),
    "utf16": (
        "services: [{name: a, targetReady: -3}]\n".encode("utf-16"),
        "1:35: services[0].targetReady",
    ),
    "includes_itself": ("include: includes_itself.yaml\n" + ONE, "1:10: include: files include"),
    "long": ("#" * (1 << 20) + "\n" + ONE, "longer than 1048576 bytes"),
}

JSON = {
    "comma": (
        '{"services": [{"name": "a",}\n',
        "1:28: after services[0].name: this is not JSON: expected a key in double quotes",
    ),
    "unclosed": ('{"services": [{"name": "a"}\n', "2:1: services: this is not JSON"),
    "half": (
        '{"services": [\n  {"name": "\\ud83d"}]}',
        "2:13: services[0].name: this is not JSON: expected two halves of a character",
    ),
    "comment": ('{"seed": 1, # why\n"services": []}', "1:13: after seed: this is not JSON"),
    "twice": ('{"services": [{"name": "a"}], "seed": 1, "seed": 2}\n', "1:42: seed: set twice"),
    "type": ('{"services": [{"name": "a", "targetReady": "x"}]}\n', "1:44: services[0].targetRea"),
    "more": ('{"services": [{"name": "a"}]}\n{"x": 1}\n', "2:1: something follows"),
    "empty": ("", "1:1: services"),
    "null": ("null", "1:1: services"),
    "list": ("[1]", "1:1: services"),
}


class BadInput(binary.CommandTest):
    def refused(self, file, text, place, *words):
        (self.folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
        done = self.run_it("poolsim", "check", file, *words)
        self.assertEqual(done.code, USAGE, (file, done))
        self.assertIn(f"holdfast: {file}:", done.err)
        self.assertIn(place, done.err, file)
        self.assertEqual(done.out, "", file)
        self.assertEqual(done.err.count("\n"), 1, done.err)

    def test_each_refusal_names_file_line_and_key(self):
        for name, (text, place) in BAD.items():
            self.refused(f"{name}.yaml", text, f"{name}.yaml:{place}")

    def test_what_no_editor_makes_is_refused_as_well(self):
        for name, (text, place) in ODD.items():
            self.refused(f"{name}.yaml", text, place)

    def test_json_is_told_of_as_yaml_is(self):
        for name, (text, place) in JSON.items():
            self.refused(f"{name}.json", text, f"{name}.json:{place}")

    def test_any_json_is_read(self):
        (self.folder / "face.json").write_text(
            '\ufeff{\t"services"\n:[{"name":"\\uD83D\\uDE00 \\/ \\u00e4", "targetReady":5}]}'
        )
        done = self.run_it("poolsim", "run", "face.json", "--profile", "compat")
        self.assertEqual(done.code, DONE, done)
        self.assertIn("\U0001f600 / \u00e4: size 5/5", done.out)

    def test_a_file_is_refused_before_another_is_simulated(self):
        (self.folder / "bad.yaml").write_text("services: []\n")
        done = self.run_it("poolsim", "run", "local", "bad.yaml", "--set", "duration=10s")
        self.assertEqual(done.code, USAGE, done)
        self.assertEqual(done.out, "")
        self.assertIn("bad.yaml:1:11: services: list at least one", done.err)

    def test_the_flags_of_the_older_program_are_told_of_by_their_names(self):
        for words in (("-config",), ("-config", "a.yaml", "-ot", "b.csv")):
            done = self.run_it("poolsim", *words)
            self.assertEqual(done.code, USAGE, done)
            self.assertNotRegex(done.err, r"--old| old")
        self.assertIn("-config", self.run_it("poolsim", "-config").err)
        self.assertIn("-config", self.run_it("poolsim", "run", "-config").err)

    def test_what_cannot_go_well_is_said_before_the_run(self):
        for text, trouble in (
            ("cluster: {ceiling: 20}\n" + ONE, "the cluster takes 20 at most"),
            (ONE.replace("a}", "a, startDelay: 2h}"), "2:34: services[0].startDelay: after"),
        ):
            (self.folder / "plan.yaml").write_text("duration: 2s\n" + text)
            self.assertIn(trouble, self.run_it("poolsim", "run", "plan.yaml").err)
            self.assertEqual(self.run_it("poolsim", "check", "plan.yaml").code, DONE)


if __name__ == "__main__":
    unittest.main()
