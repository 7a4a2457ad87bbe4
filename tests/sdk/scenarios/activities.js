// Activities of the scenarios.
'use strict';

const activity = require('@temporalio/activity');

exports.step = async (n) => n * n;

exports.flaky = async (failures) => {
  const { attempt } = activity.activityInfo();
  if (attempt <= failures) throw new Error(`attempt ${attempt} fails`);
  return attempt;
};
