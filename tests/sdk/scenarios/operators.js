// Scenarios of what operators do with activities, and of the attributes that workflows set.
'use strict';

const assert = require('node:assert');

const { allow } = require('./activities');

const stories = {};

const PAUSED = 4; // PENDING_ACTIVITY_STATE_PAUSED
const KEYWORD = 2; // INDEXED_VALUE_TYPE_KEYWORD
const BAD_SEARCH_ATTRIBUTES = 23; // WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES

// Asks again until the answer is good; the time limit of the test is the bound.
async function until(ask, good) {
  for (;;) {
    const answer = await ask();
    if (good(answer)) return answer;
  }
}

async function listed(s, query) {
  const found = [];
  for await (const { workflowId } of s.client.workflow.list({ query })) found.push(workflowId);
  return found;
}

stories.pause = async (s) => {
  const handle = await s.start('stubborn');
  const { workflowId } = handle;
  const service = s.client.workflowService;
  const about = { namespace: 'default', execution: { workflowId }, identity: 'story', id: '1' };
  const pending = async () => (await handle.describe()).raw.pendingActivities[0];

  await until(pending, (activity) => activity?.attempt >= 2);
  await service.pauseActivity({ ...about, reason: 'noise' });
  const paused = await until(pending, ({ state }) => state === PAUSED);
  assert.equal(paused.pauseInfo.manual.reason, 'noise');
  const query = `TemporalPauseInfo = 'property:activityType=untilAllowed'`;
  assert.deepEqual(await listed(s, query), [workflowId]);

  const { activityOptions } = await service.updateActivityOptions({
    ...about,
    activityOptions: { startToCloseTimeout: { seconds: 33 } },
    updateMask: { paths: ['start_to_close_timeout'] },
  });
  assert.equal(activityOptions.startToCloseTimeout.seconds.toNumber(), 33);
  await service.resetActivity({ ...about, keepPaused: true });
  const { state, attempt } = await pending();
  assert.deepEqual([state, attempt], [PAUSED, 1]);

  allow(workflowId);
  await service.unpauseActivity(about);
  assert.equal(await handle.result(), 1);
  assert.deepEqual(await listed(s, query), []);
  return { pauses: 1 };
};

stories.attributes = async (s) => {
  await s.connection.operatorService.addSearchAttributes({
    namespace: 'default',
    searchAttributes: { StoryKeyword: KEYWORD },
  });
  const handle = await s.start('labelled', ['red']);
  assert.deepEqual(await handle.result(), { StoryKeyword: ['red'] });
  const { memo } = await handle.describe();
  assert.deepEqual(memo, { colour: 'red' });
  const found = await listed(s, `StoryKeyword = 'red'`);
  assert.equal(found.length, 3, 'both runs and the child');

  const bad = await s.start('mislabelled');
  const causes = async () =>
    (await s.history(s.runs.at(-1))).events
      .map((event) => event.workflowTaskFailedEventAttributes?.cause)
      .filter(Boolean);
  assert.deepEqual(await until(causes, ({ length }) => length > 0), [BAD_SEARCH_ATTRIBUTES]);
  await bad.terminate();
  return { attributes: found.length };
};

module.exports = stories;
