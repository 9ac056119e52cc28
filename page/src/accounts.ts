// Each device as a bar that adds up to its size: at its last reading, and at each incident.
import type { Page, RawReport } from './data';
import { choice, fill, h, section, swatch } from './dom';
import { colourOf, inkOn } from './theme';
import { bytes, moment, own, share } from './words';

interface Part {
  item: string;
  words: string;
  bytes: number;
}

const meanings: Record<string, string> = {
  slab_waste: 'freed by the program, in slabs of 2 MiB that are still partly used: only small requests can use it',
  rounding_waste: 'added to requests, because the driver gives memory in whole pages',
  mempool_idle: 'kept by memory pools of CUDA for later requests',
  pool: "free parts of the pages of cuwarden's own pool",
  other_processes: 'held by other processes',
  page_cache: "the host's cache of files, on a device that shares memory with the host",
  context: 'taken by the driver for contexts', modules: 'code that the driver has loaded', local_memory: 'for threads of kernels',
};

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
  const meaning = part.item === 'unexplained' && part.bytes < 0
    ? 'live memory is counted later than the device is read: memory was allocated between the two' : (own(meanings, part.item) ?? '');
  const line = h('tr', {},
    h('th', { scope: 'row' }, swatch(part.item === 'free' ? 'transparent' : colourOf(part.item)), part.words),
    h('td', { class: 'number' }, bytes(part.bytes)), h('td', { class: 'number' }, share(part.bytes, total)),
    h('td', { class: 'meaning' }, meaning));
  line.addEventListener('mouseenter', () => { highlight(true); });
  line.addEventListener('mouseleave', () => { highlight(false); });
  return line;
}

/** Returns a bar with a piece for each part of `sum` bytes. */
function barOf(parts: Part[], sum: number, name: string): { element: HTMLElement; pieces: HTMLElement[] } {
  const element = h('div', { class: `bar ${name}`, 'aria-hidden': 'true' });
  const pieces = parts.map((part) => {
    const piece = h('div', { class: part.item === 'free' ? 'piece free' : 'piece', title: `${part.words}: ${bytes(part.bytes)}` });
    piece.style.flexGrow = String(Math.max(0, part.bytes) / Math.max(1, sum));
    if (part.item !== 'free') {
      piece.style.background = colourOf(part.item);
      piece.style.color = inkOn(colourOf(part.item));
    }
    if (part.bytes > sum * 0.12) piece.append(h('span', {}, part.words), h('span', {}, bytes(part.bytes)));
    if (part.bytes > 0) element.append(piece);
    return piece;
  });
  return { element, pieces };
}

function drawBar(report: RawReport, at: number, incident: number | null, holder: HTMLElement): void {
  const { devices } = report;
  const device = devices.device[at] ?? 0;
  const parts = partsAt(report, device, incident).filter((part) => part.bytes !== 0).sort((one, other) => other.bytes - one.bytes);
  const used = parts.reduce((sum, part) => sum + part.bytes, 0);
  const total = devices.total[at] ?? used;
  const free = incident === null ? (devices.free[at] ?? Math.max(0, total - used)) : Math.max(0, total - used);
  const all = [...parts, { item: 'free', words: 'free', bytes: free }];
  const positive = all.reduce((sum, part) => sum + Math.max(0, part.bytes), 0);
  const whole = barOf(all, positive, '');
  // On a device that is mostly free, its used part is too narrow to be read.
  const usedPart = positive - Math.max(0, free);
  const part = usedPart > 0 && usedPart < positive / 3 ? barOf(parts, usedPart, 'part') : null;
  const body = h('tbody');
  all.forEach((one, index) => {
    body.append(row(one, total, (isOn) => {
      for (const bar of [whole, part]) bar?.pieces[index]?.classList.toggle('lit', isOn);
    }));
  });
  const sum = h('tfoot', {}, h('tr', {}, h('th', { scope: 'row' }, 'Size of the device'), h('td', { class: 'number' }, bytes(total)), h('td', { class: 'number' }, '100 %'), h('td')));
  fill(holder, whole.element, part ? h('p', { class: 'hint' }, `The ${bytes(usedPart)} in use:`) : null, part?.element ?? null, h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Parts of GPU ${device}` },
    h('table', { class: 'plain' }, h('caption', { class: 'hidden' }, `Parts of GPU ${device}`),
      h('thead', {}, h('tr', {}, ...['Part', 'Bytes', 'Share', ''].map((title, index) => (title === '' ? h('td') : h('th', { scope: 'col', class: index > 0 ? 'number' : null }, title))))),
      body, sum)));
}

function frameworkLines(page: Page, report: RawReport): HTMLElement | null {
  const { frameworks } = report;
  const lines = frameworks.framework.flatMap((name, at) => {
    if ((frameworks.incident[at] ?? null) !== null) return [];
    const allocated = frameworks.allocated[at] ?? null;
    return [h('li', {}, `${name}${frameworks.pool[at] ? `, ${frameworks.pool[at] ?? ''}` : ''} on ${page.memory('device', frameworks.device[at]).replace('device memory', 'the device')}: `
      + `took ${bytes(frameworks.reserved[at])}${allocated === null ? '' : `, has handed out ${bytes(allocated)} of it`}`
      + ((frameworks.peak[at] ?? null) === null ? '' : `, ${bytes(frameworks.peak[at])} at its peak`))];
  });
  return lines.length === 0 ? null : h('ul', { class: 'plainlist' }, ...lines);
}

/** Returns the section about all devices. */
export function accountsSection(page: Page, report: RawReport): HTMLElement {
  const { devices, accounts, incidents } = report;
  const boxes = devices.device.flatMap((device, at) => {
    const moments = [...new Set(accounts.device.flatMap((one, index) => (one === device ? [accounts.incident[index] ?? null] : [])))];
    if (moments.length === 0) return [];
    const holder = h('div');
    const last = devices.at[at] === 'exit' ? 'at the end' : 'at its last reading';
    const options = moments.map((incident) => ({
      value: incident === null ? '' : String(incident),
      text: incident === null ? last : `at incident ${incident}, ${moment(report.process, incidents.time[incidents.id.indexOf(incident)] ?? null)}`,
    }));
    // The moment of the first refusal says most.
    const first = moments.find((incident) => incident !== null) ?? null;
    drawBar(report, at, first, holder);
    return [h('div', { class: 'device' },
      h('h3', {}, `GPU ${device}: ${devices.name[at] ?? 'unknown'}, ${bytes(devices.total[at])}`),
      moments.length > 1 ? choice('Moment', options, first === null ? '' : String(first), (value) => { drawBar(report, at, value === '' ? null : Number(value), holder); })
        : h('p', { class: 'hint' }, `The device ${last}.`),
      holder)];
  });
  return section('device', 'The device, part by part', 'All parts add up to the size of the device.',
    ...(boxes.length > 0 ? boxes : [h('p', { class: 'status' }, 'No device was read: the report has no account.')]),
    frameworkLines(page, report));
}
