import { convertTime, offsetMinutes } from '../abilities/time-zones.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Time zones: what time it is elsewhere, and offsets from UTC.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'convert_time_zone',
    description:
      'Convert a wall clock time on a given date from one IANA time zone to another, for example from Europe/Paris to Asia/Tokyo.',
    inputSchema: object({
      date: string('The date, YYYY-MM-DD'),
      time: string('The time, HH:MM, 24 hours'),
      from_zone: string('IANA time zone of the given time'),
      to_zone: string('IANA time zone wanted'),
    }),
    run: ({ date, time, from_zone, to_zone }) => convertTime(date, time, from_zone, to_zone),
  },
  {
    name: 'utc_offset',
    description:
      'The offset from UTC of an IANA time zone on a given date, with daylight saving time.',
    inputSchema: object({
      zone: string('IANA time zone'),
      date: string('The date, YYYY-MM-DD'),
    }),
    run: ({ zone, date }) => {
      const minutes = offsetMinutes(zone, Date.parse(`${date}T12:00:00Z`));
      const size = Math.abs(minutes);
      const two = (/** @type {number} */ value) => String(value).padStart(2, '0');
      return `UTC${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
    },
  },
];
