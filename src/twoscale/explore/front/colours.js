"use strict";
// Colours: numbers to colours, by the palettes of the reports.

const Colours = (() => {
  const STOPS = {
    viridis: "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725".split(" "),
    cividis: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838".split(" "),
    diverging: "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f".split(" "),
  };
  const LEVELS = 256;

  const channelsOf = (hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));

  // 256 colours as numbers that a canvas takes: alpha, blue, green, red.
  const table = (name) => {
    const stops = STOPS[name].map(channelsOf);
    return Uint32Array.from({ length: LEVELS }, (_, level) => {
      const at = (level / (LEVELS - 1)) * (stops.length - 1);
      const first = Math.min(Math.floor(at), stops.length - 2);
      const mixed = (value, i) => Math.round(value + (at - first) * (stops[first + 1][i] - value));
      const [r, g, b] = stops[first].map(mixed);
      return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    });
  };
  const tables = Object.fromEntries(Object.keys(STOPS).map((name) => [name, table(name)]));

  const gradient = (name) => `linear-gradient(to right, ${STOPS[name].map((hex) => `#${hex}`).join(", ")})`;

  // Colours a field into the 32-bit pixels of an image.
  const paint = (pixels, values, name, [low, high]) => {
    const colours = tables[name];
    const scale = high > low ? (LEVELS - 1) / (high - low) : 0;
    const middle = high > low ? 0 : (LEVELS - 1) / 2;
    for (let i = 0; i < pixels.length; i += 1) {
      const level = (values[i] - low) * scale + middle;
      pixels[i] = colours[level < 0 ? 0 : level > LEVELS - 1 ? LEVELS - 1 : level | 0];
    }
  };

  return { gradient, paint };
})();
