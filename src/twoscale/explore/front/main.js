"use strict";
// Main: draws everything whenever something has changed, at most once per frame.

const Main = (() => {
  const { data, state } = State;
  const { result } = Compute;
  const { make, number } = Panels;
  const find = (id) => document.getElementById(id);
  const narrow = window.matchMedia("(max-width: 52rem)");
  const COLOURS = ["--accent", "#D55E00", "#0072B2", "#CC79A7", "#E69F00", "#56B4E9"];

  const percent = (share) => {
    if (share === null || !Number.isFinite(share)) return "–";
    const value = 100 * share;
    return `${value >= 100 ? value.toFixed(0) : value < 0.001 && value > 0 ? value.toExponential(1) : value.toPrecision(2)} %`;
  };

  const channelOf = (values, c, [, height, width]) => values && values.subarray(c * height * width, (c + 1) * height * width);
  const symmetric = (values) => {
    const [low, high] = values ? Numerics.range(values) : [0, 0];
    const most = Math.max(Math.abs(low), Math.abs(high));
    return [-most, most];
  };

  const inputSpec = () => {
    const { shape, channels } = State.inputs();
    const channel = channels[state.channel];
    const values = channelOf(result.input, state.channel, shape);
    const [low, high] = Numerics.range(values);
    return {
      name: "input", title: channels.length > 1 ? `Input: ${channel.name}` : "Input", paintable: true, values,
      shape: shape.slice(1), palette: "cividis", crisp: channel.kind === "two-valued",
      range: [Math.min(low, channel.kind === "two-valued" ? channel.low : low), Math.max(high, channel.kind === "two-valued" ? channel.high : high)],
      note: "Paint here.",
    };
  };

  const truthNote = () => {
    if (Compute.fresh()) return State.untouchedSample() ? "stored solution of this test sample" : Compute.solvable() ? "solved in this page" : "solved by the server";
    if (Compute.solvable()) return result.truth === null && result.truthVersion === result.version ? "The equation has no solution for this input: it must be positive." : "solving…";
    if (Compute.served && State.run().problem) return "solving…";
    return State.run().problem ? "known for test samples only: --serve solves this equation too" : "known for test samples only";
  };

  const shared = (...fields) => {
    const ranges = fields.filter(Boolean).map(Numerics.range);
    return ranges.length ? [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))] : [0, 0];
  };

  // The panels of the current run: prediction, truth, error, and what each stage adds.
  const runSpecs = () => {
    const run = State.run();
    const shape = run.output.shape.slice(1);
    const pick = (values) => channelOf(values, state.output, run.output.shape);
    const [prediction, truth] = [pick(result.shown), pick(result.truth)];
    const wrong = Compute.error(result.shown);
    const range = shared(prediction, truth);
    const seams = state.seams && run.seams;
    const jump = seams && prediction ? Panels.largestJump(prediction, shape, run.seams) : null;
    const part = Compute.whole() ? "" : " (parts or modes left out)";
    const specs = [
      { name: "prediction", title: "Prediction", values: prediction, palette: "viridis", range, seams, line: true,
        note: jump === null ? `${number(result.milliseconds)} ms${part}` : `largest jump at a seam ${number(jump)}, ${percent(jump / (range[1] - range[0]))} of the range` },
      { name: "truth", title: "Truth", values: truth, palette: "viridis", range, line: true, dim: !Compute.fresh(), note: truthNote() },
      { name: "error", title: "Error", values: wrong ? pick(wrong) : null, palette: "diverging", range: symmetric(wrong && pick(wrong)), line: true,
        note: wrong ? `prediction minus truth, ${percent(Compute.relative(wrong))} in L2` : "" },
    ];
    if (result.parts && result.parts.length > 1) {
      result.parts.forEach((values, stage) => {
        const { name, title } = run.stages[stage];
        const field = pick(values);
        specs.push({ name: `part-${stage}`, title: `Part: ${name}`, values: field, palette: stage ? "diverging" : "viridis",
          range: stage ? symmetric(field) : undefined, dim: state.hidden.includes(stage), note: state.hidden.includes(stage) ? "left out of the prediction" : title });
      });
    }
    return specs.map((spec) => ({ ...spec, shape }));
  };

  // Prediction and error of all runs that read this input.
  const compareSpecs = (found) => {
    const { output } = State.run();
    const shape = output.shape.slice(1);
    const pick = (values) => channelOf(values, state.output, output.shape);
    const truth = pick(result.truth);
    const range = shared(truth, ...found.map(({ values }) => pick(values)));
    const most = symmetric(Float64Array.from(found.flatMap(({ wrong }) => (wrong ? Numerics.range(pick(wrong)) : []))));
    return [
      { name: "truth", title: "Truth", values: truth, palette: "viridis", range, line: true, dim: !Compute.fresh(), note: truthNote() },
      ...found.flatMap(({ run, place, values, wrong }) => [
        { name: `prediction-${place}`, title: run.name, values: pick(values), palette: "viridis", range, line: true,
          seams: state.seams && run.seams, note: values ? `${run.method}, ${run.predictor}` : `needs --serve: ${run.reason}` },
        { name: `error-${place}`, title: `Error of ${run.name}`, values: wrong ? pick(wrong) : null, palette: "diverging", range: most, line: true,
          note: wrong ? `${percent(Compute.relative(wrong))} in L2` : "" },
      ]),
    ].map((spec) => ({ ...spec, shape }));
  };
  const compared = () => Controls.comparable().map((place) => {
    const parts = place === state.run ? null : Compute.partsOf(place);
    const values = place === state.run ? result.shown : parts && parts.reduce(Numerics.add);
    return { run: data.runs[place], place, values, wrong: Compute.error(values) };
  });

  // What is known of the error, in four cards.
  const card = (value, name, words, kind = "") => {
    const item = make("li", { className: kind }, make("b", { textContent: name }), make("strong", { textContent: value }), make("span", { textContent: words }));
    return item;
  };
  const cards = (trust) => {
    const run = State.run();
    const wrong = Compute.relative(Compute.error(result.shown));
    const found = [card(percent(wrong), "Error", wrong === null ? truthNote() : `relative L2; ${percent(run.error)} on average over test samples`, wrong === null ? "quiet" : "")];
    const outside = trust.unusual !== null && trust.unusual > 1;
    found.push(trust.radius !== null
      ? card(`≤ ${percent(trust.radius)}`, "Radius", outside ? "does not hold: the input is unlike the training inputs" : `holds for ${100 * (trust.level || state.level)} % of inputs of the training's kind`, outside ? "quiet" : "")
      : card("–", "Radius", trust.why, "quiet"));
    found.push(trust.unusual === null
      ? card("–", "Input", trust.why, "quiet")
      : outside
        ? card("outside", "Input", Trust.reason(trust.distances), "warning")
        : card("known", "Input", "like the training inputs"));
    const { certificate } = trust;
    if (certificate) {
      const [low, high] = [certificate.relative_error_lower, certificate.relative_error_upper].map(percent);
      found.push(card(low === high ? high : `${low} to ${high}`, "Certificate",
        "proven bounds of the relative error in the energy norm"));
    } else {
      found.push(card("–", "Certificate", Compute.solvable() ? "…" : run.solver ? "the page certifies up to 128 x 128; --serve has no limit" : "for known elliptic equations only, such as Poisson and Darcy", "quiet"));
    }
    find("cards").replaceChildren(...found);
  };

  // The profile takes what the panels leave of their last row, or a row of its own.
  let filled = "";
  const fillRow = () => {
    const now = `${find("panels").childElementCount} ${window.innerWidth}`;
    if (now === filled) return;
    filled = now;
    const columns = getComputedStyle(find("panels")).gridTemplateColumns.split(" ").length;
    const panels = find("panels").childElementCount - 1;
    const left = columns - (panels % columns);
    find("profile").style.setProperty("--span", left > 1 || columns > 2 ? left : columns);
  };

  const drawProfile = (trust, found) => {
    const { output } = State.run();
    const pick = (values) => channelOf(values, state.output, output.shape);
    const lines = found.filter(({ values }) => values)
      .map(({ run, values }, i) => ({ name: found.length > 1 ? run.name : "prediction", values: pick(values), colour: COLOURS[i % COLOURS.length] }));
    if (Compute.fresh()) lines.push({ name: "truth", values: pick(result.truth), colour: "--ink", dashed: true });
    const width = trust.width && result.shown && found.length === 1 ? pick(trust.width) : null;
    const centre = pick(result.shown);
    const band = width && { low: centre.map((value, i) => value - width[i]), high: centre.map((value, i) => value + width[i]) };
    find("profile").hidden = !lines.length;
    if (!lines.length) return;
    fillRow();
    Profile.draw(find("profile").querySelector("canvas"), lines, band, output.shape.slice(1));
    find("legend").replaceChildren(...lines.map(({ name, colour, dashed }) => {
      const one = make("span", { textContent: name, className: dashed ? "dashed" : "" });
      one.style.setProperty("--colour", colour.startsWith("--") ? `var(${colour})` : colour);
      return one;
    }), ...(band ? [make("em", { textContent: "shaded: band around 95 % of the nodes" })] : []));
  };

  const needs = () => {
    const run = State.run();
    const missing = !run.model && !Compute.served;
    find("needs").hidden = !missing && !result.message;
    if (missing) {
      find("needs").textContent = `This page cannot compute ${run.name}: ${run.reason}. It shows the stored predictions of test samples. For painted inputs run: twoscale explore ${run.name} --serve`;
    } else find("needs").textContent = result.message;
  };

  const draw = () => {
    const trust = Compute.trust();
    const comparing = state.compare && Controls.comparable().length > 1;
    const found = comparing ? compared() : [{ run: State.run(), place: state.run, values: result.shown }];
    const specs = comparing ? compareSpecs(found) : runSpecs();
    // On a phone the prediction is beside the input, so that it is seen while painting.
    const beside = narrow.matches && State.inputs().channels.length ? specs.splice(comparing ? 1 : 0, 1) : [];
    const painted = State.inputs().channels.length ? [inputSpec()] : [];
    Panels.show(find("input-place"), [...painted, ...beside]);
    needs();
    cards(trust);
    Panels.show(find("panels"), specs);
    drawProfile(trust, found);
  };

  let scheduled = false;
  let stale = true; // whether the prediction is to be computed again
  const schedule = (again = true) => {
    stale = stale || again;
    if (scheduled) return;
    scheduled = true;
    window.requestAnimationFrame(() => {
      scheduled = false;
      if (stale) Compute.update();
      stale = false;
      draw();
    });
  };

  // The address follows the state a moment after the last change; files make it long, so not theirs.
  let timer = 0;
  const remember = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(async () => {
      if (state.base.kind !== "data") window.history.replaceState(null, "", `#${await State.toLink()}`);
    }, 400);
  };

  const onControl = (what) => {
    if (what === "run" || what === "input") Compute.rebuild();
    if (what === "run") Controls.showAll();
    if (what === "input") { Controls.showAll(); Controls.say(""); }
    schedule();
    remember();
  };

  const start = async () => {
    State.startSample();
    const restored = await State.fromLink(window.location.hash.slice(1)).catch(() => false);
    if (!restored) State.startSample();
    Pointers.onChange((what) => {
      if (what === "input" || what === "stroke") Controls.showStart();
      schedule(what === "input");
      remember();
    });
    Controls.connect(onControl);
    Compute.onChange(() => schedule(false));
    Compute.rebuild();
    Controls.showAll();
    find("foot").textContent = `twoscale ${data.version}. ${data.runs.some((run) => run.model && run.model.small) ? "Weights are rounded to float16 (about three digits) to keep the page small. " : ""}This page needs no network.`;
    new ResizeObserver(() => schedule(false)).observe(document.body);
    window.addEventListener("hashchange", async () => {
      if (await State.fromLink(window.location.hash.slice(1))) onControl("run");
    });
    schedule();
    window.setTimeout(schedule, 300); // the first prediction is slow: the browser compiles it
  };

  start();
  return { schedule };
})();
