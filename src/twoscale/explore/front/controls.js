"use strict";
// Controls: runs, samples, brushes, sliders and parts around the panels, as the state has them.

const Controls = (() => {
  const { data, state } = State;
  const { make } = Panels;
  const find = (id) => document.getElementById(id);
  let changed = () => {}; // called with "input" (build it anew), "run", or "look"

  const WORDS = { high: "Paint high", low: "Paint low", raise: "Raise +", lower: "Lower −", erase: "Erase" };

  // Buttons of which one is chosen; arrow keys move between them.
  const choice = (place, entries, chosen, choose) => {
    const buttons = entries.map(([value, words, title = ""]) => {
      const button = make("button", { type: "button", textContent: words, title });
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(value === chosen));
      button.tabIndex = value === chosen ? 0 : -1;
      button.addEventListener("click", () => choose(value));
      return button;
    });
    place.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const at = entries.findIndex(([value]) => value === chosen);
      if (!step || at < 0) return;
      event.preventDefault();
      choose(entries[(at + step + entries.length) % entries.length][0]);
      place.querySelector('[aria-checked="true"]').focus();
    };
    place.replaceChildren(...buttons);
  };

  const chooseRun = (place) => {
    const before = State.run().inputs;
    state.run = place;
    state.hidden = [];
    state.modes = null;
    state.output = 0;
    if (State.run().inputs !== before) { // an input of another dataset means nothing to this run
      state.channel = 0;
      State.startSample();
    }
    changed("run");
  };

  const showRuns = () => {
    const entries = data.runs.map((run, place) => [place, run.name, `${run.method}, ${run.predictor}`]);
    choice(find("runs"), entries, state.run, chooseRun);
    find("runs").hidden = data.runs.length < 2;
    find("comparing").hidden = State.comparable().length < 2;
    find("compare").checked = state.compare;
  };

  const thumbnail = (sample, inputs) => {
    const [, height, width] = inputs.shape;
    const canvas = make("canvas", { width, height });
    const image = canvas.getContext("2d").createImageData(width, height);
    const values = Numerics.unpack(sample.input).subarray(0, height * width);
    Colours.paint(new Uint32Array(image.data.buffer), values, "cividis", Numerics.range(values));
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  };

  const showSamples = () => {
    const inputs = State.inputs();
    find("samples").replaceChildren(...State.run().samples.map((place, i) => {
      const sample = data.samples[place];
      const inner = inputs.shape[0] ? thumbnail(sample, inputs) : String(sample.number);
      const title = `Test sample ${sample.number} (key ${i + 1})`;
      const button = make("button", { type: "button", title }, inner);
      button.setAttribute("aria-label", `Test sample ${sample.number}`);
      button.dataset.sample = place;
      button.addEventListener("click", () => chooseSample(place));
      return button;
    }));
  };
  const chooseSample = (place) => {
    state.base = { kind: "sample", sample: place };
    state.parameters = [...data.samples[place].parameters];
    state.strokes = [];
    changed("input");
  };

  const showBrush = () => {
    const { channels } = State.inputs();
    find("brush").hidden = !channels.length;
    const named = channels.length > 1 ? channels.map(({ name }, c) => [c, name]) : [];
    choice(find("channels"), named, state.channel, (c) => {
      state.channel = c;
      showBrush();
      changed("look");
    });
    if (!channels.length) return;
    const tools = Input.toolsOf(channels[state.channel]);
    if (!tools.includes(state.tool)) [state.tool] = tools;
    choice(find("brush"), tools.map((tool) => [tool, WORDS[tool]]), state.tool, (tool) => {
      state.tool = tool;
      showBrush();
    });
  };

  const showParameters = () => {
    find("parameters").replaceChildren(...State.inputs().parameters.map(({ name, low, high }, p) => {
      const value = make("output", { textContent: Panels.number(state.parameters[p]) });
      const slider = make("input", { type: "range", min: low, max: high, step: "any" });
      slider.value = state.parameters[p];
      slider.addEventListener("input", () => {
        state.parameters[p] = Number(slider.value);
        value.textContent = Panels.number(state.parameters[p]);
        Compute.touch();
        changed("look");
      });
      return make("label", { className: "slider" }, name, slider, value);
    }));
  };

  const showParts = () => {
    const run = State.run();
    const legend = find("parts").firstElementChild;
    find("parts").hidden = run.stages.length < 2;
    find("parts").replaceChildren(legend, ...run.stages.map(({ name, title }, stage) => {
      const box = make("input", { type: "checkbox", checked: !state.hidden.includes(stage) });
      box.addEventListener("change", () => {
        const others = state.hidden.filter((one) => one !== stage);
        state.hidden = box.checked ? others : [...others, stage].sort();
        changed("look");
      });
      return make("label", { className: "check", title }, box, ` ${name}`);
    }));
    const model = Compute.modelOf(state.run);
    const most = model ? model.mostModes : 0;
    find("modes-box").hidden = !most;
    find("modes").max = most;
    find("modes").value = state.modes === null ? most : state.modes;
    find("modes-value").textContent = state.modes === null ? "all" : String(state.modes);
    find("seams-box").hidden = !run.seams;
    find("seams").checked = state.seams;
    const levels = run.trust && run.trust.band ? run.trust.band.levels : [];
    find("level-box").hidden = levels.length < 2;
    const usable = levels.map(({ level }) => level).filter((level) => level <= state.level).pop();
    find("level").replaceChildren(...levels.map(({ level }) =>
      make("option", { value: level, textContent: `${100 * level} %`, selected: level === usable })));
    const { names } = run.output;
    choice(find("outputs"), names.length > 1 ? names.map((name, c) => [c, name]) : [], state.output, (c) => {
      state.output = c;
      showParts();
      changed("look");
    });
  };

  const showStart = () => {
    const { base } = state;
    for (const button of find("samples").children) {
      const chosen = base.kind === "sample" && Number(button.dataset.sample) === base.sample;
      button.setAttribute("aria-pressed", String(chosen));
    }
    find("random").setAttribute("aria-pressed", String(base.kind === "random"));
    find("mean").value = base.kind === "random" ? base.mean : 0;
    find("roughness").value = base.kind === "random" ? base.roughness : 0;
    showNumbers();
    find("undo").disabled = find("clear").disabled = !state.strokes.length;
  };
  const showNumbers = () => {
    for (const name of ["mean", "roughness"]) {
      find(`${name}-value`).textContent = Number(find(name).value).toFixed(2).replace("-", "−");
    }
    find("size-value").textContent = `${Math.round(200 * state.size)} %`;
  };

  const showAll = () => {
    const run = State.run();
    find("about").textContent = [run.method, run.predictor, run.problem].filter(Boolean).join(" · ");
    find("size").value = state.size;
    find("random-box").hidden = !State.inputs().modes;
    find("side").classList.toggle("scalars", !State.inputs().channels.length);
    showRuns();
    showSamples();
    showBrush();
    showParameters();
    showParts();
    showStart();
  };

  const say = (words) => { find("message").textContent = words; };
  const onChange = (callback) => { changed = callback; };

  return { onChange, chooseRun, chooseSample, showAll, showBrush, showNumbers, showStart, say };
})();
