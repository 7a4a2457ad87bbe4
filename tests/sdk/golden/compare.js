// Compares what a server answered in a scenario with the golden data, and says where they differ.
//
// A difference is { path, golden, ours }. Events of a history are aligned by their type, so that one
// event too many is one difference. Ids are equal if they stand for each other everywhere.
'use strict';

const ABSENT = 'absent';
const ID = /<uuid-\d+>/g;
const WORKFLOW_TASK = /^EVENT_TYPE_WORKFLOW_TASK_(SCHEDULED|STARTED|COMPLETED)$/;

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const isHistory = (value) => Array.isArray(value) && Boolean(value[0]?.eventType);
const shortType = (event) => event.eventType.replace(/^EVENT_TYPE_/, '');

// ---- Rules ---------------------------------------------------------------------------------------

function matches(pattern, path) {
  if (!pattern.length) return !path.length;
  if (pattern[0] === '**')
    return matches(pattern.slice(1), path) || (path.length > 0 && matches(pattern, path.slice(1)));
  if (!path.length || (pattern[0] !== '*' && pattern[0] !== String(path[0]))) return false;
  return matches(pattern.slice(1), path.slice(1));
}

// What tells an event from others of its type, wherever it stands in the history.
function eventName(event, events) {
  const key = Object.keys(event).find((name) => /EventAttributes$/.test(name));
  const attributes = event[key] ?? {};
  const scheduled = events.find((one) => one.eventId === attributes.scheduledEventId);
  const initiated = events.find((one) => one.eventId === attributes.initiatedEventId);
  const about =
    attributes.activityId ??
    attributes.timerId ??
    attributes.signalName ??
    attributes.workflowId ??
    ((scheduled ?? initiated) ? eventName(scheduled ?? initiated, []) : '');
  return WORKFLOW_TASK.test(event.eventType) ? '<workflow task>' : `<${shortType(event)} ${about}>`;
}

// The event of the parent is one of another history.
const isEventId = (name) => /EventId$/.test(name) && name !== 'parentInitiatedEventId';

function withoutIds(value, names) {
  if (Array.isArray(value)) return value.map((one) => withoutIds(one, names));
  if (!isObject(value)) return typeof value === 'string' ? value.replace(ID, '<uuid>') : value;
  const members = Object.entries(value).filter(([name]) => name !== 'eventId');
  return Object.fromEntries(
    members.map(([name, one]) => {
      if (name === 'requestId') return [name, '<request>'];
      return [name, isEventId(name) ? (names.get(one) ?? '<event>') : withoutIds(one, names)];
    }),
  );
}

// The events as a set: without workflow tasks and the types that the rule drops, with names in the
// place of event ids, sorted.
function anyOrder(events, { drop }) {
  if (!isHistory(events)) return events;
  const names = new Map(events.map((event) => [event.eventId, eventName(event, events)]));
  return events
    .filter(({ eventType }) => !WORKFLOW_TASK.test(eventType) && !drop?.test(eventType))
    .map((event) => withoutIds(event, names))
    .map((event) => [JSON.stringify(event), event])
    .sort(([left], [right]) => (left < right ? -1 : Number(left > right)))
    .map(([, event]) => event);
}

const actions = {
  ignore: () => undefined,
  'any order': anyOrder,
  'first events': (events, { count }) => (isHistory(events) ? events.slice(0, count) : events),
  'without ids': (value) => withoutIds(value, new Map()),
};

// The value with the rules applied; rules.js says what a rule is. The first that matches wins.
function applyRules(value, rules, path = []) {
  const rule = rules.find(({ at }) => matches(at, path));
  if (rule) return actions[rule.action](value, rule);
  if (Array.isArray(value)) return value.map((one, i) => applyRules(one, rules, [...path, i]));
  if (!isObject(value)) return value;
  const done = {};
  for (const [name, one] of Object.entries(value)) {
    const kept = applyRules(one, rules, [...path, name]);
    if (kept !== undefined) done[name] = kept;
  }
  return done;
}

// ---- Differences ---------------------------------------------------------------------------------

