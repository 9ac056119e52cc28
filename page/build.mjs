// Bundles the page into one HTML file, and writes it as a source of C++, too.
//
//     node build.mjs LIBRARIES PAGE.html TEMPLATE.cpp
//
// LIBRARIES: the folder into which tools/npm_packages has put the libraries.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const [libraries, pageFile, templateFile] = process.argv.slice(2).map((name) => path.resolve(name));
const modules = path.join(libraries, 'node_modules');
const esbuild = createRequire(path.join(libraries, 'package.json'))('esbuild');

// The largest page without data, in bytes.
const mostBytes = 150 * 1024;

async function bundled(entry) {
  const result = await esbuild.build({
    entryPoints: [path.join(here, 'src', entry)],
    bundle: true,
    minify: true,
    write: false,
    charset: 'utf8',
    format: 'iife',
    target: ['chrome103', 'firefox113', 'safari16.4'],
    legalComments: 'inline',
    nodePaths: [modules],
    logLevel: 'error',
  });
  return result.outputFiles[0].text.trim();
}

const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

const script = await bundled('main.ts');
const style = await bundled('style.css');
if (/<\/(script|style)/i.test(script + style)) throw new Error('the bundle ends its own element');
const licence = fs.readFileSync(path.join(modules, 'uplot', 'LICENSE'), 'utf8').trim();
const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; base-uri 'none'; form-action 'none'`;

// A function as replacement, because `$` has a meaning in texts.
const fill = (text, mark, value) => {
  if (text.split(mark).length !== 2) throw new Error(`${mark} must occur once in the page`);
  return text.replace(mark, () => value);
};
let page = fs.readFileSync(path.join(here, 'src', 'page.html'), 'utf8');
page = fill(page, '@POLICY@', policy);
page = fill(page, '@STYLE@', style);
page = fill(page, '@SCRIPT@', script);
page = fill(page, '@LICENCE@', escaped(licence));
if (page.split('@CUWARDEN_DATA@').length !== 2) throw new Error('the page needs one mark for its data');

const bytes = Buffer.from(page, 'utf8');
if (bytes.length > mostBytes) throw new Error(`the page has ${bytes.length} bytes, at most ${mostBytes} are allowed`);
fs.writeFileSync(pageFile, bytes);

const numbers = [];
for (let at = 0; at < bytes.length; at += 24) numbers.push([...bytes.subarray(at, at + 24)].join(','));
fs.writeFileSync(
  templateFile,
  `// Made by page/build.mjs.
#include "reporters/exports/page/page_template.hpp"

namespace cuwarden {

std::string_view page_template() {
  static constexpr unsigned char page[] = {
${numbers.join(',\n')}};
  return {reinterpret_cast<const char*>(page), sizeof page};
}

}  // namespace cuwarden
`,
);
