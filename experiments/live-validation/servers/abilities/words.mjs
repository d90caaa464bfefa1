/** @param {string} text */
export function words(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu) ?? [];
}

/** @param {string} text */
export function sentences(text) {
  return text.split(/[.!?]+(?:\s|$)/).filter((part) => part.trim() !== '');
}
