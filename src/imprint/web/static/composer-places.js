// Where and when: accounts with times of their own, what each of them takes, and what exactly would be sent.
(() => {
  "use strict";
  const { api, composer } = window.imprint;
  const form = document.getElementById("places");
  const sent = document.getElementById("sent");
  const standing = form.querySelector("[data-standing]");
  const accounts = [...form.querySelectorAll("[data-account]")];
  const open = new Set();
  const STANDS = { review: "It is in review: nothing goes out.", draft: "It is ready: schedule it, or publish it now.", scheduled: "It is scheduled. What you change now is what goes out. To send it elsewhere, unschedule it first.", failed: "It failed somewhere; change it and schedule it again." };
  let timer = null;
  let loading = false;
  let stale = false;

  const box = (each) => each.querySelector('[name="account"]');
  const chosen = () => accounts.filter((each) => box(each).checked).map((each) => each.dataset.account);
  const key = () => `composer-${composer.state.id}`;

  // A time as a field of the page shows it: on the wall of the reader.
  function wall(at) {
    const date = new Date(at);
    return new Date(date - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  }

  // Accounts and times are kept here until they are scheduled: before that they are no business of the server.
  function remember() {
    if (!composer.state.id) return;
    const times = Object.fromEntries(accounts.map((each) => [each.dataset.account, each.querySelector("[data-at]").value]));
    try { localStorage.setItem(key(), JSON.stringify({ at: form.elements.at?.value ?? "", accounts: chosen(), times })); } catch { /* then they last as long as the page */ }
  }

  function recall() {
    const planned = composer.state.publications.filter((each) => each.status === "pending");
    const failed = composer.state.publications.filter((each) => each.status === "failed").map((each) => each.accountId);
    let kept = null;
    try { kept = JSON.parse(localStorage.getItem(key())); } catch { /* nothing was kept */ }
    for (const each of accounts) {
      const own = each.querySelector("[data-at]");
      const there = planned.find((one) => one.accountId === each.dataset.account);
      if (composer.state.status === "scheduled") { box(each).checked = Boolean(there); own.value = there ? wall(there.at) : ""; }
      else if (kept) { box(each).checked = kept.accounts.includes(each.dataset.account); own.value = kept.times[each.dataset.account] ?? ""; }
      else if (failed.length) box(each).checked = failed.includes(each.dataset.account) && !box(each).disabled;
      else box(each).checked = each.dataset.default === "yes" && !box(each).disabled;
    }
    if (form.elements.at) form.elements.at.value = composer.state.status === "scheduled" && planned[0] ? wall(planned[0].at) : kept?.at ?? "";
    shape();
  }

  function shape() {
    const scheduled = composer.state.status === "scheduled";
    const several = chosen().length > 1;
    for (const each of accounts) {
      each.querySelector(".own").hidden = !box(each).checked || !(several || scheduled);
      if (scheduled) box(each).disabled = true;
      each.hidden = scheduled && !box(each).checked; // more of them only after it was unscheduled
      each.querySelector(".own label").textContent = scheduled ? "Goes out" : "Its own time, if it has one";
    }
    for (const each of form.querySelectorAll("[data-words]")) {
      each.hidden = !accounts.some((one) => box(one).checked && [one.dataset.on, one.dataset.account].includes(each.dataset.words));
    }
    if (form.elements.at) form.elements.at.closest(".field").hidden = scheduled;
    const name = form.querySelector('[data-do="schedule"]');
    if (name) name.textContent = scheduled ? "Change the times" : "Schedule";
    form.querySelector('[data-do="ready"]').hidden = composer.state.status !== "review";
    standing.textContent = STANDS[composer.state.status] ?? "";
  }

  function soon(pause = 300) {
    clearTimeout(timer);
    timer = setTimeout(rehearse, pause);
  }

  // Asks what would be sent; one question at a time, and one more if something changed in between.
  async function rehearse() {
    if (!composer.state.id) return;
    if (loading) { stale = true; return; }
    loading = true;
    const query = new URLSearchParams(chosen().map((each) => ["account", each]));
    for (const each of sent.querySelectorAll("details[open]")) open.add(each.closest("[data-sent]").dataset.sent);
    for (const each of sent.querySelectorAll("details:not([open])")) open.delete(each.closest("[data-sent]").dataset.sent);
    try {
      await htmx.ajax("GET", `/posts/${composer.state.id}/sent?${query}`, { target: sent, swap: "innerHTML" });
    } finally {
      loading = false;
    }
    for (const each of sent.querySelectorAll("[data-sent]")) if (open.has(each.dataset.sent)) for (const one of each.querySelectorAll("details")) one.open = true;
    if (stale) { stale = false; soon(); }
  }

  async function ready() {
    if (composer.state.status !== "review") return;
    const post = await api("POST", `/api/posts/${composer.state.id}/ready`);
    Object.assign(composer.state, { status: post.status, revision: post.revision });
  }

  const time = (each) => each.querySelector("[data-at]").value;

  async function schedule() {
    const on = accounts.filter((each) => box(each).checked);
    if (composer.state.status === "scheduled") {
      for (const each of on) {
        const there = composer.state.publications.find((one) => one.accountId === each.dataset.account);
        if (!there || !time(each) || time(each) === wall(there.at)) continue;
        await api("POST", `/api/posts/${composer.state.id}/reschedule`, { at: time(each), zone: composer.zone, accounts: [each.dataset.account] });
      }
      return;
    }
    const several = on.length > 1;
    await ready();
    const at = form.elements.at.value;
    const places = on.map((each) => ({ accountId: each.dataset.account, ...(several && time(each) ? { at: time(each) } : {}) }));
    await api("POST", `/api/posts/${composer.state.id}/schedule`, { ...(at ? { at } : {}), zone: composer.zone, accounts: places });
  }

  async function publish() {
    await ready();
    await api("POST", `/api/posts/${composer.state.id}/publish`, { accounts: chosen() });
  }

  const DEEDS = { save: async () => {}, ready, schedule, publish };

  async function act(button) {
    const what = button.dataset.do;
    if (form.getAttribute("aria-busy") === "true") return;
    composer.clear();
    form.setAttribute("aria-busy", "true");
    try {
      await composer.save();
      if (!document.querySelector("[data-conflict]").hidden) return;
      if (what !== "save" && composer.busy()) throw new window.imprint.Problem(409, { title: "Files are still on their way; wait until they are here." });
      if ((what === "schedule" || what === "publish") && !chosen().length) throw new window.imprint.Problem(422, { title: "Choose an account." });
      await DEEDS[what]();
      if (what === "schedule" || what === "publish") {
        try { localStorage.removeItem(key()); } catch { /* nothing was kept */ }
        location.assign(`/posts/${composer.state.id}`);
        return;
      }
      shape();
      soon(0);
    } catch (problem) {
      if (!(problem instanceof window.imprint.Problem)) throw problem;
      composer.problem(problem);
      shape();
    } finally {
      form.removeAttribute("aria-busy");
    }
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) act(button);
  });
  form.addEventListener("change", () => { shape(); composer.draft().then(() => { remember(); soon(); }, (problem) => composer.problem(problem)); });
  composer.place.addEventListener("composer:kept", () => soon());
  composer.place.addEventListener("composer:state", () => { shape(); soon(); });
  recall();
  soon(0);
})();
