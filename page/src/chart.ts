// A chart over time, drawn by the library uPlot: lines, or areas that lie one on the other below the size of a device.
// It has marks, a zoom by mouse and by keys, and a legend with the values.
import uPlot from 'uplot';
import { drawBackground, drawColumns, drawMarks, drawPoints, drawSteps } from './chart_marks';
import { fill, h, styleColour, swatch } from './dom';
import { onThemeChange } from './theme';
import { bytes, duration } from './words';

/** A line, an area or another entry of a chart, and of its legend. */
export interface Line {
  name: string;
  colour: string;
  /**
   * Begins of the spans, rising, in microseconds since the start of the process. For `draw` "point": times of the
   * points. Empty for a line that only names parts of columns.
   */
  time: number[];
  /** Highest bytes in each span of `time`, or bytes at each point; null: unknown. */
  value: (number | null)[];
  /** End of the last span, in microseconds since the start of the process; 0 for lines without spans. */
  end: number;
  /**
   * Form in which the entry is drawn. line, area: over its spans; an area lies on the areas before it. point: at single
   * times. Other entries name parts of columns in the legend. column: these parts are filled. outline: their edge is
   * drawn. rest: they are not drawn.
   */
  draw: 'line' | 'area' | 'point' | 'column' | 'outline' | 'rest';
  dashed?: boolean;
  /** False: the line is drawn only when its button is pressed. */
  isShown?: boolean;
}

/** A mark in a chart at the moment of a refused request or of a peak of live bytes. */
export interface Mark {
  time: number;
  text: string;
  tone: 'bad' | 'warning' | 'peak';
  /** Index of the line on which the mark is a circle; left out: the mark is a vertical line across the chart. */
  line?: number;
}

/**
 * All parts of a device's memory at a moment at which the device was read. `time`: the moment, in microseconds since
 * the start of the process. `line`: index of the Line that names the part.
 */
export interface Column {
  time: number;
  parts: { line: number; bytes: number }[];
}

/**
 * A tick in a chart for a step of the program. `time`: start of the step, in microseconds since the start of the
 * process. `isNamed`: true if the program gave the step a name.
 */
export interface StepMark {
  time: number;
  words: string;
  isNamed: boolean;
}

/** All that a chart shows. */
export interface ChartData {
  /** Name of the chart for screen readers. */
  label: string;
  /** End of the run, in microseconds since the start of the process. Lines may end later. */
  end: number;
  lines: Line[];
  marks?: Mark[];
  columns?: Column[];
  steps?: StepMark[];
  /** Size of the device in bytes; null or left out: the chart is not one of a device. */
  total?: number | null;
  /** Returns words for a moment. `us`: microseconds since the start of the process. */
  timeWords: (us: number) => string;
}

/** Distances in bytes that lines of the grid may have: powers of two. */
const powers = Array.from({ length: 52 }, (_, power) => 2 ** power);

/**
 * Returns the bytes of a line at each of the times; null where the line has no value. `times`: microseconds since the
 * start of the process, rising.
 */
function valuesAt(line: Line, times: number[]): (number | null)[] {
  if (line.draw !== 'line' && line.draw !== 'area') {
    const known = new Map(line.time.map((time, at) => [time, line.value[at] ?? null]));
    return times.map((time) => known.get(time) ?? null);
  }
  let at = -1;
  return times.map((time) => {
    while (at + 1 < line.time.length && (line.time[at + 1] ?? 0) <= time) ++at;
    return at < 0 || time > line.end ? null : (line.value[at] ?? null);
  });
}

