// Signals, queries and updates.
'use strict';

const crypto = require('node:crypto');
const { identity, namespace, sleep } = require('../scenario');

const scenarios = {};

scenarios.signal_before_worker = async (s) => {
  const handle = await s.start('listener');
  await handle.signal('note', 'a');
  await handle.signal('note', 'b');
  await handle.signal('go');
  await s.describe('before worker');
  await s.worker(async () => {
    await s.result('result', handle);
    await s.history('workflow');
  });
};

scenarios.signal_while_and_after = (s) =>
  s.worker(async () => {
    const handle = await s.start('listener');
    await s.events(4);
    await handle.signal('note', 'a');
    await s.events(8);
    await handle.signal('unknownSignal', 1);
    await s.events(12);
    await handle.signal('go');
    await s.result('result', handle);
    await s.outcome('signal after close', handle.signal('note', 'late'));
    await s.rpc('signal missing id', 'SignalWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId('missing') },
      signalName: 'x',
    });
    await s.rpc('signal bad run id', 'SignalWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId(), runId: 'not-a-uuid' },
      signalName: 'x',
    });
    await s.rpc('signal other run id', 'SignalWorkflowExecution', {
      workflowExecution: {
        workflowId: s.workflowId(),
        runId: '11111111-2222-3333-4444-555555555555',
      },
      signalName: 'x',
    });
    await s.history('workflow');
  });

scenarios.signal_dedup_request_id = async (s) => {
  await s.startRaw('start');
  const requestId = crypto.randomUUID();
  for (const i of [1, 2])
    await s.rpc('signal ' + i, 'SignalWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId() },
      signalName: 'x',
      requestId,
    });
  await s.history('workflow');
  await s.rpc('terminate', 'TerminateWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
  });
};

scenarios.signal_with_start = (s) =>
  s.worker(async () => {
    const o = {
      workflowId: s.workflowId(),
      taskQueue: s.queue,
      signal: 'note',
      signalArgs: ['first'],
    };
    const handle = await s.client.workflow.signalWithStart('listener', o);
    await s.events(5);
    await s.client.workflow.signalWithStart('listener', { ...o, signalArgs: ['second'] });
    await handle.signal('go');
    await s.result('result', handle);
    await s.history('workflow');
    await s.rpc('reject duplicate', 'SignalWithStartWorkflowExecution', {
      workflowId: s.workflowId(),
      workflowType: { name: 'listener' },
      taskQueue: { name: s.queue },
      signalName: 'go',
      workflowIdReusePolicy: 'WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE',
    });
    await s.rpc('conflict fail', 'SignalWithStartWorkflowExecution', {
      workflowId: s.workflowId(),
      workflowType: { name: 'listener' },
      taskQueue: { name: s.queue },
      signalName: 'go',
      workflowIdConflictPolicy: 'WORKFLOW_ID_CONFLICT_POLICY_FAIL',
    });
  });

scenarios.query = async (s) => {
  const q = (label, t, cond) =>
    s.rpc(label, 'QueryWorkflow', {
      execution: { workflowId: s.workflowId() },
      query: { queryType: t },
      ...(cond ? { queryRejectCondition: cond } : {}),
    });
  await s.worker(async () => {
    const handle = await s.start('listener');
    await handle.signal('note', 'n');
    await q('open', 'state');
    await q('failing', 'bad');
    await q('unknown', 'nosuch');
    await q('stack trace', '__stack_trace');
    await q('open reject not open', 'state', 'QUERY_REJECT_CONDITION_NOT_OPEN');
    if (s.out.rpcs['stack trace']) s.out.rpcs['stack trace'] = 'present';
    await handle.signal('go');
    await s.result('result', handle);
    await q('closed', 'state');
    await q('closed reject not open', 'state', 'QUERY_REJECT_CONDITION_NOT_OPEN');
    await q('closed reject not cleanly', 'state', 'QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY');
    await s.history('workflow');
  });
  await s.rpc('missing', 'QueryWorkflow', {
    execution: { workflowId: s.workflowId('missing') },
    query: { queryType: 'state' },
  });
};

scenarios.query_no_worker = async (s) => {
  // never completed a task: the server must answer within the caller's deadline
  await s.start('listener');
  await s.outcome(
    'deadline 3 s',
    s.connection.withDeadline(Date.now() + 3000, () =>
      s.service.queryWorkflow({
        namespace,
        execution: { workflowId: s.workflowId() },
        query: { queryType: 'state' },
      }),
    ),
  );
  await s.client.workflow.getHandle(s.workflowId()).terminate();
};

