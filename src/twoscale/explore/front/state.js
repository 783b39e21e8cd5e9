"use strict";
// State: what the user has chosen, and a link that brings it back.

const State = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const FULL = [0, 0, 1, 1];

  const state = {
    run: 0,
    compare: false,
    base: { kind: "flat" },
    strokes: [],
    parameters: [],
    channel: 0, // of the input
    output: 0, // channel of the output
    hidden: [], // stages that are left out of the prediction
    modes: null, // modes kept of each block; null: all
    seams: false,
    level: 0.95,
    view: [...FULL], // the part of the domain that is shown: left, top, right, bottom
    profile: [0.08, 0.5, 0.92, 0.5],
    tool: null,
    size: 0.06,
  };

  const run = () => data.runs[state.run];
  const inputs = () => data.inputs[run().inputs];

  const startSample = () => {
    const [first] = run().samples;
    state.base = first === undefined ? { kind: "flat" } : { kind: "sample", sample: first };
    state.strokes = [];
    state.parameters = first === undefined
      ? inputs().parameters.map(({ mean }) => mean)
      : [...data.samples[first].parameters];
  };

  // Whether the input is a sample as it is stored; then its truth is known.
  const untouchedSample = () => {
    if (state.base.kind !== "sample" || state.strokes.length) return null;
    const sample = data.samples[state.base.sample];
    return state.parameters.every((value, p) => value === sample.parameters[p]) ? sample : null;
  };

  // Places as two digits in base 36.
  const digits = (share) => Math.round(share * Input.STEPS).toString(36).padStart(2, "0");
  const shares = (text) => (text.match(/../g) || []).map((two) => parseInt(two, 36) / Input.STEPS);

  const TOOLS = ["high", "low", "raise", "lower", "erase"];
  const strokeText = ({ channel, tool, size, points }) =>
    [channel, TOOLS.indexOf(tool), size, points.map(digits).join("")].join("_");
  const strokeOf = (text) => {
    const [channel, tool, size, points] = text.split("_");
    const places = shares(points || "");
    return { channel: Number(channel), tool: TOOLS[Number(tool)], size: Number(size), points: places };
  };

  // Values of a file, rounded to 16 bits between their ends and compressed.
  const squeezed = async (values) => {
    const [low, high] = Numerics.range(values);
    const scale = high > low ? 65535 / (high - low) : 0;
    const whole = Uint16Array.from(values, (value) => Math.round((value - low) * scale));
    const stream = new Blob([whole]).stream().pipeThrough(new CompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return [low, high, Numerics.textOf(bytes).replaceAll("+", "-").replaceAll("/", ".")].join("_");
  };
  const expanded = async (text) => {
    const [low, high, packed] = text.split("_");
    const bytes = Numerics.bytesOf(packed.replaceAll("-", "+").replaceAll(".", "/"));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const whole = new Uint16Array(await new Response(stream).arrayBuffer());
    return Float64Array.from(whole, (value) => Number(low) + (value / 65535) * (high - low));
  };

  const baseText = async ({ base }) => {
    if (base.kind === "sample") return `sample.${base.sample}`;
    if (base.kind === "random") return `random.${base.seed}_${base.mean}_${base.roughness}`;
    if (base.kind === "data") return `data.${await squeezed(base.values)}`;
    return "flat";
  };
  const baseOf = async (text) => {
    const [kind, ...rest] = text.split(".");
    const value = rest.join(".");
    if (kind === "sample") return { kind, sample: Number(value) };
    if (kind === "random") {
      const [seed, mean, roughness] = value.split("_").map(Number);
      return { kind, seed, mean, roughness };
    }
    return kind === "data" ? { kind, values: await expanded(value) } : { kind: "flat" };
  };

  // The state as the part of a link after #.
  const toLink = async () => {
    const found = new URLSearchParams();
    found.set("run", run().name);
    found.set("input", await baseText(state));
    if (state.strokes.length) found.set("strokes", state.strokes.map(strokeText).join("~"));
    if (state.parameters.length) found.set("parameters", state.parameters.join("_"));
    if (state.hidden.length) found.set("without", state.hidden.join("_"));
    if (state.modes !== null) found.set("modes", state.modes);
    if (state.seams) found.set("seams", 1);
    if (state.compare) found.set("compare", 1);
    if (state.channel) found.set("channel", state.channel);
    if (state.output) found.set("output", state.output);
    const short = (values) => values.map((one) => one.toFixed(4)).join("_");
    if (state.view.some((side, i) => side !== FULL[i])) found.set("view", short(state.view));
    found.set("profile", short(state.profile));
    return found.toString();
  };

  const numbers = (text) => text.split("_").map(Number);

  const fromLink = async (text) => {
    const found = new URLSearchParams(text);
    const place = data.runs.findIndex((one) => one.name === found.get("run"));
    if (place < 0 || !found.has("input")) return false;
    state.run = place;
    startSample();
    const base = await baseOf(found.get("input"));
    const alike = data.runs.filter((one) => one.inputs === run().inputs).flatMap((one) => one.samples);
    const known = base.kind !== "sample" || (alike.includes(base.sample) && data.samples[base.sample]);
    if (known) state.base = base;
    if (base.kind === "sample" && known) state.parameters = [...known.parameters];
    if (found.has("strokes")) state.strokes = found.get("strokes").split("~").map(strokeOf);
    if (found.has("parameters")) state.parameters = numbers(found.get("parameters"));
    state.hidden = found.has("without") ? numbers(found.get("without")) : [];
    state.modes = found.has("modes") ? Number(found.get("modes")) : null;
    state.seams = found.has("seams");
    state.compare = found.has("compare");
    state.channel = Number(found.get("channel") || 0);
    state.output = Number(found.get("output") || 0);
    state.view = found.has("view") ? numbers(found.get("view")) : [...FULL];
    if (found.has("profile")) state.profile = numbers(found.get("profile"));
    return true;
  };

  return { data, state, run, inputs, startSample, untouchedSample, toLink, fromLink, FULL };
})();
