import { anObject, aString, fields } from '../check.js';
import {
  type BanditHandle,
  type Binding,
  binding as loadedBinding,
  type NativeArmScores,
  type NativeBanditOptions,
} from '../native.js';

/** Options of the discounted diagonal LinUCB (RATED); see `toolfinch.h` for each default. */
export type BanditOptions = NativeBanditOptions;

/** What durable feedback asks of a bandit. Equal sequences of calls must give equal bytes. */
export interface BanditState {
  /**
   * Applies outcomes in order, all or, when it throws, none; row i of `xs` (n x dimension) is outcome i's context.
   * Null: outcomes without a context, such as a health check's, which say nothing of what a tool is asked.
   */
  update(
    ids: readonly string[],
    xs: Float32Array | null,
    priors: Float32Array,
    rewards: Float32Array,
    times: Float64Array,
  ): void;
  /** Forgets arms; ids without one are ignored. */
  drop(ids: readonly string[]): void;
  serialize(): Uint8Array;
  /** Replaces all arms. */
  deserialize(state: Uint8Array): void;
  close(): void;
}

/** The addon's functions that a bandit uses. */
export type BanditBinding = Pick<
  Binding,
  | 'banditCreate'
  | 'banditClose'
  | 'banditScore'
  | 'banditUpdate'
  | 'banditDrop'
  | 'banditArms'
  | 'banditSerialize'
  | 'banditDeserialize'
  | 'banditShare'
  | 'banditFromShared'
>;

/** Stands for a bandit in messages to this process's workers; may be cloned. */
export interface SharedBandit {
  readonly token: string;
  readonly options: Readonly<BanditOptions>;
}

const aShare = fields({ token: aString, options: anObject });

/** One arm per tool with feedback, natively: the estimate of which tools really work, and in which contexts. */
export class Bandit implements BanditState, Disposable {
  readonly options: Readonly<BanditOptions>;
  /** For the addon's `rank` and `select`. */
  readonly handle: BanditHandle;
  readonly #binding: BanditBinding;

  /** @throws FinchError FINCH_INVALID_ARGUMENT (an option out of its range), FINCH_DEVICE (no addon). */
  constructor(options: BanditOptions, binding: BanditBinding = loadedBinding(), token?: string) {
    this.options = { ...options };
    this.#binding = binding;
    this.handle =
      token === undefined ? binding.banditCreate(this.options) : binding.banditFromShared(token);
  }

  /**
   * The bandit that {@link share} stands for, without a copy: what one thread reports, all see. For bandits that are not
   * kept by a {@link FeedbackStore}, which must see every report itself.
   *
   * @throws FinchError FINCH_CLOSED when it is gone, FINCH_INVALID_ARGUMENT for anything but a share of this process.
   */
  static fromShared(shared: SharedBandit, binding: BanditBinding = loadedBinding()): Bandit {
    aShare(shared, 'shared');
    return new Bandit(shared.options, binding, shared.token);
  }

  /** For {@link fromShared} in a worker of this process. It does not keep the bandit alive: keep this object. */
  share(): SharedBandit {
    return { token: this.#binding.banditShare(this.handle), options: this.options };
  }

  /**
   * Scores `ids` in the context `x` (dimension floats): p = mean + bonus.
   *
   * @param priors in [0, 1], one per id: the estimate of a tool without feedback.
   * @param now in the unit of the reports' times, normally Unix milliseconds.
   * @throws FinchError FINCH_DIMENSION, FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_INVALID_ARGUMENT, FINCH_CLOSED.
   */
  score(
    ids: readonly string[],
    priors: Float32Array,
    x: Float32Array,
    now: number,
    explore = false,
  ): NativeArmScores {
    return this.#binding.banditScore(this.handle, ids, priors, x, now, explore);
  }

  update(
    ids: readonly string[],
    xs: Float32Array | null,
    priors: Float32Array,
    rewards: Float32Array,
    times: Float64Array,
  ): void {
    this.#binding.banditUpdate(this.handle, ids, xs, priors, rewards, times);
  }

  drop(ids: readonly string[]): void {
    this.#binding.banditDrop(this.handle, ids);
  }

  /** Tools with feedback, and the bytes they take. */
  get arms(): { count: number; bytes: number } {
    return this.#binding.banditArms(this.handle);
  }

  serialize(): Uint8Array {
    return this.#binding.banditSerialize(this.handle);
  }

  deserialize(state: Uint8Array): void {
    this.#binding.banditDeserialize(this.handle, state);
  }

  close(): void {
    this.#binding.banditClose(this.handle);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
