"use strict";
// Main: draws everything whenever something has changed, at most once per frame.

const Main = (() => {
  const { data, state } = State;
  const { result } = Compute;
  const { make } = Panels;
  const { picked } = Specs;
  const find = (id) => document.getElementById(id);
  const narrow = window.matchMedia("(max-width: 52rem)");
  const COLOURS = ["--accent", "#D55E00", "#0072B2", "#CC79A7", "#E69F00", "#56B4E9"];

  // The predictions of all runs that read this input.
  const compared = () => State.comparable().map((place) => {
    const parts = place === state.run ? null : Compute.partsOf(place);
    const values = place === state.run ? result.shown : parts && parts.reduce(Numerics.add);
    return { run: data.runs[place], place, values, wrong: Compute.error(values) };
  });

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

  const bandOf = ({ width }) => {
    if (!width || !result.shown) return null;
    const [centre, half] = [picked(result.shown), picked(width)];
    return { low: centre.map((value, i) => value - half[i]), high: centre.map((value, i) => value + half[i]) };
  };

  let legend = "";
  const drawProfile = (trust, found) => {
    const several = found.length > 1;
    const lines = found.filter(({ values }) => values).map(({ run, values }, i) => ({
      name: several ? run.name : "prediction",
      values: picked(values),
      colour: COLOURS[i % COLOURS.length],
    }));
    if (Compute.fresh()) {
      lines.push({ name: "truth", values: picked(result.truth), colour: "--ink", dashed: true });
    }
    find("profile").hidden = !lines.length;
    if (!lines.length) return;
    fillRow();
    const band = several ? null : bandOf(trust);
    Profile.draw(find("profile").querySelector("canvas"), lines, band, State.run().output.shape.slice(1));
    const names = lines.map(({ name, colour, dashed }) => {
      const one = make("span", { textContent: name, className: dashed ? "dashed" : "" });
      one.style.setProperty("--colour", colour.startsWith("--") ? `var(${colour})` : colour);
      return one;
    });
    if (band) names.push(make("em", { textContent: "shaded: band around 95 % of the nodes" }));
    if (names.map((one) => one.outerHTML).join("") !== legend) {
      legend = names.map((one) => one.outerHTML).join("");
      find("legend").replaceChildren(...names);
    }
  };

  const showNeeds = () => {
    const { name, model, reason } = State.run();
    const missing = !model && !Compute.served;
    const message = Compute.messages();
    find("needs").hidden = !missing && !message;
    Panels.write(find("needs"), missing
      ? `This page cannot compute ${name}: ${reason}. It shows the stored predictions of test samples. ` +
        "Run twoscale explore with --serve to predict for painted inputs."
      : message);
  };

  const draw = () => {
    const trust = Compute.trust();
    const painted = State.inputs().channels.length ? [Specs.input()] : [];
    const comparing = state.compare && State.comparable().length > 1;
    const found = comparing ? compared() : [{ run: State.run(), place: state.run, values: result.shown }];
    const specs = comparing ? Specs.ofRuns(found) : Specs.ofRun();
    // On a phone the prediction is beside the input, so that it is seen while painting.
    const beside = narrow.matches && painted.length ? specs.splice(comparing ? 1 : 0, 1) : [];
    Panels.show(find("input-place"), [...painted, ...beside]);
    showNeeds();
    Cards.show(find("cards"), trust);
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
      if (state.base.kind !== "data") window.history.replaceState(null, "", `#${await Links.write()}`);
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
    const words = await Links.follow(window.location.hash.slice(1));
    Pointers.onChange((what) => {
      if (what === "stroke") Controls.showStart();
      schedule(what === "input");
      remember();
    });
    Actions.connect(onControl);
    Compute.onChange(() => schedule(false));
    Compute.rebuild();
    Controls.showAll();
    Controls.say(words);
    const rounded = data.runs.some(({ model }) => model && model.small)
      ? "Weights are rounded to float16, about three digits, to keep the page small. "
      : "";
    find("foot").textContent = `twoscale ${data.version}. ${rounded}This page needs no network.`;
    new ResizeObserver(() => schedule(false)).observe(document.body);
    window.addEventListener("hashchange", async () => {
      const ignored = await Links.follow(window.location.hash.slice(1));
      onControl("run");
      Controls.say(ignored);
    });
    schedule();
    window.setTimeout(schedule, 300); // the first prediction is slow: the browser compiles it
  };

  start();
  return { schedule, pending: () => scheduled };
})();
