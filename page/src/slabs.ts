// The map of slabs: a square for each unit of 2 MiB that the driver cuts small requests from. A slab that the user
// chooses gets a list of its call stacks.
import { apart, apartByStack } from './apart';
import type { Page, RawReport, SlabMap } from './data';
import { choice, fill, h, section, styleColour } from './dom';
import { foldedStack, stackList } from './stack_list';
import { DataTable } from './table';
import { onThemeChange } from './theme';
import { bytes, count, counted, location, moment, share } from './words';

/** Colours of slabs, from nearly empty ones, which keep most memory from being used, to full ones. */
const ramp = ['#d6404f', '#e8743b', '#efa93a', '#c5c04a', '#7fb96a', '#3fa58a', '#2f7fb0'];

/** Returns the share of a slab that is live, from 0 to 1. `at`: index of the slab in the map. */
function filled(map: SlabMap, at: number): number {
  const used = map.bytes[at] ?? (map.live[at] ?? 0) * (map.piece[at] ?? 0);
  return Math.min(1, used / map.page_bytes);
}

/** Returns the numbers of the pages at which the slabs of the map start: addresses in units of `page_bytes`. */
function pagesOf(map: SlabMap): number[] {
  let page = 0;
  return map.step.map((step) => (page += step));
}

/** Returns the address of a page as a text. `page`: one of pagesOf(map). */
function addressText(map: SlabMap, page: number): string {
  return `0x${(BigInt(page) * BigInt(map.page_bytes)).toString(16)}`;
}

/** Returns the stacks with the most live pieces in the slab at this index of the map, most first; empty: unknown. */
function stacksOf(map: SlabMap, at: number): number[] {
  return map.sets[map.set[at] ?? 0] ?? [];
}

/**
 * Shows in `holder` the call stacks of a slab. `at`: index of the slab in the map. The map of the worst moment has no
 * stacks of its own: those that the slab has in the map of the end are shown, if it is there.
 */
function showStacks(page: Page, report: RawReport, map: SlabMap, at: number, holder: HTMLElement): void {
  const slab = pagesOf(map)[at] ?? 0;
  const address = addressText(map, slab);
  let stacks = stacksOf(map, at);
  let words = `Call stacks with the most live pieces in the slab at ${address}:`;
  if (map.moment === 'worst') {
    const end = report.slabs.find((other) => other.moment === 'end' && other.device === map.device && other.page_bytes === map.page_bytes);
    stacks = end ? stacksOf(end, pagesOf(end).indexOf(slab)) : [];
    words = `Call stacks that had the most live pieces in the slab at ${address} at the end:`;
  }
  if (stacks.length === 0) words = `The report names no call stack for the slab at ${address}.`;
  const titles = stacks.map((stack) => location(page.usersFrame(stack)));
  const items = stacks.map((stack, index) => {
    const alike = stacks.filter((_, other) => titles[other] === titles[index]);
    const notes = alike.length < 2 ? [] : apart(page, alike, []);
    const note = notes[alike.indexOf(stack)];
    return h('li', {}, foldedStack(page, stack, titles[index] ?? '', note === undefined ? null : h('span', { class: 'apart' }, note)));
  });
  fill(holder, h('p', {}, words), items.length === 0 ? null : h('ol', {}, ...items));
}

/** The map of slabs as a picture: a square for each slab, in the order of their addresses. */
class SlabCanvas {
  readonly element: HTMLElement;
  private readonly canvas = h('canvas', { class: 'slabs', tabindex: '0', role: 'img' });
  private readonly status = h('p', { class: 'status', role: 'status' }, 'Point at a slab to read what is in it. Click it, or use the arrow keys, to see its call stacks.');
  private side = 0;
  private columns = 1;
  /** Index of the slab that the line below the map describes; -1: none. */
  private described = -1;
  /** Index of the slab whose call stacks are listed; -1: none. */
  private chosen = -1;
  private readonly pages: number[];

  /** `choose`: is called with the index of each slab that the user chooses by a click or a key. */
  constructor(private readonly map: SlabMap, private readonly choose: (at: number) => void) {
    this.pages = pagesOf(map);
    this.canvas.setAttribute('aria-label', `${counted(map.step.length, 'slab')}. ${this.inWords()}`);
    this.element = h('div', {}, this.canvas, this.legend(), this.status);
    this.canvas.addEventListener('mousemove', (event) => { this.describe(this.slabAt(event)); });
    this.canvas.addEventListener('click', (event) => { this.select(this.slabAt(event)); });
    this.canvas.addEventListener('keydown', (event) => { this.key(event); });
    onThemeChange(() => { this.draw(); });
    new ResizeObserver(() => { this.draw(); }).observe(this.element);
  }

  inWords(): string {
    const parts = [0, 0, 0, 0];
    this.map.step.forEach((_, at) => { const part = Math.min(3, Math.floor(filled(this.map, at) * 4)); parts[part] = (parts[part] ?? 0) + 1; });
    const names = ['less than a quarter', 'up to a half', 'up to three quarters', 'more than that'];
    return parts.map((number, at) => `${count(number)} slabs are used to ${names[at] ?? ''}`).join('; ');
  }

  private legend(): HTMLElement {
    const scale = h('span', { class: 'ramp', 'aria-hidden': 'true' });
    scale.style.background = `linear-gradient(90deg, ${ramp.join(', ')})`;
    return h('p', { class: 'hint scale' }, 'nearly empty', scale, 'full');
  }

