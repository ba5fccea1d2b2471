// Learning curves: one panel per environment, drawn as SVG from values that were computed when the report was made.

const Curves = (() => {
  const settings = { metric: "return_mean", band: "std", x: "linear", y: "linear", single: false };
  const HEIGHT = 270, MARGIN = { left: 54, right: 22, top: 10, bottom: 40 };
  const panels = [];

  function build() {
    const controls = document.getElementById("curves-controls"), place = document.getElementById("curves-panels");
    if (!DATA.envs.length) {
      place.append(element("p", {}, "There are no curves to draw."));
      return;
    }
    const set = (name) => (value) => { settings[name] = value; draw(); };
    const metric = element("select", { id: "metric", change: () => set("metric")(metric.value) },
      ...Object.entries(DATA.metrics).map(([value, text]) => element("option", { value }, text)));
    const scales = [["linear", "linear"], ["log", "logarithmic"]];
    const single = element("input", { type: "checkbox", change: () => set("single")(single.checked) });
    controls.append(element("div", { class: "controls" },
      methodToggles(),
      element("div", { class: "field" }, element("label", { for: "metric" }, "Shown"), metric),
      choice("Band", "band", [...Object.entries(DATA.bands), ["none", "none"]], settings.band, set("band")),
      choice("Steps", "x", scales, settings.x, set("x")),
      choice("Values", "y", scales, settings.y, set("y")),
      element("label", { class: "field" }, single, "single runs")));
    for (const env of DATA.envs) panels.push(new Panel(env, place));
    onMethods.push(draw);
    new ResizeObserver(() => draw()).observe(place);
  }

  function draw() {
    for (const panel of panels) panel.draw();
  }

  class Panel {
    constructor(env, place) {
      this.env = env;
      this.tip = element("div", { class: "tip", hidden: true });
      this.note = element("p", { class: "note" });
      this.svg = shape("svg", { class: "chart", tabindex: 0, role: "img" });
      this.box = element("div", { class: "chart-box" }, this.svg, this.tip);
      place.append(element("figure", { "data-env": env.name }, element("figcaption", {}, env.title), this.box, this.note));
      this.cursor = null;
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerdown", (event) => this.point(event));
      this.svg.addEventListener("pointerleave", () => this.show(null));
      this.svg.addEventListener("blur", () => this.show(null));
      this.svg.addEventListener("keydown", (event) => this.key(event));
    }

    /** Methods that are shown and have values, with the centre, edges and single runs to draw. */
    lines() {
      const all = DATA.curves[this.env.name].metrics[settings.metric];
      return [...METHODS.keys()].filter((name) => shownMethods.has(name) && all[name]).map((name) => {
        const [centre, low, high] = all[name][settings.band === "interval" ? "interval" : "std"];
        return { name, centre, low, high, runs: all[name].runs, known: all[name].known, seeds: all[name].seeds, banded: settings.band !== "none" };
      });
    }

    draw() {
      const steps = DATA.curves[this.env.name].steps, lines = this.lines();
      const width = Math.max(240, this.box.clientWidth);
      this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      this.svg.setAttribute("height", HEIGHT);
      this.svg.replaceChildren();
      this.tip.hidden = true;
      const values = lines.flatMap((line) => [line.centre, ...(line.banded ? [line.low, line.high] : []),
        ...(settings.single ? line.seeds.map((seed) => seed.values) : [])].flat()).filter((value) => value !== null);
      this.x = axis(steps, settings.x, MARGIN.left, width - MARGIN.right);
      this.y = axis(values, settings.y, HEIGHT - MARGIN.bottom, MARGIN.top);
      const metric = DATA.metrics[settings.metric];
      if (!this.x || !this.y) {
        this.svg.append(shape("text", { x: width / 2, y: HEIGHT / 2, class: "empty" },
          values.length ? "Nothing above zero to show on a logarithmic axis" : "No values to show"));
        this.note.textContent = "";
        return;
      }
      this.svg.setAttribute("aria-label", `${this.env.title}: ${metric} against environment steps for ${lines.map((line) =>
        METHODS.get(line.name).label).join(", ")}. Arrow keys move along the curves.`);
      this.axes(width, metric);
      for (const line of lines) if (line.banded) this.svg.append(shape("path", { class: `band ${METHODS.get(line.name).css}`, d: this.area(line, steps) }));
      for (const line of lines) {
        const { css, dashes } = METHODS.get(line.name);
        if (settings.single) {
          for (const seed of line.seeds) this.svg.append(shape("path", { class: `single ${css}`, d: this.path(seed.values, steps) }));
        }
        this.svg.append(shape("path", { class: `curve ${css}`, d: this.path(line.centre, steps), "stroke-dasharray": dashes, "data-method": line.name }));
        this.svg.append(...this.dots(line, steps));
      }
      this.marks = shape("g", {});
      this.svg.append(this.marks);
      this.notes(values, lines);
      if (this.cursor !== null) this.show(this.cursor);
    }

    notes(values, lines) {
      const said = [];
      if (settings.y === "log" && values.some((value) => value <= 0)) said.push("Values at or below zero have no place on a logarithmic axis and are not drawn.");
      const single = lines.filter((line) => line.banded && line.runs === 1).map((line) => METHODS.get(line.name).label);
      const fewer = lines.filter((line) => line.known.some((known) => known > 0 && known < line.runs)).map((line) => METHODS.get(line.name).label);
      if (fewer.length) said.push(`Some points are from fewer runs than the rest of the curve: ${fewer.join(", ")}.`);
      if (settings.band === "interval" && lines.some((line) => line.runs < 3)) said.push("Fewer than three runs have no interval.");
      if (settings.band === "std" && single.length) said.push(`No band from a single run: ${single.join(", ")}.`);
      this.note.textContent = said.join(" ");
    }

    /** Points that have no neighbour to be joined with would be invisible. */
    dots(line, steps) {
      const lone = line.centre.map((value, i) => value !== null && (line.centre[i - 1] ?? null) === null && (line.centre[i + 1] ?? null) === null);
      return line.centre.map((value, i) => lone[i] && this.y.at(value) !== null
        ? shape("circle", { class: `dot ${METHODS.get(line.name).css}`, cx: this.x.at(steps[i]), cy: this.y.at(value), r: 3 }) : null).filter(Boolean);
    }

    axes(width, metric) {
      const bottom = HEIGHT - MARGIN.bottom;
      for (const tick of this.y.ticks) {
        const y = this.y.at(tick);
        this.svg.append(shape("path", { class: "grid", d: `M${MARGIN.left} ${y}H${width - MARGIN.right}` }),
          shape("text", { class: "tick", x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" }, short(tick)));
      }
      for (const tick of this.x.ticks) {
        const x = this.x.at(tick);
        this.svg.append(shape("path", { class: "mark", d: `M${x} ${bottom}v4` }),
          shape("text", { class: "tick", x, y: bottom + 16, "text-anchor": "middle" }, short(tick)));
      }
      this.svg.append(shape("path", { class: "mark", d: `M${MARGIN.left} ${bottom}H${width - MARGIN.right}` }),
        shape("text", { class: "title", x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "environment steps"),
        shape("text", { class: "title", transform: `translate(12 ${(bottom + MARGIN.top) / 2}) rotate(-90)`, "text-anchor": "middle" }, metric));
    }

    path(values, steps) {
      let text = "", open = false;
      values.forEach((value, i) => {
        const y = value === null ? null : this.y.at(value);
        if (y === null) open = false;
        else {
          text += `${open ? "L" : "M"}${this.x.at(steps[i]).toFixed(1)} ${y.toFixed(1)}`;
          open = true;
        }
      });
      return text;
    }

    /** The band, one closed shape for each stretch in which both edges are known; edges below a logarithmic axis end on it. */
    area(line, steps) {
      let text = "";
      const known = (i) => i < steps.length && line.low[i] !== null && line.high[i] !== null && this.y.at(line.high[i]) !== null;
      for (let first = 0; first < steps.length; first++) {
        if (!known(first)) continue;
        let last = first;
        while (known(last + 1)) last++;
        const upper = [], lower = [];
        for (let i = first; i <= last; i++) {
          const x = this.x.at(steps[i]).toFixed(1);
          upper.push(`${x} ${this.y.at(line.high[i]).toFixed(1)}`);
          lower.unshift(`${x} ${(this.y.at(line.low[i]) ?? HEIGHT - MARGIN.bottom).toFixed(1)}`);
        }
        text += `M${upper.join("L")}L${lower.join("L")}Z`;
        first = last;
      }
      return text;
    }

    // ---- the cursor

    point(event) {
      if (!this.x || !this.y) return;
      const bounds = this.svg.getBoundingClientRect(), steps = DATA.curves[this.env.name].steps;
      const x = event.clientX - bounds.left;
      let nearest = 0;
      steps.forEach((step, i) => { if (Math.abs(this.x.at(step) - x) < Math.abs(this.x.at(steps[nearest]) - x)) nearest = i; });
      this.show(nearest);
    }

    key(event) {
      const last = DATA.curves[this.env.name].steps.length - 1, now = this.cursor ?? last;
      const stride = event.shiftKey ? 10 : 1;
      const next = { ArrowLeft: now - stride, ArrowRight: now + stride, Home: 0, End: last, Escape: null }[event.key];
      if (next === undefined || !this.x || !this.y) return;
      event.preventDefault();
      this.show(next === null ? null : Math.min(last, Math.max(0, next)));
      if (next !== null) announce(this.tip.innerText.replaceAll("\n", ", "));
    }

    show(i) {
      this.cursor = i;
      this.tip.hidden = i === null;
      this.marks?.replaceChildren();
      if (i === null || !this.marks) return;
      const step = DATA.curves[this.env.name].steps[i], x = this.x.at(step);
      const found = this.lines().filter((line) => line.centre[i] !== null).sort((a, b) => b.centre[i] - a.centre[i]);
      this.marks.append(shape("path", { class: "cursor", d: `M${x} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}` }));
      const rows = found.map((line) => {
        const { css, label } = METHODS.get(line.name), y = this.y.at(line.centre[i]);
        if (y !== null) this.marks.append(shape("circle", { class: `dot ${css}`, cx: x, cy: y, r: 3.5 }));
        const spread = !line.banded || line.low[i] === null ? "" : settings.band === "interval"
          ? ` [${plain(line.low[i])}, ${plain(line.high[i])}]` : ` ± ${plain((line.high[i] - line.low[i]) / 2)}`;
        const few = line.known[i] < line.runs ? `, ${line.known[i]} of ${line.runs} runs` : "";
        return element("div", { class: "row" }, swatch(line.name), `${label}: ${plain(line.centre[i])}${spread}${few}`);
      });
      this.tip.replaceChildren(element("strong", {}, `${step.toLocaleString("en", { maximumFractionDigits: 0 })} steps`), ...rows);
      // Under the chart, or above it where the window ends, so that it hides none of the curves it tells of.
      const bounds = this.box.getBoundingClientRect(), below = bounds.bottom + this.tip.offsetHeight < window.innerHeight || bounds.top < this.tip.offsetHeight;
      this.tip.style.top = below ? "100%" : "auto";
      this.tip.style.bottom = below ? "auto" : "100%";
      const right = x > this.box.clientWidth / 2;
      this.tip.style.left = right ? "auto" : `${Math.max(0, Math.min(x, this.box.clientWidth - this.tip.offsetWidth))}px`;
      this.tip.style.right = right ? `${Math.max(0, Math.min(this.box.clientWidth - x, this.box.clientWidth - this.tip.offsetWidth))}px` : "auto";
    }
  }

  /** Maps values to pixels between `from` and `to`; null if there is nothing that can be mapped. */
  function axis(values, scale, from, to) {
    const usable = values.filter((value) => value !== null && (scale === "linear" || value > 0));
    if (!usable.length) return null;
    let low = usable.reduce((a, b) => Math.min(a, b)), high = usable.reduce((a, b) => Math.max(a, b));
    if (low === high) [low, high] = scale === "log" ? [low / 2, high * 2] : [low - Math.max(1, Math.abs(low) / 10), high + Math.max(1, Math.abs(high) / 10)];
    const f = scale === "log" ? Math.log10 : (value) => value;
    const vertical = from > to, margin = vertical ? 0.05 * (f(high) - f(low)) : 0;
    const [a, b] = [f(low) - margin, f(high) + margin];
    const at = (value) => (scale === "log" && value <= 0 ? null : from + ((f(value) - a) / (b - a)) * (to - from));
    const room = Math.abs(to - from) / (vertical ? 45 : 80);
    return { at, ticks: scale === "log" ? powers(a, b, room) : rounds(a, b, room) };
  }

  function rounds(a, b, count) {
    const raw = (b - a) / Math.max(2, count), unit = 10 ** Math.floor(Math.log10(raw));
    const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw * 0.999);
    const ticks = [];
    for (let i = Math.ceil(a / step - 1e-9); i * step <= b + step * 1e-9; i++) ticks.push(i * step);
    return ticks;
  }

  function powers(a, b, count) {
    const ticks = [];
    const factors = b - a > count ? [1] : b - a > 1.5 ? [1, 3] : [1, 2, 5];
    const stride = Math.max(1, Math.ceil((b - a) / Math.max(2, count)));
    for (let power = Math.floor(a); power <= b; power += factors.length > 1 ? 1 : stride) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (Math.log10(value) >= a && Math.log10(value) <= b) ticks.push(value);
      }
    }
    return ticks.length > 1 ? ticks : rounds(10 ** a, 10 ** b, 3);
  }

  return { build, draw, axis };
})();
