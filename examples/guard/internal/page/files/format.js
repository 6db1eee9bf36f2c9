// Numbers as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const unknown = "–";

/** count shows how many there are: 12,345. */
export const count = (x) => (x == null ? unknown : whole.format(x));

/** brief shows a number in little room: 12.3K. */
export const brief = (x) => short.format(x);

/** ratio shows a number that may be small: 98.3, 10,000. */
export const ratio = (x) => (x == null ? unknown : x > 0 && x < 100 ? x.toFixed(1) : whole.format(x));

/** wait shows microseconds in a unit that fits: 0.21 ms, 34 ms, 1.5 s. */
export function wait(us) {
  if (!us) return unknown;
  if (us >= 1e6) return (us / 1e6).toFixed(us >= 1e7 ? 0 : 1) + " s";
  return us >= 1e4 ? whole.format(us / 1e3) + " ms" : (us / 1e3).toFixed(2) + " ms";
}

/** share shows a part of a whole: 94.3 %. */
export const share = (part, all) => (all ? ((100 * part) / all).toFixed(1) + " %" : unknown);
