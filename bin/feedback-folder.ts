import { FeedbackStore } from '../lib/index.js';

/** Where an index file's feedback is kept when no folder is named. */
export function feedbackFolder(indexPath: string, given: string | undefined): string {
  return given ?? `${indexPath}.feedback`;
}

/** Opens the folder, hands the store to `use`, and closes it whatever happens. */
export async function withFeedback<T>(
  folder: string,
  encoder: { readonly dimension: number; readonly model: string },
  use: (store: FeedbackStore) => Promise<T>,
): Promise<T> {
  const store = await FeedbackStore.open(folder, {
    bandit: { dimension: encoder.dimension },
    model: encoder.model,
  });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}
