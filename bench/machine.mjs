// What the figures were measured on.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';

export function describeMachine(root, addon, probe) {
  const { level, reason } = addon.isa();
  return {
    date: new Date().toISOString(),
    commit: git(root, ['rev-parse', '--short=12', 'HEAD']),
    changed: git(root, ['status', '--porcelain', '--untracked-files=no']) !== '',
    version: addon.version(),
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: probe.cpus(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    caches: caches(),
    platform: `${process.platform}-${process.arch}`,
    node: process.version,
    isa: level,
    isaReason: reason,
    limitLevels: probe.levels(),
    poolThreads: addon.poolThreads(),
    // Above 1 a thread: something else was at work.
    loadBefore: os.loadavg()[0],
  };
}

/** Bytes that this process may still take. */
export function availableMemory() {
  return process.availableMemory?.() ?? os.freemem();
}

function git(root, args) {
  try {
    return execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return 'unknown';
  }
}

/** { L1: '48K', L2: '2048K', L3: '...' } of the first CPU, where the system says so. */
function caches() {
  const found = {};
  for (let i = 0; i < 6; i++) {
    const folder = `/sys/devices/system/cpu/cpu0/cache/index${i}`;
    try {
      const read = (name) => readFileSync(`${folder}/${name}`, 'utf8').trim();
      if (read('type') !== 'Instruction') found[`L${read('level')}`] = read('size');
    } catch {
      break;
    }
  }
  return found;
}
