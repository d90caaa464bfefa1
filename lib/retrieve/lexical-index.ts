import { type LexicalFields, splitWords } from '../catalog/index-text.js';
import { aString, fields as shape } from '../check.js';
import { Bm25, type Bm25Scores, type FieldTerms } from './bm25.js';
import { stopWords } from './stop-words.js';

export interface LexicalHit {
  readonly id: string;
  /** BM25+ over the fields; only comparable within one query. Above 0. */
  readonly score: number;
}

interface Document extends LexicalFields {
  readonly id: string;
}

const someFields = shape({
  name: aString,
  words: aString,
  description: aString,
  parameters: aString,
  group: aString,
});

/** Words of a query beyond this many add nothing but time: the rarest would be among the first in practice. */
const maxQueryWords = 64;
/** Queries come from users: what is beyond this is not read, so that none can hold up the others. */
const maxQueryCharacters = 8192;

/** Where the words of a tool come from, and what one is worth there. */
const places = [
  { of: 'words', boost: 2 },
  { of: 'description', boost: 1 },
  { of: 'parameters', boost: 1 },
  { of: 'group', boost: 1 },
] as const;

/** What the words of one text find. */
export interface LexicalMatch {
  /** Ids of the tools it calls by name; see {@link LexicalIndex.named}. */
  readonly named: ReadonlySet<string>;
  readonly scores: Bm25Scores;
}

/**
 * BM25+ over tool names, descriptions, argument names and groups, kept up as tools come and go. It finds by the exact
 * words that embeddings blur: product names, verbs, identifiers.
 */
export class LexicalIndex {
  readonly #documents = new Map<string, Document>();
  readonly #names = new Map<string, Set<string>>();
  readonly #bm25 = new Bm25(places.map(({ boost }) => boost));

  get count(): number {
    return this.#documents.size;
  }

  upsert(id: string, fields: LexicalFields): void {
    aString(id, 'id');
    someFields(fields, 'fields');
    this.remove(id);
    const document = { id, ...fields };
    this.#documents.set(id, document);
    this.#bm25.add(
      id,
      places.map(({ of }) => termsOf(document[of])),
    );
    for (const name of exactNames(document)) {
      const ids = this.#names.get(name);
      if (ids === undefined) this.#names.set(name, new Set([id]));
      else ids.add(id);
    }
  }

  /** Nothing happens when the id is not there. */
  remove(id: string): void {
    const document = this.#documents.get(id);
    if (document === undefined) return;
    this.#bm25.remove(
      id,
      places.map(({ of }) => termsOf(document[of])),
    );
    this.#documents.delete(id);
    for (const name of exactNames(document)) {
      const ids = this.#names.get(name);
      ids?.delete(id);
      if (ids?.size === 0) this.#names.delete(name);
    }
  }

  /**
   * Every tool that shares a word with the text, best first, ties by insertion. Words are split as names are
   * (`getHTTPResponse` is get, http, response), plural `s` is dropped, English stop words are ignored.
   */
  search(text: string): LexicalHit[] {
    aString(text, 'text');
    return this.#score(splitWords(text.slice(0, maxQueryCharacters))).best(
      Number.POSITIVE_INFINITY,
    );
  }

  /** @internal `named` and the scores of `search`, the text split once for both. */
  match(text: string): LexicalMatch {
    aString(text, 'text');
    const read = text.slice(0, maxQueryCharacters);
    const words = splitWords(read);
    return { named: this.#named(read, words), scores: this.#score(words) };
  }

  #score(words: readonly string[]): Bm25Scores {
    const asked = [...new Set(words)].slice(0, maxQueryWords);
    return this.#bm25.score(asked.filter((word) => !stopWords.has(word)).map(singular));
  }

  /**
   * Tools the text calls by name: the whole text is the name or the id in any spelling (`set alarm`, `setAlarm`), or
   * the name as it is written, two words or more, stands in the text (`use set_alarm please`, `mcp__clock__set_alarm`).
   */
  named(text: string): ReadonlySet<string> {
    aString(text, 'text');
    const read = text.slice(0, maxQueryCharacters);
    return this.#named(read, splitWords(read));
  }

  #named(text: string, whole: readonly string[]): ReadonlySet<string> {
    const found = new Set<string>();
    const add = (name: string) => {
      for (const id of this.#names.get(name) ?? []) found.add(id);
    };
    if (whole.length <= 16) add(whole.join(' '));
    for (const written of text.split(/[\s"'`“”‘’,;!?()[\]{}]+/u)) {
      // As most are, and one word at most.
      if (/^[A-Z]?[a-z]*$/.test(written)) continue;
      const words = splitWords(written.split(/__|[/]/).at(-1) ?? '');
      if (words.length > 1) add(words.join(' '));
    }
    return found;
  }
}

function termsOf(text: string): FieldTerms {
  const words = splitWords(text);
  const counts = new Map<string, number>();
  for (const word of words) {
    if (stopWords.has(word)) continue;
    const term = singular(word);
    counts.set(term, (counts.get(term) ?? 0) + 1);
  }
  return { counts, length: new Set(words).size };
}

function exactNames(document: Document): Set<string> {
  const names = new Set<string>();
  for (const name of [document.name, document.id]) {
    const words = splitWords(name).join(' ');
    if (words !== '') names.add(words);
  }
  return names;
}

/** Plural `s` only: a stemmer conflates verbs that tools tell apart (`listing` an item, `list` items). */
function singular(word: string): string {
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  if (word.length > 3 && word.endsWith('s') && !/(?:ss|us|is)$/.test(word))
    return word.slice(0, -1);
  return word;
}
