// A small 3D view of capsules on a plain canvas: no graphics card, no library. Every pixel of a capsule is found exactly,
// in parallel projection, so that sizes can be compared; nearer surfaces hide farther ones.

// ---- kinematics: the same frames that MuJoCo computes from a pose

const Kinematics = (() => {
  const times = (R, v) => [0, 3, 6].map((i) => R[i] * v[0] + R[i + 1] * v[1] + R[i + 2] * v[2]);
  const plus = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
  const product = (A, B) => [0, 1, 2].flatMap((i) => [0, 1, 2].map((j) => A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j]));
  const IDENTITY = [1, 0, 0, 0, 1, 0, 0, 0, 1];

  function turn([x, y, z], angle) {
    const c = Math.cos(angle), s = Math.sin(angle), t = 1 - c;
    return [t * x * x + c, t * x * y - s * z, t * x * z + s * y, t * x * y + s * z, t * y * y + c, t * y * z - s * x,
      t * x * z - s * y, t * y * z + s * x, t * z * z + c];
  }

  function fromQuaternion(q) {
    const size = Math.hypot(...q) || 1, [w, x, y, z] = q.map((value) => value / size);
    return [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 2 * (x * y + w * z), 1 - 2 * (x * x + z * z),
      2 * (y * z - w * x), 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)];
  }

  /** Position and rotation (row by row) of every part; without a pose, those of the reference pose. */
  function frames(robot, pose) {
    const found = [];
    for (const part of robot.parts) {
      const parent = part.parent >= 0 ? found[part.parent] : { p: [0, 0, 0], R: IDENTITY };
      let p = plus(parent.p, times(parent.R, part.position)), R = parent.R;
      for (const joint of pose ? part.joints : []) {
        const moved = pose[joint.address] - joint.reference;
        if (joint.kind === "free") {
          p = pose.slice(joint.address, joint.address + 3);
          R = fromQuaternion(pose.slice(joint.address + 3, joint.address + 7));
        } else if (joint.kind === "slide") p = plus(p, times(R, joint.axis.map((value) => value * moved)));
        else if (joint.kind === "hinge") R = product(R, turn(joint.axis, moved));
      }
      found.push({ p, R });
    }
    return found;
  }

  /** [ax, ay, az, bx, by, bz, radius, depth in the tree] of every capsule in the world, and a ball for every hinge (depth -1). */
  function capsules(robot, pose) {
    const placed = frames(robot, pose), depth = [], shapes = [];
    robot.parts.forEach((part, i) => {
      depth.push(part.parent >= 0 ? depth[part.parent] + 1 : 0);
      const { p, R } = placed[i];
      for (const c of part.capsules) {
        shapes.push([...plus(p, times(R, c.slice(0, 3))), ...plus(p, times(R, c.slice(3, 6))), c[6], depth[i]]);
      }
      if (part.parent >= 0 && part.capsules.length) {
        const near = robot.parts[part.parent].capsules.at(-1)?.[6] ?? 0;
        shapes.push([...p, ...p, 1.12 * Math.max(part.capsules[0][6], Math.min(near, 1.5 * part.capsules[0][6])), -1]);
      }
    });
    return shapes;
  }

  /** Whole thousandths, each frame as its difference to the one before, back into poses. */
  function poses(motion) {
    const found = [], coordinates = motion.coordinates;
    let last = new Array(coordinates).fill(0);
    for (let frame = 0; frame < motion.frames; frame++) {
      last = last.map((value, i) => value + motion.differences[frame * coordinates + i]);
      found.push(last.map((value) => value / 1000));
    }
    return found;
  }

  return { frames, capsules, poses, times };
})();

// ---- drawing

