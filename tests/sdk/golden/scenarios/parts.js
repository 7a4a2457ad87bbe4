// Worker deployments, Nexus operations and activities without a workflow.
'use strict';

const crypto = require('node:crypto');
const { nexusHandler } = require('../activities');
const { namespace, payloads, seconds, sleep } = require('../scenario');

const scenarios = {};

scenarios.worker_deployment = async (s) => {
  const dep = `golden-${s.salt}`,
    opts = (b) => ({
      workerDeploymentOptions: {
        version: { deploymentName: dep, buildId: b },
        useWorkerVersioning: true,
        defaultVersioningBehavior: 'AUTO_UPGRADE',
      },
    });
  await s.worker(async () => {
    await s.until('version', async () => {
      try {
        const d = await s.service.describeWorkerDeployment({
          namespace,
          deploymentName: dep,
        });
        return d.workerDeploymentInfo.versionSummaries.length >= 1;
      } catch {
        return false;
      }
    });
    await s.rpc('before', 'DescribeWorkerDeployment', { deploymentName: dep });
    await s.rpc('set current', 'SetWorkerDeploymentCurrentVersion', {
      deploymentName: dep,
      buildId: '1.0',
      ignoreMissingTaskQueues: true,
    });
    await s.rpc('set current unknown', 'SetWorkerDeploymentCurrentVersion', {
      deploymentName: dep,
      buildId: '9.9',
    });
    await s.rpc('describe version', 'DescribeWorkerDeploymentVersion', {
      deploymentVersion: { deploymentName: dep, buildId: '1.0' },
    });
    await s.rpc('describe missing', 'DescribeWorkerDeployment', { deploymentName: dep + 'x' });
    for (const t of ['pinned', 'versioned']) {
      const handle = await s.start(t, [], { workflowId: s.workflowId(t) });
      await s.until(
        'first task',
        async () => (await s.pending(s.workflowId(t))).workflowExecutionInfo.historyLength >= 4,
      );
      await s.describe(t + ' open', s.workflowId(t));
      await handle.signal('go');
      await s.result(t, handle);
      await s.history(t, s.workflowId(t));
    }
    await s.rpc('ramp', 'SetWorkerDeploymentRampingVersion', {
      deploymentName: dep,
      buildId: '',
      percentage: 10,
      ignoreMissingTaskQueues: true,
    });
    await s.rpc('after', 'DescribeWorkerDeployment', { deploymentName: dep });
  }, opts('1.0'));
};

scenarios.nexus = async (s) => {
  const ep = `golden-${s.salt}`;
  const c = await s.rpc('create endpoint', 'CreateNexusEndpoint', {
    spec: { name: ep, target: { worker: { namespace, taskQueue: s.queue } } },
  });
  await s.rpc('create duplicate', 'CreateNexusEndpoint', {
    spec: { name: ep, target: { worker: { namespace, taskQueue: s.queue } } },
  });
  await s.worker(
    async () => {
      await sleep(1500); // endpoint registries are read with a delay
      for (const [label, args] of Object.entries({
        sync: [ep, 'hi', 'you'],
        failing: [ep, 'broken', 'x'],
        flow: [ep, 'flow', { name: 'nexus', id: s.workflowId('target') }],
      })) {
        const handle = await s.start('nexusCall', args, {
          workflowId: s.workflowId(label),
          workflowExecutionTimeout: '25s',
        });
        await s.result(label, handle);
        await s.history(label, s.workflowId(label));
      }
      await s.history('flow target', s.workflowId('target'));
      await s.describe('flow target', s.workflowId('target'));
      const u = await s.start('nexusCall', ['no-such-endpoint', 'hi', 'x'], {
        workflowId: s.workflowId('unknown'),
      });
      await s.until(
        'failure',
        async () => {
          const p = await s.pending(s.workflowId('unknown'));
          return p.pendingWorkflowTask?.attempt > 1 || p.workflowExecutionInfo.status > 1;
        },
        12000,
      );
      await s.history('unknown endpoint', s.workflowId('unknown'));
      await u.terminate('tidy').catch(() => {});
    },
    { nexusServices: [nexusHandler] },
  );
  if (c) {
    await s.rpc('get endpoint', 'GetNexusEndpoint', { id: c.endpoint.id });
    await s.rpc('delete endpoint', 'DeleteNexusEndpoint', {
      id: c.endpoint.id,
      version: c.endpoint.version,
    });
  }
};

scenarios.standalone_activity = (s) =>
  s.worker(async () => {
    const st = (label, id, type, o = {}) =>
      s.rpc(label, 'StartActivityExecution', {
        activityId: id,
        activityType: { name: type },
        taskQueue: { name: s.queue },
        startToCloseTimeout: seconds(10),
        requestId: crypto.randomUUID(),
        ...o,
      });
    const poll = (label, id) => s.rpc(label, 'PollActivityExecution', { activityId: id });
    await st('start', s.workflowId('a'), 'echo', { input: payloads('solo') });
    await poll('poll', s.workflowId('a'));
    await s.rpc('describe', 'DescribeActivityExecution', {
      activityId: s.workflowId('a'),
      includeInput: true,
      includeOutcome: true,
    });
    await st('duplicate id, closed, reject', s.workflowId('a'), 'echo', {
      idReusePolicy: 'ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE',
    });
    await st('no timeouts', s.workflowId('b'), 'echo', { startToCloseTimeout: null });
    await st('fails', s.workflowId('f'), 'failWith', { input: payloads('Solo', true) });
    await poll('poll failed', s.workflowId('f'));
    await st('running', s.workflowId('r'), 'untilCancelled', { heartbeatTimeout: seconds(5) });
    await st('duplicate running', s.workflowId('r'), 'echo');
    await sleep(500);
    await s.rpc('cancel', 'RequestCancelActivityExecution', {
      activityId: s.workflowId('r'),
      requestId: crypto.randomUUID(),
      reason: 'golden',
    });
    await poll('poll cancelled', s.workflowId('r'));
    await s.rpc('describe missing', 'DescribeActivityExecution', {
      activityId: s.workflowId('missing'),
    });
  });

module.exports = scenarios;
