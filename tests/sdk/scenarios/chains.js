// Chains of activities that run on while the server is killed again and again.
//
//   chains.js work HOST:PORT QUEUE LEDGER       a worker, until it is told to end
//   chains.js check HOST:PORT QUEUE LEDGER SECONDS
//       keeps CHAINS chains going for so long, then waits for the last and checks all of them
//
// The ledger has a line for each attempt of an activity and, for every second one, a line once the
// server has said that its result is kept. Such a result may never be lost.
'use strict';

const assert = require('node:assert');
const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const activity = require('@temporalio/activity');
const { Client } = require('@temporalio/client');
const { NativeConnection, Worker } = require('@temporalio/worker');

const { bundle, connect, replay, sleep } = require('../sdk');

const CHAINS = 50;
const STEPS = 5;
const TASK_TIMEOUT = '2s'; // An answer that is lost with the server costs no more than this.

const note = (ledger, entry) => fs.appendFileSync(ledger, `${JSON.stringify(entry)}\n`);

// Completes every second activity through the client, whose call returns once the result is kept.
function ledgerActivities(client, ledger) {
  return {
    async step(n) {
      const { workflowExecution, taskToken } = activity.activityInfo();
      const entry = { chain: workflowExecution.workflowId, step: n, result: crypto.randomUUID() };
      note(ledger, { ...entry, did: 'ran', pid: process.pid });
      if (n % 2) return entry.result;
      await client.activity.complete(taskToken, entry.result);
      note(ledger, { ...entry, did: 'kept' });
      throw new activity.CompleteAsyncError();
    },
  };
}

async function work(address, taskQueue, ledger) {
  const client = new Client({ connection: await connect(address) });
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }),
    workflowBundle: await bundle(path.join(__dirname, 'workflows.js')),
    taskQueue,
    activities: ledgerActivities(client, ledger),
  });
  await worker.run();
}

// A call that is repeated until the server is there to answer it.
async function persist(call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (error.name !== 'ServiceError' && error.code === undefined) throw error;
      await sleep(200);
    }
  }
}

// An attempt to start whose answer was lost has started the chain; another run must not follow.
function alreadyStarted(error) {
  if (error.name !== 'WorkflowExecutionAlreadyStartedError') throw error;
}

// One chain after the other until the time is over; gives their handles.
async function keepGoing(client, taskQueue, end) {
  const handles = [];
  do {
    const workflowId = `chain-${crypto.randomUUID()}`;
    const options = {
      workflowId,
      taskQueue,
      args: [STEPS],
      workflowTaskTimeout: TASK_TIMEOUT,
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    };
    await persist(() => client.workflow.start('chain', options).catch(alreadyStarted));
    const handle = client.workflow.getHandle(workflowId);
    const result = await persist(() => handle.result());
    handles.push({ handle, workflowId, result });
  } while (Date.now() < end);
  return handles;
}

function readLedger(ledger) {
  const entries = fs.readFileSync(ledger, 'utf8').trim().split('\n').map(JSON.parse);
  const of = (did) => entries.filter((entry) => entry.did === did);
  const names = ({ chain, step, result }) => `${chain} ${step} ${result}`;
  return { ran: new Set(of('ran').map(names)), kept: of('kept') };
}

async function check(address, taskQueue, ledger, seconds) {
  const client = new Client({ connection: await connect(address) });
  const end = Date.now() + Number(seconds) * 1000;
  const going = Array.from({ length: CHAINS }, () => keepGoing(client, taskQueue, end));
  const chains = (await Promise.all(going)).flat();
  const results = new Map(chains.map(({ workflowId, result }) => [workflowId, result]));

  const { ran, kept } = readLedger(ledger);
  for (const [workflowId, result] of results) {
    assert.equal(result.length, STEPS, workflowId);
    result.forEach((one, i) => assert.ok(ran.has(`${workflowId} ${i + 1} ${one}`), workflowId));
  }
  for (const { chain, step, result } of kept)
    assert.equal(results.get(chain)[step - 1], result, `${chain} has lost a result that was kept`);

  const code = await bundle(path.join(__dirname, 'workflows.js'));
  const histories = [];
  for (const { handle, workflowId } of chains)
    histories.push({ workflowId, history: await persist(() => handle.fetchHistory()) });
  const { replayed, failures } = await replay(code, histories);
  assert.deepEqual(failures, []);
  assert.equal(replayed, chains.length);

  const repeated = ran.size - chains.length * STEPS;
  console.log(
    `crash: ${chains.length} chains, ${chains.length * STEPS} results, ` +
      `${repeated} attempts repeated, ${kept.length} results kept, ${replayed} replayed`,
  );
}

const [verb, ...words] = process.argv.slice(2);
({ work, check })[verb](...words).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
