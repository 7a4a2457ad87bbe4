// The scenarios by name. Each gives what it counted.
'use strict';

const assert = require('node:assert');

const { WorkflowFailedError, WorkflowUpdateFailedError } = require('@temporalio/client');

const stories = {};

// Starts one workflow, and expects its result.
async function expectResult(s, type, args, expected) {
  const handle = await s.start(type, args);
  assert.deepEqual(await handle.result(), expected);
  return handle;
}

stories.hello = async (s) => {
  await expectResult(s, 'hello', ['world'], 'hello world');
  return {};
};

stories.chain = async (s) => {
  const activities = 20;
  const squares = Array.from({ length: activities }, (_, n) => (n + 1) ** 2);
  await expectResult(s, 'chain', [activities], squares);
  return { activities };
};

stories.retries = async (s) => {
  const failures = 3;
  await expectResult(s, 'retries', [failures], failures + 1);
  const { events } = await s.history(s.runs[0]);
  const started = events.map((event) => event.activityTaskStartedEventAttributes).filter(Boolean);
  assert.deepEqual(
    started.map(({ attempt, lastFailure }) => [attempt, lastFailure.message]),
    [[failures + 1, `attempt ${failures} fails`]],
  );
  return { attempts: failures + 1 };
};

stories.timers = async (s) => {
  const timers = 10;
  await expectResult(s, 'timers', [timers], [timers, true]);
  return { timers };
};

stories.signals = async (s) => {
  const words = Array.from({ length: 20 }, (_, n) => `word ${n}`);
  const handle = await s.start('listener');
  for (const word of [...words, 'end']) await handle.signal('tell', word);
  assert.deepEqual(await handle.result(), [...words, 'end']);
  return { signals: words.length + 1 };
};

stories.failure = async (s) => {
  const handle = await s.start('failing');
  await assert.rejects(handle.result(), (error) => {
    assert.ok(error instanceof WorkflowFailedError);
    const { type, message, details, nonRetryable } = error.cause;
    assert.deepEqual(
      { type, message, details, nonRetryable },
      { type: 'OutOfStock', message: 'out of stock', details: [{ left: 0 }], nonRetryable: true },
    );
    return true;
  });
  assert.equal((await handle.describe()).status.name, 'FAILED');
  return { failures: 1 };
};

stories.continue_as_new = async (s) => {
  await expectResult(s, 'countdown', [3], 'lift-off');
  return { continued: 3 };
};

stories.child = async (s) => {
  await expectResult(s, 'parent', [['ann', 'bob']], ['hello ann', 'hello bob', 'OutOfStock']);
  const { events } = await s.history(s.runs[0]);
  const children = events
    .map((event) => event.childWorkflowExecutionStartedEventAttributes?.workflowExecution)
    .filter(Boolean);
  s.runs.push(...children);
  assert.equal(children.length, 3);
  return { children: children.length };
};

stories.query = async (s) => {
  const handle = await s.start('listener');
  await handle.signal('tell', 'one');
  await handle.signal('tell', 'two');
  const before = await handle.query('heard');
  await handle.signal('tell', 'end');
  await handle.result();
  assert.deepEqual([before, await handle.query('heard')], [2, 3]);
  await assert.rejects(handle.query('unknown'));
  return { queries: 3 };
};

stories.update = async (s) => {
  const handle = await s.start('listener');
  const ask = (word) => handle.executeUpdate('ask', { args: [word] });
  assert.deepEqual([await ask('one'), await ask('two')], [1, 2]);
  await assert.rejects(ask(''), WorkflowUpdateFailedError);
  assert.equal(await ask('end'), 3);
  assert.deepEqual(await handle.result(), ['one', 'two', 'end']);
  return { updates: 4 };
};

module.exports = stories;
