// The data of the page, as `reporters/exports/page` writes it. Tables are objects with a list for
// each column. Times are microseconds since the start of the process; null is unknown.

import { own } from './words';

export type Maybe = number | null;
export type MaybeText = string | null;

export interface Notice {
  tone: 'bad' | 'warning' | 'good' | 'plain' | 'leak';
  title: string;
  lines: string[];
  stack: number;
  incident: Maybe;
}

export interface ProcessFacts {
  path: string;
  program: string;
  pid: Maybe;
  host: MaybeText;
  command: string;
  start: string;
  /** Start in milliseconds since 1970. */
  epoch: Maybe;
  end: Maybe;
  ending: string;
  reason: MaybeText;
  steps: Maybe;
  driver: MaybeText;
  package: MaybeText;
  runtime: MaybeText;
  rank: Maybe;
  job: MaybeText;
  scheduler: MaybeText;
  visible: MaybeText;
  redacted: number;
  tool: MaybeText;
  cgroup_limit?: Maybe;
  cgroup_peak?: Maybe;
  oom_kills?: Maybe;
  recorded_calls?: Maybe;
  shim_us?: Maybe;
}

export interface Series {
  kind: string;
  device: Maybe;
  time: number[];
  width: Maybe[];
  most: Maybe[];
  last: Maybe[];
}

export interface SlabMap {
  moment: 'incident' | 'worst' | 'end';
  incident: Maybe;
  device: Maybe;
  time: Maybe;
  count: Maybe;
  locked: Maybe;
  page_bytes: number;
  /** Pages since the slab before. */
  step: number[];
  live: Maybe[];
  bytes: Maybe[];
  piece: Maybe[];
  slots: Maybe[];
  holders: { stack: number[]; count: Maybe[]; bytes: Maybe[]; locked: Maybe[] };
}

/** Memory that was not freed. Columns of texts have numbers of strings. */
export interface Groups {
  stack: number[];
  kind: number[];
  api: number[];
  module: number[];
  device: Maybe[];
  bytes: Maybe[];
  count: Maybe[];
  made: Maybe[];
  /** Milliseconds. */
  first: Maybe[];
  during: Maybe[];
  growth: number[];
  /** Bytes per minute. */
  rate: Maybe[];
  reachability: number[];
  lost: Maybe[];
  /** 1: suppressed; 2: released by the end of its context. */
  set_aside: number[];
  fingerprint: MaybeText[];
}

export interface RawReport {
  process: ProcessFacts;
  summary: Notice[];
  lacks: string[];
  devices: {
    device: number[]; name: MaybeText[]; uuid: MaybeText[]; at: MaybeText[]; time: Maybe[];
    total: Maybe[]; used: Maybe[]; free: Maybe[];
  };
  accounts: { device: number[]; incident: Maybe[]; item: string[]; words: string[]; bytes: Maybe[] };
  totals: {
    kind: string[]; device: Maybe[]; made: Maybe[]; made_bytes: Maybe[]; failures: Maybe[]; count: Maybe[]; bytes: Maybe[];
    peak_count: Maybe[]; peak_bytes: Maybe[]; peak_time: Maybe[];
  };
  timeline: Series[];
  incidents: {
    id: number[]; time: Maybe[]; api: MaybeText[]; bytes: Maybe[]; device: Maybe[]; outcome: string[];
    verdict: string[]; repeats: Maybe[]; stack: number[];
  };
  holders: {
    incident: number[]; stack: number[]; kind: string[]; count: Maybe[]; bytes: Maybe[]; growth: Maybe[];
    locked: Maybe[];
  };
  groups: Groups;
  peaks: { stack: number[]; kind: number[]; device: Maybe[]; bytes: Maybe[]; count: Maybe[]; made: Maybe[] };
  sites: {
    stack: number[]; api: number[]; device: Maybe[]; bytes: Maybe[]; count: Maybe[]; made: Maybe[]; growth: number[];
  };
  objects: { stack: number[]; kind: number[]; api: number[]; device: Maybe[]; bytes: Maybe[]; count: Maybe[] };
  /** Stacks that allocated most over the run, freed or not. */
  allocated: { stack: number[]; kind: number[]; api: number[]; device: Maybe[]; bytes: Maybe[]; count: Maybe[] };
  /** `name_end`: when the part of the run that has the name ended; null: it had not, or there is no name. */
  steps: { number: Maybe[]; time: Maybe[]; name: number[]; name_end: Maybe[] };
  frameworks: {
    framework: string[]; pool: MaybeText[]; device: Maybe[]; incident: Maybe[]; time: Maybe[]; reserved: Maybe[];
    allocated: Maybe[]; peak: Maybe[]; holes: Maybe[];
  };
  slabs: SlabMap[];
  settings: { name: string; value: MaybeText; source: MaybeText }[];
}

