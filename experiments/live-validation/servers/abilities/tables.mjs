/** @param {string} csv */
export function parseCsv(csv) {
  const [head = '', ...lines] = csv.trim().split('\n');
  const names = head.split(',').map((name) => name.trim());
  const rows = lines.map((line) => line.split(',').map((cell) => cell.trim()));
  return { names, rows };
}

/**
 * @param {string} csv
 * @param {string} column
 */
export function columnNumbers(csv, column) {
  const { names, rows } = parseCsv(csv);
  const at = names.indexOf(column);
  if (at < 0) throw new Error(`no column ${column}; there are ${names.join(', ')}`);
  const values = rows.map((row) => Number(row[at]));
  if (values.some(Number.isNaN)) throw new Error(`column ${column} holds what is no number`);
  const sum = values.reduce((a, b) => a + b, 0);
  return {
    count: values.length,
    sum: Number(sum.toPrecision(12)),
    mean: Number((sum / values.length).toPrecision(8)),
    min: Math.min(...values),
    max: Math.max(...values),
  };
}

/**
 * @param {readonly string[]} items
 * @param {'ascending' | 'descending'} order
 */
export function sorted(items, order) {
  const up = [...items].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return order === 'descending' ? up.reverse() : up;
}
