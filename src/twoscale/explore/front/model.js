"use strict";
// Model: surrogates as the page computes them: input code, predictor, output code.

const Model = (() => {
  const { unpack, multiply, transpose, add, subtract } = Numerics;
  const { parts, joined } = Representations;

  const network = (layers) => {
    const read = layers.map(({ weight, bias }) => ({ weight: unpack(weight), bias: unpack(bias) }));
    return (code) => read.reduce((values, { weight, bias }, place) => {
      const out = multiply(weight, values, bias.length, values.length, 1);
      for (let i = 0; i < out.length; i += 1) {
        out[i] += bias[i];
        if (place + 1 < read.length && out[i] < 0) out[i] = 0;
      }
      return out;
    }, code);
  };

  const MATERN = {
    3: (distance) => { const s = Math.sqrt(3) * distance; return (1 + s) * Math.exp(-s); },
    5: (distance) => { const s = Math.sqrt(5) * distance; return (1 + s + (s * s) / 3) * Math.exp(-s); },
  };

  // Complex matrices {real, imaginary}; the imaginary part may be missing.
  const complex = ({ real, imaginary }) =>
    ({ real: unpack(real), ...(imaginary ? { imaginary: unpack(imaginary) } : {}) });
  const turnedOver = ({ real, imaginary }, rows, columns) => ({
    real: transpose(real, rows, columns),
    ...(imaginary ? { imaginary: transpose(imaginary, rows, columns) } : {}),
  });
  const product = (a, b, ...sizes) => {
    const times = (x, y) => (x && y ? multiply(x, y, ...sizes) : null);
    const [real, both] = [times(a.real, b.real), times(a.imaginary, b.imaginary)];
    const [one, other] = [times(a.real, b.imaginary), times(a.imaginary, b.real)];
    const imaginary = one && other ? add(one, other) : one || other;
    return { real: both ? subtract(real, both) : real, ...(imaginary ? { imaginary } : {}) };
  };

  // Output channel `o` of a symbol (modes x outs x ins) times the modes of all input channels.
  const weighted = (symbol, modes, o, outs, ins) => {
    const count = modes[0].real.length;
    const [real, imaginary] = [new Float64Array(count), symbol.imaginary && new Float64Array(count)];
    for (let m = 0; m < count; m += 1) {
      for (let i = 0; i < ins; i += 1) {
        const at = (m * outs + o) * ins + i;
        const [x, y] = [modes[i].real[m], modes[i].imaginary ? modes[i].imaginary[m] : 0];
        const [s, t] = [symbol.real[at], imaginary ? symbol.imaginary[at] : 0];
        real[m] += s * x - t * y;
        if (imaginary) imaginary[m] += s * y + t * x;
      }
    }
    return imaginary ? { real, imaginary } : { real };
  };

  const PREDICTORS = {
    sum: (given) => {
      const terms = given.networks.map(network);
      return (code) => terms.map((term) => term(code)).reduce(add);
    },

    kernel: (given) => {
      const [weights, centres, offset, coefficients] =
        [given.weights, given.centres, given.offset, given.coefficients].map(unpack);
      const size = weights.length;
      return (code) => {
        const scaled = Float64Array.from(code, (value, i) => value * weights[i]);
        const values = new Float64Array(centres.length / size);
        for (let j = 0; j < values.length; j += 1) {
          let sum = 0;
          for (let i = 0; i < size; i += 1) sum += (scaled[i] - centres[j * size + i]) ** 2;
          values[j] = MATERN[given.order](Math.sqrt(sum));
        }
        return add(multiply(values, coefficients, 1, values.length, offset.length), offset);
      };
    },

    filter: (given, inputs, outputs, channels, nodes) => {
      const [[rows, height], [columns, width]] = given.analysis.map(({ real }) => real.shape);
      const [down, right] = given.analysis.map(complex);
      const [up, left] = given.synthesis.map(complex);
      const [across, back] = [turnedOver(right, columns, width), turnedOver(left, width, columns)];
      const [, , outs, ins] = given.symbol.real.shape;
      const symbol = complex(given.symbol);
      const [meanIn, meanOut, unitIn, unitOut] =
        ["input_mean", "output_mean", "input_unit", "output_unit"].map((name) => unpack(given[name]));
      const modesOf = (field, c) => {
        if (c >= channels) return { real: new Float64Array(rows * columns).fill(field[0]) };
        return product(product(down, { real: field }, rows, height, width), across, rows, width, columns);
      };
      const fieldOf = (modes) =>
        product(up, product(modes, back, rows, columns, width), height, rows, width).real;
      return (code) => {
        const fields = inputs.decode(code).map((v, i) => (v - meanIn[i]) / unitIn[Math.floor(i / nodes)]);
        const modes = parts(fields, nodes).map(modesOf);
        const found = Array.from({ length: outs }, (_, o) => fieldOf(weighted(symbol, modes, o, outs, ins)));
        return outputs.encode(joined(found).map((v, i) => meanOut[i] + unitOut[Math.floor(i / nodes)] * v));
      };
    },
  };

  // Quarter turns, then a mirroring of the columns; or a shift along periodic axes.
  const turned = (field, height, width, { turns, mirrored, shift }) => {
    const out = new Float64Array(field.length);
    const [down, right] = [Math.round(shift[0] * height), Math.round(shift[1] * width)];
    const [rows, columns] = turns % 2 ? [width, height] : [height, width];
    for (let i = 0; i < rows; i += 1) {
      for (let j = 0; j < columns; j += 1) {
        const column = mirrored ? columns - 1 - j : j;
        const [below, beside] = [height - 1, width - 1];
        const sources = [[i, column], [column, beside - i], [below - i, beside - column], [below - column, i]];
        const [y, x] = sources[turns];
        out[i * columns + j] = field[((y - down + height) % height) * width + ((x - right + width) % width)];
      }
    }
    return out;
  };
  const inverse = ({ turns, mirrored, shift }) =>
    ({ turns: mirrored ? turns : (4 - turns) % 4, mirrored, shift: shift.map((share) => (1 - share) % 1) });
  const image = (fields, [height, width], symmetry) =>
    joined(parts(fields, height * width).map((field) => turned(field, height, width, symmetry)));

  // A model of the page; `inputs` is the shape of input fields [channels, height, width].
  const load = (given, [channels, height, width]) => {
    const nodes = height * width;
    const inputs = Representations.load(given.inputs, nodes);
    const outputs = Representations.load(given.outputs, nodes);
    const ends = [inputs.affine || inputs, outputs];
    const predict = PREDICTORS[given.predictor.kind](given.predictor, ...ends, channels, nodes);
    const [first] = given.group;

    const limited = (code, most) =>
      (most === null || !outputs.modes ? code : code.map((value, i) => (outputs.modes[i] < most ? value : 0)));
    const once = (fields, symmetry, most) => {
      const seen = symmetry === first ? fields : image(fields, [height, width], symmetry);
      const code = limited(predict(inputs.encode(seen)), most);
      const found = outputs.pieces ? outputs.pieces(code) : [outputs.decode(code)];
      return symmetry === first ? found : found.map((one) => image(one, given.grid, inverse(symmetry)));
    };

    return {
      // The most modes that a block has; 0 if the code has none.
      mostModes: outputs.modes ? 1 + outputs.modes.reduce((a, b) => Math.max(a, b), 0) : 0,
      // What each stage adds to the prediction; `most` limits the modes of each block.
      parts: (fields, most = null) => {
        const group = given.average ? given.group : [first];
        const found = group.map((symmetry) => once(fields, symmetry, most));
        if (found.length === 1) return found[0];
        const sums = found.reduce((one, other) => one.map((part, place) => add(part, other[place])));
        return sums.map((part) => part.map((value) => value / found.length));
      },
      // Predictions from some images of the input, which agree for a perfect surrogate.
      opinions: (fields) => given.group.slice(0, 4).map((symmetry) => once(fields, symmetry, null).reduce(add)),
    };
  };

  return { load };
})();
