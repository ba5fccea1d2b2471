// The champions: one card per method and environment with a 3D view, its seeds, how it came about, its motion and attributes.

const Designs = (() => {
  const cards = [];
  let sameScale = true;

  function build() {
    const controls = document.getElementById("designs-controls"), place = document.getElementById("designs-cards");
    const same = element("input", { type: "checkbox", checked: true, change: () => {
      sameScale = same.checked;
      cards.forEach((card) => card.fit());
    } });
    controls.append(
      element("p", { class: "note" }, "Drag to turn a body, or focus it and use the arrow keys; + and − zoom, 0 resets, space plays its motion. ",
        "Bones have one colour per depth in the skeleton; yellow balls are hinges."),
      element("div", { class: "controls" }, element("label", { class: "field" }, same, "same scale within an environment")));
    let any = false;
    for (const env of DATA.envs) {
      const { scene, methods } = DATA.designs[env.name], names = [...METHODS.keys()].filter((name) => methods[name]);
      if (!names.length) continue;
      any = true;
      const grid = element("div", { class: "cards" });
      place.append(element("h3", {}, env.title), grid);
      const mine = names.map((name) => new Card(env, name, scene, methods[name], grid));
      const largest = Math.max(...mine.map((card) => card.largest));
      for (const card of mine) card.common = largest;
      cards.push(...mine);
      mine.forEach((card) => card.fit());
    }
    if (!any) place.append(element("p", {}, "There are no designs to show."));
    onMethods.push(() => cards.forEach((card) => { card.box.hidden = !shownMethods.has(card.method); }));
  }

  /** The diameter of the view that holds a body. */
  function span(robot) {
    const { low, high } = extent(Kinematics.capsules(robot, null));
    return 1.15 * Math.hypot(...high.map((value, i) => value - low[i]));
  }

  /** The reference pose with its lowest point on the ground, as in the figures. */
  function standing(robot, scene) {
    const shapes = Kinematics.capsules(robot, null);
    if ((scene.ground?.kind ?? "none") === "none") return shapes;
    const lift = scene.ground.top - extent(shapes).low[2];
    return shapes.map(([ax, ay, az, bx, by, bz, ...rest]) => [ax, ay, az + lift, bx, by, bz + lift, ...rest]);
  }

  class Card {
    constructor(env, method, scene, runs, place) {
      this.env = env;
      this.method = method;
      this.runs = runs;
      this.largest = Math.max(...runs.flatMap((run) => run.stages.map((stage) => span(stage.robot))));
      this.canvas = element("canvas", { role: "img" });
      this.view = new View(this.canvas, scene);
      this.facts = element("p", { class: "note" });
      this.attributes = element("details", { toggle: () => this.listAttributes() }, element("summary", {}, "Attributes"));
      this.play = element("button", { type: "button", click: () => this.toggle() }, "Play");
      this.time = element("output", {});
      this.stage = element("input", { type: "range", min: 0, step: 1, input: () => this.choose(Number(this.stage.value)) });
      this.stageTitle = element("output", {});
      this.stageRow = element("label", { class: "stage" }, element("span", { class: "unseen" }, "Design along the run"), this.stage, this.stageTitle);
      const seeds = runs.length > 1 ? element("select", { "aria-label": "Seed", change: (event) => this.open(Number(event.target.value)) },
        ...runs.map((run, i) => element("option", { value: i }, `seed ${run.seed}${i ? "" : " (best)"}`))) : element("span", { class: "faint" }, `seed ${runs[0].seed}`);
      this.view.onSpace = () => this.toggle();
      this.box = element("article", { class: `card ${METHODS.get(method).css}`, "data-method": method },
        element("div", { class: "card-head" }, element("h4", {}, METHODS.get(method).label), seeds),
        this.canvas, element("div", { class: "card-row" }, this.play, this.time), this.stageRow, this.facts, this.attributes);
      place.append(this.box);
      this.open(0);
    }

    open(i) {
      this.run = this.runs[i];
      this.stage.max = this.run.stages.length - 1;
      this.stageRow.hidden = this.run.stages.length < 2;
      this.poses = null;
      this.play.disabled = !this.run.motion;
      this.play.title = this.run.motion ? "" : "No motion was recorded; codesign-bench reevaluate run=RUN records it.";
      this.time.textContent = this.run.motion ? "" : "no motion recorded";
      this.choose(this.run.stages.length - 1);
    }

    fit() {
      this.view.size = sameScale ? this.common : this.largest;
      this.view.draw();
    }

    choose(i) {
      this.stop();
      this.at = i;
      this.stage.value = i;
      const { title, robot } = this.run.stages[i];
      this.stageTitle.textContent = title;
      this.stage.setAttribute("aria-valuetext", title);
      const motors = robot.parts.filter((part) => part.joints.some((joint) => joint.gear)).length;
      const bounds = this.run.at_bounds === null ? "" : `, ${plain(100 * this.run.at_bounds)} % of attributes at a bound`;
      this.facts.textContent = `${robot.parts.length} ${robot.parts.length === 1 ? "body" : "bodies"}, ${motors} ${motors === 1 ? "motor" : "motors"}, ${plain(robot.mass)} kg; final return ${this.run.final === null ? "unknown" : plain(this.run.final)}${bounds}`;
      this.canvas.setAttribute("aria-label", `3D view of the ${title} of ${METHODS.get(this.method).label} in ${this.env.title}, seed ${this.run.seed}: ${this.facts.textContent}. Arrow keys turn it.`);
      this.view.show(standing(robot, this.view.scene));
      if (this.attributes.open) this.listAttributes();
      else this.attributes.querySelector("div")?.remove();
    }

    listAttributes() {
      this.attributes.querySelector("div")?.remove();
      if (!this.attributes.open) return;
      const rows = this.run.stages[this.at].robot.parts.map((part) => {
        const hinge = part.joints.find((joint) => joint.gear), bone = part.capsules.at(-1);
        const end = bone ? bone.slice(3, 6) : [0, 0, 0], length = Math.hypot(...end);
        const cells = [part.parent < 0 ? "root" : part.name, bone ? end.map((v) => (Math.round(100 * v) / 100 + 0).toFixed(2)).join(", ") : "–", length.toFixed(3),
          bone ? Math.hypot(...bone.slice(0, 3)).toFixed(3) : "–", bone ? bone[6].toFixed(3) : "–", hinge ? plain(hinge.gear) : "–",
          hinge?.range ? hinge.range.map((v) => `${Math.round(v)}°`).join(" to ") : "–"];
        return element("tr", {}, ...cells.map((cell, i) => element(i ? "td" : "th", i ? { class: "number" } : { scope: "row" }, cell.replaceAll("-", "−"))));
      });
      const names = ["joint", "bone (m)", "length (m)", "start extension (m)", "radius (m)", "gear (N m)", "range"];
      this.attributes.append(element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Attributes of every joint" },
        element("table", {}, element("thead", {}, element("tr", {}, ...names.map((name, i) => element("th", { scope: "col", class: i ? "number" : null }, name)))),
          element("tbody", {}, ...rows))));
    }

    // ---- motion

    toggle() {
      if (this.playing) this.stop();
      else if (this.run.motion) this.start();
    }

    start() {
      this.choose(this.run.stages.length - 1);
      const robot = this.run.stages.at(-1).robot, motion = this.run.motion;
      this.poses ??= Kinematics.poses(motion);
      this.play.textContent = "Stop";
      const begun = performance.now(), length = this.poses.length * motion.seconds_per_frame;
      const step = (now) => {
        const seconds = ((now - begun) / 1000) % (length + 0.6);
        const frame = Math.max(0, Math.min(this.poses.length - 1, Math.floor(seconds / motion.seconds_per_frame)));
        const over = motion.ended && frame === this.poses.length - 1;
        this.time.textContent = `${(frame * motion.seconds_per_frame).toFixed(1)} s, x = ${this.poses[frame][0].toFixed(1).replace("-", "−")} m${over ? ", episode ended" : ""}`;
        this.view.show(Kinematics.capsules(robot, this.poses[frame]));
        this.playing = requestAnimationFrame(step);
      };
      this.playing = requestAnimationFrame(step);
    }

    stop() {
      if (!this.playing) return;
      cancelAnimationFrame(this.playing);
      this.playing = null;
      this.play.textContent = "Play";
      this.time.textContent = "";
      this.view.show(standing(this.run.stages[this.at].robot, this.view.scene));
    }
  }

  return { build };
})();
