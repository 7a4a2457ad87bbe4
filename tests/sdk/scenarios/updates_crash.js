// Updates that go on while the server is killed again and again.
//
//   updates_crash.js HOST:PORT SECONDS
//
// Prints a line when its worker has answered once. Each client asks one workflow for one update after
// the other, by an id, and repeats a call that got no answer. The outcome counts the updates that the
// workflow has taken: one that is lost, or is carried out twice, shows.
'use strict';

const assert = require('node:assert');
const crypto = require('node:crypto');
const path = require('node:path');

const { Client, WorkflowUpdateFailedError } = require('@temporalio/client');
const { NativeConnection, Worker } = require('@temporalio/worker');

const { bundle, connect, replay, sleep } = require('../sdk');
const activities = require('./activities');

const CLIENTS = 10;
const taskQueue = `updates-${crypto.randomUUID()}`;

// What the workflow says is an answer; what the way to it says is not.
async function persist(call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (error instanceof WorkflowUpdateFailedError || error instanceof assert.AssertionError)
        throw error;
      await sleep(200);
    }
  }
}

async function keepAsking(client, end, answered) {
  const workflowId = `listener-${crypto.randomUUID()}`;
  const options = { workflowId, taskQueue, workflowTaskTimeout: '2s' };
  const alreadyStarted = (error) => {
    // By a call whose answer was lost.
    if (error.name !== 'WorkflowExecutionAlreadyStartedError') throw error;
  };
  await persist(() => client.workflow.start('listener', options).catch(alreadyStarted));
  const handle = client.workflow.getHandle(workflowId);
  let asked = 0;
  const ask = async (word) => {
    const updateId = `update ${++asked}`;
    const taken = await persist(() => handle.executeUpdate('ask', { args: [word], updateId }));
    assert.equal(taken, asked, `${workflowId}, ${updateId}`);
    answered();
  };
  while (Date.now() < end) await ask('word');
  await ask('end');
  assert.equal((await persist(() => handle.result())).length, asked);
  return { workflowId, asked, history: await persist(() => handle.fetchHistory()) };
}

async function main(address, seconds) {
  const client = new Client({ connection: await connect(address) });
  const workflowBundle = await bundle(path.join(__dirname, 'workflows.js'));
  const connection = await NativeConnection.connect({ address });
  const worker = await Worker.create({ connection, workflowBundle, taskQueue, activities });
  let first = true;
  const answered = () => {
    if (first) console.log('answered');
    first = false;
  };
  const end = Date.now() + Number(seconds) * 1000;
  const going = Array.from({ length: CLIENTS }, () => keepAsking(client, end, answered));
  const done = await worker.runUntil(Promise.all(going));
  const { replayed, failures } = await replay(workflowBundle, done);
  assert.deepEqual(failures, []);
  assert.equal(replayed, done.length);
  const updates = done.reduce((sum, { asked }) => sum + asked, 0);
  console.log(`updates_crash: ${updates} updates, each carried out once`);
}

main(...process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
