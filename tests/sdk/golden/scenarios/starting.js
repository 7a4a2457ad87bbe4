// Starting a workflow: policies for its id, refusals, eager first tasks, delays.
'use strict';

const crypto = require('node:crypto');
const { payload, payloads, seconds, sleep } = require('../scenario');

const scenarios = {};

const done = {
  commandType: 'COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION',
  completeWorkflowExecutionCommandAttributes: { result: payloads('raw') },
};

scenarios.id_policies = async (s) => {
  // every reuse policy x conflict policy x state of the current run
  const reuse = [
      'UNSPECIFIED',
      'ALLOW_DUPLICATE',
      'ALLOW_DUPLICATE_FAILED_ONLY',
      'REJECT_DUPLICATE',
      'TERMINATE_IF_RUNNING',
    ],
    conflict = ['UNSPECIFIED', 'FAIL', 'USE_EXISTING', 'TERMINATE_EXISTING'];
  const start = (label, id, r, c, extra = {}) =>
    s.rpc(label, 'StartWorkflowExecution', {
      workflowId: id,
      workflowType: { name: 'raw' },
      taskQueue: { name: s.queue },
      requestId: crypto.randomUUID(),
      workflowIdReusePolicy: 'WORKFLOW_ID_REUSE_POLICY_' + r,
      workflowIdConflictPolicy: 'WORKFLOW_ID_CONFLICT_POLICY_' + c,
      ...extra,
    });
  for (const st of ['running', 'terminated', 'completed'])
    for (const r of reuse)
      for (const c of conflict) {
        const label = `${st} / ${r} / ${c}`,
          id = s.workflowId(`${st}-${r}-${c}`),
          q = s.queue + '/' + st + r + c;
        await start(undefined, id, 'ALLOW_DUPLICATE', 'FAIL', { taskQueue: { name: q } });
        if (st === 'terminated')
          await s.rpc(undefined, 'TerminateWorkflowExecution', {
            workflowExecution: { workflowId: id },
          });
        if (st === 'completed') {
          const t = await s.poll(undefined, q);
          await s.complete(undefined, t, [
            {
              commandType: 'COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION',
              completeWorkflowExecutionCommandAttributes: {},
            },
          ]);
        }
        await start(label, id, r, c);
        if (label === 'running / UNSPECIFIED / TERMINATE_EXISTING') {
          const d = await s.pending(id);
          await s.history(
            'terminate existing, new run',
            id,
            d.workflowExecutionInfo.execution.runId,
          );
        }
        await s.rpc(undefined, 'TerminateWorkflowExecution', {
          workflowExecution: { workflowId: id },
        });
      }
  const id = s.workflowId('same-request'),
    requestId = crypto.randomUUID();
  await start('same request id, first', id, 'ALLOW_DUPLICATE', 'FAIL', { requestId });
  await start('same request id, second', id, 'ALLOW_DUPLICATE', 'FAIL', { requestId });
  await start('use existing, attach', id, 'ALLOW_DUPLICATE', 'USE_EXISTING', {
    onConflictOptions: { attachRequestId: true },
  });
  await s.history('attached', id);
  await s.describe('attached', id);
  await s.rpc(undefined, 'TerminateWorkflowExecution', { workflowExecution: { workflowId: id } });
  await start('same request id, after close', id, 'ALLOW_DUPLICATE', 'FAIL', { requestId });
};

scenarios.start_errors = async (s) => {
  const b = {
    workflowId: s.workflowId(),
    workflowType: { name: 'x' },
    taskQueue: { name: s.queue },
    requestId: crypto.randomUUID(),
  };
  const st = (label, o) => s.rpc(label, 'StartWorkflowExecution', { ...b, ...o });
  await st('no workflow id', { workflowId: '' });
  await st('no type', { workflowType: {} });
  await st('no queue', { taskQueue: {} });
  await st('no namespace', { namespace: '' });
  await st('unknown namespace', { namespace: 'no-such-namespace' });
  await st('id too long', { workflowId: 'x'.repeat(1001) });
  await st('negative timeout', { workflowRunTimeout: seconds(-5) });
  await st('unknown search attribute', {
    searchAttributes: { indexedFields: { NoSuchAttribute: payload('x') } },
  });
  await st('bad retry policy', {
    retryPolicy: {
      initialInterval: seconds(10),
      maximumInterval: seconds(1),
      backoffCoefficient: 0.5,
    },
  });
  await st('sticky-like reserved queue', { taskQueue: { name: '/_sys/x/1' } });
  await st('delay and cron', { workflowStartDelay: seconds(5), cronSchedule: '@every 5s' });
  await st('bad request id', { requestId: 'not-a-uuid' });
  await s.rpc(undefined, 'TerminateWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
  });
  await s.describe('missing', s.workflowId('missing'));
  await s.describe('bad run id', s.workflowId(), 'nope');
  await s.history('missing', s.workflowId('missing'));
  await s.deadline(5000, () => s.rpc('poll no queue', 'PollWorkflowTaskQueue', { taskQueue: {} }));
  await s.rpc('poll without deadline', 'PollWorkflowTaskQueue', { taskQueue: { name: s.queue } });
  await s.rpc('bad task token', 'RespondWorkflowTaskCompleted', {
    taskToken: Buffer.from('garbage'),
  });
  await s.rpc('empty task token', 'RespondActivityTaskCompleted', {});
  await s.rpc('describe unknown namespace', 'DescribeNamespace', {
    namespace: 'no-such-namespace',
  });
  await s.rpc('list unknown namespace', 'ListWorkflowExecutions', {
    namespace: 'no-such-namespace',
  });
  await s.rpc('register existing namespace', 'RegisterNamespace', {
    namespace: 'default',
    workflowExecutionRetentionPeriod: seconds(86400),
  });
  await s.rpc('register name with a blank', 'RegisterNamespace', {
    namespace: `a b ${s.salt}`,
    workflowExecutionRetentionPeriod: seconds(86400),
  });
  await s.rpc('register without retention', 'RegisterNamespace', { namespace: `r${s.salt}` });
  await s.rpc('register empty name', 'RegisterNamespace', {
    workflowExecutionRetentionPeriod: seconds(86400),
    namespace: '',
  });
};

scenarios.eager_start = async (s) => {
  const r = await s.startRaw('start', { requestEagerExecution: true });
  await s.history('started');
  if (r?.eagerWorkflowTask?.taskToken?.length)
    await s.complete('complete', r.eagerWorkflowTask, [done]);
  await s.history('end');
};

scenarios.start_delay = (s) =>
  s.worker(async () => {
    const handle = await s.start('hello', ['late'], { startDelay: '2s' });
    await s.describe('delayed');
    await handle.signal('note', 'early');
    await s.history('after signal in delay');
    await s.result('result', handle);
    await s.history('end');
  });

scenarios.start_delay_signal_with_start = (s) =>
  s.worker(async () => {
    const handle = await s.start('listener', [], { startDelay: '30s' });
    await s.client.workflow.signalWithStart('listener', {
      workflowId: s.workflowId(),
      taskQueue: s.queue,
      signal: 'go',
    });
    await sleep(1500);
    await s.history('after');
    await s.describe('after');
    await handle.terminate('tidy').catch(() => {});
  });

module.exports = scenarios;
