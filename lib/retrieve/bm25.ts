/** BM25+ with the constants of MiniSearch: saturation k, length b, and delta d for a term that is there at all. */
const k = 1.2;
const b = 0.7;
const d = 0.5;

/** The terms of one field of a document. */
export interface FieldTerms {
  /** How often each term occurs. */
  readonly counts: ReadonlyMap<string, number>;
  /** Different words before terms are made of them. */
  readonly length: number;
}

export interface Bm25Hit {
  readonly id: string;
  readonly score: number;
}

/** Documents with a term in one field, ascending, and how often each has it. */
interface Posting {
  readonly documents: number[];
  readonly counts: number[];
}

/**
 * An inverted index over documents with weighted fields. A document is a number here, higher than those of all documents
 * before it, so that ties are in order of insertion; scores lie in one array by that number.
 */
export class Bm25 {
  readonly #boosts: readonly number[];
  readonly #terms = new Map<string, (Posting | undefined)[]>();
  readonly #numbers = new Map<string, number>();
  #ids: (string | undefined)[] = [];
  /** By field, then by document. */
  readonly #lengths: number[][];
  readonly #lengthSums: number[];
  #version = 0;

  /** One boost a field. */
  constructor(boosts: readonly number[]) {
    this.#boosts = boosts;
    this.#lengths = boosts.map(() => []);
    this.#lengthSums = boosts.map(() => 0);
  }

  /** Raised by every change. */
  get version(): number {
    return this.#version;
  }

  /** The id is not there yet. */
  add(id: string, fields: readonly FieldTerms[]): void {
    this.#version++;
    this.#close();
    const number = this.#ids.length;
    this.#ids.push(id);
    this.#numbers.set(id, number);
    fields.forEach(({ counts, length }, field) => {
      this.#lengths[field]?.push(length);
      this.#lengthSums[field] = (this.#lengthSums[field] ?? 0) + length;
      for (const [term, count] of counts) {
        let postings = this.#terms.get(term);
        if (postings === undefined) {
          postings = this.#boosts.map(() => undefined);
          this.#terms.set(term, postings);
        }
        postings[field] ??= { documents: [], counts: [] };
        postings[field].documents.push(number);
        postings[field].counts.push(count);
      }
    });
  }

  /** With the fields it was added with. */
  remove(id: string, fields: readonly FieldTerms[]): void {
    const number = this.#numbers.get(id);
    if (number === undefined) return;
    this.#version++;
    this.#numbers.delete(id);
    this.#ids[number] = undefined;
    fields.forEach(({ counts, length }, field) => {
      this.#lengthSums[field] = (this.#lengthSums[field] ?? 0) - length;
      for (const term of counts.keys()) {
        const postings = this.#terms.get(term);
        const posting = postings?.[field];
        if (postings === undefined || posting === undefined) continue;
        const at = placeOf(posting.documents, number);
        posting.documents.splice(at, 1);
        posting.counts.splice(at, 1);
        if (posting.documents.length > 0) continue;
        postings[field] = undefined;
        if (postings.every((each) => each === undefined)) this.#terms.delete(term);
      }
    });
  }

