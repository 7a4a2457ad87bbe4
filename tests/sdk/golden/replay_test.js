// The SDK replays the golden histories with our copies of the workflows: the data still says what
// those workflows do. Times and ids that the data has lost get values that do not matter for that.
'use strict';

const assert = require('node:assert');
const path = require('node:path');

const { bundle, replay } = require('../sdk');
const { goldenData, goldenNames } = require('./expected');
const { root } = require('./proto_json');

const History = root.lookupType('temporal.api.history.v1.History');

// A workflow that only answers calls, or that fails its first task on purpose, proves nothing.
const NOT_OURS = new Set(['raw', 'vis', 'x', 'noSuchWorkflow', 'throwsPlain', 'badUpsert']);

const fields = {
  taskId: () => '1',
  historySizeBytes: () => '100',
  encodedAttributes: () => undefined,
};
let series = 0; // Counts the histories: no two may have the same run id.
const base64 = (text) => Buffer.from(text).toString('base64');

function payload({ metadata, data }) {
  const encoded = Object.entries(metadata).map(([name, text]) => [name, base64(text)]);
  const text = /^json\//.test(metadata.encoding ?? '') || !metadata.encoding;
  // A marker of a local activity says in JSON when it ended.
  const whole = data?.replace(/\{<time>\}/g, '{"seconds":1767323045,"nanos":0}');
  return { metadata: Object.fromEntries(encoded), data: data && text ? base64(whole) : data };
}

function duration(text) {
  const [, seconds, fraction] = text.match(/^(\d+)(?:\.(\d+))?s$/);
  return { seconds, nanos: Number((fraction ?? '').padEnd(9, '0')) };
}

// Golden JSON -> an object that the message History can be made from.
function restored(value, name) {
  if (fields[name]) return fields[name]();
  if (Array.isArray(value)) return value.map((one) => restored(one));
  if (value?.metadata?.encoding) return payload(value);
  if (value && typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, restored(one, key)]));
  if (value === '<time>') return { seconds: '1767323045' };
  if (value === '<time-zero>') return undefined;
  if (value === '<duration>') return duration('0.5s');
  if (typeof value !== 'string') return value;
  if (/^\d+(\.\d+)?s$/.test(value)) return duration(value);
  const uuid = (_, n) => `00000000-0000-4000-${8000 + series}-${n.padStart(12, '0')}`;
  return value.replace(/<uuid-(\d+)>/g, uuid);
}

// Every history that begins with a start and was made by a worker.
function* histories() {
  for (const scenario of goldenNames())
    for (const events of Object.values(goldenData(scenario).histories ?? {})) {
      const started = events[0]?.workflowExecutionStartedEventAttributes;
      if (!started || NOT_OURS.has(started.workflowType.name)) continue;
      if (!events.some((event) => event.workflowTaskCompletedEventAttributes)) continue;
      series++;
      const history = { events: events.map((event) => restored(event)) };
      yield { workflowId: started.workflowId, history: History.fromObject(history) };
    }
}

async function main() {
  const code = await bundle(path.join(__dirname, 'workflows.js'));
  const { replayed, failures } = await replay(code, histories());
  console.log(`${replayed} histories are replayed`);
  const told = failures.map(({ workflowId, error }) => `${workflowId}: ${error.message}`);
  console.log(told.join('\n'));
  assert.deepEqual(told, []);
  assert.ok(replayed > 90, 'golden data is missing');
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
