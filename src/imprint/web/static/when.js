// Times in the reader's language and zone: the server writes UTC, the browser knows both.
(() => {
  "use strict";
  const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const styles = {
    moment,
    day: new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }),
    clock: new Intl.DateTimeFormat(undefined, { timeStyle: "short" }),
  };
  const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  const spans = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

  function relative(at) {
    const seconds = Math.round((at - Date.now()) / 1000);
    const [unit, size] = spans.find(([, length]) => Math.abs(seconds) >= length) ?? spans[3];
    return ago.format(Math.trunc(seconds / size), unit);
  }

  function tell(root) {
    for (const each of root.querySelectorAll("time[data-when]")) {
      const at = new Date(each.dateTime);
      if (Number.isNaN(at.valueOf())) continue;
      const style = each.dataset.when;
      each.textContent = style === "ago" ? relative(at) : (styles[style] ?? moment).format(at);
      each.title = moment.format(at);
    }
    for (const each of root.querySelectorAll("[data-zone]")) {
      each.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone.replaceAll("_", " ");
    }
  }

  tell(document);
  document.addEventListener("htmx:load", (event) => tell(event.target.parentElement ?? document));
  setInterval(() => {
    for (const each of document.querySelectorAll('time[data-when="ago"]')) each.textContent = relative(new Date(each.dateTime));
  }, 15000);
  window.imprint = { ...window.imprint, tell, moment: (at) => moment.format(at) };
})();
