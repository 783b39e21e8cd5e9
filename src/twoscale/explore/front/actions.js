"use strict";
// Actions: what buttons, sliders, files and keys do.

const Actions = (() => {
  const { data, state } = State;
  const { make } = Panels;
  const { chooseRun, chooseSample, showBrush, showNumbers, say } = Controls;
  const find = (id) => document.getElementById(id);
  let changed = () => {}; // called with "input" (build it anew), "run", or "look"

  const newRandom = (seed) => {
    const [mean, roughness] = ["mean", "roughness"].map((name) => Number(find(name).value));
    state.base = { kind: "random", seed, mean, roughness };
    changed("input");
  };
  const undo = () => { if (state.strokes.pop()) changed("input"); };
  const clear = () => { state.strokes = []; changed("input"); };

  const openFile = async (file) => {
    try {
      const values = Npy.read(await file.arrayBuffer(), State.inputs().shape);
      state.base = { kind: "data", values };
      state.strokes = [];
      say("");
      changed("input");
    } catch (error) {
      say(`${file.name}: ${error.message}`);
    }
  };

  const copyLink = async () => {
    const address = `${window.location.href.split("#")[0]}#${await Links.write()}`;
    window.history.replaceState(null, "", address);
    try {
      await navigator.clipboard.writeText(address);
      say("The link is copied. It brings back this input and view.");
    } catch {
      say("The link is in the address bar. It brings back this input and view.");
    }
  };

  const KEYS = [
    ["?", "this help", () => find("help").showModal()],
    ["1 – 9", "test samples", null],
    ["r", "the next run", () => chooseRun((state.run + 1) % data.runs.length)],
    ["n", "a new random field", () => State.inputs().modes && newRandom(Math.floor(Math.random() * 1e6))],
    ["u", "undo the last stroke", undo],
    ["x", "the next brush", () => {
      if (!State.inputs().channels.length) return;
      const tools = Input.toolsOf(State.inputs().channels[state.channel]);
      state.tool = tools[(tools.indexOf(state.tool) + 1) % tools.length];
      showBrush();
    }],
    ["[", "a smaller brush", () => resize(-0.01)],
    ["]", "a larger brush", () => resize(0.01)],
    ["s", "jumps at seams", () => toggle("seams", State.run().seams)],
    ["c", "compare runs", () => toggle("compare", State.comparable().length > 1)],
    ["+", "zoom in", () => Pointers.zoom(0.8)],
    ["-", "zoom out", () => Pointers.zoom(1.25)],
    ["0", "the whole domain", () => Pointers.zoom(100)],
    ["l", "copy a link to this state", copyLink],
  ];
  const toggle = (name, possible) => {
    state[name] = !state[name] && Boolean(possible);
    find(name).checked = state[name];
    changed("look");
  };
  const resize = (step) => {
    state.size = Math.min(Math.max(Math.round(100 * (state.size + step)) / 100, 0.01), 0.25);
    find("size").value = state.size;
    showNumbers();
    changed("look");
  };

  const showHelp = () => {
    const rows = [
      ...KEYS.map(([key, words]) => [key, words]),
      ["Arrows", "in a panel: move the cursor; in the input: the brush"],
      ["Space", "in the input: paint, also while arrow keys move the brush"],
      ["Shift + arrows", "in a panel: move the profile line"],
      ["Ctrl + wheel", "zoom; two fingers zoom on a touch screen; drag to move a zoomed panel"],
    ];
    find("keys").replaceChildren(...rows.flatMap(([key, words]) => [
      make("dt", {}, make("kbd", { textContent: key })), make("dd", { textContent: words }),
    ]));
  };

  const connect = (callback) => {
    changed = callback;
    Controls.onChange(callback);
    showHelp();
    find("size").addEventListener("input", () => {
      state.size = Number(find("size").value);
      showNumbers();
      changed("look");
    });
    for (const name of ["mean", "roughness"]) {
      find(name).addEventListener("input", () => newRandom(state.base.kind === "random" ? state.base.seed : 1));
    }
    find("random").addEventListener("click", () => newRandom(Math.floor(Math.random() * 1e6)));
    find("undo").addEventListener("click", undo);
    find("clear").addEventListener("click", clear);
    find("flat").addEventListener("click", () => { state.base = { kind: "flat" }; clear(); });
    find("file").addEventListener("change", () => {
      if (find("file").files.length) openFile(find("file").files[0]);
      find("file").value = ""; // the same file may be chosen again
    });
    find("modes").addEventListener("input", () => {
      const [value, most] = [Number(find("modes").value), Number(find("modes").max)];
      state.modes = value >= most ? null : value;
      find("modes-value").textContent = state.modes === null ? "all" : String(value);
      changed("look");
    });
    for (const name of ["seams", "compare"]) {
      find(name).addEventListener("change", () => { state[name] = find(name).checked; changed("look"); });
    }
    find("level").addEventListener("change", () => {
      state.level = Number(find("level").value);
      changed("look");
    });
    find("zoom-in").addEventListener("click", () => Pointers.zoom(0.8));
    find("zoom-out").addEventListener("click", () => Pointers.zoom(1.25));
    find("zoom-all").addEventListener("click", () => Pointers.zoom(100));
    find("link").addEventListener("click", copyLink);
    find("help-button").addEventListener("click", () => find("help").showModal());
    document.addEventListener("keydown", (event) => {
      const typing = ["INPUT", "SELECT"].includes(event.target.tagName) && event.target.type !== "checkbox";
      if (event.ctrlKey || event.metaKey || event.altKey || typing || find("help").open) return;
      const sample = State.run().samples[Number(event.key) - 1];
      const known = KEYS.find(([key]) => key === event.key);
      if (known && known[2]) known[2]();
      else if (sample !== undefined) chooseSample(sample);
      else return;
      event.preventDefault();
    });
    // A file may be dropped anywhere.
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      find("drop").classList.add("over");
    });
    document.addEventListener("dragleave", () => find("drop").classList.remove("over"));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      find("drop").classList.remove("over");
      if (event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
    });
  };

  return { connect };
})();
