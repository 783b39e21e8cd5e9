"use strict";
// Representations: fields to codes and back. A field is one flat array, channel after channel.

const Representations = (() => {
  const { unpack, multiply, transpose, add, subtract } = Numerics;

  // Nodes (patches x places) of rectangular patches; -1 where a patch has no node. `skip` leaves
  // out so many first rows and columns of each patch.
  const patchNodes = ({ rows, columns }, skip = [0, 0]) => {
    const height = Math.max(...rows.sides) - skip[0];
    const width = Math.max(...columns.sides) - skip[1];
    const nodes = new Int32Array(rows.starts.length * columns.starts.length * height * width);
    let place = 0;
    rows.starts.forEach((top, r) => columns.starts.forEach((left, c) => {
      for (let i = skip[0]; i < height + skip[0]; i += 1) {
        for (let j = skip[1]; j < width + skip[1]; j += 1, place += 1) {
          const inside = i < rows.sides[r] && j < columns.sides[c];
          const y = (top + i) % rows.size;
          const x = (left + j) % columns.size;
          nodes[place] = inside ? y * columns.size + x : -1;
        }
      }
    }));
    return nodes;
  };

  // Fields that are harmonic inside patches, from their values on the lines between patches.
  const skeletonOf = (given) => {
    const { rows, columns } = given;
    const [height, width] = [rows.size, columns.size];
    const names = ["row_sines", "column_sines", "row_loads", "column_loads", "inverse", "places",
      "row_lines", "column_lines"];
    const s = Object.fromEntries(names.map((name) => [name, unpack(given[name])]));
    const rowSide = Math.max(...rows.sides);
    const columnSide = Math.max(...columns.sides);

    // Sine transforms of each patch: along rows, of (count x width); along columns, of (height x count).
    const alongRows = (fields, count) => {
      const out = new Float64Array(count * width);
      columns.starts.forEach((start, patch) => {
        const side = columns.sides[patch];
        const matrix = patch * columnSide * columnSide;
        for (let i = 0; i < count; i += 1) {
          for (let k = 0; k < side; k += 1) {
            const value = fields[i * width + start + k];
            if (value === 0) continue;
            const line = matrix + k * columnSide;
            for (let l = 0; l < side; l += 1) out[i * width + start + l] += value * s.column_sines[line + l];
          }
        }
      });
      return out;
    };
    const alongColumns = (fields, count) => {
      const out = new Float64Array(height * count);
      rows.starts.forEach((start, patch) => {
        const side = rows.sides[patch];
        for (let l = 0; l < side; l += 1) {
          const line = (patch * rowSide + l) * rowSide;
          for (let k = 0; k < side; k += 1) {
            const factor = s.row_sines[line + k];
            if (factor === 0) continue;
            const [to, from] = [(start + l) * count, (start + k) * count];
            for (let j = 0; j < count; j += 1) out[to + j] += factor * fields[from + j];
          }
        }
      });
      return out;
    };

    const trace = (field) => Float64Array.from(s.places, (node) => field[node]);
    const extend = (values) => {
      const frames = new Float64Array(height * width);
      s.places.forEach((node, i) => { frames[node] = values[i]; });
      const [lines, posts] = [s.row_lines.length, s.column_lines.length];
      const across = new Float64Array(lines * width);
      s.row_lines.forEach((row, i) => across.set(frames.subarray(row * width, (row + 1) * width), i * width));
      const down = new Float64Array(height * posts);
      for (let i = 0; i < height; i += 1) {
        for (let j = 0; j < posts; j += 1) down[i * posts + j] = frames[i * width + s.column_lines[j]];
      }
      const loads = add(
        multiply(s.row_loads, alongRows(across, lines), height, lines, width),
        multiply(alongColumns(down, posts), s.column_loads, height, posts, width),
      );
      for (let i = 0; i < loads.length; i += 1) loads[i] *= s.inverse[i];
      return subtract(frames, alongColumns(alongRows(loads, height), width));
    };
    return { trace, extend, size: s.places.length };
  };

  // How a field is cut into blocks of features, and put together again.
  const LAYOUTS = {
    all: () => ({ split: (fields) => fields, join: (blocks) => blocks }),

    patches: (given, [channels, height, width]) => {
      const nodes = patchNodes(given);
      const weights = given.weights ? unpack(given.weights) : null;
      return gatherer(nodes, given.rows.starts.length * given.columns.starts.length, channels,
        height * width, weights, (value) => value, (value, weight) => value * weight);
    },

    coarse: (given, [channels, height, width]) => {
      const [rows] = given.row_means.shape;
      const [columns] = given.column_means.shape;
      const left = unpack(given.row_means);
      const right = transpose(unpack(given.column_means), columns, width);
      const up = unpack(given.row_interpolation);
      const across = transpose(unpack(given.column_interpolation), width, columns);
      const each = (fields, size, map) => joined(parts(fields, size).map(map));
      return {
        split: (fields) => each(fields, height * width, (field) =>
          multiply(multiply(left, field, rows, height, width), right, rows, width, columns)),
        join: (blocks) => each(blocks, rows * columns, (field) =>
          multiply(up, multiply(field, across, rows, columns, width), height, rows, width)),
      };
    },

    bubbles: (given, [channels, height, width]) => {
      const skeleton = skeletonOf(given.skeleton);
      const nodes = patchNodes(given, [Number(height > 1), Number(width > 1)]);
      const weights = unpack(given.weights);
      const gather = gatherer(nodes, given.rows.starts.length * given.columns.starts.length, channels,
        height * width, weights, (value, weight) => value * weight, (value, weight) => value / weight);
      const bubble = (field) => subtract(field, skeleton.extend(skeleton.trace(field)));
      return {
        split: (fields) => gather.split(joined(parts(fields, height * width).map(bubble))),
        join: gather.join,
      };
    },
  };

  // Blocks of nodes: `read` and `write` change values by the weight of their place.
  const gatherer = (nodes, count, channels, size, weights, read, write) => {
    const features = nodes.length / count;
    const walk = (visit) => {
      let place = 0;
      for (let block = 0; block < count; block += 1) {
        for (let c = 0; c < channels; c += 1) {
          for (let f = 0; f < features; f += 1, place += 1) {
            const at = block * features + f;
            if (nodes[at] >= 0) visit(place, c * size + nodes[at], weights ? weights[at] : 1);
          }
        }
      }
    };
    return {
      split: (fields) => {
        const blocks = new Float64Array(count * channels * features);
        walk((place, node, weight) => { blocks[place] = read(fields[node], weight); });
        return blocks;
      },
      join: (blocks) => {
        const fields = new Float64Array(channels * size);
        walk((place, node, weight) => { fields[node] += write(blocks[place], weight); });
        return fields;
      },
    };
  };

  const parts = (fields, size) =>
    Array.from({ length: fields.length / size }, (_, c) => fields.subarray(c * size, (c + 1) * size));

  const joined = (arrays) => {
    if (arrays.length === 1) return arrays[0];
    const out = new Float64Array(arrays.reduce((sum, one) => sum + one.length, 0));
    let place = 0;
    for (const one of arrays) { out.set(one, place); place += one.length; }
    return out;
  };

  // Numbers of the modes within their block, for a code of all blocks in a row.
  const modeNumbers = (ranks) => ranks.flatMap((rank) => Array.from({ length: rank }, (_, k) => k));

  const REPRESENTATIONS = {
    blocks: (given) => {
      const { ranks, features } = given;
      const layout = LAYOUTS[given.layout.kind](given.layout, given.shape);
      const [mean, scale, modes] = [given.mean, given.scale, given.modes].map(unpack);
      const size = ranks.reduce((sum, rank) => sum + rank, 0);
      const encode = (fields) => {
        const blocks = layout.split(fields);
        const code = new Float64Array(size);
        let [first, mode] = [0, 0];
        ranks.forEach((rank, block) => {
          for (let f = block * features; f < (block + 1) * features; f += 1, mode += rank) {
            const value = (blocks[f] - mean[f]) / scale[f];
            for (let k = 0; k < rank; k += 1) code[first + k] += value * modes[mode + k];
          }
          first += rank;
        });
        return code;
      };
      const decode = (code) => {
        const blocks = new Float64Array(mean.length);
        let [first, mode] = [0, 0];
        ranks.forEach((rank, block) => {
          for (let f = block * features; f < (block + 1) * features; f += 1, mode += rank) {
            let sum = 0;
            for (let k = 0; k < rank; k += 1) sum += modes[mode + k] * code[first + k];
            blocks[f] = mean[f] + scale[f] * sum;
          }
          first += rank;
        });
        return layout.join(blocks);
      };
      return { size, encode, decode, modes: modeNumbers(ranks) };
    },

    lines: (given) => {
      const skeleton = skeletonOf(given.skeleton);
      const [channels, height, width] = given.shape;
      const [analysis, offset, synthesis, mean] =
        [given.analysis, given.offset, given.synthesis, given.mean].map(unpack);
      const [size] = given.ranks;
      const encode = (fields) => {
        const traces = joined(parts(fields, height * width).map(skeleton.trace));
        return subtract(multiply(traces, analysis, 1, traces.length, size), offset);
      };
      const decode = (code) => {
        const traces = add(multiply(synthesis, code, mean.length, size, 1), mean);
        return joined(parts(traces, skeleton.size).map(skeleton.extend));
      };
      return { size, encode, decode, modes: modeNumbers(given.ranks) };
    },

    whole: (given) => {
      const [channels, height, width] = given.shape;
      const [mean, std] = [given.mean, given.std].map(unpack);
      const nodes = height * width;
      const of = (i) => Math.floor(i / nodes);
      return {
        size: channels * nodes,
        encode: (fields) => Float64Array.from(fields, (v, i) => (v - mean[of(i)]) / std[of(i)]),
        decode: (code) => Float64Array.from(code, (v, i) => v * std[of(i)] + mean[of(i)]),
        modes: null,
      };
    },

    chain: (given) => {
      const stages = given.stages.map(representation);
      const encode = (fields) => {
        let rest = fields;
        return joined(stages.map((stage, place) => {
          const code = stage.encode(rest);
          if (place + 1 < stages.length) rest = subtract(rest, stage.decode(code));
          return code;
        }));
      };
      const size = stages.reduce((sum, stage) => sum + stage.size, 0);
      const pieces = (code) => {
        let first = 0;
        return stages.map((stage) => stage.decode(code.subarray(first, (first += stage.size))));
      };
      const known = stages.every((stage) => stage.modes);
      const modes = known ? stages.flatMap((stage) => stage.modes) : null;
      return { size, encode, pieces, decode: (code) => pieces(code).reduce(add), modes };
    },

    transformed: (given) => {
      const inner = representation(given.fields);
      const positive = (value) => (value > 0 ? value : NaN);
      const apply = { none: (v) => v, log: (v) => Math.log(positive(v)), reciprocal: (v) => 1 / positive(v) };
      const undo = { none: (v) => v, log: Math.exp, reciprocal: (v) => 1 / v };
      const by = (table) => (fields) => {
        const nodes = fields.length / given.by.length;
        return Float64Array.from(fields, (v, i) => table[given.by[Math.floor(i / nodes)]](v));
      };
      const encode = (fields) => inner.encode(by(apply)(fields));
      const decode = (code) => by(undo)(inner.decode(code));
      return { size: inner.size, affine: inner, encode, decode, modes: inner.modes };
    },

    "with-parameters": (given, nodes) => {
      const inner = given.fields ? representation(given.fields, nodes) : null;
      const [mean, scale] = [given.mean, given.scale].map(unpack);
      const encode = (fields) => {
        const first = fields.length - mean.length * nodes;
        const scores = Float64Array.from(mean, (m, p) => (fields[first + p * nodes] - m) / scale[p]);
        return inner ? joined([inner.encode(fields.subarray(0, first)), scores]) : scores;
      };
      const decode = (code) => {
        const first = code.length - mean.length;
        const constant = new Float64Array(mean.length * nodes);
        mean.forEach((m, p) => constant.fill(m + scale[p] * code[first + p], p * nodes, (p + 1) * nodes));
        return inner ? joined([inner.decode(code.subarray(0, first)), constant]) : constant;
      };
      return { size: (inner ? inner.size : 0) + mean.length, encode, decode, modes: null };
    },
  };

  const representation = (given, nodes) => REPRESENTATIONS[given.kind](given, nodes);

  return { load: representation, parts, joined };
})();
