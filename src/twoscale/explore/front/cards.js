"use strict";
// Cards: what is known of the error, in four numbers with a sentence each.

const Cards = (() => {
  const { state } = State;
  const { result } = Compute;
  const { make, percent } = Panels;

  const card = (name, value, words, kind = "") => ({ name, value, words, kind });
  const element = ({ name, value, words, kind }) => make("li", { className: kind },
    make("b", { textContent: name }), make("strong", { textContent: value }), make("span", { textContent: words }));
  const unknown = (name, words) => card(name, "–", words, "quiet");

  const error = () => {
    const found = Compute.relative(Compute.error(result.shown));
    if (found === null) return unknown("Error", Specs.truthNote());
    return card("Error", percent(found), `relative L2; ${percent(State.run().error)} on average over test samples`);
  };

  const radius = ({ radius: found, level, why }, outside) => {
    if (found === null) return unknown("Radius", why);
    const { model } = State.run();
    const rounded = model && model.small ? "; calibrated before the weights were rounded" : "";
    const words = outside
      ? "does not hold: the input is unlike the training inputs"
      : `holds for ${100 * (level || state.level)} % of inputs of the training's kind${rounded}`;
    return card("Radius", `≤ ${percent(found)}`, words, outside ? "quiet" : "");
  };

  const input = ({ unusual, distances, why }, outside) => {
    if (unusual === null) return unknown("Input", why);
    return outside
      ? card("Input", "outside", Trust.reason(distances), "warning")
      : card("Input", "known", "like the training inputs");
  };

  const certificate = ({ certificate: found }) => {
    if (found) {
      const [low, high] = [found.relative_error_lower, found.relative_error_upper].map(percent);
      const words = "proven bounds of the relative error in the energy norm";
      return card("Certificate", low === high ? high : `${low} to ${high}`, words);
    }
    if (Compute.solvable()) return unknown("Certificate", "…");
    return unknown("Certificate", State.run().solver
      ? "the page certifies up to 128 x 128; --serve has no limit"
      : "for known elliptic equations only, such as Poisson and Darcy");
  };

  let shown = "";
  const show = (place, trust) => {
    const outside = trust.unusual !== null && trust.unusual > 1;
    const found = [error(), radius(trust, outside), input(trust, outside), certificate(trust)];
    if (JSON.stringify(found) === shown) return;
    shown = JSON.stringify(found);
    place.replaceChildren(...found.map(element));
  };

  return { show };
})();
