// The data of the page, as `reporters/exports/page` writes it. Tables are objects with a list for each column. Times
// are microseconds since the start of the process, unless their comment names another unit. Stacks and texts are
// numbers of rows in the tables of RawPage. Null: unknown.

import { own } from './words';

/** A number; null: unknown. For the ordinal of a device, null is host memory. */
export type Maybe = number | null;
/** A text; null: unknown. */
export type MaybeText = string | null;

/** A notice of the summary: a sentence about an event, with further lines. */
export interface Notice {
  /** Gravity of the event. leak: the notice is about the allocations of one call stack. */
  tone: 'bad' | 'warning' | 'good' | 'plain' | 'leak';
  title: string;
  lines: string[];
  /** Number of the call stack of the event; 0: none. */
  stack: number;
  /** Id of the incident of which the notice tells; null: none. */
  incident: Maybe;
}

/** Facts about the process of a report. */
export interface ProcessFacts {
  path: string;
  program: string;
  pid: Maybe;
  host: MaybeText;
  command: string;
  start: string;
  /** Start of the process in milliseconds since 1970; null: unknown. */
  epoch: Maybe;
  /**
   * End of the process, or moment of the snapshot, in microseconds since the start of the process; null: unknown.
   */
  end: Maybe;
  /** Words about the end of the process, such as "exited with status 0 after 9.8 s". */
  ending: string;
  /**
   * Way in which the process ended: "exit", "_exit", "quick_exit", "abort" or "signal"; null: unknown. "running": the
   * process had not ended, and the report is a snapshot.
   */
  reason: MaybeText;
  /** Number of steps that the program has marked; null: it marks none. */
  steps: Maybe;
  driver: MaybeText;
  package: MaybeText;
  runtime: MaybeText;
  rank: Maybe;
  job: MaybeText;
  scheduler: MaybeText;
  visible: MaybeText;
  /** 1: private facts were taken out of the report; 0: they were not. */
  redacted: number;
  tool: MaybeText;
  /**
   * Lowest memory limit of the process's cgroup and of those above it, in bytes; null: no limit. Left out: the report
   * has no facts about a cgroup.
   */
  cgroup_limit?: Maybe;
  cgroup_peak?: Maybe;
  oom_kills?: Maybe;
  recorded_calls?: Maybe;
  /** Time that cuwarden took for recording, in microseconds; null or left out: unknown. */
  shim_us?: Maybe;
}

/** Live bytes of one kind of memory on one device over time, in spans that follow each other. */
export interface Series {
  kind: string;
  device: Maybe;
  /** Begins of the spans in microseconds since the start of the process, rising. */
  time: number[];
  /** Lengths of the spans in microseconds; null: unknown. */
  width: Maybe[];
  /** Highest live bytes in each span; live bytes at its end if the report lacks the highest; null: unknown. */
  most: Maybe[];
  /** Live bytes at the end of each span; null: unknown. */
  last: Maybe[];
}

/** The slabs of one device at one moment. A slab is a unit of 2 MiB that the driver cuts small requests from. */
export interface SlabMap {
  /**
   * incident: the map was made at a refused request. worst: when most memory was locked. end: at the end of the
   * process.
   */
  moment: 'incident' | 'worst' | 'end';
  /** Id of the incident; null unless `moment` is "incident". */
  incident: Maybe;
  device: Maybe;
  time: Maybe;
  /** Number of all slabs of the device at the moment of the map; the report may list fewer. Null: unknown. */
  count: Maybe;
  /** Bytes that were freed, but are locked in slabs with live pieces; null: unknown. */
  locked: Maybe;
  /** Size of a slab in bytes. */
  page_bytes: number;
  /** Distance of each slab from the slab before, in slabs; for the first slab, from address 0. */
  step: number[];
  /** Number of live pieces (small allocations) in each slab; null: unknown. */
  live: Maybe[];
  /** Live bytes in each slab; null: unknown. */
  bytes: Maybe[];
  /** Size in bytes of the pieces that have most of each slab's live bytes, rounded up to a power of two. */
  piece: Maybe[];
  /** Number of pieces of the size `piece` that fit into each slab; null: unknown. */
  slots: Maybe[];
  /** Lists of stacks, to which `set` refers. List 0 is empty. */
  sets: number[][];
  /**
   * Number of each slab's list in `sets`: at most 4 stacks with the most live pieces in the slab, most pieces first.
   * List 0: the stacks are unknown. Empty: each slab has list 0.
   */
  set: number[];
  /** Call stacks with live pieces in these slabs. `locked`: bytes that are locked because of these pieces. */
  holders: { stack: number[]; count: Maybe[]; bytes: Maybe[]; locked: Maybe[] };
}

