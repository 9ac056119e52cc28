// Live bytes over time: a chart for each device, with areas that lie one on the other up to its size, and a chart of
// the host's memory.
import { Chart, type Line, type Mark, type StepMark } from './chart';
import { mostIncidentMarks } from './chart_marks';
import { colourOf } from './colours';
import type { Maybe, Page, RawReport } from './data';
import { deviceUse, otherLines, spansOf } from './device_use';
import { h, section } from './dom';
import { DataTable } from './table';
import { bytes, count, duration, fileName, moment } from './words';

/** Endings of colours (#rrggbbaa) that distinguish devices; devices from the fifth on repeat them. */
const shades = ['', 'cc', '99', '77'];

/** Returns a line for each kind of memory on each device. `prefix`: words before each line's name. */
function linesOf(page: Page, report: RawReport, prefix: string, isDashed: boolean): Line[] {
  return report.timeline.filter((series) => series.most.some((value) => (value ?? 0) > 0)).map((series) => ({
    name: prefix + page.memory(series.kind, series.device),
    colour: colourOf(series.kind) + (shades[(series.device ?? 0) % shades.length] ?? ''),
    ...spansOf(report, series),
    draw: 'line',
    dashed: isDashed,
    isShown: series.kind !== 'host_rss',
  }));
}

/**
 * Returns marks of refused requests. `device`: ordinal of the device from which memory was asked for; null: requests
 * for host memory.
 */
function incidentMarks(report: RawReport, device: number | null): Mark[] {
  const { incidents } = report;
  const marks: Mark[] = incidents.id.flatMap((id, at) => {
    const time = incidents.time[at] ?? null;
    const outcome = incidents.outcome[at] ?? '';
    if (time === null || (incidents.device[at] ?? null) !== device) return [];
    return [{ time, text: `${outcome === 'failed' ? 'out of memory' : outcome.replace(/_/g, ' ')} (incident ${id})`, tone: outcome === 'failed' ? 'bad' : 'warning' }];
  });
  return marks.slice(0, mostIncidentMarks);
}

/** Returns marks of the peaks of kinds of memory. A mark belongs to the line with the name of its kind. */
function peakMarks(page: Page, report: RawReport, lines: Line[]): Mark[] {
  const { totals } = report;
  return totals.kind.flatMap((kind, at): Mark[] => {
    const time = totals.peak_time[at] ?? null;
    const line = lines.findIndex((one) => one.name === page.memory(kind, totals.device[at]));
    return time === null || line < 0 || (totals.peak_bytes[at] ?? 0) === 0 ? [] : [{ time, text: 'peak', tone: 'peak', line }];
  });
}

/**
 * Returns words for a step of the program, such as "step 3" or "step 3, test_cache". `name`: name of the step; empty:
 * it has none.
 */
function stepWords(number: Maybe | undefined, name: string): string {
  return `step ${count(number)}${name === '' ? '' : `, ${name.length > 40 ? `${name.slice(0, 38)}…` : name}`}`;
}

function stepMarks(page: Page, report: RawReport): StepMark[] {
  const { steps } = report;
  return steps.time.flatMap((time, at) => (time === null ? [] : [{ time, words: stepWords(steps.number[at], page.text(steps.name[at])), isNamed: (steps.name[at] ?? 0) !== 0 }]));
}

/**
 * Returns the name of the part of the run to which a moment belongs; empty: the part has no name. A name holds over
 * later steps without names. `at`: index of the last step that began before the moment; -1: none. `us`: the moment, in
 * microseconds since the start of the process.
 */
function partName(page: Page, report: RawReport, at: number, us: number): string {
  const { steps } = report;
  let named = at;
  while (named >= 0 && page.text(steps.name[named]) === '') --named;
  const end = steps.name_end[named] ?? null;
  return named < 0 || (end !== null && end <= us) ? '' : page.text(steps.name[named]);
}

/**
 * Returns words for a moment of the run: the time, and the step of the program with its name. `us`: microseconds since
 * the start of the process.
 */
