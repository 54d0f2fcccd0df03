// Messages: said once at the edge of the page, read out by screen readers, gone after a while; questions in a dialog.
(() => {
  "use strict";
  const STAYS = 8000;
  const STAYS_WITH_ACTION = 20000;

  function say(sentence, { tone = "plain", action = null } = {}) {
    const place = document.getElementById("messages");
    const card = document.createElement("div");
    card.className = `message ${tone}`;
    const text = document.createElement("p");
    text.textContent = sentence;
    card.append(text);
    const close = () => card.remove();
    if (action) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = action.name;
      button.addEventListener("click", () => { close(); action.run(); });
      card.append(button);
    }
    const away = document.createElement("button");
    away.type = "button";
    away.className = "quiet";
    away.setAttribute("aria-label", "Close this message");
    away.textContent = "×";
    away.addEventListener("click", close);
    card.append(away);
    place.append(card);
    if (tone === "bad") return;
    // It does not go away under somebody's hand.
    let leaving = null;
    const stay = () => clearTimeout(leaving);
    const leave = () => { stay(); leaving = setTimeout(close, action ? STAYS_WITH_ACTION : STAYS); };
    for (const kind of ["pointerenter", "focusin"]) card.addEventListener(kind, stay);
    for (const kind of ["pointerleave", "focusout"]) card.addEventListener(kind, leave);
    leave();
  }

  async function sure(question) {
    const dialog = document.getElementById("confirm");
    dialog.querySelector("#confirm-question").textContent = question;
    dialog.returnValue = "no";
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    });
  }

  window.imprint = { ...window.imprint, say, sure };
})();
