// The part of vitest's interface that the tests of test/native use, with vitest's own `expect`.
import { createRequire } from 'node:module';
import { format } from 'node:util';

const require = createRequire(import.meta.url);
const vitest = createRequire(require.resolve('vitest/package.json'));
const { chai, JestAsymmetricMatchers, JestChaiExpect, JestExtend } = await import(
  vitest.resolve('@vitest/expect')
);

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);
export const expect = (value, message) => chai.expect(value, message);
Object.assign(expect, {
  any: (type) => chai.expect.any(type),
  stringContaining: (text) => chai.expect.stringContaining(text),
  stringMatching: (text) => chai.expect.stringMatching(text),
  objectContaining: (object) => chai.expect.objectContaining(object),
});

const names = [];
let tests = [];
let before = [];
let after = [];

/** Rows of arguments, as vitest's `each` takes them; `%s`, `%i` and so on in the name. */
function each(declare) {
  return (rows) => (name, body) => {
    for (const row of rows) {
      const values = Array.isArray(row) ? row : [row];
      declare(format(name, ...values), () => body(...values));
    }
  };
}

export function describe(name, body) {
  names.push(name);
  body();
  names.pop();
}
describe.each = each(describe);

export function test(name, body) {
  tests.push({ name: [...names, name].join(' > '), body });
}
test.each = each(test);
export const it = test;
export const beforeAll = (body) => before.push(body);
export const afterAll = (body) => after.push(body);

/** Runs what has been declared since the last call. */
export async function runAll() {
  const failed = [];
  let passed = 0;
  for (const body of before) await body();
  for (const { name, body } of tests) {
    try {
      await body();
      passed++;
    } catch (error) {
      failed.push({ name, error });
    }
  }
  for (const body of after) await body();
  tests = [];
  before = [];
  after = [];
  return { passed, failed };
}
