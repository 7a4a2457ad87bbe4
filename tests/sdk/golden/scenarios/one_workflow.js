// Scenarios that run one workflow to its end and look at what it left.
'use strict';

const { waiting } = require('../activities');
const { payloads } = require('../scenario');

const scenarios = {};

// A worker, one workflow to its end, and what it left.
function simple(name, type, args = [], options = {}) {
  scenarios[name] = (s) =>
    s.worker(async () => {
      const handle = await s.start(type, typeof args === 'function' ? args(s) : args, options);
      await s.result('result', handle);
      await s.history('workflow');
      await s.describe('workflow');
    });
}

simple('hello', 'hello', ['world']);
simple('workflow_fails', 'fails');
simple('activity_ok', 'activityOk');
simple('activity_fail', 'activityFail');
simple('activity_retry_ok', 'activityRetryOk');
simple('activity_non_retryable', 'activityNonRetryable');
simple('activity_non_retryable_type', 'activityNonRetryableType');
simple('activity_next_retry_delay', 'activityNextDelay');
simple('activity_timeout_schedule_to_start', 'activityScheduleToStart', (s) => [
  s.queue + '/nobody',
]);
simple('activity_timeout_start_to_close', 'activityStartToClose');
simple('activity_timeout_schedule_to_close', 'activityScheduleToClose');
simple('activity_timeout_heartbeat', 'activityHeartbeatTimeout');
simple('activity_heartbeat_details', 'activityHeartbeatDetails');
simple('activity_timeout_defaults', 'activityDefaults');
simple('activity_timeout_defaults_run_timeout', 'activityDefaults', [], {
  workflowRunTimeout: '15s',
});
simple('activity_cancel_try', 'activityCancelTry');
simple('activity_cancel_wait', 'activityCancelWait');
simple('activity_cancel_abandon', 'activityCancelAbandon');
simple('activity_cancel_unstarted', 'activityCancelUnstarted', (s) => [s.queue + '/nobody']);
simple('fan_out', 'fanOut');
simple('timer', 'timer');
simple('timer_cancelled', 'timerCancelled');
simple('timer_start_cancel_same_task', 'timerStartCancelSameTask');
simple('local_activity_ok', 'localOk');
simple('local_activity_retry', 'localRetry');
simple('local_activity_fail', 'localFail');
simple('local_activity_slow_wft_heartbeat', 'localSlow');
simple('patch_markers', 'patchedFlow');
simple('run_timeout', 'sleeper', [60000], { workflowRunTimeout: '1s' });
simple('execution_timeout', 'sleeper', [60000], { workflowExecutionTimeout: '1s' });
simple('external_signal_missing', 'externalSignalMissing', (s) => [s.workflowId('missing')]);
simple('external_cancel_missing', 'externalCancelMissing', (s) => [s.workflowId('missing')]);
simple('start_options_echo', 'hello', ['m'], {
  memo: { m: 1 },
  staticSummary: 'sum',
  staticDetails: 'det',
  workflowTaskTimeout: '5s',
  workflowRunTimeout: '30s',
  workflowExecutionTimeout: '60s',
  retry: { maximumAttempts: 2 },
  priority: { priorityKey: 2 },
});

scenarios.activity_async_completion = (s) =>
  s.worker(async () => {
    const handle = await s.start('asyncCompletion');
    const tok = await s.until('token', () => waiting.get(s.workflowId()));
    await s.rpc('heartbeat', 'RecordActivityTaskHeartbeat', {
      taskToken: tok,
      details: payloads('hb'),
    });
    await s.describe('pending');
    await s.rpc('complete by id wrong', 'RespondActivityTaskCompletedById', {
      workflowId: s.workflowId(),
      activityId: 'nope',
      result: payloads(1),
    });
    await s.rpc('cancel without request', 'RespondActivityTaskCanceled', { taskToken: tok });
    await s.rpc('complete by id', 'RespondActivityTaskCompletedById', {
      workflowId: s.workflowId(),
      activityId: '1',
      result: payloads('later'),
    });
    await s.result('result', handle);
    await s.rpc('complete again', 'RespondActivityTaskCompleted', {
      taskToken: tok,
      result: payloads('again'),
    });
    await s.rpc('heartbeat after close', 'RecordActivityTaskHeartbeat', { taskToken: tok });
    await s.history('workflow');
  });

module.exports = scenarios;
