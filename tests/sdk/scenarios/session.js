// A client and a worker at the server under test, and the runs that a scenario has made.
'use strict';

const assert = require('node:assert');
const crypto = require('node:crypto');
const path = require('node:path');

const { Client } = require('@temporalio/client');
const { NativeConnection, Worker } = require('@temporalio/worker');

const { bundle, connect, replay } = require('../sdk');
const activities = require('./activities');

class Session {
  static async open(address) {
    const session = new Session();
    session.queue = `scenario-${crypto.randomUUID()}`;
    session.connection = await connect(address);
    session.client = new Client({ connection: session.connection });
    session.native = await NativeConnection.connect({ address });
    session.bundle = await bundle(path.join(__dirname, 'workflows.js'));
    session.runs = [];
    return session;
  }

  async close() {
    await this.native.close();
    await this.connection.close();
  }

  // Has a worker while `story` runs; gives what it gives.
  async worker(story) {
    const { native: connection, bundle: workflowBundle, queue: taskQueue } = this;
    const worker = await Worker.create({ connection, workflowBundle, taskQueue, activities });
    return worker.runUntil(story);
  }

  async start(type, args = [], options = {}) {
    const workflowId = `${type}-${crypto.randomUUID()}`;
    const handle = await this.client.workflow.start(type, {
      workflowId,
      taskQueue: this.queue,
      args,
      ...options,
    });
    this.runs.push({ workflowId, runId: handle.firstExecutionRunId });
    return handle;
  }

  // Puts a new run in place of the current one, which goes on before an event of it.
  async reset({ workflowId, runId }, eventId) {
    const made = await this.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId, runId },
      workflowTaskFinishEventId: eventId,
      reason: 'scenario',
      requestId: crypto.randomUUID(),
    });
    this.runs.push({ workflowId, runId: made.runId });
    return this.client.workflow.getHandle(workflowId, made.runId);
  }

  async history({ workflowId, runId }) {
    return this.client.workflow.getHandle(workflowId, runId).fetchHistory();
  }

  // Replays every run and those that follow it; gives how many events and runs there are.
  async replayAll() {
    const histories = [];
    for (const first of this.runs)
      for (let run = first; run.runId; ) {
        const history = await this.history(run);
        histories.push({ workflowId: run.workflowId, history });
        const last = history.events.at(-1).workflowExecutionContinuedAsNewEventAttributes;
        run = { workflowId: run.workflowId, runId: last?.newExecutionRunId };
      }
    const { replayed, failures } = await replay(this.bundle, histories);
    assert.deepEqual(failures, []);
    assert.equal(replayed, histories.length);
    return { events: histories.reduce((sum, one) => sum + one.history.events.length, 0), replayed };
  }
}

module.exports = { Session };
