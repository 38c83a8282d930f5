"use strict";
// Draws the table of each figure. The tables stay: they are the figures for whoever cannot see.
const PALETTES = {
  light: { ink: "#5d5750", line: "#e4e0d9", hues: ["#0f766e", "#b45309", "#b91c1c", "#4338ca", "#64748b"] },
  dark: { ink: "#b3aca2", line: "#38332e", hues: ["#5eead4", "#fbbf24", "#fca5a5", "#a5b4fc", "#94a3b8"] },
};
const darkness = matchMedia("(prefers-color-scheme: dark)");

function readTable(table) {
  const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
  const columns = names.map((_, column) =>
    rows.map((row) => (row[column + 1] === "–" ? null : Number(row[column + 1]))));
  return { head: table.tHead.rows[0].cells[0].textContent, names, labels: rows.map((row) => row[0]), columns };
}

function drawChart(figure) {
  const box = figure.querySelector(".plot");
  const { head, names, labels, columns } = readTable(figure.querySelector("details table"));
  figure.chart?.destroy();
  box.replaceChildren();
  const { ink, line, hues } = PALETTES[darkness.matches ? "dark" : "light"];
  const isLine = figure.dataset.kind === "line";
  const unit = figure.dataset.unit;
  const hueOf = (name, number) => (["failed", "broken"].includes(name) ? hues[2] : hues[number % hues.length]);
  // bars are stacked: the tallest is drawn first, the others in front of it
  const tops = isLine ? columns : columns.map((_, number) =>
    labels.map((_, place) => columns.slice(0, number + 1).reduce((sum, column) => sum + column[place], 0)));
  const order = names.map((_, number) => number);
  if (!isLine) order.reverse();
  const series = order.map((number) => ({
    label: names[number],
    stroke: hueOf(names[number], number),
    width: isLine ? 2 : 0,
    fill: isLine ? undefined : hueOf(names[number], number),
    paths: isLine ? undefined : uPlot.paths.bars({ size: [0.7, 40], radius: 0.15 }),
    points: { show: isLine, size: 5 },
    value: (plot, value, series, place) => {
      const own = place === null ? null : columns[number][place];
      return own === null ? "" : own === undefined ? "–" : unit === "$" ? `$${own}` : unit ? `${own} ${unit}` : own;
    },
  }));
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  figure.chart = new uPlot({
    width: box.clientWidth,
    height: 140,
    cursor: { y: false, drag: { x: false } },
    legend: { show: names.length > 1 },
    scales: { x: { time: false, range: [-0.6, labels.length - 0.4] }, y: { range: (plot, low, high) => [0, high * 1.1 || 1] } },
    axes: [
      { ...axis, grid: { show: false }, space: 56, size: 26, values: (plot, places) => places.map((place) => labels[place] ?? "") },
      { ...axis, size: 44, values: (plot, values) => values.map((value) => (unit === "$" ? `$${value}` : value)) },
    ],
    series: [{ label: head, value: (plot, place) => labels[place] ?? "" }, ...series],
  }, [labels.map((_, place) => place), ...order.map((number) => tops[number])], box);
}

function drawAll() {
  document.querySelectorAll("figure.chart").forEach(drawChart);
}

addEventListener("DOMContentLoaded", drawAll);
darkness.addEventListener("change", drawAll);
document.addEventListener("swapped", (event) => { if (event.detail.querySelector("figure.chart")) drawAll(); });
let width = innerWidth;
addEventListener("resize", () => {
  if (width !== innerWidth) drawAll();
  width = innerWidth;
});
