/**
 * HTML of a little Markdown: headings, lists, paragraphs, strong, emphasis, code, links.
 *
 * @param {string} text
 */
export function toHtml(text) {
  const out = [];
  let inList = false;
  for (const line of text.split('\n')) {
    const item = /^[-*] (.*)/.exec(line);
    if (item === null && inList) {
      out.push('</ul>');
      inList = false;
    }
    const heading = /^(#{1,6}) (.*)/.exec(line);
    if (heading !== null) {
      const level = heading[1]?.length;
      out.push(`<h${level}>${inline(heading[2] ?? '')}</h${level}>`);
    } else if (item !== null) {
      if (!inList) out.push('<ul>');
      inList = true;
      out.push(`<li>${inline(item[1] ?? '')}</li>`);
    } else if (line.trim() !== '') {
      out.push(`<p>${inline(line)}</p>`);
    }
  }
  if (inList) out.push('</ul>');
  return out.join('\n');
}

/** @param {string} text */
function inline(text) {
  return text
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
    .replace(/\*([^*]+)\*/g, '<em>$1</em>')
    .replace(/\[([^\]]+)\]\(([^)]+)\)/g, '<a href="$2">$1</a>');
}