/** A chart, with its buttons and its legend. */
export class Chart {
  readonly element: HTMLElement;
  /** All times at which a line or a column has a value, rising, in microseconds since the start of the process. */
  readonly times: number[];
  /**
   * Bytes of each line at each time, as bytes[index in ChartData.lines][index in `times`]; null: the line has no value
   * then. Parts of columns are not among them.
   */
  private readonly bytes: (number | null)[][];
  /**
   * Bytes that the legend shows for each line at each time, as values[index in ChartData.lines][index in `times`]:
   * those of the line's part in a column if there is a column, otherwise those of the line; null: unknown.
   */
  private readonly values: (number | null)[][];
  /**
   * Height in bytes at which each line is drawn at each time, as heights[index in ChartData.lines][index in `times`];
   * null: the line is not drawn then. The height of an area includes the areas below it. Empty before the chart is
   * first drawn.
   */
  heights: (number | null)[][] = [];
  /** True for each line that is drawn, as its button in the legend says; by index in ChartData.lines. */
  readonly shown: boolean[];
  private readonly holder = h('div', { class: 'plot' });
  private readonly legend = h('ul', { class: 'legend' });
  private readonly clock = h('p', { class: 'status clock' });
  /** Elements of the legend that show the bytes of each line. */
  private readonly figures: HTMLElement[] = [];
  /** End of the chart, in seconds since the start of the process. */
  private readonly end: number;
  private plot: uPlot | null = null;
  /** Begin and end of the part of the run that is shown, in seconds since the start of the process. */
  private window: [number, number];
  /** Other charts, which always show the same part of the run. */
  private linked: Chart[] = [];
  /** True if the vertical axis reaches up to the size of the device; false if only up to the bytes that are drawn. */
  private isWhole: boolean;

  constructor(readonly data: ChartData) {
    const { lines, columns = [] } = data;
    const ends = [data.end, ...lines.map((line) => line.end)];
    this.times = [...new Set([0, ...ends, ...lines.flatMap((line) => line.time), ...columns.map((column) => column.time)])].sort((one, other) => one - other);
    this.bytes = lines.map((line) => valuesAt(line, this.times));
    this.values = this.bytes.map((row) => [...row]);
    for (const column of columns) {
      const at = this.times.indexOf(column.time);
      for (const part of column.parts) {
        const row = this.values[part.line];
        if (row) row[at] = part.bytes;
      }
    }
    this.shown = lines.map((line) => line.isShown !== false);
    this.end = Math.max(1, ...ends) / 1e6;
    this.window = [0, this.end];
    this.isWhole = this.fillsDevice();
    const focus = h('div', {
      class: 'chart', tabindex: '0', role: 'group',
      'aria-label': `${data.label}. Plus and minus zoom, arrow keys move, Escape shows the whole run. The tables below have the figures.`,
    }, this.holder);
    focus.addEventListener('keydown', (event) => { this.key(event); });
    this.element = h('div', {}, this.controls(), focus, this.clock, this.legend);
    this.fillLegend();
    onThemeChange(() => { this.draw(); });
    new ResizeObserver(() => { this.resize(); }).observe(this.holder);
  }

  /**
   * Returns the index in `times` of the last time that is not later than `us`; -1 if all are later. `us`: microseconds
   * since the start of the process.
   */
  indexAt(us: number): number {
    let at = -1;
    while (at + 1 < this.times.length && (this.times[at + 1] ?? 0) <= us) ++at;
    return at;
  }

  /** Links the charts: if one is zoomed or moved, all others show the same part of the run. */
  static link(charts: Chart[]): void {
    for (const chart of charts) chart.linked = charts.filter((other) => other !== chart);
  }

  /**
   * Shows a tenth of the run around the time `us`, and scrolls the page to the chart. If the chart lies in a closed
   * fold, opens the fold. `us`: microseconds since the start of the process.
   */
  showAround(us: number): void {
    const fold = this.element.closest('details');
    if (fold) fold.open = true;
    // A chart that was closed gets its height before the page is scrolled to it.
    this.resize();
    const width = this.end / 10;
    this.zoom(us / 1e6 - width / 2, us / 1e6 + width / 2);
    this.holder.scrollIntoView({ block: 'center' });
  }

