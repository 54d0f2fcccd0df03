// A batch: what waits for its turn is moved by buttons; the server is told the whole order, and says what became of it.
(() => {
  "use strict";
  const part = document.getElementById("state");
  const { api, say, refresh } = window.imprint;
  let busy = false;

  function arranged(row, move) {
    const places = Array.from(part.querySelectorAll("[data-behind]"), (each) => Number(each.dataset.behind));
    const from = places.indexOf(Number(row.dataset.behind));
    const [place] = places.splice(from, 1);
    places.splice(move === "first" ? 0 : Math.max(0, from + Number(move)), 0, place);
    return places;
  }

  part.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-move]");
    if (!button || busy) return;
    busy = true;
    try {
      await api("POST", `/api/batches/${part.dataset.batch}/arrange`, { order: arranged(button.closest("tr"), button.dataset.move) });
    } catch (problem) {
      say(problem.message, { tone: "bad" });
    } finally {
      busy = false;
    }
    refresh("#state");
  });
})();
