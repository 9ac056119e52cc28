// The use of one device over time: its live memory by kind, from the timeline, and all parts of its memory at the
// moments at which it was read.
import type { Column, Line } from './chart';
import { colourOf } from './colours';
import type { Maybe, Page, RawReport, Series } from './data';
import { styleColour } from './dom';

/** Kinds of memory that are a part of what a device has in use; managed memory may lie on the host. */
const onDevice = ['device', 'stream_ordered', 'vmm', 'array', 'graph', 'imported'];

/** True if live memory of this kind is a part of the device's used bytes. */
export function isOnDevice(kind: string): boolean {
  return onDevice.includes(kind);
}

/**
 * Returns two times in microseconds since the start of the process. `last`: end of the last span of the series. `end`:
 * end of the process, or `last` if that is later.
 */
function endOf(report: RawReport, series: Series): { last: number; end: number } {
  const last = (series.time.at(-1) ?? 0) + (series.width.at(-1) ?? 0);
  return { last, end: Math.max(report.process.end ?? 0, last) };
}

/**
 * Returns the bytes of the series that were live at the end; null: unknown. A kind without a total, such as blocks of
 * frameworks, has the bytes at the end of its last span.
 */
function leftOf(report: RawReport, series: Series): Maybe {
  const { totals } = report;
  const at = totals.kind.findIndex((kind, row) => kind === series.kind && totals.device[row] === series.device);
  return at < 0 ? series.last.at(-1) ?? null : totals.bytes[at] ?? null;
}

/**
 * Returns the spans of a series up to the end of the process. `time`: begin of each span. `value`: most bytes in each
 * span; null: unknown. `end`: end of the last span. Times are microseconds since the start of the process. If the series
 * ends before the process, a span with the bytes that were live at the end is added to fill the gap.
 */
export function spansOf(report: RawReport, series: Series): { time: number[]; value: Maybe[]; end: number } {
  const { last, end } = endOf(report, series);
  return end > last ? { time: [...series.time, last], value: [...series.most, leftOf(report, series)], end }
    : { time: series.time, value: series.most, end };
}

/**
 * Returns the most bytes of a series in the span that contains the time `us`; 0 if they are unknown, or before the
 * first span. `us`: microseconds since the start of the process.
 */
export function mostAt(report: RawReport, series: Series, us: number): number {
  const { time, value } = spansOf(report, series);
  let at = -1;
  while (at + 1 < time.length && (time[at + 1] ?? 0) <= us) ++at;
  return at < 0 ? 0 : value[at] ?? 0;
}

/**
 * Parts of columns that are no live memory. `items`: names, in reports, of the parts of a device that are added up in
 * one part of a column.
 */
const groups: { name: string; colour: string; items: string[] }[] = [
  { name: 'locked, lost to rounding, or idle in pools', colour: 'slab_waste', items: ['slab_waste', 'rounding_waste', 'mempool_idle', 'pool'] },
  { name: 'contexts, code and the like', colour: 'context', items: ['context', 'modules', 'local_memory', 'heap', 'streams', 'graphs', 'libraries'] },
  { name: 'other processes', colour: 'other_processes', items: ['other_processes'] },
  { name: "the host's page cache", colour: 'page_cache', items: ['page_cache'] },
  { name: 'unexplained', colour: 'unexplained', items: ['unexplained'] },
];

/** The content of a device's chart. `total`: size of the device in bytes; null: unknown. */
export interface DeviceUse {
  lines: Line[];
  columns: Column[];
  total: Maybe;
}

/**
 * Returns the figures that frameworks gave of their own memory, as points. `device`: ordinal of the device; null: host
 * memory.
 */
function pointsOf(report: RawReport, device: Maybe): Line[] {
  const { frameworks, incidents, process } = report;
  const lines = new Map<string, Line>();
  const end = process.end ?? 0;
  frameworks.framework.forEach((framework, at) => {
    if ((frameworks.device[at] ?? null) !== device) return;
    const incident = frameworks.incident[at] ?? null;
    const time = frameworks.time[at] ?? (incident === null ? end : incidents.time[incidents.id.indexOf(incident)]) ?? null;
    if (time === null) return;
    const pool = frameworks.pool[at] ?? null;
    for (const [words, value, colour] of [
      ['taken from CUDA', frameworks.reserved[at] ?? null, '#a8326b'], ['handed out', frameworks.allocated[at] ?? null, '#e58fb4'],
    ] as const) {
      if (value === null) continue;
      const name = `${framework}${pool === null ? '' : `, ${pool}`}: ${words}`;
      const line = lines.get(name) ?? { name, colour, time: [], value: [], end: 0, draw: 'point' };
      lines.set(name, line);
      line.time.push(Math.min(time, end));
      line.value.push(value);
    }
  });
  return [...lines.values()].filter((line) => line.value.some((value) => (value ?? 0) > 0));
}

