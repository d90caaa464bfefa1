import { anObject, refuse } from '../check.js';
import { FinchError } from '../errors.js';

/** A ranked list as cuts see it, best first. */
export interface RankedList {
  /** n finite numbers, descending: scores of a retrieval, or of a reranker. */
  readonly scores: Float32Array | Float64Array | readonly number[];
  /** n × d, in the same order, any length but zero: the tools' embeddings. Rules that look at similarities need them. */
  readonly embeddings?: Float32Array | undefined;
}

/** A ranked list and which of its tools were right. */
export interface LabelledList extends RankedList {
  /** 0-based positions of the right tools, none twice, in any order. */
  readonly relevant: readonly number[];
  /** Right tools in all, those that are not in the list included; 0 for a query that no tool answers. */
  readonly gold: number;
}

/** @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_NOT_FINITE, FINCH_DIMENSION */
export function checkList(list: RankedList, name = 'list'): void {
  anObject(list, name);
  const { scores, embeddings } = list;
  if (!isNumbers(scores)) {
    refuse(scores, `${name}.scores`, 'a Float32Array, a Float64Array or an array of numbers');
  }
  const n = scores.length;
  for (let i = 0; i < n; i++) {
    const score = scores[i];
    if (typeof score !== 'number') refuse(score, `${name}.scores[${i}]`, 'a number');
    if (!Number.isFinite(score)) {
      throw new FinchError(
        'FINCH_NOT_FINITE',
        `${name}.scores[${i}] is ${score}; expected finite numbers`,
      );
    }
    if (i > 0 && score > (scores[i - 1] as number)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${name}.scores rises at ${i} from ${scores[i - 1]} to ${score}; expected them sorted, best first`,
      );
    }
  }
  if (embeddings === undefined) return;
  if (!(embeddings instanceof Float32Array)) {
    refuse(embeddings, `${name}.embeddings`, 'a Float32Array of n × d numbers');
  }
  if (n === 0 ? embeddings.length > 0 : embeddings.length === 0 || embeddings.length % n !== 0) {
    throw new FinchError(
      'FINCH_DIMENSION',
      `${name}.embeddings has ${embeddings.length} numbers for ${n} scores; expected n × d`,
    );
  }
}

/** @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_NOT_FINITE, FINCH_DIMENSION */
export function checkLabelled(list: LabelledList, name: string): void {
  checkList(list, name);
  const { relevant, gold, scores } = list;
  if (!Array.isArray(relevant)) refuse(relevant, `${name}.relevant`, 'an array of positions');
  const seen = new Set<unknown>(relevant);
  const isPosition = (value: unknown) =>
    Number.isInteger(value) && (value as number) >= 0 && (value as number) < scores.length;
  // By index: holes are looked at too.
  for (let i = 0; i < relevant.length; i++) {
    if (!isPosition(relevant[i])) {
      refuse(relevant[i], `${name}.relevant[${i}]`, `a position from 0 to ${scores.length - 1}`);
    }
  }
  if (seen.size < relevant.length) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${name}.relevant names a position twice: ${relevant.slice(0, 20).join(', ')}`,
    );
  }
  if (!Number.isSafeInteger(gold) || gold < relevant.length) {
    refuse(gold, `${name}.gold`, `an integer of at least ${relevant.length}, its relevant tools`);
  }
}

function isNumbers(value: unknown): value is RankedList['scores'] {
  return value instanceof Float32Array || value instanceof Float64Array || Array.isArray(value);
}
