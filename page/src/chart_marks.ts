// Drawing on a chart's lines and areas: the device's size, its parts at readings, incidents, peaks and steps.
import type uPlot from 'uplot';
import type { Chart } from './chart';
import { styleColour } from './dom';
import { bytes } from './words';

/** Number of incidents, the first ones, for whose marks a chart has room. The table of incidents has all. */
export const mostIncidentMarks = 60;

const font = (ratio: number): string => `${11 * ratio}px system-ui, sans-serif`;

/**
 * Calls `draw`, and cuts off all that it draws outside the chart's frame. `above`: pixels above the frame in which it
 * may draw, too.
 */
function inFrame(plot: uPlot, above: number, draw: (ctx: CanvasRenderingContext2D, ratio: number) => void): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  // The plot may have left the setting of a dashed line.
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - above * ratio, bbox.width, bbox.height + above * ratio);
  ctx.clip();
  draw(ctx, ratio);
  ctx.restore();
}

/**
 * Hatches the chart up to the size of the device. Areas are drawn over it, so that the hatching shows memory of which
 * no use is known.
 */
export function drawBackground(plot: uPlot, chart: Chart): void {
  const total = chart.data.total ?? 0;
  if (total <= 0) return;
  inFrame(plot, 0, (ctx, ratio) => {
    const { bbox } = plot;
    const top = Math.max(bbox.top, plot.valToPos(total, 'y', true));
    ctx.beginPath();
    ctx.rect(bbox.left, top, bbox.width, bbox.top + bbox.height - top);
    ctx.clip();
    ctx.strokeStyle = styleColour('--hatch');
    ctx.lineWidth = ratio;
    ctx.beginPath();
    for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += 9 * ratio) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.stroke();
  });
}

/**
 * Draws a column for each moment at which the device was read, with all parts of its memory, and a line at the device's
 * size.
 */
export function drawColumns(plot: uPlot, chart: Chart): void {
  const { lines, columns = [], total } = chart.data;
  inFrame(plot, 0, (ctx, ratio) => {
    const { bbox } = plot;
    if ((total ?? 0) > 0) {
      const y = plot.valToPos(total ?? 0, 'y', true);
      ctx.strokeStyle = ctx.fillStyle = styleColour('--ink-soft');
      ctx.lineWidth = 1.5 * ratio;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.font = font(ratio);
      ctx.textAlign = 'left';
      ctx.fillText(`size of the device: ${bytes(total)}`, bbox.left + 6 * ratio, y + 13 * ratio);
    }
    const width = 11 * ratio;
    for (const column of columns) {
      const middle = plot.valToPos(column.time / 1e6, 'x', true);
      if (middle < bbox.left - width || middle > bbox.left + bbox.width + width) continue;
      const x = Math.min(Math.max(middle - width / 2, bbox.left), bbox.left + bbox.width - width);
      let below = 0;
      for (const part of column.parts) {
        const line = lines[part.line];
        if (!line || line.draw === 'rest' || part.bytes <= 0) continue;
        const bottom = plot.valToPos(below, 'y', true);
        below += part.bytes;
        const height = bottom - plot.valToPos(below, 'y', true);
        if (line.draw === 'outline') {
          ctx.strokeStyle = line.colour;
          ctx.lineWidth = 2 * ratio;
          ctx.setLineDash([4 * ratio, 3 * ratio]);
          ctx.strokeRect(x + ratio, bottom - height, width - 2 * ratio, height);
          ctx.setLineDash([]);
        } else {
          ctx.fillStyle = line.colour;
          ctx.fillRect(x, bottom - height, width, height);
        }
      }
      ctx.strokeStyle = styleColour('--ink');
      ctx.lineWidth = ratio;
      const top = plot.valToPos(Math.max(total ?? 0, 0), 'y', true);
      ctx.strokeRect(x, top, width, bbox.top + bbox.height - top);
    }
  });
}