  /**
   * Returns the bytes of those parts of the column that are drawn. `withRequest`: true: the refused request counts,
   * too.
   */
  private heightOf(column: Column, withRequest: boolean): number {
    return column.parts.reduce((sum, { line, bytes: size }) => {
      const draw = this.data.lines[line]?.draw;
      return draw === 'rest' || (draw === 'outline' && !withRequest) ? sum : sum + Math.max(0, size);
    }, 0);
  }

  /**
   * Returns the bytes at the highest point of the chart: the largest sum of all areas at one moment, or the highest
   * column if that is higher. `withRequests`: true: the refused requests in columns count, too.
   */
  private most(withRequests: boolean): number {
    const { lines, columns = [] } = this.data;
    const areas = this.times.map((_, at) => lines.reduce((sum, line, row) => sum + (line.draw === 'area' ? (this.bytes[row]?.[at] ?? 0) : 0), 0));
    return [...areas, ...columns.map((column) => this.heightOf(column, withRequests))].reduce((most, value) => Math.max(most, value), 0);
  }

  /**
   * True if more than an eighth of the device is used, so that this can be seen in a chart as high as the size of the
   * device.
   */
  private fillsDevice(): boolean {
    const total = this.data.total ?? 0;
    return total > 0 && this.most(true) > total / 8;
  }

  private controls(): HTMLElement {
    const button = (text: string, act: () => void): HTMLElement => h('button', { type: 'button', class: 'quiet', onclick: act }, text);
    const whole = (this.data.total ?? 0) > 0 ? h('button', {
      type: 'button', class: 'quiet', 'aria-pressed': String(this.isWhole), onclick: () => {
        this.isWhole = !this.isWhole;
        whole?.setAttribute('aria-pressed', String(this.isWhole));
        this.draw();
      },
    }, 'Up to the size of the device') : null;
    return h('div', { class: 'controls' }, h('div', { class: 'buttons' },
      button('Zoom in', () => { this.scale(0.5); }), button('Zoom out', () => { this.scale(2); }),
      button('Whole run', () => { this.zoom(0, this.end); }), whole), h('span', { class: 'hint' }, 'or drag over a part of it'));
  }

  private fillLegend(): void {
    this.data.lines.forEach((line, at) => {
      const value = h('span', { class: 'value' });
      this.figures.push(value);
      if (line.draw === 'column' || line.draw === 'outline' || line.draw === 'rest') {
        const square = swatch(line.draw === 'column' ? line.colour : 'transparent');
        if (line.draw === 'outline') square.style.border = `2px dashed ${line.colour}`;
        this.legend.append(h('li', { class: 'read' }, square, h('span', {}, line.name), value));
        return;
      }
      const button = h('button', {
        type: 'button', 'aria-pressed': String(this.shown[at]), onclick: () => {
          this.shown[at] = !this.shown[at];
          button.setAttribute('aria-pressed', String(this.shown[at]));
          this.draw();
        },
      }, swatch(line.colour), h('span', {}, line.name), value);
      if (line.dashed) button.classList.add('dashed');
      if (line.draw === 'point') button.classList.add('point');
      this.legend.append(h('li', {}, button));
    });
    this.showValues(null);
  }

  private showValues(index: number | null): void {
    this.data.lines.forEach((line, at) => {
      const row = this.values[at] ?? [];
      const value = index === null ? null : (row[index] ?? null);
      const most = row.reduce<number>((highest, one) => Math.max(highest, one ?? 0), 0);
      fill(this.figures[at] ?? h('span'), index === null ? `most ${bytes(most)}` : value !== null ? bytes(value) : line.draw === 'line' || line.draw === 'area' ? '–' : 'not read then');
    });
    const time = index === null ? undefined : this.times[index];
    fill(this.clock, time === undefined ? 'Point at a moment to read its values.' : this.data.timeWords(time));
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
    const end = Math.min(this.end, Math.max(to, begin + least));
    for (const chart of [this, ...this.linked]) chart.setWindow(begin, end);
  }

  private setWindow(begin: number, end: number): void {
    this.window = [begin, end];
    this.plot?.setScale('x', { min: begin, max: end });
  }

