// How runs end, and what follows them: chains of runs, cancellation, termination, reset.
'use strict';

const crypto = require('node:crypto');
const { payloads, sleep } = require('../scenario');

const scenarios = {};

scenarios.continue_as_new = (s) =>
  s.worker(async () => {
    const handle = await s.start('canThrice', [1], { memo: { k: 'v' } });
    await s.result('result', handle);
    await s.chain('workflow', s.workflowId(), handle.firstExecutionRunId);
    await s.describe('last');
    await s.describe('first', s.workflowId(), handle.firstExecutionRunId);
  });

scenarios.workflow_retry = (s) =>
  s.worker(async () => {
    const handle = await s.start('failTwice', [], {
      retry: { initialInterval: '1s', maximumAttempts: 3 },
    });
    await s.result('result', handle);
    await s.chain('workflow', s.workflowId(), handle.firstExecutionRunId);
  });

scenarios.workflow_retry_exhausted = (s) =>
  s.worker(async () => {
    const handle = await s.start('failTwice', [], {
      retry: { initialInterval: '1s', maximumAttempts: 2 },
    });
    await s.result('result', handle);
    await s.chain('workflow', s.workflowId(), handle.firstExecutionRunId);
  });

scenarios.run_timeout_with_retry = (s) =>
  s.worker(async () => {
    const handle = await s.start('sleeper', [60000], {
      workflowRunTimeout: '1s',
      retry: { initialInterval: '1s', maximumAttempts: 2 },
    });
    await s.result('result', handle);
    await s.chain('workflow', s.workflowId(), handle.firstExecutionRunId);
  });

scenarios.cron = (s) =>
  s.worker(async () => {
    const handle = await s.start('cronJob', [], { cronSchedule: '@every 2s' });
    await s.describe('at start');
    await sleep(5200);
    await handle.terminate('enough');
    await s.chain('workflow', s.workflowId(), handle.firstExecutionRunId, 2);
  });

scenarios.cron_bad = async (s) => {
  await s.rpc('bad cron', 'StartWorkflowExecution', {
    workflowId: s.workflowId(),
    workflowType: { name: 'x' },
    taskQueue: { name: s.queue },
    cronSchedule: 'every now and then',
  });
};

scenarios.terminate = (s) =>
  s.worker(async () => {
    const handle = await s.start('listener');
    await s.events(4);
    await s.rpc('terminate', 'TerminateWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId() },
      reason: 'why',
      details: payloads('d'),
    });
    await s.result('result', handle);
    await s.history('workflow');
    await s.describe('workflow');
    await s.rpc('again', 'TerminateWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId() },
    });
    await s.rpc('missing', 'TerminateWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId('missing') },
    });
  });

scenarios.cancel = (s) =>
  s.worker(async () => {
    const handle = await s.start('waitCancel');
    await s.events(5);
    await s.rpc('cancel', 'RequestCancelWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId() },
      reason: 'please',
      requestId: crypto.randomUUID(),
    });
    await s.result('result', handle);
    await s.history('workflow');
    await s.describe('workflow');
    await s.rpc('cancel closed', 'RequestCancelWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId() },
      requestId: crypto.randomUUID(),
    });
    await s.rpc('cancel missing', 'RequestCancelWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId('missing') },
      requestId: crypto.randomUUID(),
    });
  });

scenarios.cancel_twice_before_worker = async (s) => {
  const handle = await s.start('ignoreCancel');
  const requestId = crypto.randomUUID();
  const c = (label, r) =>
    s.rpc(label, 'RequestCancelWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId() },
      requestId: r,
    });
  await c('first', requestId);
  await c('same request id', requestId);
  await c('other request id', crypto.randomUUID());
  await s.worker(async () => {
    await s.result('result', handle);
    await s.history('workflow');
  });
};

scenarios.reset = (s) =>
  s.worker(async () => {
    const handle = await s.start('listener');
    await s.events(4);
    await handle.signal('note', 'kept');
    await s.events(8);
    await s.rpc('update', 'UpdateWorkflowExecution', s.updateRequest('add', [9], 'u1'));
    const ex = { workflowId: s.workflowId(), runId: handle.firstExecutionRunId };
    const rs = (label, id, o = {}) =>
      s.rpc(label, 'ResetWorkflowExecution', {
        workflowExecution: ex,
        reason: 'golden',
        workflowTaskFinishEventId: id,
        requestId: crypto.randomUUID(),
        ...o,
      });
    await rs('event 1', 1);
    await rs('event 2', 2);
    await rs('event 999', 999);
    const r = await rs('event 4', 4);
    await s.events(7);
    await sleep(700);

    await s.client.workflow.getHandle(s.workflowId()).signal('go');
    await s.result('result', s.client.workflow.getHandle(s.workflowId()));
    await s.history('base run', s.workflowId(), handle.firstExecutionRunId);
    if (r) {
      await s.history('new run', s.workflowId(), r.runId);
      await s.describe('new run', s.workflowId(), r.runId);
    }
    const r2 = await rs('closed run, exclude signals', 4, {
      resetReapplyExcludeTypes: ['RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL'],
    });
    if (r2) {
      await sleep(700);
      await s.history('third run', s.workflowId(), r2.runId);
      await s.client.workflow.getHandle(s.workflowId()).terminate('tidy');
    }
  });

module.exports = scenarios;
