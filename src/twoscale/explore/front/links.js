"use strict";
// Links: the state as text after # in an address, and back. Links may be old, cut off or made by
// hand: each part is checked before anything is changed.

const Links = (() => {
  const { data, state, FULL, LEVEL } = State;
  const TOOLS = ["high", "low", "raise", "lower", "erase"];

  // Writing

  // Places as two digits in base 36.
  const digits = (share) => Math.round(share * Input.STEPS).toString(36).padStart(2, "0");
  const strokeText = ({ channel, tool, size, points }) =>
    [channel, TOOLS.indexOf(tool), size, points.map(digits).join("")].join("_");

  // Values of a file, rounded to 16 bits between their ends and compressed.
  const squeezed = async (values) => {
    const [low, high] = Numerics.range(values);
    const scale = high > low ? 65535 / (high - low) : 0;
    const whole = Uint16Array.from(values, (value) => Math.round((value - low) * scale));
    const stream = new Blob([whole]).stream().pipeThrough(new CompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return [low, high, Numerics.textOf(bytes).replaceAll("+", "-").replaceAll("/", ".")].join("_");
  };

  const baseText = async ({ base }) => {
    if (base.kind === "sample") return `sample.${base.sample}`;
    if (base.kind === "random") return `random.${base.seed}_${base.mean}_${base.roughness}`;
    if (base.kind === "data") return `data.${await squeezed(base.values)}`;
    return "flat";
  };

  // The state as the part of a link after #.
  const write = async () => {
    const found = new URLSearchParams();
    found.set("run", State.run().name);
    found.set("input", await baseText(state));
    if (state.strokes.length) found.set("strokes", state.strokes.map(strokeText).join("~"));
    if (state.parameters.length) found.set("parameters", state.parameters.join("_"));
    if (state.hidden.length) found.set("without", state.hidden.join("_"));
    if (state.modes !== null) found.set("modes", state.modes);
    if (state.seams) found.set("seams", 1);
    if (state.compare) found.set("compare", 1);
    if (state.channel) found.set("channel", state.channel);
    if (state.output) found.set("output", state.output);
    if (state.level !== LEVEL) found.set("level", state.level);
    const short = (values) => values.map((one) => one.toFixed(4)).join("_");
    if (state.view.some((side, i) => side !== FULL[i])) found.set("view", short(state.view));
    found.set("profile", short(state.profile));
    return found.toString();
  };

  // Reading: each function gives undefined for text that it does not accept.

  const within = (value, low, high) => (value >= low && value <= high ? value : undefined);
  const number = (text, low, high) => {
    const plain = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(text || "");
    return plain ? within(Number(text), low, high) : undefined;
  };
  const whole = (text, most) => (/^\d+$/.test(text || "") ? within(Number(text), 0, most) : undefined);
  const all = (values) => (values.includes(undefined) ? undefined : values);
  const numbers = (text, count, low, high) => {
    const found = all(text.split("_").map((one) => number(one, low, high)));
    return found && found.length === count ? found : undefined;
  };
  const MOST = 3e38; // of float32, which predictions are computed in

  const strokeOf = (text, { channels }) => {
    const [channelText, toolText, sizeText, places, ...rest] = text.split("_");
    const channel = whole(channelText, channels.length - 1);
    const tool = TOOLS[whole(toolText, TOOLS.length - 1)];
    const size = number(sizeText, 0.01, 0.25);
    const known = channel !== undefined && Input.toolsOf(channels[channel]).includes(tool);
    if (!known || size === undefined || rest.length || !/^([0-9a-z]{4})+$/.test(places || "")) return undefined;
    const points = places.match(/../g).map((two) => parseInt(two, 36) / Input.STEPS);
    return { channel, tool, size, points };
  };

  const expanded = async (text, size) => {
    const [lowText, highText, packed] = text.split("_");
    const [low, high] = [number(lowText, -MOST, MOST), number(highText, -MOST, MOST)];
    if (low === undefined || high === undefined || !packed) return undefined;
    const bytes = Numerics.bytesOf(packed.replaceAll("-", "+").replaceAll(".", "/"));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const steps = new Uint16Array(await new Response(stream).arrayBuffer());
    if (steps.length !== size) return undefined;
    return Float64Array.from(steps, (value) => low + (value / 65535) * (high - low));
  };

  const baseOf = async (text, place) => {
    const [kind, ...rest] = text.split(".");
    const value = rest.join(".");
    const { modes, shape } = data.inputs[data.runs[place].inputs];
    if (text === "flat") return { kind };
    if (kind === "sample") {
      const sample = whole(value, data.samples.length - 1);
      return State.samplesOf(place).has(sample) ? { kind, sample } : undefined;
    }
    if (kind === "random" && modes) {
      const [seedText, meanText, roughnessText, ...more] = value.split("_");
      const given = [whole(seedText, 2 ** 32 - 1), number(meanText, -2, 2), number(roughnessText, -1, 1)];
      const [seed, mean, roughness] = given;
      return all(given) && !more.length ? { kind, seed, mean, roughness } : undefined;
    }
    if (kind !== "data") return undefined;
    const values = await expanded(value, shape.reduce((a, b) => a * b, 1)).catch(() => undefined);
    return values && { kind, values };
  };

  const viewOf = (text) => {
    const found = numbers(text, 4, 0, 1);
    if (!found) return undefined;
    const [left, top, right, bottom] = found;
    const [wide, high] = [right - left, bottom - top];
    return wide > 0.03 && Math.abs(wide - high) < 0.001 ? found : undefined; // views are squares
  };

  const hiddenOf = (text, { stages }) => {
    const found = all(text.split("_").map((one) => whole(one, stages.length - 1)));
    return found && stages.length > 1 && new Set(found).size === found.length ? found.sort() : undefined;
  };

  const flag = (text) => (text === "1" ? true : undefined);

  // What a link says: {chosen, ignored}, where `ignored` names the parts that were not understood;
  // null for a link to no run of this page.
  const read = async (text) => {
    const found = new URLSearchParams(text);
    const place = data.runs.findIndex((one) => one.name === found.get("run"));
    if (place < 0 || !found.has("input")) return null;
    const run = data.runs[place];
    const inputs = data.inputs[run.inputs];
    const model = Compute.modelOf(place);
    const start = State.startOf(place);
    const base = await baseOf(found.get("input"), place);
    const ignored = base ? [] : ["input"];
    if (base) start.base = base;
    if (base && base.kind === "sample") start.parameters = [...data.samples[base.sample].parameters];
    const PARTS = {
      strokes: ["strokes", [], (words) => all(words.split("~").map((one) => strokeOf(one, inputs)))],
      parameters: ["parameters", start.parameters,
        (words) => numbers(words, inputs.parameters.length, -MOST, MOST)],
      without: ["hidden", [], (words) => hiddenOf(words, run)],
      modes: ["modes", null, (words) => (model ? whole(words, model.mostModes - 1) : undefined)],
      seams: ["seams", false, flag],
      compare: ["compare", false, flag],
      channel: ["channel", 0, (words) => whole(words, inputs.channels.length - 1)],
      output: ["output", 0, (words) => whole(words, run.output.names.length - 1)],
      level: ["level", LEVEL, (words) => number(words, 0.01, 0.9999)],
      view: ["view", [...FULL], viewOf],
      profile: ["profile", state.profile, (words) => numbers(words, 4, 0, 1)],
    };
    const chosen = { ...start, run: place };
    for (const [name, [key, otherwise, parse]] of Object.entries(PARTS)) {
      const value = found.has(name) ? parse(found.get(name)) : otherwise;
      if (value === undefined) ignored.push(name);
      chosen[key] = value === undefined ? otherwise : value;
    }
    const known = ["run", "input", ...Object.keys(PARTS)];
    return { chosen, ignored: [...ignored, ...[...found.keys()].filter((name) => !known.includes(name))] };
  };

  // Changes the state to that of a link. Returns a sentence on what was ignored, or "".
  let newest = 0;
  const follow = async (text) => {
    newest += 1;
    const mine = newest;
    const found = await read(text).catch(() => null);
    if (mine !== newest) return ""; // another link came while this one was unpacked
    if (!found) return text ? "The link names no run and input of this page; it was ignored." : "";
    Object.assign(state, found.chosen);
    const { ignored } = found;
    return ignored.length ? `Ignored parts of the link, which do not fit this page: ${ignored.join(", ")}.` : "";
  };

  return { write, follow };
})();
