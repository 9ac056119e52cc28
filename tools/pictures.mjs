// Takes the pictures of the documents from pages: node tools/pictures.mjs PAGES OUTPUT
import { createRequire } from 'node:module';
import path from 'node:path';

const [pages, output] = process.argv.slice(2);
const { PROGRAMS, CHROMIUM } = process.env;
const { chromium } = createRequire(path.join(PROGRAMS, 'package.json'))('playwright-core');

// A picture of a part of a page: name of the picture, page, part.
const pictures = [
  ['what_happened', 'torch_trainer', '#summary'],
  ['memory_over_time', 'torch_trainer', '#timeline'],
  ['call_stacks', 'torch_trainer', '#stacks'],
  ['the_device', 'gradient_buckets', '#device'],
];

// Chromium's own sandbox needs rights that containers do not give.
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1000, height: 900 }, colorScheme: 'light', timezoneId: 'UTC' });
for (const [name, file, part] of pictures) {
  const page = await context.newPage();
  await page.goto(`file://${path.resolve(pages, `${file}.html`)}`);
  await page.waitForSelector('html[data-ready]');
  // The head stays at the top of the window, before what is shown there.
  await page.locator('header').first().evaluate((head) => { head.style.position = 'static'; });
  await page.locator(part).screenshot({ path: path.join(output, `${name}.png`) });
  await page.close();
}
await browser.close();