/**
 * Memory that was not freed: a row for each call stack, function, kind of memory and device. The columns `kind`, `api`,
 * `module`, `growth` and `reachability` have numbers of texts (Page.text()).
 */
export interface Groups {
  stack: number[];
  kind: number[];
  api: number[];
  module: number[];
  device: Maybe[];
  bytes: Maybe[];
  count: Maybe[];
  /** Number of all allocations of the row, freed ones included; null: unknown. */
  made: Maybe[];
  /**
   * Time at which the oldest allocation that was not freed was made, in milliseconds since the start of the process;
   * null: unknown.
   */
  first: Maybe[];
  /** Milliseconds from the oldest allocation that was not freed to the newest one; null: unknown. */
  during: Maybe[];
  growth: number[];
  /** Growth in bytes per minute; null: the memory does not grow by time. */
  rate: Maybe[];
  reachability: number[];
  /** Bytes to which no pointer was found; null: no pointers were looked for. */
  lost: Maybe[];
  /** 0: the row counts as not freed. 1: suppressed by a rule of the user. 2: released by the end of its context. */
  set_aside: number[];
  fingerprint: MaybeText[];
}

/** The data of one report. */
export interface RawReport {
  process: ProcessFacts;
  summary: Notice[];
  /** Reasons why the report lacks something; empty: the report is complete. */
  lacks: string[];
  /**
   * Size, used and free bytes of each device, as the driver gave them at the last reading. `at`: "exit" if the device
   * was read at the end of the process; "last_call" if at a CUDA call before; null: never.
   */
  devices: {
    device: number[]; name: MaybeText[]; uuid: MaybeText[]; at: MaybeText[]; time: Maybe[];
    total: Maybe[]; used: Maybe[]; free: Maybe[];
  };
  /**
   * Parts of the used memory of devices. `incident`: id of the refused request at which the device was read; null: the
   * last reading.
   */
  accounts: { device: number[]; incident: Maybe[]; item: string[]; words: string[]; bytes: Maybe[] };
  /**
   * Totals of each kind of memory on each device over the whole run. `made`, `made_bytes`: all allocations, freed ones
   * included. `failures`: number of refused requests. `count`, `bytes`: live allocations at the end. `peak_count`,
   * `peak_bytes`: highest live ones. `peak_time`: moment of `peak_bytes`, in microseconds since the process's start.
   */
  totals: {
    kind: string[]; device: Maybe[]; made: Maybe[]; made_bytes: Maybe[]; failures: Maybe[]; count: Maybe[]; bytes: Maybe[];
    peak_count: Maybe[]; peak_bytes: Maybe[]; peak_time: Maybe[];
  };
  timeline: Series[];
  /**
   * Refused requests. `time`: microseconds since the process's start. `bytes`: size of the request. `repeats`: number
   * of refusals of the incident after the first one.
   */
  incidents: {
    id: number[]; time: Maybe[]; api: MaybeText[]; bytes: Maybe[]; device: Maybe[]; outcome: string[];
    verdict: string[]; repeats: Maybe[]; stack: number[];
  };
  /**
   * Call stacks that held memory at incidents. `growth`: bytes per minute. `locked`: bytes of slabs that cannot be used
   * because of them.
   */
  holders: {
    incident: number[]; stack: number[]; kind: string[]; count: Maybe[]; bytes: Maybe[]; growth: Maybe[];
    locked: Maybe[];
  };
  groups: Groups;
  /** Call stacks that held memory at the peak of each kind. `kind`: number of a text (Page.text()). */
  peaks: { stack: number[]; kind: number[]; device: Maybe[]; bytes: Maybe[]; count: Maybe[]; made: Maybe[] };
  /**
   * Call stacks with blocks of frameworks, such as tensors, that were not given back. `api`, `growth`: numbers of texts
   * (Page.text()): the name of the framework, and how the blocks grow, such as "growing". `made`: number of all blocks
   * of the stack, given back or not; null: unknown.
   */
  sites: {
    stack: number[]; api: number[]; device: Maybe[]; bytes: Maybe[]; count: Maybe[]; made: Maybe[]; growth: number[];
  };
  /**
   * Call stacks that made contexts, modules, streams or graphs, for which the driver took memory. `kind`, `api`:
   * numbers of texts (Page.text()).
   */
  objects: { stack: number[]; kind: number[]; api: number[]; device: Maybe[]; bytes: Maybe[]; count: Maybe[] };
  /**
   * Call stacks that allocated most bytes over the whole run, freed or not. `kind`, `api`: numbers of texts
   * (Page.text()).
   */
  allocated: { stack: number[]; kind: number[]; api: number[]; device: Maybe[]; bytes: Maybe[]; count: Maybe[] };
  /**
   * Steps that the program marked. `time`: start of the step. `name`: number of a text; 0: no name. `name_end`: end of
   * the part of the run that has the name; null: the name holds until the next name, or there is no name. Times are
   * microseconds since the start of the process.
   */
  steps: { number: Maybe[]; time: Maybe[]; name: number[]; name_end: Maybe[] };
  /**
   * Figures that frameworks gave of their own memory, in bytes. `reserved`: taken from CUDA. `allocated`: handed out to
   * the program. `peak`: highest `allocated`. `holes`: free parts of memory of which other parts are handed out.
   * `time`: moment of the figures, in microseconds since the process's start. `incident`: id of the refused request at
   * which they were given; null: they are the latest ones.
   */
  frameworks: {
    framework: string[]; pool: MaybeText[]; device: Maybe[]; incident: Maybe[]; time: Maybe[]; reserved: Maybe[];
    allocated: Maybe[]; peak: Maybe[]; holes: Maybe[];
  };
  slabs: SlabMap[];
  /** Settings of cuwarden, and environment variables. `source`: where the value comes from, such as "default". */
  settings: { name: string; value: MaybeText; source: MaybeText }[];
}

