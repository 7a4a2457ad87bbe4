// Plays one scenario against a server, replays every history it made, and prints what it counted.
'use strict';

const { Session } = require('./session');
const stories = require('./stories');

async function main() {
  const [name, address] = process.argv.slice(2);
  if (!stories[name] || !address) {
    console.error(
      `usage: run.js SCENARIO HOST:PORT\n\nscenarios: ${Object.keys(stories).join(' ')}`,
    );
    return 2;
  }
  const session = await Session.open(address);
  const counted = await session.worker(() => stories[name](session));
  const replayed = await session.replayAll();
  await session.close();
  const counts = Object.entries({ ...counted, ...replayed });
  console.log(`${name}: ${counts.map(([what, count]) => `${count} ${what}`).join(', ')}`);
  return 0;
}

main().then(
  (code) => process.exit(code),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
