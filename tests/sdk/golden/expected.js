// Reads expected.txt, which says of every scenario whether it must be equal now.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const STATES = ['equal', 'unbuilt', 'differs'];

// Scenario -> { state, reason }. Throws if a line is not as the file says, or if the file and the
// golden data name different scenarios.
function readExpected(text, goldenNames) {
  const expected = new Map();
  text.split('\n').forEach((line, i) => {
    const [name, state, ...reason] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (!name) return;
    const complain = (why) => {
      throw new Error(`expected.txt:${i + 1}: ${why}`);
    };
    if (expected.has(name)) complain(`'${name}' is listed twice`);
    if (!goldenNames.includes(name)) complain(`there is no golden data for '${name}'`);
    if (!STATES.includes(state)) complain(`'${state}' is not one of ${STATES.join(', ')}`);
    if ((state !== 'equal') !== reason.length > 0) complain("every state but 'equal' has a reason");
    expected.set(name, { state, reason: reason.join(' ') });
  });
  const missing = goldenNames.filter((name) => !expected.has(name));
  if (missing.length) throw new Error(`expected.txt does not list ${missing.join(', ')}`);
  return expected;
}

const folder = path.join(__dirname, 'histories');
const goldenNames = () => fs.readdirSync(folder).map((file) => path.basename(file, '.json'));
const goldenData = (name) => JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`)));
const expectedNow = () =>
  readExpected(fs.readFileSync(path.join(__dirname, 'expected.txt'), 'utf8'), goldenNames());

module.exports = { expectedNow, goldenData, goldenNames, readExpected };
