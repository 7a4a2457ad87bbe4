// What one golden scenario works with: a workflow id and a task queue of its own, a worker, and a
// record of all that the server answered.
'use strict';

const crypto = require('node:crypto');
const { Worker } = require('@temporalio/worker');

const { activities } = require('./activities');
const { errorJson, messageJson, root } = require('./proto_json');

const namespace = 'default';
const identity = 'golden-client';
const services = ['temporal.api.workflowservice.v1.', 'temporal.api.operatorservice.v1.'];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const payload = (value) => ({
  metadata: { encoding: Buffer.from('json/plain') },
  data: Buffer.from(JSON.stringify(value)),
});
const payloads = (...values) => ({ payloads: values.map(payload) });
const seconds = (n) => ({ seconds: Math.floor(n), nanos: Math.round((n % 1) * 1e9) });

function causes(error) {
  const chain = [];
  for (let at = error; at; at = at.cause) {
    const { name, message } = at;
    const more = ['type', 'retryState', 'timeoutType'].filter((key) => at[key]);
    chain.push({ name, message, ...Object.fromEntries(more.map((key) => [key, at[key]])) });
  }
  return chain;
}

function attributesOf(event) {
  return event[Object.keys(event).find((key) => /EventAttributes$/.test(key))] ?? {};
}

class Scenario {
  // `server` has client, connection, native, bundle, changedBundle and salt.
  constructor(name, server) {
    Object.assign(this, server);
    this.service = this.connection.workflowService;
    this.operator = this.connection.operatorService;
    this.queue = `${this.salt}/${name}`;
    this.out = { scenario: name, results: {}, histories: {}, describes: {}, errors: {}, rpcs: {} };
  }

  workflowId(suffix) {
    return suffix ? `${this.queue}/${suffix}` : this.queue;
  }

  start(type, args = [], options = {}) {
    const names = { workflowId: this.workflowId(), taskQueue: this.queue };
    return this.client.workflow.start(type, { ...names, args, ...options });
  }

  // Has a worker while `story` runs.
  async worker(story, options = {}) {
    const worker = await Worker.create({
      connection: this.native,
      namespace,
      taskQueue: this.queue,
      identity: 'golden-worker',
      workflowBundle: this.bundle,
      activities,
      shutdownGraceTime: '100ms',
      shutdownForceTime: '2s',
      maxHeartbeatThrottleInterval: '100ms',
      defaultHeartbeatThrottleInterval: '100ms',
      ...options,
    });
    const running = worker.run().catch((error) => {
      this.out.workerError = String(error);
    });
    try {
      return await story(worker);
    } finally {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await running;
    }
  }

  updateRequest(name, args, updateId, stage = 'COMPLETED', workflowId = this.workflowId()) {
    return {
      workflowExecution: { workflowId },
      waitPolicy: { lifecycleStage: `UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_${stage}` },
      request: { meta: { updateId, identity }, input: { name, args: payloads(...args) } },
    };
  }

  // ---- What is recorded ----

  async result(label, handle) {
    try {
      this.out.results[label] = { ok: await handle.result() };
    } catch (error) {
      this.out.results[label] = { error: causes(error) };
    }
  }

  // Gives the run that follows this one, if any does.
  async history(label, workflowId = this.workflowId(), runId) {
    const events = [];
    try {
      for (let page; !page || page.nextPageToken?.length; ) {
        page = await this.service.getWorkflowExecutionHistory({
          namespace,
          execution: { workflowId, runId },
          nextPageToken: page?.nextPageToken,
        });
        events.push(...page.history.events);
      }
      this.out.histories[label] = events.map((event) =>
        messageJson('temporal.api.history.v1.HistoryEvent', event),
      );
    } catch (error) {
      this.out.histories[label] = { error: errorJson(error) };
    }
    return events.length ? attributesOf(events.at(-1)).newExecutionRunId : undefined;
  }

