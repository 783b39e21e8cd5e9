"use strict";
// Trust: how unusual an input is, and how wrong its prediction can be.
// It follows twoscale/trust/known_inputs.py, normal_scores.py and band.py.

const Trust = (() => {
  const { unpack, norm } = Numerics;
  const [NODES, LINES, TAIL] = [16, 8, 10];

  const scorer = (given) => {
    const [channels, numbers, knotCount] = given.knots.shape;
    const [knots, normals, whitening] = [given.knots, given.normals, given.whitening].map(unpack);
    const last = knotCount - 1;
    const tail = Math.min(TAIL, last);

    const score = (value, channel, number) => {
      const start = (channel * numbers + number) * knotCount;
      let right = 0;
      while (right <= last && knots[start + right] < value) right += 1;
      const above = right > last;
      const left = right === 0 ? 0 : above ? last - tail : right - 1;
      right = right === 0 ? tail : Math.min(right, last);
      const [low, high] = [knots[start + left], knots[start + right]];
      const slope = (normals[right] - normals[left]) / (high - low);
      return above ? normals[right] + (value - high) * slope : normals[left] + (value - low) * slope;
    };

    // The distance of some numbers of a channel from what is usual.
    return (values, channel) => {
      if (!numbers) return 0;
      const scores = values.map((value, number) => score(value, channel, number));
      let sum = 0;
      for (let q = 0; q < numbers; q += 1) {
        let one = 0;
        const row = (channel * numbers + q) * numbers;
        for (let p = 0; p < numbers; p += 1) one += scores[p] * whitening[row + p];
        sum += one * one;
      }
      return Math.sqrt(sum / numbers);
    };
  };

  // Mean squares of differences of nodes 1, 2, 4, ... apart, along some rows and columns.
  const differences = (field, height, width, unit) => {
    const axes = [[height, width, width, 1], [width, height, 1, width]].filter(([size]) => size > 1);
    const shortest = axes.length ? Math.min(...axes.map(([size]) => size)) : 0;
    const found = [];
    for (let lag = 1; 2 * lag < shortest; lag *= 2) {
      const means = axes.map(([size, others, along, across]) => {
        const step = Math.ceil(others / LINES);
        let [sum, count] = [0, 0];
        for (let line = Math.floor(step / 2); line < others; line += step) {
          for (let i = 0; i + lag < size; i += 1, count += 1) {
            const at = line * across + i * along;
            sum += ((field[at + lag * along] - field[at]) / unit) ** 2;
          }
        }
        return sum / count;
      });
      found.push(means.reduce((a, b) => a + b, 0) / means.length);
    }
    return found;
  };

  const thinned = (field, height, width, unit) => {
    const [down, right] = [Math.ceil(height / NODES), Math.ceil(width / NODES)];
    const out = [];
    for (let i = Math.floor(down / 2); i < height; i += down) {
      for (let j = Math.floor(right / 2); j < width; j += right) out.push(field[i * width + j] / unit);
    }
    return out;
  };

  // The range of known inputs: a function from channels [height x width] to their distances.
  const knownInputs = (given) => {
    const [unit, mean, modes, spread, floor] =
      [given.unit, given.mean, given.modes, given.spread, given.floor].map(unpack);
    const [, count, nodes] = given.modes.shape;
    const views = given.floor.shape[1];
    const scores = given.scores.map(scorer);

    const squares = (field, c, height, width) => {
      const few = thinned(field, height, width, unit[c]).map((value, n) => value - mean[c * nodes + n]);
      let rest = few.reduce((sum, value) => sum + value * value, 0);
      let code = 0;
      for (let k = 0; k < count; k += 1) {
        let one = 0;
        for (let n = 0; n < nodes; n += 1) one += few[n] * modes[(c * count + k) * nodes + n];
        rest -= one * one;
        code += (one / spread[c * count + k]) ** 2 / count;
      }
      return [...differences(field, height, width, unit[c]), code, Math.max(rest, 0)];
    };

    return (fields, parameters, [channels, height, width]) => {
      const found = { roughness: [], code: [], values: [] };
      for (let c = 0; c < channels; c += 1) {
        const field = fields.subarray(c * height * width, (c + 1) * height * width);
        const logs = squares(field, c, height, width).map((value, i) => Math.log(value + floor[c * views + i]));
        found.roughness.push(scores[0](logs.slice(0, -2), c) / given.limit);
        found.code.push(scores[1](logs.slice(-2), c) / given.limit);
        const ends = Numerics.range(field).map((value) => value / unit[c]);
        found.values.push(scores[2](ends, c) / given.limit);
      }
      parameters.forEach((value, p) => {
        const c = channels + p;
        found.values.push(scores[2]([value / unit[c], value / unit[c]], c) / given.limit);
      });
      return found;
    };
  };

  const unusual = (distances) => Math.max(...Object.values(distances).flat(), 0);

  const WORDS = {
    roughness: "the differences between its nodes are",
    code: "its coarse shape is",
    values: "its least or largest value is",
  };
  const reason = (distances) => {
    const most = (name) => Math.max(...distances[name], 0);
    const kind = Object.keys(WORDS).reduce((a, b) => (most(b) > most(a) ? b : a));
    const far = most(kind) < 1000 ? most(kind).toPrecision(3) : "more than 1000";
    return `${WORDS[kind]} ${far} times as far from the training inputs as the limit`;
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
