// Workflows of the golden scenarios. Plain JS, bundled by the TypeScript SDK's worker.
'use strict';
const wf = require('@temporalio/workflow');
const {
  ApplicationFailure,
  ActivityCancellationType: ACT,
  ChildWorkflowCancellationType: CCT,
  ParentClosePolicy: PCP,
} = wf;

const quick = {
  startToCloseTimeout: '10s',
  retry: { initialInterval: '200ms', maximumAttempts: 5 },
};
const act = (o) => wf.proxyActivities({ ...quick, ...o });
const once = { retry: { maximumAttempts: 1 } };

const go = wf.defineSignal('go');
const note = wf.defineSignal('note');
const state = wf.defineQuery('state');
const badQuery = wf.defineQuery('bad');
const add = wf.defineUpdate('add');
const addSlow = wf.defineUpdate('addSlow');
const addFail = wf.defineUpdate('addFail');

exports.hello = async (name) => `hello ${name}`;
exports.fails = async () => {
  throw ApplicationFailure.create({
    message: 'no',
    type: 'Broken',
    nonRetryable: true,
    details: ['d'],
  });
};
exports.throwsPlain = async () => {
  throw new Error('plain');
};
exports.sleeper = async (ms) => {
  await wf.sleep(ms);
  return 'slept';
};

exports.activityOk = async () => act().echo('x');
exports.activityFail = async () => act(once).failWith('Oops', false);
exports.activityRetryOk = async () => act().failTimes(2);
exports.activityNonRetryable = async () => act().failWith('Fatal', true);
exports.activityNonRetryableType = async () =>
  act({ retry: { initialInterval: '100ms', nonRetryableErrorTypes: ['Listed'] } }).failWith(
    'Listed',
    false,
  );
exports.activityNextDelay = async () => act().failWithDelay();
exports.activityScheduleToStart = async (q) =>
  wf
    .proxyActivities({ taskQueue: q, startToCloseTimeout: '5s', scheduleToStartTimeout: '1s' })
    .echo('x');
exports.activityStartToClose = async () => act({ startToCloseTimeout: '1s', ...once }).hang();
exports.activityScheduleToClose = async () =>
  act({
    startToCloseTimeout: undefined,
    scheduleToCloseTimeout: '2s',
    retry: { initialInterval: '300ms', backoffCoefficient: 1 },
  }).failWith('Again', false);
exports.activityHeartbeatTimeout = async () =>
  act({ heartbeatTimeout: '1s', ...once }).beatThenHang();
exports.activityHeartbeatDetails = async () => act({ heartbeatTimeout: '5s' }).beatFailResume();
exports.activityDefaults = async () => {
  // three timeout shapes in one task, results ignored until all are back
  const a = wf.proxyActivities({ scheduleToCloseTimeout: '7s' }).echo(1);
  const b = wf.proxyActivities({ startToCloseTimeout: '3s' }).echo(2);
  const c = wf
    .proxyActivities({
      scheduleToCloseTimeout: '9s',
      startToCloseTimeout: '20s',
      scheduleToStartTimeout: '30s',
      heartbeatTimeout: '40s',
    })
    .echo(3);
  return [await a, await b, await c];
};
async function cancelActivity(type) {
  const a = act({ heartbeatTimeout: '2s', cancellationType: type });
  const scope = new wf.CancellationScope();
  const p = scope.run(() => a.untilCancelled());
  await wf.sleep(800);
  scope.cancel();
  try {
    await p;
    return 'completed';
  } catch (e) {
    return wf.isCancellation(e) ? 'cancelled' : String(e);
  }
}
exports.activityCancelTry = () => cancelActivity(ACT.TRY_CANCEL);
exports.activityCancelWait = () => cancelActivity(ACT.WAIT_CANCELLATION_COMPLETED);
exports.activityCancelAbandon = () => cancelActivity(ACT.ABANDON);
exports.activityCancelUnstarted = async (q) => {
  const scope = new wf.CancellationScope();
  const p = scope.run(() =>
    wf
      .proxyActivities({
        taskQueue: q,
        startToCloseTimeout: '5s',
        cancellationType: ACT.WAIT_CANCELLATION_COMPLETED,
      })
      .echo('x'),
  );
  await wf.sleep(500);
  scope.cancel();
  try {
    await p;
    return 'completed';
  } catch (e) {
    return wf.isCancellation(e) ? 'cancelled' : String(e);
  }
};
exports.asyncCompletion = async () => act({ startToCloseTimeout: '20s' }).later();
exports.fanOut = async () => {
  const a = [1, 2, 3].map((i) => act().echo(i));
  const t = wf.sleep(700);
  const c = wf.executeChild('hello', {
    args: ['kid'],
    workflowId: wf.workflowInfo().workflowId + '/kid',
  });
  const r = await Promise.all(a);
  await t;
  return [r, await c];
};

