// graphile-worker (npm), with what its documentation on performance names: a local queue of 500, completions batched.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { drain, idle, inBatches, latency, padding, rate, say, url } from "../protocol/protocol.js";

const quiet = new Logger(() => () => {});
let performed = 0;
let begun = () => {};

const preset = {
  worker: {
    connectionString: url,
    concurrentJobs: 24,
    maxPoolSize: 26,
    pollInterval: 2000,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger: quiet,
  },
};

const taskList = {
  nothing: async () => {
    performed++;
  },
  timed: async () => {
    begun();
  },
};

const start = async () => {
  const runner = await run({ preset, taskList, noHandleSignals: true });
  return () => runner.stop();
};

const [verb, first, second] = process.argv.slice(2);
const number = Number(first);
const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
const pool = new pg.Pool({ connectionString: url, max: 1 });
const left = async () =>
  Number((await pool.query("SELECT count(*) FROM graphile_worker._private_jobs")).rows[0].count);
const add = (jobs) => utils.addJobs(Array.from({ length: jobs }, () => ({ identifier: "nothing", payload: { padding } })));

switch (verb) {
  case "setup":
    await utils.migrate();
    say({ version: "0.17.3", setting: "local queue of 500, completions batched, 24 at once" });
    break;
  case "enqueue":
    await rate(number, () => inBatches(number, 10_000, add));
    break;
  case "bulk":
    await rate(number, () => inBatches(number, Number(second), add));
    break;
  case "single":
    await rate(number, async () => {
      for (let n = 0; n < number; n++) await utils.addJob("nothing", { padding });
    });
    break;
  case "drain":
    await drain(number, start, () => performed, left);
    break;
  case "latency":
    await latency(number, start, () => utils.addJob("timed", { padding }), (callback) => (begun = callback));
    break;
  case "idle":
    await idle(number, start);
    break;
  default:
    throw new Error(`unknown verb ${verb}`);
}
await pool.end();
await utils.release();
process.exit(0);
