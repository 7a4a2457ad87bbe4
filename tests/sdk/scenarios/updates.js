// Scenarios about updates.
'use strict';

const assert = require('node:assert');
const crypto = require('node:crypto');

const {
  WithStartWorkflowOperation,
  WorkflowUpdateFailedError,
  WorkflowUpdateStage,
} = require('@temporalio/client');

const stories = {};

// A queue that has a worker only while a story says so.
const withoutWorker = (s) => Object.assign(Object.create(s), { queue: `${s.queue}-away` });

const failsWith = (message) => (error) => {
  assert.ok(error instanceof WorkflowUpdateFailedError, `${error}`);
  assert.match(error.cause.message, message);
  return true;
};

// The handler runs an activity; what the validator rejects is not in the history.
stories.update = async (s) => {
  const handle = await s.start('listener');
  const ask = (word) => handle.executeUpdate('ask', { args: [word] });
  assert.deepEqual([await ask('one'), await ask('two')], [1, 2]);
  const { events } = await s.history(s.runs[0]);
  await assert.rejects(ask(''), failsWith(/a word is missing/));
  await assert.rejects(handle.executeUpdate('unknown'), failsWith(/unknown/));
  assert.equal((await s.history(s.runs[0])).events.length, events.length);
  assert.equal(await ask('end'), 3);
  assert.deepEqual(await handle.result(), ['one', 'two', 'end']);
  return { updates: 5 };
};

// Its client goes on when it is accepted, and fetches the outcome later, also after the close.
stories.update_accepted = async (s) => {
  const handle = await s.start('gate');
  const updateId = 'first';
  const pass = await handle.startUpdate('pass', {
    args: ['ann'],
    updateId,
    waitForStage: WorkflowUpdateStage.ACCEPTED,
  });
  const waiting = pass.result();
  await handle.signal('open');
  assert.equal(await waiting, 'ann passed');
  assert.equal(await handle.executeUpdate('pass', { args: ['bob'], updateId }), 'ann passed');
  await handle.signal('close');
  await handle.result();
  assert.equal(await handle.getUpdateHandle(updateId).result(), 'ann passed');
  return { updates: 1 };
};

// More than a run takes at a time: clients whose update is refused ask again.
stories.update_many = async (s) => {
  const handle = await s.start('listener');
  const words = Array.from({ length: 30 }, (_, n) => `word ${n}`);
  const asked = words.map((word) => handle.executeUpdate('ask', { args: [word] }));
  await Promise.all(asked);
  await handle.executeUpdate('ask', { args: ['end'] });
  assert.deepEqual((await handle.result()).sort(), [...words, 'end'].sort());
  return { updates: words.length + 1 };
};

// The update waits for the first worker, with the first workflow task.
stories.update_before_worker = async (s) => {
  const away = withoutWorker(s);
  const handle = await away.start('listener');
  const asked = handle.executeUpdate('ask', { args: ['one'] });
  await handle.describe();
  await away.worker(async () => {
    assert.equal(await asked, 1);
    await handle.executeUpdate('ask', { args: ['end'] });
    await handle.result();
  });
  return { updates: 2 };
};

// A second worker ends what the first one has begun.
stories.update_next_worker = async (s) => {
  const away = withoutWorker(s);
  const handle = await away.start('gate');
  const pass = await away.worker(() =>
    handle.startUpdate('pass', { args: ['ann'], waitForStage: WorkflowUpdateStage.ACCEPTED }),
  );
  const late = handle.executeUpdate('pass', { args: ['bob'] });
  await handle.signal('open');
  await away.worker(async () => {
    assert.deepEqual(await Promise.all([pass.result(), late]), ['ann passed', 'bob passed']);
    await handle.signal('close');
    await handle.result();
  });
  return { updates: 2 };
};

stories.update_with_start = async (s) => {
  const workflowId = `listener-${crypto.randomUUID()}`;
  const ask = async (word, updateId) => {
    const startWorkflowOperation = new WithStartWorkflowOperation('listener', {
      workflowId,
      taskQueue: s.queue,
      workflowIdConflictPolicy: 'USE_EXISTING',
    });
    const heard = await s.client.workflow.executeUpdateWithStart('ask', {
      args: [word],
      updateId,
      startWorkflowOperation,
    });
    const { workflowId: id } = await startWorkflowOperation.workflowHandle();
    assert.equal(id, workflowId);
    return heard;
  };
  assert.equal(await ask('one', 'a'), 1);
  assert.equal(await ask('two', 'b'), 2);
  assert.equal(await ask('one again', 'a'), 1);
  await assert.rejects(ask('', 'c'), failsWith(/a word is missing/));
  assert.equal(await ask('end', 'd'), 3);
  const handle = s.client.workflow.getHandle(workflowId);
  assert.deepEqual(await handle.result(), ['one', 'two', 'end']);
  s.runs.push({ workflowId, runId: (await handle.describe()).runId });
  return { updates: 4 };
};

// Runs follow each other under the updates; each update is in one of them.
stories.update_chain = async (s) => {
  const pages = 12;
  const handle = await s.start('book', [[]]);
  for (let page = 1; page <= pages; page++)
    assert.equal(await handle.executeUpdate('write', { args: [page] }), page);
  await handle.signal('close');
  const chapters = await handle.result();
  assert.deepEqual(
    chapters.flat(),
    Array.from({ length: pages }, (_, n) => n + 1),
  );
  assert.ok(chapters.length > 1);
  return { updates: pages, chapters: chapters.length };
};

module.exports = stories;
