"""procrastinate: one asynchronous worker, 30 jobs at once, notifications on. It keeps completed jobs."""

import asyncio
import json
import os
import random
import sys
import time

import procrastinate

PADDING = "x" * 76
SETTLE = 3
URL = os.environ["DATABASE_URL"]

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, min_size=1, max_size=32))
performed = 0
begun = None


@app.task(name="nothing")
async def nothing(padding):
    global performed
    performed += 1


@app.task(name="timed")
async def timed(padding):
    began = time.monotonic()
    begun.set_result(began)


def say(**answer):
    print(json.dumps(answer))


def peak_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def start():
    return asyncio.create_task(
        app.run_worker_async(
            concurrency=30, install_signal_handlers=False, listen_notify=True, fetch_job_polling_interval=1
        )
    )


async def stop(worker):
    worker.cancel()
    await asyncio.wait([worker], timeout=10)


async def left():
    row = await app.connector.execute_query_one_async(
        "SELECT count(*) AS number FROM procrastinate_jobs WHERE status <> 'succeeded'"
    )
    return row["number"]


async def bulk(jobs, batch):
    began = time.monotonic()
    for at in range(0, jobs, batch):
        await nothing.batch_defer_async(*({"padding": PADDING} for _ in range(at, min(jobs, at + batch))))
    say(jobs=jobs, seconds=time.monotonic() - began)


async def single(jobs):
    began = time.monotonic()
    for _ in range(jobs):
        await nothing.defer_async(padding=PADDING)
    say(jobs=jobs, seconds=time.monotonic() - began)


async def drain(jobs):
    cpu, began = time.process_time(), time.monotonic()
    worker = start()
    while performed < jobs:
        await asyncio.sleep(0.005)
    while await left() > 0:
        await asyncio.sleep(0.005)
    seconds = time.monotonic() - began
    say(jobs=jobs, seconds=seconds, cpu_us=(time.process_time() - cpu) * 1e6, peak_kib=peak_kib())
    await stop(worker)


async def latency(samples):
    global begun
    worker = start()
    await asyncio.sleep(1)
    back, call = [], []
    for _ in range(samples):
        await asyncio.sleep(random.uniform(0.03, 0.08))
        begun = asyncio.get_running_loop().create_future()
        called = time.monotonic()
        await timed.defer_async(padding=PADDING)
        returned = time.monotonic()
        began = await begun
        back.append((began - returned) * 1e3)
        call.append((began - called) * 1e3)

    def percentile(values, share):
        return sorted(values)[-(-int(len(values) * share * 100) // 100) - 1]

    say(
        jobs=samples,
        p50_ms=percentile(back, 0.5),
        p99_ms=percentile(back, 0.99),
        call_p50_ms=percentile(call, 0.5),
        call_p99_ms=percentile(call, 0.99),
    )
    await stop(worker)


async def idle(seconds):
    worker = start()
    await asyncio.sleep(SETTLE)
    cpu = time.process_time()
    await asyncio.sleep(seconds)
    say(cpu_us=(time.process_time() - cpu) * 1e6)
    await stop(worker)


async def main(verb, *numbers):
    async with app.open_async():
        if verb == "setup":
            await app.schema_manager.apply_schema_async()
            say(version="3.10.0", setting="one asynchronous worker, 30 jobs at once, notifications")
        elif verb == "enqueue":
            await bulk(numbers[0], 1_000)
        else:
            await {"bulk": bulk, "single": single, "drain": drain, "latency": latency, "idle": idle}[verb](*numbers)


asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
