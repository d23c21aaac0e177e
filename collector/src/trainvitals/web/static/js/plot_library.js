// The library that draws, which is a plain script: it comes while the values are asked for, as `window.uPlot`.

import { make } from "./dom.js";

const AGAIN_SECONDS = 3;

let hasFailed = false;
let tellOfMiss;
export const missed = new Promise((done) => (tellOfMiss = done));
export const loaded = new Promise(ask);
export const isMissing = () => hasFailed && !window.uPlot;

function ask(done) {
  const again = () => {
    hasFailed = true;
    tellOfMiss();
    setTimeout(ask, 1000 * AGAIN_SECONDS, done);
  };
  document.head.append(make("script", { src: "/static/vendor/uplot/uPlot.iife.min.js", load: done, error: again }));
}