  /**
   * Scores every document that has one of the terms; a term that is given twice counts twice. The sum over terms and
   * fields is multiplied by how many different terms the document has.
   */
  score(terms: readonly string[]): Bm25Scores {
    const count = this.#numbers.size;
    const scores = new Float64Array(this.#ids.length);
    const matched = new Uint16Array(this.#ids.length);
    const latest = new Uint16Array(this.#ids.length);
    const seen = new Map<string, number>();
    const found: number[] = [];
    for (const term of terms) {
      const postings = this.#terms.get(term);
      if (postings === undefined) continue;
      const mark = seen.get(term) ?? seen.size + 1;
      const again = seen.has(term);
      seen.set(term, mark);
      for (let field = 0; field < postings.length; field++) {
        const posting = postings[field];
        if (posting === undefined) continue;
        const { documents, counts } = posting;
        const lengths = this.#lengths[field] as number[];
        const average = (this.#lengthSums[field] as number) / count;
        const rarity = Math.log(1 + (count - documents.length + 0.5) / (documents.length + 0.5));
        const boost = this.#boosts[field] as number;
        for (let i = 0; i < documents.length; i++) {
          const number = documents[i] as number;
          const times = counts[i] as number;
          const length = lengths[number] as number;
          const saturated = (times * (k + 1)) / (times + k * (1 - b + (b * length) / average));
          scores[number] = (scores[number] as number) + boost * (rarity * (d + saturated));
          if (again || latest[number] === mark) continue;
          latest[number] = mark;
          if (matched[number] === 0) found.push(number);
          matched[number] = (matched[number] as number) + 1;
        }
      }
    }
    for (const number of found) {
      scores[number] = (scores[number] as number) * (matched[number] as number);
    }
    const { version } = this;
    return new Bm25Scores(this.#ids, this.#numbers, scores, found, () => version === this.#version);
  }

  /** Numbers of removed documents are closed up once they are the most. */
  #close(): void {
    if (this.#ids.length < 2 * this.#numbers.size + 1024) return;
    const moved = new Map<number, number>();
    for (const [id, number] of [...this.#numbers].sort(([, x], [, y]) => x - y)) {
      this.#numbers.set(id, moved.size);
      moved.set(number, moved.size);
    }
    for (const lengths of this.#lengths) {
      for (const [from, to] of moved) lengths[to] = lengths[from] as number;
      lengths.length = moved.size;
    }
    for (const postings of this.#terms.values()) {
      for (const posting of postings) {
        posting?.documents.forEach((number, i) => {
          posting.documents[i] = moved.get(number) as number;
        });
      }
    }
    const ids = this.#ids.filter((id) => id !== undefined);
    this.#ids = ids;
  }
}

/** The scores of one query. */
export class Bm25Scores {
  readonly #ids: readonly (string | undefined)[];
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #scores: Float64Array;
  readonly #found: readonly number[];
  readonly #isCurrent: () => boolean;

  constructor(
    ids: readonly (string | undefined)[],
    numbers: ReadonlyMap<string, number>,
    scores: Float64Array,
    found: readonly number[],
    isCurrent: () => boolean,
  ) {
    this.#ids = ids;
    this.#numbers = numbers;
    this.#scores = scores;
    this.#found = found;
    this.#isCurrent = isCurrent;
  }

  /** Whether the index is as it was scored; afterwards all that is below is void. */
  get current(): boolean {
    return this.#isCurrent();
  }

  /** 0 when no term is shared. */
  of(id: string): number {
    const number = this.#numbers.get(id);
    return number === undefined ? 0 : (this.#scores[number] ?? 0);
  }

  /** The `depth` best of those that `keep` takes, best first, ties by insertion. */
  best(depth: number, keep: (id: string) => boolean = () => true): Bm25Hit[] {
    const scores = this.#scores;
    const before = (x: number, y: number) => (scores[y] as number) - (scores[x] as number) || x - y;
    const id = (number: number) => this.#ids[number] as string;
    let best: number[] = [];
    if (this.#found.length <= depth) {
      best = this.#found.filter((number) => keep(id(number))).sort(before);
    } else {
      // Most are worse than all that are kept: one comparison each.
      for (const number of this.#found) {
        if (best.length === depth && before(best[depth - 1] as number, number) < 0) continue;
        if (!keep(id(number))) continue;
        let low = 0;
        let high = best.length;
        while (low < high) {
          const middle = (low + high) >> 1;
          if (before(best[middle] as number, number) < 0) low = middle + 1;
          else high = middle;
        }
        best.splice(low, 0, number);
        if (best.length > depth) best.pop();
      }
    }
    return best.map((number) => ({ id: id(number), score: scores[number] as number }));
  }
}

/** Where `number`, which is there, stands in an ascending list. */
function placeOf(list: readonly number[], number: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((list[middle] as number) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
