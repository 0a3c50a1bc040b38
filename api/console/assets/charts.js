// Draws a chart in each element with data-chart, from the table that data-chart names. The table
// remains on the page for browsers without scripts and for screen readers.
(() => {
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const readTable = (table) => {
    const rows = [...table.tBodies[0].rows];
    const times = rows.map((row) => Date.parse(row.querySelector("time").dateTime) / 1000);
    const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
    const series = names.map((_, i) => rows.map((row) => {
      const text = row.cells[i + 1].dataset.value;
      return text === undefined || text === "" ? null : Number(text);
    }));
    return { times, names, series };
  };

  const draw = (element) => {
    const table = document.getElementById(element.dataset.chart);
    const column = Number(element.dataset.column);
    if (!table || !table.tBodies[0]) return;
    const { times, names, series } = readTable(table);
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    element.replaceChildren();
    const plot = new uPlot({
      width: element.clientWidth, height: 160, legend: { show: false }, cursor: { drag: { x: false, y: false } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { range: () => [times.at(-1) - 3600, times.at(-1)] }, y: { range: (_, min, max) => [0, max > 0 ? max * 1.1 : 1] } },
      series: [{}, { label: names[column], stroke: color("--link"), width: 1.5, points: { show: false } }],
      axes: [{ ...axis, space: 60, values: (_, ticks) => ticks.map((t) => new Date(t * 1000).toISOString().slice(11, 16)) }, { ...axis, size: 56 }],
    }, [times, series[column]], element);
    element.resize = () => plot.setSize({ width: element.clientWidth, height: 160 });
  };

  const drawAll = () => document.querySelectorAll("[data-chart]").forEach(draw);
  const start = () => {
    drawAll();
    addEventListener("resize", () => document.querySelectorAll("[data-chart]").forEach((e) => e.resize?.()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    document.addEventListener("htmx:after:swap", drawAll);
  };
  start();
})();
