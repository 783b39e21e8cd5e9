"use strict";
// Numerics: arrays of the page, and products of small matrices. Sums are in double precision.

const Numerics = (() => {
  const bytesOf = (text) => {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
    return bytes;
  };

  const textOf = (bytes) => {
    const pieces = [];
    for (let i = 0; i < bytes.length; i += 0x8000) {
      pieces.push(String.fromCharCode(...bytes.subarray(i, i + 0x8000)));
    }
    return btoa(pieces.join(""));
  };

  // The value of a float16, given as a whole number of 16 bits.
  const halfValue = (bits) => {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  };

  const KINDS = { f4: Float32Array, f8: Float64Array, i4: Int32Array };

  // The numbers of a packed array {shape, type, data}.
  const unpack = (packed) => {
    const { buffer } = bytesOf(packed.data);
    if (packed.type !== "f2") return new KINDS[packed.type](buffer);
    return Float32Array.from(new Uint16Array(buffer), halfValue);
  };

  const pack = (values, shape) => {
    const bytes = new Uint8Array(Float32Array.from(values).buffer);
    return { shape, type: "f4", data: textOf(bytes) };
  };

  // A (rows x inner) times B (inner x columns). Four rows of B at a time: that reads and writes
  // each row of the result a quarter as often.
  const multiply = (a, b, rows, inner, columns) => {
    const out = new Float64Array(rows * columns);
    if (columns === 1) {
      for (let i = 0; i < rows; i += 1) {
        let sum = 0;
        for (let k = 0, at = i * inner; k < inner; k += 1, at += 1) sum += a[at] * b[k];
        out[i] = sum;
      }
      return out;
    }
    for (let i = 0; i < rows; i += 1) {
      const to = i * columns;
      let k = 0;
      for (; k + 4 <= inner; k += 4) {
        const at = i * inner + k;
        const [a0, a1, a2, a3] = [a[at], a[at + 1], a[at + 2], a[at + 3]];
        if (a0 === 0 && a1 === 0 && a2 === 0 && a3 === 0) continue;
        const b0 = k * columns;
        const [b1, b2, b3] = [b0 + columns, b0 + 2 * columns, b0 + 3 * columns];
        for (let j = 0; j < columns; j += 1) {
          out[to + j] += a0 * b[b0 + j] + a1 * b[b1 + j] + a2 * b[b2 + j] + a3 * b[b3 + j];
        }
      }
      for (; k < inner; k += 1) {
        const factor = a[i * inner + k];
        for (let j = 0; j < columns; j += 1) out[to + j] += factor * b[k * columns + j];
      }
    }
    return out;
  };

  const transpose = (a, rows, columns) => {
    const out = new a.constructor(a.length);
    for (let i = 0; i < rows; i += 1) {
      for (let j = 0; j < columns; j += 1) out[j * rows + i] = a[i * columns + j];
    }
    return out;
  };

  const add = (one, other) => {
    const out = Float64Array.from(one);
    for (let i = 0; i < out.length; i += 1) out[i] += other[i];
    return out;
  };

  const subtract = (one, other) => {
    const out = Float64Array.from(one);
    for (let i = 0; i < out.length; i += 1) out[i] -= other[i];
    return out;
  };

  const dot = (one, other) => {
    let sum = 0;
    for (let i = 0; i < one.length; i += 1) sum += one[i] * other[i];
    return sum;
  };

  const norm = (values) => Math.sqrt(dot(values, values));

  const range = (values) => {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low <= high ? [low, high] : [0, 0];
  };

  // A field (rows x columns) on another number of nodes, interpolated between nodes; ends stay.
  const resize = (values, rows, columns, newRows, newColumns) => {
    if (rows === newRows && columns === newColumns) return Float64Array.from(values);
    const out = new Float64Array(newRows * newColumns);
    const place = (i, size, newSize) => (newSize > 1 ? (i * (size - 1)) / (newSize - 1) : 0);
    for (let i = 0; i < newRows; i += 1) {
      const y = place(i, rows, newRows);
      const top = Math.min(Math.floor(y), Math.max(rows - 2, 0));
      const below = Math.min(top + 1, rows - 1);
      for (let j = 0; j < newColumns; j += 1) {
        const x = place(j, columns, newColumns);
        const left = Math.min(Math.floor(x), Math.max(columns - 2, 0));
        const right = Math.min(left + 1, columns - 1);
        const [v, h] = [y - top, x - left];
        out[i * newColumns + j] =
          (1 - v) * ((1 - h) * values[top * columns + left] + h * values[top * columns + right]) +
          v * ((1 - h) * values[below * columns + left] + h * values[below * columns + right]);
      }
    }
    return out;
  };

  return { bytesOf, textOf, unpack, pack, multiply, transpose, add, subtract, dot, norm, range, resize };
})();
