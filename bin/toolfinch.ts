#!/usr/bin/env node
import { FinchError } from '../lib/index.js';
import { type Command, UsageError } from './arguments.js';
import { demo } from './commands/demo.js';
import { evaluate } from './commands/evaluate.js';
import { index } from './commands/index-tools.js';
import { report } from './commands/report.js';
import { select } from './commands/select.js';
import { simulate } from './commands/simulate.js';
import { printable } from './printable.js';
import { version } from './version.js';

const commands: readonly Command[] = [demo, index, select, report, evaluate, simulate];

const help = `toolfinch ${version}: the right few tools for an agent's next step

usage: toolfinch COMMAND …

${commands.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`).join('\n')}

toolfinch COMMAND --help tells a command's options.
`;

async function main(args: string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(help);
    return 0;
  }
  if (name === '--version') {
    process.stdout.write(`${version}\n`);
    return 0;
  }
  const command = commands.find((each) => each.name === name);
  if (command === undefined) {
    process.stderr.write(`toolfinch: there is no command '${name}'\n\n${help}`);
    return 2;
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(`${command.usage}\n`);
    return 0;
  }
  try {
    await command.run(rest);
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`toolfinch ${name}: ${error.message}\n\n${command.usage}\n`);
      return 2;
    }
    if (error instanceof FinchError) {
      process.stderr.write(printable(`toolfinch ${name}: ${error.code}: ${error.message}\n`));
      return 1;
    }
    throw error;
  }
}

// A reader that closes early (`| head`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await main(process.argv.slice(2));
