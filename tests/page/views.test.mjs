// Each view shows the figures of the report, and can be used by mouse and by keys.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, test } from 'node:test';

import { checkLook, exported, read, sampleReport, start, stop, withPage, words, write } from './browser.mjs';
import { hostileReport, manyRanks, markup } from './made_reports.mjs';

let slabs, leak, served, full;
before(async () => {
  await start();
  [slabs, leak, served, full] = ['churn', 'lost_on_throw', 'streams', 'batch_of_one'].map((sample) => sampleReport(sample));
});
after(stop);

const texts = (page, selector) => page.locator(selector).allInnerTexts();

test('the first sentence is that of the text report', async () => {
  const text = execFileSync(process.env.CUWARDEN, ['report', slabs], { encoding: 'utf8' });
  const sentence = text.split('\n').find((line) => line.startsWith('OUT OF MEMORY'));
  await withPage(exported('slabs', slabs), {}, async (page) => {
    const [first] = await texts(page, '#summary .notice .title');
    assert.equal(first.replace(/^Look here:\s*/, '').replace(/\s+/g, ' '), sentence);
    const [advice] = await texts(page, '#summary .advice');
    // An advice has the form "cause: remedy".
    assert.equal(advice, read(slabs).incidents[0].advice.replace(/^.*?: /, ''));
  });
});

test('a leak names its line', async () => {
  await withPage(exported('leak', leak), {}, async (page) => {
    assert.match((await texts(page, '#summary .notice.leak .where'))[0], /^at lost_on_throw\.cpp:\d+ in process_batch/);
    const report = read(leak);
    assert.equal((await texts(page, '#summary .figures dd'))[1].split('\n')[0], words(report.leaks.bytes));
  });
});

test('parts of a device add up to its size at each moment', async () => {
  const report = read(slabs);
  await withPage(exported('slabs', slabs), {}, async (page) => {
    for (const moment of await page.locator('#device select option').all()) {
      const value = await moment.getAttribute('value');
      await page.locator('#device select').selectOption(value);
      const parts = report.accounts.filter((part) => (part.incident ?? 'end') === (value === 'end' ? value : Number(value)) && part.bytes !== 0);
      const shares = (await texts(page, '#device tbody td:nth-child(3)')).map((text) => parseFloat(text.replace('< ', '')));
      assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 100) < 0.5, `shares ${shares}`);
      // A peak has parts of the timeline, which the account does not have.
      if (value === 'peak') continue;
      assert.equal(shares.length, parts.length + 1);
      for (const part of parts) assert.ok((await texts(page, '#device tbody td:nth-child(2)')).includes(words(part.bytes)));
    }
  });
});

test('the timeline zooms and tells values at a moment', async () => {
  await withPage(exported('full', full), {}, async (page) => {
    const chart = page.locator('#timeline .device');
    await chart.locator('.u-over').hover();
    assert.match(await chart.locator('.clock').innerText(), /into the run$/);
    await chart.locator('.chart').focus();
    const axis = () => chart.locator('canvas').evaluate((canvas) => canvas.toDataURL());
    const whole = await axis();
    await page.keyboard.press('+');
    await page.waitForFunction((before) => document.querySelector('#timeline canvas').toDataURL() !== before, whole);
    const zoomed = await axis();
    await page.keyboard.press('Escape');
    await page.waitForFunction((before) => document.querySelector('#timeline canvas').toDataURL() !== before, zoomed);
    const button = chart.locator('.legend button', { hasText: 'device memory (GPU 0)' });
    await button.click();
    assert.equal(await button.getAttribute('aria-pressed'), 'false');
  });
});

test('the map of slabs tells each slab', async () => {
  const report = read(slabs);
  await withPage(exported('slabs', slabs), {}, async (page) => {
    await page.locator('canvas.slabs').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    const [, second] = report.incident_slab_map.filter((slab) => slab.incident === report.incidents[0].id)
      .sort((one, other) => (BigInt(one.address) < BigInt(other.address) ? -1 : 1));
    const status = await page.locator('#slabs [role=status]').first().innerText();
    assert.ok(status.includes(`${second.address}: ${second.live} live piece`), `${status} is not about ${second.address}`);
    const locked = report.incident_holders.filter((holder) => holder.slab_locked_bytes > 0);
    assert.equal(await page.locator('#slabs tbody tr').count(), locked.length);
  });
});

