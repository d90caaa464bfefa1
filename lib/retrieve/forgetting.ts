import { shown } from '../describe-value.js';
import { FinchError } from '../errors.js';

/** What a catalogue's changes ask of a FeedbackStore or ReplicatedFeedback. */
export interface Forgetful {
  drop(toolIds: readonly string[]): Promise<void>;
}

const named = 5;

/** Has feedback forget tools; what it could not forget is owed, and asked for again with the next ones. */
export class Forgetting {
  readonly #owed = new WeakMap<Forgetful, readonly string[]>();

  /** @throws FinchError that of `drop`, or FINCH_INTERNAL with what it threw as `cause`; the ids are owed */
  async forget(feedback: Forgetful, toolIds: readonly string[]): Promise<void> {
    const ids = this.#withOwed(feedback, toolIds);
    if (ids.length === 0) return;
    // Taken before the wait, so that of two changes at once one alone asks for them.
    this.#owed.delete(feedback);
    try {
      await feedback.drop(ids);
    } catch (error) {
      this.#owed.set(feedback, this.#withOwed(feedback, ids));
      const why = error instanceof Error ? error.message : String(error);
      const some = ids.slice(0, named).map(shown).join(', ');
      throw new FinchError(
        error instanceof FinchError ? error.code : 'FINCH_INTERNAL',
        `the catalogue was changed, but the feedback did not forget ${ids.length} of its tools (${some}${ids.length > named ? ', ...' : ''}): ${why} It is asked again at the next change with this feedback; upsert([], { feedback }) is one.`,
        { cause: error },
      );
    }
  }

  #withOwed(feedback: Forgetful, toolIds: readonly string[]): string[] {
    return [...new Set([...(this.#owed.get(feedback) ?? []), ...toolIds])];
  }
}
