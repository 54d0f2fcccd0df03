// Many posts: choose some, and plan, publish or delete them together; take them out as CSV, and bring some in.
(() => {
  "use strict";
  const { api, say, sure } = window.imprint;
  const filters = document.querySelector(".filters");
  const rows = document.getElementById("rows");
  const bar = document.querySelector("[data-bulk]");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const chosen = new Map(); // the states of those that are chosen, by their ids; in the order of the list
  const count = (number) => `${number} ${number === 1 ? "post" : "posts"}`;
  const again = () => document.body.dispatchEvent(new CustomEvent("live:post"));

  // A search begins at its first page, and the sheet has what the list shows.
  filters.addEventListener("input", () => { filters.elements.after.value = ""; });
  document.querySelector("[data-export]").addEventListener("click", (event) => {
    const wanted = [...new FormData(filters)].filter(([name, value]) => name !== "after" && value);
    event.currentTarget.href = `/api/posts/export?${new URLSearchParams(wanted)}`;
  });
  if (!bar) return;

  const boxes = () => [...rows.querySelectorAll("[data-pick]")];

  function shape() {
    for (const each of boxes()) {
      each.checked = chosen.has(each.dataset.pick);
      if (each.checked) chosen.set(each.dataset.pick, each.dataset.status);
    }
    const all = rows.querySelector("[data-all]");
    if (all) {
      all.checked = boxes().every((each) => each.checked);
      all.indeterminate = !all.checked && boxes().some((each) => each.checked);
    }
    bar.hidden = !chosen.size;
    bar.querySelector("[data-bulk-count]").textContent = chosen.size ? `${count(chosen.size)} chosen` : "";
  }

  rows.addEventListener("change", (event) => {
    const picked = event.target.matches("[data-all]") ? boxes() : event.target.matches("[data-pick]") ? [event.target] : [];
    for (const each of picked) {
      if (event.target.checked) chosen.set(each.dataset.pick, each.dataset.status);
      else chosen.delete(each.dataset.pick);
    }
    shape();
  });
  document.body.addEventListener("htmx:afterSwap", (event) => { if (event.target === rows) shape(); });

  function tell(title, outcomes, done) {
    const wrong = outcomes.filter((each) => !each.ok);
    if (!wrong.length) { say(`${done} ${count(outcomes.length)}.`, { tone: "good" }); return; }
    const dialog = document.getElementById("outcomes");
    dialog.querySelector("h2").textContent = `${title}: ${outcomes.length - wrong.length} of ${outcomes.length}`;
    dialog.querySelector("[data-outcomes]").replaceChildren(...wrong.map((each) => {
      const line = document.createElement("li");
      const link = document.createElement("a");
      link.href = `/posts/${each.id}`;
      link.textContent = rows.querySelector(`a[href="/posts/${each.id}"]`)?.textContent ?? "A post";
      line.append(link, `: ${each.error}`);
      return line;
    }));
    dialog.showModal();
  }

  async function many(what, ids, body = {}) {
    const outcomes = [];
    for (let first = 0; first < ids.length; first += 500) outcomes.push(...(await api("POST", `/api/posts/bulk/${what}`, { ...body, ids: ids.slice(first, first + 500) })).outcomes);
    return outcomes;
  }

  // What is in review is declared ready first; what cannot be is told with the others.
  async function readied() {
    const review = [...chosen].filter(([, status]) => status === "review").map(([id]) => id);
    return review.length ? (await many("ready", review)).filter((each) => !each.ok) : [];
  }

  // Asks to which accounts they go; gives nothing when they shall not go.
  async function where() {
    const dialog = document.getElementById("going");
    dialog.querySelector("[data-going-about]").textContent = `${count(chosen.size)} ${chosen.size === 1 ? "goes" : "go"} out at once.`;
    dialog.querySelector("form").reset();
    dialog.returnValue = "no";
    dialog.showModal();
    await new Promise((resolve) => { dialog.addEventListener("close", resolve, { once: true }); });
    return dialog.returnValue === "yes" ? [...dialog.querySelectorAll('[name="account"]:checked')].map((each) => each.value) : null;
  }

  const DEEDS = {
    none: async () => { chosen.clear(); },
    ready: async () => tell("Ready", await many("ready", [...chosen.keys()]), "Ready:"),
    publish: async () => {
      const accounts = await where();
      if (!accounts) return;
      const unready = await readied();
      const left = [...chosen.keys()].filter((id) => !unready.some((each) => each.id === id));
      tell("On their way", [...unready, ...(left.length ? await many("publish", left, accounts.length ? { accounts } : {}) : [])], "On their way:");
    },
    delete: async () => {
      if (!(await sure(`Delete ${count(chosen.size)}? What waits is cancelled; what is out stays out.`))) return;
      const outcomes = await many("delete", [...chosen.keys()]);
      for (const each of outcomes) if (each.ok) chosen.delete(each.id);
      tell("Deleted", outcomes, "Deleted:");
    },
    schedule: async () => {
      const dialog = document.getElementById("batch");
      dialog.querySelector("[data-batch-about]").textContent = chosen.size === 1 ? "One post is planned." : `${count(chosen.size)} go out one after the other: all of them are planned, or none.`;
      dialog.querySelector("[data-problem]").textContent = "";
      dialog.showModal();
    },
  };

  bar.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-many]");
    if (!button || button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    try {
      await DEEDS[button.dataset.many]();
    } catch (problem) {
      say(problem.message, { tone: "bad" });
    } finally {
      button.removeAttribute("aria-busy");
      shape();
      again();
    }
  });

  for (const each of document.querySelectorAll("dialog [data-close]")) each.addEventListener("click", () => each.closest("dialog").close());

  const batch = document.getElementById("batch");
  batch.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  batch.querySelector("[data-go]").addEventListener("click", async (event) => {
    const form = batch.querySelector("form");
    const go = event.currentTarget;
    if (!form.reportValidity()) return;
    const problem = form.querySelector("[data-problem]");
    problem.textContent = "";
    go.setAttribute("aria-busy", "true");
    go.disabled = true;
    try {
      const [unready] = await readied();
      if (unready) { problem.textContent = unready.error; return; }
      const listed = [...boxes().map((each) => each.dataset.pick).filter((id) => chosen.has(id))];
      const others = [...chosen.keys()].filter((id) => !listed.includes(id));
      const posts = [...others, ...listed];
      if (form.elements.order.value === "oldest") posts.reverse();
      const accounts = [...form.querySelectorAll('[name="account"]:checked')].map((each) => each.value);
      const at = form.elements.at.value;
      await api("POST", "/api/batches", { posts, everyMinutes: Number(form.elements.every.value), accounts, zone, ...(at ? { at } : {}) });
      batch.close();
      say(posts.length === 1 ? "One post is planned." : `${count(posts.length)} are planned.`, { tone: "good" });
      chosen.clear();
    } catch (refused) {
      problem.textContent = refused.message;
    } finally {
      go.removeAttribute("aria-busy");
      go.disabled = false;
      shape();
      again();
    }
  });

  const sheet = document.getElementById("sheet");
  const file = document.getElementById("sheet-file");
  const table = sheet.querySelector("[data-sheet-rows]");
  const said = sheet.querySelector("[data-sheet-said]");
  const wrong = sheet.querySelector("[data-problem]");
  const bring = sheet.querySelector("[data-go]");
  let text = "";
  sheet.querySelector("form").addEventListener("submit", (event) => event.preventDefault());

  function shown(items) {
    const made = document.createElement("table");
    made.className = "sheet";
    const cell = (kind, words) => Object.assign(document.createElement(kind), { textContent: words });
    const head = document.createElement("tr");
    head.append(...["Row", "Title", "What becomes of it"].map((each) => cell("th", each)));
    made.append(head, ...items.map((each) => {
      const line = document.createElement("tr");
      const becomes = each.ok ? (each.at ? `goes out ${window.imprint.moment(new Date(each.at))}${each.accounts.length ? ` on ${each.accounts.join(", ")}` : ""}` : "stays in review") : each.error;
      line.append(cell("td", each.row), cell("td", each.title || "Untitled"), cell("td", becomes));
      if (!each.ok) line.className = "wrong";
      return line;
    }));
    table.replaceChildren(made);
    table.hidden = false;
  }

  async function send(check) {
    wrong.textContent = "";
    bring.disabled = true;
    try {
      const told = await api("POST", "/api/posts/import", { csv: text, zone, check });
      const bad = told.items.filter((each) => !each.ok).length;
      shown(told.items);
      said.textContent = bad ? `${bad} of ${told.items.length} rows are wrong, so nothing is imported. Mend them, and choose the file again.` : `${count(told.items.length)}, and nothing is wrong.`;
      bring.disabled = Boolean(bad);
      return told.imported;
    } catch (problem) {
      table.hidden = true;
      said.textContent = "";
      wrong.textContent = problem.message;
      return 0;
    }
  }

  document.querySelector("[data-import]").addEventListener("click", () => {
    file.value = "";
    table.hidden = true;
    said.textContent = wrong.textContent = "";
    bring.disabled = true;
    sheet.showModal();
  });
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    text = await file.files[0].text();
    await send(true);
  });
  bring.addEventListener("click", async () => {
    const imported = await send(false);
    if (!imported) return;
    sheet.close();
    say(`${count(imported)} imported.`, { tone: "good" });
    again();
  });
  shape();
})();
