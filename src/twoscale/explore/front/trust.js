"use strict";
// Trust: how unusual an input is, and how wrong its prediction can be.
// It follows twoscale/trust/input_range.py, statistics.py and band.py.

const Trust = (() => {
  const { unpack, norm } = Numerics;
  const [NODES, TAIL, FARTHEST, LARGEST] = [16, 10, 1e100, 1e38];
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  // Distances of groups of numbers from what is usual: normal scores, whitened.
  const scorer = (given) => {
    const [count, knotCount] = given.knots.shape;
    const groups = given.shares.shape[1];
    const [knots, normals, whitening, shares] =
      [given.knots, given.normals, given.whitening, given.shares].map(unpack);
    const last = knotCount - 1;
    const tail = Math.min(TAIL, last);

    const score = (value, number) => {
      const start = number * knotCount;
      let right = 0;
      while (right <= last && knots[start + right] < value) right += 1;
      const above = right > last;
      const left = right === 0 ? 0 : above ? last - tail : right - 1;
      right = right === 0 ? tail : Math.min(right, last);
      const [low, high] = [knots[start + left], knots[start + right]];
      const slope = (normals[right] - normals[left]) / (high - low);
      const found = above ? normals[right] + (value - high) * slope : normals[left] + (value - low) * slope;
      return Number.isNaN(found) ? FARTHEST : Math.min(Math.max(found, -FARTHEST), FARTHEST);
    };

    return (values) => {
      const scores = values.map(score);
      const sums = new Float64Array(groups);
      for (let q = 0; q < count; q += 1) {
        let white = 0;
        for (let p = 0; p < count; p += 1) white += scores[p] * whitening[q * count + p];
        for (let g = 0; g < groups; g += 1) sums[g] += white * white * shares[q * groups + g];
      }
      return Array.from(sums, Math.sqrt);
    };
  };

  // Means of blocks of values [height x width]; a rest makes a block with values before it.
  const blockMeans = (values, height, width) => {
    const starts = (side, length) => {
      const found = [];
      for (let k = 0; k + length <= side; k += length) found.push(k);
      return side % length ? [...found, side - length] : found;
    };
    const [rows, columns] = [[height, 4], [width, 8]]
      .map(([side, least]) => Math.min(side, Math.max(least, Math.ceil(side / 16))));
    return starts(height, rows).flatMap((top) => starts(width, columns).map((left) => {
      let sum = 0;
      for (let i = top; i < top + rows; i += 1) {
        for (let j = left; j < left + columns; j += 1) sum += values[i * width + j];
      }
      return sum / (rows * columns);
    }));
  };

  // Mean squares of differences between neighbours, as twoscale/trust/statistics.py takes them.
  const neighbourSquares = (field, height, width) => {
    if (width === 1 && height > 1) [height, width] = [1, height];  // a line is a row
    if (width === 1) return [];
    const rows = Math.ceil(height / 2);
    const at = (i, j) => field[i * width + j];
    const apart = (i, lag) => Array.from({ length: width - lag }, (_, j) => (at(i, j + lag) - at(i, j)) ** 2);
    const along = Array.from({ length: rows }, (_, r) => apart(2 * r, 1));
    let [squares, columns] = [along.flat(), width - 1];
    if (height > 1) {
      columns = width;
      squares = along.flatMap((row, r) => Array.from({ length: width }, (_, j) => {
        const other = Math.min(2 * r + 1, height - 1 - (height % 2));
        return (at(2 * r, j) - at(other, j)) ** 2 + (j ? row[j - 1] : 0);
      }));
    }
    const blocks = blockMeans(squares, rows, columns);
    const found = [Math.max(...blocks), mean(blocks)];
    if (width < 5) return found;
    const step = Math.max(1, Math.floor(rows / 16));
    const some = along.map((_, r) => r).filter((r) => r % step === 0);
    return [...found, mean(some.flatMap((r) => along[r])), mean(some.flatMap((r) => apart(2 * r, 2)))];
  };

  // Mean squares of differences of nodes 1, 2, 4, ... apart along both axes.
  const lagSquares = (field, height, width) => {
    const shortest = Math.min(...[height, width].filter((side) => side > 1), Infinity);
    const found = [];
    for (let lag = 1; Number.isFinite(shortest) && 2 * lag < shortest; lag *= 2) {
      const [down, right] = [height, width].map((side) => (side > 1 ? lag : 0));
      let sum = 0;
      for (let i = 0; i + down < height; i += 1) {
        for (let j = 0; j + right < width; j += 1) {
          sum += (field[(i + down) * width + j + right] - field[i * width + j]) ** 2;
        }
      }
      found.push(sum / ((height - down) * (width - right)));
    }
    return found;
  };

  const thinned = (field, height, width) => {
    const places = (side) => {
      const step = Math.ceil(side / NODES);
      const found = [];
      for (let k = Math.floor(step / 2); k < side; k += step) found.push(k);
      return found;
    };
    const [rows, columns] = [places(height), places(width)];
    return [rows.flatMap((i) => columns.map((j) => field[i * width + j])), rows.length, columns.length];
  };

  // The range of known inputs: a function from channels [height x width] to their distances.
  const knownInputs = (given) => {
    const [unit, usual, modes, weights, floor] =
      [given.unit, given.mean, given.modes, given.weights, given.floor].map(unpack);
    const [, nodes, count] = given.modes.shape;
    const distances = scorer(given.scores);

    const squares = (field, c, height, width) => {
      const [few, rows, columns] = thinned(field, height, width);
      const away = few.map((value, n) => value - usual[c * nodes + n]);
      let [code, kept] = [0, 0];
      for (let k = 0; k < count; k += 1) {
        let one = 0;
        for (let n = 0; n < nodes; n += 1) one += away[n] * modes[(c * nodes + n) * count + k];
        code += one * one * weights[(c * count + k) * 2];
        kept += one * one * weights[(c * count + k) * 2 + 1];
      }
      const rest = Math.max(away.reduce((sum, value) => sum + value * value, 0) - kept, 0);
      return [...neighbourSquares(field, height, width), ...lagSquares(away, rows, columns), code, rest];
    };

    return (fields, parameters, [channels, height, width]) => {
      const kinds = [[], [], [], []];  // nearest neighbours, others, code, extremes
      for (let c = 0; c < channels; c += 1) {
        const field = fields.subarray(c * height * width, (c + 1) * height * width).map((value) => value / unit[c]);
        const found = squares(field, c, height, width);
        const logs = found.map((value, i) => Math.log(Math.min(value, LARGEST) + floor[c * found.length + i]));
        const near = Math.min(2, logs.length - 2);
        kinds[0].push(...logs.slice(0, near));
        kinds[1].push(...logs.slice(near, -2));
        kinds[2].push(...logs.slice(-2));
        kinds[3].push(...Numerics.range(field));
      }
      parameters.forEach((value, p) => kinds[3].push(...Array(2).fill(value / unit[channels + p])));
      const all = channels + parameters.length;
      const found = distances(kinds.flat());
      const [first, second, code, values] = [0, 1, 2, 3].map((kind) => found.slice(kind * all, (kind + 1) * all));
      return { roughness: first.map((one, c) => Math.max(one, second[c])), code, values };
    };
  };

  const unusual = (distances) => Math.max(...Object.values(distances).flat(), 0);

  const WORDS = { roughness: "roughness", code: "coarse shape", values: "range of values" };
  const reason = (distances) => {
    const most = (name) => Math.max(...distances[name], 0);
    const kind = Object.keys(WORDS).reduce((a, b) => (most(b) > most(a) ? b : a));
    const far = most(kind) < 1000 ? most(kind).toPrecision(3) : "more than 1000";
    return `${WORDS[kind]} ${far} (limit 1)`;
  };

  // How far opinions are from their mean, relative to the prediction.
  const disagreement = (opinions, prediction) => {
    const away = prediction.map((_, i) => {
      const mean = opinions.reduce((sum, one) => sum + one[i], 0) / opinions.length;
      return Math.sqrt(opinions.reduce((sum, one) => sum + (one[i] - mean) ** 2, 0) / opinions.length);
    });
    return norm(away) / Math.max(norm(prediction), 1.2e-38);
  };

  // Radius and half widths of a prediction from its scores {residual, disagreement, distance}.
  const banded = (band, scores, level, prediction, [channels, height, width]) => {
    const logs = band.kinds.map((kind) => Math.log(Math.min(Math.max(scores[kind], 1e-30), 1e30)));
    const difficulty = Math.exp(logs.reduce((sum, log, i) => sum + log * band.powers[i], 0));
    const nodes = height * width;
    const profile = unpack(band.profile);
    const sizes = Array.from({ length: channels }, (_, c) =>
      norm(prediction.subarray(c * nodes, (c + 1) * nodes)) / Math.sqrt(nodes));
    return {
      radius: level.radius * difficulty,
      width: Float64Array.from(profile, (one, i) =>
        level.width * difficulty * one * sizes[Math.floor(i / nodes)]),
    };
  };

  return { knownInputs, unusual, reason, disagreement, banded };
})();
