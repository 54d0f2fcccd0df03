// Light or dark: as the system says, unless the reader chose. Runs before the page is drawn, so that nothing flashes.
(() => {
  "use strict";
  const kept = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const dark = () => (kept() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const show = () => { document.documentElement.dataset.theme = dark() ? "dark" : "light"; };
  show();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  document.addEventListener("click", (event) => {
    const menu = event.target.closest("[data-menu]");
    if (menu) {
      const open = document.body.classList.toggle("menu-open");
      menu.setAttribute("aria-expanded", String(open));
    }
    if (!event.target.closest("[data-theme-switch]")) return;
    try { localStorage.setItem("theme", dark() ? "light" : "dark"); } catch { /* then it lasts as long as the page */ }
    show();
  });
})();
