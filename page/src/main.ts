// The page: reads its data, and shows the parts of a report in the order in which a person needs them.
import { accountsSection } from './accounts';
import { Page, type RawReport } from './data';
import { differenceSection } from './difference';
import { choice, fill, h } from './dom';
import { factsSection } from './facts';
import { groupsSection } from './groups';
import { incidentsPart, type IncidentsPart } from './incidents';
import { pageData } from './inflate';
import { byRank, failedFirst, ranksSection } from './ranks';
import { slabsSection } from './slabs';
import { stacksSection } from './stacks';
import { summarySection } from './summary';
import { startTheme } from './theme';
import { comparedTimelines, timelineSection } from './timeline';
import { fileName, processName } from './words';

function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page lacks its element ${id}`);
  return element;
}

function goTo(id: string): void {
  document.getElementById(id)?.scrollIntoView({ block: 'start' });
  document.getElementById(`${id}-title`)?.focus({ preventScroll: true });
}

type Maker = () => HTMLElement;

/** Returns functions that make the sections of a report, in the order in which they are shown. */
function partsOf(page: Page, report: RawReport): Maker[] {
  let incidents: IncidentsPart | null = null;
  const showIncident = (id: number): void => {
    incidents?.show(id);
    goTo('incidents');
  };
  const makers: Maker[] = [
    () => summarySection(page, report, showIncident), () => timelineSection(page, report, showIncident), () => accountsSection(page, report),
  ];
  if (report.incidents.id.length > 0) makers.push(() => (incidents = incidentsPart(page, report)).element);
  if (report.slabs.length > 0) makers.push(() => slabsSection(page, report));
  makers.push(() => stacksSection(page, report), () => groupsSection(page, report), () => factsSection(report));
  return makers;
}

let watcher: IntersectionObserver | null = null;

/** Shows a link to each section, and marks the link of the section that is on the screen. */
function showTabs(parts: HTMLElement[]): void {
  watcher?.disconnect();
  const links = new Map<string, HTMLElement>();
  const list = h('ul', {}, ...parts.map((part) => {
    const link = h('a', { href: `#${part.id}`, onclick: (event: Event) => {
      event.preventDefault();
      // The page's address gets the name of the section, so that a person who gets it sees this section.
      history.replaceState(null, '', `#${part.id}`);
      goTo(part.id);
    } }, part.querySelector('h2')?.textContent ?? '');
    links.set(part.id, link);
    return h('li', {}, link);
  }));
  fill(byId('tabs'), list);
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const [id, link] of links) {
        if (id === entry.target.id) link.setAttribute('aria-current', 'true');
        else link.removeAttribute('aria-current');
      }
    }
  }, { rootMargin: '-20% 0px -70% 0px' });
  for (const part of parts) observer.observe(part);
  watcher = observer;
}

/** Number of calls of show(). A call that is not the last one makes no more sections. */
let shows = 0;

/**
 * Shows the report with the index `chosen`. Sections below the first screen are made later, so that the first sections
 * are seen at once.
 */
async function show(page: Page, chosen: number): Promise<void> {
  const turn = ++shows;
  const { reports, difference } = page.raw;
  const report = reports[chosen];
  if (!report) return;
  document.title = `${fileName(report.process.program)}: cuwarden report`;
  const [before, now] = reports;
  const makers = partsOf(page, report);
  if (reports.length > 2) makers.unshift(() => ranksSection(page, (at) => { void show(page, at); goTo('summary'); }));
  if (reports.length === 2 && before && now && difference) makers.unshift(() => comparedTimelines(page, before, now), () => differenceSection(page, difference));
  fill(byId('which'), reports.length > 1
    ? choice('Report', reports.map((one, at) => ({ value: String(at), text: `${reports.length === 2 ? (at === 0 ? 'before: ' : 'now: ') : ''}${processName(one.process)}` })), String(chosen), (value) => { void show(page, Number(value)); })
    : h('h1', {}, fileName(report.process.program)));
  if (reports.length > 1) byId('which').prepend(h('h1', { class: 'hidden' }, `cuwarden: ${reports.length} reports`));
  const parts = makers.splice(0, 4).map((make) => make());
  fill(byId('content'), ...parts);
  showTabs(parts);
  performance.mark('first parts');
  for (const make of makers) {
    await new Promise((resolve) => { setTimeout(resolve); });
    if (turn !== shows) return;
    const part = make();
    parts.push(part);
    byId('content').append(part);
    showTabs(parts);
  }
}

async function start(): Promise<void> {
  const data = await pageData();
  // Two reports are compared, the earlier one first. More reports are those of the processes of a job.
  const isJob = data.reports.length > 2;
  const page = new Page(isJob ? { ...data, reports: byRank(data.reports) } : data);
  startTheme(byId('theme'));
  fill(byId('made'), `Made by cuwarden ${page.raw.version}. The page holds all of its data and asks nothing of the network.`);
  if (page.raw.reports.length === 0) fill(byId('content'), h('p', { class: 'loading' }, 'The page has no report in it.'));
  await show(page, isJob ? failedFirst(page.raw.reports) : page.raw.reports.length - 1);
  // The browser could not find the section that the address names, since it was not made yet.
  if (location.hash.length > 1) goTo(location.hash.slice(1));
  document.documentElement.dataset.ready = 'true';
}

start().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  fill(byId('content'), h('h1', {}, 'The report cannot be shown'),
    h('p', { class: 'loading', role: 'alert' }, `The file may be cut short: make it again with cuwarden export --format html. (${reason})`));
  document.documentElement.dataset.ready = 'failed';
});
