// Attributes, options and pauses of a workflow and its activities.
'use strict';

const crypto = require('node:crypto');
const { flags } = require('../activities');
const { seconds, sleep } = require('../scenario');

const scenarios = {};

scenarios.memo_search_attributes = async (s) => {
  await s.worker(async () => {
    const handle = await s.start('upserts', [], {
      memo: { a: 0, c: 'kept' },
      searchAttributes: { GoldenKeyword: ['k1'], GoldenDouble: [1.5] },
    });
    await s.result('result', handle);
    await s.history('workflow');
    await s.describe('workflow');
    const b = await s.start('badUpsert', [], { workflowId: s.workflowId('bad') });
    await s.secondAttempt(s.workflowId('bad'), 12000);
    await s.history('bad upsert', s.workflowId('bad'));
    await b.terminate('tidy');
  });
};

scenarios.activity_pause = (s) =>
  s.worker(async () => {
    const handle = await s.start('pausable'),
      ex = { execution: { workflowId: s.workflowId() } };
    await s.until('activity', async () => (await s.pending()).pendingActivities?.[0]?.attempt >= 2);
    await s.rpc('pause', 'PauseActivity', { ...ex, id: '1', reason: 'golden' });
    await sleep(800);
    await s.describe('paused');
    await s.rpc('pause unknown', 'PauseActivity', { ...ex, id: '99' });
    await s.rpc('update options', 'UpdateActivityOptions', {
      ...ex,
      id: '1',
      activityOptions: { startToCloseTimeout: seconds(33) },
      updateMask: { paths: ['start_to_close_timeout'] },
    });
    await s.rpc('reset', 'ResetActivity', { ...ex, id: '1', keepPaused: true });
    await s.describe('reset, still paused');
    await s.rpc('unpause', 'UnpauseActivity', { ...ex, id: '1' });
    await sleep(600);
    flags.add(s.workflowId());
    await s.result('result', handle);
    await s.history('workflow');
    await s.rpc('pause after close', 'PauseActivity', { ...ex, id: '1' });
  });

scenarios.workflow_pause = (s) =>
  s.worker(async () => {
    const handle = await s.start('listener');
    await s.events(4);
    await s.rpc('pause', 'PauseWorkflowExecution', {
      workflowId: s.workflowId(),
      reason: 'golden',
      requestId: crypto.randomUUID(),
    });
    await handle.signal('note', 'while paused');
    await sleep(500);
    await s.history('paused');
    await s.describe('paused');
    await s.rpc('unpause', 'UnpauseWorkflowExecution', {
      workflowId: s.workflowId(),
      reason: 'go on',
      requestId: crypto.randomUUID(),
    });
    await handle.signal('go');
    await s.result('result', handle);
    await s.history('end');
  });

scenarios.workflow_options = (s) =>
  s.worker(async () => {
    const handle = await s.start('listener');
    await s.events(4);
    await s.rpc('set priority', 'UpdateWorkflowExecutionOptions', {
      workflowExecution: { workflowId: s.workflowId() },
      workflowExecutionOptions: { priority: { priorityKey: 1 } },
      updateMask: { paths: ['priority'] },
    });
    await s.history('after');
    await s.describe('after');
    await handle.signal('go');
    await s.result('result', handle);
  });

module.exports = scenarios;
