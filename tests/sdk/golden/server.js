// A connection to the server under test, as the golden scenarios need it. The search attributes that
// they use are registered before the first of them starts.
'use strict';

const crypto = require('node:crypto');
const path = require('node:path');

const { Client } = require('@temporalio/client');
const { NativeConnection } = require('@temporalio/worker');

const { bundle, connect } = require('../sdk');
const { root } = require('./proto_json');
const { identity, namespace, sleep } = require('./scenario');

const attributes = {
  GoldenKeyword: 'INDEXED_VALUE_TYPE_KEYWORD',
  GoldenInt: 'INDEXED_VALUE_TYPE_INT',
  GoldenDouble: 'INDEXED_VALUE_TYPE_DOUBLE',
};
const ALREADY_EXISTS = 6;
const TRIES_MAX = 50;

// A server that cannot register them fails the scenarios that use them, and those only.
async function registerAttributes(operator) {
  const type = root.lookupType('temporal.api.operatorservice.v1.AddSearchAttributesRequest');
  try {
    await operator.addSearchAttributes(
      type.fromObject({ namespace, searchAttributes: attributes }),
    );
  } catch (error) {
    if (error.code === ALREADY_EXISTS) return;
    console.log(`search attributes are not registered: ${error.details ?? error.message}`);
    return;
  }
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const listed = await operator.listSearchAttributes({ namespace }).catch(() => undefined);
    if ('GoldenKeyword' in (listed?.customAttributes ?? {})) return;
    await sleep(200);
  }
}

async function openServer(address) {
  const connection = await connect(address);
  const [native, ...bundles] = await Promise.all([
    NativeConnection.connect({ address }),
    bundle(path.join(__dirname, 'workflows.js')),
    bundle(path.join(__dirname, 'workflows_changed.js')),
  ]);
  await registerAttributes(connection.operatorService);
  return {
    connection,
    native,
    client: new Client({ connection, namespace, identity }),
    bundle: bundles[0],
    changedBundle: bundles[1],
    salt: `g${crypto.randomBytes(4).toString('hex')}`,
    async close() {
      await native.close();
      await connection.close();
    },
  };
}

module.exports = { openServer };
