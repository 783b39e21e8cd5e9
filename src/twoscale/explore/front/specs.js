"use strict";
// Specs: which panels there are, and what each of them shows.

const Specs = (() => {
  const { state } = State;
  const { result } = Compute;
  const { number, percent } = Panels;

  const channelOf = (values, c, [, height, width]) =>
    values && values.subarray(c * height * width, (c + 1) * height * width);
  const picked = (values) => channelOf(values, state.output, State.run().output.shape);

  // The common range of some fields, and the range of a signed field.
  const shared = (...fields) => {
    const ranges = fields.filter(Boolean).map(Numerics.range);
    if (!ranges.length) return [0, 0];
    return [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];
  };
  const symmetric = (...fields) => {
    const most = Math.max(...shared(...fields).map(Math.abs));
    return [-most, most];
  };

  const input = () => {
    const { shape, channels } = State.inputs();
    const channel = channels[state.channel];
    const values = channelOf(result.input, state.channel, shape);
    const crisp = channel.kind === "two-valued";
    return {
      name: "input",
      title: channels.length > 1 ? `Input: ${channel.name}` : "Input",
      values,
      shape: shape.slice(1),
      palette: "cividis",
      range: shared(values, crisp ? [channel.low, channel.high] : null),
      note: "Paint here.",
      crisp,
      paintable: true,
    };
  };

  // Where the truth comes from, or why there is none.
  const truthNote = () => {
    const { problem } = State.run();
    if (Compute.fresh()) {
      if (State.untouchedSample()) return "stored solution of this test sample";
      return Compute.solvable() ? "solved in this page" : "solved by the server";
    }
    if (Compute.solvable()) {
      const refused = result.truth === null && result.truthVersion === result.version;
      return refused ? "no solution: the input must be positive" : "solving…";
    }
    if (Compute.served && problem) return "solving…";
    const words = "known for test samples only";
    return problem ? `${words}: --serve solves this equation too` : words;
  };

  const truth = (range) => ({
    name: "truth",
    title: "Truth",
    values: picked(result.truth),
    palette: "viridis",
    range,
    note: truthNote(),
    dim: !Compute.fresh(),
    line: true,
  });

  const predictionNote = (values, range) => {
    if (!result.shown && Compute.computing(state.run)) return "computing…";
    const { seams, output } = State.run();
    if (state.seams && seams && values) {
      const jump = Panels.largestJump(values, output.shape.slice(1), seams);
      return `largest jump at a seam ${number(jump)}, ${percent(jump / (range[1] - range[0]))} of the range`;
    }
    const left = Compute.whole() ? "" : ", parts or modes left out";
    return `${number(result.milliseconds)} ms${left}`;
  };

  const part = (values, stage) => {
    const { name, title } = State.run().stages[stage];
    const hidden = state.hidden.includes(stage);
    return {
      name: `part-${stage}`,
      title: `Part: ${name}`,
      values: picked(values),
      palette: stage ? "diverging" : "viridis",
      range: stage ? symmetric(picked(values)) : undefined,
      note: hidden ? "left out of the prediction" : title,
      dim: hidden || !result.parts,
    };
  };

  const withShape = (specs) => specs.map((spec) => ({ ...spec, shape: State.run().output.shape.slice(1) }));

  // The panels of the current run: prediction, truth, error, and what each stage adds.
  const ofRun = () => {
    const earlier = result.parts ? null : Compute.earlierParts(state.run);
    const fields = result.parts || earlier;
    const values = picked(result.shown || Compute.sumOf(earlier));
    const wrong = Compute.error(result.shown);
    const range = shared(values, picked(result.truth));
    const prediction = {
      name: "prediction",
      title: "Prediction",
      values,
      palette: "viridis",
      range,
      note: predictionNote(values, range),
      dim: Boolean(earlier),
      seams: state.seams && State.run().seams,
      line: true,
    };
    const error = {
      name: "error",
      title: "Error",
      values: picked(wrong),
      palette: "diverging",
      range: symmetric(picked(wrong)),
      note: wrong ? `prediction minus truth, ${percent(Compute.relative(wrong))} in L2` : "",
      line: true,
    };
    const parts = fields && fields.length > 1 ? fields.map(part) : [];
    return withShape([prediction, truth(range), error, ...parts]);
  };

  // Prediction and error of several runs {run, place, values, wrong}.
  const ofRuns = (found) => {
    const range = shared(picked(result.truth), ...found.map(({ values }) => picked(values)));
    const errors = symmetric(...found.map(({ wrong }) => picked(wrong)));
    const absent = (run, place) => {
      if (Compute.computing(place)) return "computing…";
      return Compute.served ? "" : `needs --serve: ${run.reason}`;
    };
    const pair = ({ run, place, values, wrong }) => [
      {
        name: `prediction-${place}`,
        title: run.name,
        values: picked(values),
        palette: "viridis",
        range,
        note: values ? `${run.method}, ${run.predictor}` : absent(run, place),
        seams: state.seams && run.seams,
        line: true,
      },
      {
        name: `error-${place}`,
        title: `Error of ${run.name}`,
        values: picked(wrong),
        palette: "diverging",
        range: errors,
        note: wrong ? `${percent(Compute.relative(wrong))} in L2` : "",
        line: true,
      },
    ];
    return withShape([truth(range), ...found.flatMap(pair)]);
  };

  return { input, ofRun, ofRuns, picked, truthNote };
})();
