// One stream for all tabs of a browser, which gives one host six connections: a worker that all of them talk to. It ends
// with the last of them.

import { Stream } from "./stream.js";

const tabs = new Set();
let last = null;

const stream = new Stream((told) => {
  last = told;
  for (const tab of tabs) tab.postMessage(told);
});

addEventListener("connect", ({ ports: [tab] }) => {
  tabs.add(tab);
  tab.onmessage = ({ data }) => (data === "leave" ? tabs.delete(tab) : renew(tab));
  if (last?.data) tab.postMessage(last);
  else stream.renew();
});

// A tab that left may come back, as by the browser's way back.
function renew(tab) {
  tabs.add(tab);
  stream.renew();
}