  // The histories of a run and of those that follow it.
  async chain(label, workflowId, runId, runsMax = 6) {
    let next = runId;
    for (let run = 1; run === 1 || (next && run <= runsMax); run++)
      next = await this.history(`${label} run ${run}`, workflowId, next);
  }

  describe(label, workflowId = this.workflowId(), runId) {
    const execution = { workflowId, runId };
    return this.rpc(label, 'DescribeWorkflowExecution', { execution }, 'describes');
  }

  // Calls a method by its name, with enums by name, and records the reply or the error, if labelled.
  async rpc(label, method, fields, kind = 'rpcs') {
    const prefix = services.find((name) => root.lookup(`${name}${method}Request`));
    const type = root.lookupType(`${prefix}${method}Request`);
    const ours = type.fields.namespace && fields.namespace === undefined;
    const request = type.fromObject(ours ? { namespace, ...fields } : fields);
    if (type.fields.identity && !request.identity) request.identity = identity;
    const service = prefix === services[0] ? this.service : this.operator;
    try {
      const reply = await service[method[0].toLowerCase() + method.slice(1)](request);
      if (label) this.out[kind][label] = messageJson(`${prefix}${method}Response`, reply);
      return reply;
    } catch (error) {
      if (label && kind === 'describes') this.out.describes[label] = { error: errorJson(error) };
      else if (label) this.out.errors[label] = errorJson(error);
      return undefined;
    }
  }

  async outcome(label, promise) {
    try {
      const value = await promise;
      const { workflowId } = Object(value);
      this.out.errors[label] = { ok: workflowId ? { workflowId } : (value ?? null) };
    } catch (error) {
      this.out.errors[label] = errorJson(error);
    }
  }

  // ---- Waiting ----

  // Waits until `look` gives something true; that it never did is recorded.
  async until(what, look, ms = 15000) {
    const end = Date.now() + ms;
    while (Date.now() <= end) {
      const seen = await look();
      if (seen) return seen;
      await sleep(100);
    }
    this.out.results[`gave up waiting for ${what}`] = true;
    return undefined;
  }

  pending(workflowId = this.workflowId()) {
    return this.service.describeWorkflowExecution({ namespace, execution: { workflowId } });
  }

  // 0 if there is no such workflow.
  status(workflowId = this.workflowId()) {
    return this.pending(workflowId).then(
      (described) => described.workflowExecutionInfo.status,
      () => 0,
    );
  }

  closed(workflowId = this.workflowId()) {
    return this.until(`close of ${workflowId}`, async () => (await this.status(workflowId)) > 1);
  }

  // Until the history has so many events: each of them says that a workflow task is done.
  events(count) {
    const enough = async () => (await this.pending()).workflowExecutionInfo.historyLength >= count;
    return this.until(`${count} events`, enough);
  }

  // Until a workflow task has failed and is tried again.
  secondAttempt(workflowId = this.workflowId(), ms = 20000) {
    const again = async () => (await this.pending(workflowId)).pendingWorkflowTask?.attempt > 1;
    return this.until('failure', again, ms);
  }

  // ---- A worker by hand ----

  deadline(ms, call) {
    return this.connection.withDeadline(Date.now() + ms, call);
  }

  poll(label, name = this.queue) {
    const request = { taskQueue: { name }, identity: 'golden-raw' };
    return this.deadline(20000, () => this.rpc(label, 'PollWorkflowTaskQueue', request));
  }

  complete(label, { taskToken }, commands, more = {}) {
    const request = { taskToken, identity: 'golden-raw', commands, ...more };
    return this.rpc(label, 'RespondWorkflowTaskCompleted', request);
  }

  startRaw(label, options = {}) {
    return this.rpc(label, 'StartWorkflowExecution', {
      workflowId: this.workflowId(),
      workflowType: { name: 'raw' },
      taskQueue: { name: this.queue },
      requestId: crypto.randomUUID(),
      ...options,
    });
  }
}

module.exports = { Scenario, identity, namespace, payload, payloads, seconds, sleep };
