import { hasNumber, hasText } from './answers.mjs';

const dayMs = 24 * 3600 * 1000;
const zones = [
  ...['Europe/Paris', 'America/New_York', 'Asia/Tokyo', 'Australia/Sydney', 'Asia/Kolkata'],
  ...['America/Sao_Paulo', 'Africa/Nairobi', 'Europe/London'],
];

/** @param {import('../random.mjs').Random} random */
function someDay(random) {
  return Date.UTC(2024, 0, 1) + random.between(0, 1200) * dayMs;
}

/** @param {number} instant */
function isoDate(instant) {
  return new Date(instant).toISOString().slice(0, 10);
}

/**
 * @param {number} instant
 * @param {string} zone
 */
function wallClock(instant, zone) {
  const text = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'short',
  }).format(instant);
  return { date: text.slice(0, 10), time: text.slice(11, 16) };
}

/** @type {import('./kind.mjs').TaskKind[]} */
export const kinds = [
  {
    name: 'convert a time',
    tools: ['clock/convert_time_zone', 'almanac/getTimeElsewhere'],
    templates: [
      'It is {time} on {date} in {from_zone}. What time is it in {to_zone}?',
      'Convert {time} on {date} from the time zone {from_zone} to {to_zone}.',
      'Our call is at {time} {from_zone} time on {date}; when is that in {to_zone}?',
      'What does a clock in {to_zone} show when it is {time} in {from_zone} on {date}?',
    ],
    draw: (random) => {
      const [from = '', to = ''] = random.some(zones, 2);
      const instant = someDay(random) + random.between(0, 95) * 15 * 60_000;
      const { date, time } = wallClock(instant, from);
      const wanted = wallClock(instant, to);
      return {
        slots: { date, time, from_zone: from, to_zone: to },
        check: hasText(`${wanted.date} ${wanted.time}`),
      };
    },
  },
  {
    name: 'offset from UTC',
    tools: ['clock/utc_offset'],
    templates: [
      'What is the offset from UTC in {zone} on {date}?',
      'How far ahead of or behind UTC is {zone} on {date}?',
      'UTC offset of the time zone {zone} on {date}, please.',
      'By how many hours does {zone} differ from UTC on {date}?',
    ],
    draw: (random) => {
      const [zone = '', offset = ''] = random.pick([
        ['Asia/Tokyo', '+09:00'],
        ['Asia/Kolkata', '+05:30'],
        ['Africa/Nairobi', '+03:00'],
        ['America/Bogota', '-05:00'],
        ['Pacific/Honolulu', '-10:00'],
      ]);
      return { slots: { zone, date: isoDate(someDay(random)) }, check: hasText(offset) };
    },
  },
  {
    name: 'day of the week',
    tools: ['calendar/weekday_of_date', 'almanac/getWeekday'],
    templates: [
      'Which day of the week is {date}?',
      'On what weekday does {date} fall?',
      'Is {date} a Monday, or which day is it?',
      'Tell me the weekday of {date}.',
    ],
    draw: (random) => {
      const day = someDay(random);
      const name = new Intl.DateTimeFormat('en', { weekday: 'long', timeZone: 'UTC' }).format(day);
      return { slots: { date: isoDate(day) }, check: hasText(name) };
    },
  },
  {
    name: 'days between dates',
    tools: ['calendar/days_between_dates', 'almanac/getInterval'],
    templates: [
      'How many days are there between {start} and {end}?',
      'Count the days from {start} to {end}.',
      'How long is it from {start} until {end}, in days?',
      'Number of days that lie between the dates {start} and {end}.',
    ],
    draw: (random) => {
      const [day, days] = [someDay(random), random.between(13, 400)];
      return {
        slots: { start: isoDate(day), end: isoDate(day + days * dayMs) },
        check: hasNumber(days),
      };
    },
  },
  {
    name: 'date after days',
    tools: ['calendar/add_days_to_date', 'almanac/getDateAfterDays'],
    templates: [
      'What date is {days} days after {date}?',
      'Add {days} days to {date}.',
      'The invoice of {date} is due in {days} days. On which date?',
      'Which date comes {days} days later than {date}?',
    ],
    draw: (random) => {
      const [day, days] = [someDay(random), random.between(13, 400)];
      return {
        slots: { date: isoDate(day), days },
        check: hasText(isoDate(day + days * dayMs)),
      };
    },
  },
];
