// Runs statements of SQL by DuckDB, in a database in memory, and prints the rows that each returns: a
// line of JSON for each statement, [] if it returns none. Whole numbers of 64 bits are texts in
// there, because a number of JavaScript has 53 bits.
//
//     node run_queries.cjs FOLDER < STATEMENTS
//
// FOLDER: where `install` has put DuckDB. Standard input: a JSON array of texts with a statement each.
const fs = require('node:fs');
const path = require('node:path');

const folder = path.resolve(process.argv[2], 'node_modules', '@duckdb', 'node-api');
const { DuckDBInstance } = require(folder);

async function main() {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  for (const sql of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    const rows = await connection.runAndReadAll(sql);
    console.log(JSON.stringify(rows.getRowObjectsJson()));
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
