"use strict";
// Input: the fields that a prediction starts from. A base (sample, random field, file or constant)
// and strokes of a brush on it. Places are shares of the domain, from 0 to 1 along both axes.

const Input = (() => {
  const { unpack, resize } = Numerics;

  // Reproducible random numbers: mulberry32, and normal numbers from it.
  const randomNumbers = (seed) => {
    let a = seed >>> 0;
    const uniform = () => {
      a = (a + 0x6d2b79f5) >>> 0;
      let t = Math.imul(a ^ (a >>> 15), 1 | a);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  };

  // Cutting a field into two values makes it rougher. This much less roughness before the cut gives
  // Darcy's media that look known to the surrogate, instead of half of them being outside.
  const CUT_ROUGHNESS = 0.4;

  // What the modes miss of a sample: its finest waves.
  const finePart = (modes, [count, height, width], sample) => {
    const [number, , rows, columns] = modes.modes.shape;
    const [stored, nodes] = [unpack(modes.modes), rows * columns];
    const coarse = new Float64Array(count * nodes);
    for (let c = 0; c < count; c += 1) {
      const field = sample.subarray(c * height * width, (c + 1) * height * width);
      coarse.set(resize(field, height, width, rows, columns), c * nodes);
    }
    const seen = Float64Array.from(unpack(modes.mean));
    const deviation = Numerics.subtract(coarse, seen);
    for (let k = 0; k < number; k += 1) {
      const mode = stored.subarray(k * count * nodes, (k + 1) * count * nodes);
      const score = Numerics.dot(deviation, mode) / (Numerics.dot(mode, mode) || 1);
      for (let i = 0; i < seen.length; i += 1) seen[i] += score * mode[i];
    }
    const out = Float64Array.from(sample);
    for (let c = 0; c < count; c += 1) {
      const field = resize(seen.subarray(c * nodes, (c + 1) * nodes), rows, columns, height, width);
      for (let i = 0; i < field.length; i += 1) out[c * field.length + i] -= field[i];
    }
    return out;
  };

  // A field of the training's kind: the mean, random multiples of its modes, and the finest waves
  // of a test sample. Roughness moves variance to later modes (1) or to the first ones (-1); `mean`
  // shifts by so many spreads.
  const randomField = ({ modes, shape, channels }, sample, { seed, mean, roughness }) => {
    const [count, height, width] = shape;
    const [number, , rows, columns] = modes.modes.shape;
    const stored = unpack(modes.modes);
    const nodes = rows * columns;
    const normal = randomNumbers(seed);
    const cut = channels.every(({ kind }) => kind === "two-valued");
    const power = cut ? roughness - CUT_ROUGHNESS : roughness;
    const weights = Array.from({ length: number }, (_, k) => (k + 1) ** power);
    const energy = (factors) => factors.reduce((sum, factor, k) => {
      const mode = stored.subarray(k * count * nodes, (k + 1) * count * nodes);
      return sum + factor ** 2 * Numerics.dot(mode, mode);
    }, 0);
    const scale = Math.sqrt(energy(weights.map(() => 1)) / energy(weights)) || 1;
    const small = Float64Array.from(unpack(modes.mean));
    weights.forEach((weight, k) => {
      const factor = normal() * weight * scale;
      for (let i = 0; i < small.length; i += 1) small[i] += factor * stored[k * small.length + i];
    });
    const out = new Float64Array(count * height * width);
    const detail = sample ? finePart(modes, shape, sample) : out;
    const strength = 2 ** roughness * (normal() < 0 ? -1 : 1);
    channels.forEach((channel, c) => {
      const field = resize(small.subarray(c * nodes, (c + 1) * nodes), rows, columns, height, width);
      if (channel.kind !== "two-valued") {
        for (let i = 0; i < field.length; i += 1) field[i] += strength * detail[c * field.length + i];
      }
      const middle = (channel.low + channel.high) / 2;
      out.set(field.map((value) => {
        const shifted = value + mean * channel.spread;
        if (channel.kind === "two-valued") return shifted >= middle ? channel.high : channel.low;
        return channel.positive ? Math.max(shifted, channel.low) : shifted;
      }), c * height * width);
    });
    return out;
  };

  // One touch of the brush at (x, y) on a channel of a field.
  const stamp = (field, channel, [height, width], tool, size, x, y) => {
    const [cy, cx] = [y * height - 0.5, x * width - 0.5];
    const radius = Math.max(size * Math.max(height, width), 0.51);
    const reach = tool === "high" || tool === "low" ? radius : 1.5 * radius;
    const sign = { raise: 1, lower: -1 }[tool];
    for (let i = Math.max(0, Math.ceil(cy - reach)); i <= Math.min(height - 1, cy + reach); i += 1) {
      for (let j = Math.max(0, Math.ceil(cx - reach)); j <= Math.min(width - 1, cx + reach); j += 1) {
        const square = ((i - cy) ** 2 + (j - cx) ** 2) / radius ** 2;
        if (square > (reach / radius) ** 2) continue;
        const at = i * width + j;
        if (tool === "high" || tool === "low") field[at] = channel[tool];
        else if (tool === "erase") field[at] += 0.6 * Math.exp(-2.5 * square) * (channel.mean - field[at]);
        else {
          const value = field[at] + 0.7 * sign * channel.spread * Math.exp(-2.5 * square);
          field[at] = channel.positive ? Math.max(value, channel.low) : value;
        }
      }
    }
  };

  const STEPS = 1295; // places of strokes are multiples of 1 / 1295: two digits in base 36
  const rounded = (share) => Math.round(Math.min(Math.max(share, 0), 1) * STEPS) / STEPS;

  // Adds a place to a stroke and touches the field there, and between it and the one before.
  const extend = (fields, inputs, stroke, x, y) => {
    const [, height, width] = inputs.shape;
    const field = fields.subarray(stroke.channel * height * width, (stroke.channel + 1) * height * width);
    const { points } = stroke;
    const from = points.length ? points.slice(-2) : null;
    const to = [rounded(x), rounded(y)];
    const far = from ? Math.hypot(to[0] - from[0], to[1] - from[1]) : 0;
    const step = Math.max(stroke.size / 2.5, 0.004);
    if (from && far < step) return false;
    points.push(...to);
    const count = from ? Math.max(1, Math.floor(far / step)) : 1;
    for (let k = 1; k <= count; k += 1) {
      const share = k / count;
      const [px, py] = from ? [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])] : to;
      stamp(field, inputs.channels[stroke.channel], [height, width], stroke.tool, stroke.size, px, py);
    }
    return true;
  };

  // `samples` are those of this kind of input, by place: others of one size are of another equation.
  const base = (inputs, samples, given) => {
    const [count, height, width] = inputs.shape;
    const size = count * height * width;
    const chosen = given.kind === "sample" && samples.get(given.sample);
    if (chosen) return Float64Array.from(unpack(chosen.input));
    if (given.kind === "random" && inputs.modes) {
      const own = [...samples.values()];
      const sample = own.length ? Float64Array.from(unpack(own[given.seed % own.length].input)) : null;
      return randomField(inputs, sample, given);
    }
    if (given.kind === "data" && given.values.length === size) return Float64Array.from(given.values);
    const out = new Float64Array(size);
    inputs.channels.forEach((channel, c) => {
      const value = channel.kind === "two-valued" ? channel.low : channel.positive ? channel.mean : 0;
      out.fill(value, c * height * width, (c + 1) * height * width);
    });
    return out;
  };

  // The fields of a base with all strokes on it.
  const build = (inputs, samples, given, strokes) => {
    const fields = base(inputs, samples, given);
    for (const stroke of strokes) {
      const again = { ...stroke, points: [] };
      for (let i = 0; i < stroke.points.length; i += 2) {
        extend(fields, inputs, again, stroke.points[i], stroke.points[i + 1]);
      }
    }
    return fields;
  };

  const toolsOf = (channel) => (channel.kind === "two-valued" ? ["high", "low"] : ["raise", "lower", "erase"]);

  return { build, extend, toolsOf, STEPS };
})();
