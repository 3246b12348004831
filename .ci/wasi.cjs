// Runs a test program for wasm32-wasip1: node wasi.cjs PROGRAM [ARGUMENT...]
const fs = require('node:fs');
const { WASI } = require('node:wasi');

const preopens = { '/': '/' };
const args = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1', args, env: process.env, preopens, returnOnExit: true });
WebAssembly.instantiate(fs.readFileSync(args[0]), wasi.getImportObject()).then(
  ({ instance }) => { process.exitCode = wasi.start(instance); },
  (error) => { console.error(error); process.exitCode = 101; },
);
