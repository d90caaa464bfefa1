import { FinchError } from '../errors.js';

/**
 * Where a task stands: what State-conditioned selection makes its query from (instruction, what was done, what was seen
 * last), so that the same instruction finds other tools at its third step than at its first.
 */
export interface TaskState {
  /** What the user wants; not empty. */
  readonly instruction: string;
  /** What has been done, oldest first; a line each. */
  readonly actions?: readonly string[];
  /** What the last action gave back. */
  readonly observation?: string;
}

/** Characters of each part: together within what the default encoder reads (256 tokens). */
const limits = { instruction: 480, action: 80, actions: 3, observation: 320 };

/** A query as the two kinds of retrieval read it. */
export interface QueryText {
  /** What is encoded. */
  readonly text: string;
  /** What is searched by words. */
  readonly words: string;
}

/** A state's two texts. Words leave the actions out: they name the tools that were used, not the one that comes next. */
export function queryText(query: string | TaskState): QueryText {
  if (typeof query === 'string') return { text: query, words: query };
  const text = stateText(query);
  const { instruction, observation = '' } = query;
  return {
    text,
    words: `${short(instruction, limits.instruction)} ${short(observation, limits.observation)}`,
  };
}

/**
 * The query text of a state: the instruction, the last three actions and the observation, each cut to its share, so that a long
 * log never pushes the instruction out of the encoder's window.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT naming the field
 */
export function stateText(state: TaskState): string {
  if (typeof state !== 'object' || state === null)
    throw wrong('instruction', 'a text, in an object');
  const { instruction, actions = [], observation = '' } = state;
  if (typeof instruction !== 'string' || instruction.trim() === '') {
    throw wrong('instruction', 'a text that says what the user wants');
  }
  if (!Array.isArray(actions) || actions.some((action) => typeof action !== 'string')) {
    throw wrong('actions', 'an array of strings, oldest first');
  }
  if (typeof observation !== 'string') throw wrong('observation', 'a string');
  const parts = [short(instruction, limits.instruction)];
  const recent = actions.slice(-limits.actions).map((action) => short(action, limits.action));
  if (recent.length > 0) parts.push(`Done: ${recent.join('; ')}.`);
  if (observation.trim() !== '') parts.push(`Now: ${short(observation, limits.observation)}`);
  return parts.join('\n');
}

function short(text: string, limit: number): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length <= limit ? flat : `${flat.slice(0, limit - 1).trimEnd()}…`;
}

function wrong(field: string, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `the task state's ${field} is missing or of another type; expected ${expected}.`,
  );
}
