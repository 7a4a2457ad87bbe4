// Starts a workflow and waits for its result: npm run client
import { Client, Connection } from '@temporalio/client';
import { hello } from './workflows';

async function main() {
  const address = process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233';
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  const workflowId = `hello-${Date.now()}`;
  console.log(
    await client.workflow.execute(hello, { taskQueue: 'hello', workflowId, args: ['world'] }),
  );
  await connection.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
