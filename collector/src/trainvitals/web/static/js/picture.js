// A chart as a PNG: its title, what it is of, the plot as it is seen, and its legend.

import { make } from "./dom.js";
import { colourOf, colours, dashOf } from "./palette.js";

const MARGIN = 16;
const LINE = 20;

// What is not seen is drawn for it first, and is there when the plot has had its turn.
export async function savePicture(chart) {
  if (chart.isStale) chart.draw();
  await new Promise((done) => setTimeout(done));
  if (chart.plot) picture(chart).toBlob((blob) => save(blob, `${fileName(chart)}.png`), "image/png");
}

export function save(blob, name) {
  const href = URL.createObjectURL(blob);
  const link = make("a", { href, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

const fileName = ({ spec }) =>
  `trainvitals-${spec.isCustom ? spec.title : spec.id}-${new Date().toISOString().slice(0, 19)}`.replaceAll(
    /[^\p{L}\p{N}_.-]+/gu,
    "-",
  );

export function picture(chart) {
  const plot = chart.plot.ctx.canvas;
  const scale = devicePixelRatio;
  const tones = colours();
  const lines = chart.lines.slice(0, 16);
  const canvas = make("canvas", {
    width: plot.width + 2 * MARGIN * scale,
    height: plot.height + (2 * MARGIN + 2.5 * LINE + LINE * lines.length) * scale,
  });
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = tones.card;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(plot, MARGIN * scale, (MARGIN + 2.2 * LINE) * scale);
  ctx.scale(scale, scale);
  write(ctx, chart.spec.title, MARGIN, MARGIN + 14, tones.ink, "600 16px system-ui, sans-serif");
  write(ctx, subtitle(chart), MARGIN, MARGIN + 34, tones.soft, "12px system-ui, sans-serif");
  lines.forEach((line, place) =>
    legend(ctx, chart, line, MARGIN + 2.4 * LINE + plot.height / scale + LINE * (place + 0.7), tones),
  );
  return canvas;
}

function subtitle(chart) {
  const shown = chart.group.shown();
  const span = shown ? `${chart.group.axis.words(shown[0])} to ${chart.group.axis.words(shown[1])}` : "";
  return [chart.group.subject?.() ?? "", span, `TrainVitals, ${new Date().toLocaleString("en-GB")}`]
    .filter(Boolean)
    .join(" · ");
}

function legend(ctx, chart, line, y, tones) {
  ctx.strokeStyle = colourOf(line.place);
  ctx.lineWidth = 2;
  ctx.setLineDash(dashOf(line.dash ?? line.place));
  ctx.beginPath();
  ctx.moveTo(MARGIN, y - 4);
  ctx.lineTo(MARGIN + 28, y - 4);
  ctx.stroke();
  write(
    ctx,
    `${line.label}  ${chart.words(chart.valueAt(line, null))}`,
    MARGIN + 36,
    y,
    tones.ink,
    "12px system-ui, sans-serif",
  );
}

function write(ctx, text, x, y, colour, font) {
  ctx.fillStyle = colour;
  ctx.font = font;
  ctx.fillText(text, x, y);
}
