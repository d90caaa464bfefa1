const dayMs = 24 * 3600 * 1000;
const names = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** @param {string} date YYYY-MM-DD */
function instant(date) {
  const value = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(value)) throw new Error(`${date} is no date YYYY-MM-DD`);
  return value;
}

/** @param {string} date */
export function weekday(date) {
  return names[new Date(instant(date)).getUTCDay()];
}

/**
 * @param {string} start
 * @param {string} end
 */
export function daysBetween(start, end) {
  return Math.round((instant(end) - instant(start)) / dayMs);
}

/**
 * @param {string} date
 * @param {number} days
 */
export function addDays(date, days) {
  return new Date(instant(date) + days * dayMs).toISOString().slice(0, 10);
}
