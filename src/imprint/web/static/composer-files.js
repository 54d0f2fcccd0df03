// Files of the composer: many at once, each with its bar. An upload that is cut goes on by itself with a new address;
// what was confirmed belongs to the post, so that no reload loses it.
(() => {
  "use strict";
  const { api, say, composer } = window.imprint;
  const list = document.querySelector("[data-files]");
  const drop = document.querySelector("[data-drop]");
  const chooser = document.getElementById("choose");
  const told = document.querySelector("[data-files-said]");
  const TYPES = { jpg: "image/jpeg", jpeg: "image/jpeg", png: "image/png", webp: "image/webp", gif: "image/gif", tif: "image/tiff", tiff: "image/tiff", avif: "image/avif" };
  const PAUSES = [500, 1500, 4000, 10000, 20000];
  const AT_ONCE = 3;
  const PAUSE = 700;
  const rows = new Map(); // by the id of the content, or of the upload until there is one
  let order = Promise.resolve(); // addresses are asked for one after the other: that is the order of the files
  let running = 0;
  const waiting = [];
  let online = null;
  const gone = new Set(); // contents that were removed here, whatever an answer that is on its way still says
  let rearranged = false; // by hand, while some files are not known to the server yet

  const uppy = new Uppy.Uppy({
    id: "composer",
    autoProceed: true,
    restrictions: { allowedFileTypes: [...new Set(Object.values(TYPES)), ...Object.keys(TYPES).map((each) => `.${each}`)] },
    logger: { debug() {}, warn() {}, error() {} },
  });
  uppy.setState({ capabilities: { ...uppy.getState().capabilities, individualCancellation: true } });

  function part(name, kind, text) {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function button(text, name, act, kind = "quiet icon") {
    const made = part("button", kind, text);
    made.type = "button";
    made.setAttribute("aria-label", name);
    made.title = name;
    made.addEventListener("click", act);
    return made;
  }

  // One file on the page, from the moment it is dropped.
  function row(key, name) {
    if (rows.has(key)) return rows.get(key);
    const made = { key, name, upload: null, content: null, file: null, alt: null, timer: null, once: `${Date.now()}-${key}`.replace(/[^\w-]/g, "").slice(-100) };
    const item = part("li", "file");
    const picture = part("div", "picture");
    picture.draggable = true;
    picture.title = "Drag it to another place";
    picture.setAttribute("aria-hidden", "true");
    const about = part("div", "about");
    const title = part("p", "name", name);
    const state = part("p", "state faint", "waits");
    const bar = part("progress");
    bar.max = 100;
    bar.setAttribute("aria-label", `Upload of ${name}`);
    const label = part("label", "", "What can be seen in it");
    const alt = part("textarea");
    alt.rows = 2;
    alt.maxLength = 5000;
    alt.id = `alt-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
    label.htmlFor = alt.id;
    const field = part("div", "field");
    field.append(label, alt);
    about.append(title, state, bar, field);
    const moves = part("div", "moves");
    const earlier = button("↑", `Move ${name} up`, () => move(made, -1));
    const later = button("↓", `Move ${name} down`, () => move(made, 1));
    const again = button("Try again", `Try ${name} again`, () => uppy.retryUpload(made.upload), "again");
    again.hidden = true;
    moves.append(earlier, later, button("✕", `Remove ${name}`, () => remove(made)));
    about.append(again);
    item.append(picture, about, moves);
    Object.assign(made, { item, picture, state, bar, field, altField: alt, again, earlier, later });
    alt.addEventListener("input", () => { made.alt = alt.value; clearTimeout(made.timer); made.timer = setTimeout(() => describe(made), PAUSE); });
    alt.addEventListener("blur", () => { if (made.alt !== null) describe(made); });
    picture.addEventListener("dragstart", (event) => { event.dataTransfer.setDragImage(item, 20, 20); item.classList.add("dragged"); event.dataTransfer.effectAllowed = "move"; event.dataTransfer.setData("text/plain", name); });
    picture.addEventListener("dragend", () => { item.classList.remove("dragged"); arrange(); });
    rows.set(key, made);
    list.append(item);
    return made;
  }

  function standing(of, sentence, percent = null) {
    of.state.textContent = sentence;
    of.bar.hidden = percent === null;
    if (percent !== null) of.bar.value = percent;
  }

  // What the server knows of the files; what is typed or still on its way here stays as it is.
  function show(listed) {
    const files = listed.filter((each) => !gone.has(each.contentId));
    for (const file of files) {
      const of = [...rows.values()].find((each) => each.content === file.contentId) ?? row(file.contentId, file.name);
      of.content = file.contentId;
      of.file = file;
      of.field.hidden = false;
      if (of.alt === null && document.activeElement !== of.altField) of.altField.value = file.alt;
      if (file.thumbnail && !of.picture.firstChild) {
        const small = part("img");
        small.src = file.thumbnail;
        small.alt = "";
        small.draggable = false;
        of.picture.append(small);
      }
      if (file.confirmed) {
        const bytes = file.size < 1e6 ? `${Math.ceil(file.size / 1e3)} kB` : `${(file.size / 1e6).toFixed(1)} MB`;
        const size = `${bytes}${file.width ? `, ${file.width} × ${file.height}` : ""}`;
        standing(of, file.status === "processed" || file.thumbnail ? size : `${size}; its picture is being made`);
        of.again.hidden = true;
      } else if (file.status === "failed" && file.errorCode?.startsWith("image.")) {
        standing(of, "This picture cannot be read. Remove it, and choose another.");
      } else if (!of.upload) {
        standing(of, `Its bytes did not arrive. Choose ${file.name} again, and it goes on.`);
      }
      of.item.classList.toggle("broken", !file.confirmed && !of.upload);
    }
    const there = new Set(files.map((each) => each.contentId));
    for (const [key, of] of rows) {
      if (of.file && !there.has(of.content)) { of.item.remove(); rows.delete(key); }
    }
    if (rearranged && [...rows.values()].every((each) => each.file)) arrange();
    const sorted = [...rows.values()].sort((one, other) => (one.file?.position ?? 1e6) - (other.file?.position ?? 1e6));
    const wanted = sorted.map((each) => each.item);
    if (!rearranged && !list.querySelector(".dragged") && wanted.some((each, number) => list.children[number] !== each)) {
      const focused = document.activeElement;
      list.append(...wanted);
      if (focused !== document.activeElement) focused.focus({ preventScroll: true });
    }
    ends();
  }

  function ends() {
    const items = [...list.children];
    for (const each of rows.values()) {
      each.earlier.disabled = items[0] === each.item;
      each.later.disabled = items[items.length - 1] === each.item;
    }
  }

  let asked = null;
  let stale = false;
  // Loads the files again; however often it is asked for, one request at a time.
  async function load() {
    if (!composer.state.id) return;
    if (asked) { stale = true; return asked; }
    asked = (async () => {
      do {
        stale = false;
        try { show((await api("GET", `/api/posts/${composer.state.id}/files`)).items); } catch (problem) { if (problem.status !== 404) say(problem.message, { tone: "bad" }); }
      } while (stale);
    })().finally(() => { asked = null; });
    return asked;
  }

  async function change(method, path, body) {
    try {
      composer.touched();
      await api(method, `/api/posts/${composer.state.id}/files${path}`, body);
    } catch (problem) {
      say(problem.message, { tone: "bad" });
    }
    await load();
    composer.place.dispatchEvent(new CustomEvent("composer:kept"));
  }

  async function describe(of) {
    clearTimeout(of.timer);
    if (!of.file || of.alt === null) return;
    const text = of.alt;
    if (text !== of.file.alt) await change("PATCH", `/${of.file.id}`, { alt: text });
    if (of.alt === text) of.alt = null;
  }

  async function arrange() {
    const sorted = [...list.children].map((item) => [...rows.values()].find((each) => each.item === item));
    rearranged = sorted.some((each) => !each.file);
    ends();
    if (rearranged) return; // as soon as all are known
    if (sorted.every((each, number) => each.file.position === number)) return;
    sorted.forEach((each, number) => { each.file.position = number; });
    await change("PUT", "", { files: sorted.map((each) => each.file.id) });
  }

  function move(of, by) {
    const items = [...list.children];
    const to = items.indexOf(of.item) + by;
    if (to < 0 || to >= items.length) return;
    if (by < 0) items[to].before(of.item); else items[to].after(of.item);
    (by < 0 ? of.earlier : of.later).focus();
    told.textContent = `${of.name} is number ${to + 1} of ${items.length}.`;
    arrange();
  }

  async function remove(of) {
    of.gone = true;
    if (of.content) gone.add(of.content);
    if (of.upload && uppy.getFile(of.upload)) uppy.removeFile(of.upload);
    of.sending?.abort();
    of.item.remove();
    rows.delete(of.key);
    ends();
    chooser.focus();
    await detach(of);
  }

  // Takes a removed file off the post; one that is just asked for comes here again when it has a name.
  async function detach(of) {
    if (!of.content) return;
    const file = of.file ?? (await api("GET", `/api/posts/${composer.state.id}/files`)).items.find((each) => each.contentId === of.content);
    if (file) await change("DELETE", `/${file.id}`);
  }

  // Lets a few send at once; the others wait.
  async function turn() {
    if (running < AT_ONCE) { running += 1; return; }
    await new Promise((resolve) => waiting.push(resolve));
  }

  function done() {
    const next = waiting.shift();
    if (next) next(); else running -= 1;
  }

  function ask(of, file) {
    const asking = order.then(async () => {
      if (of.gone) throw new window.imprint.Problem(0, { title: "It was removed.", code: "removed" });
      const post = await composer.draft();
      const extension = file.name.split(".").pop().toLowerCase();
      const wanted = { filename: file.name, contentType: file.type in TYPES || Object.values(TYPES).includes(file.type) ? file.type : TYPES[extension] ?? file.type, fileSize: file.size, postId: post };
      const promise = await api("POST", "/api/uploads/presigned-url", of.content ? { ...wanted, fileId: of.content } : wanted, of.content ? {} : { once: of.once });
      composer.touched();
      of.content = promise.fileId;
      if (of.gone) { gone.add(of.content); await detach(of); }
      return { ...promise, type: wanted.contentType };
    });
    order = asking.catch(() => {});
    return asking;
  }

  // An address of ours is called where the page is, whatever name Imprint has for itself.
  function here(address) {
    const url = new URL(address);
    return url.pathname.startsWith("/api/uploads/bytes/") ? url.pathname + url.search : address;
  }

  function put(of, promise, file) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      of.sending = request;
      request.open("PUT", here(promise.uploadUrl));
      request.setRequestHeader("Content-Type", promise.type);
      request.upload.addEventListener("progress", (event) => {
        const known = uppy.getFile(of.upload);
        if (known) uppy.emit("upload-progress", known, { uploadStarted: known.progress.uploadStarted, bytesUploaded: event.loaded, bytesTotal: file.size });
      });
      request.addEventListener("load", () => {
        if (request.status < 300) { resolve(); return; }
        let said = {};
        try { said = JSON.parse(request.responseText); } catch { /* a bucket answers in its own way */ }
        reject(new window.imprint.Problem(request.status, said));
      });
      for (const kind of ["error", "abort", "timeout"]) request.addEventListener(kind, () => reject(new window.imprint.Problem(0, { title: "The connection was cut.", code: "network" })));
      request.send(file.data);
    });
  }

  // Did it arrive after all? Only the answer may have been lost.
  async function arrived(of) {
    try {
      await api("POST", "/api/uploads/confirm", { fileId: of.content });
      return true;
    } catch (problem) {
      if (problem.code === "upload.missing" || problem.code === "upload.replaced") return false;
      throw problem;
    }
  }

  const worthAnother = (problem) => problem.code === "network" || problem.status >= 500 || ["upload.missing", "upload.used", "upload.expired", "upload.busy", "upload.replaced"].includes(problem.code);

  async function send(of, file) {
    const promise = await ask(of, file);
    await turn();
    try { if (!of.gone) await put(of, promise, file); } finally { done(); }
    if (!of.gone) await api("POST", "/api/uploads/confirm", { fileId: of.content });
  }

  async function upload(id) {
    const file = uppy.getFile(id);
    const of = [...rows.values()].find((each) => each.upload === id);
    if (!file || !of || of.gone) return;
    uppy.emit("upload-start", [file]);
    of.again.hidden = true;
    for (let tried = 0; ; tried += 1) {
      try {
        standing(of, tried ? "goes on…" : "waits for its turn", 0);
        if (!(tried && of.content && (await arrived(of)))) await send(of, file);
        break;
      } catch (problem) {
        if (of.gone) return;
        if (!worthAnother(problem) || tried >= PAUSES.length) {
          standing(of, problem.message);
          of.again.hidden = !worthAnother(problem);
          of.item.classList.add("broken");
          uppy.emit("upload-error", uppy.getFile(id), problem);
          return;
        }
        standing(of, "The connection was cut; it goes on in a moment.", of.bar.value);
        await new Promise((resolve) => { online = resolve; setTimeout(resolve, PAUSES[tried]); });
      }
    }
    if (of.gone) return;
    of.upload = null;
    standing(of, "It is here.");
    uppy.emit("upload-success", uppy.getFile(id), { status: 200, uploadURL: "" });
    await load();
    composer.place.dispatchEvent(new CustomEvent("composer:kept"));
  }

  uppy.addUploader((ids) => Promise.all(ids.map(upload)));
  uppy.on("file-added", (file) => {
    // One whose bytes did not arrive the last time goes on where it was.
    const left = [...rows.values()].find((each) => each.file && !each.file.confirmed && !each.upload && each.name === file.name);
    const of = left ?? row(file.id, file.name);
    of.upload = file.id;
    of.item.classList.remove("broken");
    if (!left) of.field.hidden = true;
    standing(of, "waits for its turn", 0);
  });
  uppy.on("upload-progress", (file, progress) => {
    const of = [...rows.values()].find((each) => each.upload === file?.id);
    if (!of || !progress.bytesTotal) return;
    const percent = Math.floor((progress.bytesUploaded / progress.bytesTotal) * 100);
    standing(of, percent < 100 ? `${percent} %` : "is looked through", percent);
  });
  uppy.on("restriction-failed", (file, error) => say(`${file?.name ?? "This file"}: ${error.message}`, { tone: "bad" }));
  uppy.on("complete", (result) => { for (const each of result.successful ?? []) if (uppy.getFile(each.id)) uppy.removeFile(each.id); });

  function add(files) {
    const given = Array.from(files, (data) => ({ name: data.name, type: data.type, data, source: "page" }));
    if (!given.length) return;
    told.textContent = `${given.length} ${given.length === 1 ? "file" : "files"} added.`;
    try { uppy.addFiles(given); } catch (problem) { say(problem.message, { tone: "bad" }); }
  }

  chooser.addEventListener("change", () => { add(chooser.files); chooser.value = ""; });
  const carries = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => { if (carries(event)) { event.preventDefault(); drop.classList.add("over"); } });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
  document.addEventListener("drop", (event) => { drop.classList.remove("over"); if (carries(event)) { event.preventDefault(); add(event.dataTransfer.files); } });
  list.addEventListener("dragover", (event) => {
    const dragged = list.querySelector(".dragged");
    const over = event.target.closest(".file");
    if (!dragged) return;
    event.preventDefault();
    if (!over || over === dragged) return;
    const box = over.getBoundingClientRect();
    if (event.clientY > box.top + box.height / 2) over.after(dragged); else over.before(dragged);
  });
  list.addEventListener("drop", (event) => { if (list.querySelector(".dragged")) event.preventDefault(); });
  addEventListener("online", () => online?.());
  for (const kind of ["content", "post"]) {
    document.body.addEventListener(`live:${kind}`, (event) => {
      const known = !event.detail || event.detail.id === composer.state.id || [...rows.values()].some((each) => each.content === event.detail.id);
      if (known) load();
    });
  }
  composer.busy = () => [...rows.values()].some((each) => each.upload && each.again.hidden);
  composer.files = () => [...rows.values()];
  load();
})();
