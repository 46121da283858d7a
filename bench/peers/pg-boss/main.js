// pg-boss, with what its documentation names for throughput and latency: batches, burst mode, notifications.
import pg from "pg";
import { PgBoss } from "pg-boss";
import { drain, idle, inBatches, latency, padding, rate, say, url } from "../protocol/protocol.js";

const BATCH = 500;
let performed = 0;
let begun = () => {};

const boss = new PgBoss({ connectionString: url, useListenNotify: true, max: 10 });
boss.on("error", (error) => console.error(error));

// The queues keep what is completed; a job without a result is settled as a batch.
const start = async () => {
  const options = { batchSize: BATCH, burstWhenBatchFull: true, localConcurrency: 2, pollingIntervalSeconds: 0.5 };
  await boss.work("nothing", options, async (jobs) => {
    performed += jobs.length;
  });
  await boss.work("timed", { batchSize: 1, pollingIntervalSeconds: 0.5 }, async () => {
    begun();
  });
  return () => boss.stop({ graceful: false });
};

const [verb, first, second] = process.argv.slice(2);
const number = Number(first);
const pool = new pg.Pool({ connectionString: url, max: 1 });
const left = async () =>
  Number((await pool.query("SELECT count(*) FROM pgboss.job WHERE name = 'nothing' AND state <> 'completed'")).rows[0].count);
const insert = (jobs) => boss.insert("nothing", Array.from({ length: jobs }, () => ({ data: { padding } })));

await boss.start();
switch (verb) {
  case "setup":
    await boss.createQueue("nothing", { notify: true });
    await boss.createQueue("timed", { notify: true });
    // Its package asks for Node 22.12.
    say({ version: `12.38.0 on Node ${process.versions.node}`, setting: `2 workers with batches of ${BATCH} and bursts, notifications` });
    break;
  case "enqueue":
    await rate(number, () => inBatches(number, 10_000, insert));
    break;
  case "bulk":
    await rate(number, () => inBatches(number, Number(second), insert));
    break;
  case "single":
    await rate(number, async () => {
      for (let n = 0; n < number; n++) await boss.send("nothing", { padding });
    });
    break;
  case "drain":
    await drain(number, start, () => performed, left);
    break;
  case "latency":
    await latency(number, start, () => boss.send("timed", { padding }), (callback) => (begun = callback));
    break;
  case "idle":
    await idle(number, start);
    break;
  default:
    throw new Error(`unknown verb ${verb}`);
}
await boss.stop({ graceful: false });
await pool.end();
process.exit(0);
