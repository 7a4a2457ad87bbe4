// Volatile values become placeholders. An id keeps its identity inside one scenario: the same id is
// the same placeholder. The golden data was written through the same rules.
'use strict';

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

const texts = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, '<time>'],
  [/(webpack-internal|file):\/\/[^\s"')]*/g, '<path>'],
  [/(\/[\w@.+-]+){3,}\.(js|ts)(:\d+)*/g, '<path>'],
  [/127\.0\.0\.1:\d+/g, '<address>'],
  [/\b\d+@[\w.-]+/g, '<identity>'],
  [/\b[0-9a-f]{32}\b/g, '<hex>'],
  [/^\d+\.\d{5,9}s$/, '<duration>'],
  [/"seconds":\d{9,},"nanos":\d+/g, '<time>'],
  [/(@temporalio\/worker@[\d.]+)\+[0-9a-f]{16,}/g, '$1+<hash>'],
  [/please retry \([0-9a-f]+\)/, 'please retry (<hash>)'],
  [/Deadline exceeded after .*/, 'Deadline exceeded after <time>'],
];

// Fields whose value says nothing about behaviour, or differs from run to run.
const volatileFields = new Set(
  [
    'activeClusterName approximateBacklogAge backlogIncreaseRate binaryChecksum callbackHeader',
    'conflictToken encodedAttributes executionDuration externalPayloadCount',
    'externalPayloadSizeBytes historySizeBytes longPollToken nextPageToken nexusHeader',
    'operationToken ratePerSecond runTimeSinceStart serverVersion sizeBytes stackTrace',
    'stateSizeBytes taskId taskToken tasksAddRate tasksDispatchRate token totalHistorySizeBytes',
    'workerInstanceKey workflowTaskToken',
  ].flatMap((line) => line.split(' ')),
);

// normaliser(salt) -> (value) -> the value with placeholders. `salt` is what makes this run's names
// different from every other run's.
function normaliser(salt) {
  const seen = new Map();
  const placeholder = (id) => {
    if (!seen.has(id)) seen.set(id, `<uuid-${seen.size + 1}>`);
    return seen.get(id);
  };
  const text = (string) =>
    texts.reduce(
      (done, [from, to]) => done.replace(from, to),
      string.replaceAll(salt, 'SALT').replace(uuid, placeholder),
    );
  const list = (values, key) =>
    /UsedFlags$/.test(key ?? '') ? [...values].sort((a, b) => a - b) : values;
  const walk = (value, key) => {
    if (value === null || value === undefined || typeof value === 'boolean') return value;
    if (Array.isArray(value)) return list(value, key).map((one) => walk(one, key));
    if (volatileFields.has(key) && value !== '') return `<${key}>`;
    if (typeof value === 'string') return text(value);
    if (typeof value !== 'object') return value;
    const members = Object.entries(value).filter(([name]) => name !== 'pollerScalingDecision');
    return Object.fromEntries(members.map(([name, one]) => [text(name), walk(one, name)]));
  };
  return walk;
}

module.exports = { normaliser };