/** Returns the text with which the page names the frame of the innermost function that is not CUDA's. */
const innermost = (report, stack) => {
  const frames = report.stacks.find(({ id }) => id === stack).frames.map((id) => report.frames.find((frame) => frame.id === id));
  const frame = frames.find(({ module, file }) => file !== null && !/libcu/.test(report.modules.find(({ id }) => id === module).path));
  return `${frame.file.split('/').pop()}:${frame.line}`;
};
const listed = (page) => texts(page, '#slabs .slab-stacks summary');
const byAddress = (one, other) => (BigInt(one.address) < BigInt(other.address) ? -1 : 1);

/** Fails if the page lists other stacks than these of the report. */
async function checkStacks(page, report, stacks) {
  const found = await listed(page);
  assert.equal(found.length, stacks.length);
  stacks.forEach((stack, at) => { assert.ok(found[at].startsWith(innermost(report, stack)), `${found[at]} is not ${innermost(report, stack)}`); });
}

test('choosing a slab by key or click lists the stacks of its pieces', async () => {
  const report = read(slabs);
  await withPage(exported('slabs', slabs), {}, async (page) => {
    const canvas = page.locator('canvas.slabs');
    const [first, second] = report.incident_slab_map.filter((slab) => slab.incident === report.incidents[0].id).sort(byAddress);
    assert.ok(second.stacks.length > 0);
    await canvas.hover({ position: { x: 2, y: 2 } });
    assert.ok((await page.locator('#slabs [role=status]').first().innerText()).includes(first.address));
    assert.deepEqual(await listed(page), [], 'a slab at which the mouse points is not chosen');
    await canvas.click({ position: { x: 2, y: 2 } });
    await checkStacks(page, report, first.stacks);
    assert.ok((await page.locator('#slabs .slab-stacks').innerText()).includes(first.address));
    // The mouse passes over another slab on its way to the list.
    await canvas.hover({ position: { x: 200, y: 2 } });
    await page.keyboard.press('ArrowRight');
    await checkStacks(page, report, second.stacks);
    assert.ok((await page.locator('#slabs .slab-stacks').innerText()).includes(second.address));
    await page.locator('#slabs .slab-stacks summary').first().click();
    assert.match(await page.locator('#slabs .slab-stacks .stack .frame.users').first().innerText(), /remember/);
    await checkLook(page);
  });
});

test('a slab at the worst moment lists the stacks that it has at the end', async () => {
  const report = read(slabs);
  const { device } = report.worst_fragmentation[0];
  const worst = report.worst_slab_map.filter((slab) => slab.device === device).sort(byAddress);
  const atTheEnd = new Map(report.slab_map.map((slab) => [slab.address, slab.stacks]));
  await withPage(exported('slabs', slabs), {}, async (page) => {
    const options = await texts(page, '#slabs select option');
    await page.locator('#slabs select').selectOption({ index: options.findIndex((text) => text.includes('when most was locked')) });
    await page.locator('canvas.slabs').focus();
    let found = 0;
    for (let at = 0; at < Math.min(worst.length, 20); ++at) {
      await page.keyboard.press('ArrowRight');
      const stacks = atTheEnd.get(worst[at].address) ?? [];
      await checkStacks(page, report, stacks);
      assert.match(await page.locator('#slabs .slab-stacks').innerText(),
        stacks.length === 0 ? /names no call stack for the slab/ : /that had the most live pieces in the slab at 0x[0-9a-f]+ at the end/);
      found += stacks.length;
    }
    assert.ok(found > 0, 'no slab of the worst moment is there at the end');
  });
});

test('holders at an incident are those of the report', async () => {
  const report = read(full);
  const [{ id }] = report.incidents;
  await withPage(exported('full', full), {}, async (page) => {
    const shown = await texts(page, '#incidents .holders tbody tr td:nth-child(2)');
    const bytes = report.incident_holders.filter((holder) => holder.incident === id).map((holder) => holder.bytes).sort((one, other) => other - one);
    assert.deepEqual(shown, bytes.slice(0, 12).map(words));
  });
});

