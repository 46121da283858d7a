// The protocol of the contenders, for those in JavaScript: see bench/README.md.
import { readFileSync } from "node:fs";

const SETTLE = 3000;

export const url = process.env.DATABASE_URL;
export const padding = "x".repeat(76);
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
export const say = (answer) => console.log(JSON.stringify(answer));

const micros = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

function peakKib() {
  const line = readFileSync("/proc/self/status", "utf8").match(/VmHWM:\s+(\d+) kB/);
  return line ? Number(line[1]) : 0;
}

/** Calls `work` and says how many jobs that was a second. */
export async function rate(jobs, work) {
  const began = performance.now();
  await work();
  say({ jobs, seconds: (performance.now() - began) / 1e3 });
}

/** Cuts `jobs` into batches. */
export async function inBatches(jobs, batch, enqueue) {
  for (let at = 0; at < jobs; at += batch) await enqueue(Math.min(batch, jobs - at));
}

/** Starts a worker and waits until `performed()` says that all jobs began and `left()` that none is in the tables. */
export async function drain(jobs, start, performed, left) {
  const cpu = micros();
  const began = performance.now();
  const stop = await start();
  while (performed() < jobs) await sleep(5);
  while ((await left()) > 0) await sleep(5);
  say({ jobs, seconds: (performance.now() - began) / 1e3, cpu_us: micros() - cpu, peak_kib: peakKib() });
  await stop();
}

/** `enqueue` enqueues one job; `onBegin(callback)` says what the handler has to call in its first line. */
export async function latency(samples, start, enqueue, onBegin) {
  const stop = await start();
  await sleep(1000);
  const back = [];
  const call = [];
  for (let n = 0; n < samples; n++) {
    await sleep(30 + Math.random() * 50);
    const begun = new Promise((done) => onBegin(() => done(performance.now())));
    const called = performance.now();
    await enqueue();
    const returned = performance.now();
    const began = await begun;
    back.push(began - returned);
    call.push(began - called);
  }
  const percentile = (values, share) => values.sort((a, b) => a - b)[Math.ceil(values.length * share) - 1];
  say({
    jobs: samples,
    p50_ms: percentile(back, 0.5),
    p99_ms: percentile(back, 0.99),
    call_p50_ms: percentile(call, 0.5),
    call_p99_ms: percentile(call, 0.99),
  });
  await stop();
}

export async function idle(seconds, start) {
  const stop = await start();
  await sleep(SETTLE);
  const cpu = micros();
  await sleep(seconds * 1000);
  say({ cpu_us: micros() - cpu });
  await stop();
}
