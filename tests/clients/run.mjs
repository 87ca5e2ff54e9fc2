// Answers each line, `user capacity rate cost`, with what the snippets of docs/clients.md make of it.

import { createInterface } from "node:readline";

const [, , checkFile, connectionFile] = process.argv;
const { check } = await import(checkFile);
const { send } = await import(connectionFile);

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [user, capacity, rate, cost] = line.split(" ");
  try {
    const headers = await check(send, user, Number(capacity), rate, Number(cost));
    console.log(headers === null ? "allowed" : ["denied", ...Object.values(headers)].join(" "));
  } catch (error) {
    console.log("failed", error.message);
  }
}
