// The section about memory that was not freed: a table that sorts and filters.
import { apartByStack } from './apart';
import type { Page, RawReport } from './data';
import { h, section } from './dom';
import { stackList } from './stack_list';
import { DataTable } from './table';
import { bytes, count, duration, endedByItself, growthWords, location } from './words';

/**
 * Returns a test of stacks by their number: true if a frame of the stack has the text in its function, file, module or
 * library, in small or capital letters.
 */
export function stackMatcher(page: Page, text: string): (stack: number) => boolean {
  const wanted = text.toLowerCase();
  const frames = new Map<number, boolean>();
  const has = new Uint8Array(page.parents.length);
  // A node has a larger number than its parent, so that the parent's result is there already.
  for (let node = 1; node < has.length; ++node) {
    const number = page.nodeFrames[node] ?? 0;
    let isHit = frames.get(number);
    if (isHit === undefined) {
      const frame = page.frame(number);
      isHit = `${frame.name} ${frame.file} ${frame.module} ${frame.library}`.toLowerCase().includes(wanted);
      frames.set(number, isHit);
    }
    has[node] = isHit || has[page.parents[node] ?? 0] === 1 ? 1 : 0;
  }
  return (stack) => has[page.leaf(stack)] === 1;
}

function found(page: Page, report: RawReport, at: number): string {
  const { groups } = report;
  const aside = groups.set_aside[at];
  if (aside === 2) return 'went with its context';
  if (aside === 1) return 'suppressed';
  return page.text(groups.reachability[at]);
}

function details(page: Page, report: RawReport, at: number): Node {
  const { groups } = report;
  const first = groups.first[at] ?? null;
  const last = first === null ? null : first + (groups.during[at] ?? 0);
  const made = groups.made[at] ?? 0;
  const left = groups.count[at] ?? 0;
  const facts: string[] = [];
  if (first !== null && last !== null) facts.push(first === last ? `made at ${duration(first * 1000)}` : `made between ${duration(first * 1000)} and ${duration(last * 1000)}`);
  if (made > left) facts.push(`${count(made - left)} of ${count(made)} made here were freed`);
  if ((groups.rate[at] ?? 0) > 0) facts.push(`grew by ${bytes(groups.rate[at])} a minute`);
  if ((groups.lost[at] ?? 0) > 0) facts.push(`${bytes(groups.lost[at])} lost: no pointer is left`);
  const fingerprint = groups.fingerprint[at] ?? null;
  return h('div', {},
    h('p', { class: 'line' }, facts.join('; ')),
    fingerprint === null ? null : h('p', { class: 'line' }, 'Fingerprint, as in cuwarden diff: ', h('code', {}, fingerprint)),
    stackList(page, groups.stack[at] ?? 0));
}

/** Returns the section about memory that was not freed; about live memory if the process did not end by itself. */
export function groupsSection(page: Page, report: RawReport): HTMLElement {
  const { groups } = report;
  const isRunning = report.process.reason === 'running';
  const isLive = !endedByItself(report.process);
  const table = new DataTable<number>({
    caption: isLive ? 'Live memory by call stack' : 'Memory that was not freed, by call stack',
    empty: isRunning ? 'Nothing is allocated.' : 'All recorded memory was freed.',
    sorted: 1,
    columns: [
      { title: 'Allocated at', text: (at) => location(page.usersFrame(groups.stack[at] ?? 0)) },
      { title: 'Bytes', number: true, text: (at) => bytes(groups.bytes[at]), order: (at) => groups.bytes[at] ?? 0 },
      { title: 'In', number: true, text: (at) => count(groups.count[at]), order: (at) => groups.count[at] ?? 0 },
      { title: 'Growth', text: (at) => growthWords(page.text(groups.growth[at])), shown: (at) => {
        const words = growthWords(page.text(groups.growth[at]));
        return h('span', { class: words === 'growing' ? 'chip bad' : '' }, words);
      } },
      { title: 'Pointers', text: (at) => found(page, report, at), shown: (at) => {
        const words = found(page, report, at);
        return h('span', { class: words === 'lost' ? 'chip bad' : '' }, words);
      } },
      { title: 'Memory', text: (at) => page.memory(page.text(groups.kind[at]), groups.device[at]) },
      { title: 'Function', text: (at) => page.text(groups.api[at]) },
      { title: 'Module', text: (at) => page.text(groups.module[at]) },
    ],
    filter: (text) => {
      const wanted = text.toLowerCase();
      const matches = stackMatcher(page, text);
      return (at) => matches(groups.stack[at] ?? 0)
        || `${page.text(groups.api[at])} ${page.text(groups.module[at])} ${page.memory(page.text(groups.kind[at]), groups.device[at])} ${page.text(groups.growth[at])} ${found(page, report, at)}`.toLowerCase().includes(wanted);
    },
    details: (at) => details(page, report, at),
    apart: apartByStack(page, (at) => groups.stack[at] ?? 0),
  });
  table.show(groups.stack.map((_, at) => at));
  return section('groups', isLive ? 'Live memory' : 'Not freed', 'A row for each call stack, kind, function and device. Open a row for its stack.', table.element);
}
