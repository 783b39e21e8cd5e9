"use strict";
// State: what the user has chosen.

const State = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const FULL = [0, 0, 1, 1];
  const LEVEL = 0.95;

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
    level: LEVEL,
    view: [...FULL], // the part of the domain that is shown: left, top, right, bottom
    profile: [0.08, 0.5, 0.92, 0.5],
    tool: null,
    size: 0.06,
  };

  const run = () => data.runs[state.run];
  const inputs = () => data.inputs[run().inputs];

  // Samples of the inputs that a run reads, by their places in the page.
  const samplesOf = (place) => {
    const { inputs: kind } = data.runs[place];
    const places = data.runs.filter((one) => one.inputs === kind).flatMap((one) => one.samples);
    return new Map([...new Set(places)].sort((a, b) => a - b).map((one) => [one, data.samples[one]]));
  };

  // Runs that read the same inputs as the current one, and give outputs of the same shape.
  const comparable = () => {
    const { inputs: kind, output } = run();
    const alike = (one) => one.inputs === kind && String(one.output.shape) === String(output.shape);
    return data.runs.map((_, place) => place).filter((place) => alike(data.runs[place]));
  };

  // The input that a run starts from.
  const startOf = (place) => {
    const { samples: [first], inputs: kind } = data.runs[place];
    if (first !== undefined) {
      return { base: { kind: "sample", sample: first }, strokes: [], parameters: [...data.samples[first].parameters] };
    }
    return { base: { kind: "flat" }, strokes: [], parameters: data.inputs[kind].parameters.map(({ mean }) => mean) };
  };
  const startSample = () => Object.assign(state, startOf(state.run));

  // Whether the input is a sample as it is stored; then its truth is known.
  const untouchedSample = () => {
    if (state.base.kind !== "sample" || state.strokes.length) return null;
    const sample = data.samples[state.base.sample];
    return state.parameters.every((value, p) => value === sample.parameters[p]) ? sample : null;
  };

  return { data, state, run, inputs, startOf, startSample, samplesOf, comparable, untouchedSample, FULL, LEVEL };
})();
