"""Start a server with `holdfast server start-dev`, then:
pip install -r requirements.txt; python3 worker.py"""

import asyncio
import os

from greeting import Hello, greet
from temporalio.client import Client
from temporalio.worker import Worker


async def main():
    client = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"))
    await Worker(client, task_queue="hello", workflows=[Hello], activities=[greet]).run()


asyncio.run(main())