function momentWords(page: Page, report: RawReport, us: number): string {
  const { process, steps } = report;
  let at = -1;
  while (at + 1 < steps.time.length && (steps.time[at + 1] ?? 0) <= us) ++at;
  const words = moment(process, us);
  if (at < 0) return words;
  // The report lists only some of very many steps. If steps that are not listed follow this one, its number is not
  // exact.
  const number = steps.number[at] ?? 0;
  const last = (at + 1 < steps.number.length ? (steps.number[at + 1] ?? 0) - 1 : process.steps) ?? number;
  return `${words}, ${last > number ? 'about ' : ''}${stepWords(number, partName(page, report, at, us))}`;
}

function totalsTable(page: Page, report: RawReport): HTMLElement {
  const { totals } = report;
  const table = new DataTable<number>({
    caption: 'Memory by kind and device',
    empty: 'No allocation was recorded.',
    columns: [
      { title: 'Memory', text: (at) => page.memory(totals.kind[at] ?? '', totals.device[at]) },
      { title: report.process.reason === 'running' ? 'Live' : 'Live at the end', number: true, text: (at) => bytes(totals.bytes[at]), order: (at) => totals.bytes[at] ?? 0 },
      { title: 'In', number: true, text: (at) => count(totals.count[at]), order: (at) => totals.count[at] ?? 0 },
      { title: 'Peak', number: true, text: (at) => bytes(totals.peak_bytes[at]), order: (at) => totals.peak_bytes[at] ?? 0 },
      { title: 'At', number: true, text: (at) => duration(totals.peak_time[at]), order: (at) => totals.peak_time[at] ?? 0 },
      { title: 'Made in all', number: true, text: (at) => count(totals.made[at]), order: (at) => totals.made[at] ?? 0 },
      // Reports of earlier versions do not have this figure.
      ...(totals.made_bytes.some((value) => value !== null) ? [{ title: 'Bytes in all', number: true, text: (at: number) => bytes(totals.made_bytes[at]), order: (at: number) => totals.made_bytes[at] ?? 0 }] : []),
      { title: 'Failed', number: true, text: (at) => count(totals.failures[at]), order: (at) => totals.failures[at] ?? 0 },
    ],
  });
  table.show(totals.kind.map((_, at) => at));
  return table.element;
}

/** Returns a table of the steps of the program, which can be opened; null: the report has no times of steps. */
function stepsTable(page: Page, report: RawReport): HTMLElement | null {
  const { steps, process } = report;
  if (steps.number.length === 0) return null;
  const table = new DataTable<number>({
    caption: 'Steps of the program',
    empty: 'The program marked no steps.',
    most: 20,
    columns: [
      { title: 'Step', number: true, text: (at) => count(steps.number[at]), order: (at) => steps.number[at] ?? 0 },
      { title: 'Name', long: true, text: (at) => page.text(steps.name[at]) },
      { title: 'Began', text: (at) => moment(process, steps.time[at] ?? null), order: (at) => steps.time[at] ?? 0 },
    ],
  });
  table.show(steps.number.map((_, at) => at));
  const listed = (process.steps ?? 0) > steps.number.length ? `${count(steps.number.length)} of ${count(process.steps)} steps` : `${count(steps.number.length)} steps`;
  return h('details', { class: 'fold' }, h('summary', {}, `When ${listed} began`), table.element);
}

/** Returns a sentence about steps in charts; empty: the program marked no steps. */
function stepsHint(report: RawReport): string {
  const { process, steps } = report;
  if (process.steps === null) return '';
  return steps.number.length > 0 ? ' Ticks above a chart are steps of the program.'
    : ` The program marked ${count(process.steps)} steps. The report is older than the table of their times.`;
}

/** A chart with its title. */
interface Titled {
  title: string;
  /** Ordinal of the device; null: the chart is of the host. */
  device: Maybe;
  chart: Chart;
  /** True: the chart is hidden until the user opens it. */
  isClosed: boolean;
}

