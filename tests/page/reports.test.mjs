// Each view of the page shows the figures of reports from real programs: samples on the simulated GPU, and programs on an
// H200. The reports are made once for all tests.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';

import { checkLook, exported, recordedReport, read, sampleReport, start, stop, withPage, words } from './browser.mjs';
import { millionAllocations } from './made_reports.mjs';

const samples = ['adaptive_mesh', 'batch_of_one', 'local_memory', 'streams'];
// Programs on an H200: samples/python/grown_shapes.py; tests/gpu/frameworks/programs/torch_out_of_memory.py (growing,
// other_process) and triton_autotuned.py; samples and a test program of the same names.
const recorded = [
  'pytorch_holes', 'pytorch_growing_list', 'pytorch_beside_another', 'triton_autotuned',
  'library_leak', 'marked_steps', 'neighbour', 'odd_sizes',
];
// The reports of the documents' pictures.
const pictures = ['gradient_buckets', 'torch_trainer'];

const reports = new Map();
const pages = new Map();
before(async () => {
  await start();
  for (const name of samples) reports.set(name, sampleReport(name, name === 'adaptive_mesh' ? '1GiB' : '16GiB'));
  for (const name of pictures) reports.set(name, recordedReport(name));
  for (const name of recorded) reports.set(name, recordedReport(name, 'reports'));
  for (const [name, report] of reports) pages.set(name, exported(name, report));
});
after(stop);

const texts = (page, selector) => page.locator(selector).allInnerTexts();
const isCounted = (group) => !group.suppressed && group.released_by === null;
const sumOf = (rows, field) => rows.reduce((sum, row) => sum + row[field], 0);

/** Chooses each option of each list, and zooms the icicle in and out, so that each view is drawn. */
async function drawAllViews(page) {
  for (const list of await page.locator('main select').all())
    for (const option of await list.locator('option').all()) await list.selectOption(await option.getAttribute('value'));
  for (const chart of await page.locator('#timeline .chart:visible').all()) {
    for (const key of ['+', 'ArrowRight', 'ArrowLeft', '-', 'Escape']) await chart.press(key);
  }
  for (const canvas of await page.locator('canvas.icicle, canvas.slabs').all())
    for (const key of ['ArrowDown', 'ArrowRight', 'Enter', 'Escape']) await canvas.press(key);
}

/** Fails if the parts of a device do not add up to its size at a moment at which it was read. */
async function checkDevices(page, report) {
  for (const device of await page.locator('#device .device').all()) {
    const shares = (await device.locator('tbody td:nth-child(3)').allInnerTexts()).map((text) => parseFloat(text.replace('< ', '')));
    const sum = shares.reduce((all, share) => all + share, 0);
    assert.ok(Math.abs(sum - 100) < 0.1 * shares.length, `the parts of a device are ${sum} % of it`);
  }
  const accounted = new Set(report.accounts.map((part) => part.device));
  assert.equal(await page.locator('#device .device').count(), accounted.size);
}

/** Fails if figures of the page are not those of the report. */
async function checkFigures(page, report) {
  const figures = new Map(await Promise.all((await page.locator('#summary .figures > div').all()).map(async (figure) => [
    await figure.locator('dt').innerText(), await figure.locator('.figure').innerText(),
  ])));
  assert.equal(figures.get('Peak'), words(Math.max(...report.totals.map((total) => total.peak_bytes))));
  assert.equal(figures.get('Not freed'), words(sumOf(report.leak_groups.filter(isCounted), 'bytes')));
  assert.equal(figures.get('Refused'), report.incidents.length === 0 ? 'none' : String(report.incidents.length));

  const kinds = await texts(page, '#timeline > .table tbody tr');
  for (const total of report.totals) assert.ok(kinds.some((row) => row.includes(total.allocations.toLocaleString('en-US'))), `no row of ${total.kind}`);

  const sizes = report.leak_groups.map((group) => group.bytes).sort((one, other) => other - one);
  assert.deepEqual(await texts(page, '#groups tbody tr:not(.details) > td:nth-child(2)'), sizes.map(words));

  assert.equal(await page.locator('#incidents').count(), report.incidents.length === 0 ? 0 : 1);
  const maps = report.slab_map.length + report.incident_slab_map.length + report.worst_slab_map.length;
  assert.equal(await page.locator('#slabs').count(), maps === 0 ? 0 : 1);
  const left = sumOf(report.leak_groups.filter(isCounted), 'count');
  if (left > 0) assert.ok((await page.locator('#stacks canvas + .status').innerText()).endsWith(`in ${left.toLocaleString('en-US')} allocation${left === 1 ? '' : 's'}`));
  await checkDevices(page, report);
}

const spaced = (text) => text.replace(/\s+/g, ' ').trim();

/** Fails if the first sentence of the page is not in the text report. `file`: path of the report. */
async function checkFirstSentence(page, file) {
  const text = spaced(execFileSync(process.env.CUWARDEN, ['report', file], { encoding: 'utf8' }));
  const [first] = await texts(page, '#summary .lead, #summary .notice .title');
  assert.ok(text.includes(spaced(first.replace(/^(Look here|Note|All well):/, ''))), first);
}

for (const name of [...samples, ...pictures, ...recorded]) {
  test(`the page of ${name} has the report's figures and first sentence, and all of its views can be used`, async () => {
    const report = read(reports.get(name));
    await withPage(pages.get(name), { width: 800 }, async (page) => {
      await checkFirstSentence(page, reports.get(name));
      await checkFigures(page, report);
      await drawAllViews(page);
      await checkLook(page);
    });
  });
}

test('a million allocations are counted in each view', async () => {
  const report = millionAllocations(reports.get('batch_of_one'));
  await withPage(exported('million', report), {}, async (page) => {
    assert.ok((await texts(page, '#timeline tbody td')).includes('1,000,000'));
    assert.match(await page.locator('#summary').innerText(), /in 1,000,000 allocations/);
    assert.match(await page.locator('#stacks canvas + .status').innerText(), /in 1,000,000 allocations$/);
    assert.match(await page.locator('#groups .status').innerText(), /^25 of 1,000 rows/);
    await page.locator('#groups .more button').last().click();
    const counts = (await texts(page, '#groups tbody tr > td:nth-child(3)')).map((text) => Number(text.replace(/,/g, '')));
    assert.equal(counts.reduce((sum, count) => sum + count, 0), 1_000_000);
  });
});
