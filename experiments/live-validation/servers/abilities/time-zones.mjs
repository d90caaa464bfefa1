/**
 * Minutes that a zone's clocks are ahead of UTC at an instant.
 *
 * @param {string} zone
 * @param {number} instant Unix milliseconds
 */
export function offsetMinutes(zone, instant) {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).formatToParts(instant);
  const part = (/** @type {string} */ type) =>
    Number(parts.find((each) => each.type === type)?.value);
  const local = Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
  );
  return Math.round((local - instant) / 60_000);
}

/**
 * @param {string} date YYYY-MM-DD
 * @param {string} time HH:MM
 * @param {string} from
 * @param {string} to
 * @returns `YYYY-MM-DD HH:MM` in the zone `to`
 */
export function convertTime(date, time, from, to) {
  const wall = Date.parse(`${date}T${time}:00Z`);
  if (Number.isNaN(wall)) throw new Error(`${date} ${time} is no date and time`);
  let instant = wall - offsetMinutes(from, wall) * 60_000;
  // Once more with the offset that holds there: the first one may be of the other side of a change.
  instant = wall - offsetMinutes(from, instant) * 60_000;
  const there = new Date(instant + offsetMinutes(to, instant) * 60_000);
  return there.toISOString().slice(0, 16).replace('T', ' ');
}
