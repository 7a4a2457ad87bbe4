// What the comparison leaves out, by scenario. A rule says why: either two runs of one server differ
// there, by a race or by the time that passes, or our server differs on purpose.
//
//   at      a path in the data; `*` is any one step, `**` any number of them
//   action  'ignore'        the value is left out
//           'any order'     a history is a set of events: without workflow tasks, and with names in
//                           the place of event ids; `drop` leaves out more types
//           'first events'  only the first `count` events of a history count
//           'without ids'   ids of events, runs and requests are left out
'use strict';

const path = (text) => text.split(' > ');
const ignore = (at) => ({ action: 'ignore', at: path(at) });
const anyOrder = (at, drop) => ({ action: 'any order', at: path(at), drop });
const firstEvents = (at, count) => ({ action: 'first events', at: path(at), count });
const withoutIds = (at) => ({ action: 'without ids', at: path(at) });

// How many workflow tasks there are decides these.
const counts = [ignore('** > historyLength'), ignore('** > stateTransitionCount')];

const table = [
  {
    scenarios: ['fan_out', 'activity_timeout_defaults', 'activity_timeout_defaults_run_timeout'],
    reason: 'activities that run side by side end in any order and share workflow tasks',
    rules: [anyOrder('histories > *'), ...counts],
  },
  {
    scenarios: ['history_paging'],
    reason: 'the history is that of fan_out, so its ids depend on races',
    rules: [withoutIds('rpcs > *')],
  },
  {
    scenarios: ['external_cancel'],
    reason: 'the target is cancelled before or after its first task, which starts a timer',
    rules: [anyOrder('histories > *', /_TIMER_/)],
  },
  {
    scenarios: ['external_signal'],
    reason: 'the signal comes before, beside or after the first task of the target',
    rules: [anyOrder('histories > target')],
  },
  {
    scenarios: ['parent_close_request_cancel'],
    reason: 'the child is cancelled before, beside or after its first task, which starts a timer',
    rules: [
      anyOrder('histories > child run 1', /_TIMER_/),
      ignore('describes > child > ** > firstWorkflowTaskCompletedId'),
      ...counts,
    ],
  },
  {
    scenarios: ['parent_close_terminate'],
    reason: 'the child is terminated before, beside or after its first task, which starts a timer',
    rules: [
      anyOrder('histories > child run 1', /_TIMER_|WORKFLOW_TASK_FAILED/),
      ignore('describes > child > workflowExecutionInfo > autoResetPoints'),
      ignore('describes > child > workflowExecutionInfo > searchAttributes'),
      ignore('describes > child > workflowExecutionInfo > mostRecentWorkerVersionStamp'),
      ...counts,
    ],
  },
  {
    scenarios: ['parent_close_abandon'],
    reason: 'the child is looked at while it runs',
    rules: [firstEvents('histories > child run 1', 1), ignore('describes > child'), ...counts],
  },
  {
    scenarios: ['signal_with_start'],
    reason: 'two signals come in one workflow task or in two',
    rules: [anyOrder('histories > *')],
  },
  {
    scenarios: ['query'],
    reason: 'a signal comes before or after the first workflow task starts',
    rules: [anyOrder('histories > *')],
  },
  {
    scenarios: ['child_signal'],
    reason: 'parent and child run side by side',
    rules: [anyOrder('histories > *'), ...counts],
  },
  {
    scenarios: ['nexus'],
    reason: 'operations end beside workflow tasks; the failing task is tried again meanwhile',
    rules: [firstEvents('histories > unknown endpoint', 4), anyOrder('histories > *'), ...counts],
  },
  {
    scenarios: ['activity_pause'],
    reason: 'how many attempts there were depends on the time between the calls',
    rules: [ignore('** > attempt'), ignore('** > lastFailure'), ...counts],
  },
  {
    scenarios: ['activity_cancel_try', 'activity_cancel_wait', 'activity_cancel_abandon'],
    reason: 'how many heartbeats came depends on the time until the cancellation',
    rules: [ignore('** > heartbeatDetails'), ignore('** > stateTransitionCount')],
  },
  {
    scenarios: ['continue_as_new', 'cron'],
    reason: 'the delay of the next run is counted from the start of the last one, or there is none',
    rules: [ignore('** > firstWorkflowTaskBackoff'), ignore('** > stateTransitionCount')],
  },
  {
    scenarios: ['raw_bad_commands'],
    reason: 'a timer of no time has fired or not when the history is read',
    rules: [anyOrder('histories > timer zero', /TIMER_FIRED/)],
  },
  {
    scenarios: ['raw_wft_failed'],
    reason: 'the second attempt is scheduled or not yet when the history is read',
    rules: [firstEvents('histories > after 1', 4), firstEvents('histories > after 2', 4)],
  },
  {
    scenarios: ['raw_wft_timeout'],
    reason: 'the second attempt is scheduled or not yet when the history is read',
    rules: [
      firstEvents('histories > timed out', 4),
      ignore('describes > transient > pendingWorkflowTask'),
    ],
  },
  {
    scenarios: ['system'],
    reason: 'our server claims only what it has, and has no fixed columns of search attributes',
    rules: [
      ignore('rpcs > * > capabilities'),
      ignore('rpcs > * > namespaceInfo > capabilities'),
      ignore('rpcs > * > namespaceInfo > supportsSchedules'),
      ignore('rpcs > * > namespaceInfo > limits > workflowTaskCompletionSizeLimitError'),
      ignore('rpcs > * > config > customSearchAttributeAliases'),
    ],
  },
  {
    scenarios: ['describe_task_queue'],
    reason: 'a queue of our server has one partition',
    rules: [ignore('rpcs > partitions')],
  },
  {
    scenarios: ['activity_timeout_heartbeat'],
    reason: 'our server does not commit when a heartbeat has moved a timeout',
    rules: [ignore('** > stateTransitionCount')],
  },
  {
    scenarios: ['visibility'],
    reason: 'our server answers INVALID_ARGUMENT, so that clients do not repeat the call',
    rules: [ignore('errors > bad page token')],
  },
];

function rulesOf(scenario) {
  const mine = table.filter(({ scenarios }) => scenarios.includes(scenario));
  return mine.flatMap(({ rules }) => rules);
}

module.exports = { rulesOf, table };
