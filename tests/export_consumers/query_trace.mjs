// Loads a trace into Perfetto's trace processor, and prints the rows that queries return: a line of
// JSON for each query, a list of objects. Whole numbers are texts, as they may have 64 bits.
//
//     node query_trace.mjs FOLDER TRACE < QUERIES
//
// FOLDER: where `install` has put the trace processor, which is WebAssembly for a worker of a browser.
// Standard input: a JSON array of texts with a query each.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';

const [folder, trace] = process.argv.slice(2).map((name) => path.resolve(name));
const { EngineBase } = await import(pathToFileURL(path.join(folder, 'engine.mjs')).href);

// Parts of a browser's worker that the trace processor uses.
class FileRequest {
  open(_method, url) {
    this.url = url;
  }
  send() {
    const bytes = fs.readFileSync(path.join(folder, path.basename(this.url)));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }
}
let hasAsked = false;
class ModuleOf32Bits extends WebAssembly.Module {
  constructor(bytes) {
    // By its first module, the trace processor asks if memory of 64 bits is supported. The answer is no, since its
    // program for such memory is not there.
    const isQuestion = !hasAsked;
    hasAsked = true;
    if (isQuestion) throw new Error('memory of 64 bits is not supported');
    super(bytes);
  }
}
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: pathToFileURL(folder + path.sep).href };
globalThis.XMLHttpRequest = FileRequest;
WebAssembly.Module = ModuleOf32Bits;

class Engine extends EngineBase {
  constructor(port) {
    super();
    this.id = 'tests';
    this.port = port;
    port.onmessage = (message) => this.onRpcResponseBytes(message.data);
  }
  rpcSendRequestBytes(bytes) {
    this.port.postMessage(bytes);
  }
}

async function main() {
  console.log = console.error; // the trace processor says what it does
  const { port1, port2 } = new MessageChannel();
  vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8'));
  globalThis.onmessage({ data: port1 });
  await new Promise(setImmediate); // the module is initialized by then
  const engine = new Engine(port2);
  await engine.parse(new Uint8Array(fs.readFileSync(trace)));
  await engine.notifyEof();
  const lines = [];
  for (const query of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    const result = await engine.query(query);
    const rows = [];
    const columns = Object.fromEntries(result.columns().map((name) => [name, null]));
    for (const row = result.iter(columns); row.valid(); row.next())
      rows.push(Object.fromEntries(Object.keys(columns).map((name) => [name, row[name]])));
    const texts = (_, value) => (typeof value === 'bigint' ? String(value) : value);
    lines.push(JSON.stringify(rows, texts) + '\n');
  }
  // node would go on compiling the trace processor.
  process.stdout.write(lines.join(''), () => process.exit(0));
}

await main();
