/**
 * The value of an arithmetic expression: numbers, + - * / ^, parentheses.
 *
 * @param {string} text
 */
export function evaluate(text) {
  const tokens = text.match(/\d+(?:\.\d+)?|[-+*/^()]/g) ?? [];
  if (tokens.join('') !== text.replace(/\s/g, '')) throw new Error(`cannot read ${text}`);
  let at = 0;

  /** @returns {number} */
  const sum = () => {
    let value = product();
    while (tokens[at] === '+' || tokens[at] === '-') {
      value = tokens[at++] === '+' ? value + product() : value - product();
    }
    return value;
  };
  const product = () => {
    let value = power();
    while (tokens[at] === '*' || tokens[at] === '/') {
      value = tokens[at++] === '*' ? value * power() : value / power();
    }
    return value;
  };
  /** @returns {number} */
  const power = () => {
    const base = atom();
    if (tokens[at] !== '^') return base;
    at += 1;
    return base ** power();
  };
  /** @returns {number} */
  const atom = () => {
    const token = tokens[at++];
    if (token === '-') return -atom();
    if (token !== '(') {
      if (token === undefined || !/^\d/.test(token)) throw new Error(`cannot read ${text}`);
      return Number(token);
    }
    const inner = sum();
    if (tokens[at++] !== ')') throw new Error(`a parenthesis of ${text} is not closed`);
    return inner;
  };

  const value = sum();
  if (at < tokens.length) throw new Error(`cannot read ${text} behind ${tokens[at]}`);
  if (!Number.isFinite(value)) throw new Error(`${text} has no value`);
  return Number(value.toPrecision(12));
}