  private resize(): void {
    const width = this.holder.clientWidth;
    if (width === 0) return;
    // The height is reserved here, since uPlot sets that of the plot only later.
    this.holder.style.minHeight = `${this.height(width)}px`;
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
    this.stack();
    // Upper areas are drawn first. Lower ones are drawn over them, down from their own heights.
    const areas = this.data.lines.flatMap((line, at) => (line.draw === 'area' && this.shown[at] ? [at] : [])).reverse();
    const drawn = [...areas, ...this.data.lines.flatMap((line, at) => (line.draw === 'line' && this.shown[at] ? [at] : []))];
    const columns = drawn.map((at) => this.heights[at] ?? []);
    this.plot = new uPlot(this.plotOptions(width, drawn), [this.times.map((time) => time / 1e6), ...columns], this.holder);
    this.setWindow(...this.window);
  }

  /** Sets the heights of the lines that are shown: each area lies on those before it. */
  private stack(): void {
    const sums = this.times.map(() => 0);
    this.heights = this.data.lines.map((line, row) => {
      const values = this.bytes[row] ?? [];
      if (line.draw !== 'area') return values;
      if (!this.shown[row]) return values.map(() => null);
      return values.map((value, at) => (sums[at] = (sums[at] ?? 0) + (value ?? 0)));
    });
  }

  /**
   * Returns the bytes at the upper end of the vertical axis. `most`: highest bytes of the lines in the part of the run
   * that is shown.
   */
  private top(most: number): number {
    const total = this.data.total ?? 0;
    if (!this.isWhole) {
      // Columns are drawn up to their tops, unless the process's own memory would then be less than an eighth of the
      // height.
      const read = this.most(false);
      return Math.max(1, total > 0 && read <= 8 * most ? read : most) * 1.06;
    }
    // A request that is much larger than the device is cut off, so that all else stays high enough.
    return Math.max(most, this.most(false), total, Math.min(1.4 * total, this.most(true))) * 1.05;
  }

  private plotOptions(width: number, drawn: number[]): uPlot.Options {
    const ink = styleColour('--ink-soft');
    const grid = { stroke: styleColour('--grid'), width: 1 };
    const font = '12px system-ui, sans-serif';
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    const hasSteps = (this.data.steps ?? []).length > 0;
    return {
      width, height: this.height(width), legend: { show: false }, padding: [hasSteps ? 26 : 12, 12, 0, 0],
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      scales: { x: { time: false, range: (_, min, max) => [min, max] }, y: { range: (_, __, most) => [0, this.top(most)] } },
      axes: [
        { stroke: ink, grid, ticks: grid, font, values: (_, splits) => splits.map((split) => (split === 0 ? '0 s' : duration(split * 1e6).replace('.0 ', ' '))), space: 90 },
        { stroke: ink, grid, ticks: grid, font, size: 76, incrs: powers, values: (_, splits) => splits.map((split) => bytes(split).replace('.0 ', ' ')) },
      ],
      series: [{}, ...drawn.map((at): uPlot.Series => {
        const line = this.data.lines[at];
        const colour = line?.colour ?? ink;
        const isArea = line?.draw === 'area';
        return {
          label: line?.name ?? '', stroke: colour, width: isArea ? 1 : 2, points: { show: false },
          ...(isArea ? { fill: colour } : line?.dashed ? { dash: [6, 4] } : { fill: `${colour}22` }), ...(stepped ? { paths: stepped } : {}),
        };
      })],
      hooks: {
        setCursor: [(plot) => { this.showValues(plot.cursor.idx ?? null); }],
        setSelect: [(plot) => {
          if (plot.select.width > 2) this.zoom(plot.posToVal(plot.select.left, 'x'), plot.posToVal(plot.select.left + plot.select.width, 'x'));
        }],
        drawClear: [(plot) => { drawBackground(plot, this); }],
        draw: [(plot) => {
          drawColumns(plot, this);
          drawMarks(plot, this);
          drawPoints(plot, this);
          drawSteps(plot, this);
        }],
      },
    };
  }
}
