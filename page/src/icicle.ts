// Draws a tree as an icicle on a canvas: a bar for each node, as wide as its bytes, callers above callees.
import { fill, h, styleColour } from './dom';
import { onThemeChange } from './theme';
import { lineage, type TreeNode } from './tree';
import { bytes, counted, fileName, share } from './words';

/** Height of a bar in pixels. */
const rowHeight = 22;
/** Least width in pixels of a bar that is drawn. */
const leastWidth = 2.5;

/** A node of the tree as it is drawn. Numbers are pixels of the canvas. */
interface Bar {
  node: TreeNode;
  x: number;
  y: number;
  width: number;
}

/** An icicle, with the callers of its uppermost bar above it and words about the chosen bar below it. */
export class Icicle {
  readonly element: HTMLElement;
  private readonly canvas = h('canvas', { class: 'icicle', tabindex: '0', role: 'img' });
  private readonly crumbs = h('ol', { class: 'crumbs' });
  private readonly status = h('p', { class: 'status', role: 'status' });
  private root: TreeNode | null = null;
  private top: TreeNode | null = null;
  private chosen: TreeNode | null = null;
  private bars: Bar[] = [];
  private search = '';
  private hits = new Set<TreeNode>();

  /** Makes an icicle without a tree. `zoomed`: is called with the node that has become the uppermost bar. */
  constructor(private readonly zoomed: (node: TreeNode) => void) {
    this.element = h('div', {}, h('nav', { 'aria-label': 'Callers of the bar at the top' }, this.crumbs), this.canvas, this.status);
    this.canvas.addEventListener('mousemove', (event) => { this.choose(this.barAt(event)?.node ?? null); });
    this.canvas.addEventListener('mouseleave', () => { this.choose(null); });
    this.canvas.addEventListener('click', (event) => {
      const bar = this.barAt(event);
      if (bar) this.zoom(bar.node === this.top && bar.node.parent ? bar.node.parent : bar.node);
    });
    this.canvas.addEventListener('keydown', (event) => { this.key(event); });
    onThemeChange(() => { this.draw(); });
    new ResizeObserver(() => { this.draw(); }).observe(this.element);
  }

  /** Draws another tree, with its root as the uppermost bar. */
  show(root: TreeNode): void {
    this.root = root;
    this.find(this.search);
    this.zoom(root);
  }

  /**
   * Marks the bars with the text in their names, and unmarks all others. Returns the bytes of all marked bars; a bar
   * below another marked one does not count again.
   */
  find(text: string): number {
    this.search = text.trim().toLowerCase();
    this.hits.clear();
    let found = 0;
    const visit = (node: TreeNode, isBelow: boolean): void => {
      const isHit = this.search !== '' && `${node.name} ${node.note}`.toLowerCase().includes(this.search);
      if (isHit) this.hits.add(node);
      if (isHit && !isBelow) found += node.bytes;
      for (const one of node.children) visit(one, isBelow || isHit);
    };
    if (this.root) visit(this.root, false);
    this.draw();
    return found;
  }

  private zoom(node: TreeNode): void {
    this.top = node;
    this.chosen = null;
    const names = lineage(node);
    fill(this.crumbs, ...names.map((one) => h('li', {}, one === node ? h('span', { 'aria-current': 'true' }, this.short(one))
      : h('button', { type: 'button', class: 'quiet', onclick: () => { this.zoom(one); } }, this.short(one)))));
    this.draw();
    this.say(node);
    this.zoomed(node);
  }

  private short(node: TreeNode): string {
    return node.name.length > 44 ? `${node.name.slice(0, 42)}…` : node.name;
  }

  private choose(node: TreeNode | null): void {
    if (node === this.chosen) return;
    this.chosen = node;
    this.draw();
    if (node ?? this.top) this.say(node ?? this.top ?? null);
  }

  private say(node: TreeNode | null): void {
    if (!node) return;
    const folded = node.frames > 1 ? `, up to ${node.frames} frames` : '';
    fill(this.status, h('strong', {}, node.name), `${node.note === '' ? '' : ` in ${fileName(node.note)}`}${folded}: ${bytes(node.bytes)} `
      + `(${share(node.bytes, this.root?.bytes ?? 0)}) in ${counted(node.count, 'allocation')}`);
  }

