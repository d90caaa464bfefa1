/**
 * What can go wrong with a server while it runs.
 *
 * - `crash`: its process is killed (SIGKILL); ended by starting it again.
 * - `hang`: its process is stopped (SIGSTOP) and answers nothing; ended by SIGCONT.
 * - `errors`: every call fails inside: HTTP 500, or JSON-RPC error -32603 over stdio.
 * - `token`: the client's token has expired: HTTP 401, or JSON-RPC error -32001 for tool calls over stdio.
 * - `slow`: every answer comes later than the agent waits.
 * - `partial`: one kind of input gets a wrong answer (`null`), not marked as an error; all others work.
 *
 * @typedef {object} Fault
 * @property {'crash' | 'hang' | 'errors' | 'token' | 'slow' | 'partial'} kind
 * @property {number} [delayMs] of `slow`
 * @property {string} [pattern] of `partial`: a regular expression for the arguments' JSON
 */

/** Every kind, in the order of the tables. */
export const faultKinds = /** @type {const} */ ([
  'crash',
  'hang',
  'errors',
  'token',
  'slow',
  'partial',
]);

/**
 * Whether a `partial` fault spoils a call with these arguments.
 *
 * @param {Fault | null} fault
 * @param {unknown} args
 */
export function spoils(fault, args) {
  if (fault?.kind !== 'partial' || fault.pattern === undefined) return false;
  return new RegExp(fault.pattern).test(JSON.stringify(args ?? {}));
}

/**
 * The result of a tool call as a server with a bug would send it.
 *
 * @param {Record<string, unknown>} message a JSON-RPC response
 */
export function spoilt(message) {
  return { ...message, result: { content: [{ type: 'text', text: 'null' }] } };
}
