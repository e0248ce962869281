// Texts of too little contrast: class, beginning, ratio.
() => {
  const probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (c) => {
    probe.fillStyle = c; probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (c) => rgb(c).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (c !== 'rgba(0, 0, 0, 0)' && c !== 'transparent') return c;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const poor = [];
  for (const e of document.querySelectorAll('main *, header *, footer *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('svg') || !e.offsetParent) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${e.className} ${e.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return poor;
}
