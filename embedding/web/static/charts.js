// Line charts with intervals, drawn by ECharts from the figures that a box holds (data-chart).
"use strict";

const SYMBOLS = ["circle", "rect", "triangle", "diamond", "roundRect", "pin", "arrow", "circle"];
const FEW = 16;
const gentle = !matchMedia("(prefers-reduced-motion: reduce)").matches;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const role = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    series: [...Array(8).keys()].map((i) => role(`s${i}`)),
    soft: role("soft"),
    line: role("line"),
    card: role("card"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

// An interval is a bar at each of few windows, and a band over many.
function interval(line, colour, few) {
  if (line.low.length === 0) return [];
  const both = line.low.map((low, i) => (low === null || line.high[i] === null ? null : i));
  const common = { type: "line", silent: true, symbol: "none", animation: false, z: 1 };
  if (few) {
    const style = { color: colour, width: 1.6, opacity: 0.75 };
    return both
      .filter((i) => i !== null)
      .map((i) => ({
        ...common,
        lineStyle: style,
        symbol: "rect",
        symbolSize: [9, 1.6],
        itemStyle: { color: colour, opacity: 0.75 },
        showSymbol: true,
        data: [
          [i, line.low[i]],
          [i, line.high[i]],
        ],
      }));
  }
  const clear = { ...common, stack: `band-${line.name}`, stackStrategy: "all" };
  return [
    { ...clear, lineStyle: { opacity: 0 }, data: both.map((i) => (i === null ? null : line.low[i])) },
    {
      ...clear,
      lineStyle: { opacity: 0 },
      areaStyle: { color: colour, opacity: 0.16 },
      data: both.map((i) => (i === null ? null : line.high[i] - line.low[i])),
    },
  ];
}

function drawn(line, i, chosen, few) {
  const colour = chosen.series[line.colour];
  const only = line.values.filter((value) => value !== null).length === 1;
  return [
    ...interval(line, colour, few),
    {
      type: "line",
      name: line.name,
      data: line.values,
      z: line.dashed ? 2 : 3,
      symbol: only && line.dashed ? "rect" : SYMBOLS[line.colour],
      symbolSize: only && line.dashed ? [26, 2] : line.dashed ? 5 : 7,
      showSymbol: only || (few && !line.dashed),
      connectNulls: false,
      lineStyle: {
        color: colour,
        width: line.dashed ? 1.6 : 2.4,
        type: line.dashed ? (line.colour % 2 ? "dotted" : "dashed") : "solid",
      },
      itemStyle: { color: colour, borderColor: chosen.card, borderWidth: 1 },
      emphasis: { disabled: true },
    },
  ];
}

function options(data, chosen) {
  const few = data.labels.length <= FEW;
  const text = { color: chosen.soft, fontFamily: chosen.font, fontSize: 11.5 };
  return {
    animation: gentle,
    animationDuration: 300,
    grid: { left: 44, right: 16, top: 14, bottom: 28 },
    tooltip: {
      trigger: "axis",
      showContent: false,
      axisPointer: { type: "line", lineStyle: { color: chosen.soft, type: "solid", opacity: 0.6 } },
    },
    xAxis: {
      type: "category",
      data: data.labels,
      boundaryGap: few,
      axisLine: { lineStyle: { color: chosen.line } },
      axisTick: { show: false },
      axisLabel: { ...text, hideOverlap: true, ...(few ? {} : { alignMaxLabel: "right" }) },
    },
    yAxis: {
      type: "value",
      min: data.bottom === null ? undefined : data.bottom,
      max: data.top === null ? undefined : data.top,
      splitNumber: 4,
      interval: data.top === null ? undefined : (data.top - data.bottom) / 4,
      axisLabel: text,
      splitLine: { lineStyle: { color: chosen.line } },
    },
    series: data.lines.flatMap((line, i) => drawn(line, i, chosen, few)),
  };
}

function tipOf(box) {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  box.parentElement.append(tip);
  return tip;
}

// Shows a window's figures under the pointer and the arrow keys.
function pointing(box, chart, data) {
  const tip = tipOf(box);
  const last = data.labels.length - 1;
  let at = -1;
  const show = (index) => {
    at = index;
    tip.hidden = index < 0;
    if (index < 0) {
      chart.dispatchAction({ type: "updateAxisPointer", currTrigger: "leave" });
      return;
    }
    tip.textContent = data.tips[index];
    const x = chart.convertToPixel({ xAxisIndex: 0 }, index);
    const wide = tip.offsetWidth;
    const left = x + 14 + wide > box.clientWidth ? x - 14 - wide : x + 14;
    // Set through the object model, which the content policy allows.
    tip.style.left = `${Math.max(left, 0)}px`;
  };
  const near = (event) => {
    const place = chart.convertFromPixel({ xAxisIndex: 0 }, event.offsetX);
    return Math.min(Math.max(Math.round(place), 0), last);
  };
  chart.getZr().on("mousemove", (event) => show(near(event)));
  chart.getZr().on("globalout", () => show(-1));
  box.addEventListener("blur", () => show(-1));
  box.addEventListener("keydown", (event) => {
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
    if (next >= 0) {
      const x = chart.convertToPixel({ xAxisIndex: 0 }, next);
      chart.dispatchAction({ type: "updateAxisPointer", currTrigger: "mousemove", x, y: 40 });
    }
  });
}

function saving(box, chart) {
  const button = box.closest("section")?.querySelector("[data-png]");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.download = `yeoron-${box.dataset.name}.png`;
    link.href = chart.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: colours().card });
    link.click();
  });
}

