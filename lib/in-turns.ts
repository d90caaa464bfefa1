/** Items handled before others get a turn: a few milliseconds of work on ordinary tools. */
const chunk = 50;

/** Calls `handle` for each item in order, letting the event loop turn between chunks. */
export async function inTurns<T>(
  items: readonly T[],
  handle: (item: T, i: number) => void,
): Promise<void> {
  for (let start = 0; start < items.length; start += chunk) {
    if (start > 0) await new Promise(setImmediate);
    items.slice(start, start + chunk).forEach((item, i) => {
      handle(item, start + i);
    });
  }
}
