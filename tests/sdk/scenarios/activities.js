// Activities of the scenarios.
'use strict';

const activity = require('@temporalio/activity');

exports.step = async (n) => n * n;

// Workflows whose activity may end; see the story of pauses.
const allowed = new Set();
exports.allow = (workflowId) => allowed.add(workflowId);

exports.untilAllowed = async () => {
  const { attempt, workflowExecution } = activity.activityInfo();
  if (!allowed.has(workflowExecution.workflowId)) throw new Error('not yet');
  return attempt;
};

exports.flaky = async (failures) => {
  const { attempt } = activity.activityInfo();
  if (attempt <= failures) throw new Error(`attempt ${attempt} fails`);
  return attempt;
};

// It fails to mend the first time that a workflow asks for it.
const asked = new Set();
exports.mend = async () => {
  const { workflowExecution } = activity.activityInfo();
  const again = asked.has(workflowExecution.workflowId);
  asked.add(workflowExecution.workflowId);
  return again;
};
