"use strict";
// Panels: fields as pictures, with one view, one cursor and one profile line for all of them.

const Panels = (() => {
  const { state } = State;
  const shown = new Map(); // panels by name
  const cursor = { place: null }; // [x, y] as shares of the domain
  let handlers = {};

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const number = (value) => {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size === 0) return "0";
    return (size >= 1e4 || size < 1e-3 ? value.toExponential(2) : value.toPrecision(3)).replaceAll("-", "−");
  };

  const percent = (share) => {
    const value = 100 * share;
    if (share === null || !Number.isFinite(value)) return "–";
    if (value >= 100) return `${value.toFixed(0)} %`;
    return `${value < 0.001 && value > 0 ? value.toExponential(1) : value.toPrecision(2)} %`;
  };

  // Texts change only if they differ: each change lays out the page again.
  const write = (element, text) => { if (element.textContent !== text) element.textContent = text; };

  const build = (name, paintable) => {
    const canvas = make("canvas", { tabIndex: 0 });
    const over = make("canvas", { className: "over", ariaHidden: "true" });
    const title = make("h3");
    const value = make("output", { className: "value" });
    const note = make("p", { className: "note" });
    const [low, high, bar] = [make("span"), make("span"), make("i")];
    const element = make("figure", { id: `panel-${name}`, className: "panel" },
      make("figcaption", {}, title),
      make("div", { className: "picture" }, canvas, over, value),
      make("div", { className: "scale" }, low, bar, high), note);
    canvas.setAttribute("role", paintable ? "application" : "img");
    const panel = {
      name, element, canvas, over, title, value, note, low, high, bar, paintable,
      image: document.createElement("canvas"), spec: null,
    };
    // Sizes are remembered: asking for them in every frame would lay out the page each time.
    new ResizeObserver(([entry]) => { panel.box = entry.contentRect; }).observe(canvas.parentElement);
    handlers.attach(panel);
    return panel;
  };

  const fit = (panel, canvas) => {
    const box = panel.box || canvas.parentElement.getBoundingClientRect();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const wanted = [Math.max(1, Math.round(box.width * ratio)), Math.max(1, Math.round(box.height * ratio))];
    if (canvas.width !== wanted[0] || canvas.height !== wanted[1]) [canvas.width, canvas.height] = wanted;
    return ratio;
  };

  // Draws a field: {title, values, shape, palette, range, note, dim, crisp, seams, line}.
  const draw = (panel, spec) => {
    const [height, width] = spec.shape;
    panel.spec = spec;
    write(panel.title, spec.title);
    write(panel.note, spec.note || "");
    panel.element.classList.toggle("dim", Boolean(spec.dim));
    panel.element.classList.toggle("empty", !spec.values);
    const ratio = String(Math.min(Math.max(width / height, 0.25), 6));
    if (panel.ratio !== ratio) panel.element.style.setProperty("--ratio", (panel.ratio = ratio));
    const keys = panel.paintable ? "Arrow keys move the brush, space paints." : "Arrow keys move the cursor.";
    if (panel.label !== spec.title) panel.canvas.setAttribute("aria-label", `${(panel.label = spec.title)}. ${keys}`);
    fit(panel, panel.canvas);
    const context = panel.canvas.getContext("2d");
    context.clearRect(0, 0, panel.canvas.width, panel.canvas.height);
    if (spec.values) {
      const range = spec.range || Numerics.range(spec.values);
      const inner = panel.image.getContext("2d");
      if (!panel.data || panel.data.width !== width || panel.data.height !== height) {
        [panel.image.width, panel.image.height] = [width, height];
        panel.data = inner.createImageData(width, height);
      }
      Colours.paint(new Uint32Array(panel.data.data.buffer), spec.values, spec.palette, range);
      inner.putImageData(panel.data, 0, 0);
      const [left, top, right, bottom] = state.view;
      context.imageSmoothingEnabled = !spec.crisp;
      context.imageSmoothingQuality = "high";
      const source = [left * width, top * height, (right - left) * width, (bottom - top) * height];
      context.drawImage(panel.image, ...source, 0, 0, panel.canvas.width, panel.canvas.height);
      write(panel.low, number(range[0]));
      write(panel.high, number(range[1]));
      if (panel.palette !== spec.palette) {
        panel.palette = spec.palette;
        panel.bar.style.background = Colours.gradient(spec.palette);
      }
      if (spec.seams) drawSeams(panel, context, range);
    }
    drawOver(panel);
  };

  const toPixels = (panel, x, y) => {
    const [left, top, right, bottom] = state.view;
    const { width, height } = panel.canvas;
    return [((x - left) / (right - left)) * width, ((y - top) / (bottom - top)) * height];
  };
  const toShares = (panel, event) => {
    const box = panel.canvas.getBoundingClientRect();
    const [left, top, right, bottom] = state.view;
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    return [left + x * (right - left), top + y * (bottom - top)];
  };

  // What a difference across a line exceeds the mean of those beside it by, at each node of it.
  const jumps = (values, [height, width], line, alongRows) => {
    const count = alongRows ? width : height;
    const size = alongRows ? height : width;
    const at = (k, i) => values[alongRows ? ((k + size) % size) * width + i : i * width + ((k + size) % size)];
    return Array.from({ length: count }, (_, i) => {
      const across = at(line, i) - at(line - 1, i);
      const before = line > 1 ? at(line - 1, i) - at(line - 2, i) : across;
      const after = line < size - 1 ? at(line + 1, i) - at(line, i) : across;
      return across - 0.5 * (before + after);
    });
  };
  const FULL_JUMP = 0.02; // of the field's range is drawn in full

  const drawSeams = (panel, context, [low, high]) => {
    const { values, shape: [height, width], seams } = panel.spec;
    const unit = FULL_JUMP * (high - low) || 1;
    const segment = (from, to, jump) => {
      const strength = Math.min(Math.abs(jump) / unit, 1);
      const green = Math.round(200 * (1 - strength));
      context.strokeStyle = strength > 0.04
        ? `rgb(255 ${green} 60 / ${0.35 + 0.65 * strength})`
        : "rgb(255 255 255 / .3)";
      context.lineWidth = 1 + 4 * strength;
      context.beginPath();
      context.moveTo(...toPixels(panel, ...from));
      context.lineTo(...toPixels(panel, ...to));
      context.stroke();
    };
    for (const row of seams.rows) {
      const y = row / height;
      jumps(values, [height, width], row, true)
        .forEach((jump, j) => segment([j / width, y], [(j + 1) / width, y], jump));
    }
    for (const column of seams.columns) {
      const x = column / width;
      jumps(values, [height, width], column, false)
        .forEach((jump, i) => segment([x, i / height], [x, (i + 1) / height], jump));
    }
  };
  const largestJump = (values, shape, seams) => Math.max(0, ...Numerics.range([
    ...seams.rows.flatMap((row) => jumps(values, shape, row, true)),
    ...seams.columns.flatMap((column) => jumps(values, shape, column, false)),
  ]).map(Math.abs));

  const valueAt = ({ values, shape: [height, width] }, [x, y]) => {
    const row = Math.min(height - 1, Math.max(0, Math.floor(y * height)));
    const column = Math.min(width - 1, Math.max(0, Math.floor(x * width)));
    return values[row * width + column];
  };

  // The cursor, the brush and the profile line, above the picture.
  const drawOver = (panel) => {
    const ratio = fit(panel, panel.over);
    const context = panel.over.getContext("2d");
    const { width, height } = panel.over;
    context.clearRect(0, 0, width, height);
    const pointed = cursor.place && panel.spec.values;
    write(panel.value, pointed ? number(valueAt(panel.spec, cursor.place)) : "");
    panel.moved = false;
    if (panel.spec.line) drawProfile(panel, context, ratio);
    if (!cursor.place) return;
    const [x, y] = toPixels(panel, ...cursor.place);
    const stroke = (draw) => {
      for (const [colour, size] of [["rgb(0 0 0 / .55)", 3], ["rgb(255 255 255 / .95)", 1.2]]) {
        context.strokeStyle = colour;
        context.lineWidth = size * ratio;
        context.beginPath();
        draw();
        context.stroke();
      }
    };
    if (panel.paintable) {
      const [left, , right] = state.view;
      const side = Math.max(...panel.spec.shape) / panel.spec.shape[1];
      stroke(() => context.arc(x, y, Math.max(2, (state.size * side * width) / (right - left)), 0, 7));
    } else {
      const arm = 7 * ratio;
      stroke(() => {
        context.moveTo(x - arm, y);
        context.lineTo(x + arm, y);
        context.moveTo(x, y - arm);
        context.lineTo(x, y + arm);
      });
    }
  };

  const drawProfile = (panel, context, ratio) => {
    const [x0, y0, x1, y1] = state.profile;
    const [from, to] = [toPixels(panel, x0, y0), toPixels(panel, x1, y1)];
    for (const [colour, size, dash] of [["rgb(0 0 0 / .6)", 3, []], ["#fff", 1.5, [6 * ratio, 4 * ratio]]]) {
      context.strokeStyle = colour;
      context.lineWidth = size * ratio;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.stroke();
    }
    context.setLineDash([]);
    for (const [x, y] of [from, to]) {
      context.beginPath();
      context.arc(x, y, 5 * ratio, 0, 7);
      context.fillStyle = "#fff";
      context.fill();
      context.lineWidth = 1.5 * ratio;
      context.strokeStyle = "rgb(0 0 0 / .7)";
      context.stroke();
    }
  };

  // Shows exactly these panels in a place, in this order.
  const show = (place, specs) => {
    const wanted = specs.map((spec) => {
      if (!shown.has(spec.name)) shown.set(spec.name, build(spec.name, spec.paintable));
      return shown.get(spec.name);
    });
    const current = [...place.children].filter((element) => element.classList.contains("panel"));
    if (current.length !== wanted.length || wanted.some((panel, i) => panel.element !== current[i])) {
      for (const element of current) element.remove();
      place.prepend(...wanted.map((panel) => panel.element));
    }
    wanted.forEach((panel, i) => draw(panel, specs[i]));
  };

  const visible = () => [...shown.values()].filter((panel) => panel.element.isConnected && panel.spec);
  // Moves the cursor in all panels; those that are drawn in the same frame anyway are left out.
  const moveCursor = (place) => {
    cursor.place = place;
    for (const panel of visible()) panel.moved = true;
    window.requestAnimationFrame(() => {
      for (const panel of visible()) if (panel.moved) drawOver(panel);
    });
  };
  const setHandlers = (given) => { handlers = given; };

  return { make, write, number, percent, show, moveCursor, cursor, toShares, toPixels, largestJump, setHandlers };
})();