test('a rescued request is no failure', async () => {
  await withPage(exported('served', served), {}, async (page) => {
    assert.match((await texts(page, '#summary .notice.warning .title'))[0], /RESCUED: cudaMalloc/);
    assert.ok((await texts(page, '#incidents .chip.good')).includes('rescued'));
  });
});

test('the icicle zooms in and out by keys', async () => {
  await withPage(exported('leak', leak), {}, async (page) => {
    const crumbs = () => page.locator('.crumbs li').count();
    await page.locator('canvas.icicle').focus();
    await page.keyboard.press('ArrowDown');
    assert.match(await page.locator('#stacks canvas + .status').innerText(), /^main in lost_on_throw: 10\.0 MiB \(100\.0 %\) in 10 allocations/);
    await page.keyboard.press('Enter');
    assert.equal(await crumbs(), 2);
    await page.keyboard.press('Escape');
    assert.equal(await crumbs(), 1);
    await page.locator('#stacks input[type=search]').fill('process_batch');
    assert.match(await page.locator('#stacks .choice [role=status]').innerText(), /^10\.0 MiB below/);
  });
});

test('the table of memory that was not freed sorts, filters and opens stacks', async () => {
  const report = read(full);
  const sizes = report.leak_groups.map((group) => group.bytes).sort((one, other) => other - one);
  await withPage(exported('full', full), {}, async (page) => {
    const column = () => texts(page, '#groups tbody tr:not(.details) > td:nth-child(2)');
    assert.deepEqual(await column(), sizes.map(words));
    await page.locator('#groups thead button', { hasText: 'Bytes' }).click();
    assert.deepEqual(await column(), sizes.map(words).reverse());
    await page.locator('#groups button.open').first().click();
    assert.ok(await page.locator('#groups .details .stack .users').count() > 0);
    await page.locator('#groups button.open').first().press('ArrowDown');
    await page.locator('#groups input').fill('no such function');
    await page.waitForFunction(() => document.querySelector('#groups .status').textContent === 'No row matches the filter.');
  });
});

test('two reports show their difference', async () => {
  const changed = read(leak);
  changed.leak_groups[0].bytes += 2 ** 20;
  const gone = { ...changed.leak_groups[0], fingerprint: '00000000000000aa' };
  const old = read(leak);
  old.leak_groups.push(gone);
  await withPage(exported('changed', write('old.json', old), write('new.json', changed)), {}, async (page) => {
    assert.deepEqual((await texts(page, '#difference .chip')).sort(), ['gone', 'grown']);
    assert.ok((await texts(page, '#difference tbody tr td:nth-child(3)')).includes('+1.0 MiB'));
    assert.equal(await page.locator('#together .legend button').count(), 4);
  });
});

test('a job of many ranks has a row for each', async () => {
  await withPage(exported('ranks', ...manyRanks(full, 12).sort()), {}, async (page) => {
    const names = Array.from({ length: 12 }, (_, rank) => `rank ${rank}, batch_of_one`);
    assert.deepEqual(await texts(page, '#ranks tbody th'), names);
    assert.deepEqual(await texts(page, '#which option'), names);
    assert.deepEqual(await texts(page, '#ranks .chip.bad'), ['device_full_own', 'device_full_own']);
    // The rank whose request failed before those of the others is open.
    assert.match(await page.locator('#facts .facts').innerText(), /pid 1005/);
    assert.equal(await page.locator('#which select').evaluate((list) => list.selectedOptions[0].text), names[5]);
    await page.locator('#ranks tbody button', { hasText: 'rank 7' }).click();
    assert.match(await page.locator('#facts .facts').innerText(), /pid 1007/);
  });
});

test('markup in names has no effect', async () => {
  await withPage(exported('hostile', hostileReport(full)), {}, async (page) => {
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
    assert.equal(await page.locator('img, b').count(), 0);
    assert.ok((await page.locator('#facts').innerText()).includes(markup));
    assert.ok((await texts(page, '#device tbody td')).includes('−3.0 GiB'));
    assert.ok(!(await page.locator('body').innerText()).includes('\u202e'));
  });
});

