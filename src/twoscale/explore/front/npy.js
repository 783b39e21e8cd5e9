"use strict";
// Npy: reads one field from a .npy file; whatever is wrong becomes one sentence.

const Npy = (() => {
  const READERS = { "<f4": Float32Array, "<f8": Float64Array };

  const header = (bytes) => {
    const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
    if (bytes.length < 10 || magic.some((byte, i) => bytes[i] !== byte)) {
      throw new Error("This is not an .npy file. Save the field with numpy.save.");
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const long = bytes[6] > 1;
    const start = long ? 12 : 10;
    const length = long ? view.getUint32(8, true) : view.getUint16(8, true);
    const text = new TextDecoder("latin1").decode(bytes.subarray(start, start + length));
    const kind = /'descr':\s*'([^']*)'/.exec(text);
    const fortran = /'fortran_order':\s*(True|False)/.exec(text);
    const shape = /'shape':\s*\(([^)]*)\)/.exec(text);
    if (!kind || !fortran || !shape) throw new Error("The header of this .npy file cannot be read.");
    return {
      kind: kind[1],
      fortran: fortran[1] === "True",
      shape: shape[1].split(",").filter((one) => one.trim()).map(Number),
      start: start + length,
    };
  };

  // The field of a file as [channels, height, width], which must be `wanted`.
  const read = (buffer, wanted) => {
    const bytes = new Uint8Array(buffer);
    const { kind, fortran, shape, start } = header(bytes);
    if (!(kind in READERS)) {
      throw new Error("The numbers must be float32 or float64, little endian; " +
        `this file has '${kind}'. Use array.astype("float32").`);
    }
    const [channels, height, width] = wanted;
    const full = shape.length === 2 ? [1, ...shape] : shape;
    if (full.length !== 3 || full.some((side, i) => side !== wanted[i])) {
      const words = channels === 1 ? `${height} x ${width} or 1 x ${height} x ${width}` : wanted.join(" x ");
      throw new Error(`The shape must be ${words}; this file has ${shape.join(" x ") || "a single number"}.`);
    }
    if (fortran) {
      throw new Error("The array is stored column by column. Use numpy.ascontiguousarray before numpy.save.");
    }
    const Kind = READERS[kind];
    const count = channels * height * width;
    if (bytes.length - start < count * Kind.BYTES_PER_ELEMENT) throw new Error("The file ends too early.");
    const values = Float64Array.from(new Kind(buffer.slice(start, start + count * Kind.BYTES_PER_ELEMENT)));
    if (!values.every(Number.isFinite)) throw new Error("The field contains NaN or infinite values.");
    return values;
  };

  return { read };
})();
