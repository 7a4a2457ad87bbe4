// The comparison finds what is planted, and nothing else.
'use strict';

const assert = require('node:assert');
const test = require('node:test');

const { applyRules, describe, differences } = require('./compare');
const { expectedNow, goldenData, goldenNames, readExpected } = require('./expected');
const { normaliser } = require('./normalise');
const { rulesOf, table } = require('./rules');

const copy = (value) => JSON.parse(JSON.stringify(value));
const paths = (found) => found.map(({ path }) => path);

// The golden data of a scenario, and a copy with a change.
function planted(name, change) {
  const ours = copy(goldenData(name));
  change(ours);
  return differences(goldenData(name), ours, rulesOf(name));
}

test('golden data is equal to itself, with its rules and without', () => {
  for (const name of goldenNames()) {
    assert.deepEqual(differences(goldenData(name), goldenData(name), rulesOf(name)), [], name);
    assert.deepEqual(differences(goldenData(name), goldenData(name)), [], name);
  }
});

test('a changed value, a missing one and one too many are three differences', () => {
  const found = planted('hello', ({ histories, describes }) => {
    histories.workflow[0].workflowExecutionStartedEventAttributes.attempt = 2;
    delete histories.workflow[1].workflowTaskScheduledEventAttributes.startToCloseTimeout;
    describes.workflow.workflowExecutionInfo.extra = 'more';
  });
  assert.deepEqual(found, [
    {
      path:
        'histories > workflow > event 1 WORKFLOW_EXECUTION_STARTED > ' +
        'workflowExecutionStartedEventAttributes > attempt',
      golden: 1,
      ours: 2,
    },
    {
      path:
        'histories > workflow > event 2 WORKFLOW_TASK_SCHEDULED > ' +
        'workflowTaskScheduledEventAttributes > startToCloseTimeout',
      golden: '10s',
      ours: 'absent',
    },
    {
      path: 'describes > workflow > workflowExecutionInfo > extra',
      golden: 'absent',
      ours: 'more',
    },
  ]);
});

test('an event too many is one difference, and so is an event that is missing', () => {
  const more = planted('hello', ({ histories: { workflow } }) => {
    workflow.splice(2, 0, { eventType: 'EVENT_TYPE_MARKER_RECORDED', eventId: '9' });
  });
  assert.deepEqual(paths(more), ['histories > workflow > event 9 MARKER_RECORDED']);
  const less = planted('hello', ({ histories: { workflow } }) => workflow.splice(3, 1));
  assert.deepEqual(paths(less), ['histories > workflow > event 4 WORKFLOW_TASK_COMPLETED']);
});

test('a history where an error is expected, and no history at all, are found', () => {
  const gone = planted('hello', (ours) => delete ours.histories);
  assert.deepEqual(paths(gone), ['histories']);
  const failed = planted('hello', ({ histories }) => {
    histories.workflow = { error: { code: 'NOT_FOUND' } };
  });
  assert.deepEqual(paths(failed), ['histories > workflow']);
});

test("an error's code, text and details are compared", () => {
  const found = planted('start_errors', ({ errors }) => {
    errors['no workflow id'].message += '.';
    errors['unknown namespace'].code = 'UNAVAILABLE';
    delete errors['unknown namespace'].details;
  });
  assert.deepEqual(paths(found), [
    'errors > no workflow id > message',
    'errors > unknown namespace > code',
    'errors > unknown namespace > details',
  ]);
});

test('ids may have other numbers, but must stay apart and together as they were', () => {
  const renamed = (name, rename) =>
    JSON.parse(JSON.stringify(goldenData(name)).replace(/<uuid-(\d+)>/g, rename));
  const other = renamed('child_ok', (_, n) => `<uuid-${Number(n) + 7}>`);
  assert.deepEqual(differences(goldenData('child_ok'), other), []);
  const merged = renamed('child_ok', (id, n) => (n === '2' ? '<uuid-1>' : id));
  assert.notDeepEqual(differences(goldenData('child_ok'), merged), []);
});

test('side by side, the order of activities does not count, but what they did does', () => {
  const swap = ({ histories: { workflow } }) => {
    const ends = workflow.filter((e) => e.eventType === 'EVENT_TYPE_ACTIVITY_TASK_COMPLETED');
    const [first, last] = [workflow.indexOf(ends[0]), workflow.indexOf(ends.at(-1))];
    [workflow[first], workflow[last]] = [ends.at(-1), ends[0]];
  };
  assert.deepEqual(planted('fan_out', swap), []);
  const lost = planted('fan_out', ({ histories: { workflow } }) => {
    const at = workflow.findIndex((e) => e.eventType === 'EVENT_TYPE_ACTIVITY_TASK_COMPLETED');
    workflow.splice(at, 1);
  });
  assert.equal(lost.length, 1);
  assert.match(lost[0].path, /ACTIVITY_TASK_COMPLETED/);
});

test('every rule is about golden data that exists, and leaves something out of it', () => {
  for (const { scenarios, rules, reason } of table) {
    assert.ok(reason);
    const data = scenarios.map(goldenData);
    for (const rule of rules) {
      const used = data.some(
        (one) => JSON.stringify(applyRules(one, [rule])) !== JSON.stringify(one),
      );
      assert.ok(used, `${scenarios}: ${rule.action} ${rule.at.join(' > ')}`);
    }
  }
});

test('a difference is shown with its place and both values', () => {
  const text = describe([{ path: 'a > b', golden: 'x', ours: { y: 1 } }], 5);
  assert.equal(text, '  a > b\n    golden  x\n    ours    {"y":1}');
  const many = Array.from({ length: 7 }, () => ({ path: 'a', golden: 1, ours: 2 }));
  assert.match(describe(many, 5), /and 2 more$/);
});

test('the list of what is expected names every scenario once, and gives reasons', () => {
  assert.deepEqual([...expectedNow().keys()].sort(), goldenNames().sort());
  const names = ['timer', 'update'];
  const read = (text) => () => readExpected(text, names);
  assert.doesNotThrow(read('timer equal\nupdate unbuilt soon # or later'));
  assert.throws(read('timer equal'), /does not list update/);
  assert.throws(read('timer equal\ntimer equal'), /:2: 'timer' is listed twice/);
  assert.throws(read('timers equal'), /no golden data for 'timers'/);
  assert.throws(read('timer fine'), /'fine' is not one of/);
  assert.throws(read('timer unbuilt'), /has a reason/);
  assert.throws(read('timer equal because'), /has a reason/);
});

test('ids, times and paths become placeholders, the same id the same one', () => {
  const [one, two] = [
    '11111111-2222-3333-4444-555555555555',
    '99999999-2222-3333-4444-555555555555',
  ];
  const answer = {
    runs: [one, two, one],
    queue: 'g0123abcd/timer',
    at: '2026-01-02T03:04:05.678Z',
    taskToken: 'abc',
    taskId: 7,
    coreUsedFlags: [3, 1],
    backoff: '0.337123s',
    [two]: true,
  };
  assert.deepEqual(normaliser('g0123abcd')(answer), {
    runs: ['<uuid-1>', '<uuid-2>', '<uuid-1>'],
    queue: 'SALT/timer',
    at: '<time>',
    taskToken: '<taskToken>',
    taskId: '<taskId>',
    coreUsedFlags: [1, 3],
    backoff: '<duration>',
    '<uuid-2>': true,
  });
});
