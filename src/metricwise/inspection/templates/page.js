"use strict";
(() => {
  const source = document.getElementById("path");
  // Paper shows all tables; of the code, what is open.
  const folded = document.querySelectorAll("section:not([aria-labelledby=h-apply]) details");
  addEventListener("beforeprint", () => folded.forEach((one) => (one.open = true)));
  if (!source) return;
  const path = JSON.parse(source.textContent);
  const slider = document.getElementById("slider");
  const digits = (value) => (Math.abs(value) < 10 ? 3 : Math.abs(value) < 1000 ? 1 : 0);
  const number = (value, signed) => {
    if (value === null) return "–";
    // Halves go up, also those that are not exact in binary: number() in Python computes the same.
    const shown = digits(value), scale = 10 ** shown;
    const rounded = Math.floor(Math.abs(value) * scale + 0.5 + 1e-6) / scale;
    const text = rounded.toLocaleString("en-US", { minimumFractionDigits: shown, maximumFractionDigits: shown });
    if (Number(text.replace(/,/g, "")) === 0) return text;
    return (value < 0 ? "−" : signed ? "+" : "") + text;
  };
  // Scores have decimals by their range.
  const threshold = (value) => (path.digits === null ? number(value) : value.toFixed(path.digits).replace("-", "−"));
  const weight = (value, signed) => {
    const whole = Math.abs(value - Math.round(value)) < 1e-6 || Math.abs(value) >= 100;
    const text = Math.abs(value).toLocaleString("en-US", {
      minimumFractionDigits: whole ? 0 : 1, maximumFractionDigits: whole ? 0 : 1,
    });
    return (value < 0 && Math.abs(value) > 1e-9 ? "−" : signed && value > 1e-9 ? "+" : "") + text;
  };
  const series = [...Object.entries(path.values), ...Object.entries(path.bounded)];
  const rows = [...document.querySelectorAll("#metrics tbody tr")];
  const chart = document.querySelector("svg[data-left]");
  const cursor = chart.querySelector(".mw-cursor");
  const left = Number(chart.dataset.left), right = Number(chart.dataset.right);
  const first = path.position[0], last = path.position[path.position.length - 1];
  const cells = (id) => [...document.querySelectorAll(`#${id} tbody td`)];
  const matrices = path.confusion ? { before: cells("before"), after: cells("after"), change: cells("change") } : null;

  const shade = (cell, share, color) => (cell.style.background = `rgba(var(${color}),${(0.42 * share).toFixed(3)})`);
  const fill = (list, numbers, signed) => {
    const width = path.confusion.decisions.length;
    list.forEach((cell, at) => {
      const start = at - (at % width);
      const base = path.confusion.cells[path.plain].slice(start, start + width).reduce((a, b) => a + b, 0) || 1;
      cell.textContent = weight(numbers[at], signed);
      shade(cell, Math.min(1, Math.abs(numbers[at]) / base), signed && numbers[at] < 0 ? "--w" : "--h");
    });
  };

  // The slider moves along positions, as the chart does; what is shown is the nearest one that was counted.
  const nearest = (value) =>
    path.position.reduce((best, own, at) => (Math.abs(own - value) < Math.abs(path.position[best] - value) ? at : best), 0);

  const show = (at) => {
    const position = path.position[at];
    const where = path.kind === "threshold" ? threshold(position) : position.toFixed(2);
    const near = at === path.chosen ? " (the rule)" : at === path.plain ? " (argmax)" : "";
    document.getElementById("position").textContent = where + near;
    slider.setAttribute("aria-valuetext", where + near);
    series.forEach(([, values], row) => {
      const value = values[at], plain = values[path.plain];
      rows[row].querySelector(".at").textContent = number(value);
      rows[row].querySelector(".less").textContent = value === null || plain === null ? "" : number(value - plain, true);
    });
    const x = left + ((position - first) / (last - first || 1)) * (right - left);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    if (matrices) {
      const now = path.confusion.cells[at], plain = path.confusion.cells[path.plain];
      fill(matrices.after, now);
      fill(matrices.change, now.map((value, cell) => value - plain[cell]), true);
    }
  };
  const say = () => {
    const [name, values] = series[0];
    document.getElementById("said").textContent = `${name} ${number(values[nearest(Number(slider.value))])}`;
  };
  const jump = (at) => {
    slider.value = path.position[at];
    show(at);
    say();
  };
  slider.addEventListener("input", () => show(nearest(Number(slider.value))));
  slider.addEventListener("change", say);
  document.getElementById("to-argmax").addEventListener("click", () => jump(path.plain));
  document.getElementById("to-rule").addEventListener("click", () => jump(path.chosen));
  if (matrices) fill(matrices.before, path.confusion.cells[path.plain]);
  show(path.chosen);
})();