/** A leak that differs between two reports. */
export interface Change {
  change: 'new' | 'grown' | 'smaller' | 'gone';
  fingerprint: string;
  kind: string;
  api: string;
  stack: number;
  /** Bytes of the leak in the first report; `bytes` has those in the second. */
  bytes_before: number;
  bytes: number;
  /** Number of the leak's allocations in the first report; `count` has that in the second. */
  count_before: number;
  count: number;
}

/**
 * The difference between the leaks of two reports. `unchanged`, `suppressed`: numbers of leaks that are not among the
 * rows.
 */
export interface Difference {
  unchanged: number;
  suppressed: number;
  rows: Change[];
}

/** The data of the page. */
export interface RawPage {
  /** Version of the cuwarden that made the page. */
  version: string;
  /** Words for each kind of memory, by the name of the kind. */
  kinds: Record<string, string>;
  /** Texts by number; number 0 is the empty text. */
  strings: string[];
  /**
   * Frames by number. Columns of texts have numbers of `strings`. `flags`: 1 for Python, and 2 more for an inlined
   * function.
   */
  frames: {
    name: number[]; short: number[]; file: number[]; module: number[]; library: number[]; line: number[];
    flags: number[];
  };
  /**
   * The tree of the frames of all stacks. `up`: number of the node minus that of its parent, the caller. `frame`:
   * number of the node's frame. Node 0 is the root.
   */
  nodes: { up: number[]; frame: number[] };
  /**
   * Call stacks by number; number 0 is the unknown stack. `step`: node of the innermost frame minus that of the stack
   * before. `users`: number of frames inside the frame that a person would name. `truncated`: 1 if outer frames were
   * not recorded.
   */
  stacks: { step: number[]; users: number[]; truncated: number[] };
  reports: RawReport[];
  /** Difference between the leaks of the two reports of the page; null if the page does not have two reports. */
  difference: Difference | null;
}

