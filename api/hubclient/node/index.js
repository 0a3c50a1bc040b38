export { BrokenBodyError, NotOpenError, Problem } from "./errors.js";
export { Client } from "./client.js";
