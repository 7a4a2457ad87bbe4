"""Starts a workflow and waits for its result: python3 client.py"""

import asyncio
import os
import uuid

from greeting import Hello
from temporalio.client import Client


async def main():
    client = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"))
    workflow_id = f"hello-{uuid.uuid4()}"
    print(await client.execute_workflow(Hello.run, "world", id=workflow_id, task_queue="hello"))


asyncio.run(main())
