// Measures BullMQ on the Redis it is given: one JSON object in (the only argument), one JSON object out (stdout).
// It reports raw figures; percentiles are worked out by bench/figures.py, the same way for everyone.
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";

const BATCH = 1000; // jobs in one addBulk
const YEAR_MS = 365 * 24 * 3600 * 1000;
const asked = JSON.parse(process.argv[2]);

// BullMQ insists on null for a worker's blocking connection.
const connect = () => new Redis({ port: asked.port, host: "127.0.0.1", maxRetriesPerRequest: null });
const wallClock = () => performance.timeOrigin + performance.now(); // Date.now() has no fractions

// Finished jobs are removed, as any long-lived queue does; keeping them all, BullMQ's default, was no faster.
const queueNamed = (name) => new Queue(name, { connection: connect(), defaultJobOptions: { removeOnComplete: true } });

async function addAll(queue, count, options) {
  for (let done = 0; done < count; done += BATCH) {
    const size = Math.min(BATCH, count - done);
    await queue.addBulk(Array.from({ length: size }, () => ({ name: "noop", data: {}, opts: options() })));
  }
}

async function workerOn(queue, concurrency, handler) {
  const worker = new Worker(queue.name, handler, { connection: connect(), autorun: false, concurrency });
  worker.on("error", (error) => console.error(error));
  await worker.waitUntilReady();
  return worker;
}

async function drift({ future, due, seconds, concurrency }) {
  const queue = queueNamed("drift");
  const began = performance.now();
  await addAll(queue, future, () => ({ delay: YEAR_MS + Math.floor(Math.random() * YEAR_MS) }));
  const loadSeconds = (performance.now() - began) / 1000;

  const late = [];
  const all = deferred();
  const worker = await workerOn(queue, concurrency, async (job) => {
    late.push(wallClock() - (job.timestamp + job.opts.delay)); // job.delay is 0 once it was promoted
    if (late.length === due) all.resolve();
  });
  // The worker runs before the first due moment, and every due job is in the queue before that too.
  const running = worker.run();
  const lead = 2000 + due; // adding 1,000 takes well under a second
  await addAll(queue, due, () => ({ delay: Math.floor(lead + Math.random() * seconds * 1000) }));
  await all.promise;
  await worker.close();
  await running;
  await queue.close();
  return { late_ms: late, load_s: loadSeconds };
}

async function engine({ jobs, rounds, concurrency, pickups }) {
  const queue = queueNamed("engine");
  await queue.waitUntilReady();
  const enqueueSeconds = [];
  const drainSeconds = [];
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    await addAll(queue, jobs, () => ({}));
    enqueueSeconds.push((performance.now() - began) / 1000);
    drainSeconds.push(await drain(queue, jobs, concurrency));
  }
  await queue.close();
  return { enqueue_s: enqueueSeconds, drain_s: drainSeconds, pickup_ms: await pickUp(pickups, concurrency) };
}

async function drain(queue, jobs, concurrency) {
  let completed = 0;
  const all = deferred();
  const worker = await workerOn(queue, concurrency, async () => {});
  worker.on("completed", () => {
    if (++completed === jobs) all.resolve(); // raised once Redis has taken the completion
  });
  const began = performance.now();
  const running = worker.run();
  await all.promise;
  const seconds = (performance.now() - began) / 1000;
  await worker.close();
  await running;
  return seconds;
}

async function pickUp(count, concurrency) {
  const queue = queueNamed("pickup");
  await queue.waitUntilReady();
  let started = deferred();
  const worker = await workerOn(queue, concurrency, async () => started.resolve(performance.now()));
  const running = worker.run();
  const waited = [];
  for (let i = 0; i < count; i++) {
    await sleep(asked.gap_ms[0] + Math.random() * (asked.gap_ms[1] - asked.gap_ms[0])); // the queue falls idle again
    started = deferred();
    const began = performance.now();
    await queue.add("noop", {});
    waited.push((await started.promise) - began);
  }
  await worker.close();
  await running;
  await queue.close();
  return waited;
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

const modes = { drift, engine };
const figures = await modes[asked.mode](asked);
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0)); // connections we passed in stay open
