// Schedules, visibility, batches, task queues and what a server says about itself.
'use strict';

const crypto = require('node:crypto');
const { namespace, payload, payloads, seconds, sleep } = require('../scenario');

const scenarios = {};

scenarios.schedule = (s) =>
  s.worker(async () => {
    const scheduleId = s.workflowId('sched'),
      base = { scheduleId };
    const schedule = {
      spec: { interval: [{ interval: seconds(3600) }] },
      action: {
        startWorkflow: {
          workflowId: s.workflowId('run'),
          workflowType: { name: 'hello' },
          taskQueue: { name: s.queue },
          input: payloads('sched'),
        },
      },
      policies: { overlapPolicy: 'SCHEDULE_OVERLAP_POLICY_ALLOW_ALL' },
      state: { notes: 'n' },
    };
    await s.rpc('create', 'CreateSchedule', {
      ...base,
      schedule,
      requestId: crypto.randomUUID(),
      memo: { fields: { m: payload(1) } },
    });
    await s.rpc('create duplicate', 'CreateSchedule', {
      ...base,
      schedule,
      requestId: crypto.randomUUID(),
    });
    await s.rpc('bad spec', 'CreateSchedule', {
      scheduleId: scheduleId + 'x',
      schedule: { ...schedule, spec: { cronString: ['nonsense'] } },
      requestId: crypto.randomUUID(),
    });
    const desc = async (label) => {
      await s.rpc(label, 'DescribeSchedule', base);
      const i = s.out.rpcs[label]?.info;
      if (i?.futureActionTimes) i.futureActionTimes = `<${i.futureActionTimes.length} times>`;
    };
    await sleep(500);
    await desc('describe new');
    await s.rpc('trigger', 'PatchSchedule', {
      ...base,
      patch: { triggerImmediately: { overlapPolicy: 'SCHEDULE_OVERLAP_POLICY_ALLOW_ALL' } },
      requestId: crypto.randomUUID(),
    });
    await s.until(
      'trigger run',
      async () =>
        (await s.service.describeSchedule({ namespace, scheduleId })).info.actionCount >= 1,
    );
    await sleep(700);
    await desc('describe triggered');
    await s.rpc('pause', 'PatchSchedule', {
      ...base,
      patch: { pause: 'paused by golden' },
      requestId: crypto.randomUUID(),
    });
    await sleep(300);
    await desc('describe paused');
    const now = Math.floor(Date.now() / 3600000) * 3600;
    await s.rpc('backfill', 'PatchSchedule', {
      ...base,
      patch: {
        backfillRequest: [
          {
            startTime: seconds(now - 7300),
            endTime: seconds(now - 3500),
            overlapPolicy: 'SCHEDULE_OVERLAP_POLICY_ALLOW_ALL',
          },
        ],
      },
      requestId: crypto.randomUUID(),
    });
    await s.until(
      'backfill',
      async () =>
        (await s.service.describeSchedule({ namespace, scheduleId })).info.actionCount >= 3,
      8000,
    );
    await sleep(500);
    await s.rpc('unpause', 'PatchSchedule', {
      ...base,
      patch: { unpause: 'on' },
      requestId: crypto.randomUUID(),
    });
    await desc('describe end');
    const run = s.out.rpcs['describe triggered']?.info?.recentActions?.[0]?.startWorkflowResult;
    if (run) {
      await s.history('started by schedule', run.workflowId, run.runId);
      await s.describe('started by schedule', run.workflowId, run.runId);
    }
    await s.rpc('matching times', 'ListScheduleMatchingTimes', {
      ...base,
      startTime: seconds(now),
      endTime: seconds(now + 7200),
    });
    await s.rpc('delete', 'DeleteSchedule', base);
    await s.rpc('describe deleted', 'DescribeSchedule', base);
    await s.rpc('describe missing', 'DescribeSchedule', {
      scheduleId: s.workflowId('missing'),
    });
  });

