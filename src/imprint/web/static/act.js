// Doing: every change goes to the API. A form or a button says which request in data-api="POST /api/…"; forms are sent
// as JSON, with the token of the session and a key that keeps a request from being done twice.
//
//   data-api      method and address; {name} in it is taken from the element's data-name
//   data-body     JSON to send with a button
//   data-confirm  a question that must be answered first
//   data-then     what comes after, parted by “;”: go:/path/{id} · refresh:#part · say:A sentence. · reset
(() => {
  "use strict";
  const SAFE = new Set(["GET", "HEAD"]);
  const LOST = "Imprint cannot be reached; nothing was changed, or it is not known. Try again: it is not done twice.";

  function key() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  class Problem extends Error {
    constructor(status, told) {
      super(told.title ?? "That did not work.");
      this.status = status;
      this.code = told.code ?? "unknown";
      this.field = told.field ?? null;
      this.errors = told.errors ?? [];
    }
  }

  // Asks the API; gives its answer, or throws a Problem with the API's own sentence.
  async function api(method, path, body, { once = key(), signal } = {}) {
    const headers = { Accept: "application/json" };
    const token = document.querySelector('meta[name="csrf-token"]')?.content;
    if (!SAFE.has(method)) {
      headers["Idempotency-Key"] = once;
      if (token) headers["X-CSRF-Token"] = token;
    }
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let answer;
    const ask = () => fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
    try {
      answer = await ask();
      if (answer.status === 403 && (await renewed(answer.clone(), headers))) answer = await ask();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, { title: LOST, code: "network" });
    }
    const kind = answer.headers.get("content-type") ?? "";
    const told = kind.includes("json") && answer.status !== 204 ? await answer.json() : null;
    if (!answer.ok) throw new Problem(answer.status, told ?? {});
    return told;
  }

  // Who signed in again in another window has another token; the same person goes on with it.
  async function renewed(answer, headers) {
    const meta = document.querySelector('meta[name="csrf-token"]');
    const told = await answer.json().catch(() => ({}));
    if (!meta || told.code !== "csrf.refused") return false;
    const now = await (await fetch("/api/session", { headers: { Accept: "application/json" } })).json();
    if (now.personId !== meta.dataset.person || now.csrfToken === meta.content) return false;
    headers["X-CSRF-Token"] = meta.content = now.csrfToken;
    return true;
  }

  // Reads a form: names with dots are parts of parts, data-kind says what is no text.
  function read(form) {
    const found = {};
    for (const each of form.elements) {
      if (!each.name || each.disabled || each.type === "submit" || each.type === "button") continue;
      if (each.type === "radio" && !each.checked) continue;
      const value = valueOf(each);
      if (value === undefined) continue;
      const parts = each.name.split(".");
      const last = parts.pop();
      let into = found;
      for (const part of parts) into = into[part] ??= {};
      if (each.type === "checkbox" && each.dataset.kind === "list") {
        into[last] ??= [];
        if (each.checked) into[last].push(each.value);
      } else {
        into[last] = value;
      }
    }
    return found;
  }

  // data-kind: number · words (parted by commas) · list (boxes of one name) · time (local, sent in UTC) · json;
  // data-optional leaves an empty field out.
  function valueOf(field) {
    const kind = field.dataset.kind;
    if (field.type === "checkbox") return kind === "list" ? field.value : field.checked;
    if (field.multiple && field.selectedOptions) return Array.from(field.selectedOptions, (each) => each.value);
    const text = field.value;
    if (text === "" && "optional" in field.dataset) return undefined;
    if (kind === "number" || field.type === "number") return text === "" ? undefined : Number(text);
    if (kind === "words") return text.split(",").map((each) => each.trim()).filter(Boolean);
    if (kind === "time") return text === "" ? undefined : new Date(text).toISOString();
    if (kind === "json") return JSON.parse(text);
    return text;
  }

  function clear(form) {
    for (const each of form.querySelectorAll("[aria-invalid]")) each.removeAttribute("aria-invalid");
    for (const each of form.querySelectorAll(".field-problem")) each.remove();
    for (const each of form.querySelectorAll("[data-problem]")) each.textContent = "";
  }

  // The field a mistake is about; one in a part of a list (tags.1) belongs to the field of the list.
  function fieldOf(form, name) {
    for (let left = name ?? ""; left; left = left.slice(0, Math.max(left.lastIndexOf("."), 0))) {
      const field = form.elements.namedItem(left);
      if (field) return field;
    }
    return null;
  }

  // Shows a problem where it belongs: at its field, else in the form, else as a message.
  function show(element, problem) {
    const mistakes = problem.errors.length ? problem.errors : [{ field: problem.field, sentence: problem.message }];
    let placed = false;
    if (element instanceof HTMLFormElement) {
      for (const each of mistakes) {
        const field = fieldOf(element, each.field);
        if (!(field instanceof HTMLElement)) continue;
        const note = document.createElement("span");
        note.className = "field-problem";
        note.id = `problem-${field.id || field.name}`;
        note.textContent = each.sentence.replace(/^[\w.]+: /, "");
        field.setAttribute("aria-invalid", "true");
        field.setAttribute("aria-describedby", note.id);
        field.after(note);
        if (!placed) field.focus();
        placed = true;
      }
      const place = element.querySelector("[data-problem]");
      if (!placed && place) { place.textContent = problem.message; placed = true; }
    }
    if (!placed) window.imprint.say(problem.message, { tone: "bad" });
  }

  function fill(text, data) {
    return text.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(data?.[name] ?? ""));
  }

  function then(element, told) {
    for (const step of (element.dataset.then ?? "").split(";").map((each) => each.trim()).filter(Boolean)) {
      const [what, ...rest] = step.split(":");
      const value = rest.join(":");
      if (what === "go") location.assign(fill(value, told));
      else if (what === "refresh") refresh(value);
      else if (what === "say") window.imprint.say(value, { tone: "good" });
      else if (what === "reset") element.reset?.();
    }
    element.dispatchEvent(new CustomEvent("api:done", { bubbles: true, detail: told }));
  }

  // Loads a part of the page again: an element with hx-get.
  function refresh(selector) {
    const part = document.querySelector(selector);
    if (part) htmx.ajax("GET", part.getAttribute("hx-get"), { source: part, target: part, swap: part.getAttribute("hx-swap") ?? "innerHTML" });
  }

  async function act(element, body) {
    if (element.getAttribute("aria-busy") === "true") return;
    if (element.dataset.confirm && !(await window.imprint.sure(element.dataset.confirm))) return;
    const [method, path] = element.dataset.api.split(" ");
    const again = JSON.stringify([element.dataset.api, body ?? null]);
    // The same request after a lost answer keeps its key; whatever was answered, the next one is another.
    const once = element.imprintTry?.[0] === again ? element.imprintTry[1] : key();
    element.imprintTry = [again, once];
    element.setAttribute("aria-busy", "true");
    try {
      const told = await api(method, fill(path, element.dataset), body, { once });
      element.imprintTry = null;
      then(element, told);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.code !== "network") element.imprintTry = null;
      if (error.code === "signed_out") location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`);
      else show(element, error);
      element.dispatchEvent(new CustomEvent("api:problem", { bubbles: true, detail: error }));
    } finally {
      element.removeAttribute("aria-busy");
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-api]");
    if (!form) return;
    event.preventDefault();
    clear(form);
    act(form, read(form));
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-api]:not(form)");
    if (!button) return;
    event.preventDefault();
    act(button, button.dataset.body ? JSON.parse(button.dataset.body) : undefined);
  });
  // A part that is loaded again keeps what somebody opened or closed in it, and does not lose who is in it with the keyboard.
  const turned = new Map();
  document.addEventListener("click", (event) => {
    const details = event.target.closest("summary")?.parentElement;
    if (details?.id) turned.set(details.id, !details.open);
  });
  document.addEventListener("htmx:beforeSwap", (event) => { event.detail.target.imprintFocused = event.detail.target.contains(document.activeElement); });
  document.addEventListener("htmx:afterSwap", (event) => {
    const part = event.detail.target;
    for (const each of part.querySelectorAll("details[id]")) if (turned.has(each.id)) each.open = turned.get(each.id);
    if (!part.imprintFocused || part.contains(document.activeElement)) return;
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  });
  // A code that came in the address after “#” is put into its field, and taken out of sight.
  for (const field of document.querySelectorAll("[data-from-hash]")) {
    const given = decodeURIComponent(location.hash.slice(1));
    if (!given) continue;
    field.value = given;
    history.replaceState(null, "", location.pathname + location.search);
    field.form.querySelector("input:not([data-from-hash])")?.focus();
  }
  window.imprint = { ...window.imprint, api, read, refresh, show, Problem };
})();
