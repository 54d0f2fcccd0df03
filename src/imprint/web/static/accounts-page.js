// Accounts: who is to come by with a browser is sent to the platform; and who is gone may still be let in over there.
(() => {
  "use strict";
  document.addEventListener("api:done", (event) => {
    const told = event.detail;
    if (event.target.matches("[data-connect]")) {
      // An address of the platform, or the account that is connected already.
      if (told.url) location.assign(told.url);
      else location.assign(`/accounts#account-${told.account.id}`);
    } else if (told && "revoked" in told) {
      window.imprint.say(told.trouble ? `Removed. ${told.trouble}` : "Removed.", { tone: told.trouble ? "bad" : "good" });
    }
  });
})();
