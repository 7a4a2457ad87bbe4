// Child workflows, and signals and cancellations of other workflows.
'use strict';

const { sleep } = require('../scenario');

const scenarios = {};

function startedRun(s) {
  const started = s.out.histories.parent
    .map((event) => event.childWorkflowExecutionStartedEventAttributes)
    .find(Boolean);
  return started?.workflowExecution.runId;
}

// A parent and its child `c`. `during` acts while both run; `firstRun` names the child's first run.
function withChild(name, type, { during, firstRun, childCloses = true } = {}) {
  scenarios[name] = (s) =>
    s.worker(async () => {
      const handle = await s.start(type);
      await during?.(s);
      await s.result('result', handle);
      const child = s.workflowId('c');
      if (childCloses) await s.closed(child);
      await s.history('parent');
      await s.chain('child', child, firstRun?.(s));
      await s.describe('parent');
      await s.describe('child', child);
      const open = !childCloses && s.client.workflow.getHandle(child);
      if (open) await open.terminate('tidy').catch(() => {});
    });
}

withChild('child_ok', 'childOk');
withChild('child_failed', 'childFail');
withChild('child_timeout', 'childTimeout');
withChild('child_signal', 'childSignal');
withChild('child_cancel_wait', 'childCancelWait');
withChild('child_cancel_try', 'childCancelTry');
withChild('child_cancel_requested', 'childCancelRequested');
withChild('child_cancel_abandon', 'childCancelAbandon', { childCloses: false });
withChild('child_terminated', 'childWait', {
  during: async (s) => {
    await s.until('child', async () => (await s.status(s.workflowId('c'))) === 1);
    await sleep(500);
    await s.client.workflow.getHandle(s.workflowId('c')).terminate('outside');
  },
});
withChild('child_already_exists', 'childExists', { childCloses: true });
withChild('child_continue_as_new', 'childCan', { firstRun: startedRun });
withChild('child_retry', 'childRetry', { firstRun: startedRun });
withChild('parent_close_terminate', 'parentCloseTerminate');
withChild('parent_close_request_cancel', 'parentCloseCancel');
withChild('parent_close_abandon', 'parentCloseAbandon', { childCloses: false });

scenarios.external_signal = (s) =>
  s.worker(async () => {
    const t = await s.start('listener', [], { workflowId: s.workflowId('t') });
    const handle = await s.start('externalSignal', [s.workflowId('t')]);
    await s.result('result', handle);
    await s.result('target', t);
    await s.history('workflow');
    await s.history('target', s.workflowId('t'));
  });

scenarios.external_cancel = (s) =>
  s.worker(async () => {
    const t = await s.start('waitCancel', [], { workflowId: s.workflowId('t') });
    const handle = await s.start('externalCancel', [s.workflowId('t')]);
    await s.result('result', handle);
    await s.result('target', t);
    await s.history('workflow');
    await s.history('target', s.workflowId('t'));
  });

module.exports = scenarios;