/**
 * The kind of code of a frame, which gives the frame its colour. own, python: native and Python code of the program.
 * cuda: CUDA's libraries. system: libraries of the system. library: other libraries, such as PyTorch.
 */
export type Code = 'own' | 'python' | 'library' | 'cuda' | 'system';

/** A frame of a call stack: one function. */
export interface Frame {
  name: string;
  /** Name of the function without arguments of templates and parameters. */
  short: string;
  file: string;
  module: string;
  /** Name of the library to which the code belongs, such as "PyTorch"; empty: the program's own code. */
  library: string;
  /** Number of the line of the source file; 0: unknown. */
  line: number;
  python: boolean;
  inlined: boolean;
  code: Code;
}

/** The data of the page, with its call stacks. */
export class Page {
  /** Number of the parent of each node in the tree of frames. */
  readonly parents: Uint32Array;
  /** Number of the frame of each node in the tree of frames. */
  readonly nodeFrames: Uint32Array;
  /** Node of the innermost frame of each stack; 0: the stack is unknown. */
  private readonly leaves: Uint32Array;
  private readonly frames: Frame[];

  constructor(readonly raw: RawPage) {
    this.parents = Uint32Array.from(raw.nodes.up, (up, node) => node - up);
    this.nodeFrames = Uint32Array.from(raw.nodes.frame);
    let leaf = 0;
    this.leaves = Uint32Array.from(raw.stacks.step, (step) => (leaf += step));
    this.frames = raw.frames.name.map((_, at) => this.readFrame(at));
  }

  /** Returns the text that has this number in RawPage.strings; empty if there is none. */
  text(number: number | undefined): string {
    return this.raw.strings[number ?? 0] ?? '';
  }
  /**
   * Returns words for a kind of memory and its device, such as "device memory (GPU 0)". `device`: null or undefined:
   * the words name no device.
   */
  memory(kind: string, device: Maybe | undefined): string {
    if (kind === 'framework_block') return `blocks of frameworks${device === null || device === undefined ? '' : ` (GPU ${device})`}`;
    const words = kind === 'host_rss' ? 'resident host memory (RSS)' : (own(this.raw.kinds, kind) ?? kind).replace(/_/g, ' ');
    return device === null || device === undefined ? words : `${words} (GPU ${device})`;
  }
  /** Returns the frame with this number; the unknown frame if there is none. */
  frame(number: number): Frame {
    return this.frames[number] ?? this.readFrame(0);
  }
  /** Returns the number of the tree's node for the innermost frame of the stack; 0: the stack is unknown. */
  leaf(stack: number): number {
    return this.leaves[stack] ?? 0;
  }
  /** True if outer frames of the stack were not recorded. */
  isTruncated(stack: number): boolean {
    return this.raw.stacks.truncated[stack] === 1;
  }
  /** Returns the frames of the stack with this number, innermost first; empty if the stack is unknown. */
  stack(stack: number): Frame[] {
    const frames: Frame[] = [];
    for (let node = this.leaf(stack); node !== 0; node = this.parents[node] ?? 0)
      frames.push(this.frame(this.nodeFrames[node] ?? 0));
    return frames;
  }
  /**
   * Returns the frame that a person would name for the stack, usually the innermost one of the program's own code;
   * null: the stack is unknown.
   */
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
