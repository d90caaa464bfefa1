// Numbers and tables as text.

/** Three significant digits, without exponents. */
export function digits(value, significant = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '-';
  if (value === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(6, significant - 1 - size)));
}

/** "1.23 (1.10-1.40)": a median with the tenth and ninetieth percentile. */
export function spread({ median, p10, p90 }) {
  return `${digits(median)} (${digits(p10)}-${digits(p90)})`;
}

export function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let at = 0;
  let value = bytes;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at++;
  }
  return `${digits(value)} ${units[at]}`;
}

export function sizeText(count, dimension) {
  return `${count.toLocaleString('en')} x ${dimension}`;
}

/** Rows of cells, the first being the head; columns are aligned, numbers to the right. */
export function plainTable([head, ...rows]) {
  const all = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, i) => Math.max(...all.map((row) => row[i].length)));
  const numeric = head.map((_, i) => rows.every((row) => /^[-\d.,% x()]*$/.test(String(row[i]))));
  const text = all.map((row) =>
    row
      .map((cell, i) => (numeric[i] ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join('  ')
      .trimEnd(),
  );
  return [text[0], widths.map((width) => '-'.repeat(width)).join('  '), ...text.slice(1)].join(
    '\n',
  );
}

export function markdownTable([head, ...rows]) {
  const line = (cells) =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
