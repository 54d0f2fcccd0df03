// The composer: what is written is kept by itself, as a change of the revision it was made from. Two windows on one post
// never overwrite each other: what only one of them changed is put together, for the rest the person is asked.
(() => {
  "use strict";
  const { api, read, say, show } = window.imprint;
  const place = document.querySelector("[data-composer]");
  const form = document.getElementById("words");
  const said = document.querySelector("[data-saved]");
  const conflict = document.querySelector("[data-conflict]");
  const closed = document.querySelector("[data-closed]");
  const PAUSE = 700;
  const AGAIN = [2000, 5000, 10000, 20000];
  const EDITABLE = new Set(["review", "draft", "scheduled", "failed"]);
  const NAMES = { title: "the title", description: "the description", body: "the text", tags: "the tags", overrides: "the words for a platform" };
  const { id, revision, status, publications } = JSON.parse(place.dataset.composer);
  const state = { id, revision, status, publications };
  let base = JSON.parse(place.dataset.words); // what the server has, as far as this window knows
  let theirs = null; // another version, while the person has not chosen
  let making = null;
  let saving = null;
  let timer = null;
  let failures = 0;
  let stale = false; // files of ours have changed the revision
  let leaving = false; // to sign in again; what was written waits
  const once = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const sorted = (_, value) => value && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value;
  const same = (one, other) => JSON.stringify(one, sorted) === JSON.stringify(other, sorted);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  // What stands in the fields, by the names of the JSON.
  function written() {
    const found = { ...read(form) };
    found.matureLevel = found.isMature ? found.matureLevel || null : null;
    if (!found.isMature) found.matureClassification = [];
    found.tags = [...new Set(found.tags)];
    const overrides = structuredClone(base.overrides ?? {});
    for (const each of document.querySelectorAll("[data-override]")) {
      const place = each.closest("[data-words]").dataset.words;
      const text = each.value.trim() ? each.value : null;
      if (text !== null) (overrides[place] ??= {})[each.dataset.override] = text;
      else if (overrides[place]) delete overrides[place][each.dataset.override];
      if (overrides[place] && !Object.keys(overrides[place]).length) delete overrides[place];
    }
    return { ...found, overrides };
  }

  function changes() {
    const now = written();
    return Object.fromEntries(Object.entries(now).filter(([name, value]) => !same(value, trimmed(name, base[name]))));
  }

  // The server takes spaces off a title; a field that still has them is not another title.
  function trimmed(name, value) {
    return name === "title" && typeof value === "string" && form.elements.title.value.trim() === value ? form.elements.title.value : value;
  }

  function fill(words, names = Object.keys(words)) {
    for (const name of names) {
      const value = words[name];
      if (name === "overrides") {
        for (const each of document.querySelectorAll("[data-override]")) {
          each.value = value?.[each.closest("[data-words]").dataset.words]?.[each.dataset.override] ?? "";
        }
        continue;
      }
      for (const field of form.querySelectorAll(`[name="${name}"]`)) {
        if (field.type === "radio") field.checked = field.value === value;
        else if (field.type === "checkbox") field.checked = Array.isArray(value) ? value.includes(field.value) : Boolean(value);
        else field.value = Array.isArray(value) ? value.join(", ") : value ?? "";
      }
    }
    shape();
  }

  function shape() {
    const kind = form.elements.kind.value;
    for (const each of form.querySelectorAll("[data-only]")) each.hidden = each.dataset.only !== kind;
    form.querySelector("[data-mature]").hidden = !form.elements.isMature.checked;
  }

  function tell(sentence, tone = "") {
    said.textContent = sentence;
    said.className = `saved ${tone}`;
  }

  // Makes the post with the first letter or file; asked twice, it is one post.
  function draft() {
    if (state.id) return Promise.resolve(state.id);
    making ??= (async () => {
      const made = await api("POST", "/api/posts", { zone }, { once });
      base = wordsOf(made);
      Object.assign(state, { id: made.id, revision: made.revision, status: made.status });
      history.replaceState(null, "", `/posts/${made.id}/edit`);
      Object.assign(document.querySelector("[data-page]"), { href: `/posts/${made.id}`, hidden: false });
      watch();
      return made.id;
    })().finally(() => { making = null; });
    return making;
  }

  function wordsOf(post) {
    return Object.fromEntries(Object.keys(base).filter((name) => name in post).map((name) => [name, post[name]]));
  }

  function soon() {
    tell("Not saved yet…");
    clearTimeout(timer);
    timer = setTimeout(() => save().catch(() => {}), PAUSE);
  }

  // Keeps what has changed; throws when that did not work.
  async function save() {
    clearTimeout(timer);
    if (saving) { await saving.catch(() => {}); }
    if (theirs || !closed.hidden) return;
    saving = keep();
    try { await saving; } finally { saving = null; }
  }

  async function keep() {
    try {
      const post = await draft();
      if (stale) {
        stale = false;
        meet(await api("GET", `/api/posts/${post}`));
        if (theirs) return;
      }
      const changed = changes();
      if (Object.keys(changed).length) {
        tell("Saving…");
        const kept = await api("PATCH", `/api/posts/${post}`, { ...changed, revision: state.revision });
        base = wordsOf(kept);
        Object.assign(state, { revision: kept.revision, status: kept.status });
        place.dispatchEvent(new CustomEvent("composer:kept"));
      }
      failures = 0;
      clear();
      if (!same(changes(), {}) && !same(changes(), changed)) soon();
      else tell("Saved", "good");
    } catch (problem) {
      await troubled(problem);
    }
  }

  async function troubled(problem) {
    if (problem.code === "post.changed") return meet(await api("GET", `/api/posts/${state.id}`));
    if (problem.code === "network" || problem.status >= 500) {
      tell("Not saved: Imprint cannot be reached. It is tried again.", "bad");
      clearTimeout(timer);
      timer = setTimeout(() => save().catch(() => {}), AGAIN[Math.min(failures++, AGAIN.length - 1)]);
      throw problem;
    }
    if (problem.code === "signed_out") { setAside(); location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`); return; }
    tell("Not saved.", "bad");
    clear();
    show(form, problem);
    throw problem;
  }

  function clear() {
    for (const each of document.querySelectorAll("main [aria-invalid]")) each.removeAttribute("aria-invalid");
    for (const each of document.querySelectorAll("main .field-problem")) each.remove();
    for (const each of document.querySelectorAll("main [data-problem]")) each.textContent = "";
  }

  // What could not be kept waits in this window until the person is signed in again.
  const aside = () => `composer-words-${state.id ?? "new"}`;

  function setAside() {
    leaving = true;
    try { if (Object.keys(changes()).length) sessionStorage.setItem(aside(), JSON.stringify(changes())); } catch { /* then it is lost, as it was */ }
  }

  function takeBack() {
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(aside())); sessionStorage.removeItem(aside()); } catch { /* nothing was kept */ }
    if (!kept) return;
    fill(kept);
    soon();
  }

  // Another version is there: put together what only one changed, and ask about what both did.
  function meet(post) {
    const other = wordsOf(post);
    const mine = changes();
    const changed = Object.keys(other).filter((name) => !same(other[name], base[name]));
    const both = changed.filter((name) => name in mine && !same(mine[name], other[name]));
    state.status = post.status;
    if (both.length) {
      theirs = post;
      conflict.querySelector("[data-conflict-fields]").textContent = both.map((name) => NAMES[name] ?? name).join(", ");
      conflict.hidden = false;
      tell("Not saved: changed in another window.", "bad");
      return;
    }
    base = other;
    state.revision = post.revision;
    fill(other, changed);
    if (Object.keys(changes()).length) soon();
    else if (changed.length) tell("Saved; changed in another window.", "good");
    if (changed.length) place.dispatchEvent(new CustomEvent("composer:kept"));
  }

  function choose(keepMine) {
    const post = theirs;
    const mine = written();
    theirs = null;
    conflict.hidden = true;
    base = wordsOf(post);
    state.revision = post.revision;
    if (!keepMine) { fill(base); tell("Saved", "good"); place.dispatchEvent(new CustomEvent("composer:kept")); return; }
    fill(mine);
    save().catch(() => {});
  }

  // Somebody changed the post: this window, another one, or a worker.
  async function look() {
    if (saving) await saving.catch(() => {});
    let post;
    try {
      post = await api("GET", `/api/posts/${state.id}`);
    } catch (problem) {
      if (problem.status === 404) close("This post was deleted.");
      return;
    }
    state.status = post.status;
    state.publications = post.publications.filter((each) => each.status !== "cancelled").map((each) => ({ accountId: each.accountId, status: each.status, at: each.scheduledAt ?? each.actualPublishAt }));
    place.dispatchEvent(new CustomEvent("composer:state"));
    if (!EDITABLE.has(post.status)) { close("This post is on its way or out; it can no longer be changed."); return; }
    if (post.revision > state.revision && !theirs && !saving) meet(post);
  }

  function close(sentence) {
    closed.textContent = `${sentence} `;
    const link = document.createElement("a");
    link.href = `/posts/${state.id}`;
    link.textContent = "Go to its page";
    closed.append(link);
    closed.hidden = false;
    for (const each of place.querySelectorAll("input, textarea, select, button")) each.disabled = true;
  }

  function watch() {
    document.body.addEventListener(`live:post-${state.id}`, () => look());
    document.body.addEventListener("live:post", (event) => { if (!event.detail) look(); });
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); save().catch(() => {}); });
  for (const kind of ["input", "change"]) form.addEventListener(kind, () => { shape(); soon(); });
  document.getElementById("places").addEventListener("input", (event) => { if (event.target.dataset.override) soon(); });
  conflict.querySelector("[data-theirs]").addEventListener("click", () => choose(false));
  conflict.querySelector("[data-mine]").addEventListener("click", () => choose(true));
  addEventListener("online", () => { if (failures) save().catch(() => {}); });
  document.addEventListener("visibilitychange", () => { if (document.hidden && state.id && Object.keys(changes()).length) save().catch(() => {}); });
  addEventListener("beforeunload", (event) => {
    if (!leaving && closed.hidden && (theirs || Object.keys(changes()).length || window.imprint.composer.busy?.())) event.preventDefault();
  });
  document.body.addEventListener("htmx:beforeOnLoad", (event) => { if (event.detail.xhr.getResponseHeader("HX-Redirect")) setAside(); });
  shape();
  tell(state.id ? "Saved" : "Nothing to save yet");
  window.imprint.composer = { state, place, draft, save, zone, touched: () => { stale = true; }, clear, problem: (problem) => show(document.getElementById("places"), problem), say };
  if (state.id) watch();
  takeBack();
})();
