// The section about call stacks that hold memory: an icicle, and a table of the allocations below its uppermost bar.
import { apartByStack } from './apart';
import type { Maybe, Page, RawReport } from './data';
import { choice, fill, h, searchField, section, swatch } from './dom';
import { Icicle } from './icicle';
import { stackList } from './stack_list';
import { DataTable } from './table';
import { rowsBelow, treeOf, type Weighted } from './tree';
import { bytes, count, location } from './words';

/**
 * Property by which allocations are grouped above their outermost frames. none: they are not grouped. module: the
 * library or program whose code allocates. api: the CUDA function. kind: the kind of memory and the device.
 */
type Grouping = 'none' | 'module' | 'api' | 'kind';

/** A set of bytes that the icicle can show, such as those that were not freed. */
interface Source {
  value: string;
  text: string;
  title: string;
  rows: (grouping: Grouping) => Weighted[];
}

/**
 * Columns of a table of the report, in the form that all sources of the icicle share. `kind`, `api`, `module`: texts of
 * the row with this index. `isIn`: false for rows that do not count; left out: all rows count. `weight`: bytes of a row
 * in place of `bytes`; left out: `bytes` counts.
 */
interface Parts {
  stack: number[];
  bytes: Maybe[];
  count: Maybe[];
  device: Maybe[];
  kind: (at: number) => string;
  api: (at: number) => string;
  module: (at: number) => string;
  isIn?: (at: number) => boolean;
  weight?: (at: number) => number;
}

function weighted(page: Page, parts: Parts, grouping: Grouping): Weighted[] {
  const rows: Weighted[] = [];
  parts.stack.forEach((stack, at) => {
    if (parts.isIn && !parts.isIn(at)) return;
    const memory = page.memory(parts.kind(at), parts.device[at]);
    const api = parts.api(at);
    const groups: Record<Grouping, () => string> = {
      none: () => '', kind: () => memory, api: () => api || 'unknown call', module: () => parts.module(at) || 'unknown module',
    };
    const size = parts.weight ? parts.weight(at) : (parts.bytes[at] ?? 0);
    if (size > 0) rows.push({ stack, bytes: size, count: parts.count[at] ?? 0, group: groups[grouping](), words: api === '' ? memory : `${memory} · ${api}` });
  });
  return rows;
}

/**
 * Returns the bytes that were allocated by call stacks that the report does not list: a row for each kind of memory and
 * device. Rows of 0 bytes are left out.
 */
function unlisted(page: Page, report: RawReport, grouping: Grouping): Weighted[] {
  const { totals, allocated } = report;
  if (allocated.stack.length === 0) return [];
  return totals.kind.flatMap((kind, row): Weighted[] => {
    const device = totals.device[row] ?? null;
    const made = totals.made_bytes[row] ?? null;
    if (made === null) return [];
    let size = made;
    let number = totals.made[row] ?? 0;
    allocated.kind.forEach((one, at) => {
      if (page.text(one) !== kind || (allocated.device[at] ?? null) !== device) return;
      size -= allocated.bytes[at] ?? 0;
      number -= allocated.count[at] ?? 0;
    });
    const memory = page.memory(kind, device);
    const group = { none: '', kind: memory, api: 'unknown call', module: 'unknown module' }[grouping];
    return size <= 0 ? [] : [{ stack: 0, bytes: size, count: Math.max(0, number), group, words: memory, name: 'call stacks that the report does not list' }];
  });
}

