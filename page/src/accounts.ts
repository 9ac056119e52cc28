// The section about devices. Each device is a bar of parts that add up to its size: at its last reading, at each
// incident, and at its peak.
import { colourOf, inkOn } from './colours';
import type { Page, RawReport } from './data';
import { isOnDevice, mostAt } from './device_use';
import { choice, fill, h, section, swatch } from './dom';
import { bytes, moment, own, share } from './words';

/** A part of a device's memory. */
interface Part {
  /**
   * Name of the part in the report's table of accounts, such as "context" or "live_device". Reports lack two parts, which
   * the page adds: "free", and "not_known" (at the peak).
   */
  item: string;
  /** Name of the part for people. */
  words: string;
  /**
   * Bytes of the part. They may be negative for "unexplained", if memory was counted later than the device was read.
   */
  bytes: number;
  /** Explanation beside the bytes; left out: the one that `meanings` has for the item. */
  meaning?: string;
}

/** True if the part is drawn without a colour: memory that is free, or of which nothing is known. */
function isBlank(part: Part): boolean {
  return part.item === 'free' || part.item === 'not_known';
}

/**
 * A moment at which a device is shown. end: the last reading. peak: most memory of the process was live. A number: the
 * incident with this id.
 */
type Moment = 'end' | 'peak' | number;

/** Explanations of parts, by the name of the part in reports. */
const meanings: Record<string, string> = {
  slab_waste: 'freed by the program, in slabs of 2 MiB that are still partly used: only small requests can use it',
  rounding_waste: 'added to requests, because the driver gives memory in whole pages',
  mempool_idle: 'kept by memory pools of CUDA for later requests',
  pool: "free parts of the pages of cuwarden's own pool",
  other_processes: 'held by other processes',
  page_cache: "the host's cache of files, on a device that shares memory with the host",
  context: 'taken by the driver for contexts', modules: 'code that the driver has loaded', local_memory: 'for threads of kernels',
};

/** The parts of a device at the moment when most memory of the process was live on it. */
interface Peak {
  /** Moment of the peak, in microseconds since the start of the process. */
  time: number;
  parts: Part[];
}

/**
 * Returns the parts of a device at the peak of the process's live memory on it; null if the report lacks the figures.
 * `row`: row of the device in the report's table of devices.
 */
function peakOf(page: Page, report: RawReport, row: number): Peak | null {
  const { totals, devices } = report;
  const device = devices.device[row] ?? 0;
  const total = devices.total[row] ?? null;
  if (total === null) return null;
  const wordsOf = (kind: string): string => report.accounts.words[report.accounts.item.indexOf(`live_${kind}`)] ?? page.memory(kind, null);
  const series = report.timeline.filter((one) => one.device === device && isOnDevice(one.kind));
  const peaks = totals.kind.flatMap((kind, at) => {
    const time = totals.peak_time[at] ?? null;
    if (time === null || totals.device[at] !== device || !isOnDevice(kind)) return [];
    const own: Part = { item: `live_${kind}`, words: wordsOf(kind), bytes: totals.peak_bytes[at] ?? 0, meaning: 'live: the peak of this kind' };
    const others = series.filter((one) => one.kind !== kind).map((one): Part => ({
      item: `live_${one.kind}`, words: wordsOf(one.kind), bytes: mostAt(report, one, time), meaning: 'live: at most, in the span of the timeline around the peak',
    }));
    return [{ time, parts: [own, ...others] }];
  });
  const sumOf = (peak: Peak): number => peak.parts.reduce((sum, part) => sum + part.bytes, 0);
  const highest = peaks.reduce<Peak | null>((best, peak) => (best === null || sumOf(peak) > sumOf(best) ? peak : best), null);
  if (highest === null) return null;
  highest.parts.push({
    item: 'not_known', words: 'not known at that moment', bytes: Math.max(0, total - sumOf(highest)),
    meaning: 'the device was not read then: contexts, code, other processes and free memory',
  });
  return highest;
}

