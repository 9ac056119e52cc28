// A chart of lines over time, drawn by uPlot: marks, zoom by mouse and by keys, and a legend with the values.
import uPlot from 'uplot';
import { fill, h, styleColour, swatch } from './dom';
import { onThemeChange } from './theme';
import { bytes, duration } from './words';

export interface Line {
  name: string;
  colour: string;
  /** Begins of the spans in microseconds, rising; most bytes in each. */
  time: number[];
  value: (number | null)[];
  /** End of the last span in microseconds. */
  end: number;
  dashed?: boolean;
  /** False: the line is drawn only when its button is pressed. */
  isShown?: boolean;
}

export interface Mark {
  time: number;
  text: string;
  tone: 'bad' | 'warning' | 'peak';
  /** Height in bytes, if the mark is a point on a line. */
  value?: number;
  colour?: string;
}

const powers = Array.from({ length: 52 }, (_, power) => 2 ** power);

/** Joins the spans of all lines: a value for each line at each begin of a span. */
function joined(lines: Line[]): uPlot.AlignedData {
  const times = [...new Set(lines.flatMap((line) => [...line.time, line.end]))].sort((one, other) => one - other);
  const columns = lines.map((line) => {
    let at = -1;
    return times.map((time) => {
      while (at + 1 < line.time.length && (line.time[at + 1] ?? 0) <= time) ++at;
      return at < 0 || time > line.end ? null : (line.value[at] ?? null);
    });
  });
  return [times.map((time) => time / 1e6), ...columns];
}

export class Chart {
  readonly element: HTMLElement;
  private readonly holder = h('div', { class: 'plot' });
  private readonly legend = h('ul', { class: 'legend' });
  private readonly clock = h('p', { class: 'status clock' });
  private readonly data: uPlot.AlignedData;
  private readonly shown: boolean[];
  private readonly values: HTMLElement[] = [];
  private readonly end: number;
  private plot: uPlot | null = null;
  private window: [number, number];

  /** `timeWords`: words for a time in microseconds, beside the length. */
  constructor(
    label: string, private readonly lines: Line[], private readonly marks: Mark[], private readonly timeWords: (us: number) => string,
  ) {
    this.data = joined(lines);
    this.shown = lines.map((line) => line.isShown !== false);
    this.end = Math.max(1e-6, ...lines.map((line) => line.end / 1e6));
    this.window = [0, this.end];
    const focus = h('div', {
      class: 'chart', tabindex: '0', role: 'group',
      'aria-label': `${label}. Plus and minus zoom, arrow keys move, Escape shows the whole run. The table below has the figures.`,
    }, this.holder);
    focus.addEventListener('keydown', (event) => { this.key(event); });
    this.element = h('div', {}, this.controls(), focus, this.clock, this.legend);
    this.fillLegend();
    onThemeChange(() => { this.draw(); });
    new ResizeObserver(() => { this.resize(); }).observe(this.holder);
  }

  /** Shows a part of the run around the time, in microseconds. */
  showAround(us: number): void {
    const width = this.end / 10;
    this.zoom(us / 1e6 - width / 2, us / 1e6 + width / 2);
    this.holder.scrollIntoView({ block: 'center' });
  }

  private controls(): HTMLElement {
    const button = (text: string, act: () => void): HTMLElement => h('button', { type: 'button', class: 'quiet', onclick: act }, text);
    return h('div', { class: 'controls' },
      button('Zoom in', () => { this.scale(0.5); }), button('Zoom out', () => { this.scale(2); }),
      button('Whole run', () => { this.zoom(0, this.end); }), h('span', { class: 'hint' }, 'or drag over a part of it'));
  }

  private fillLegend(): void {
    this.lines.forEach((line, at) => {
      const value = h('span', { class: 'value' });
      this.values.push(value);
      const button = h('button', {
        type: 'button', 'aria-pressed': String(this.shown[at]), onclick: () => {
          this.shown[at] = !this.shown[at];
          button.setAttribute('aria-pressed', String(this.shown[at]));
          this.draw();
        },
      }, swatch(line.colour), h('span', {}, line.name), value);
      if (line.dashed) button.classList.add('dashed');
      this.legend.append(h('li', {}, button));
    });
    this.showValues(null);
  }

