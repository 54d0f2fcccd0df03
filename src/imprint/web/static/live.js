// Live: one stream of server-sent events for the page. Each becomes events of the body that fragments wait for:
// live:post and live:post-ID (likewise publication, content, batch, series, notice, health); a reset makes everything load again.
// A page that is out of sight lets its stream go, since a browser has only a few connections for all of its pages.
(() => {
  "use strict";
  const address = document.body.dataset.live;
  const KINDS = ["post", "publication", "content", "batch", "series", "notice", "health"];
  const PATIENCE = 30000;
  const offline = document.getElementById("offline");
  // How far everything was told when the server wrote this page: the first stream goes on from there.
  let position = document.body.dataset.position ?? null;
  let stream = null;
  let leaving = null;
  let missed = false;
  if (!address) return;

  function tell(kind, detail) {
    document.body.dispatchEvent(new CustomEvent(`live:${kind}`, { detail }));
    if (detail?.id) document.body.dispatchEvent(new CustomEvent(`live:${kind}-${detail.id}`, { detail }));
    if (kind === "publication" && detail?.postId) document.body.dispatchEvent(new CustomEvent(`live:post-${detail.postId}`, { detail }));
  }

  function everything() {
    for (const kind of KINDS) tell(kind, null);
    for (const part of document.querySelectorAll("[id][hx-trigger*='live:']")) window.imprint.refresh(`#${part.id}`);
  }

  function open() {
    if (stream) return;
    stream = new EventSource(position ? `${address}?after=${encodeURIComponent(position)}` : address);
    position = null;
    stream.addEventListener("open", () => {
      offline.hidden = true;
      if (missed) everything();
      missed = false;
    });
    stream.addEventListener("error", () => {
      missed = true;
      offline.hidden = document.hidden;
      if (stream?.readyState === EventSource.CLOSED) refused();
    });
    stream.addEventListener("reset", everything);
    for (const kind of KINDS) {
      stream.addEventListener(kind, (event) => {
        let detail = null;
        try { detail = JSON.parse(event.data); } catch { /* the kind alone says enough */ }
        tell(kind, detail);
      });
    }
  }

  // The server did not take the stream: it is about to end, or nobody is signed in here any more.
  async function refused() {
    close();
    try {
      const answer = await fetch("/api/session", { headers: { Accept: "application/json" } });
      if (answer.status === 401) { signedOut(); return; }
    } catch { /* it is not there; that is said already */ }
    setTimeout(() => document.hidden || open(), 3000);
  }

  function signedOut() {
    const link = document.createElement("a");
    link.href = `/sign-in?next=${encodeURIComponent(location.pathname)}`;
    link.textContent = "Sign in again";
    offline.replaceChildren("You are signed out here, so that nothing more is shown. ", link);
    offline.hidden = false;
  }

  function close() {
    stream?.close();
    stream = null;
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (document.hidden) leaving = setTimeout(() => { close(); missed = true; }, PATIENCE);
    else open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", () => document.hidden || open());
})();
