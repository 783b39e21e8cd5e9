"use strict";
// Profile: prediction, truth and band along the line that is dragged over the panels.

const Profile = (() => {
  const { state } = State;
  const POINTS = 240;

  const places = () => {
    const [x0, y0, x1, y1] = state.profile;
    return Array.from({ length: POINTS }, (_, i) => {
      const share = i / (POINTS - 1);
      return [x0 + share * (x1 - x0), y0 + share * (y1 - y0)];
    });
  };

  // Values along the line, interpolated between the centres of cells.
  const along = (values, [height, width]) => places().map(([x, y]) => {
    const clamp = (value, most) => Math.min(Math.max(value, 0), most);
    const [v, h] = [clamp(y * height - 0.5, height - 1), clamp(x * width - 0.5, width - 1)];
    const i = Math.min(Math.floor(v), Math.max(height - 2, 0));
    const j = Math.min(Math.floor(h), Math.max(width - 2, 0));
    const at = (row, column) => values[Math.min(row, height - 1) * width + Math.min(column, width - 1)];
    const [a, b] = [v - i, h - j];
    const above = (1 - b) * at(i, j) + b * at(i, j + 1);
    return (1 - a) * above + a * ((1 - b) * at(i + 1, j) + b * at(i + 1, j + 1));
  });

  // Draws lines {name, values, colour, dashed} and a band {low, high} on a canvas.
  const draw = (canvas, lines, band, shape) => {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const box = canvas.getBoundingClientRect();
    [canvas.width, canvas.height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    const context = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    const edges = { left: 62 * ratio, right: 12 * ratio, top: 12 * ratio, bottom: 22 * ratio };
    const drawn = lines.map((line) => ({ ...line, values: along(line.values, shape) }));
    const wide = band ? [along(band.low, shape), along(band.high, shape)] : [];
    const [low, high] = Numerics.range([...drawn.flatMap((line) => line.values), ...wide.flat()]);
    const margin = 0.05 * (high - low) || Math.abs(high) || 1;
    const x = (i) => edges.left + (i / (POINTS - 1)) * (canvas.width - edges.left - edges.right);
    const room = canvas.height - edges.top - edges.bottom;
    const y = (value) => edges.top + ((high + margin - value) / (high - low + 2 * margin)) * room;

    context.font = `${11 * ratio}px system-ui, sans-serif`;
    context.fillStyle = style.getPropertyValue("--faint");
    context.strokeStyle = style.getPropertyValue("--line");
    context.lineWidth = ratio;
    context.textAlign = "right";
    for (const value of [low, (low + high) / 2, high]) {
      context.beginPath();
      context.moveTo(edges.left, y(value));
      context.lineTo(canvas.width - edges.right, y(value));
      context.stroke();
      context.fillText(Panels.number(value), edges.left - 6 * ratio, y(value) + 4 * ratio);
    }
    context.textAlign = "left";
    context.fillText("start of the line", edges.left, canvas.height - 6 * ratio);
    context.textAlign = "right";
    context.fillText("end", canvas.width - edges.right, canvas.height - 6 * ratio);

    if (wide.length) {
      context.beginPath();
      wide[1].forEach((value, i) => context.lineTo(x(i), y(value)));
      [...wide[0]].reverse().forEach((value, i) => context.lineTo(x(POINTS - 1 - i), y(value)));
      context.fillStyle = style.getPropertyValue("--band");
      context.fill();
    }
    for (const { values, colour, dashed } of drawn) {
      context.beginPath();
      values.forEach((value, i) => context.lineTo(x(i), y(value)));
      context.setLineDash(dashed ? [5 * ratio, 4 * ratio] : []);
      context.strokeStyle = colour.startsWith("--") ? style.getPropertyValue(colour) : colour;
      context.lineWidth = (dashed ? 1.6 : 2.2) * ratio;
      context.stroke();
    }
    context.setLineDash([]);
  };

  return { draw };
})();