exports.timer = async () => {
  await wf.sleep(300);
  return 'fired';
};
exports.timerCancelled = async () => {
  const scope = new wf.CancellationScope();
  const p = scope
    .run(() => wf.sleep('1h'))
    .catch((e) => (wf.isCancellation(e) ? 'cancelled' : 'other'));
  await wf.sleep(300);
  scope.cancel();
  return p;
};
exports.timerStartCancelSameTask = async () => {
  const scope = new wf.CancellationScope();
  const p = scope.run(() => wf.sleep('1h')).catch(() => 'cancelled');
  scope.cancel();
  return p;
};
exports.localOk = async () => wf.proxyLocalActivities({ startToCloseTimeout: '5s' }).echo('l');
exports.localRetry = async () =>
  wf
    .proxyLocalActivities({ startToCloseTimeout: '5s', retry: { initialInterval: '50ms' } })
    .failTimes(2);
exports.localFail = async () =>
  wf
    .proxyLocalActivities({ startToCloseTimeout: '5s', retry: { maximumAttempts: 1 } })
    .failWith('L', false);
exports.localSlow = async () => wf.proxyLocalActivities({ startToCloseTimeout: '30s' }).wait(9500); // forces a heartbeat of the workflow task

// waits for `go`; counts `note`; answers `state`
exports.listener = async () => {
  let open = true;
  const notes = [];
  let sum = 0;
  wf.setHandler(go, () => {
    open = false;
  });
  wf.setHandler(note, (x) => {
    notes.push(x);
  });
  wf.setHandler(state, () => ({ notes, sum }));
  wf.setHandler(badQuery, () => {
    throw new Error('query broke');
  });
  wf.setHandler(add, (n) => (sum += n), {
    validator: (n) => {
      if (n < 0) throw new Error('negative');
    },
  });
  wf.setHandler(addSlow, async (n) => {
    await wf.sleep(600);
    sum += n;
    return sum;
  });
  wf.setHandler(addFail, async () => {
    throw ApplicationFailure.nonRetryable('update failed', 'UpdateBroken');
  });
  await wf.condition(() => !open);
  return { notes, sum };
};
exports.listenerBriefUpdate = async () => {
  // closes while an accepted update still runs
  wf.setHandler(addSlow, async () => {
    await wf.sleep('1h');
  });
  let open = true;
  wf.setHandler(go, () => {
    open = false;
  });
  await wf.condition(() => !open);
  return 'closed';
};
exports.waitCancel = async () => {
  try {
    await wf.sleep('1h');
    return 'slept';
  } catch (e) {
    if (!wf.isCancellation(e)) throw e;
    await wf.CancellationScope.nonCancellable(() => act().echo('cleanup'));
    throw e;
  }
};
exports.ignoreCancel = async () => {
  await wf.CancellationScope.nonCancellable(() => wf.sleep(600));
  return 'ignored';
};

const childId = (s) => wf.workflowInfo().workflowId + '/' + s;
exports.childOk = async () =>
  wf.executeChild('hello', { args: ['child'], workflowId: childId('c') });
exports.childFail = async () => wf.executeChild('fails', { workflowId: childId('c') });
exports.childExists = async () => {
  await wf.startChild('listener', { workflowId: childId('c') });
  return wf.executeChild('hello', { args: ['x'], workflowId: childId('c') });
};
exports.childTimeout = async () =>
  wf.executeChild('listener', { workflowId: childId('c'), workflowRunTimeout: '1s' });
exports.childRetry = async () =>
  wf.executeChild('failTwice', {
    workflowId: childId('c'),
    retry: { initialInterval: '1s', maximumAttempts: 3 },
  });
exports.childCan = async () =>
  wf.executeChild('canThrice', { args: [1], workflowId: childId('c') });