  private draw(): void {
    const width = this.element.clientWidth;
    const number = this.map.step.length;
    if (width === 0 || number === 0) return;
    // The squares are small enough for all slabs to fit into about half a screen.
    this.side = Math.max(3, Math.min(16, Math.floor(Math.sqrt((width * 420) / number))));
    this.columns = Math.max(1, Math.floor(width / this.side));
    const rows = Math.ceil(number / this.columns);
    const ratio = devicePixelRatio;
    this.canvas.width = this.columns * this.side * ratio;
    this.canvas.height = rows * this.side * ratio;
    this.canvas.style.width = `${this.columns * this.side}px`;
    this.canvas.style.height = `${rows * this.side}px`;
    const ctx = this.canvas.getContext('2d');
    if (!ctx) return;
    ctx.scale(ratio, ratio);
    const gap = this.side > 5 ? 1 : 0.5;
    for (let at = 0; at < number; ++at) {
      ctx.fillStyle = ramp[Math.min(ramp.length - 1, Math.floor(filled(this.map, at) * ramp.length))] ?? '';
      ctx.fillRect((at % this.columns) * this.side, Math.floor(at / this.columns) * this.side, this.side - gap, this.side - gap);
    }
    ctx.strokeStyle = styleColour('--ink');
    for (const [at, width] of [[this.described, 2], [this.chosen, 3]] as const) {
      if (at < 0) continue;
      ctx.lineWidth = width;
      ctx.strokeRect((at % this.columns) * this.side, Math.floor(at / this.columns) * this.side, this.side, this.side);
    }
  }

  private select(at: number): void {
    if (at < 0 || at >= this.map.step.length) return;
    this.chosen = at;
    this.describe(at);
    this.draw();
    this.choose(at);
  }

  private describe(at: number): void {
    if (at < 0 || at >= this.map.step.length || at === this.described) return;
    this.described = at;
    this.draw();
    const used = this.map.bytes[at] ?? null;
    const piece = this.map.piece[at] ?? null;
    fill(this.status, `Slab at ${addressText(this.map, this.pages[at] ?? 0)}: ${counted(this.map.live[at], 'live piece')}`
      + (used !== null ? `, ${bytes(used)} live, ${bytes(this.map.page_bytes - used)} locked` : '')
      + (piece !== null ? `, most of up to ${bytes(piece)}${(this.map.slots[at] ?? null) === null ? '' : `, of which ${count(this.map.slots[at])} fit`}` : '')
      + `, used to ${share(filled(this.map, at), 1)}`);
  }

  /** Returns the index of the slab at the mouse; -1 or an index behind the last slab: there is none. */
  private slabAt(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.side);
    return column < this.columns ? Math.floor((event.clientY - box.top) / this.side) * this.columns + column : -1;
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = this.chosen >= 0 ? this.chosen : this.described;
    this.select(from < 0 ? 0 : from + step);
  }
}

function momentWords(report: RawReport, map: SlabMap): string {
  const device = map.device === null ? '' : `GPU ${map.device} `;
  if (map.moment === 'incident') return `${device}at incident ${map.incident ?? 0}`;
  return map.moment === 'worst' ? `${device}when most was locked, ${moment(report.process, map.time)}` : `${device}at the end`;
}

function drawMap(page: Page, report: RawReport, map: SlabMap, holder: HTMLElement): void {
  const used = map.step.reduce((sum, _, at) => sum + filled(map, at), 0) / Math.max(1, map.step.length);
  const listed = map.count !== null && map.count > map.step.length ? `, of which the report lists ${count(map.step.length)}` : '';
  const holders = new DataTable<number>({
    caption: 'Call stacks that pin slabs',
    empty: 'The report names no call stack that pins slabs.',
    sorted: 1,
    most: 8,
    columns: [
      { title: 'Pinned by', text: (at) => location(page.usersFrame(map.holders.stack[at] ?? 0)) },
      { title: 'Locks', number: true, text: (at) => bytes(map.holders.locked[at]), order: (at) => map.holders.locked[at] ?? 0 },
      { title: 'Live', number: true, text: (at) => bytes(map.holders.bytes[at]), order: (at) => map.holders.bytes[at] ?? 0 },
      { title: 'In', number: true, text: (at) => count(map.holders.count[at]), order: (at) => map.holders.count[at] ?? 0 },
    ],
    details: (at) => stackList(page, map.holders.stack[at] ?? 0),
    apart: apartByStack(page, (at) => map.holders.stack[at] ?? 0),
  });
  holders.show(map.holders.stack.map((_, at) => at));
  const stacks = h('div', { class: 'slab-stacks' });
  const canvas = new SlabCanvas(map, (at) => { showStacks(page, report, map, at, stacks); });
  fill(holder,
    h('p', {}, h('strong', {}, bytes(map.locked)), ` locked in ${counted(map.count ?? map.step.length, 'slab')}${listed}, which are used to ${share(used, 1)} on average.`),
    canvas.element, stacks, h('h3', {}, 'Pinned by'), holders.element);
}

/** Returns the section about slabs, which shows one map of the report at a time. */
export function slabsSection(page: Page, report: RawReport): HTMLElement {
  const hint = 'The driver cuts requests below 1 MiB from slabs of 2 MiB. Memory that is freed in a slab stays locked until its last piece is freed.';
  const [first] = report.slabs;
  if (!first) return section('slabs', 'Slabs', hint, h('p', { class: 'status' }, 'The report lists no slabs: no small request was live.'));
  const holder = h('div');
  drawMap(page, report, first, holder);
  return section('slabs', 'Slabs', hint,
    report.slabs.length > 1 ? choice('Moment', report.slabs.map((map, at) => ({ value: String(at), text: momentWords(report, map) })), '0', (value) => {
      const map = report.slabs[Number(value)];
      if (map) drawMap(page, report, map, holder);
    }) : h('p', { class: 'hint' }, `${momentWords(report, first)}.`),
    holder);
}
