// The Nexus service that a workflow of the golden scenarios calls.
'use strict';

const nexus = require('nexus-rpc');

exports.service = nexus.service('golden', {
  hi: nexus.operation(),
  broken: nexus.operation(),
  flow: nexus.operation(),
});
