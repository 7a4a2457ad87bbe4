// The second version of one workflow, for the scenario of non-determinism.
'use strict';

const wf = require('@temporalio/workflow');

exports.changing = async () => wf.proxyActivities({ startToCloseTimeout: '5s' }).echo('b');
