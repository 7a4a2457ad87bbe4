// What every program here needs of the SDK: a connection once the server answers, workflow bundles,
// and silence where the SDK would log.
'use strict';

const { Connection } = require('@temporalio/client');
const { DefaultLogger, Runtime, Worker, bundleWorkflowCode } = require('@temporalio/worker');

const STARTING_MS_MAX = 15000;

// Only errors are worth a line: of a bundle that cannot be made, they are the reason.
const quiet = { trace() {}, debug() {}, info() {}, warn() {}, log() {}, error: console.error };

// A test that is told to end must end, so the SDK takes no signals.
Runtime.install({
  shutdownSignals: [],
  logger: new DefaultLogger('ERROR', () => {}),
  telemetryOptions: { logging: { forward: {}, filter: 'OFF' } },
});

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A connection exists once GetSystemInfo has answered: connecting asks for it. Reconnects quickly,
// because the server of a test comes back soon.
async function connect(address) {
  const channelArgs = {
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 500,
  };
  const end = Date.now() + STARTING_MS_MAX;
  for (;;) {
    try {
      return await Connection.connect({ address, connectTimeout: '1s', channelArgs });
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(50);
    }
  }
}

// The bundle of a file of workflows. Packages are found where NODE_PATH says.
function bundle(workflowsPath) {
  const packages = (process.env.NODE_PATH ?? '').split(':').filter(Boolean);
  const webpackConfigHook = (config) => {
    config.resolve.modules.push(...packages);
    return config;
  };
  return bundleWorkflowCode({ workflowsPath, webpackConfigHook, logger: quiet });
}

// Replays histories, each `{ workflowId, history }`, with the SDK's own replayer. Gives how many there
// were, and `{ workflowId, error }` of those that do not come to the same end.
async function replay(workflowBundle, histories) {
  const failures = [];
  let replayed = 0;
  for await (const result of Worker.runReplayHistories({ workflowBundle }, histories)) {
    replayed++;
    if (result.error) failures.push(result);
  }
  return { replayed, failures };
}

module.exports = { bundle, connect, replay, sleep };
