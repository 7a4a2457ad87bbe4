// The scenarios by name. Each gives what it counted.
'use strict';

const assert = require('node:assert');

const { WorkflowContinuedAsNewError, WorkflowFailedError } = require('@temporalio/client');

const stories = { ...require('./queries') };

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

// The workflow fails by what an activity says, which says otherwise when it is asked again.
stories.reset = async (s) => {
  const failed = await s.start('mended');
  await assert.rejects(failed.result(), WorkflowFailedError);
  const { events } = await s.history(s.runs[0]);
  const [, second] = events.filter((event) => event.workflowTaskCompletedEventAttributes);
  const handle = await s.reset(s.runs[0], second.eventId);
  assert.equal(await handle.result(), 'mended');
  const { workflowId, runId } = s.runs[0];
  const description = await s.client.workflow.getHandle(workflowId, runId).describe();
  assert.equal(description.raw.workflowExtendedInfo.resetRunId, s.runs[1].runId);
  return { resets: 1 };
};

stories.reset_signals = async (s) => {
  const handle = await s.start('listener');
  for (const word of ['one', 'two']) await handle.signal('tell', word);
  const { events } = await s.history(s.runs[0]);
  const { eventId } = events.find((event) => event.workflowTaskScheduledEventAttributes);
  const again = await s.reset(s.runs[0], Number(eventId) + 1);
  await assert.rejects(handle.result(), (error) => error.cause.name === 'TerminatedFailure');
  await again.signal('tell', 'end');
  assert.deepEqual(await again.result(), ['one', 'two', 'end']);
  return { signals: 3 };
};

stories.cron = async (s) => {
  const handle = await s.start('ticking', [], { cronSchedule: '@every 1s' });
  const { workflowId } = handle;
  const results = [];
  let [run] = s.runs;
  for (; results.length < 2; s.runs.push(run)) {
    const one = s.client.workflow.getHandle(workflowId, run.runId, { followRuns: false });
    await assert.rejects(one.result(), WorkflowContinuedAsNewError);
    const closing = (await s.history(run)).events.at(-1);
    const { result, newExecutionRunId } = closing.workflowExecutionCompletedEventAttributes;
    results.push(JSON.parse(Buffer.from(result.payloads[0].data).toString()));
    run = { workflowId, runId: newExecutionRunId };
  }
  s.runs.pop(); // It waits for its second, and there may be nothing to replay.
  await handle.terminate('enough');
  assert.deepEqual(results, [['tick'], ['tick', 'tick']]);
  return { runs: results.length };
};

module.exports = { ...stories, ...require('./updates'), ...require('./operators') };
