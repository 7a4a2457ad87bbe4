// Workflow tasks that fail, time out or are answered by hand.
'use strict';

const crypto = require('node:crypto');
const { payloads, seconds, sleep } = require('../scenario');

const scenarios = {};

const done = {
  commandType: 'COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION',
  completeWorkflowExecutionCommandAttributes: { result: payloads('raw') },
};

scenarios.wft_nondeterminism = async (s) => {
  const handle = await s.start('changing');
  await s.worker(() =>
    s.until(
      'timer fired',
      async () => (await s.pending()).workflowExecutionInfo.historyLength >= 8,
    ),
  );
  await handle.signal('note');
  await s.worker(
    async () => {
      await s.secondAttempt();
      await sleep(300);
    },
    { workflowBundle: s.changedBundle },
  );
  await s.describe('failing');
  await s.history('failing');
  await handle.terminate('enough');
  await s.history('terminated');
};

scenarios.wft_plain_error = (s) =>
  s.worker(async () => {
    const handle = await s.start('throwsPlain');
    await s.secondAttempt();
    await s.describe('failing');
    await s.history('failing');
    await handle.signal('note');
    await sleep(500);
    await s.history('after signal');
    await handle.terminate('enough');
    await s.history('terminated');
  });

scenarios.wft_unknown_type = (s) =>
  s.worker(async () => {
    const handle = await s.start('noSuchWorkflow');
    await s.secondAttempt();
    await s.history('failing');
    await handle.terminate('enough');
  });

scenarios.raw_unhandled_command = async (s) => {
  await s.startRaw('start');
  const t = await s.poll('poll 1');
  await s.rpc('signal', 'SignalWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
    signalName: 'x',
  });
  await s.history('buffered');
  await s.complete('complete with buffered signal', t, [done]);
  await s.history('after');
  const t2 = await s.poll('poll 2');
  await s.complete('complete', t2, [done]);
  await s.complete('complete twice', t2, [done]);
  await s.history('end');
};

scenarios.raw_bad_commands = async (s) => {
  const tries = {
    'activity without timeouts': [
      {
        commandType: 'COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK',
        scheduleActivityTaskCommandAttributes: {
          activityId: '1',
          activityType: { name: 'a' },
          taskQueue: { name: s.queue },
        },
      },
    ],
    'activity without id': [
      {
        commandType: 'COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK',
        scheduleActivityTaskCommandAttributes: {
          activityType: { name: 'a' },
          taskQueue: { name: s.queue },
          startToCloseTimeout: seconds(1),
        },
      },
    ],
    'timer without id': [
      {
        commandType: 'COMMAND_TYPE_START_TIMER',
        startTimerCommandAttributes: { startToFireTimeout: seconds(5) },
      },
    ],
    'timer zero': [
      {
        commandType: 'COMMAND_TYPE_START_TIMER',
        startTimerCommandAttributes: { timerId: 't', startToFireTimeout: seconds(0) },
      },
    ],
    'duplicate timer': [1, 2].map(() => ({
      commandType: 'COMMAND_TYPE_START_TIMER',
      startTimerCommandAttributes: { timerId: 't', startToFireTimeout: seconds(50) },
    })),
    'cancel unknown timer': [
      {
        commandType: 'COMMAND_TYPE_CANCEL_TIMER',
        cancelTimerCommandAttributes: { timerId: 'zz' },
      },
    ],
    'cancel unknown activity': [
      {
        commandType: 'COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK',
        requestCancelActivityTaskCommandAttributes: { scheduledEventId: 77 },
      },
    ],
    'child without type': [
      {
        commandType: 'COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION',
        startChildWorkflowExecutionCommandAttributes: { workflowId: s.workflowId('c') },
      },
    ],
    'child in unknown namespace': [
      {
        commandType: 'COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION',
        startChildWorkflowExecutionCommandAttributes: {
          namespace: 'no-such-namespace',
          workflowId: s.workflowId('c'),
          workflowType: { name: 'x' },
        },
      },
    ],
    'command after close': [
      done,
      {
        commandType: 'COMMAND_TYPE_START_TIMER',
        startTimerCommandAttributes: { timerId: 't', startToFireTimeout: seconds(5) },
      },
    ],
    'marker without name': [
      { commandType: 'COMMAND_TYPE_RECORD_MARKER', recordMarkerCommandAttributes: {} },
    ],
    'attributes missing': [{ commandType: 'COMMAND_TYPE_START_TIMER' }],
    'fail without failure': [
      {
        commandType: 'COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION',
        failWorkflowExecutionCommandAttributes: {},
      },
    ],
    'continue as new without type': [
      {
        commandType: 'COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION',
        continueAsNewWorkflowExecutionCommandAttributes: {},
      },
    ],
  };
  let i = 0;
  for (const [label, commands] of Object.entries(tries)) {
    const n = ++i,
      id = s.workflowId('n' + n),
      q = s.queue + '/n' + n;
    await s.rpc(undefined, 'StartWorkflowExecution', {
      workflowId: id,
      workflowType: { name: 'raw' },
      taskQueue: { name: q },
      requestId: crypto.randomUUID(),
    });
    const t = await s.poll(undefined, q);
    await s.complete(label, t, commands);
    await s.history(label, id);
    await s.rpc(undefined, 'TerminateWorkflowExecution', {
      workflowExecution: { workflowId: id },
    });
  }
};

