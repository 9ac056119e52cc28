// Sizes, counts and times as people read them, in the words of the text report.
import type { Frame, Maybe, ProcessFacts } from './data';

/**
 * Returns the record's value for the key; undefined if the record has none. Keys that all objects inherit, such as
 * "toString", do not count.
 */
export function own<Value>(record: Record<string, Value>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/**
 * True if the process ended by itself. False if it was killed or aborted, if it still ran, or if nothing shows how it
 * ended: it may have needed its live memory.
 */
export function endedByItself(process: ProcessFacts): boolean {
  return ['exit', '_exit', 'quick_exit'].includes(process.reason ?? '');
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Returns a number of bytes as text, such as "1.5 GiB"; "unknown" for null. */
export function bytes(value: Maybe | undefined): string {
  if (value === null || value === undefined) return 'unknown';
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 1023.95 && unit < units.length - 1) {
    size /= 1024;
    ++unit;
  }
  return `${value < 0 ? '−' : ''}${unit === 0 ? size : size.toFixed(1)} ${units[unit] ?? ''}`;
}

/** Returns a number with commas; "unknown" for null. */
export function count(value: Maybe | undefined): string {
  return value === null || value === undefined ? 'unknown' : value.toLocaleString('en-US');
}

/** Returns a number with its noun, such as "1 allocation" or "1,200 allocations". */
export function counted(value: Maybe | undefined, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Returns a length of time as text, such as "17.8 s"; "unknown" for null. `us`: microseconds. */
export function duration(us: Maybe | undefined): string {
  if (us === null || us === undefined) return 'unknown';
  if (us < 999.95) return `${us.toFixed(0)} µs`;
  if (us < 999_950) return `${(us / 1e3).toFixed(1)} ms`;
  if (us < 59_950_000) return `${(us / 1e6).toFixed(1)} s`;
  const seconds = Math.round(us / 1e6);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/**
 * Returns the time of day in the time zone of the browser, with the date if the run took more than twelve hours. `us`:
 * microseconds since the start of the process. Empty if the start is unknown.
 */
export function timeOfDay(process: ProcessFacts, us: number): string {
  if (process.epoch === null) return '';
  const date = new Date(process.epoch + us / 1000);
  const two = (value: number): string => String(value).padStart(2, '0');
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const isLong = (process.end ?? 0) > 12 * 3600e6;
  return isLong ? `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}` : time;
}

/**
 * Returns words for a moment, such as "at 14:03:11, 17.8 s into the run". `us`: microseconds since the start of the
 * process; null: unknown.
 */
export function moment(process: ProcessFacts, us: Maybe): string {
  if (us === null) return 'at an unknown time';
  const time = timeOfDay(process, us);
  return time === '' ? `after ${duration(us)}` : `at ${time}, ${duration(us)} into the run`;
}

/** Returns the share of `part` in `whole` as text, such as "83.9 %"; empty if `whole` is 0 or less. */
export function share(part: number, whole: number): string {
  if (whole <= 0) return '';
  const percent = (part / whole) * 100;
  return part > 0 && percent < 0.1 ? '< 0.1 %' : `${percent.toFixed(1)} %`;
}

/** Returns the part of a path behind its last slash. */
export function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Returns the text, cut after 158 characters if it has more than 160. */
export function cut(text: string): string {
  return text.length > 160 ? `${text.slice(0, 158)}…` : text;
}

/** Returns a frame in one line, such as "train.py:41 in step"; "no stack was recorded" if `frame` is null. */
export function location(frame: Frame | null): string {
  if (frame === null) return 'no stack was recorded';
  const file = cut(fileName(frame.file));
  const name = cut(frame.short);
  if (file === '') return frame.module === '' || frame.short.startsWith(frame.module) ? name : `${name} in ${cut(frame.module)}`;
  return `${file}${frame.line > 0 ? `:${frame.line}` : ''} in ${name}`;
}

/** Returns a short name of a process for lists: "rank 3, train.py", or without a rank "train.py (pid 17)". */
export function processName(process: ProcessFacts): string {
  const program = fileName(process.program);
  return process.rank === null ? `${program} (pid ${process.pid ?? 'unknown'})` : `rank ${process.rank}, ${program}`;
}

const growths: Record<string, string> = { growing: 'growing', burst: 'burst', steady: 'steady', one_time: 'one time' };
/** Returns words for a name of growth in reports, such as "one time" for "one_time". */
export function growthWords(name: string): string {
  return own(growths, name) ?? name;
}
