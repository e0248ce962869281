// The map of a word's neighbours with its slider, drawn by ECharts (data-map).
"use strict";

const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

function roles() {
  const style = getComputedStyle(document.documentElement);
  const role = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: role("ink"), soft: role("soft"), line: role("line"), card: role("card"),
    accent: role("accent"), heat: role("heat"), gone: role("gone"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

// A label goes where no other label lies; where all four places are taken, it waits for the pointer.
function placed(places, chart, taken) {
  return places.map((place) => {
    const [x, y] = chart.convertToPixel({ seriesId: "centre" }, [place.x, place.y]);
    const size = place.near ? 13 : 11;
    const wide = [...place.word].reduce((sum, c) => sum + (c > "\u1100" ? 1 : 0.62), 0) * size;
    const gap = symbol(place) / 2 + 4;
    const boxes = {
      right: [x + gap, y - size / 2, wide, size],
      left: [x - gap - wide, y - size / 2, wide, size],
      top: [x - wide / 2, y - gap - size, wide, size],
      bottom: [x - wide / 2, y + gap, wide, size],
    };
    const free = Object.keys(boxes).find((side) => {
      const [bx, by, w, h] = boxes[side];
      if (bx < 0 || bx + w > chart.getWidth()) return false;
      return taken.every(([ox, oy, ow, oh]) => bx > ox + ow || ox > bx + w || by > oy + oh || oy > by + h);
    });
    if (free) taken.push(boxes[free]);
    return { ...place, side: free };
  });
}

// The box that a word's dot fills.
function dot(place, chart) {
  const [x, y] = chart.convertToPixel({ seriesId: "centre" }, [place.x, place.y]);
  const size = symbol(place);
  return [x - size / 2, y - size / 2, size, size];
}

function symbol(place) {
  return place.near ? 8 + 12 * Math.max(place.similarity, 0) : 6;
}

function points(window, chosen, chart, word) {
  const order = [...window.places].sort((a, b) => b.near - a.near || b.similarity - a.similarity);
  const [cx, cy] = chart.convertToPixel({ seriesId: "centre" }, [0, 0]);
  const own = word.length * 17;
  const taken = [[cx - own / 2, cy - 30, own, 40]];
  // Labels of near words come first and keep clear of near dots; the others keep clear of all.
  const named = [true, false].flatMap((near) => {
    const some = order.filter((place) => place.near === near);
    taken.push(...some.map((place) => dot(place, chart)));
    return placed(some, chart, taken);
  });
  return named.map((place) => ({
    name: place.word,
    value: [place.x, place.y],
    symbol: place.new ? "diamond" : "circle",
    symbolSize: symbol(place),
    itemStyle: {
      color: place.new ? chosen.heat : place.near ? chosen.accent : chosen.card,
      borderColor: chosen.gone,
      borderWidth: place.near ? 0 : 1.5,
      opacity: place.near ? 0.9 : 0.7,
    },
    label: {
      show: Boolean(place.side),
      position: place.side || "right",
      color: place.new ? chosen.heat : place.near ? chosen.ink : chosen.gone,
      fontWeight: place.new ? 700 : 400,
      fontSize: place.near ? 13 : 11,
    },
  }));
}

// One scale for both directions, so that distances can be read off.
function frame(bounds, box) {
  const room = 1.12;
  const [x0, x1, y0, y1] = bounds;
  const wide = Math.max(box.clientWidth, 1);
  const high = Math.max(box.clientHeight, 1);
  const unit = Math.max(((x1 - x0) * room) / wide, ((y1 - y0) * room) / high, 1e-6);
  const half = [(unit * wide) / 2, (unit * high) / 2];
  const middle = [(x0 + x1) / 2, (y0 + y1) / 2];
  const axis = (at) => ({
    type: "value", min: middle[at] - half[at], max: middle[at] + half[at], show: false,
  });
  return { xAxis: axis(0), yAxis: axis(1) };
}

function still(data, chosen, box) {
  const label = { formatter: "{b}", fontFamily: chosen.font, distance: 4 };
  return {
    animation: !calm,
    animationDuration: calm ? 0 : 300,
    animationDurationUpdate: calm ? 0 : 500,
    grid: { left: 0, right: 0, top: 0, bottom: 0 },
    ...frame(data.bounds, box),
    series: [
      {
        type: "scatter", id: "near", label, cursor: "pointer",
        emphasis: { focus: "self", label: { show: true, fontWeight: 700 } },
      },
      {
        type: "scatter", id: "centre", silent: true, z: 5,
        data: [{ name: data.word, value: [0, 0] }], symbol: "circle", symbolSize: 16,
        itemStyle: { color: chosen.ink, opacity: 1, borderColor: chosen.card, borderWidth: 2 },
        label: { ...label, show: true, position: "top", color: chosen.ink, fontWeight: 700, fontSize: 16 },
      },
    ],
  };
}

function chips(list, window, base) {
  const near = window.places.filter((place) => place.near);
  near.sort((a, b) => b.similarity - a.similarity);
  list.replaceChildren(
    ...near.map((place) => {
      const link = document.createElement("a");
      link.className = `word chip${place.new ? " new" : ""}`;
      link.dir = "auto";
      link.href = keeping(`${base}?w=${encodeURIComponent(place.word)}`);
      link.textContent = place.word;
      return link;
    }),
  );
}

function map(box) {
  const data = JSON.parse(box.dataset.map);
  const card = box.closest("section");
  const slider = document.getElementById("map-time");
  const button = card.querySelector("[data-play]");
  const list = document.querySelector(".map-list");
  const chart = echarts.init(box, null, { renderer: "canvas" });
  const play = button.textContent;
  let at = data.windows.length - 1;
  let timer = 0;
  const show = (index) => {
    at = index;
    const window = data.windows[index];
    const chosen = roles();
    chart.setOption(still(data, chosen, box));
    chart.setOption({ series: [{ id: "near", data: points(window, chosen, chart, data.word) }] });
    card.querySelector(".map-window").textContent = window.label;
    card.querySelector(".map-kept").textContent = window.kept;
    slider.value = String(index);
    slider.setAttribute("aria-valuetext", window.label);
    chips(list, window, box.dataset.word);
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    button.textContent = play;
  };
  card.querySelector(".map-controls").hidden = data.windows.length < 2;
  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value));
  });
  button.addEventListener("click", () => {
    if (timer) return stop();
    button.textContent = button.dataset.stop;
    if (at === data.windows.length - 1) show(0);
    timer = setInterval(() => {
      if (at >= data.windows.length - 1) return stop();
      show(at + 1);
    }, 900);
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    stop();
    show(Math.min(Math.max(at + step, 0), data.windows.length - 1));
  });
  chart.on("click", "series", (event) => {
    if (event.name !== data.word) location.assign(keeping(`${box.dataset.word}?w=${encodeURIComponent(event.name)}`));
  });
  const png = card.querySelector("[data-png]");
  png.hidden = false;
  png.addEventListener("click", () => {
    const link = document.createElement("a");
    link.download = "yeoron-map.png";
    link.href = chart.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: roles().card });
    link.click();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(at));
  new ResizeObserver(() => {
    chart.resize();
    show(at);
  }).observe(box);
  show(at);
  box.dataset.drawn = "yes";
}

document.querySelectorAll("[data-map]").forEach(map);
