"use strict";
// Pointers: mouse, touch and keyboard on the panels. The input is painted; other panels are
// zoomed and moved, and the profile line is dragged over them.

const Pointers = (() => {
  const { state } = State;
  const { cursor, toShares, toPixels, moveCursor } = Panels;
  let changed = () => {}; // called with what changed: "input", "view" or "profile"

  // Strokes

  let stroke = null;
  const begin = (place) => {
    stroke = { channel: state.channel, tool: state.tool, size: state.size, points: [] };
    state.strokes.push(stroke);
    changed("stroke");
    extend(place);
  };
  const extend = ([x, y]) => {
    if (stroke && Input.extend(Compute.result.input, State.inputs(), stroke, x, y)) {
      Compute.touch();
      changed("input");
    }
  };
  const end = () => {
    if (stroke) changed("stroke");
    stroke = null;
  };

  // The first of two fingers has begun a stroke that nobody wanted.
  const takeBack = () => {
    if (!stroke) return;
    state.strokes = state.strokes.filter((one) => one !== stroke);
    stroke = null;
    Compute.rebuild();
    changed("stroke");
    changed("input");
  };

  // The view

  const clamped = ([left, top, right, bottom]) => {
    const size = Math.min(Math.max(right - left, 0.04), 1);
    const [x, y] = [left, top].map((start) => Math.min(Math.max(start, 0), 1 - size));
    return [x, y, x + size, y + size];
  };
  const centre = ([left, top, right, bottom]) => [0.5 * (left + right), 0.5 * (top + bottom)];
  const zoom = (factor, [x, y] = centre(state.view)) => {
    const [left, top, right] = state.view;
    const size = Math.min(Math.max((right - left) * factor, 0.04), 1);
    const ratio = size / (right - left);
    state.view = clamped([x - (x - left) * ratio, y - (y - top) * ratio, x - (x - left) * ratio + size, 0]);
    changed("view");
  };
  const pan = (dx, dy) => {
    const [left, top, right, bottom] = state.view;
    state.view = clamped([left + dx, top + dy, right + dx, bottom + dy]);
    changed("view");
  };
  const zoomed = () => state.view[2] - state.view[0] < 1;

  // What a pointer takes hold of: an end of the profile line (0, 1), the line (2), or the view (3).
  const REACH = 16;
  const holdOf = (panel, event) => {
    if (!panel.spec || !panel.spec.line) return 3;
    const box = panel.canvas.getBoundingClientRect();
    const scale = box.width / panel.canvas.width;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const [x0, y0, x1, y1] = state.profile;
    const ends = [[x0, y0], [x1, y1]].map((place) => toPixels(panel, ...place).map((one) => one * scale));
    const near = ends.findIndex(([px, py]) => Math.hypot(px - x, py - y) < REACH);
    if (near >= 0) return near;
    const [[ax, ay], [bx, by]] = ends;
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const share = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length ** 2;
    const away = Math.abs((x - ax) * (by - ay) - (y - ay) * (bx - ax)) / length;
    return share > 0 && share < 1 && away < 9 ? 2 : 3;
  };
  const inside = (value) => Math.min(Math.max(value, 0), 1);
  const dragProfile = (hold, [x, y], [dx, dy]) => {
    const line = [...state.profile];
    if (hold < 2) [line[2 * hold], line[2 * hold + 1]] = [inside(x), inside(y)];
    else {
      const moved = line.map((one, i) => one + (i % 2 ? dy : dx));
      if (moved.every((one) => one >= 0 && one <= 1)) line.splice(0, 4, ...moved);
    }
    state.profile = line;
    changed("profile");
  };

  const attach = (panel) => {
    const { canvas } = panel;
    const down = new Map();
    let hold = null;
    let last = null;
    let apart = 0; // of two fingers

    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, [event.clientX, event.clientY]);
      last = toShares(panel, event);
      moveCursor(last);
      if (down.size > 1) { takeBack(); apart = spread(down); return; }
      if (panel.paintable) begin(last);
      else hold = holdOf(panel, event);
    });
    canvas.addEventListener("pointermove", (event) => {
      const place = toShares(panel, event);
      if (down.has(event.pointerId)) down.set(event.pointerId, [event.clientX, event.clientY]);
      if (down.size > 1) {
        const now = spread(down);
        if (apart && now) zoom(apart / now, place);
        apart = now;
        last = toShares(panel, event);
        return;
      }
      if (!down.size) {
        const shapes = ["grab", "grab", "move", zoomed() ? "move" : "crosshair"];
        canvas.style.cursor = panel.paintable ? "" : shapes[holdOf(panel, event)];
      } else if (panel.paintable) {
        const all = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
        for (const one of all.length ? all : [event]) extend(toShares(panel, one));
      } else if (hold === 3) {
        if (zoomed()) pan(last[0] - place[0], last[1] - place[1]);
        last = toShares(panel, event);
      } else {
        dragProfile(hold, place, [place[0] - last[0], place[1] - last[1]]);
        last = place;
      }
      moveCursor(place);
    });
    const leave = (event) => {
      down.delete(event.pointerId);
      if (down.size) return;
      end();
      hold = null;
      apart = 0;
    };
    canvas.addEventListener("pointerup", leave);
    canvas.addEventListener("pointercancel", leave);
    canvas.addEventListener("pointerleave", () => {
      if (!down.size && !canvas.matches(":focus-visible")) moveCursor(null);
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !zoomed()) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, toShares(panel, event));
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      if (!panel.paintable) zoom(0.5, toShares(panel, event));
    });
    canvas.addEventListener("keydown", (event) => keys(panel, event));
    canvas.addEventListener("keyup", (event) => { if (event.key === " " || event.key === "Enter") end(); });
    canvas.addEventListener("blur", end);
  };

  const spread = (down) => {
    const [[x0, y0], [x1, y1]] = [...down.values()];
    return Math.hypot(x1 - x0, y1 - y0);
  };

  // Arrow keys move the cursor; with Shift in a panel they move the profile line; space paints.
  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const keys = (panel, event) => {
    const step = STEPS[event.key];
    const [left, top, right, bottom] = state.view;
    const size = 0.02 * (right - left);
    const from = cursor.place || [0.5 * (left + right), 0.5 * (top + bottom)];
    if (step && event.shiftKey && !panel.paintable) {
      dragProfile(2, from, step.map((one) => one * size));
    } else if (step) {
      const place = [inside(from[0] + step[0] * size), inside(from[1] + step[1] * size)];
      moveCursor(place);
      extend(place);
    } else if ((event.key === " " || event.key === "Enter") && panel.paintable) {
      moveCursor(from);
      if (!stroke) begin(from);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  Panels.setHandlers({ attach });
  const onChange = (callback) => { changed = callback; };
  return { zoom, onChange };
})();
