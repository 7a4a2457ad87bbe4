// Start a server with `holdfast server start-dev`, then: npm install; npm run build; npm run worker
import { NativeConnection, Worker } from '@temporalio/worker';
import * as activities from './activities';

async function main() {
  const address = process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233';
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }),
    taskQueue: 'hello',
    workflowsPath: require.resolve('./workflows'),
    activities,
  });
  await worker.run(); // Until SIGINT or SIGTERM.
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
