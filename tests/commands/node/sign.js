// A token by AWS's own signer for JavaScript.
'use strict';

const { DsqlSigner } = require('@aws-sdk/dsql-signer');

const env = process.env;
const signer = new DsqlSigner({
  hostname: env.DSQL_ENDPOINT,
  region: env.AWS_REGION,
  credentials: {
    accessKeyId: env.AWS_ACCESS_KEY_ID,
    secretAccessKey: env.AWS_SECRET_ACCESS_KEY,
  },
});
const token =
  env.DSQL_USER === 'admin'
    ? signer.getDbConnectAdminAuthToken()
    : signer.getDbConnectAuthToken();
token.then((text) => console.log(text));
