// sharp does the same work; reads one request per line, answers with the seconds it took.
// `plain` is how its documentation does it: one pipeline, a clone for each size.
// `tuned` decodes once, and makes each size from the next larger one.
import path from "node:path";
import readline from "node:readline";
import sharp from "sharp";

const workers = Number(process.argv[2]);
sharp.cache(false);

const inside = (edge) => ({ width: edge, height: edge, fit: "inside", withoutEnlargement: true });
const encoded = (image, recipe, name, folder) =>
  image
    .webp({ quality: recipe.quality, effort: recipe.effort })
    .toFile(path.join(folder, `${path.parse(name).name}-${recipe.variant}.webp`));

async function plain(name, recipes, folder) {
  const image = sharp(name).autoOrient();
  await Promise.all(recipes.map((recipe) => encoded(image.clone().resize(inside(recipe.edge)), recipe, name, folder)));
}

async function tuned(name, recipes, folder) {
  let image = sharp(name).autoOrient();
  for (const recipe of [...recipes].sort((one, other) => other.edge - one.edge)) {
    const { data, info } = await image.resize(inside(recipe.edge)).raw().toBuffer({ resolveWithObject: true });
    const raw = { raw: { width: info.width, height: info.height, channels: info.channels } };
    await encoded(sharp(data, raw), recipe, name, folder);
    image = sharp(data, raw);
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const way = { plain, tuned }[asked.way];
  const waiting = [...asked.files];
  const began = performance.now();
  const before = process.cpuUsage();
  const worker = async () => {
    while (waiting.length) await way(waiting.shift(), asked.recipes, asked.folder);
  };
  await Promise.all(Array.from({ length: workers }, worker));
  const used = process.cpuUsage(before);
  console.log(
    JSON.stringify({ seconds: (performance.now() - began) / 1000, cpu_seconds: (used.user + used.system) / 1e6 }),
  );
}