function chartsOf(page: Page, report: RawReport): Titled[] {
  const { devices } = report;
  const timeWords = (us: number): string => momentWords(page, report, us);
  const end = report.process.end ?? 0;
  const steps = stepMarks(page, report);
  const charts = devices.device.flatMap((device, row): Titled[] => {
    const { lines, columns, total } = deviceUse(page, report, row);
    if (lines.length === 0) return [];
    const title = `GPU ${device}: ${devices.name[row] ?? 'unknown'}, ${bytes(total)}`;
    const marks = [...incidentMarks(report, device), ...peakMarks(page, report, lines)];
    return [{ title, device, isClosed: false, chart: new Chart({ label: `Use of GPU ${device} over time`, end, lines, columns, marks, steps, total, timeWords }) }];
  });
  const others = otherLines(page, report);
  if (others.length === 0) return charts;
  const isManaged = report.timeline.some((series) => series.kind === 'managed');
  const title = isManaged ? 'Host memory, and managed memory' : 'Host memory';
  const marks = [...incidentMarks(report, null), ...peakMarks(page, report, others)];
  const isClosed = charts.length > 0 && !isManaged && report.timeline.every((series) => series.device !== null || series.kind === 'host_rss');
  return [...charts, { title, device: null, isClosed, chart: new Chart({ label: `${title} over time`, end, lines: others, marks, steps, timeWords }) }];
}

/**
 * Returns the section with the charts of a report. `showIncident`: is called with the id of an incident that the user
 * chooses.
 */
export function timelineSection(page: Page, report: RawReport, showIncident: (id: number) => void): HTMLElement {
  const charts = chartsOf(page, report);
  Chart.link(charts.map(({ chart }) => chart));
  const { incidents } = report;
  const jumps = h('ul', { class: 'jumps' }, ...incidents.id.slice(0, 12).map((id, at) => h('li', {}, h('button', {
    type: 'button', class: 'quiet', onclick: () => {
      showIncident(id);
      // The mark of the incident is in the chart of the memory that was asked for.
      const time = incidents.time[at] ?? null;
      const marked = charts.find(({ device }) => device === (incidents.device[at] ?? null));
      if (time !== null) marked?.chart.showAround(time);
    },
  }, `Incident ${id} ${moment(report.process, incidents.time[at] ?? null)}`))));
  const elements = charts.map(({ title, chart, isClosed }) => (isClosed ? h('details', { class: 'fold' }, h('summary', {}, title), chart.element)
    : h('div', { class: 'device' }, h('h3', {}, title), chart.element)));
  const areas = charts.some(({ chart }) => (chart.data.total ?? null) !== null)
    ? 'Areas lie one on the other: most live bytes of each kind in each span of the run. Columns are all parts of the device at the moments at which it was read, up to its size; between them, contexts, other processes and free memory are not known (hatched). '
    : '';
  return section('timeline', 'Memory over time',
    `${areas}Circles are peaks, dashed lines are refused requests.${stepsHint(report)}`,
    ...(elements.length > 0 ? elements : [h('p', { class: 'status' }, 'The report has no timeline: no memory was live while it was recorded.')]),
    incidents.id.length > 0 ? jumps : null, totalsTable(page, report), stepsTable(page, report));
}

/** Returns a section with one chart of the live bytes of two reports. Times count from the start of each process. */
export function comparedTimelines(page: Page, before: RawReport, now: RawReport): HTMLElement {
  const lines = [...linesOf(page, now, 'now: ', false), ...linesOf(page, before, 'before: ', true)];
  return section('together', 'Both runs on one axis',
    `Times count from each start. Dashed: before (${fileName(before.process.path)}). Solid: now (${fileName(now.process.path)}).`,
    lines.length === 0 ? h('p', { class: 'status' }, 'Neither report has a timeline.')
      : new Chart({ label: 'Live bytes of both runs over time', end: 0, lines, timeWords: (us) => `${duration(us)} into each run` }).element);
}
