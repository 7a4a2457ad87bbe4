// Messages and gRPC errors of the API as JSON, by reflection: default values left out, enums by name,
// 64-bit integers as strings, payloads decoded, so that ids inside them can be normalised.
'use strict';

const proto = require('@temporalio/proto');

const root = proto.root ?? proto;
const base64 = (bytes) => Buffer.from(bytes).toString('base64');

function durationJson({ seconds, nanos }) {
  const whole = Number(seconds ?? 0);
  const fraction = nanos ? `.${String(Math.abs(nanos)).padStart(9, '0').replace(/0+$/, '')}` : '';
  return `${whole}${fraction}s`;
}

function payloadJson(payload) {
  const metadata = {};
  for (const key of Object.keys(payload.metadata ?? {}).sort())
    metadata[key] = Buffer.from(payload.metadata[key]).toString('utf8');
  const text = /^json\//.test(metadata.encoding ?? '') || !metadata.encoding;
  const json = { metadata };
  if (payload.data?.length)
    json.data = text ? Buffer.from(payload.data).toString('utf8') : base64(payload.data);
  return json;
}

function anyJson(any) {
  const url = any.type_url ?? any.typeUrl ?? '';
  try {
    const type = root.lookupType(url.replace(/^.*\//, ''));
    return { '@type': url, ...toJson(type, type.decode(any.value)) };
  } catch {
    return { '@type': url, value: base64(any.value ?? new Uint8Array()) };
  }
}

const wellKnown = {
  'google.protobuf.Timestamp': (m) => (Number(m.seconds ?? 0) <= 0 ? '<time-zero>' : '<time>'),
  'google.protobuf.Duration': durationJson,
  'google.protobuf.Any': anyJson,
  'google.protobuf.FieldMask': (m) => (m.paths ?? []).join(','),
  'temporal.api.common.v1.Payload': payloadJson,
};

function wrappedValue({ value }) {
  return value && typeof value === 'object' && 'low' in value ? String(value) : value;
}

function valueJson(field, value) {
  const type = field.resolvedType;
  if (type?.values && !type.fieldsArray) return type.valuesById[value] ?? value;
  if (type) return toJson(type, value);
  if (field.type === 'bytes') return base64(value);
  return /64$/.test(field.type) ? String(value) : value;
}

// A field of its own type has a default that is left out; a message or a member of a oneof has none.
function isDefault(field, value, json) {
  if (field.resolvedType?.fieldsArray || field.partOf) return false;
  return ['', 0, false, '0'].includes(json) || (field.resolvedType && value === 0);
}

function fieldJson(field, value) {
  if (field.map) {
    const keys = Object.keys(value).sort();
    if (!keys.length) return undefined;
    return Object.fromEntries(keys.map((key) => [key, valueJson(field, value[key])]));
  }
  if (field.repeated)
    return value.length ? Array.from(value, (one) => valueJson(field, one)) : undefined;
  const json = valueJson(field, value);
  return isDefault(field, value, json) ? undefined : json;
}

function toJson(type, message) {
  if (message == null) return message;
  const name = type.fullName.replace(/^\./, '');
  if (wellKnown[name]) return wellKnown[name](message);
  if (/^google\.protobuf\.\w+Value$/.test(name) && type.fields.value) return wrappedValue(message);
  const json = {};
  for (const field of type.fieldsArray) {
    field.resolve();
    if (!Object.prototype.hasOwnProperty.call(message, field.name)) continue;
    if (message[field.name] == null) continue;
    const value = fieldJson(field, message[field.name]);
    if (value !== undefined) json[field.name] = value;
  }
  return json;
}

const codes = [
  'OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS',
  'PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED',
  'INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED',
].flatMap((line) => line.split(' '));

// What a client can see of a failed call: code, message, types and values of the details.
function errorJson(error) {
  let grpc = error;
  while (grpc && typeof grpc.code !== 'number' && grpc.cause) grpc = grpc.cause;
  if (typeof grpc?.code !== 'number') return { thrown: error.name, message: error.message };
  const json = { code: codes[grpc.code] ?? grpc.code, message: grpc.details ?? grpc.message };
  const details = grpc.metadata?.get?.('grpc-status-details-bin')?.[0];
  if (details) {
    const status = root.lookupType('google.rpc.Status').decode(details);
    json.statusCode = codes[status.code] ?? status.code;
    json.details = status.details.map(anyJson);
  }
  return json;
}

const messageJson = (name, message) => toJson(root.lookupType(name), message);

module.exports = { errorJson, messageJson, root };