exports.childWait = async () => wf.executeChild('listener', { workflowId: childId('c') }); // terminated from outside
async function childCancel(type, target) {
  const scope = new wf.CancellationScope();
  let h;
  const p = scope.run(async () => {
    h = await wf.startChild(target, { workflowId: childId('c'), cancellationType: type });
    return h.result();
  });
  await wf.sleep(700);
  scope.cancel();
  try {
    return await p;
  } catch (e) {
    return wf.isCancellation(e) ? 'cancelled' : String(e);
  }
}
exports.childCancelWait = () => childCancel(CCT.WAIT_CANCELLATION_COMPLETED, 'waitCancel');
exports.childCancelTry = () => childCancel(CCT.TRY_CANCEL, 'waitCancel');
exports.childCancelRequested = () => childCancel(CCT.WAIT_CANCELLATION_REQUESTED, 'waitCancel');
exports.childCancelAbandon = () => childCancel(CCT.ABANDON, 'waitCancel');
async function parentClose(policy) {
  await wf.startChild('waitCancel', { workflowId: childId('c'), parentClosePolicy: policy });
  return 'parent done';
}
exports.parentCloseTerminate = () => parentClose(PCP.TERMINATE);
exports.parentCloseCancel = () => parentClose(PCP.REQUEST_CANCEL);
exports.parentCloseAbandon = () => parentClose(PCP.ABANDON);
exports.childSignal = async () => {
  const h = await wf.startChild('listener', { workflowId: childId('c') });
  await h.signal('note', 'from parent');
  await h.signal('go');
  return h.result();
};

exports.externalSignal = async (id) => {
  await wf.getExternalWorkflowHandle(id).signal('go');
  return 'ok';
};
exports.externalCancel = async (id) => {
  await wf.getExternalWorkflowHandle(id).cancel();
  return 'ok';
};
const tolerant = (f) => async (id) => {
  try {
    await f(id);
    return 'ok';
  } catch (e) {
    return `${e.name}: ${e.message}`;
  }
};
exports.externalSignalMissing = tolerant((id) => wf.getExternalWorkflowHandle(id).signal('go'));
exports.externalCancelMissing = tolerant((id) => wf.getExternalWorkflowHandle(id).cancel());

exports.canThrice = async (n) => (n < 3 ? wf.continueAsNew(n + 1) : n);
exports.failTwice = async () => {
  const i = wf.workflowInfo();
  if (i.attempt < 3)
    throw ApplicationFailure.create({ message: `attempt ${i.attempt}`, type: 'Try' });
  return i.attempt;
};
exports.cronJob = async () => {
  const i = wf.workflowInfo();
  return { last: i.lastResult ?? null };
};
exports.upserts = async () => {
  wf.upsertMemo({ a: 1, b: null });
  wf.upsertSearchAttributes({ GoldenKeyword: ['k2'], GoldenInt: [7] });
  await wf.sleep(300);
  wf.upsertMemo({ a: null });
  wf.upsertSearchAttributes({ GoldenInt: [] });
  return 'ok';
};
exports.badUpsert = async () => {
  wf.upsertSearchAttributes({ NoSuchAttribute: ['x'] });
  return 'ok';
};
exports.patchedFlow = async () => {
  const v = wf.patched('change-1') ? 'new' : 'old';
  await wf.sleep(200);
  wf.deprecatePatch('change-2');
  return v;
};
exports.changing = async () => {
  // replaced in workflows-b.js: first command differs
  let open = true;
  wf.setHandler(go, () => {
    open = false;
  });
  await wf.sleep(200);
  await wf.condition(() => !open);
  return 'a';
};
exports.pausable = async () =>
  act({
    startToCloseTimeout: '20s',
    retry: { initialInterval: '300ms', backoffCoefficient: 1, maximumAttempts: 100 },
  }).failUntilFlag();
exports.pinned = async () => {
  let open = true;
  wf.setHandler(go, () => {
    open = false;
  });
  await wf.condition(() => !open);
  return 'pinned';
};
wf.setWorkflowOptions({ versioningBehavior: 'PINNED' }, exports.pinned);
exports.versioned = async () => {
  let open = true;
  wf.setHandler(go, () => {
    open = false;
  });
  await wf.condition(() => !open);
  return 'v';
};
wf.setWorkflowOptions({ versioningBehavior: 'AUTO_UPGRADE' }, exports.versioned);

exports.nexusCall = async (endpoint, op, input) => {
  const { createNexusServiceClient } = wf;
  const svc = require('./nexus_service');
  const c = createNexusServiceClient({ endpoint, service: svc.service });
  return c.executeOperation(op, input, { scheduleToCloseTimeout: '10s' });
};
