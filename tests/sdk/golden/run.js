// Runs the golden scenarios against a server and compares what it answers with the golden data.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const { describe, differences } = require('./compare');
const { expectedNow, goldenData, goldenNames } = require('./expected');
const { normaliser } = require('./normalise');
const { errorJson } = require('./proto_json');
const { rulesOf } = require('./rules');

const SCENARIO_MS_MAX = 60000;
const DIFFERENCES_SHOWN = 12;
const TRIES_ALONE = 2; // Of a scenario that differs beside others.
const SKIPPED = 77; // For ctest: nothing is expected to be equal.

const usage = `usage: run.js HOST:PORT [OPTION...] [SCENARIO...]

Runs the scenarios that expected.txt says must be equal, or those that are named; \`all\` names all.

  --keep FOLDER   write what the server answered, normalised, to FOLDER/SCENARIO.json
  --jobs N        scenarios side by side, 6 unless told
  --list          print the scenarios and what is expected of them`;

const folder = path.join(__dirname, 'scenarios');
const allScenarios = () =>
  Object.assign({}, ...fs.readdirSync(folder).map((file) => require(path.join(folder, file))));

function parse(argv) {
  const options = { jobs: 6, names: [] };
  const rest = [...argv];
  while (rest.length) {
    const word = rest.shift();
    if (word === '--keep') options.keep = rest.shift();
    else if (word === '--jobs') options.jobs = Number(rest.shift());
    else if (word === '--list') options.list = true;
    else if (word === '--help' || word === '-h') options.help = true;
    else if (word.startsWith('-')) throw new Error(`there is no option ${word}`);
    else if (!options.address) options.address = word;
    else options.names.push(word);
  }
  const unknown = options.names.filter((name) => name !== 'all' && !goldenNames().includes(name));
  if (unknown.length) throw new Error(`there is no scenario ${unknown.join(', ')}`);
  if (!options.address && !options.help && !options.list) throw new Error('HOST:PORT is missing');
  return options;
}

function chosen({ names }, expected) {
  if (names.includes('all')) return goldenNames();
  if (names.length) return names;
  return goldenNames().filter((name) => expected.get(name).state === 'equal');
}

// Plays the scenario; what it recorded, normalised, and without what stayed empty.
async function play(name, story, server) {
  const { Scenario } = require('./scenario');
  const scenario = new Scenario(name, server);
  let timer;
  const tooLong = new Promise((_, reject) => {
    const error = new Error(`it takes longer than ${SCENARIO_MS_MAX / 1000} s`);
    timer = setTimeout(() => reject(error), SCENARIO_MS_MAX);
  });
  try {
    await Promise.race([story(scenario), tooLong]);
  } catch (error) {
    scenario.out.scenarioError = errorJson(error);
  } finally {
    clearTimeout(timer);
  }
  const recorded = Object.entries(scenario.out).filter(
    ([, value]) => typeof value !== 'object' || Object.keys(value).length,
  );
  return normaliser(server.salt)(JSON.parse(JSON.stringify(Object.fromEntries(recorded))));
}

async function runAll(names, options, server) {
  const scenarios = allScenarios();
  const todo = [...names];
  const verdicts = new Map();
  const worker = async () => {
    for (let name = todo.shift(); name; name = todo.shift()) {
      const began = Date.now();
      const ours = await play(name, scenarios[name], server);
      if (options.keep)
        fs.writeFileSync(
          path.join(options.keep, `${name}.json`),
          `${JSON.stringify(ours, null, 1)}\n`,
        );
      const found = differences(goldenData(name), ours, rulesOf(name));
      verdicts.set(name, found);
      const verdict = found.length ? `${found.length} differences` : 'equal';
      console.log(`${name}: ${verdict}, ${((Date.now() - began) / 1000).toFixed(1)} s`);
      if (found.length) console.log(describe(found, DIFFERENCES_SHOWN));
    }
  };
  await Promise.all(Array.from({ length: options.jobs }, worker));
  return verdicts;
}

// Which of two things comes first is a race in many scenarios, and a crowd on a slow machine turns
// it around at times: what differs is played again by itself, and told to be so.
async function runUntilEqual(names, options) {
  const { openServer } = require('./server');
  const verdicts = await runAll(names, options, await openServer(options.address));
  for (let again = 0; again < TRIES_ALONE; ++again) {
    const differ = names.filter((name) => verdicts.get(name).length);
    if (!differ.length) break;
    console.log(`once more, one by one: ${differ.join(' ')}`);
    const alone = { ...options, jobs: 1 };
    const found = await runAll(differ, alone, await openServer(options.address));
    for (const [name, differences] of found) verdicts.set(name, differences);
  }
  return verdicts;
}

// What was not run is told by its reason, and so is what is better than its line says.
function summarise(verdicts, expected) {
  const equal = [...verdicts].filter(([, found]) => !found.length).map(([name]) => name);
  const left = [...expected].filter(([name]) => !verdicts.has(name));
  const reasons = new Map();
  for (const [name, { state, reason }] of left) {
    const why = `${state}: ${reason}`;
    reasons.set(why, [...(reasons.get(why) ?? []), name]);
  }
  console.log(`\n${equal.length} of ${verdicts.size} are equal; ${left.length} were not run:`);
  for (const [why, names] of reasons) console.log(`  ${names.length} ${why}: ${names.join(' ')}`);
  const better = equal.filter((name) => expected.get(name).state !== 'equal');
  if (better.length) console.log(`expected.txt may say 'equal' of: ${better.join(' ')}`);
}

async function main() {
  const options = parse(process.argv.slice(2));
  if (options.help) return console.log(usage);
  const expected = expectedNow();
  if (options.list) {
    for (const [name, { state, reason }] of expected) console.log(`${name}  ${state}  ${reason}`);
    return undefined;
  }
  if (options.keep) fs.mkdirSync(options.keep, { recursive: true });
  const names = chosen(options, expected);
  const verdicts = names.length ? await runUntilEqual(names, options) : new Map();
  summarise(verdicts, expected);
  if (!names.length) process.exit(SKIPPED);
  // Clients of abandoned scenarios may still wait for an answer.
  return process.exit([...verdicts.values()].some((found) => found.length) ? 1 : 0);
}

main().catch((error) => {
  console.error(`${error.message}\n\n${usage}`);
  process.exit(2);
});