scenarios.update = (s) =>
  s.worker(async () => {
    const handle = await s.start('listener');
    await s.events(4);
    await s.rpc(
      'accepted and completed',
      'UpdateWorkflowExecution',
      s.updateRequest('add', [5], 'u1'),
    );
    await s.rpc(
      'rejected by validator',
      'UpdateWorkflowExecution',
      s.updateRequest('add', [-1], 'u2'),
    );
    await s.history('after rejection');
    await s.rpc('unknown handler', 'UpdateWorkflowExecution', s.updateRequest('nosuch', [1], 'u3'));
    await s.rpc('same id again', 'UpdateWorkflowExecution', s.updateRequest('add', [5], 'u1'));
    await s.rpc('fails', 'UpdateWorkflowExecution', s.updateRequest('addFail', [], 'u4'));
    await s.rpc(
      'async accepted',
      'UpdateWorkflowExecution',
      s.updateRequest('addSlow', [7], 'u5', 'ACCEPTED'),
    );
    await s.rpc('poll completed', 'PollWorkflowExecutionUpdate', {
      updateRef: { workflowExecution: { workflowId: s.workflowId() }, updateId: 'u5' },
      waitPolicy: { lifecycleStage: 'UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED' },
    });
    await s.rpc('poll unknown id', 'PollWorkflowExecutionUpdate', {
      updateRef: { workflowExecution: { workflowId: s.workflowId() }, updateId: 'nope' },
      waitPolicy: { lifecycleStage: 'UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED' },
    });
    await s.rpc(
      'stage admitted',
      'UpdateWorkflowExecution',
      s.updateRequest('add', [1], 'u6', 'ADMITTED'),
    );
    await s.rpc(
      'stage unspecified',
      'UpdateWorkflowExecution',
      s.updateRequest('add', [1], 'u7', 'UNSPECIFIED'),
    );
    await sleep(500);
    await handle.signal('go');
    await s.result('result', handle);
    await s.history('workflow');
    await s.describe('workflow');
    await s.rpc('after close', 'UpdateWorkflowExecution', s.updateRequest('add', [1], 'u9'));
    await s.rpc('poll after close', 'PollWorkflowExecutionUpdate', {
      updateRef: { workflowExecution: { workflowId: s.workflowId() }, updateId: 'u1' },
      waitPolicy: { lifecycleStage: 'UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED' },
    });
    await s.rpc(
      'missing workflow',
      'UpdateWorkflowExecution',
      s.updateRequest('add', [1], 'u10', 'COMPLETED', s.workflowId('missing')),
    );
  });

scenarios.update_before_first_task = async (s) => {
  const handle = await s.start('listener');
  const p = s.rpc('update', 'UpdateWorkflowExecution', s.updateRequest('add', [5], 'u1'));
  await sleep(500);
  await s.worker(async () => {
    await p;
    await handle.signal('go');
    await s.result('result', handle);
    await s.history('workflow');
  });
};

scenarios.update_accepted_then_closed = (s) =>
  s.worker(async () => {
    const handle = await s.start('listenerBriefUpdate');
    await s.rpc(
      'accepted',
      'UpdateWorkflowExecution',
      s.updateRequest('addSlow', [1], 'u1', 'ACCEPTED'),
    );
    const p = s.rpc('poll', 'PollWorkflowExecutionUpdate', {
      updateRef: { workflowExecution: { workflowId: s.workflowId() }, updateId: 'u1' },
      waitPolicy: { lifecycleStage: 'UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED' },
    });
    await sleep(300);
    await handle.signal('go');
    await s.result('result', handle);
    await p;
    await s.history('workflow');
  });

scenarios.update_with_start = (s) =>
  s.worker(async () => {
    const op = (policy, u) => ({
      operations: [
        {
          startWorkflow: {
            namespace,
            workflowId: s.workflowId(),
            workflowType: { name: 'listener' },
            taskQueue: { name: s.queue },
            identity,
            requestId: crypto.randomUUID(),
            workflowIdConflictPolicy: 'WORKFLOW_ID_CONFLICT_POLICY_' + policy,
          },
        },
        { updateWorkflow: { namespace, ...u } },
      ],
    });
    await s.rpc('new', 'ExecuteMultiOperation', op('FAIL', s.updateRequest('add', [3], 'u1')));
    await s.rpc(
      'existing use',
      'ExecuteMultiOperation',
      op('USE_EXISTING', s.updateRequest('add', [4], 'u2')),
    );
    await s.rpc(
      'existing fail',
      'ExecuteMultiOperation',
      op('FAIL', s.updateRequest('add', [4], 'u3')),
    );
    await s.rpc(
      'rejected',
      'ExecuteMultiOperation',
      op('USE_EXISTING', s.updateRequest('add', [-4], 'u4')),
    );
    await s.rpc('one operation only', 'ExecuteMultiOperation', {
      operations: op('FAIL', {}).operations.slice(0, 1),
    });
    const handle = s.client.workflow.getHandle(s.workflowId());
    await handle.signal('go');
    await s.result('result', handle);
    await s.history('workflow');
  });

module.exports = scenarios;
