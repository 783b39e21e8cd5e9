"use strict";
// Compute: from the input to everything that is shown. Predictions come from the page itself, from
// the server that sent it, or from the file; solutions from a worker, a stored sample or the server.

const Compute = (() => {
  const { data, state } = State;
  const { unpack, add, subtract, norm } = Numerics;
  // `twoscale explore --serve` marks the page that it sends; other web servers answer no questions.
  const marked = document.documentElement.hasAttribute("data-served");
  const served = marked && window.location.protocol.startsWith("http");
  const models = new Map();
  const known = new Map();
  const answers = new Map(); // the last answer of the server for each run, with its version

  const result = {
    version: 0, // of the input
    input: new Float64Array(0),
    parts: null, // fields of all stages; null where nothing can be predicted
    shown: null, // the sum of the parts that are switched on
    truth: null,
    truthVersion: -1,
    residual: null,
    certificate: null,
    certified: "", // what the certificate is of
    milliseconds: 0,
    frames: 0,
  };
  let changed = () => {};

  const modelOf = (place) => {
    const run = data.runs[place];
    if (!run.model) return null;
    if (!models.has(place)) models.set(place, Model.load(run.model, data.inputs[run.inputs].shape));
    return models.get(place);
  };

  // Input fields and, after them, a channel for each parameter.
  const fullInput = () => {
    if (!state.parameters.length) return result.input;
    const [count, height, width] = State.inputs().shape;
    const nodes = height * width;
    const out = new Float64Array((count + state.parameters.length) * nodes);
    out.set(result.input);
    state.parameters.forEach((value, p) => out.fill(value, (count + p) * nodes, (count + p + 1) * nodes));
    return out;
  };

  const rebuild = () => {
    result.input = Input.build(State.inputs(), State.samplesOf(state.run), state.base, state.strokes);
    touch();
  };
  const touch = () => { result.version += 1; };

  const whole = () => !state.hidden.length && state.modes === null;

  // The parts of a run's prediction of this very input, if they can be had at once.
  const partsOf = (place) => {
    const model = modelOf(place);
    if (model) return model.parts(fullInput(), place === state.run ? state.modes : null);
    const answer = answerOf(place);
    if (answer && answer.parts) return answer.parts;
    const { predictions } = data.runs[place];
    const stored = State.untouchedSample() && predictions && predictions[state.base.sample];
    const possible = stored && (place !== state.run || whole()); // no parts of it are stored
    return possible ? [Float64Array.from(unpack(stored))] : null;
  };

  // The parts that the server gave for an input before this one: to look at while it computes.
  const earlierParts = (place) => (computing(place) && answers.has(place) ? answers.get(place).parts : null);

  // The sum of the parts that are switched on.
  const sumOf = (parts) => {
    const kept = (parts || []).filter((_, stage) => !state.hidden.includes(stage));
    return parts && (kept.length ? kept.reduce(add) : new Float64Array(parts[0].length));
  };

  const key = () => `${result.version}/${state.run}/${state.hidden}/${state.modes}`;

  // Computes the prediction of the current run, and asks for whatever takes longer.
  const update = () => {
    modelOf(state.run); // the first call reads the weights
    const start = performance.now();
    result.parts = partsOf(state.run);
    result.shown = sumOf(result.parts);
    result.milliseconds = performance.now() - start;
    result.frames += 1;
    const sample = State.untouchedSample();
    if (sample) {
      if (result.truthVersion !== result.version) result.truth = Float64Array.from(unpack(sample.truth));
      result.truthVersion = result.version;
    }
    askWorker();
    askServer();
  };

  // The worker solves one request at a time; while it works only the newest one waits.
  let worker = null;
  let busy = false;
  let waiting = false;
  const solvable = () => {
    const { solver, output } = State.run();
    return solver && Math.max(...output.shape.slice(1)) <= solver.most ? solver : null;
  };
  const askWorker = () => {
    const solver = solvable();
    if (!solver || (result.certified === key() && result.truthVersion === result.version)) return;
    if (busy) { waiting = true; return; }
    busy = true;
    waiting = false;
    worker = worker || SolverWorker.start(onSolved);
    worker.postMessage({
      version: result.version,
      key: key(),
      name: solver.name,
      shape: State.run().output.shape.slice(1),
      input: result.input,
      prediction: result.shown,
    });
  };
  const onSolved = (answer) => {
    busy = false;
    if (answer.version === result.version || !State.untouchedSample()) {
      result.truth = answer.truth;
      result.truthVersion = answer.version;
    }
    result.residual = answer.residual === undefined ? null : answer.residual;
    result.certificate = answer.certificate || null;
    result.certified = answer.key;
    if (waiting) askWorker();
    changed();
  };

  // The server: for runs that the page cannot compute, and for truths that it cannot solve. It is
  // asked one thing at a time, first for the current run, then for those it is compared with.
  let asking = false;
  const asked = new Map(); // what each run was asked for last
  const wantsOf = (place) => (place !== state.run ? [] : [
    ...(solvable() || State.untouchedSample() ? [] : ["truth"]),
    ...(modelOf(place) ? [] : ["trust"]),
  ]);
  const modesOf = (place) => (place === state.run ? state.modes : null);
  const questionOf = (place) => `${result.version}/${modesOf(place)}/${state.level}/${wantsOf(place)}`;
  const places = () => {
    const others = state.compare ? State.comparable().filter((place) => place !== state.run) : [];
    return [state.run, ...others].filter((place) => !modelOf(place) || wantsOf(place).length);
  };
  const answerOf = (place) => {
    const found = answers.get(place);
    return found && found.version === result.version && found.modes === modesOf(place) ? found : null;
  };

  const askServer = async () => {
    if (!served || asking) return;
    const place = places().find((one) => asked.get(one) !== questionOf(one));
    if (place === undefined) return;
    asking = true;
    asked.set(place, questionOf(place));
    const [version, modes] = [result.version, modesOf(place)];
    try {
      const body = JSON.stringify({
        run: place,
        input: result.input.length ? Numerics.pack(result.input, State.inputs().shape) : null,
        parameters: state.parameters,
        modes,
        level: state.level,
        wants: wantsOf(place),
      });
      const answer = await (await fetch("predict", { method: "POST", body })).json();
      if (answer.error) throw new Error(answer.error.message);
      const parts = answer.parts.map((one) => Float64Array.from(unpack(one)));
      answers.set(place, { ...answer, version, modes, parts, error: "" });
      if (answer.truth && place === state.run) {
        result.truth = Float64Array.from(unpack(answer.truth));
        result.truthVersion = version;
      }
    } catch (error) {
      answers.set(place, { version, modes, parts: null, error: `The server says: ${error.message}` });
    }
    asking = false;
    update();
    changed();
  };

  // Whether the server has still to answer for the prediction of a run.
  const computing = (place) => served && !modelOf(place) && !answerOf(place);
  const messages = () => [...new Set(places().map((place) => (answerOf(place) || { error: "" }).error))]
    .filter(Boolean).join(" ");

  // How far the prediction can be trusted; null for what is not known, with the reason in words.
  const trust = () => {
    const run = State.run();
    const found = { distances: null, unusual: null, radius: null, width: null, certificate: null, why: "" };
    const without = (why) => ({ ...found, why });
    const parted = "the radius is of the whole prediction: switch all parts and modes on";
    const answer = modelOf(state.run) ? null : answerOf(state.run);
    if (answer && answer.trust) {
      const { distances, width } = answer.trust;
      found.distances = distances;
      found.unusual = Trust.unusual(distances);
      return whole() ? { ...found, ...answer.trust, width: unpack(width) } : without(parted);
    }
    if (!run.trust) return { ...found, why: "this surrogate was fitted without trust" };
    const shape = State.inputs().shape;
    if (!known.has(state.run)) known.set(state.run, Trust.knownInputs(run.trust.known));
    found.distances = known.get(state.run)(result.input, state.parameters, shape);
    found.unusual = Trust.unusual(found.distances);
    found.certificate = result.certified === key() ? result.certificate : null;
    found.why = run.trust.why;
    const { band } = run.trust;
    if (band && computing(state.run)) return without("…");
    if (!band || !result.shown) return found;
    if (!whole()) return without(parted);
    const scores = { distance: found.unusual };
    if (band.kinds.includes("residual")) {
      if (!solvable()) return without("the radius needs the equation's solver: use --serve");
      if (result.certified !== key() || result.residual === null) return without("…");
      scores.residual = result.residual;
    }
    if (band.kinds.includes("disagreement")) {
      const model = modelOf(state.run);
      if (!model) return without("the radius needs --serve");
      scores.disagreement = Trust.disagreement(model.opinions(fullInput()), result.shown);
    }
    const level = [...band.levels].reverse().find((one) => one.level <= state.level) || band.levels[0];
    if (!level) return without(`there are only ${band.samples} calibration samples`);
    const widths = Trust.banded(band, scores, level, result.shown, run.output.shape);
    return { ...found, ...widths, level: level.level };
  };

  const fresh = () => result.truth !== null && result.truthVersion === result.version;
  const error = (prediction) => (prediction && fresh() ? subtract(prediction, result.truth) : null);
  const relative = (wrong) => (wrong ? norm(wrong) / (norm(result.truth) || 1) : null);

  const onChange = (callback) => { changed = callback; };
  return {
    result, served, modelOf, partsOf, earlierParts, sumOf, computing, messages, rebuild, touch, update, trust,
    fresh, error, relative, solvable, whole, onChange,
  };
})();