  /**
   * Sets the bars: the uppermost one is as wide as the canvas, and those below it are left out if they are too narrow.
   * `width`: pixels of the canvas.
   */
  private layOut(width: number): void {
    this.bars = [];
    const visit = (node: TreeNode, x: number, wide: number, level: number): void => {
      this.bars.push({ node, x, y: level * rowHeight, width: wide });
      let left = x;
      for (const one of node.children) {
        const part = node.bytes > 0 ? (one.bytes / node.bytes) * wide : wide / node.children.length;
        if (part >= leastWidth) visit(one, left, part, level + 1);
        left += part;
      }
    };
    if (this.top) visit(this.top, 0, width, 0);
  }

  private draw(): void {
    const width = this.element.clientWidth;
    if (width === 0 || !this.top) return;
    this.layOut(width);
    const height = Math.max(...this.bars.map((bar) => bar.y)) + rowHeight;
    const ratio = devicePixelRatio;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    this.canvas.setAttribute('aria-label', `Icicle of ${this.top.name}: ${bytes(this.top.bytes)}. Arrow keys go to callers, callees and neighbours, Enter zooms in, Escape zooms out. The table below has the same figures.`);
    const ctx = this.canvas.getContext('2d');
    if (!ctx) return;
    ctx.scale(ratio, ratio);
    ctx.font = '12px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    const ink = styleColour('--bar-ink');
    const paper = styleColour('--paper');
    const hit = styleColour('--hit');
    for (const bar of this.bars) this.drawBar(ctx, bar, { ink, paper, hit });
  }

  private drawBar(ctx: CanvasRenderingContext2D, bar: Bar, colours: { ink: string; paper: string; hit: string }): void {
    const isFaded = this.search !== '' && !this.hits.has(bar.node);
    ctx.globalAlpha = isFaded ? 0.35 : 1;
    ctx.fillStyle = this.hits.has(bar.node) ? colours.hit : styleColour(`--code-${bar.node.code}`);
    ctx.fillRect(bar.x, bar.y, Math.max(0.5, bar.width - 1), rowHeight - 1);
    ctx.globalAlpha = 1;
    if (bar.node === this.chosen) {
      ctx.strokeStyle = colours.ink;
      ctx.lineWidth = 2;
      ctx.strokeRect(bar.x + 1, bar.y + 1, Math.max(0, bar.width - 3), rowHeight - 3);
    }
    if (bar.width < 28) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bar.x + 3, bar.y, bar.width - 7, rowHeight);
    ctx.clip();
    ctx.fillStyle = colours.ink;
    const size = bar.width > 190 ? `  ${bytes(bar.node.bytes)}` : '';
    const folded = bar.node.frames > 1 ? ` (${bar.node.frames} frames)` : '';
    ctx.fillText(`${bar.node.name}${folded}${size}`, bar.x + 5, bar.y + rowHeight / 2);
    ctx.restore();
  }

  private barAt(event: MouseEvent): Bar | undefined {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    return this.bars.find((bar) => x >= bar.x && x < bar.x + bar.width && y >= bar.y && y < bar.y + rowHeight);
  }

  private key(event: KeyboardEvent): void {
    const at = this.chosen ?? this.top;
    if (!at) return;
    const beside = (step: number): TreeNode | undefined => {
      const row = at.parent?.children ?? [];
      return row[row.indexOf(at) + step];
    };
    const isTop = at === this.top;
    const goals: Record<string, TreeNode | null | undefined> = {
      ArrowDown: at.children[0], ArrowUp: isTop ? null : at.parent, ArrowRight: isTop ? null : beside(1), ArrowLeft: isTop ? null : beside(-1),
    };
    if (event.key in goals) {
      const goal = goals[event.key];
      if (goal) this.choose(goal);
    } else if (event.key === 'Enter') {
      this.zoom(at);
    } else if (event.key === 'Escape') {
      this.zoom(this.top?.parent ?? this.top ?? at);
    } else {
      return;
    }
    event.preventDefault();
  }
}
