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

  // Everything between two times, as the API tells it.
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
    return found;
  }

  // A view has room for some: of a day, or of an hour, that has more, those stand there that matter most, and one line
  // that leads to all of them. Thousands in a month are as quick to draw as a few.
  function fitted(items, view) {
    const grid = view.startsWith("timeGrid");
    const room = grid ? 3 : view === "dayGridMonth" ? 5 : view === "listDay" ? Infinity : 20;
    const heaps = new Map();
    for (const each of items) {
      const at = new Date(each.actualPublishAt);
      at.setHours(grid ? at.getHours() : 0, 0, 0, 0);
      if (!heaps.has(at.valueOf())) heaps.set(at.valueOf(), []);
      heaps.get(at.valueOf()).push(each);
    }
    const shown = [];
    for (const [start, heap] of heaps) {
      if (heap.length <= room) { shown.push(...heap.map(drawn)); continue; }
      const ranked = heap.map((each, number) => ({ rank: rank(each), number, each })).sort((one, other) => one.rank - other.rank || one.number - other.number);
      shown.push(...ranked.slice(0, room - 1).map(({ each }) => drawn(each)), rest(start, ranked.slice(room - 1).map(({ each }) => each), grid));
    }
    return shown;
  }

  let moved = null; // by this window: whatever else is there, it is seen where it was put

  function rank(each) {
    if (each.id === moved) return -1;
    if (each.needsPerson || each.late || each.status === "failed" || each.status === "unknown") return 0;
    return { running: 1, pending: 2 }[each.status] ?? 3;
  }

  function rest(start, left, grid) {
    const tones = new Set(left.map((each) => drawn(each).classNames[1]));
    const tone = ["bad", "asking"].find((each) => tones.has(each));
    return {
      id: `more-${start}`,
      title: `${left.length} more`,
      start: new Date(start + (grid ? 30 : 24 * 60 - 1) * 60000),
      url: `#listDay/${day(new Date(start))}`,
      editable: false,
      classNames: ["entry", tone ?? "plain"],
      extendedProps: { more: left.length, sign: "+", word: tone === "bad" ? "some have failed" : tone ? "some need you" : "", account: "" },
    };
  }

  // A day on the wall of the reader, as an address has it.
  const day = (at) => `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;

  function face(given) {
    const { sign, word, account, more: several } = given.event.extendedProps;
    const line = document.createElement("div");
    line.className = "entry-face";
    const mark = document.createElement("span");
    mark.className = "entry-sign";
    mark.setAttribute("aria-hidden", "true");
    mark.textContent = sign;
    // In a grid the whole entry is a link that shows its time; in the list the title is one, and the time has its place.
    const listed = given.view.type.startsWith("list");
    const text = document.createElement(listed ? "a" : "span");
    // A month on a phone has room for signs and numbers only; a day, one tap away, has the words.
    const tiny = phone.matches && given.view.type === "dayGridMonth";
    text.className = tiny && !several ? "unseen" : "entry-text";
    text.textContent = tiny && several ? several : listed || several ? given.event.title : `${given.timeText} ${given.event.title}`;
    if (listed) text.href = given.event.url;
    const more = document.createElement("span");
    more.className = listed ? "entry-more" : "unseen";
    more.textContent = ` ${[account, word].filter(Boolean).join(", ")}`;
    line.append(mark, text, more);
    return { domNodes: [line] };
  }

  async function reschedule(event, at) {
    const { post, accountId } = event.extendedProps;
    return api("POST", `/api/posts/${post}/reschedule`, { at: at.toISOString(), accounts: [accountId] });
  }

  // When it is planned: what is shown is that and a few random minutes, which must not add up from move to move.
  async function planned(event) {
    const { publications } = await api("GET", `/api/posts/${event.extendedProps.post}`);
    return new Date(publications.find((each) => each.id === event.id)?.scheduledAt ?? event.start);
  }

  // Sends a new time, says so and offers the way back; also to who has no mouse.
  async function move(event, before, at) {
    moved = event.id;
    shown = null;
    try {
      const was = await planned(event);
      const goes = new Date(was.valueOf() + (at - before));
      await reschedule(event, goes);
      say(`${event.title} goes out ${moment(goes)}.`, { tone: "good", action: { name: "Undo", run: () => undo(event, was) } });
    } catch (problem) {
      say(problem.message, { tone: "bad" });
    }
    await renew();
  }

  async function undo(event, before) {
    try {
      await reschedule(event, before);
      say(`${event.title} is back at ${moment(before)}.`);
    } catch (problem) {
      say(problem.message, { tone: "bad" });
    }
    await renew();
  }

  let known = null; // what the API told last, and for which span
  let shown = null; // as what it is drawn; what is the same is left as it is, under whoever's hand it may be
  let dragging = false;
  let stale = false;
  let asking = null;

  // Shows what is known, as much as the view has room for.
  function draw() {
    const { type, activeStart, activeEnd } = calendar.view;
    const within = known.items.filter((each) => { const at = new Date(each.actualPublishAt); return at >= activeStart && at < activeEnd; });
    const drawing = JSON.stringify([type, activeStart, moved, within]);
    if (drawing === shown) return;
    shown = drawing;
    const focused = document.activeElement?.closest?.("[data-entry]")?.dataset.entry;
    calendar.batchRendering(() => {
      calendar.removeAllEventSources();
      calendar.removeAllEvents();
      calendar.addEventSource(fitted(within, type));
    });
    if (focused && !document.activeElement?.closest("[data-entry]")) place.querySelector(`[data-entry="${CSS.escape(focused)}"]`)?.focus();
  }

  function cleared() {
    shown = null;
    calendar.removeAllEventSources();
  }

  // Asks again; while somebody drags, or an answer is on its way, it waits for that.
  async function renew() {
    stale = true;
    if (dragging) return;
    asking ??= (async () => {
      while (stale) {
        stale = false;
        const span = { start: calendar.view.activeStart, end: calendar.view.activeEnd };
        try {
          known = { ...span, items: await load(span) };
        } catch (problem) {
          say(problem.message, { tone: "bad" });
          if (known) draw();
          return;
        }
        if (dragging) { stale = true; return; }
        draw();
      }
    })().finally(() => { asking = null; });
    await asking;
  }

  // The address remembers view and day, so that the way back from a post leads to where one was.
  function placed() {
    const [, view, date] = location.hash.match(/^#(dayGridMonth|timeGridWeek|timeGridDay|listMonth|listWeek|listDay)\/(\d{4}-\d\d-\d\d)$/) ?? [];
    return view ? { view, date } : null;
  }

  function arrived({ view, start, end }) {
    for (const each of place.querySelectorAll(".fc-icon")) { each.removeAttribute("role"); each.setAttribute("aria-hidden", "true"); }
    const wanted = `#${view.type}/${day(view.currentStart)}`;
    if (location.hash !== wanted) history.replaceState(null, "", wanted);
    if (known && known.start <= start && known.end >= end) draw();
    else { cleared(); renew(); }
  }

  const first = placed();
  const calendar = new FullCalendar.Calendar(place, {
    initialView: first?.view ?? (phone.matches ? "listWeek" : "dayGridMonth"),
    ...(first ? { initialDate: first.date } : {}),
    locale: navigator.language,
    timeZone: "local",
    height: "auto",
    nowIndicator: true,
    navLinks: true,
    nextDayThreshold: "12:00", // what goes out before midnight does not stand on the next day, too
    eventDisplay: "block",
    displayEventEnd: false,
    forceEventDuration: true,
    defaultTimedEventDuration: "00:30",
    slotEventOverlap: false,
    eventDurationEditable: false,
    allDaySlot: false,
    headerToolbar: { left: "prev,next today", center: "title", right: phone.matches ? "dayGridMonth,timeGridDay,listWeek" : "dayGridMonth,timeGridWeek,listMonth" },
    buttonText: { today: "Today", month: "Month", week: "Week", list: "List" },
    buttonHints: { prev: "Earlier", next: "Later", today: "Today" },
    views: { timeGridDay: { buttonText: "Day" } },
    eventTimeFormat: { hour: "2-digit", minute: "2-digit" },
    slotLabelFormat: { hour: "2-digit", minute: "2-digit" },
    noEventsContent: "Nothing goes out in this time.",
    eventContent: face,
    eventDidMount: ({ el, event }) => {
      (el.matches("a") ? el : el.querySelector("a") ?? el).dataset.entry = event.id;
      if (event.extendedProps.more) el.querySelector(".fc-list-event-time")?.replaceChildren();
    },
    eventDragStart: () => { dragging = true; },
    eventDragStop: () => { dragging = false; if (stale) renew(); },
    eventDrop: (change) => move(change.event, change.oldEvent.start, change.event.start),
    // A cell is not called by its number alone when there is more in it, and a picture beside a name needs none.
    dayCellDidMount: (cell) => cell.el.removeAttribute("aria-labelledby"),
    datesSet: arrived,
  });
  calendar.render();
  // What one view has room for is not first drawn in the next one.
  place.addEventListener("click", (event) => { if (event.target.closest(".fc-toolbar .fc-button:not(.fc-button-active)")) cleared(); }, true);
  addEventListener("hashchange", () => { const to = placed(); if (to) calendar.changeView(to.view, to.date); });

  // Shift and an arrow move what has the focus: by a day or a week, in the hours of a week by half an hour or a day.
  place.addEventListener("keydown", (pressed) => {
    const event = pressed.shiftKey && calendar.getEventById(pressed.target.closest?.("[data-entry]")?.dataset.entry ?? "");
    if (!event || event.startEditable === false || event.extendedProps.more || place.dataset.mayMove !== "yes") return;
    const hours = calendar.view.type.startsWith("timeGrid");
    const [days, minutes] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: hours ? [0, -30] : [-7, 0], ArrowDown: hours ? [0, 30] : [7, 0] }[pressed.key] ?? [];
    if (days === undefined) return;
    pressed.preventDefault();
    const at = new Date(event.start);
    at.setDate(at.getDate() + days);
    at.setMinutes(at.getMinutes() + minutes);
    move(event, event.start, at);
  });

  let soon = null;
  for (const kind of ["post", "publication"]) {
    // However much happens, it is asked at most twice a second, and never put off for ever.
    document.body.addEventListener(`live:${kind}`, () => { soon ??= setTimeout(() => { soon = null; renew(); }, 500); });
  }
  window.imprint.calendar = calendar;
})();
