// Activities and the Nexus handler of the golden scenarios.
'use strict';

const activity = require('@temporalio/activity');
const temporalNexus = require('@temporalio/nexus');
const nexus = require('nexus-rpc');

const { service } = require('./nexus_service');

const { ApplicationFailure, activityInfo } = activity;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const fail = (message, type, more = {}) => {
  throw ApplicationFailure.create({ message, type, ...more });
};

const flags = new Set(); // Ids of workflows whose `failUntilFlag` may succeed.
const waiting = new Map(); // Workflow id -> task token of the activity that `later` left open.

const activities = {
  async echo(value) {
    return value;
  },
  async wait(ms) {
    await sleep(ms);
    return 'waited';
  },
  async failWith(type, nonRetryable) {
    fail(`failed: ${type}`, type, { nonRetryable });
  },
  async failWithDelay() {
    const { attempt } = activityInfo();
    if (attempt < 2) fail('delayed', 'Delayed', { nextRetryDelay: '1s' });
    return attempt;
  },
  async failTimes(times) {
    const { attempt } = activityInfo();
    if (attempt <= times) fail(`attempt ${attempt}`, 'Try');
    return attempt;
  },
  async hang() {
    await sleep(3000);
    return 'late';
  },
  async beatThenHang() {
    activity.heartbeat({ at: 1 });
    await sleep(3000);
    return 'late';
  },
  async beatFailResume() {
    const { attempt, heartbeatDetails } = activityInfo();
    if (attempt > 1) return heartbeatDetails;
    activity.heartbeat({ at: 5 });
    await sleep(300);
    return fail('after beat', 'Beat');
  },
  async untilCancelled() {
    for (let i = 0; i < 60; i++) {
      activity.heartbeat(i);
      await activity.sleep(100);
    }
    return 'never cancelled';
  },
  async later() {
    const { workflowExecution, taskToken } = activityInfo();
    waiting.set(workflowExecution.workflowId, taskToken);
    throw new activity.CompleteAsyncError();
  },
  async failUntilFlag() {
    if (!flags.has(activityInfo().workflowExecution.workflowId)) fail('flag not set', 'NotYet');
    return 'flag seen';
  },
};

const nexusHandler = nexus.serviceHandler(service, {
  hi: async (_context, name) => `hi ${name}`,
  broken: async () => {
    throw new nexus.OperationError('failed', 'operation broke');
  },
  flow: new temporalNexus.WorkflowRunOperationHandler(async (context, { name, id }) =>
    temporalNexus.startWorkflow(context, 'hello', { args: [name], workflowId: id }),
  ),
});

module.exports = { activities, flags, nexusHandler, waiting };