scenarios.visibility = async (s) => {
  const mk = (n, close) =>
    s
      .rpc(undefined, 'StartWorkflowExecution', {
        workflowId: s.workflowId(n),
        workflowType: { name: 'vis' },
        taskQueue: { name: s.queue },
        requestId: crypto.randomUUID(),
        searchAttributes: {
          indexedFields: {
            GoldenKeyword: payload('vis' + s.salt),
            GoldenInt: payload(Number(n)),
          },
        },
      })
      .then(
        () =>
          close &&
          s.rpc(undefined, 'TerminateWorkflowExecution', {
            workflowExecution: { workflowId: s.workflowId(n) },
          }),
      );
  for (const n of ['1', '2', '3', '4']) await mk(n, n > '2');
  const q = `GoldenKeyword = 'vis${s.salt}'`;
  await s.until(
    'visible',
    async () =>
      Number(
        (
          await s.service.countWorkflowExecutions({
            namespace,
            query: q + " AND ExecutionStatus = 'Terminated'",
          })
        ).count,
      ) === 2,
  );
  await s.until(
    'visible',
    async () =>
      Number((await s.service.countWorkflowExecutions({ namespace, query: q })).count) === 4,
  );
  const list = (label, query, o = {}) =>
      s.rpc(label, 'ListWorkflowExecutions', { query, pageSize: 10, ...o }),
    count = (label, query) => s.rpc(label, 'CountWorkflowExecutions', { query });
  await list('all', q);
  await list('page of 3', q, { pageSize: 3 });
  await list('status', q + " AND ExecutionStatus = 'Running'");
  await list('int range', q + ' AND GoldenInt BETWEEN 2 AND 3');
  await list('in', q + ' AND GoldenInt IN (1, 4)');
  await list('prefix', `WorkflowId STARTS_WITH '${s.workflowId()}'`);
  await list('close null', q + ' AND CloseTime IS NULL');
  await list('or not', q + " AND NOT (GoldenInt = 1 OR WorkflowType != 'vis')");
  await count('count', q);
  await count('group by status', q + ' GROUP BY ExecutionStatus');
  await count('group by type', q + ' GROUP BY WorkflowType');
  await count('group by keyword', q + ' GROUP BY GoldenKeyword');
  await list('order by', q + ' ORDER BY StartTime');
  await list('unknown attribute', 'Nope = 1');
  await list('syntax', 'WorkflowId = ');
  await list('limit', q + ' LIMIT 2');
  await list('like', "WorkflowId LIKE 'x%'");
  await list('bad status', "ExecutionStatus = 'Sleeping'");
  await list('int with text', "GoldenInt = 'abc'");
  await list('bad page token', q, { nextPageToken: Buffer.from('xx') });
  await list('page size huge', q, { pageSize: 100000 });
  await s.rpc('scan', 'ScanWorkflowExecutions', { query: q, pageSize: 2 });
  await s.rpc('list open', 'ListOpenWorkflowExecutions', {
    maximumPageSize: 5,
    executionFilter: { workflowId: s.workflowId('1') },
  });
  await s.rpc('list closed', 'ListClosedWorkflowExecutions', {
    maximumPageSize: 5,
    executionFilter: { workflowId: s.workflowId('3') },
  });
  await s.rpc('list archived', 'ListArchivedWorkflowExecutions', { query: q });
  for (const n of ['1', '2'])
    await s.rpc(undefined, 'TerminateWorkflowExecution', {
      workflowExecution: { workflowId: s.workflowId(n) },
    });
};

