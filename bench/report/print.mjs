// The report on a terminal, or as Markdown for docs/benchmarks.md.
import { markdownTable, plainTable } from './numbers.mjs';
import { tables } from './tables.mjs';

export function terminalText(report) {
  const parts = [machineLine(report.machine)];
  for (const { title, note, rows } of tables(report))
    parts.push(`\n${title}\n${note ? `${note}\n` : ''}\n${plainTable(rows)}`);
  if (report.skipped.length > 0) {
    parts.push('\nSkipped');
    for (const { what, why } of report.skipped) parts.push(`  ${what}: ${why}`);
  }
  return parts.join('\n');
}

export function markdownText(report) {
  const parts = [machineLine(report.machine)];
  for (const { title, note, rows } of tables(report)) {
    parts.push(`### ${title}`);
    if (note) parts.push(note.replaceAll('*', '\\*'));
    parts.push(markdownTable(rows));
  }
  if (report.skipped.length > 0)
    parts.push(`Skipped: ${report.skipped.map(({ what, why }) => `${what} (${why})`).join('; ')}.`);
  return `${parts.join('\n\n')}\n`;
}

function machineLine(machine) {
  const { cpu, cores, isa, caches, memoryGiB, platform, node, commit, changed, date } = machine;
  const cached = Object.entries(caches).map(([name, size]) => `${name} ${size}`);
  return (
    `${cpu}, ${cores} cores used, instruction set ${isa}, ${cached.join(', ')}, ${memoryGiB} GiB; ${platform}, ` +
    `Node ${node}; commit ${commit}${changed ? ' with changes' : ''}, ${date}`
  );
}