const Drawing = (() => {
  const rgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  const COLOURS = DATA.colours.bones.map(rgb), HINGE = rgb(DATA.colours.hinge);
  const LIGHT = [0.35, -0.5, 0.79];
  const scratch = document.createElement("canvas"), shade = document.createElement("canvas");

  /** Rows: right, up and towards the viewer, in world coordinates. */
  function cameraOf(view) {
    const a = (view.azimuth * Math.PI) / 180, e = (view.elevation * Math.PI) / 180;
    return [-Math.sin(a), Math.cos(a), 0, -Math.sin(e) * Math.cos(a), -Math.sin(e) * Math.sin(a), Math.cos(e),
      Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e)];
  }

  function draw(canvas, shapes, view, scene, style) {
    const width = canvas.width, height = canvas.height, scale = (view.zoom * Math.min(width, height)) / view.size;
    const camera = cameraOf(view), context = canvas.getContext("2d");
    const project = (point) => {
      const [x, y, z] = Kinematics.times(camera, [point[0] - view.target[0], point[1] - view.target[1], point[2] - view.target[2]]);
      return [width / 2 + scale * x, height / 2 - scale * y, scale * z];
    };
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    ground(context, shapes, view, scene, style, project, width, height);
    surfaces(width, height, shapes.map((s) => ({ a: project(s.slice(0, 3)), b: project(s.slice(3, 6)), r: s[6] * scale,
      colour: s[7] < 0 ? HINGE : COLOURS[Math.min(s[7], COLOURS.length - 1)] })), Kinematics.times(camera, LIGHT));
    context.drawImage(scratch, 0, 0, width, height);
  }

  /** Grid, terrain and shadows: a plane is an affine picture in parallel projection. */
  function ground(context, shapes, view, scene, style, project, width, height) {
    const kind = scene.ground?.kind ?? "none", top = kind === "none" ? -0.25 * view.size : scene.ground.top ?? 0;
    const origin = project([0, 0, top]), ex = project([1, 0, top]), ey = project([0, 1, top]);
    const plane = [ex[0] - origin[0], ex[1] - origin[1], ey[0] - origin[0], ey[1] - origin[1], origin[0], origin[1]];
    const reach = 2.2 * view.size / view.zoom, [cx, cy] = view.target;
    if (view.elevation <= 0) return;
    if (kind === "gaps") terrain(context, view, scene, style, project, reach);
    else {
      context.setTransform(...plane);
      const cell = 10 ** Math.floor(Math.log10(view.size / view.zoom)) / 2;
      context.lineWidth = 1;
      context.strokeStyle = kind === "none" ? style.water : style.grid;
      context.beginPath();
      for (let x = Math.ceil((cx - reach) / cell) * cell; x <= cx + reach; x += cell) line(context, x, cy - reach, x, cy + reach);
      for (let y = Math.ceil((cy - reach) / cell) * cell; y <= cy + reach; y += cell) line(context, cx - reach, y, cx + reach, y);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.stroke();
    }
    shade.width = width;
    shade.height = height;
    const dark = shade.getContext("2d");
    dark.setTransform(...plane);
    dark.lineCap = "round";
    for (const [ax, ay, , bx, by, , r] of shapes) {
      dark.lineWidth = 2 * r;
      dark.beginPath();
      line(dark, ax, ay, bx + 1e-6, by);
      dark.stroke();
    }
    if (kind === "gaps") { // no shadow falls on nothing
      dark.globalCompositeOperation = "destination-in";
      dark.beginPath();
      const edge = inset(scene.ground, top);
      for (const [left, right] of solid(scene.ground, cx - reach, cx + reach)) dark.rect(left + edge, -0.5, right - left - 2 * edge, 1);
      dark.fill();
    }
    context.globalAlpha = style.shadow;
    context.drawImage(shade, 0, 0);
    context.globalAlpha = 1;
  }

  function line(context, ax, ay, bx, by) {
    context.moveTo(ax, ay);
    context.lineTo(bx, by);
  }

  /** Intervals of x that carry ground, between two places: at half depth, and narrower by `inset` at either side at other heights. */
  function solid(g, from, to) {
    const found = [], second = g.first_gap + g.gap_width;
    for (let left = second + Math.floor((from - second) / g.period) * g.period; left < to; left += g.period) {
      found.push([left, left + g.period - g.gap_width]);
    }
    return found.filter(([, right]) => right > from && right > -g.behind);
  }

  function inset(g, height) {
    return g.edge === "sloped" ? g.edge_run * (1 - (g.top - height) / (g.thickness / 2)) : 0;
  }

  function terrain(context, view, scene, style, project, reach) {
    const g = scene.ground, deep = g.top - 0.6, front = Math.sin((view.azimuth * Math.PI) / 180) > 0 ? 0.5 : -0.5;
    const face = (colour, corners) => {
      context.beginPath();
      corners.map(project).forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath();
      context.fillStyle = colour;
      context.fill();
    };
    const side = Math.cos((view.azimuth * Math.PI) / 180) > 0 ? 1 : 0;
    for (const span of solid(g, view.target[0] - reach, view.target[0] + reach)) {
      const [high, low] = [g.top, deep].map((z) => [span[0] + inset(g, z), span[1] - inset(g, z)]);
      face(style.end, [[high[side], -0.5, g.top], [high[side], 0.5, g.top], [low[side], 0.5, deep], [low[side], -0.5, deep]]);
      face(style.top, [[high[0], -0.5, g.top], [high[1], -0.5, g.top], [high[1], 0.5, g.top], [high[0], 0.5, g.top]]);
      face(style.front, [[high[0], front, g.top], [high[1], front, g.top], [low[1], front, deep], [low[0], front, deep]]);
    }
  }

  /** Fills `scratch` with the nearest surface of every pixel at twice the resolution, which smooths the edges. */
  function surfaces(width, height, shapes, light) {
    const fine = width * height < 400000 ? 2 : 1, W = width * fine, H = height * fine;
    scratch.width = W;
    scratch.height = H;
    const context = scratch.getContext("2d"), image = context.createImageData(W, H), pixels = image.data;
    const nearest = new Float32Array(W * H).fill(-Infinity);
    for (const { a, b, r, colour } of shapes) capsule(pixels, nearest, W, H, a.map((v) => v * fine), b.map((v) => v * fine), r * fine, colour, light);
    context.putImageData(image, 0, 0);
  }

  /** Pixels grow downwards, so the y of normals is turned around. For a pixel, the height w above the start a on a cylinder around
   *  the axis d solves |u|² + w² - (u·d + w dz)² / |d|² = r²; beyond either end it is that of a ball. */
  function capsule(pixels, nearest, W, H, a, b, r, colour, light) {
    const dx = b[0] - a[0], dy = b[1] - a[1], dz = b[2] - a[2], length = dx * dx + dy * dy + dz * dz, flat = dx * dx + dy * dy;
    const left = Math.max(0, Math.floor(Math.min(a[0], b[0]) - r)), right = Math.min(W - 1, Math.ceil(Math.max(a[0], b[0]) + r));
    const top = Math.max(0, Math.floor(Math.min(a[1], b[1]) - r)), bottom = Math.min(H - 1, Math.ceil(Math.max(a[1], b[1]) + r));
    const r2 = r * r, A = length > 0 ? 1 - (dz * dz) / length : 0;
    for (let y = top; y <= bottom; y++) {
      for (let x = left; x <= right; x++) {
        const ux = x - a[0], uy = y - a[1], along = ux * dx + uy * dy;
        const t = flat > 0 ? Math.min(1, Math.max(0, along / flat)) : 0;
        if ((ux - t * dx) ** 2 + (uy - t * dy) ** 2 > r2) continue;
        let s = 0, w = 0;
        if (A > 1e-6) {
          const B = (-along * dz) / length, C = ux * ux + uy * uy - (along * along) / length - r2, root = B * B - A * C;
          if (root >= 0) {
            w = (-B + Math.sqrt(root)) / A;
            s = (along + w * dz) / length;
          } else s = along < 0 ? -1 : 2;
        } else s = dz > 0 ? 2 : -1;
        if (s < 0 || s > 1) { // the end that is nearer to the viewer of the two that may be hit
          const end = s > 1 ? 1 : 0, ex = ux - end * dx, ey = uy - end * dy, rest = r2 - ex * ex - ey * ey;
          if (rest < 0) continue;
          w = end * dz + Math.sqrt(rest);
          s = end;
        }
        const depth = a[2] + w, place = y * W + x;
        if (depth <= nearest[place]) continue;
        nearest[place] = depth;
        const nx = (ux - s * dx) / r, ny = -(uy - s * dy) / r, nz = (w - s * dz) / r;
        const lit = Math.max(0, nx * light[0] + ny * light[1] + nz * light[2]);
        const bright = 0.42 + 0.62 * lit, shine = 60 * lit ** 24, i = 4 * place;
        pixels[i] = colour[0] * bright + shine;
        pixels[i + 1] = colour[1] * bright + shine;
        pixels[i + 2] = colour[2] * bright + shine;
        pixels[i + 3] = 255;
      }
    }
  }

  return { draw };
})();