test('a very long name of a function is cut in sentences, and whole in the call stack', async () => {
  const report = read(hostileReport(full));
  await withPage(exported('hostile', write('long.json', report)), {}, async (page) => {
    const sentences = await texts(page, '#summary p, #incidents .holders > p');
    for (const sentence of sentences) assert.ok(sentence.length < 700, `a sentence of ${sentence.length} characters`);
    assert.match(sentences.find((sentence) => sentence.includes('OUT OF MEMORY')), /…$/);
    await page.locator('#summary .notice.bad > details > summary').click();
    const whole = report.frames.map((frame) => frame.function).find((name) => name.length > 1000);
    const shown = await page.locator('#summary .stack').first().evaluate((stack) => stack.textContent);
    assert.ok(shown.includes(whole));
  });
});

test('colours follow the button', async () => {
  await withPage(exported('leak', leak), { colours: 'dark' }, async (page) => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await ground();
    await page.getByRole('button', { name: 'Light colours' }).click();
    assert.notEqual(await ground(), dark);
    assert.equal(await page.getByRole('button', { name: 'Dark colours' }).count(), 1);
  });
});

test('a printed page is light and has no controls', async () => {
  await withPage(exported('leak', leak), { colours: 'dark' }, async (page) => {
    const onScreen = await page.locator('canvas.icicle').evaluate((canvas) => canvas.toDataURL());
    await page.emulateMedia({ media: 'print' });
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
    await page.waitForFunction((before) => document.querySelector('canvas.icicle').toDataURL() !== before, onScreen);
    assert.equal(await page.locator('.tabs').isVisible(), false);
    assert.equal(await page.locator('#groups table').isVisible(), true);
    assert.ok((await page.pdf()).length > 10_000);
  });
});

test('a printed page tells the chosen moment, bytes, grouping and searches', async () => {
  await withPage(exported('slabs', slabs), {}, async (page) => {
    const lists = [];
    for (const list of await page.locator('.choice select').all()) {
      const options = await list.locator('option').allInnerTexts();
      // The option in the middle is one that is not chosen at first.
      const chosen = options[Math.ceil((options.length - 1) / 2)];
      await list.selectOption(chosen);
      lists.push([await list.locator('xpath=../label').innerText(), chosen]);
    }
    assert.deepEqual([...new Set(lists.map(([label]) => label))].sort(), ['By', 'Bytes', 'Moment']);
    await page.locator('#groups input[type=search]').fill('main');
    assert.equal(await page.locator('.printed:visible').count(), 0);
    await page.emulateMedia({ media: 'print' });
    const printed = await Promise.all((await page.locator('.choice:visible').all()).map((one) => one.innerText()));
    assert.deepEqual(printed.map((text) => text.replace(/\s+/g, ' ')), [...lists, ['Filter', 'main']].map(([label, chosen]) => `${label} ${chosen}`));
    assert.equal(await page.locator('select:visible, input[type=search]:visible').count(), 0);
  });
});

test('a printed page of many reports tells which one it shows', async () => {
  await withPage(exported('ranks', ...manyRanks(full, 12)), {}, async (page) => {
    await page.locator('#ranks tbody button', { hasText: 'rank 7' }).click();
    await page.emulateMedia({ media: 'print' });
    assert.match(await page.locator('#which .printed').innerText(), /^rank 7, batch_of_one$/);
  });
});

test('no heading stands alone at the foot of a printed page', async () => {
  await withPage(exported('slabs', slabs), {}, async (page) => {
    await page.emulateMedia({ media: 'print' });
    const breaks = await page.locator('h2, h3').evaluateAll((headings) => headings.map((heading) => getComputedStyle(heading).breakAfter));
    assert.deepEqual([...new Set(breaks)], ['avoid']);
  });
});

test('a page that was cut short says so', async () => {
  const whole = fs.readFileSync(exported('leak', leak), 'utf8');
  const at = whole.indexOf('id="data">') + 2000;
  const end = whole.indexOf('</script>', at);
  const file = write('cut.json', {}).replace('cut.json', 'cut.html');
  fs.writeFileSync(file, whole.slice(0, at) + whole.slice(end));
  await withPage(file, {}, async (page) => {
    assert.match(await page.getByRole('alert').innerText(), /may be cut short/);
  });
});
