import { addDays, daysBetween, weekday } from '../abilities/calendar.mjs';
import { integer, object, string } from '../schema.mjs';

export const about = 'Arithmetic with dates.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'days_between_dates',
    description: 'How many days lie between two dates.',
    inputSchema: object({ start: string('YYYY-MM-DD'), end: string('YYYY-MM-DD') }),
    run: ({ start, end }) => `${daysBetween(start, end)} days`,
  },
  {
    name: 'weekday_of_date',
    description: 'The day of the week on which a date falls.',
    inputSchema: object({ date: string('YYYY-MM-DD') }),
    run: ({ date }) => weekday(date),
  },
  {
    name: 'add_days_to_date',
    description: 'The date a number of days after a given date.',
    inputSchema: object({ date: string('YYYY-MM-DD'), days: integer('How many days later') }),
    run: ({ date, days }) => addDays(date, days),
  },
];
