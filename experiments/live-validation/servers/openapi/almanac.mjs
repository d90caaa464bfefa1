import { addDays, daysBetween, weekday } from '../abilities/calendar.mjs';
import { convertTime } from '../abilities/time-zones.mjs';
import { string } from '../schema.mjs';

export const title = 'Almanac';

const date = string('YYYY-MM-DD');

/** @type {import('../serve-openapi.mjs').Operation[]} */
export const operations = [
  {
    method: 'get',
    path: '/weekdays/{date}',
    operationId: 'getWeekday',
    summary: 'Which day of the week a date is',
    parameters: { date },
    run: (args) => ({ date: args.date, weekday: weekday(args.date) }),
  },
  {
    method: 'get',
    path: '/intervals',
    operationId: 'getInterval',
    summary: 'Number of days from one date to another',
    parameters: { from_date: date, to_date: date },
    run: (args) => ({ days: daysBetween(args.from_date, args.to_date) }),
  },
  {
    method: 'get',
    path: '/later',
    operationId: 'getDateAfterDays',
    summary: 'Date that comes a number of days after another date',
    parameters: { date, days: { type: 'integer', description: 'How many days' } },
    run: (args) => ({ date: addDays(args.date, Number(args.days)) }),
  },
  {
    method: 'get',
    path: '/world-clock',
    operationId: 'getTimeElsewhere',
    summary: 'What time it is in another time zone when a clock in one zone shows a given time',
    parameters: {
      date,
      time: string('HH:MM'),
      from_zone: string('IANA time zone of that clock'),
      to_zone: string('IANA time zone elsewhere'),
    },
    run: (args) => ({ local: convertTime(args.date, args.time, args.from_zone, args.to_zone) }),
  },
];
