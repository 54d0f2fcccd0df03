// Charts of the day: asked of the API when the page is opened, when something happens, and every quarter of a minute.
(() => {
  "use strict";
  const place = document.querySelector("[data-charts]");
  const { api, say } = window.imprint;
  const HEIGHT = 180;
  const whole = (number) => new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 }).format(number);
  const fine = (number) => new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 }).format(number);
  const bars = uPlot.paths.bars({ size: [0.8, 24], align: 1 });
  const stepped = uPlot.paths.stepped({ align: 1 });
  const CHARTS = {
    throughput: {
      series: [["published", "--good", "published", bars], ["failed", "--bad", "went wrong", bars], ["putOff", "--asking", "put off", bars]],
      stacked: true,
      told: (day) => `${whole(sum(day, "published"))} published, ${whole(sum(day, "failed"))} went wrong, ${whole(sum(day, "putOff"))} put off to be tried again.`,
    },
    drift: {
      series: [["p50", "--waiting", "half of them", null], ["p99", "--moving", "99 of 100", null]],
      told: (day) => {
        const worst = day.map((each) => each.p99).filter((each) => each !== null);
        return worst.length ? `At worst ${fine(Math.max(...worst))} seconds late.` : "Nothing was begun.";
      },
    },
    depth: {
      series: [["waited", "--waiting", "waiting though due", stepped]],
      told: (day) => `${whole(Math.max(...day.map((each) => each.waited)))} at most, ${whole(day.at(-1).waited)} in this quarter of an hour.`,
    },
    workers: {
      series: [["workers", "--good", "workers", stepped]],
      told: (day) => `${whole(day.at(-1).workers)} in this quarter of an hour.`,
    },
  };
  const drawn = new Map();
  let day = null;

  function sum(parts, name) {
    return parts.reduce((total, each) => total + each[name], 0);
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // What stands on what: each row holds itself and all before it, so that the last is drawn first and the rest over it.
  function rows(chart) {
    const found = chart.series.map(([name]) => day.map((each) => each[name]));
    if (!chart.stacked) return found;
    for (let row = 1; row < found.length; row += 1) found[row] = found[row].map((value, at) => value + found[row - 1][at]);
    return found.reverse();
  }

  function options(chart, box) {
    const series = chart.stacked ? [...chart.series].reverse() : chart.series;
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
    return {
      width: box.clientWidth,
      height: HEIGHT,
      legend: { show: chart.series.length > 1, live: false, markers: { width: 0, fill: (plot, row) => colour(series[row - 1][1]) } },
      cursor: { show: false },
      scales: { y: { range: (plot, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [
        { ...axis, values: (plot, times) => times.map((time) => clock.format(new Date(time * 1000))), space: 70 },
        { ...axis, size: 44, incrs: chart.series[0][0] === "p50" ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000], values: (plot, values) => values.map((value) => (value >= 1000 ? `${fine(value / 1000)}k` : fine(value))) },
      ],
      series: [{}, ...series.map(([, tone, label, paths]) => ({
        label,
        stroke: colour(tone),
        fill: paths === bars ? colour(tone) : paths ? `${colour(tone)}33` : undefined,
        width: paths === bars ? 0 : 2,
        points: { show: paths === null, size: 5 },
        spanGaps: false,
        ...(paths ? { paths } : {}),
      }))],
    };
  }

  function draw({ anew = false } = {}) {
    const times = day.map((each) => Date.parse(each.at) / 1000);
    for (const figure of place.querySelectorAll("[data-chart]")) {
      const name = figure.dataset.chart;
      const chart = CHARTS[name];
      const box = figure.querySelector(".plot");
      const data = [times, ...rows(chart)];
      if (anew) { drawn.get(name)?.destroy(); drawn.delete(name); }
      if (drawn.has(name)) drawn.get(name).setData(data);
      else drawn.set(name, new uPlot(options(chart, box), data, box));
      const words = chart.told(day);
      figure.querySelector("[data-told]").textContent = words;
      const picture = box.querySelector(".u-wrap");
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-label", words);
    }
    place.dataset.drawn = String(Number(place.dataset.drawn ?? 0) + 1);
  }

  let asking = false;
  async function look() {
    if (asking) return;
    asking = true;
    try {
      day = (await api("GET", place.dataset.charts)).items;
      draw();
    } catch (problem) {
      if (!day) say(problem.message, { tone: "bad" });  // later the shell says that we are cut off
    } finally {
      asking = false;
    }
  }

  let soon = null;
  for (const kind of ["publication", "health"]) {
    document.body.addEventListener(`live:${kind}`, () => {
      clearTimeout(soon);
      soon = setTimeout(look, 500);
    });
  }
  setInterval(() => document.hidden || look(), 15000);
  let width = 0;
  new ResizeObserver(() => {
    if (!day || place.clientWidth === width) return;
    width = place.clientWidth;
    for (const [name, plot] of drawn) plot.setSize({ width: place.querySelector(`[data-chart="${name}"] .plot`).clientWidth, height: HEIGHT });
  }).observe(place);
  new MutationObserver(() => day && draw({ anew: true })).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  look();
})();
