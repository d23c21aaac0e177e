// A plot moved by hand: dragging marks what to zoom into; with shift, the middle button or a finger it pans; the wheel
// zooms with ctrl and pans with shift; a double click shows all.

const STEP = 1.25;
const SETTLE_MILLISECONDS = 250;

export function gestures(group) {
  return { hooks: { ready: (plot) => listen(plot, group) } };
}

function listen(plot, group) {
  const over = plot.over;
  over.addEventListener("pointerdown", (event) => begin(event, plot, group));
  // The plot's own listener takes a press as the begin of a zoom.
  over.addEventListener("mousedown", (event) => isPan(event) && event.stopImmediatePropagation(), true);
  over.addEventListener("wheel", (event) => turn(event, plot, group), { passive: false });
}

const isPan = (event) => event.pointerType === "touch" || event.shiftKey || event.button === 1;

function begin(event, plot, group) {
  const shown = group.shown();
  if (!isPan(event) || !shown) return;
  if (event.button === 1) event.preventDefault();
  const [from, to] = shown;
  const perPixel = (to - from) / plot.over.clientWidth;
  const start = event.clientX;
  let moved = 0;
  const follow = (next) => {
    moved = (start - next.clientX) * perPixel;
    group.move(from + moved, to + moved);
  };
  const end = () => {
    plot.over.removeEventListener("pointermove", follow);
    if (group.isMoving) group.zoomTo(from + moved, to + moved);
  };
  plot.over.setPointerCapture(event.pointerId);
  plot.over.addEventListener("pointermove", follow);
  plot.over.addEventListener("lostpointercapture", end, { once: true });
}

function turn(event, plot, group) {
  const shown = group.shown();
  const along = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
  const isZoom = event.ctrlKey || event.metaKey;
  if (!shown || !(isZoom || along)) return;
  event.preventDefault();
  const [from, to] = shown;
  const at = plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x");
  const factor = event.deltaY < 0 ? 1 / STEP : STEP;
  const by = (to - from) * Math.sign(along) * 0.08;
  const next = isZoom ? [at - (at - from) * factor, at + (to - at) * factor] : [from + by, to + by];
  group.move(...next);
  clearTimeout(group.settling);
  group.settling = setTimeout(() => group.zoomTo(...next), SETTLE_MILLISECONDS);
}
