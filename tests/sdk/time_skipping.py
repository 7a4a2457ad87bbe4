"""Plays an SDK's tests with a clock that jumps: the environment starts the server named on the command line.

usage: time_skipping.py BINARY
"""

import asyncio
import datetime
import sys
import time

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

DAY = datetime.timedelta(days=1)
SECONDS_MAX = 60  # Far above what it takes; far below any time that is skipped.


@workflow.defn
class Nap:
    @workflow.run
    async def run(self, days: int) -> float:
        began = workflow.now()
        await workflow.sleep(days * DAY)
        return (workflow.now() - began) / DAY


@workflow.defn
class Parent:
    @workflow.run
    async def run(self) -> float:
        return await workflow.execute_child_workflow(Nap.run, 30, id="child")


@activity.defn
async def fails_twice() -> int:
    if activity.info().attempt < 3:
        raise RuntimeError("not yet")
    return activity.info().attempt


@workflow.defn
class Retries:
    @workflow.run
    async def run(self) -> int:
        return await workflow.execute_activity(
            fails_twice,
            start_to_close_timeout=DAY,
            retry_policy=RetryPolicy(initial_interval=10 * DAY),
        )


@workflow.defn
class Waits:
    def __init__(self) -> None:
        self.told = ""

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.told != "", timeout=100 * DAY)
        return self.told

    @workflow.signal
    def tell(self, word: str) -> None:
        self.told = word


async def play(environment):
    client = environment.client
    names = {"task_queue": "queue"}
    assert await client.execute_workflow(Nap.run, 365, id="nap", **names) >= 365
    assert await client.execute_workflow(Parent.run, id="parent", **names) >= 30
    assert await client.execute_workflow(Retries.run, id="retries", **names) == 3

    # Time is real until a result is waited for, and moves by exactly what is slept.
    waits = await client.start_workflow(Waits.run, id="waits", **names)
    before = await environment.get_current_time()
    await environment.sleep(50 * DAY)
    slept = await environment.get_current_time() - before
    assert 50 * DAY <= slept < 51 * DAY, slept
    await waits.signal(Waits.tell, "in time")
    assert await waits.result() == "in time"
    assert await client.get_workflow_handle("nap").result() >= 365  # It is kept, years later.


async def main():
    began = time.monotonic()
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=sys.argv[1]
    ) as environment:
        async with Worker(
            environment.client,
            task_queue="queue",
            workflows=[Nap, Parent, Retries, Waits],
            activities=[fails_twice],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ):
            await play(environment)
    took = time.monotonic() - began
    assert took < SECONDS_MAX, f"{took} s"
    print("time skipping: 6 workflows")


asyncio.run(main())
