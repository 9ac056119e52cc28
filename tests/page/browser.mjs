// Opens pages in Chromium. A page that writes to the console, asks the network for anything, or throws, fails
// the test that has opened it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const { PROGRAMS, CHROMIUM, CUWARDEN, SAMPLES } = process.env;
const load = createRequire(path.join(PROGRAMS, 'package.json'));
const { chromium } = load('playwright-core');
const axe = fs.readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');

export const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cuwarden-page-'));

let browser = null;
export async function start() {
  // Chromium's own sandbox needs rights that containers of continuous integration do not give. A GPU
  // that the processor imitates is slower than none.
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info'] });
}
export async function stop() {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
}

/** Runs a sample on the simulated GPU; returns the path of its report. */
export function sampleReport(sample, memory = '16GiB') {
  const report = path.join(folder, `${sample}.json`);
  try {
    execFileSync(CUWARDEN, ['run', '--simulate', memory, '--report', report, '--', path.join(SAMPLES, sample)], { stdio: 'ignore' });
  } catch {
    // Samples whose request fails say so by their exit status.
  }
  assert.ok(fs.existsSync(report), `${sample} left no report`);
  return report;
}
/**
 * Unpacks a report that a program on an H200 left, as `cuwarden report --redact` has written it; returns its path.
 * `parent`: its folder, that of the documents' pictures or of this suite.
 */
export function recordedReport(name, parent = '../../docs/pictures') {
  const packed = fileURLToPath(new URL(`${parent}/${name}.json.xz`, import.meta.url));
  const report = path.join(folder, `${name}.json`);
  fs.writeFileSync(report, execFileSync('xz', ['--decompress', '--stdout', packed], { maxBuffer: 2 ** 28 }));
  return report;
}
export const read = (report) => JSON.parse(fs.readFileSync(report, 'utf8'));
export function write(name, report) {
  const file = path.join(folder, name);
  fs.writeFileSync(file, JSON.stringify(report));
  return file;
}

/** Exports the reports; returns the path of the page. */
export function exported(name, ...reports) {
  const page = path.join(folder, `${name}.html`);
  execFileSync(CUWARDEN, ['export', '--format', 'html', '-o', page, ...reports]);
  return page;
}

/** Opens the page, gives it to `use`, and then checks what it has done. */
export async function withPage(file, { width = 1280, colours = 'light' }, use) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: colours });
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (message) => complaints.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => { complaints.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  page.on('request', (request) => { if (request.url() !== `file://${file}`) complaints.push(`request: ${request.url()}`); });
  try {
    await page.goto(`file://${file}`);
    await page.waitForSelector('html[data-ready]');
    await use(page);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

/** Fails if axe finds anything on the page that keeps a person from using it. */
export async function checkAccessibility(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const found = result.violations.map((rule) => `${rule.id}: ${rule.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(' | ')}`);
  assert.deepEqual(found, []);
}

/** Fails if the page must be scrolled sideways. */
export async function checkWidth(page) {
  const [wide, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= shown, `the page is ${wide} pixels wide, the window ${shown}`);
}

/** Windows and colours in which every page can be read. */
const looks = [{ width: 1440, colours: 'light' }, { width: 800, colours: 'dark' }, { width: 390, colours: 'light' }];

/** Fails if the page, with its rows and lists closed or open, is wider than the window, or keeps a person from using it. */
export async function checkLook(page) {
  await checkWidth(page);
  // Opened rows and lists are read, too.
  for (const closed of await page.locator('button.open[aria-expanded="false"]').all()) if (await closed.isVisible()) { await closed.click(); break; }
  await page.evaluate(() => { for (const details of document.querySelectorAll('details')) details.open = true; });
  await page.waitForFunction(() => [...document.querySelectorAll('.notice > details')].every((details) => details.childElementCount > 1));
  await checkAccessibility(page);
  await checkWidth(page);
}

/** Checks the page in all windows and colours, as subtests of the test `all`. Opens the page once. */
export async function checkLooks(all, file) {
  await withPage(file, looks[0], async (page) => {
    for (const { width, colours } of looks) {
      await all.test(`at ${width} pixels in ${colours} colours`, async () => {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme: colours });
        // Charts are drawn anew a moment later. checkWidth() says how wide a page is that stays too wide.
        await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth, undefined, { timeout: 5000 }).catch(() => {});
        await checkLook(page);
      });
    }
  });
}

/** Returns a size in the page's words. */
export function words(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = bytes;
  let unit = 0;
  for (; size >= 1023.95; size /= 1024) ++unit;
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}
