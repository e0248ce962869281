// Suggestions, the live panel, the watch list. Every page can be read without this file.
"use strict";

// What the reader asked to see alone stands in the address, and every address made here keeps it.
function keeping(path) {
  const asked = new URLSearchParams(location.search);
  const kept = ["from", "to", "source", "topic"].flatMap((name) =>
    asked.getAll(name).filter(Boolean).map((value) => [name, value]),
  );
  if (kept.length === 0) return path;
  return `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams(kept)}`;
}

// A field with data-word leads to the page of what is chosen; another one takes it as its value.
function suggestions(input) {
  const list = document.getElementById(input.getAttribute("aria-controls"));
  let words = [];
  let at = -1;
  let timer = 0;
  let asked = 0;

  const address = (word) => {
    const coded = encodeURIComponent(word);
    const awkward = /^\.*$|[/\\]/.test(word);
    return keeping(
      awkward ? `${input.dataset.word}?w=${coded}` : `${input.dataset.word}/${coded}`,
    );
  };
  const close = () => {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (word) => {
    if (input.dataset.word) return location.assign(address(word));
    input.value = word;
    asked += 1;
    close();
  };
  const mark = () => {
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
    if (at >= 0) input.setAttribute("aria-activedescendant", `${list.id}-${at}`);
    else input.removeAttribute("aria-activedescendant");
  };
  const show = () => {
    list.replaceChildren(
      ...words.map((word, i) => {
        const item = document.createElement("li");
        item.id = `${list.id}-${i}`;
        item.setAttribute("role", "option");
        item.dir = "auto";
        item.textContent = word.slice(0, 80);
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          choose(word);
        });
        return item;
      }),
    );
    list.hidden = words.length === 0;
    input.setAttribute("aria-expanded", String(words.length > 0));
    at = -1;
    mark();
  };
  const ask = async () => {
    const query = input.value.trim();
    const mine = ++asked;
    if (!query) return close();
    try {
      const url = `${input.dataset.suggest}?q=${encodeURIComponent(query)}&n=8`;
      const answer = await fetch(url);
      if (!answer.ok || mine !== asked) return;
      words = (await answer.json()).words;
      show();
    } catch {
      close();
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 120);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      at = (at + step + words.length + 1) % (words.length + 1);
      if (at === words.length) at = -1;
      mark();
      event.preventDefault();
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      choose(words[at]);
    } else if (event.key === "Escape") {
      close();
    }
  });
}

function duration(s) {
  if (s < 120) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
}

function live(panel) {
  const state = panel.querySelector(".state");
  const figures = panel.querySelector(".totals");
  const sources = panel.querySelector(".live-sources");
  const show = (answer) => {
    const on = answer.state === "live";
    panel.classList.toggle("on", on);
    panel.classList.toggle("lost", !on);
    state.textContent = on ? "" : state.dataset.unreachable;
    figures.hidden = sources.hidden = !on;
    if (!on) return;
    if (answer.snapshots && "waits" in panel.dataset) location.reload();
    panel.querySelectorAll("[data-figure]").forEach((cell) => {
      const value = answer[cell.dataset.figure];
      if (value === null || value === undefined) cell.textContent = "–";
      else if (cell.dataset.figure.endsWith("_s")) cell.textContent = duration(value);
      else cell.textContent = Math.round(value).toLocaleString(document.documentElement.lang);
    });
    const known = answer.sources.map((one) => one.source);
    const unread = Object.keys(answer.faults).filter((name) => !known.includes(name));
    sources.replaceChildren(
      ...[...answer.sources, ...unread.map((source) => ({ source }))].map((source) => {
        const line = document.createElement("li");
        const name = document.createElement("span");
        const amount = document.createElement("span");
        const number = (n) => (n ?? 0).toLocaleString(document.documentElement.lang);
        name.textContent = source.source.slice(0, 40);
        amount.textContent = number(source.documents);
        line.append(name, amount);
        for (const [reason, n] of Object.entries(answer.faults[source.source] ?? {})) {
          const fault = document.createElement("small");
          const said = sources.dataset[reason] ?? `${sources.dataset.left_out}: ${reason}`;
          fault.textContent = `${said} ${number(n)}`;
          line.append(fault);
        }
        return line;
      }),
    );
  };
  const ask = async () => {
    try {
      const answer = await fetch(panel.dataset.stream);
      show(answer.ok ? await answer.json() : { state: "unreachable" });
    } catch {
      show({ state: "unreachable" });
    }
    setTimeout(ask, document.hidden ? 30000 : 5000);
  };
  ask();
}

// A part of the page that was still being computed when the page was sent: it takes its place when
// it is there, and goes where there is nothing to show. Without this file a link loads the page anew.
async function later(section) {
  const wait = (s) => new Promise((done) => setTimeout(done, s * 1000));
  const link = section.querySelector("[data-reload]") ?? {};
  link.hidden = true;
  for (let failed = 0; failed < 5; ) {
    try {
      const answer = await fetch(section.dataset.later ?? section.dataset.analyses);
      if (answer.status === 204) return section.remove();
      if (answer.status === 200 && !answer.redirected) return insert(section, await answer.text());
      failed = answer.status === 202 ? 0 : failed + 1;
    } catch {
      failed += 1;
    }
    await wait(document.hidden ? 15 : 1);
  }
  link.hidden = false;
}