function partsAt(report: RawReport, device: number, incident: number | null): Part[] {
  const { accounts } = report;
  const parts: Part[] = [];
  accounts.device.forEach((one, at) => {
    if (one === device && (accounts.incident[at] ?? null) === incident)
      parts.push({ item: accounts.item[at] ?? '', words: accounts.words[at] ?? '', bytes: accounts.bytes[at] ?? 0 });
  });
  if (parts.some((part) => part.item === 'context'))
    for (const part of parts) if (part.item === 'unexplained') part.words = 'unexplained';
  return parts;
}

function row(part: Part, total: number, highlight: (isOn: boolean) => void): HTMLElement {
  const meaning = part.meaning ?? (part.item === 'unexplained' && part.bytes < 0
    ? 'live memory is counted later than the device is read: memory was allocated between the two' : (own(meanings, part.item) ?? ''));
  const line = h('tr', {},
    h('th', { scope: 'row' }, swatch(isBlank(part) ? 'transparent' : colourOf(part.item)), part.words),
    h('td', { class: 'number' }, bytes(part.bytes)), h('td', { class: 'number' }, share(part.bytes, total)),
    h('td', { class: 'meaning' }, meaning));
  line.addEventListener('mouseenter', () => { highlight(true); });
  line.addEventListener('mouseleave', () => { highlight(false); });
  return line;
}

/**
 * Returns a bar with a piece for each part. A piece is as wide as its share of `sum` bytes. `name`: further class of
 * the bar for the style sheet; empty: none.
 */
function barOf(parts: Part[], sum: number, name: string): { element: HTMLElement; pieces: Map<Part, HTMLElement> } {
  const element = h('div', { class: `bar ${name}`, 'aria-hidden': 'true' });
  const pieces = new Map<Part, HTMLElement>();
  for (const part of parts) {
    const piece = h('div', { class: isBlank(part) ? 'piece free' : 'piece', title: `${part.words}: ${bytes(part.bytes)}` });
    piece.style.flexGrow = String(Math.max(0, part.bytes) / Math.max(1, sum));
    if (!isBlank(part)) {
      piece.style.background = colourOf(part.item);
      piece.style.color = inkOn(colourOf(part.item));
    }
    if (part.bytes > sum * 0.12) piece.append(h('span', {}, part.words), h('span', {}, bytes(part.bytes)));
    if (part.bytes > 0) element.append(piece);
    pieces.set(part, piece);
  }
  return { element, pieces };
}