/** Draws a vertical line with a text for each incident, and a circle for each peak. */
export function drawMarks(plot: uPlot, chart: Chart): void {
  inFrame(plot, 2, (ctx, ratio) => {
    const { bbox } = plot;
    // Right ends, in pixels, of the texts that were drawn last in each of four rows of texts.
    const ends = [-Infinity, -Infinity, -Infinity, -Infinity];
    for (const mark of chart.data.marks ?? []) {
      const x = plot.valToPos(mark.time / 1e6, 'x', true);
      if (mark.line !== undefined) {
        const height = chart.heights[mark.line]?.[chart.indexAt(mark.time)] ?? null;
        if (!chart.shown[mark.line] || height === null) continue;
        ctx.beginPath();
        ctx.arc(x, plot.valToPos(height, 'y', true), 4 * ratio, 0, 7);
        ctx.fillStyle = styleColour('--paper');
        ctx.fill();
        ctx.lineWidth = 2 * ratio;
        ctx.strokeStyle = chart.data.lines[mark.line]?.colour ?? styleColour('--ink');
        ctx.stroke();
        continue;
      }
      ctx.strokeStyle = ctx.fillStyle = styleColour(mark.tone === 'bad' ? '--bad' : '--warning');
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash([5 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.font = font(ratio);
      const isLeft = x > bbox.left + bbox.width * 0.8;
      ctx.textAlign = isLeft ? 'right' : 'left';
      const at = x + (isLeft ? -9 : 9) * ratio;
      const wide = ctx.measureText(mark.text).width;
      const begin = isLeft ? at - wide : at;
      const row = ends.findIndex((end) => begin > end + 6 * ratio);
      if (row < 0) continue;
      ends[row] = begin + wide;
      const top = bbox.top + (20 + 17 * row) * ratio;
      // The text gets a background, so that it is readable on areas of any colour.
      const ink = ctx.fillStyle;
      ctx.fillStyle = styleColour('--paper');
      ctx.fillRect(begin - 3 * ratio, top, wide + 6 * ratio, 15 * ratio);
      ctx.fillStyle = ink;
      ctx.fillText(mark.text, at, top + 11 * ratio);
    }
  });
}

/** Draws a diamond for each value that is known only at a single moment. */
export function drawPoints(plot: uPlot, chart: Chart): void {
  inFrame(plot, 2, (ctx, ratio) => {
    chart.data.lines.forEach((line, row) => {
      if (line.draw !== 'point' || !chart.shown[row]) return;
      line.time.forEach((time, at) => {
        const value = line.value[at] ?? null;
        if (value === null) return;
        const x = plot.valToPos(time / 1e6, 'x', true);
        const y = plot.valToPos(value, 'y', true);
        const half = 6 * ratio;
        ctx.beginPath();
        ctx.moveTo(x, y - half);
        ctx.lineTo(x + half, y);
        ctx.lineTo(x, y + half);
        ctx.lineTo(x - half, y);
        ctx.closePath();
        ctx.fillStyle = line.colour;
        ctx.fill();
        ctx.lineWidth = 2 * ratio;
        ctx.strokeStyle = styleColour('--paper');
        ctx.stroke();
      });
    });
  });
}

/** Draws a tick above the chart for each step of the program. A step's words are drawn where there is room for them. */
export function drawSteps(plot: uPlot, chart: Chart): void {
  const { steps = [] } = chart.data;
  if (steps.length === 0) return;
  inFrame(plot, 26, (ctx, ratio) => {
    const { bbox } = plot;
    ctx.font = font(ratio);
    ctx.textAlign = 'left';
    const ink = styleColour('--ink-soft');
    let lastTick = -Infinity;
    let free = -Infinity;
    for (const step of steps) {
      const x = plot.valToPos(step.time / 1e6, 'x', true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      const isClose = x < lastTick + 3 * ratio;
      if (isClose && !step.isNamed) continue;
      lastTick = x;
      ctx.strokeStyle = ctx.fillStyle = ink;
      ctx.lineWidth = ratio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top - 8 * ratio);
      ctx.lineTo(x, bbox.top);
      ctx.stroke();
      const wide = ctx.measureText(step.words).width;
      if (x < free || x + wide > bbox.left + bbox.width) continue;
      free = x + wide + 12 * ratio;
      ctx.fillText(step.words, x, bbox.top - 12 * ratio);
    }
  });
}
