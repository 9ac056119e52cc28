// Distinguishes rows of a table that have the same text, by a frame in which their call stacks differ.
import type { Page } from './data';
import { location } from './words';

/**
 * Returns words about the frames of a stack, as seen from the frame that a person would name: its callers, nearest
 * first, then the frames that it calls.
 */
function framesInWords(page: Page, stack: number): string[] {
  const frames = page.stack(stack);
  const users = page.usersFrame(stack);
  const at = Math.max(0, frames.findIndex((frame) => frame === users));
  return [...frames.slice(at + 1).map((frame) => `called from ${location(frame)}`), ...frames.slice(0, at).reverse().map((frame) => `calling ${location(frame)}`)];
}

/**
 * Returns, for each of the stacks, words that say how it differs from the others. `rows`: the texts of each stack's row
 * in a table, in one text.
 */
export function apart(page: Page, stacks: number[], rows: string[]): string[] {
  const words = new Map([...new Set(stacks)].map((stack) => [stack, framesInWords(page, stack)]));
  // Words about a frame → number of different stacks that have the frame.
  const numbers = new Map<string, number>();
  for (const frames of words.values()) for (const text of new Set(frames)) numbers.set(text, (numbers.get(text) ?? 0) + 1);
  const keys = stacks.map((stack, at) => `${stack} ${rows[at] ?? ''}`);
  const all = new Map<string, number>();
  for (const key of keys) all.set(key, (all.get(key) ?? 0) + 1);
  const seen = new Map<string, number>();
  return stacks.map((stack, at) => {
    const key = keys[at] ?? '';
    const same = all.get(key) ?? 0;
    const turn = (seen.get(key) ?? 0) + 1;
    seen.set(key, turn);
    const rarest = (words.get(stack) ?? []).reduce<string | null>(
      (best, text) => (best === null || (numbers.get(text) ?? 0) < (numbers.get(best) ?? 0) ? text : best), null);
    const shared = rarest === null ? words.size : (numbers.get(rarest) ?? 0);
    const parts: string[] = [];
    if (words.size > 1 && rarest !== null && shared < words.size) parts.push(rarest);
    // If other stacks have the frame, too, the number of the stack follows.
    if (words.size > 1 && shared > 1) parts.push(stack === 0 ? 'no stack' : `stack ${stack}`);
    if (same > 1) parts.push(`${turn} of ${same} with these frames`);
    return parts.join(', ');
  });
}

/**
 * Returns a function for TableOptions.apart that distinguishes rows by their call stacks. `stackOf`: returns the number
 * of a row's stack.
 */
export function apartByStack<Row>(page: Page, stackOf: (row: Row) => number): (rows: Row[], texts: string[]) => string[] {
  return (rows, texts) => apart(page, rows.map(stackOf), texts);
}
