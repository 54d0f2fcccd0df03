// A careful BullMQ worker that publishes: one JSON object in (the only argument), one JSON object out (stdout).
// Each job makes the two calls that DeviantArt wants, and commits to PostgreSQL what a crash must not lose: the claim,
// the item that was uploaded, the intent to publish, and the result. It does not renew leases, classify failures, hold
// accounts apart or look for what was lost; it is the least that a careful worker does.
import { readFile } from "node:fs/promises";
import http from "node:http";
import { gunzipSync } from "node:zlib";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";

const BATCH = 1000; // jobs in one addBulk
const asked = JSON.parse(process.argv[2]);
const connect = () => new Redis({ port: asked.port, host: "127.0.0.1", maxRetriesPerRequest: null });
const pool = new pg.Pool({ ...asked.postgres, max: asked.concurrency });
// Kept open, which is quicker than a connection for each call, and what a Node program does.
const agent = new http.Agent({ keepAlive: true, maxSockets: asked.concurrency });

const claim = prepared("claim", `UPDATE publication SET status = 'running', attempts = attempts + 1, started_at = now()
  WHERE id = $1 AND status = 'pending' RETURNING title, tags, description, account`);
const uploaded = prepared("uploaded", "UPDATE publication SET item = $2 WHERE id = $1 AND status = 'running'");
const intend = prepared("intend", "UPDATE publication SET intent_at = now() WHERE id = $1 AND status = 'running'");
const succeed = prepared("succeed", `UPDATE publication SET status = 'success', remote_id = $2, url = $3, ended_at = now()
  WHERE id = $1 AND status = 'running'`);

async function publish(job) {
  const { id } = job.data;
  const [work] = (await claim(id)).rows;
  if (!work) return;
  const token = asked.tokens[work.account];
  const file = await readFile(asked.file);
  const item = await call(token, "stash/submit", multipart(work, file));
  await uploaded(id, item.itemid);
  await intend(id);
  const made = await call(token, "stash/publish", form(work, item.itemid));
  await succeed(id, made.deviationid, made.url);
}

function prepared(name, text) {
  return (...values) => pool.query({ name, text, values });
}

function multipart(work, file) {
  const boundary = "imprint-bench-boundary-0123456789";
  const fields = [["title", work.title], ["artist_comments", work.description]];
  for (const tag of work.tags) fields.push(["tags[]", tag]);
  const top = fields
    .map(([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
    .join("");
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="work.png"\r\nContent-Type: image/png\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(top + head), file, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  return { type: `multipart/form-data; boundary=${boundary}`, body };
}

function form(work, item) {
  const fields = new URLSearchParams({ itemid: item, is_mature: "0", allow_comments: "1", display_resolution: "0" });
  for (const tag of work.tags) fields.append("tags[]", tag);
  return { type: "application/x-www-form-urlencoded", body: Buffer.from(fields.toString()) };
}

function call(token, path, { type, body }) {
  return new Promise((resolve, reject) => {
    const headers = {
      "User-Agent": "bench/1",
      "Accept-Encoding": "gzip",
      Accept: "application/json",
      Authorization: `Bearer ${token}`,
      "dA-minor-version": "20240701",
      "Content-Type": type,
      "Content-Length": body.length,
    };
    const request = http.request(`${asked.url}/api/v1/oauth2/${path}`, { method: "POST", agent, headers }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => {
        const text = gunzipSync(Buffer.concat(parts)).toString();
        if (answer.statusCode !== 200) return reject(new Error(`${path}: ${answer.statusCode} ${text}`));
        // Its ids are larger than JavaScript can hold exactly.
        resolve(JSON.parse(text.replace(/"(itemid|stackid)": *(\d+)/g, '"$1": "$2"')));
      });
      answer.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function round(ids) {
  const queue = new Queue("publish", { connection: connect(), defaultJobOptions: { removeOnComplete: true } });
  for (let done = 0; done < ids.length; done += BATCH) {
    await queue.addBulk(ids.slice(done, done + BATCH).map((id) => ({ name: "publish", data: { id } })));
  }
  const worker = new Worker("publish", publish, { connection: connect(), autorun: false, concurrency: asked.concurrency });
  await worker.waitUntilReady();
  const seconds = await new Promise((resolve, reject) => {
    let completed = 0;
    const began = performance.now();
    worker.on("completed", () => {
      if (++completed === ids.length) resolve((performance.now() - began) / 1000);
    });
    worker.on("failed", (_, error) => reject(error));
    worker.on("error", reject);
    worker.run();
  });
  await worker.close();
  await queue.close();
  return seconds;
}

const { rows } = await pool.query("SELECT id FROM publication WHERE status = 'pending' ORDER BY id");
await Promise.all(Array.from({ length: asked.concurrency }, () => pool.query("SELECT 1"))); // every connection is open
const ids = rows.map((row) => row.id);
const warm = await round(ids.slice(0, asked.warm)); // both sides are measured warm
const seconds = await round(ids.slice(asked.warm));
process.stdout.write(`${JSON.stringify({ warm_s: warm, seconds, jobs: ids.length - asked.warm })}\n`, () => process.exit(0));
