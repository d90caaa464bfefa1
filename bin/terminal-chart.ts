import type { Candidate, Decision } from '../lib/index.js';
import { printable } from './printable.js';

const barWidth = 24;
const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/**
 * Draws a decision: each candidate's final score as a bar, the gap to the next score and the similarity to the next tool,
 * the stages' scores, and where the list was cut and by which signal.
 */
export function drawDecision(decision: Decision, colour: boolean): string {
  const paint = (code: string, text: string) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const { candidates, cut } = decision;
  if (candidates.length === 0) return '';
  const nameWidth = Math.min(40, Math.max(...candidates.map(({ id }) => width(id)), 4));
  const top = Math.max(...candidates.map(({ score }) => score), 1e-9);
  const lines = [
    `    ${pad('tool', nameWidth)}  ${pad('score', barWidth + 7)}${pad('gap', 7)}${pad('sim', 7)}${pad('dense', 7)}${pad('bm25', 7)}${pad('reliab', 8)}avail`,
  ];
  candidates.forEach((candidate, i) => {
    const next = candidates[i + 1];
    const gap = next === undefined ? '' : (candidate.score - next.score).toFixed(3);
    const similarity = next === undefined ? '' : (cut?.similarities[i] ?? 0).toFixed(2);
    const text = `${String(i + 1).padStart(2)}  ${pad(clip(candidate.id, nameWidth), nameWidth)}  ${pad(bar(candidate.score / top), barWidth)} ${candidate.score.toFixed(3)} ${pad(`${gap}${mark(cut?.kScore === i + 1, '◂')}`, 7)}${pad(`${similarity}${mark(cut?.kSimilarity === i + 1, '◂')}`, 7)}${stages(candidate)}`;
    lines.push(candidate.fate === 'selected' ? paint('32', text) : paint('2', text));
    if (decision.reason === undefined && cut?.k === i + 1 && next !== undefined) {
      lines.push(
        paint('33', `${'┄'.repeat(nameWidth + 6)} cut after ${cut.k}: ${reasonOfCut(decision)}`),
      );
    }
  });
  return `${lines.join('\n')}\n`;
}

function reasonOfCut({ cut }: Decision): string {
  if (cut === undefined) return '';
  if (cut.rule === 'fixed') return 'fixed k';
  if (cut.rule !== 'dynamic') return `${cut.rule} cut`;
  const named = {
    score: `largest score gap, ${cut.gapScore.toFixed(3)}`,
    similarity: `largest similarity gap, ${cut.gapSimilarity.toFixed(3)}`,
  };
  return cut.signals.length === 0
    ? 'the bound on k'
    : cut.signals.map((signal) => named[signal]).join(' and ');
}

function stages({ dense, lexical, reliability }: Candidate): string {
  const { mean, bonus, availability } = reliability;
  return [
    pad(dense === undefined ? '–' : dense.toFixed(2), 7),
    pad(lexical === undefined ? '–' : lexical.toFixed(1), 7),
    pad((mean + bonus).toFixed(2), 8),
    availability.toFixed(2),
  ].join('');
}

function mark(condition: boolean, sign: string): string {
  return condition ? sign : '';
}

function bar(share: number): string {
  const units = Math.round(Math.max(0, Math.min(1, share)) * barWidth * 8);
  return '█'.repeat(Math.floor(units / 8)) + (eighths[units % 8] ?? '');
}

function clip(given: string, limit: number): string {
  const text = printable(given).replaceAll('\n', ' ');
  return width(text) <= limit ? text : `${[...text].slice(0, limit - 1).join('')}…`;
}

function pad(text: string, to: number): string {
  return text + ' '.repeat(Math.max(0, to - width(text)));
}

function width(text: string): number {
  return [...text].length;
}
