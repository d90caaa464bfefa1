/** @param {number} n a whole number of at least 2 */
export function primeFactors(n) {
  if (!Number.isSafeInteger(n) || n < 2) throw new Error('expected a whole number above 1');
  const out = [];
  let rest = n;
  for (let p = 2; p * p <= rest; p++) {
    while (rest % p === 0) {
      out.push(p);
      rest /= p;
    }
  }
  if (rest > 1) out.push(rest);
  return out;
}

/** @param {number} n from 1 to 3999 */
export function roman(n) {
  if (!Number.isInteger(n) || n < 1 || n > 3999) throw new Error('expected 1 to 3999');
  /** @type {[number, string][]} */
  const signs = [
    [1000, 'M'],
    [900, 'CM'],
    [500, 'D'],
    [400, 'CD'],
    [100, 'C'],
    [90, 'XC'],
    [50, 'L'],
    [40, 'XL'],
    [10, 'X'],
    [9, 'IX'],
    [5, 'V'],
    [4, 'IV'],
    [1, 'I'],
  ];
  let rest = n;
  let out = '';
  for (const [value, sign] of signs) {
    while (rest >= value) {
      out += sign;
      rest -= value;
    }
  }
  return out;
}
