import { binding } from '../lib/native.js';

export const version = binding().version();
