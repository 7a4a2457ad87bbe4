// What a program written for node does with a cluster; prints what it was told.
'use strict';

const fs = require('fs');
const { Client, Pool } = require('pg');

const cluster = JSON.parse(process.env.CLUSTER);
const options = {
  host: '127.0.0.1',
  port: cluster.port,
  user: 'admin',
  database: 'postgres',
  password: async () => cluster.token,
  ssl: { ca: fs.readFileSync(cluster.root_certificate), servername: cluster.endpoint },
};

async function connected() {
  const client = new Client(options);
  await client.connect();
  return client;
}

async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was expected to fail');
}

async function main() {
  const said = {};
  const ann = await connected();
  said.version = (await ann.query('SHOW server_version')).rows[0].server_version;
  said.types = (
    await ann.query(
      'SELECT $1::int AS n, $2::text AS t, $3::bool AS b, $4::json AS j, $5::text AS none',
      [7, 'é', true, { a: [1, 2] }, null],
    )
  ).rows[0];

  await ann.query('CREATE TABLE t (id bigint PRIMARY KEY, v bigint)');
  await ann.query('INSERT INTO t SELECT n, 10 FROM generate_series(1, 100) n');
  said.named = [];
  for (const id of [1, 2, 3]) {
    const named = { name: 'by id', text: 'SELECT id::int FROM t WHERE id = $1', values: [id] };
    said.named.push((await ann.query(named)).rows[0].id);
  }

  await ann.query('BEGIN');
  await ann.query('UPDATE t SET v = $1 WHERE id = $2', [99, 1]);
  await ann.query('ROLLBACK');
  said.rolled_back = (await ann.query('SELECT v FROM t WHERE id = 1')).rows[0].v;

  // Two change one row; who commits last has lost.
  const bob = await connected();
  await failure(bob.query('SELECT 1 FROM t')).catch(() => {}); // The table may be news to it.
  for (const client of [ann, bob]) {
    await client.query('BEGIN');
    await client.query('UPDATE t SET v = v + 1 WHERE id = 1');
  }
  await bob.query('COMMIT');
  const lost = await failure(ann.query('COMMIT'));
  said.loser = { code: lost.code, message: lost.message };
  said.left = (await ann.query('SELECT v FROM t WHERE id = 1')).rows[0].v;

  said.duplicate = (await failure(ann.query('INSERT INTO t VALUES (1, 1)'))).code;
  said.refused = (await failure(ann.query('LISTEN news'))).code;
  said.usable = (await ann.query('SELECT 1 AS one')).rows[0].one;

  const pool = new Pool({ ...options, max: 8 });
  const sums = Array.from({ length: 64 }, (_, i) =>
    pool.query('UPDATE t SET v = v + 1 WHERE id = $1', [i + 2]),
  );
  said.pooled = (await Promise.all(sums)).reduce((sum, result) => sum + result.rowCount, 0);
  await pool.end();

  said.job = (await ann.query('CREATE INDEX ASYNC t_v ON t (v)')).rows[0].job_id.length;
  await ann.end();
  await bob.end();
  console.log(JSON.stringify(said));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
