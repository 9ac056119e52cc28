// Live bytes over time, by kind of memory and device.
import { Chart, type Line, type Mark } from './chart';
import type { Page, RawReport } from './data';
import { h, section } from './dom';
import { DataTable } from './table';
import { colourOf } from './theme';
import { bytes, count, duration, fileName, moment } from './words';

const shades = ['', 'cc', '99', '77'];

/** Returns a line for each kind of memory on each device. `prefix`: words before each name. */
export function linesOf(page: Page, report: RawReport, prefix: string, isDashed: boolean): Line[] {
  const { totals, process } = report;
  return report.timeline.filter((series) => series.most.some((value) => (value ?? 0) > 0)).map((series) => {
    const last = (series.time.at(-1) ?? 0) + (series.width.at(-1) ?? 0);
    const end = Math.max(process.end ?? 0, last);
    // From the last change on, as much is live as at the end.
    const at = totals.kind.findIndex((kind, row) => kind === series.kind && totals.device[row] === series.device);
    const left = at < 0 ? series.most.at(-1) ?? null : totals.bytes[at] ?? null;
    const goesOn = end > last;
    return {
      name: prefix + page.memory(series.kind, series.device),
      colour: colourOf(series.kind) + (shades[(series.device ?? 0) % shades.length] ?? ''),
      time: goesOn ? [...series.time, last] : series.time,
      value: goesOn ? [...series.most, left] : series.most,
      end,
      dashed: isDashed,
      isShown: series.kind !== 'host_rss',
    };
  });
}

function marksOf(report: RawReport): Mark[] {
  const marks: Mark[] = [];
  const { incidents, totals } = report;
  incidents.id.forEach((id, at) => {
    const time = incidents.time[at] ?? null;
    const outcome = incidents.outcome[at];
    if (time !== null)
      marks.push({ time, text: `${outcome === 'failed' ? 'out of memory' : (outcome ?? '').replace(/_/g, ' ')} (incident ${id})`, tone: outcome === 'failed' ? 'bad' : 'warning' });
  });
  totals.kind.forEach((kind, at) => {
    const time = totals.peak_time[at] ?? null;
    if (time !== null && (totals.peak_bytes[at] ?? 0) > 0)
      marks.push({ time, text: 'peak', tone: 'peak', value: totals.peak_bytes[at] ?? 0, colour: colourOf(kind) });
  });
  // Of many, the first ones are drawn: the others are in the table of incidents.
  return marks.slice(0, 60);
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
      { title: 'Failed', number: true, text: (at) => count(totals.failures[at]), order: (at) => totals.failures[at] ?? 0 },
    ],
  });
  table.show(totals.kind.map((_, at) => at));
  return table.element;
}

/** Returns the section, and the chart in it; null: there is no timeline. */
export function timelineSection(page: Page, report: RawReport, showIncident: (id: number) => void): { element: HTMLElement; chart: Chart | null } {
  const lines = linesOf(page, report, '', false);
  const chart = lines.length === 0 ? null : new Chart('Live bytes over time', lines, marksOf(report), (us) => moment(report.process, us));
  const { incidents } = report;
  const jumps = h('ul', { class: 'jumps' }, ...incidents.id.slice(0, 12).map((id, at) => h('li', {}, h('button', {
    type: 'button', class: 'quiet', onclick: () => {
      showIncident(id);
      chart?.showAround(incidents.time[at] ?? 0);
    },
  }, `Incident ${id} ${moment(report.process, incidents.time[at] ?? null)}`))));
  const steps = report.process.steps === null ? '' : ` The program marked ${count(report.process.steps)} steps.`;
  const element = section('timeline', 'Memory over time',
    `Most live bytes in each span of the run. Circles are peaks, dashed lines are refused requests.${steps}`,
    chart ? chart.element : h('p', { class: 'status' }, 'The report has no timeline: no memory was live while it was recorded.'),
    incidents.id.length > 0 ? jumps : null, totalsTable(page, report));
  return { element, chart };
}

/** Returns the section with the timelines of two reports on one axis. */
export function comparedTimelines(page: Page, before: RawReport, now: RawReport): HTMLElement {
  const lines = [...linesOf(page, now, 'now: ', false), ...linesOf(page, before, 'before: ', true)];
  return section('together', 'Both runs on one axis',
    `Times count from each start. Dashed: before (${fileName(before.process.path)}). Solid: now (${fileName(now.process.path)}).`,
    lines.length === 0 ? h('p', { class: 'status' }, 'Neither report has a timeline.')
      : new Chart('Live bytes of both runs over time', lines, [], (us) => `${duration(us)} into each run`).element);
}