function drawBar(report: RawReport, at: number, moment: Moment, peak: Peak | null, holder: HTMLElement): void {
  const { devices } = report;
  const device = devices.device[at] ?? 0;
  const found = moment === 'peak' ? peak?.parts ?? [] : partsAt(report, device, moment === 'end' ? null : moment);
  const parts = found.filter((part) => part.bytes !== 0).sort((one, other) => Number(isBlank(one)) - Number(isBlank(other)) || other.bytes - one.bytes);
  const used = parts.reduce((sum, part) => sum + part.bytes, 0);
  const total = devices.total[at] ?? used;
  const free = moment === 'end' ? (devices.free[at] ?? Math.max(0, total - used)) : Math.max(0, total - used);
  // At a peak, the device was not read: free memory is in the part "not_known".
  const all: Part[] = moment === 'peak' ? parts : [...parts, { item: 'free', words: 'free', bytes: free }];
  const positive = all.reduce((sum, part) => sum + Math.max(0, part.bytes), 0);
  const whole = barOf(all, positive, '');
  // Parts whose use is known are too narrow to be read if they fill less than a third of the bar. Then a second bar
  // shows them alone, without memory that is free or of which nothing is known.
  const known = parts.filter((one) => !isBlank(one));
  const usedPart = known.reduce((sum, one) => sum + Math.max(0, one.bytes), 0);
  const part = usedPart > 0 && usedPart < positive / 3 ? barOf(known, usedPart, 'part') : null;
  const body = h('tbody');
  all.forEach((one) => {
    body.append(row(one, total, (isOn) => {
      for (const bar of [whole, part]) bar?.pieces.get(one)?.classList.toggle('lit', isOn);
    }));
  });
  const sum = h('tfoot', {}, h('tr', {}, h('th', { scope: 'row' }, 'Size of the device'), h('td', { class: 'number' }, bytes(total)), h('td', { class: 'number' }, '100 %'), h('td')));
  fill(holder, whole.element, part ? h('p', { class: 'hint' }, `The ${bytes(usedPart)} in use:`) : null, part?.element ?? null, h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Parts of GPU ${device}` },
    h('table', { class: 'plain' }, h('caption', { class: 'hidden' }, `Parts of GPU ${device}`),
      h('thead', {}, h('tr', {}, ...['Part', 'Bytes', 'Share', ''].map((title, index) => (title === '' ? h('td') : h('th', { scope: 'col', class: index > 0 ? 'number' : null }, title))))),
      body, sum)));
}

function frameworkLines(report: RawReport): HTMLElement | null {
  const { frameworks } = report;
  const lines = frameworks.framework.flatMap((name, at) => {
    // A pool of a framework that was never used gets no line.
    if ([frameworks.reserved[at], frameworks.peak[at]].every((value) => (value ?? 0) === 0)) return [];
    const incident = frameworks.incident[at] ?? null;
    const allocated = frameworks.allocated[at] ?? null;
    return [h('li', {}, `${name}${frameworks.pool[at] ? `, ${frameworks.pool[at] ?? ''}` : ''} on ${(frameworks.device[at] ?? null) === null ? 'the host' : `GPU ${frameworks.device[at] ?? 0}`}`
      + `${incident === null ? '' : `, at incident ${incident}`}: took ${bytes(frameworks.reserved[at])}${allocated === null ? '' : `, has handed out ${bytes(allocated)} of it`}`
      + ((frameworks.peak[at] ?? null) === null ? '' : `, ${bytes(frameworks.peak[at])} at its peak`))];
  });
  return lines.length === 0 ? null : h('ul', { class: 'plainlist' }, ...lines);
}

/** Returns the section about all devices of the report. */
export function accountsSection(page: Page, report: RawReport): HTMLElement {
  const { devices, accounts, incidents } = report;
  const boxes = devices.device.flatMap((device, at) => {
    const moments = [...new Set(accounts.device.flatMap((one, index) => (one === device ? [accounts.incident[index] ?? null] : [])))];
    if (moments.length === 0) return [];
    const holder = h('div');
    const last = devices.at[at] === 'exit' ? 'at the end' : 'at its last reading';
    const peak = peakOf(page, report, at);
    const options = moments.map((incident) => ({
      value: incident === null ? 'end' : String(incident),
      text: incident === null ? last : `at incident ${incident}, ${moment(report.process, incidents.time[incidents.id.indexOf(incident)] ?? null)}`,
    }));
    if (peak !== null) options.push({ value: 'peak', text: `at the peak of live memory, ${moment(report.process, peak.time)}` });
    // Until the user chooses, the bar shows the first incident, or the last reading if there is no incident.
    const first = moments.find((incident) => incident !== null) ?? 'end';
    drawBar(report, at, first, peak, holder);
    return [h('div', { class: 'device' },
      h('h3', {}, `GPU ${device}: ${devices.name[at] ?? 'unknown'}, ${bytes(devices.total[at])}`),
      options.length > 1 ? choice('Moment', options, String(first), (value) => { drawBar(report, at, value === 'end' || value === 'peak' ? value : Number(value), peak, holder); })
        : h('p', { class: 'hint' }, `The device ${last}.`),
      holder)];
  });
  return section('device', 'The device, part by part', 'All parts add up to the size of the device.',
    ...(boxes.length > 0 ? boxes : [h('p', { class: 'status' }, 'No device was read: the report has no account.')]),
    frameworkLines(report));
}
