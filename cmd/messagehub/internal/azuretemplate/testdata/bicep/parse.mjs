// Parses files in Bicep by the grammar of tree-sitter-bicep, and prints each place that it does not
// know. It checks the syntax alone: types and names are checked by az bicep build.
import { readFileSync } from "node:fs";
import Parser from "tree-sitter";
import Bicep from "tree-sitter-bicep";

const parser = new Parser();
parser.setLanguage(Bicep);
let files = 0;
for (const name of process.argv.slice(2)) {
  const text = readFileSync(name, "utf8");
  const root = parser.parse((at) => text.slice(at, at + 4096) || null).rootNode;
  files++;
  if (!root.hasError) continue;
  process.exitCode = 1;
  const pending = [root];
  while (pending.length > 0) {
    const node = pending.pop();
    if (node.isError || node.isMissing) console.log(`${name}:${node.startPosition.row + 1}: ${node.text.slice(0, 80)}`);
    pending.push(...node.children);
  }
}
console.log(`${files} files parsed`);
if (files === 0) process.exitCode = 1;