function draw(box) {
  const data = JSON.parse(box.dataset.chart);
  const chart = echarts.init(box, null, { renderer: "canvas" });
  const again = () => chart.setOption(options(data, colours()), { notMerge: true });
  again();
  pointing(box, chart, data);
  saving(box, chart);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new ResizeObserver(() => chart.resize()).observe(box);
  box.dataset.drawn = "yes";
}

// Names of lines in the colours that they are drawn in; the one drawn last, above the others, first.
function legend(lines) {
  const list = document.createElement("ul");
  list.className = "legend";
  list.append(
    ...[lines.at(-1), ...lines.slice(0, -1)].map((line) => {
      const item = document.createElement("li");
      item.className = `s${line.colour}${line.dashed ? " dash" : ""}`;
      item.dir = "auto";
      item.textContent = line.name.slice(0, 40);
      return item;
    }),
  );
  return list;
}

// The axis asks for more than a page can wait for, so it comes after the page.
async function axis(card) {
  const state = card.querySelector(".state");
  try {
    const answer = await fetch(card.dataset.axis);
    const found = await answer.json();
    if (!answer.ok) {
      state.textContent = found.sentence || card.dataset.failed;
      return;
    }
    state.textContent = found.sentence;
    if (!found.chart) return;
    const around = document.createElement("div");
    const box = document.createElement("div");
    around.className = "chart-box";
    box.className = "chart";
    box.tabIndex = 0;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${found.chart.title}. ${found.sentence} ${card.dataset.hint}`);
    box.dataset.name = "axis";
    box.dataset.chart = JSON.stringify(found.chart);
    around.append(box);
    card.append(around, legend(found.chart.lines));
    draw(box);
  } catch {
    state.textContent = card.dataset.failed;
  }
}

// The change date looks at every window, so a page that is new to it shows it when it comes.
async function change(box) {
  const figure = box.querySelector("dd");
  try {
    const answer = await fetch(box.dataset.change);
    const found = await answer.json();
    const beside = document.createElement("small");
    beside.textContent = answer.ok ? found.about : "";
    figure.replaceChildren(`${answer.ok ? found.text : "–"} `, beside);
    if (answer.ok) await marks();
  } catch {
    figure.textContent = "–";
  }
}

// Which neighbours came and went is known with it: the page as it is now has them marked.
async function marks() {
  const now = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
  const lists = now.querySelectorAll(".near-list");
  document.querySelectorAll(".near-list").forEach((list, at) => {
    if (lists[at] && !list.contains(document.activeElement)) list.replaceWith(lists[at]);
  });
}

document.querySelectorAll("[data-chart]").forEach(draw);
document.querySelectorAll("[data-axis]").forEach(axis);
document.querySelectorAll("[data-change]").forEach(change);
