// Workflows of the scenarios.
'use strict';

const wf = require('@temporalio/workflow');

const { step, flaky, mend } = wf.proxyActivities({
  startToCloseTimeout: '2s',
  retry: { initialInterval: '100ms', maximumInterval: '1s' },
});

const { untilAllowed } = wf.proxyActivities({
  startToCloseTimeout: '20s',
  retry: { initialInterval: '100ms', backoffCoefficient: 1 },
});

exports.stubborn = async () => untilAllowed();

// Its search attributes and its memo change; those of its child and of its next run are given.
exports.labelled = async (colour) => {
  const searchAttributes = { StoryKeyword: [colour] };
  if (wf.workflowInfo().continuedFromExecutionRunId) {
    wf.upsertMemo({ colour, removed: null });
    await wf.executeChild('hello', { args: [colour], searchAttributes, memo: { colour } });
    return wf.workflowInfo().searchAttributes;
  }
  wf.upsertSearchAttributes(searchAttributes);
  const { workflowType } = wf.workflowInfo();
  const next = { workflowType, searchAttributes, memo: { removed: true } };
  return wf.makeContinueAsNewFunc(next)(colour);
};

exports.mislabelled = async () => wf.upsertSearchAttributes({ NoSuchAttribute: ['red'] });

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
  wf.setHandler(wf.defineQuery('broken'), () => {
    throw new Error('no answer today');
  });
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

// Lets updates pass once it is open.
exports.gate = async () => {
  let open = false;
  let closed = false;
  wf.setHandler(wf.defineSignal('open'), () => void (open = true));
  wf.setHandler(wf.defineSignal('close'), () => void (closed = true));
  wf.setHandler(wf.defineUpdate('pass'), async (name) => {
    await wf.condition(() => open);
    return `${name} passed`;
  });
  await wf.condition(() => closed && wf.allHandlersFinished());
};

// Begins a chapter, in a run of its own, after every fifth page.
exports.book = async (chapters) => {
  const pages = [];
  let closed = false;
  wf.setHandler(wf.defineSignal('close'), () => void (closed = true));
  wf.setHandler(wf.defineUpdate('write'), async (page) => {
    await step(page);
    pages.push(page);
    return page;
  });
  await wf.condition(() => (closed || pages.length >= 5) && wf.allHandlersFinished());
  if (!closed) await wf.continueAsNew([...chapters, pages]);
  return [...chapters, pages];
};

exports.failing = async () => {
  throw wf.ApplicationFailure.nonRetryable('out of stock', 'OutOfStock', { left: 0 });
};

exports.mended = async () => {
  await step(1);
  if (!(await mend())) throw wf.ApplicationFailure.nonRetryable('broken');
  return 'mended';
};

exports.ticking = async () => [...(wf.workflowInfo().lastResult ?? []), 'tick'];

exports.countdown = async (n) => (n ? wf.continueAsNew(n - 1) : 'lift-off');

exports.parent = async (names) => {
  const child = (name) => wf.executeChild('hello', { args: [name] });
  const greetings = await Promise.all(names.map(child));
  const failure = await wf.executeChild('failing').catch((error) => error.cause.type);
  return [...greetings, failure];
};
