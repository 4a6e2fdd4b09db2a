// Answers requests on standard input, without a native program: node wasm.mjs pushback-judge.wasm < requests.jsonl
import { readFile } from "node:fs/promises";
import { setFlagsFromString } from "node:v8";
import { WASI } from "node:wasi";

// Fast calls into node:wasi corrupt memory in Node 20 once the memory of a module has grown.
setFlagsFromString("--no-turbo-fast-api-calls");
const wasi = new WASI({ version: "preview1", returnOnExit: true });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
