// The time, size and memory that pages of small and large reports take. Each test prints its figures, which docs/page.md
// lists. No test asserts the time, because it depends on what else the machine does. The largest report is made with
// LARGE_COUNTS=1 only.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';

import { exported, sampleReport, start, stop, withPage, words } from './browser.mjs';
import { longTimeline, manyStacks } from './made_reports.mjs';

let from;

/** Prints the time to the first parts of the open page, and the page's size and memory. Fails if it has shown no first parts. */
async function measure(page, file, context) {
  const marks = await page.evaluate(() => performance.getEntriesByName('first parts').map((mark) => mark.startTime));
  const memory = await page.evaluate(() => performance.memory?.usedJSHeapSize);
  assert.equal(marks.length, 1);
  context.diagnostic(`${words(fs.statSync(file).size)}, first parts after ${Math.round(marks[0])} ms, ${words(memory)} of JavaScript`);
}

before(async () => {
  await start();
  from = sampleReport('batch_of_one');
});
after(stop);

for (const count of [1, 100, 10_000]) {
  test(`the page of a report with ${count === 1 ? 'one call stack' : `${count.toLocaleString('en-US')} call stacks`} counts its rows and is small`, async (context) => {
    const file = exported('some', manyStacks(from, count));
    assert.ok(fs.statSync(file).size <= 2 ** 19, `${fs.statSync(file).size} bytes`);
    await withPage(file, {}, async (page) => {
      await measure(page, file, context);
      assert.match(await page.locator('#groups .status').innerText(), new RegExp(`${count.toLocaleString('en-US')} rows?$`));
    });
  });
}

const skip = process.env.LARGE_COUNTS ? false : 'LARGE_COUNTS is not set';
test('a hundred thousand stacks make a small page that can be searched', { skip }, async (context) => {
  const file = exported('many', manyStacks(from, 100_000));
  assert.ok(fs.statSync(file).size <= 3 * 2 ** 20, `${fs.statSync(file).size} bytes`);
  await withPage(file, {}, async (page) => {
    await measure(page, file, context);
    assert.match(await page.locator('#groups .status').innerText(), /^25 of 100,000 rows/);
    await page.locator('#groups input').fill('work_1500');
    await page.waitForFunction(() => /of 100,000\)/.test(document.querySelector('#groups .status').textContent));
  });
});

test('the page of a report with the longest timeline has a canvas for each device and one for the host', async (context) => {
  // A report has at most 64 series: here those of eight kinds on each of eight devices.
  const kinds = ['device', 'stream_ordered', 'vmm', 'array', 'graph', 'imported', 'managed', 'framework_block'];
  const file = exported('timeline', longTimeline(from, 64, kinds));
  await withPage(file, {}, async (page) => {
    await measure(page, file, context);
    assert.equal(await page.locator('#timeline canvas').count(), 9);
  });
});
