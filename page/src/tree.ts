// The tree that the icicle shows: frames of call stacks, from the outermost to the innermost, with the bytes that were
// allocated below each.
import type { Code, Frame, Page } from './data';

/** Allocations of one call stack: a row in the form that all sources of the icicle share. */
export interface Weighted {
  stack: number;
  bytes: number;
  count: number;
  /** Text by which rows are grouped above their outermost frames; empty: rows are not grouped. */
  group: string;
  /** Kind of memory, device and CUDA function in words, such as "device memory (GPU 0) · cudaMalloc". */
  words: string;
  /** Text that the icicle shows if the stack is unknown; left out: "no stack was recorded". */
  name?: string;
}

/** A node of the tree: a function, several folded functions of a library, a group, or the root. */
export interface TreeNode {
  name: string;
  /** Further text, such as the module or the file. */
  note: string;
  code: Code | 'group' | 'root';
  /** Bytes of all rows at this node and below it. */
  bytes: number;
  count: number;
  /** Most frames that are folded into the node; 1: none are folded. */
  frames: number;
  parent: TreeNode | null;
  children: TreeNode[];
  /** Rows whose innermost frame is this node. */
  rows: Weighted[];
}

/** A node of a tree that is being made. `byName`: its children, by their names and notes. */
interface Growing extends TreeNode {
  byName: Map<string, Growing>;
}

function fresh(name: string, note: string, code: TreeNode['code'], parent: Growing | null): Growing {
  return { name, note, code, bytes: 0, count: 0, frames: 1, parent, children: [], rows: [], byName: new Map<string, Growing>() };
}

function child(parent: Growing, name: string, note: string, code: TreeNode['code']): Growing {
  const key = `${name}\n${note}`;
  let node = parent.byName.get(key);
  if (!node) {
    node = fresh(name, note, code, parent);
    parent.byName.set(key, node);
    parent.children.push(node);
  }
  return node;
}

/**
 * Returns the nodes of a stack, outermost first. `isFolded`: true: neighbouring frames of one library become one node.
 * `frames` in the result: number of frames in the node.
 */
function path(page: Page, stack: number, isFolded: boolean): { frame: Frame; frames: number }[] {
  const frames = page.stack(stack).reverse();
  const nodes: { frame: Frame; frames: number }[] = [];
  for (const frame of frames) {
    const last = nodes.at(-1);
    if (isFolded && last && frame.library !== '' && last.frame.library === frame.library) ++last.frames;
    else nodes.push({ frame, frames: 1 });
  }
  // Outermost frames, in which the C library starts a program or thread, are left out.
  while (isFolded && nodes.length > 1 && (nodes[0]?.frame.code === 'system' || /^_start$/.test(nodes[0]?.frame.short ?? ''))) nodes.shift();
  return nodes;
}

function finish(node: Growing): void {
  node.children.sort((one, other) => other.bytes - one.bytes);
  node.byName.clear();
  for (const one of node.children) finish(one as Growing);
}

/**
 * Returns the tree of all rows. `isFolded`: true: neighbouring frames of one library become one node. `title`: name of
 * the root.
 */
export function treeOf(page: Page, rows: Weighted[], isFolded: boolean, title: string): TreeNode {
  const root = fresh(title, '', 'root', null);
  const paths = new Map<number, { frame: Frame; frames: number }[]>();
  for (const row of rows) {
    let nodes = paths.get(row.stack);
    if (!nodes) paths.set(row.stack, (nodes = path(page, row.stack, isFolded)));
    let at = root;
    const add = (): void => {
      at.bytes += row.bytes;
      at.count += row.count;
    };
    add();
    if (row.group !== '') {
      at = child(at, row.group, '', 'group');
      add();
    }
    if (nodes.length === 0) {
      at = child(at, row.name ?? 'no stack was recorded', '', 'system');
      add();
    }
    for (const { frame, frames } of nodes) {
      const isLibrary = isFolded && frame.library !== '';
      at = child(at, isLibrary ? frame.library : frame.short, isLibrary ? '' : frame.python ? frame.file : frame.module, frame.code);
      at.frames = Math.max(at.frames, frames);
      add();
    }
    at.rows.push(row);
  }
  finish(root);
  return root;
}

/** Returns all rows at the node and below it. */
export function rowsBelow(node: TreeNode): Weighted[] {
  const rows: Weighted[] = [];
  const rest = [node];
  for (let next = rest.pop(); next; next = rest.pop()) {
    for (const row of next.rows) rows.push(row);
    rest.push(...next.children);
  }
  return rows;
}

/** Returns the nodes from the root to the node. */
export function lineage(node: TreeNode): TreeNode[] {
  const nodes: TreeNode[] = [];
  for (let at: TreeNode | null = node; at; at = at.parent) nodes.unshift(at);
  return nodes;
}
