"use strict";
// Worker: solves equations beside the page, so that painting never waits.

const SolverWorker = (() => {
  let last = { version: null, truth: null }; // parts are toggled more often than inputs change

  // The answer to {name, shape, input, prediction}: truth, score and certificate of the prediction.
  const answer = ({ version, name, shape, input, prediction, key }) => {
    if (!Solver.solvable(name, input)) return { version, key, truth: null };
    const truth = last.version === version ? last.truth : Solver.solve(name, input, shape);
    last = { version, truth };
    if (!prediction) return { version, key, truth };
    const system = Solver.system(name, input, shape);
    return {
      version,
      key,
      truth,
      residual: Solver.residualScore(system, prediction, shape),
      certificate: Certificate.certify(system, prediction, shape),
    };
  };

  // A worker made of the page's own scripts, without any address.
  const start = (onAnswer) => {
    const names = ["numerics.js", "solver.js", "certificate.js", "worker.js"];
    const text = names.map((name) => document.getElementById(name).textContent).join("\n");
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    worker.addEventListener("message", ({ data }) => onAnswer(data));
    return worker;
  };

  return { answer, start };
})();

if (typeof document === "undefined") {
  self.addEventListener("message", ({ data }) => self.postMessage(SolverWorker.answer(data)));
}
