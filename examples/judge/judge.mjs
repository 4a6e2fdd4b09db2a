// Judges a change of a CRD: node judge.mjs PUSHBACK OLD.json NEW.json
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const [program, before, after] = process.argv.slice(2);
const [old, now] = [before, after].map((file) => JSON.parse(readFileSync(file)));
const request = { apiVersion: "pushback.dev/v1alpha1", kind: "JudgeRequest", old, new: now };
const output = execFileSync(program, ["judge"], { input: JSON.stringify(request) + "\n" });
const response = JSON.parse(output);
console.log(response.verdict);
for (const change of response.changes) console.log(change.path ?? "", change.check);
