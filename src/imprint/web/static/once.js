// Secrets that are shown once: a form with data-once="secret" shows that part of the answer in a dialog, and nowhere else.
(() => {
  "use strict";
  const dialog = document.getElementById("once");
  if (!dialog) return;
  const value = document.getElementById("once-value");

  document.addEventListener("api:done", (event) => {
    const { once, onceTitle, onceLink } = event.target.dataset;
    const told = once && event.detail?.[once];
    if (!told) return;
    dialog.querySelector("#once-title").textContent = onceTitle;
    value.textContent = onceLink ? `${location.origin}${onceLink}${told}` : told;
    dialog.showModal();
  });
  dialog.querySelector("[data-copy]").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(value.textContent);
      window.imprint.say("Copied.", { tone: "good" });
    } catch {
      // Without TLS or the reader's leave there is no clipboard; what is marked can be copied by hand.
      getSelection().selectAllChildren(value);
    }
  });
  const forget = () => { value.textContent = ""; };
  dialog.querySelector("[data-close]").addEventListener("click", () => {
    forget(); // at once: the event of closing comes a moment later
    dialog.close();
  });
  dialog.addEventListener("close", forget); // whichever way it is closed
})();
