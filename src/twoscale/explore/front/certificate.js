"use strict";
// Certificate: proven bounds of a prediction's error in the energy norm ||e|| = h sqrt(e'Ae).
// It follows twoscale/trust/energy.py, which explains the bounds; rounding is part of them.

const Certificate = (() => {
  const { dot, norm } = Numerics;
  const EPS = 2 ** -52;
  const TINY = 2.3e-308;

  const plus = (one, share, other) =>
    one.map((values, axis) => values.map((value, i) => value + share * other[axis][i]));

  const energyNorm = (s) => {
    const [hr, hc] = s.spacing;
    const area = hr * hc;
    const weights = [hc / hr, hr / hc];
    const slack = EPS * (2 * (s.rows + 2) * (s.columns + 2) + 16);
    const [least, largest] = s.faces
      ? s.faces.map(Numerics.range).reduce(([a, b], [c, d]) => [Math.min(a, c), Math.max(b, d)])
      : [1, 1];
    const eigenvalue = Math.abs(s.rowValues[0] + s.columnValues[0]);
    const poincare = Math.sqrt(area / (eigenvalue * least));

    const product = (one, other) => weights[0] * dot(one[0], other[0]) + weights[1] * dot(one[1], other[1]);
    const weighted = (flux) => Solver.weighted(flux, s);
    const unweighted = (flux) =>
      (s.faces ? flux.map((values, axis) => values.map((value, i) => value / s.faces[axis][i])) : flux);
    const fluxNorm = (flux) => Math.sqrt(product(flux, unweighted(flux)));
    const size = (v) => { const d = Solver.differences(v, s); return Math.sqrt(product(d, weighted(d))); };

    const rounding = (length, values) => {
      const most = Math.sqrt((weights[0] + weights[1]) * largest);
      return (1 + slack) * 8 * EPS * poincare * ((2 * most * length) / area + norm(values));
    };
    const residual = (v) => {
      const d = Solver.differences(v, s);
      const flux = weighted(d);
      const out = Solver.divergence(flux, s);
      const values = s.rightSide.map((f, i) => f + out[i]);
      return { values, rounding: rounding(Math.sqrt(product(d, flux)), s.rightSide) };
    };
    const applied = ({ values, rounding: error }, v, length) => {
      const inner = area * dot(values, v);
      const sums = slack * area * norm(values) * norm(v);
      const wrong = (1 + slack) * (sums + error * length);
      return [inner - wrong, inner + wrong];
    };
    const tested = (functional, v, length) =>
      ((1 - slack) * applied(functional, v, length)[0]) / Math.max(length, TINY);

    const combined = (values, z, w, dz, dw, image) => {
      const [zz, zw] = [product(image, dz), product(image, dw)];
      const ww = product(dw, weighted(dw));
      const [rz, rw] = [dot(values, z), dot(values, w)];
      return z.map((value, i) => (rz * ww - rw * zw) * value + (rw * zz - rz * zw) * w[i]);
    };
    const shortened = (flux, circulation) => {
      const across = unweighted(circulation);
      const length = Math.max(product(circulation, across), TINY);
      const share = Math.min(Math.max(-product(flux, across) / length, 0), 1 / least);
      return plus(flux, share, circulation);
    };
    const dualNorm = (functional) => {
      const { values, rounding: error } = functional;
      const z = Solver.solveLaplace(values.map((value) => -value), s);
      let flux = Solver.differences(z, s);
      const image = weighted(flux);
      let lower = tested(functional, z, Math.sqrt(product(flux, image)));
      if (s.faces) {
        const w = Solver.solveLaplace(Solver.divergence(image, s), s);
        const second = Solver.differences(w, s);
        const both = combined(values, z, w, flux, second, image);
        const other = tested(functional, both, size(both));
        if (!(lower >= other)) lower = other;
        flux = shortened(flux, plus(image, -1, second));
      }
      const length = fluxNorm(flux);
      const out = Solver.divergence(flux, s);
      const missing = poincare * norm(values.map((value, i) => value + out[i]));
      const upper = length + missing + rounding(length, values) + error;
      return [Math.max(lower, 0), (1 + slack) * upper];
    };
    const solutionNorm = (v, rest, error) => {
      const both = { values: s.rightSide.map((f, i) => f + rest.values[i]), rounding: rest.rounding };
      const known = applied(both, v, size(v));
      let lower = Math.sqrt(Math.max(known[0] + error[0] ** 2, 0)) * (1 - slack);
      let upper = Math.sqrt(Math.max(known[1] + error[1] ** 2, 0)) * (1 + slack);
      if (upper > 1.5 * lower) {
        const other = dualNorm({ values: s.rightSide, rounding: 0 });
        lower = Math.max(lower, other[0]);
        upper = Math.min(upper, other[1]);
      }
      return [lower, upper];
    };
    return { residual, dualNorm, solutionNorm };
  };

  // The bounds for a predicted field [height x width].
  const certify = (s, field, [height, width]) => {
    const measure = energyNorm(s);
    const v = Solver.interior(field, [height, width]);
    const rest = measure.residual(v);
    const [lower, upper] = measure.dualNorm(rest);
    const solution = measure.solutionNorm(v, rest, [lower, upper]);
    let boundary = 0;
    field.forEach((value, i) => {
      const [row, column] = [Math.floor(i / width), i % width];
      const edge = row === 0 || column === 0 || row === height - 1 || column === width - 1;
      if (edge) boundary = Math.max(boundary, Math.abs(value));
    });
    return {
      energy_error_lower: lower,
      energy_error_upper: upper,
      relative_error_lower: lower > 0 ? lower / solution[1] : 0,
      relative_error_upper: upper > 0 ? upper / solution[0] : 0,
      boundary_error: boundary,
    };
  };

  return { certify };
})();
