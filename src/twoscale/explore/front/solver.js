"use strict";
// Solver: the equation -div(a grad u) = f with u = 0 on the boundary, on the interior nodes.
// Poisson: Laplace(u) = input, so that a = 1 and f = -input. Darcy: a = input and f = 1.

const Solver = (() => {
  const { multiply, dot, norm } = Numerics;
  const matrices = new Map();

  // The orthonormal DST-I, which is symmetric and its own inverse.
  const sineMatrix = (size) => {
    if (!matrices.has(size)) {
      const matrix = new Float64Array(size * size);
      for (let i = 0; i < size; i += 1) {
        for (let j = 0; j < size; j += 1) {
          const product = ((i + 1) * (j + 1)) % (2 * (size + 1)); // smaller angles lose fewer digits
          matrix[i * size + j] = Math.sqrt(2 / (size + 1)) * Math.sin((Math.PI * product) / (size + 1));
        }
      }
      matrices.set(size, matrix);
    }
    return matrices.get(size);
  };

  const eigenvalues = (size, spacing) =>
    Float64Array.from({ length: size }, (_, k) =>
      (-4 / spacing ** 2) * Math.sin((0.5 * Math.PI * (k + 1)) / (size + 1)) ** 2);

  // A system on a grid of height x width nodes; `faces` are null where a is 1 everywhere.
  const system = (name, input, [height, width]) => {
    const [rows, columns] = [height - 2, width - 2];
    const [hr, hc] = [1 / (height - 1), 1 / (width - 1)];
    const rightSide = new Float64Array(rows * columns).fill(1);
    let faces = null;
    if (name === "poisson") {
      for (let i = 0; i < rows; i += 1) {
        for (let j = 0; j < columns; j += 1) rightSide[i * columns + j] = -input[(i + 1) * width + j + 1];
      }
    } else {
      faces = [new Float64Array((rows + 1) * columns), new Float64Array(rows * (columns + 1))];
      for (let i = 0; i <= rows; i += 1) {
        for (let j = 0; j < columns; j += 1) {
          faces[0][i * columns + j] = 0.5 * (input[i * width + j + 1] + input[(i + 1) * width + j + 1]);
        }
      }
      for (let i = 0; i < rows; i += 1) {
        for (let j = 0; j <= columns; j += 1) {
          faces[1][i * (columns + 1) + j] = 0.5 * (input[(i + 1) * width + j] + input[(i + 1) * width + j + 1]);
        }
      }
    }
    const [rowValues, columnValues] = [eigenvalues(rows, hr), eigenvalues(columns, hc)];
    return { rows, columns, spacing: [hr, hc], faces, rightSide, rowValues, columnValues };
  };

  // Differences of interior values across all faces, the boundary being 0.
  const differences = (v, { rows, columns }) => {
    const down = new Float64Array((rows + 1) * columns);
    const right = new Float64Array(rows * (columns + 1));
    for (let i = 0; i <= rows; i += 1) {
      for (let j = 0; j < columns; j += 1) {
        down[i * columns + j] = (i < rows ? v[i * columns + j] : 0) - (i > 0 ? v[(i - 1) * columns + j] : 0);
      }
    }
    for (let i = 0; i < rows; i += 1) {
      for (let j = 0; j <= columns; j += 1) {
        right[i * (columns + 1) + j] = (j < columns ? v[i * columns + j] : 0) - (j > 0 ? v[i * columns + j - 1] : 0);
      }
    }
    return [down, right];
  };

  const divergence = ([down, right], { rows, columns, spacing: [hr, hc] }) => {
    const out = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i += 1) {
      for (let j = 0; j < columns; j += 1) {
        const at = i * (columns + 1) + j;
        out[i * columns + j] = (down[(i + 1) * columns + j] - down[i * columns + j]) / hr ** 2 +
          (right[at + 1] - right[at]) / hc ** 2;
      }
    }
    return out;
  };

  // a times fluxes, or themselves where a is 1.
  const weighted = (flux, { faces }) =>
    (faces ? flux.map((values, axis) => values.map((value, i) => value * faces[axis][i])) : flux);

  // A v
  const apply = (v, s) => divergence(weighted(differences(v, s), s), s).map((value) => -value);

  // The solution of Laplace_h(u) = f.
  const solveLaplace = (f, { rows, columns, rowValues, columnValues }) => {
    const [left, right] = [sineMatrix(rows), sineMatrix(columns)];
    const transformed = (values) =>
      multiply(multiply(left, values, rows, rows, columns), right, rows, columns, columns);
    const modes = transformed(f);
    for (let i = 0; i < rows; i += 1) {
      for (let j = 0; j < columns; j += 1) modes[i * columns + j] /= rowValues[i] + columnValues[j];
    }
    return transformed(modes);
  };

  const precondition = (residual, s) => solveLaplace(residual.map((value) => -value), s);

  // Conjugate gradients from zero; the preconditioner is exact where a is 1.
  const conjugateGradients = (s, b, { tolerance = 1e-10, maxSteps = 500 } = {}) => {
    const x = new Float64Array(b.length);
    const residual = Float64Array.from(b);
    const size = norm(b) || Number.MIN_VALUE;
    let direction = new Float64Array(b.length);
    let previous = 1;
    let steps = 0;
    while (steps < maxSteps && norm(residual) / size > tolerance) {
      const z = precondition(residual, s);
      const rho = dot(residual, z);
      const factor = rho / previous;
      direction = direction.map((value, i) => z[i] + factor * value);
      const image = apply(direction, s);
      const curvature = dot(direction, image);
      if (!(curvature > 0)) break;
      const alpha = rho / curvature;
      for (let i = 0; i < x.length; i += 1) {
        x[i] += alpha * direction[i];
        residual[i] -= alpha * image[i];
      }
      previous = rho || 1;
      steps += 1;
    }
    return x;
  };

  const interior = (field, [height, width]) => {
    const out = new Float64Array((height - 2) * (width - 2));
    for (let i = 1; i < height - 1; i += 1) {
      out.set(field.subarray(i * width + 1, (i + 1) * width - 1), (i - 1) * (width - 2));
    }
    return out;
  };

  const withBoundary = (values, [height, width]) => {
    const out = new Float64Array(height * width);
    for (let i = 1; i < height - 1; i += 1) {
      out.set(values.subarray((i - 1) * (width - 2), i * (width - 2)), i * width + 1);
    }
    return out;
  };

  // Whether the equation has a solution for this input: a is positive, and all is finite.
  const solvable = (name, input) =>
    input.every((value) => Number.isFinite(value) && (name === "poisson" || value > 0));

  const solve = (name, input, shape) => {
    const s = system(name, input, shape);
    const found = s.faces ? conjugateGradients(s, s.rightSide) : precondition(s.rightSide, s);
    return withBoundary(found, shape);
  };

  // The score "residual" of a prediction: the length of three steps towards the solution, of one
  // where that is exact. On the boundary the step is the whole prediction.
  const residualScore = (s, prediction, shape) => {
    const v = interior(prediction, shape);
    const image = apply(v, s);
    const right = s.rightSide.map((value, i) => value - image[i]);
    const step = conjugateGradients(s, right, { tolerance: 0, maxSteps: s.faces ? 3 : 1 });
    const inside = withBoundary(v, shape);
    const boundary = prediction.map((value, i) => value - inside[i]);
    return Math.hypot(norm(step), norm(boundary)) / Math.max(norm(prediction), 2.3e-308);
  };

  return { system, differences, divergence, weighted, solveLaplace, solve, solvable, residualScore, interior };
})();