scenarios.raw_wft_timeout = async (s) => {
  await s.startRaw('start', { workflowTaskTimeout: seconds(1) });
  const t = await s.poll('poll 1');
  await sleep(1800);
  await s.complete('late', t, [done]);
  await s.history('timed out');
  await s.describe('transient');
  const t2 = await s.poll('poll 2 transient');
  await s.complete('complete', t2, [done]);
  await s.history('end');
};

scenarios.raw_wft_failed = async (s) => {
  const f = (t, label) =>
    s.rpc(label, 'RespondWorkflowTaskFailed', {
      taskToken: t.taskToken,
      cause: 'WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE',
      failure: { message: 'raw', applicationFailureInfo: { type: 'R' } },
      identity: 'golden-raw',
    });
  await s.startRaw('start');
  await f(await s.poll('poll 1'), 'fail 1');
  await s.history('after 1');
  await f(await s.poll('poll 2'), 'fail 2');
  await s.history('after 2');
  await s.rpc('signal', 'SignalWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
    signalName: 'x',
  });
  await s.history('after signal');
  const t = await s.poll('poll 3');
  await s.complete('complete', t, [done]);
  await s.history('end');
};

scenarios.raw_buffered_order = async (s) => {
  // activity result, signal and timer arrive while a task is running
  await s.startRaw('start');
  const t = await s.poll(undefined);
  await s.complete(
    'first',
    t,
    [
      {
        commandType: 'COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK',
        scheduleActivityTaskCommandAttributes: {
          activityId: 'a',
          activityType: { name: 'a' },
          taskQueue: { name: s.queue },
          startToCloseTimeout: seconds(20),
        },
      },
      {
        commandType: 'COMMAND_TYPE_START_TIMER',
        startTimerCommandAttributes: { timerId: 't', startToFireTimeout: seconds(1) },
      },
    ],
    { forceCreateNewWorkflowTask: true },
  );
  const t2 = await s.poll(undefined);
  const a = await s.deadline(20000, () =>
    s.rpc('activity poll', 'PollActivityTaskQueue', {
      taskQueue: { name: s.queue },
      identity: 'golden-raw',
    }),
  );
  await s.rpc('activity done', 'RespondActivityTaskCompleted', {
    taskToken: a.taskToken,
    result: payloads(1),
  });
  await s.rpc('signal', 'SignalWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
    signalName: 'x',
  });
  await sleep(1800);
  await s.history('buffered');
  await s.complete('second', t2, [], {});
  await s.history('flushed');
  const t3 = await s.poll(undefined);
  await s.complete('third', t3, [done]);
  await s.history('end');
};

scenarios.raw_return_new_task = async (s) => {
  await s.startRaw('start');
  const t = await s.poll(undefined);
  await s.rpc('signal', 'SignalWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
    signalName: 'x',
  });
  const r = await s.complete('reply with next task', t, [], {
    returnNewWorkflowTask: true,
    stickyAttributes: {
      workerTaskQueue: {
        name: s.queue + '/sticky',
        kind: 'TASK_QUEUE_KIND_STICKY',
        normalName: s.queue,
      },
      scheduleToStartTimeout: seconds(2),
    },
  });
  if (r?.workflowTask?.taskToken?.length)
    await s.complete('second', r.workflowTask, [], {
      stickyAttributes: {
        workerTaskQueue: {
          name: s.queue + '/sticky',
          kind: 'TASK_QUEUE_KIND_STICKY',
          normalName: s.queue,
        },
        scheduleToStartTimeout: seconds(2),
      },
    });
  await s.rpc('signal 2', 'SignalWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
    signalName: 'y',
  });
  await s.history('sticky scheduled');
  await sleep(3000);
  await s.history('sticky expired?');
  const t3 = await s.poll('normal poll');
  await s.complete('third', t3, [done]);
  await s.history('end');
};

scenarios.raw_eager_activity = async (s) => {
  await s.startRaw('start');
  const t = await s.poll(undefined);
  await s.complete('reply', t, [
    {
      commandType: 'COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK',
      scheduleActivityTaskCommandAttributes: {
        activityId: 'a',
        activityType: { name: 'a' },
        taskQueue: { name: s.queue },
        startToCloseTimeout: seconds(20),
        requestEagerExecution: true,
      },
    },
  ]);
  await s.history('after');
  await s.rpc('terminate', 'TerminateWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
  });
};

module.exports = scenarios;
