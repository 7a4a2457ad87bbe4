import { proxyActivities } from '@temporalio/workflow';
import type * as activities from './activities';

const { greet } = proxyActivities<typeof activities>({ startToCloseTimeout: '10s' });

export async function hello(name: string): Promise<string> {
  return greet(name);
}
