// The calendar: what goes out when, in the reader's zone; what waits can be dragged to another time, and back again.
(() => {
  "use strict";
  const place = document.querySelector("[data-calendar]");
  const { api, say, moment } = window.imprint;
  const phone = matchMedia("(max-width: 720px)");
  const TONES = { pending: "waiting", running: "moving", success: "good", failed: "bad", unknown: "asking" };
  const SIGNS = { pending: "◷", running: "➤", success: "✔", failed: "✖", unknown: "?" };
  const WORDS = { pending: "waiting", running: "on its way", success: "published", failed: "failed", unknown: "needs a decision" };

  function drawn(each) {
    const late = each.late && each.status === "pending";
    const word = late ? "late" : each.needsPerson && each.status === "pending" ? "waits for you" : WORDS[each.status];
    return {
      id: each.id,
      title: each.title || "Untitled",
      start: each.actualPublishAt,
      url: `/posts/${each.postId}`,
      editable: each.movable && place.dataset.mayMove === "yes",
      classNames: ["entry", late || each.needsPerson ? (each.status === "failed" ? "bad" : "asking") : TONES[each.status]],
      extendedProps: { sign: late ? "!" : SIGNS[each.status], word, account: each.account, post: each.postId, accountId: each.accountId },
    };
  }

  async function load(span) {
    const found = [];
    let cursor = null;
    do {
      const query = new URLSearchParams({ from: span.start.toISOString(), until: span.end.toISOString() });
      if (cursor) query.set("cursor", cursor);
      const page = await api("GET", `/api/calendar?${query}`);
      found.push(...page.items);
      cursor = page.next;
    } while (cursor);
    return found.map(drawn);
  }

  function face(given) {
    const { sign, word, account } = given.event.extendedProps;
    const line = document.createElement("div");
    line.className = "entry-face";
    const mark = document.createElement("span");
    mark.className = "entry-sign";
    mark.setAttribute("aria-hidden", "true");
    mark.textContent = sign;
    // In a grid the whole entry is a link that shows its time; in the list the title is one, and the time has its place.
    const listed = given.view.type.startsWith("list");
    const text = document.createElement(listed ? "a" : "span");
    text.className = "entry-text";
    text.textContent = listed ? given.event.title : `${given.timeText} ${given.event.title}`;
    if (listed) text.href = given.event.url;
    const more = document.createElement("span");
    more.className = listed ? "entry-more" : "unseen";
    more.textContent = ` ${account}, ${word}`;
    line.append(mark, text, more);
    return { domNodes: [line] };
  }

  async function reschedule(event, at) {
    const { post, accountId } = event.extendedProps;
    return api("POST", `/api/posts/${post}/reschedule`, { at: at.toISOString(), accounts: [accountId] });
  }

  async function moved(change) {
    const before = change.oldEvent.start;
    try {
      await reschedule(change.event, change.event.start);
    } catch (problem) {
      change.revert();
      say(problem.message, { tone: "bad" });
      return;
    }
    say(`${change.event.title} goes out ${moment(change.event.start)}.`, {
      tone: "good",
      action: { name: "Undo", run: () => undo(change.event, before) },
    });
  }

  async function undo(event, before) {
    try {
      await reschedule(event, before);
      say(`${event.title} is back at ${moment(before)}.`);
    } catch (problem) {
      say(problem.message, { tone: "bad" });
    }
    calendar.refetchEvents();
  }

  const calendar = new FullCalendar.Calendar(place, {
    initialView: phone.matches ? "listWeek" : "dayGridMonth",
    locale: navigator.language,
    timeZone: "local",
    height: "auto",
    nowIndicator: true,
    dayMaxEvents: 4,
    navLinks: true,
    eventDisplay: "block",
    displayEventEnd: false,
    forceEventDuration: true,
    defaultTimedEventDuration: "00:30",
    slotEventOverlap: false,
    lazyFetching: true,
    eventDurationEditable: false,
    allDaySlot: false,
    headerToolbar: { left: "prev,next today", center: "title", right: phone.matches ? "dayGridMonth,timeGridDay,listWeek" : "dayGridMonth,timeGridWeek,listMonth" },
    buttonText: { today: "Today", month: "Month", week: "Week", list: "List" },
    buttonHints: { prev: "Earlier", next: "Later", today: "Today" },
    views: { timeGridDay: { buttonText: "Day" } },
    eventTimeFormat: { hour: "2-digit", minute: "2-digit" },
    slotLabelFormat: { hour: "2-digit", minute: "2-digit" },
    noEventsContent: "Nothing goes out in this time.",
    events: (span, done, failed) => load(span).then(done, (problem) => { say(problem.message, { tone: "bad" }); failed(problem); }),
    eventContent: face,
    eventDrop: moved,
    // A cell is not called by its number alone when there is more in it, and a picture beside a name needs none.
    dayCellDidMount: (cell) => cell.el.removeAttribute("aria-labelledby"),
    datesSet: () => { for (const each of place.querySelectorAll(".fc-icon")) { each.removeAttribute("role"); each.setAttribute("aria-hidden", "true"); } },
  });
  calendar.render();

  let soon = null;
  for (const kind of ["post", "publication"]) {
    document.body.addEventListener(`live:${kind}`, () => {
      clearTimeout(soon);
      soon = setTimeout(() => calendar.refetchEvents(), 200);
    });
  }
  window.imprint.calendar = calendar;
})();