// Pairs of events of one type in the order of both histories, as many as there can be, and of those
// as many equal ones as there can be. One side of a pair is absent where there is no partner.
function alignEvents(golden, ours) {
  const [left, right] = [golden, ours].map((events) => events.map((one) => JSON.stringify(one)));
  const likeness = (i, j) => {
    if (golden[i].eventType !== ours[j].eventType) return 0;
    return left[i] === right[j] ? 3 : 2;
  };
  const best = Array.from({ length: golden.length + 1 }, () => Array(ours.length + 1).fill(0));
  for (let i = golden.length - 1; i >= 0; i--)
    for (let j = ours.length - 1; j >= 0; j--) {
      const paired = likeness(i, j) && best[i + 1][j + 1] + likeness(i, j);
      best[i][j] = Math.max(paired, best[i + 1][j], best[i][j + 1]);
    }
  const pairs = [];
  let [i, j] = [0, 0];
  while (i < golden.length && j < ours.length) {
    if (likeness(i, j) && best[i][j] === best[i + 1][j + 1] + likeness(i, j))
      pairs.push([golden[i++], ours[j++]]);
    else if (best[i + 1][j] >= best[i][j + 1]) pairs.push([golden[i++], undefined]);
    else pairs.push([undefined, ours[j++]]);
  }
  while (i < golden.length) pairs.push([golden[i++], undefined]);
  while (j < ours.length) pairs.push([undefined, ours[j++]]);
  return pairs;
}

class Comparison {
  constructor() {
    this.found = [];
    this.theirs = new Map(); // Golden id -> ours, and the other way round.
    this.mine = new Map();
  }

  differ(path, golden, ours) {
    this.found.push({ path: path.join(' > '), golden, ours });
  }

  sameId(golden, ours) {
    if (!this.theirs.has(golden) && !this.mine.has(ours)) {
      this.theirs.set(golden, ours);
      this.mine.set(ours, golden);
    }
    return this.theirs.get(golden) === ours && this.mine.get(ours) === golden;
  }

  sameText(golden, ours) {
    const [ids, others] = [golden.match(ID) ?? [], ours.match(ID) ?? []];
    if (golden === '<duration>') return /^(<duration>|\d+(\.\d+)?s)$/.test(ours);
    if (golden.replace(ID, '<uuid>') !== ours.replace(ID, '<uuid>')) return false;
    return ids.every((id, i) => this.sameId(id, others[i]));
  }

  value(golden, ours, path) {
    if (golden === undefined || ours === undefined) {
      if (golden !== ours) this.differ(path, golden ?? ABSENT, ours ?? ABSENT);
    } else if (isHistory(golden) && isHistory(ours)) {
      this.history(golden, ours, path);
    } else if (Array.isArray(golden) && Array.isArray(ours)) {
      for (let i = 0; i < Math.max(golden.length, ours.length); i++)
        this.value(golden[i], ours[i], [...path, i]);
    } else if (isObject(golden) && isObject(ours)) {
      this.members(golden, ours, path);
    } else if (typeof golden === 'string' && typeof ours === 'string') {
      if (!this.sameText(golden, ours)) this.differ(path, golden, ours);
    } else if (golden !== ours) {
      this.differ(path, golden, ours);
    }
  }

  history(golden, ours, path) {
    for (const [theirs, mine] of alignEvents(golden, ours)) {
      const event = theirs ?? mine;
      const place = [...path, `event ${event.eventId ?? ''} ${shortType(event)}`];
      if (theirs && mine) this.value(theirs, mine, place);
      else this.differ(place, theirs ? 'present' : ABSENT, mine ? 'present' : ABSENT);
    }
  }

  // A member whose name is an id belongs to the one whose id stands for it.
  members(golden, ours, path) {
    const left = new Set(Object.keys(ours));
    const isId = (name) => name.replace(ID, '') === '';
    const partner = (name) => {
      const known = name.replace(ID, (id) => this.theirs.get(id) ?? id);
      if (!isId(name) || this.theirs.has(name)) return known;
      return [...left].find((one) => isId(one) && !this.mine.has(one)) ?? known;
    };
    for (const [name, value] of Object.entries(golden)) {
      const mine = partner(name);
      if (isId(name) && left.has(mine)) this.sameId(name, mine);
      this.value(value, left.delete(mine) ? ours[mine] : undefined, [...path, name]);
    }
    for (const name of left) this.differ([...path, name], ABSENT, ours[name]);
  }
}

// What of `ours` is not as in `golden`, after the rules were applied to both.
function differences(golden, ours, rules = []) {
  const comparison = new Comparison();
  comparison.value(applyRules(golden, rules), applyRules(ours, rules), []);
  return comparison.found;
}

const TEXT_MAX = 400;
function shown(value) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}... (${text.length} bytes)` : text;
}

// Three lines for each difference; at most `max` of them.
function describe(found, max) {
  const lines = found
    .slice(0, max)
    .flatMap(({ path, golden, ours }) => [
      `  ${path}`,
      `    golden  ${shown(golden)}`,
      `    ours    ${shown(ours)}`,
    ]);
  if (found.length > max) lines.push(`  and ${found.length - max} more`);
  return lines.join('\n');
}

module.exports = { applyRules, describe, differences };