scenarios.batch_terminate = async (s) => {
  for (const n of ['1', '2'])
    await s.startRaw(undefined, {
      workflowId: s.workflowId(n),
      searchAttributes: { indexedFields: { GoldenKeyword: payload('batch' + s.salt) } },
    });
  const query = `GoldenKeyword = 'batch${s.salt}'`;
  await s.until(
    'visible',
    async () => Number((await s.service.countWorkflowExecutions({ namespace, query })).count) === 2,
  );
  const jobId = crypto.randomUUID();
  await s.rpc('start', 'StartBatchOperation', {
    jobId,
    reason: 'golden',
    visibilityQuery: query,
    terminationOperation: {},
  });
  await s.closed(s.workflowId('1'));
  await s.closed(s.workflowId('2'));
  await s.until(
    'job',
    async () => (await s.service.describeBatchOperation({ namespace, jobId })).state === 2,
    20000,
  );
  await s.rpc('describe', 'DescribeBatchOperation', { jobId });
  await s.history('one', s.workflowId('1'));
  await s.rpc('no query', 'StartBatchOperation', {
    jobId: crypto.randomUUID(),
    reason: 'x',
    terminationOperation: {},
  });
  await s.rpc('missing job', 'DescribeBatchOperation', { jobId: 'nope' });
};

scenarios.delete = async (s) => {
  await s.startRaw(undefined);
  await s.rpc('delete open', 'DeleteWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId() },
  });
  await s.until('gone', async () => (await s.status()) === 0);
  await s.describe('after delete');
  await s.history('after delete');
  await s.rpc('delete missing', 'DeleteWorkflowExecution', {
    workflowExecution: { workflowId: s.workflowId('missing') },
  });
};

scenarios.describe_task_queue = (s) =>
  s.worker(async () => {
    const handle = await s.start('hello', ['q']);
    await s.result('result', handle);
    for (const [l, o] of Object.entries({
      workflow: {},
      activity: { taskQueueType: 'TASK_QUEUE_TYPE_ACTIVITY' },
      stats: { reportStats: true },
      status: { includeTaskQueueStatus: true },
    }))
      await s.rpc(l, 'DescribeTaskQueue', {
        taskQueue: { name: s.queue },
        taskQueueType: 'TASK_QUEUE_TYPE_WORKFLOW',
        ...o,
      });
    for (const r of Object.values(s.out.rpcs))
      if (r.pollers)
        r.pollers = `<${r.pollers.length > 0 ? 'some' : 'no'} pollers; fields ${Object.keys(r.pollers[0] ?? {}).join(' ')}>`;
    await s.rpc('partitions', 'ListTaskQueuePartitions', { taskQueue: { name: s.queue } });
    await s.rpc('empty name', 'DescribeTaskQueue', { taskQueue: {} });
  });

scenarios.system = async (s) => {
  await s.rpc('GetSystemInfo', 'GetSystemInfo', {});
  await s.rpc('GetClusterInfo', 'GetClusterInfo', {});
  await s.rpc('DescribeNamespace', 'DescribeNamespace', {});
  await s.rpc('ListSearchAttributes', 'ListSearchAttributes', {});
  await s.rpc('GetSearchAttributes', 'GetSearchAttributes', {});
};

scenarios.history_paging = (s) =>
  s.worker(async () => {
    const handle = await s.start('fanOut');
    await s.result('result', handle);
    const ex = { execution: { workflowId: s.workflowId() } };
    await s.rpc('close event filter', 'GetWorkflowExecutionHistory', {
      ...ex,
      historyEventFilterType: 'HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT',
    });
    await s.rpc('wait new, closed', 'GetWorkflowExecutionHistory', {
      ...ex,
      waitNewEvent: true,
      historyEventFilterType: 'HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT',
    });
    const p1 = await s.rpc(undefined, 'GetWorkflowExecutionHistory', {
      ...ex,
      maximumPageSize: 3,
    });
    s.out.results['first page'] = {
      asked: 3,
      events: p1.history.events.length,
      more: p1.nextPageToken.length > 0,
    };
    await s.rpc('reverse page', 'GetWorkflowExecutionHistoryReverse', {
      ...ex,
      maximumPageSize: 2,
    });
    await s.rpc('bad token', 'GetWorkflowExecutionHistory', {
      ...ex,
      nextPageToken: Buffer.from('junk'),
    });
  });

module.exports = scenarios;