function sourcesOf(page: Page, report: RawReport): Source[] {
  const { groups, peaks, sites, objects, allocated } = report;
  const moduleOf = (stack: number | undefined): string => page.usersFrame(stack ?? 0)?.module ?? '';
  const left: Parts = {
    ...groups, kind: (at) => page.text(groups.kind[at]), api: (at) => page.text(groups.api[at]), module: (at) => page.text(groups.module[at]),
    isIn: (at) => groups.set_aside[at] === 0,
  };
  const isRunning = report.process.reason === 'running';
  const all: (Source | null)[] = [
    {
      value: 'left', text: isRunning ? 'live at that moment' : 'live at the end', title: isRunning ? 'live' : 'live at the end',
      rows: (grouping) => weighted(page, left, grouping),
    },
    groups.lost.some((value) => (value ?? 0) > 0) ? {
      value: 'lost', text: 'lost: no pointer is left', title: 'lost',
      rows: (grouping) => weighted(page, { ...left, weight: (at) => groups.lost[at] ?? 0 }, grouping),
    } : null,
    {
      value: 'growing', text: 'growing', title: 'growing',
      rows: (grouping) => weighted(page, { ...left, isIn: (at) => groups.set_aside[at] === 0 && page.text(groups.growth[at]) === 'growing' }, grouping),
    },
    {
      value: 'peak', text: 'live at the peak of each kind', title: 'live at the peak',
      rows: (grouping) => weighted(page, { ...peaks, kind: (at) => page.text(peaks.kind[at]), api: () => '', module: (at) => moduleOf(peaks.stack[at]) }, grouping),
    },
    {
      value: 'allocated', text: 'allocated over the whole run, freed or not', title: 'allocated',
      rows: (grouping) => [
        ...weighted(page, { ...allocated, kind: (at) => page.text(allocated.kind[at]), api: (at) => page.text(allocated.api[at]), module: (at) => moduleOf(allocated.stack[at]) }, grouping),
        ...unlisted(page, report, grouping),
      ],
    },
    {
      value: 'tensors', text: "blocks of frameworks' (tensors)", title: 'blocks handed out',
      rows: (grouping) => weighted(page, { ...sites, kind: () => 'framework_block', api: (at) => page.text(sites.api[at]), module: (at) => moduleOf(sites.stack[at]) }, grouping),
    },
    {
      value: 'objects', text: 'contexts, code, streams, graphs', title: 'implicit memory',
      rows: (grouping) => weighted(page, { ...objects, kind: (at) => page.text(objects.kind[at]), api: (at) => page.text(objects.api[at]), module: (at) => moduleOf(objects.stack[at]) }, grouping),
    },
  ];
  return all.filter((source): source is Source => source !== null && source.rows('none').length > 0);
}

function legend(): HTMLElement {
  const names: [string, string][] = [['own', 'native code of the program'], ['python', 'Python'], ['library', 'libraries'], ['cuda', 'CUDA'], ['system', 'system']];
  return h('ul', { class: 'legend small' }, ...names.map(([code, words]) => h('li', {}, swatch(`var(--code-${code})`), words)));
}

function rowsTable(page: Page): DataTable<Weighted> {
  return new DataTable<Weighted>({
    caption: 'Allocations below the bar at the top of the icicle',
    empty: 'There are none.',
    sorted: 1,
    most: 10,
    columns: [
      { title: 'At', text: (row) => row.name ?? location(page.usersFrame(row.stack)) },
      { title: 'Bytes', number: true, text: (row) => bytes(row.bytes), order: (row) => row.bytes },
      { title: 'Allocations', number: true, text: (row) => count(row.count), order: (row) => row.count },
      { title: 'Memory', text: (row) => row.words },
    ],
    details: (row) => stackList(page, row.stack),
    apart: apartByStack(page, (row) => row.stack),
  });
}

/** Returns the section about call stacks that hold memory. */
export function stacksSection(page: Page, report: RawReport): HTMLElement {
  const sources = sourcesOf(page, report);
  let source = sources[0];
  const hint = 'Callers are above callees, and a bar is as wide as its bytes. Click a bar to zoom in, Escape to zoom out.';
  if (!source) return section('stacks', 'Call stacks', hint, h('p', { class: 'status' }, 'No memory was live, neither at the end nor at the peak.'));
  let grouping: Grouping = 'none';
  let isFolded = true;
  const table = rowsTable(page);
  const icicle = new Icicle((node) => { table.show(rowsBelow(node)); });
  const found = h('span', { class: 'hint', role: 'status' });
  const draw = (): void => {
    if (source) icicle.show(treeOf(page, source.rows(grouping), isFolded, source.title));
  };
  const search = searchField('Search', (text) => {
    const sum = icicle.find(text);
    fill(found, text.trim() === '' ? '' : `${bytes(sum)} below marked bars`);
  });
  search.append(found);
  const fold = h('input', {
    type: 'checkbox', checked: true, onchange: () => {
      isFolded = fold.checked;
      draw();
    },
  });
  const controls = h('div', { class: 'controls' },
    choice('Bytes', sources.map(({ value, text }) => ({ value, text })), source.value, (value) => {
      source = sources.find((one) => one.value === value);
      draw();
    }),
    choice('By', [
      { value: 'none', text: 'call stack' }, { value: 'module', text: 'module' }, { value: 'api', text: 'function of CUDA' }, { value: 'kind', text: 'kind and device' },
    ], 'none', (value) => {
      grouping = value as Grouping;
      draw();
    }),
    search,
    h('label', { class: 'check' }, fold, 'Fold frames of libraries'));
  draw();
  return section('stacks', 'Call stacks', hint, controls, legend(), icicle.element, h('h3', {}, 'Allocations below'), table.element);
}
