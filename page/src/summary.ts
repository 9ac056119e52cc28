// The section with the sentences of the text report: what happened, and what to do.
import { apart } from './apart';
import type { Notice, Page, RawReport } from './data';
import { h, section } from './dom';
import { foldedStack } from './stack_list';
import { bytes, cut, endedByItself, location } from './words';

const tones: Record<Notice['tone'], string> = { bad: 'Look here', warning: 'Note', good: 'All well', plain: '', leak: '' };

/** Returns the title of a notice as an element. Its first words in capitals, such as "OUT OF MEMORY", are marked. */
function title(notice: Notice): HTMLElement {
  const mark = /^([A-Z][A-Z ]+[A-Z])(: | when | at | by |$)/.exec(notice.title)?.[1];
  const words = h('p', { class: 'title' });
  if (tones[notice.tone] !== '') words.append(h('span', { class: 'hidden' }, `${tones[notice.tone]}: `));
  if (mark === undefined) words.append(notice.title);
  else words.append(h('strong', { class: 'marked' }, mark), notice.title.slice(mark.length));
  return words;
}

/**
 * Returns the notice with very long names of functions cut, in its title and lines. Call stacks have the whole names.
 */
export function withShortNames(page: Page, report: RawReport, row: Notice): Notice {
  const { holders } = report;
  const held = row.incident === null ? [] : holders.stack.filter((_, at) => holders.incident[at] === row.incident);
  const names = new Set([row.stack, ...held].flatMap((stack) => page.stack(stack).map((frame) => frame.short)));
  // A longer name may have a shorter one in it.
  const long = [...names].filter((name) => cut(name) !== name).sort((one, other) => other.length - one.length);
  const shorten = (text: string): string => long.reduce((words, name) => words.replaceAll(name, () => cut(name)), text);
  return long.length === 0 ? row : { ...row, title: shorten(row.title), lines: row.lines.map(shorten) };
}

const toDo = 'To do: ';

/** Returns the advice of the notice: the text behind "To do: " in one of its lines; undefined if no line has it. */
export function adviceOf(row: Notice): string | undefined {
  return row.lines.find((line) => line.startsWith(toDo))?.slice(toDo.length);
}

function notice(page: Page, row: Notice, showIncident: (id: number) => void, difference = ''): HTMLElement {
  const isIncident = row.incident !== null;
  const advice = adviceOf(row);
  const box = h('li', { class: `notice ${row.tone}` }, title(row));
  if (row.stack !== 0 && row.tone === 'leak') box.append(h('p', { class: 'where' }, `at ${location(page.usersFrame(row.stack))}${difference === '' ? '' : `, ${difference}`}`));
  if (advice !== undefined) box.append(h('p', { class: 'advice' }, advice));
  const others = row.lines.filter((line) => !line.startsWith(toDo));
  // If the notice gives advice, the first other line is the cause of the event.
  others.forEach((line, at) => {
    box.append(h('p', { class: at === 0 && advice !== undefined ? 'cause' : 'line' }, line));
  });
  if (row.stack !== 0) {
    box.append(foldedStack(page, row.stack, isIncident ? `Asked for at ${location(page.usersFrame(row.stack))}` : 'Call stack'));
  }
  const { incident } = row;
  if (incident !== null) {
    box.append(h('p', { class: 'actions' }, h('button', {
      type: 'button', class: 'quiet', onclick: () => { showIncident(incident); },
    }, 'Show the holders at that moment')));
  }
  return box;
}

function figures(report: RawReport): HTMLElement {
  const list = h('dl', { class: 'figures' });
  const add = (name: string, value: string, note: string): void => {
    list.append(h('div', {}, h('dt', {}, name), h('dd', {}, h('span', { class: 'figure' }, value), h('span', { class: 'note' }, note))));
  };
  const { totals, devices, incidents } = report;
  const largest = totals.peak_bytes.reduce<number>((best, value, at) => ((value ?? 0) > (totals.peak_bytes[best] ?? 0) ? at : best), 0);
  if (totals.kind.length > 0) add('Peak', bytes(totals.peak_bytes[largest]), `${(totals.kind[largest] ?? '').replace(/_/g, ' ')} memory`);
  const left = report.groups.bytes.reduce<number>((sum, value, at) => sum + (report.groups.set_aside[at] === 0 ? (value ?? 0) : 0), 0);
  const isRunning = report.process.reason === 'running';
  add(endedByItself(report.process) ? 'Not freed' : 'Live', bytes(left), isRunning ? 'at that moment' : 'at the end');
  devices.device.forEach((device, at) => {
    if (devices.used[at] !== null) add(`GPU ${device}`, bytes(devices.used[at]), `of ${bytes(devices.total[at])} in use ${devices.at[at] === 'exit' ? 'at the end' : 'when read last'}`);
  });
  const failed = incidents.outcome.filter((outcome) => outcome === 'failed').length;
  add('Refused', failed === 0 && incidents.id.length === 0 ? 'none' : String(incidents.id.length), incidents.id.length === 0 ? 'no request failed' : `${failed} failed`);
  return list;
}

/**
 * Returns, for each leak, words that distinguish it from other leaks at the same line of code; empty if there are no
 * others.
 */
function differences(page: Page, leaks: Notice[]): string[] {
  const lines = leaks.map((leak) => location(page.usersFrame(leak.stack)));
  return leaks.map((leak, at) => {
    const alike = leaks.filter((_, other) => lines[other] === lines[at]);
    return alike.length < 2 ? '' : apart(page, alike.map((one) => one.stack), alike.map((one) => one.title))[alike.indexOf(leak)] ?? '';
  });
}

/**
 * Returns the section with the sentences. `showIncident`: is called with the id of an incident that the user chooses.
 */
export function summarySection(page: Page, report: RawReport, showIncident: (id: number) => void): HTMLElement {
  const all = report.summary.map((row) => withShortNames(page, report, row));
  const rest = all.filter((row) => row.tone !== 'leak');
  const leaks = all.filter((row) => row.tone === 'leak');
  const apartWords = differences(page, leaks);
  const first = rest.shift();
  const list = h('ol', { class: 'notices' });
  // If the first notice tells of a failure, it begins the list. Otherwise it is the lead, alone above the list.
  const ordered = first && first.tone === 'bad' ? [first, ...rest] : rest;
  for (const row of ordered) {
    const item = notice(page, row, showIncident);
    if (row === rest.at(-1) && leaks.length > 0)
      item.append(h('ol', { class: 'notices inner' }, ...leaks.map((leak, at) => notice(page, leak, showIncident, apartWords[at]))));
    list.append(item);
  }
  const lead = first && first.tone !== 'bad' ? h('p', { class: 'lead' }, first.title) : null;
  return section('summary', 'What happened', '', lead, figures(report), list);
}
