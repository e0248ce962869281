// Suggestions, chart tooltips and the live panel. Every page works without this file.
"use strict";

function suggestions(input) {
  const list = document.getElementById("suggestions");
  let words = [];
  let at = -1;
  let timer = 0;
  let asked = 0;

  const address = (word) => {
    const coded = encodeURIComponent(word);
    const awkward = /^\.*$|[/\\]/.test(word);
    return awkward ? `${input.dataset.word}?w=${coded}` : `${input.dataset.word}/${coded}`;
  };
  const close = () => {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const mark = () => {
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
    if (at >= 0) input.setAttribute("aria-activedescendant", `suggestion-${at}`);
    else input.removeAttribute("aria-activedescendant");
  };
  const show = () => {
    list.replaceChildren(
      ...words.map((word, i) => {
        const item = document.createElement("li");
        item.id = `suggestion-${i}`;
        item.setAttribute("role", "option");
        item.dir = "auto";
        item.textContent = word.slice(0, 80);
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          location.assign(address(word));
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
      location.assign(address(words[at]));
    } else if (event.key === "Escape") {
      close();
    }
  });
}

function chart(svg) {
  const box = svg.parentElement;
  const hits = [...svg.querySelectorAll(".hit")];
  if (hits.length === 0) return;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  box.append(tip);
  // The native tooltip would cover ours.
  hits.forEach((hit) => hit.querySelector("title").remove());
  let at = -1;
  const show = (index) => {
    at = index;
    hits.forEach((hit, i) => hit.classList.toggle("at", i === index));
    if (index < 0) {
      tip.hidden = true;
      return;
    }
    tip.textContent = hits[index].dataset.tip;
    tip.hidden = false;
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const x = Number(hits[index].dataset.x) * scale;
    const wide = tip.offsetWidth;
    const left = x + 14 + wide > box.clientWidth ? x - 14 - wide : x + 14;
    // Set through the object model, which the content policy allows.
    tip.style.left = `${Math.max(left, 0)}px`;
  };
  hits.forEach((hit, i) => hit.addEventListener("pointerenter", () => show(i)));
  svg.addEventListener("pointerleave", () => show(-1));
  svg.addEventListener("blur", () => show(-1));
  svg.addEventListener("keydown", (event) => {
    const last = hits.length - 1;
    const next = {
      ArrowRight: Math.min(at + 1, last),
      ArrowLeft: at < 0 ? last : Math.max(at - 1, 0),
      Home: 0,
      End: last,
      Escape: -1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(next);
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
    panel.querySelectorAll("[data-figure]").forEach((cell) => {
      const value = answer[cell.dataset.figure];
      if (value === null || value === undefined) cell.textContent = "–";
      else if (cell.dataset.figure.endsWith("_s")) cell.textContent = duration(value);
      else cell.textContent = Math.round(value).toLocaleString(document.documentElement.lang);
    });
    sources.replaceChildren(
      ...answer.sources.map((source) => {
        const line = document.createElement("li");
        const name = document.createElement("span");
        const amount = document.createElement("span");
        name.textContent = source.source.slice(0, 40);
        amount.textContent = (source.documents ?? 0).toLocaleString(document.documentElement.lang);
        line.append(name, amount);
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

document.querySelectorAll("input[data-suggest]").forEach(suggestions);
document.querySelectorAll("svg.chart").forEach(chart);
document.querySelectorAll("[data-stream]").forEach(live);
document.querySelectorAll(".then-now select").forEach((select) => {
  select.addEventListener("change", () => select.form.requestSubmit());
});
