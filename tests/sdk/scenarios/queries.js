// Scenarios about queries.
'use strict';

const assert = require('node:assert');

const { Client, QueryNotRegisteredError, QueryRejectedError } = require('@temporalio/client');

const stories = {};

// While it runs, and after it has closed.
stories.query = async (s) => {
  const handle = await s.start('listener');
  await handle.signal('tell', 'one');
  await handle.signal('tell', 'two');
  const before = await handle.query('heard');
  assert.match(await handle.query('__stack_trace'), /listener/);
  await handle.signal('tell', 'end');
  await handle.result();
  assert.deepEqual([before, await handle.query('heard')], [2, 3]);
  return { queries: 3 };
};

// Each query sees the signal that was acknowledged before it.
stories.query_consistent = async (s) => {
  const signals = 20;
  const handle = await s.start('listener');
  for (let n = 1; n <= signals; n++) {
    await handle.signal('tell', `word ${n}`);
    assert.equal(await handle.query('heard'), n);
  }
  await handle.signal('tell', 'end');
  await handle.result();
  return { queries: signals };
};

const failsWith = (message) => (error) => {
  assert.ok(error instanceof QueryNotRegisteredError, `${error}`); // So the SDK calls both.
  assert.match(error.message, message);
  return true;
};

stories.query_refused = async (s) => {
  const handle = await s.start('listener');
  const open = new Client({
    connection: s.connection,
    workflow: { queryRejectCondition: 'NOT_OPEN' },
  }).workflow.getHandle(handle.workflowId);
  assert.equal(await open.query('heard'), 0);
  await assert.rejects(handle.query('broken'), failsWith(/no answer today/));
  await assert.rejects(handle.query('unknown'), failsWith(/did not register a handler/));
  await handle.signal('tell', 'end');
  await handle.result();
  await assert.rejects(open.query('heard'), QueryRejectedError);
  assert.equal(await handle.query('heard'), 1);
  return { queries: 5 };
};

// Before there is a worker, with it, without it, and with another one.
stories.query_workers = async (s) => {
  const away = Object.assign(Object.create(s), { queue: `${s.queue}-away` });
  const handle = await away.start('listener');
  const early = handle.query('heard');
  await away.worker(async () => {
    assert.equal(await early, 0);
    await handle.signal('tell', 'one');
    assert.equal(await handle.query('heard'), 1);
  });
  const between = handle.query('heard');
  await away.worker(async () => {
    assert.equal(await between, 1);
    assert.equal(await handle.query('heard'), 1);
    await handle.signal('tell', 'end');
    await handle.result();
  });
  return { queries: 4 };
};

module.exports = stories;