function insert(section, html) {
  const made = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
  if (!made) return section.remove();
  const above = [...document.querySelectorAll(".hero .lede")].pop();
  if (made.dataset.sentence && above) {
    const sentence = document.createElement("p");
    sentence.className = "lede";
    sentence.textContent = made.dataset.sentence;
    above.before(sentence);
  }
  const at = section.contains(document.activeElement) && document.activeElement.href;
  // The tour may speak of it.
  if (section.classList.contains("tour-at")) made.classList.add("tour-at");
  section.replaceWith(made);
  if (at) [...made.querySelectorAll("a")].find((link) => link.href === at)?.focus();
  if (made.dataset.analyses) later(made);
}

// Headlines of original documents, three at a time: the sites are asked when a reader asks.
function headlines(button) {
  const box = button.closest(".originals");
  const about = box.querySelector("[data-headlines-about]");
  button.hidden = about.hidden = false;
  const fill = async (item) => {
    const why = item.querySelector(".why");
    why.textContent = ` · ${button.dataset.waiting}`;
    try {
      const answer = await fetch(item.dataset.headline);
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.error);
      why.textContent = found.said ? ` · ${found.said}` : "";
      if (!found.headline) return;
      const shown = item.querySelector(".headline");
      why.before(` · ${shown.textContent}`);
      shown.textContent = found.headline;
    } catch {
      why.textContent = ` · ${button.dataset.failed}`;
    }
  };
  button.addEventListener("click", async () => {
    button.disabled = true;
    const waiting = [...box.querySelectorAll("[data-headline]")];
    const next = async () => {
      for (let item = waiting.shift(); item; item = waiting.shift()) await fill(item);
    };
    await Promise.all([next(), next(), next()]);
    button.parentElement.remove();
  });
}

// The watch list is this browser's own: the page writes nothing on the server.
const KEY = "yeoron-watch";
const watched = () => {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) || "[]");
    return Array.isArray(kept) ? kept.filter((word) => typeof word === "string") : [];
  } catch {
    return [];
  }
};

function star(button) {
  const word = button.dataset.watch;
  const show = (on) => {
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? button.dataset.on : button.dataset.off;
  };
  button.hidden = false;
  show(watched().includes(word));
  button.addEventListener("click", () => {
    const others = watched().filter((one) => one !== word);
    const on = others.length === watched().length;
    try {
      localStorage.setItem(KEY, JSON.stringify(on ? [...others, word].slice(-100) : others));
      show(on);
      mine();
    } catch {
      button.disabled = true;
    }
  });
}

// Takes a word off the list of this browser; words of the settings' own list have no button.
function unwatch(button) {
  const word = button.dataset.unwatch;
  button.hidden = !watched().includes(word);
  button.addEventListener("click", () => {
    const others = watched().filter((one) => one !== word);
    localStorage.setItem(KEY, JSON.stringify(others));
    const shown = new URLSearchParams(location.search).getAll("w").filter((one) => one !== word);
    const query = new URLSearchParams(shown.map((one) => ["w", one])).toString();
    location.replace(keeping(`${location.pathname}${query ? `?${query}` : ""}`));
  });
}

function mine() {
  const words = watched();
  if (words.length === 0) return;
  const query = new URLSearchParams(words.map((word) => ["w", word])).toString();
  document.querySelectorAll("a[data-watch-page]").forEach((link) => {
    link.href = keeping(`${link.href.split("?")[0]}?${query}`);
  });
  const list = document.querySelector("[data-watch-list=own]");
  if (list) location.replace(keeping(`${location.pathname}?${query}`));
}

// The tour marks what it speaks of. Whoever ended or skipped it sees it again only when they ask.
const TOUR = "yeoron-tour";
function tour(box) {
  const steps = [...box.querySelectorAll("[data-step]")];
  const next = box.querySelector("[data-tour-next]");
  const again = document.querySelector("[data-tour-again]");
  const texts = { next: next.textContent, last: next.dataset.last };
  let at = 0;
  const mark = (on) => {
    document.querySelectorAll(".tour-at").forEach((one) => one.classList.remove("tour-at"));
    if (on) document.querySelector(steps[at].dataset.step)?.classList.add("tour-at");
  };
  const show = (step) => {
    at = step;
    steps.forEach((one, i) => {
      one.hidden = i !== at;
    });
    next.textContent = at === steps.length - 1 ? texts.last : texts.next;
    box.hidden = false;
    mark(true);
  };
  const end = () => {
    box.hidden = true;
    mark(false);
    if (again) again.hidden = false;
    try {
      localStorage.setItem(TOUR, "seen");
    } catch {
      // Without a memory it is shown again on the next visit.
    }
  };
  next.addEventListener("click", () => (at === steps.length - 1 ? end() : show(at + 1)));
  box.querySelector("[data-tour-skip]").addEventListener("click", end);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
  });
  again?.addEventListener("click", () => {
    again.hidden = true;
    show(0);
    box.focus();
  });
  let seen = null;
  try {
    seen = localStorage.getItem(TOUR);
  } catch {
    seen = "seen";
  }
  if (seen) {
    if (again) again.hidden = false;
  } else show(0);
}

document.querySelectorAll("[data-tour]").forEach(tour);
document.querySelectorAll("button[data-watch]").forEach(star);
document.querySelectorAll("button[data-unwatch]").forEach(unwatch);
mine();
document.querySelectorAll("input[data-suggest]").forEach(suggestions);
document.querySelectorAll("[data-stream]").forEach(live);
document.querySelectorAll("[data-later], [data-analyses]").forEach(later);
document.querySelectorAll("button[data-headlines]").forEach(headlines);
document.querySelectorAll(".then-now select").forEach((select) => {
  select.addEventListener("change", () => select.form.requestSubmit());
});