export interface Change {
  change: 'new' | 'grown' | 'smaller' | 'gone';
  fingerprint: string;
  kind: string;
  api: string;
  stack: number;
  bytes_before: number;
  bytes: number;
  count_before: number;
  count: number;
}

export interface Difference {
  unchanged: number;
  suppressed: number;
  rows: Change[];
}

export interface RawPage {
  version: string;
  kinds: Record<string, string>;
  strings: string[];
  frames: {
    name: number[]; short: number[]; file: number[]; module: number[]; library: number[]; line: number[];
    flags: number[];
  };
  nodes: { up: number[]; frame: number[] };
  stacks: { step: number[]; users: number[]; truncated: number[] };
  reports: RawReport[];
  difference: Difference | null;
}

/** The kind of code that a frame is, which gives it its colour. */
export type Code = 'own' | 'python' | 'library' | 'cuda' | 'system';

export interface Frame {
  name: string;
  short: string;
  file: string;
  module: string;
  library: string;
  line: number;
  python: boolean;
  inlined: boolean;
  code: Code;
}

/** The data of the page, with its call stacks. */
export class Page {
  readonly parents: Uint32Array;
  readonly nodeFrames: Uint32Array;
  private readonly leaves: Uint32Array;
  private readonly frames: Frame[];

  constructor(readonly raw: RawPage) {
    this.parents = Uint32Array.from(raw.nodes.up, (up, node) => node - up);
    this.nodeFrames = Uint32Array.from(raw.nodes.frame);
    let leaf = 0;
    this.leaves = Uint32Array.from(raw.stacks.step, (step) => (leaf += step));
    this.frames = raw.frames.name.map((_, at) => this.readFrame(at));
  }

  /** Returns the text with this number; empty: none. */
  text(number: number | undefined): string {
    return this.raw.strings[number ?? 0] ?? '';
  }
  /** Returns words for a kind of memory, such as "device memory (GPU 0)". */
  memory(kind: string, device: Maybe | undefined): string {
    if (kind === 'framework_block') return `blocks of frameworks${device === null || device === undefined ? '' : ` (GPU ${device})`}`;
    const words = kind === 'host_rss' ? 'resident host memory (RSS)' : (own(this.raw.kinds, kind) ?? kind).replace(/_/g, ' ');
    return device === null || device === undefined ? words : `${words} (GPU ${device})`;
  }
  frame(number: number): Frame {
    return this.frames[number] ?? this.readFrame(0);
  }
  /** Number of the tree's node for the innermost frame of a stack; 0: the stack is unknown. */
  leaf(stack: number): number {
    return this.leaves[stack] ?? 0;
  }
  isTruncated(stack: number): boolean {
    return this.raw.stacks.truncated[stack] === 1;
  }
  /** Returns the frames of a stack, innermost first; none if it is unknown. */
  stack(stack: number): Frame[] {
    const frames: Frame[] = [];
    for (let node = this.leaf(stack); node !== 0; node = this.parents[node] ?? 0)
      frames.push(this.frame(this.nodeFrames[node] ?? 0));
    return frames;
  }
  /** Returns the frame that a person would name for the stack; null: the stack is unknown. */
  usersFrame(stack: number): Frame | null {
    let node = this.leaf(stack);
    if (node === 0) return null;
    for (let left = this.raw.stacks.users[stack] ?? 0; left > 0; --left) node = this.parents[node] ?? 0;
    return this.frame(this.nodeFrames[node] ?? 0);
  }

  private readFrame(at: number): Frame {
    const { name, short, file, module, library, line, flags } = this.raw.frames;
    const python = ((flags[at] ?? 0) & 1) === 1;
    const owner = this.text(library[at]);
    return {
      name: this.text(name[at]),
      short: this.text(short[at]),
      file: this.text(file[at]),
      module: this.text(module[at]),
      library: owner,
      line: line[at] ?? 0,
      python,
      inlined: ((flags[at] ?? 0) & 2) === 2,
      code: owner === 'CUDA' ? 'cuda' : owner === 'system libraries' ? 'system' : owner !== '' ? 'library' : python ? 'python' : 'own',
    };
  }
}