/** All parts of a device's used memory at one moment. */
interface Reading {
  /** Row of the refused request at which the device was read, in the table of incidents; null: the last reading. */
  incident: Maybe;
  /** Time of the reading, in microseconds since the start of the process. */
  time: number;
  /** Name of a part of the device's memory in reports → bytes of the part. */
  items: Map<string, number>;
}

/** Returns the readings of a device, the earliest first. `row`: row of the device in the report's table of devices. */
function readingsOf(report: RawReport, row: number): Reading[] {
  const { accounts, devices, incidents, process } = report;
  const device = devices.device[row] ?? 0;
  const end = process.end ?? 0;
  // Id of the incident → parts of the device. The table of accounts is read only once, since it may have rows of a
  // thousand incidents.
  const moments = new Map<Maybe, Map<string, number>>();
  accounts.device.forEach((one, at) => {
    if (one !== device) return;
    const incident = accounts.incident[at] ?? null;
    const items = moments.get(incident) ?? new Map<string, number>();
    moments.set(incident, items);
    const item = accounts.item[at] ?? '';
    items.set(item, (items.get(item) ?? 0) + (accounts.bytes[at] ?? 0));
  });
  const rows = new Map(incidents.id.map((id, at) => [id, at]));
  return [...moments].flatMap(([id, items]): Reading[] => {
    const incident = id === null ? null : rows.get(id) ?? -1;
    const time = incident === null ? Math.min(end, devices.time[row] ?? end) : incidents.time[incident] ?? null;
    return time === null ? [] : [{ incident, time, items }];
  }).sort((one, other) => one.time - other.time);
}

/** Returns the content of a device's chart. `row`: row of the device in the report's table of devices. */
export function deviceUse(page: Page, report: RawReport, row: number): DeviceUse {
  const { devices, incidents } = report;
  const device = devices.device[row] ?? 0;
  const live = report.timeline.filter((series) => series.device === device && isOnDevice(series.kind) && series.most.some((value) => (value ?? 0) > 0));
  const kinds = live.map((series) => series.kind);
  const lines: Line[] = live.map((series) => ({ name: page.memory(series.kind, device), colour: colourOf(series.kind), ...spansOf(report, series), draw: 'area' }));
  const total = devices.total[row] ?? null;
  const named = new Map<string, number>();
  const lineOf = (name: string, colour: string, draw: Line['draw']): number => {
    const known = named.get(name);
    if (known !== undefined) return known;
    named.set(name, lines.length);
    lines.push({ name, colour, time: [], value: [], end: 0, draw });
    return lines.length - 1;
  };
  const columns = readingsOf(report, row).map(({ incident, time, items }): Column => {
    const parts: Column['parts'] = [];
    const used = [...items.values()].reduce((sum, size) => sum + size, 0);
    kinds.forEach((kind, line) => parts.push({ line, bytes: items.get(`live_${kind}`) ?? 0 }));
    for (const [item, size] of items) {
      if (!item.startsWith('live_') || kinds.includes(item.slice(5)) || size === 0) continue;
      parts.push({ line: lineOf(page.memory(item.slice(5), device), colourOf(item), 'column'), bytes: size });
    }
    for (const group of groups) {
      const size = group.items.reduce((sum, item) => sum + (items.get(item) ?? 0), 0);
      if (size !== 0) parts.push({ line: lineOf(group.name, colourOf(group.colour), 'column'), bytes: size });
    }
    if (total !== null) parts.push({ line: lineOf('free', 'transparent', 'rest'), bytes: Math.max(0, total - used) });
    const asked = incident === null || incidents.device[incident] !== device || incidents.outcome[incident] === 'rescued' ? 0 : (incidents.bytes[incident] ?? 0);
    if (asked > 0) parts.push({ line: lineOf('refused request', styleColour('--bad'), 'outline'), bytes: asked });
    return { time, parts };
  });
  // Blocks of frameworks lie in memory that areas already show: they are drawn as lines.
  const blocks: Line[] = report.timeline.filter((series) => series.device === device && series.kind === 'framework_block')
    .map((series) => ({ name: page.memory(series.kind, device), colour: colourOf(series.kind), ...spansOf(report, series), draw: 'line', dashed: true }));
  return { lines: [...lines, ...blocks, ...pointsOf(report, device)], columns, total };
}

/**
 * Returns the lines of memory that is in no chart of a device: host memory, and managed memory, which may lie on the
 * host or on a device.
 */
export function otherLines(page: Page, report: RawReport): Line[] {
  const lines: Line[] = report.timeline
    .filter((series) => (series.device === null || series.kind === 'managed') && series.most.some((value) => (value ?? 0) > 0))
    .map((series) => ({ name: page.memory(series.kind, series.device), colour: colourOf(series.kind), ...spansOf(report, series), draw: 'line' }));
  return lines.length === 0 ? [] : [...lines, ...pointsOf(report, null)];
}
