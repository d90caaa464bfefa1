import MiniSearch from 'minisearch';
import { type LexicalFields, splitWords } from '../catalog/index-text.js';
import { aString, fields as shape } from '../check.js';
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

/**
 * BM25 over tool names, descriptions, argument names and groups (MiniSearch), kept up as tools come and go. It finds by
 * the exact words that embeddings blur: product names, verbs, identifiers.
 */
export class LexicalIndex {
  readonly #documents = new Map<string, Document>();
  readonly #names = new Map<string, Set<string>>();
  readonly #search = new MiniSearch<Document>({
    fields: ['words', 'description', 'parameters', 'group'],
    tokenize: splitWords,
    processTerm: (word) => (stopWords.has(word) ? null : singular(word)),
  });

  get count(): number {
    return this.#documents.size;
  }

  upsert(id: string, fields: LexicalFields): void {
    aString(id, 'id');
    someFields(fields, 'fields');
    this.remove(id);
    const document = { id, ...fields };
    this.#documents.set(id, document);
    this.#search.add(document);
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
    this.#search.remove(document);
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
    const words = [...new Set(splitWords(text.slice(0, maxQueryCharacters)))].slice(
      0,
      maxQueryWords,
    );
    if (words.length === 0) return [];
    const hits = this.#search.search(words.join(' '), { boost: { words: 2 } });
    return hits.map(({ id, score }) => ({ id: id as string, score }));
  }

  /**
   * Tools the text calls by name: the whole text is the name or the id in any spelling (`set alarm`, `setAlarm`), or
   * the name as it is written, two words or more, stands in the text (`use set_alarm please`, `mcp__clock__set_alarm`).
   */
  named(text: string): ReadonlySet<string> {
    aString(text, 'text');
    text = text.slice(0, maxQueryCharacters);
    const found = new Set<string>();
    const add = (name: string) => {
      for (const id of this.#names.get(name) ?? []) found.add(id);
    };
    const whole = splitWords(text);
    if (whole.length <= 16) add(whole.join(' '));
    for (const written of text.split(/[\s"'`“”‘’,;!?()[\]{}]+/u)) {
      const words = splitWords(written.split(/__|[/]/).at(-1) ?? '');
      if (words.length > 1) add(words.join(' '));
    }
    return found;
  }
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
