// Workflows of the scenarios.
'use strict';

const wf = require('@temporalio/workflow');

const { step, flaky } = wf.proxyActivities({
  startToCloseTimeout: '2s',
  retry: { initialInterval: '100ms', maximumInterval: '1s' },
});

exports.hello = async (name) => `hello ${name}`;

exports.chain = async (length) => {
  const results = [];
  for (let n = 1; n <= length; n++) results.push(await step(n));
  return results;
};

exports.retries = async (failures) => flaky(failures);

exports.timers = async (count) => {
  await Promise.all(Array.from({ length: count }, (_, n) => wf.sleep(50 * (n + 1))));
  const never = new wf.CancellationScope();
  const cancelled = never.run(() => wf.sleep('1h')).catch(wf.isCancellation);
  never.cancel();
  return [count, await cancelled];
};

exports.listener = async () => {
  const heard = [];
  wf.setHandler(wf.defineSignal('tell'), (word) => heard.push(word));
  wf.setHandler(wf.defineQuery('heard'), () => heard.length);
  const validator = (word) => {
    if (!word) throw new Error('a word is missing');
  };
  const ask = async (word) => {
    await step(heard.push(word));
    return heard.length;
  };
  wf.setHandler(wf.defineUpdate('ask'), ask, { validator });
  await wf.condition(() => heard.at(-1) === 'end' && wf.allHandlersFinished());
  return heard;
};

exports.failing = async () => {
  throw wf.ApplicationFailure.nonRetryable('out of stock', 'OutOfStock', { left: 0 });
};

exports.countdown = async (n) => (n ? wf.continueAsNew(n - 1) : 'lift-off');

exports.parent = async (names) => {
  const child = (name) => wf.executeChild('hello', { args: [name] });
  const greetings = await Promise.all(names.map(child));
  const failure = await wf.executeChild('failing').catch((error) => error.cause.type);
  return [...greetings, failure];
};