// ---- a view: canvas, camera, mouse, touch and keys

class View {
  constructor(canvas, scene) {
    this.canvas = canvas;
    this.scene = scene;
    this.shapes = [];
    this.size = 1;
    this.reset();
    canvas.tabIndex = 0;
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => {
      this.held = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.held) return;
      this.rotate(-(event.clientX - this.held[0]) * 0.5, (event.clientY - this.held[1]) * 0.4);
      this.held = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { this.held = null; });
    canvas.addEventListener("wheel", (event) => { // with Ctrl, as in maps, so that the page still scrolls
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.scaleBy(Math.exp(-event.deltaY / 300));
    }, { passive: false });
    this.visible = false;
    const seen = (entries) => { this.visible = entries.at(-1).isIntersecting; this.draw(); };
    new IntersectionObserver(seen, { rootMargin: "800px 0px" }).observe(canvas);
    new ResizeObserver(() => this.draw()).observe(canvas);
    document.addEventListener("themechange", () => this.draw());
  }

  reset() {
    const fromAbove = this.scene.root === "planar" && this.scene.plane === "xy";
    [this.azimuth, this.elevation] = fromAbove ? [-90, 62] : this.scene.root === "planar" ? [-84, 12] : [-60, 24];
    this.zoom = 1;
    this.draw();
  }

  key(event) {
    const turns = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, 8], ArrowDown: [0, -8] }[event.key];
    if (turns) this.rotate(...turns);
    else if (event.key === "+" || event.key === "=") this.scaleBy(1.2);
    else if (event.key === "-") this.scaleBy(1 / 1.2);
    else if (event.key === "0" || event.key === "Home") this.reset();
    else if (event.key === " " && this.onSpace) this.onSpace();
    else return;
    event.preventDefault();
  }

  rotate(azimuth, elevation) {
    this.azimuth += azimuth;
    this.elevation = Math.min(89, Math.max(2, this.elevation + elevation));
    this.draw();
  }

  scaleBy(factor) {
    this.zoom = Math.min(8, Math.max(0.2, this.zoom * factor));
    this.draw();
  }

  /** Shows capsules; the camera looks at their middle. */
  show(shapes) {
    this.shapes = shapes;
    const { low, high } = extent(shapes);
    this.target = low.map((value, i) => (value + high[i]) / 2);
    this.draw();
  }

  draw() {
    if (!this.visible || !this.shapes.length) return;
    const density = Math.min(2, window.devicePixelRatio || 1);
    const width = Math.round(this.canvas.clientWidth * density), height = Math.round(this.canvas.clientHeight * density);
    if (!width || !height) return;
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    Drawing.draw(this.canvas, this.shapes, this, this.scene, { grid: colour("--line"), water: colour("--water"), top: colour("--ground-top"),
      front: colour("--ground-front"), end: colour("--ground-end"), shadow: 0.28 });
  }
}

function extent(shapes) {
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  for (const s of shapes) {
    for (let i = 0; i < 3; i++) {
      low[i] = Math.min(low[i], s[i] - s[6], s[i + 3] - s[6]);
      high[i] = Math.max(high[i], s[i] + s[6], s[i + 3] + s[6]);
    }
  }
  return { low, high };
}