  private showValues(index: number | null): void {
    this.lines.forEach((line, at) => {
      const value = index === null ? null : (this.data[at + 1]?.[index] ?? null);
      const peak = line.value.reduce<number>((most, one) => Math.max(most, one ?? 0), 0);
      fill(this.values[at] ?? h('span'), index === null ? `most ${bytes(peak)}` : value === null ? '–' : bytes(value));
    });
    const time = index === null ? null : this.data[0][index];
    fill(this.clock, time === null || time === undefined ? 'Point at a moment to read its values.' : this.timeWords(time * 1e6));
  }

  private key(event: KeyboardEvent): void {
    const step = (this.window[1] - this.window[0]) / 5;
    const acts: Record<string, () => void> = {
      '+': () => { this.scale(0.5); }, '=': () => { this.scale(0.5); }, '-': () => { this.scale(2); },
      ArrowLeft: () => { this.move(-step); }, ArrowRight: () => { this.move(step); }, Escape: () => { this.zoom(0, this.end); },
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  private scale(factor: number): void {
    const middle = (this.window[0] + this.window[1]) / 2;
    const half = ((this.window[1] - this.window[0]) / 2) * factor;
    this.zoom(middle - half, middle + half);
  }

  private move(seconds: number): void {
    const by = Math.min(Math.max(seconds, -this.window[0]), this.end - this.window[1]);
    this.zoom(this.window[0] + by, this.window[1] + by);
  }

  private zoom(from: number, to: number): void {
    const least = this.end / 5000;
    const begin = Math.min(Math.max(0, from), this.end - least);
    this.window = [begin, Math.min(this.end, Math.max(to, begin + least))];
    this.plot?.setScale('x', { min: this.window[0], max: this.window[1] });
  }

  private resize(): void {
    const width = this.holder.clientWidth;
    if (width === 0) return;
    if (!this.plot) this.draw();
    else if (Math.abs(this.plot.width - width) > 1) this.plot.setSize({ width, height: this.height(width) });
  }

  private height(width: number): number {
    return width < 500 ? 220 : 320;
  }

  private draw(): void {
    const width = this.holder.clientWidth;
    if (width === 0) return;
    this.plot?.destroy();
    this.plot = new uPlot(this.plotOptions(width), this.data, this.holder);
    this.zoom(...this.window);
  }

  private plotOptions(width: number): uPlot.Options {
    const ink = styleColour('--ink-soft');
    const grid = { stroke: styleColour('--grid'), width: 1 };
    const font = '12px system-ui, sans-serif';
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    return {
      width, height: this.height(width), legend: { show: false },
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      scales: { x: { time: false, range: (_, min, max) => [min, max] }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.06)] } },
      axes: [
        { stroke: ink, grid, ticks: grid, font, values: (_, splits) => splits.map((split) => (split === 0 ? '0 s' : duration(split * 1e6).replace('.0 ', ' '))), space: 90 },
        { stroke: ink, grid, ticks: grid, font, size: 76, incrs: powers, values: (_, splits) => splits.map((split) => bytes(split).replace('.0 ', ' ')) },
      ],
      series: [{}, ...this.lines.map((line, at): uPlot.Series => ({
        label: line.name, show: this.shown[at] ?? true, stroke: line.colour, width: line.dashed ? 1.5 : 2, points: { show: false },
        ...(line.dashed ? { dash: [6, 4] } : { fill: `${line.colour}22` }), ...(stepped ? { paths: stepped } : {}),
      }))],
      hooks: {
        setCursor: [(plot) => { this.showValues(plot.cursor.idx ?? null); }],
        setSelect: [(plot) => {
          if (plot.select.width > 2) this.window = [plot.posToVal(plot.select.left, 'x'), plot.posToVal(plot.select.left + plot.select.width, 'x')];
        }],
        draw: [(plot) => { this.drawMarks(plot); }],
      },
    };
  }

  private drawMarks(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - 2 * ratio, bbox.width, bbox.height + 2 * ratio);
    ctx.clip();
    for (const mark of this.marks) {
      const x = plot.valToPos(mark.time / 1e6, 'x', true);
      if (mark.value !== undefined) {
        const y = plot.valToPos(mark.value, 'y', true);
        ctx.beginPath();
        ctx.arc(x, y, 4 * ratio, 0, 7);
        ctx.fillStyle = styleColour('--paper');
        ctx.fill();
        ctx.lineWidth = 2 * ratio;
        ctx.strokeStyle = mark.colour ?? styleColour('--ink');
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
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      const isLeft = x > bbox.left + bbox.width * 0.8;
      ctx.textAlign = isLeft ? 'right' : 'left';
      ctx.fillText(mark.text, x + (isLeft ? -5 : 5) * ratio, bbox.top + 12 * ratio);
    }
    ctx.restore();
  }
}
