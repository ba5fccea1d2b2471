// Evolution: every species over the generations by its fitness, and the line of descent of the last champion.

const Lineage = (() => {
  const HEIGHT = 280, LEFT = 54, RIGHT = 22, TOP = 10, BOTTOM = 40;

  function build() {
    const place = document.getElementById("lineage-panels");
    if (!place) return;
    place.append(element("p", { class: "note" }, "Each line is a species of the method's best run, from birth to elimination; thin strokes join parent and child. ",
      "The bold line is the descent of the last generation's champion."));
    for (const data of DATA.lineages) {
      const env = DATA.envs.find((e) => e.name === data.env), title = `${METHODS.get(data.method).label}, ${env.title}, seed ${data.seed}`;
      const box = element("details", { "data-method": data.method, toggle: () => { if (box.open && !box.querySelector("svg")) draw(box, data, title); } },
        element("summary", {}, title));
      place.append(box);
      onMethods.push(() => { box.hidden = !shownMethods.has(data.method); });
      if (DATA.lineages.length <= 2) box.open = true;
    }
  }

  /** species -> its rows in the order of generations */
  function grouped(data) {
    const species = new Map();
    data.species.forEach((name, row) => {
      if (!species.has(name)) species.set(name, []);
      species.get(name).push(row);
    });
    for (const rows of species.values()) rows.sort((a, b) => data.generation[a] - data.generation[b]);
    return species;
  }

  /** From the champion of the last generation back to a species without a parent. */
  function descent(data, species) {
    const last = data.generation.reduce((a, b) => Math.max(a, b), 0);
    const candidates = data.species.map((_, row) => row).filter((row) => data.generation[row] === last && data.fitness[row] !== null);
    candidates.sort((a, b) => data.champion[b] - data.champion[a] || data.fitness[b] - data.fitness[a]);
    const line = [];
    let name = candidates.length ? data.species[candidates[0]] : undefined;
    while (name !== undefined && species.has(name) && !line.includes(name)) {
      line.unshift(name);
      name = data.parent[species.get(name)[0]];
    }
    return line;
  }

  function draw(box, data, title) {
    const species = grouped(data), line = descent(data, species), on = new Set(line);
    const width = Math.max(280, box.clientWidth), fitness = data.fitness.filter((value) => value !== null);
    const x = Curves.axis([...new Set(data.generation)], "linear", LEFT, width - RIGHT), y = Curves.axis(fitness, "linear", HEIGHT - BOTTOM, TOP);
    if (!x || !y) {
      box.append(element("p", {}, "No fitness was recorded."));
      return;
    }
    const place = (row) => `${x.at(data.generation[row]).toFixed(1)} ${y.at(data.fitness[row]).toFixed(1)}`;
    const paths = { links: "", lives: "", bold: "" }, dots = { others: "", bold: "" };
    for (const [name, rows] of species) {
      const alive = rows.filter((row) => data.fitness[row] !== null);
      if (!alive.length) continue;
      // An ancestor belongs to the descent until its child is born.
      const child = line[line.indexOf(name) + 1], end = child === undefined ? Infinity : data.generation[species.get(child)[0]];
      const bold = on.has(name) ? alive.filter((row) => data.generation[row] < end) : [], other = on.has(name) ? alive.slice(Math.max(0, bold.length - 1)) : alive;
      if (bold.length) paths.bold += `M${bold.map(place).join("L")}`;
      if (other.length > 1) paths.lives += `M${other.map(place).join("L")}`;
      dots.bold += bold.map((row) => `M${place(row)}h0`).join("");
      dots.others += alive.slice(bold.length).map((row) => `M${place(row)}h0`).join("");
      const before = (species.get(data.parent[rows[0]]) ?? []).filter((row) => data.generation[row] < data.generation[alive[0]] && data.fitness[row] !== null).at(-1);
      if (before !== undefined) paths[on.has(name) ? "bold" : "links"] += `M${place(before)}L${place(alive[0])}`;
    }
    const { css } = METHODS.get(data.method), bottom = HEIGHT - BOTTOM;
    const whole = x.ticks.filter((tick) => Number.isInteger(tick));
    const told = element("p", { class: "note" }, "Point at a species, or use the arrow keys on the picture, to read it.");
    const mark = shape("circle", { class: `dot ${css}`, r: 4, visibility: "hidden" });
    const svg = shape("svg", { class: `chart ${css}`, viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, tabindex: 0, role: "img",
      "aria-label": `${title}: fitness of ${species.size} species over the generations; the champion's descent is listed below.` },
      ...y.ticks.map((tick) => shape("path", { class: "grid", d: `M${LEFT} ${y.at(tick)}H${width - RIGHT}` })),
      ...y.ticks.map((tick) => shape("text", { class: "tick", x: LEFT - 6, y: y.at(tick) + 4, "text-anchor": "end" }, short(tick))),
      ...whole.map((tick) => shape("text", { class: "tick", x: x.at(tick), y: bottom + 16, "text-anchor": "middle" }, short(tick))),
      shape("path", { class: "mark", d: `M${LEFT} ${bottom}H${width - RIGHT}` }),
      shape("text", { class: "title", x: (LEFT + width) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "generation"),
      shape("text", { class: "title", transform: `translate(12 ${(bottom + TOP) / 2}) rotate(-90)`, "text-anchor": "middle" }, "fitness"),
      shape("path", { class: "link", d: paths.links }), shape("path", { class: "life", d: paths.lives }), shape("path", { class: "speck", d: dots.others }),
      shape("path", { class: "descent", d: paths.bold }), shape("path", { class: "speck bold", d: dots.bold }), mark);
    const rows = data.species.map((_, row) => row).filter((row) => data.fitness[row] !== null)
      .sort((a, b) => data.generation[a] - data.generation[b] || data.fitness[a] - data.fitness[b]);
    let current = rows.length - 1;
    const tell = (row) => {
      const parent = data.parent[row] >= 0 ? `child of ${data.parent[row]}` : "no parent";
      told.textContent = `Generation ${data.generation[row]}: species ${data.species[row]} (${parent}${data.mutation[row] ? `, ${data.mutation[row]}` : ""}), ${data.bodies[row]} bodies, fitness ${plain(data.fitness[row])}`;
      for (const [name, value] of Object.entries({ cx: x.at(data.generation[row]), cy: y.at(data.fitness[row]), visibility: "visible" })) mark.setAttribute(name, value);
    };
    svg.addEventListener("pointermove", (event) => {
      const bounds = svg.getBoundingClientRect(), px = event.clientX - bounds.left, py = event.clientY - bounds.top;
      const far = (row) => Math.hypot(x.at(data.generation[row]) - px, y.at(data.fitness[row]) - py);
      current = rows.reduce((best, row, i) => (far(row) < far(rows[best]) ? i : best), 0);
      tell(rows[current]);
    });
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      current = Math.min(rows.length - 1, Math.max(0, current + move));
      tell(rows[current]);
      announce(told.textContent);
    });
    const steps = line.map((name) => {
      const row = species.get(name)[0];
      return element("li", {}, `species ${name}, generation ${data.generation[row]}${data.mutation[row] ? `, ${data.mutation[row]}` : ""}: ${data.bodies[row]} bodies`);
    });
    box.append(element("div", { class: "chart-box" }, svg), told,
      element("details", {}, element("summary", {}, `Descent of the champion (${line.length} species)`), element("ol", {}, ...steps)));
  }

  return { build };
})();
