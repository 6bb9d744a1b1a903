/** What the server tells of the papers. */

/** A claim of the paper: what is printed of it, what a run found, and "holds", "fails", "corrected" or "open". */
export interface Verdict {
  claim: string;
  printed: string;
  ours: string;
  verdict: string;
}

export interface Printed {
  data: string;
  column: string;
  value: number;
}

export interface Artefact {
  name: string;
  title: string;
  said: string;
  found: string;
  verdicts: Verdict[];
  made: boolean; // on this machine
  face: string[][] | null; // the head of a table, names of columns first, where that says more than a picture
  size: string;
  pictures: string[];
  tables: string[];
  printed: Printed[];
  command: string;
}

export interface Paper {
  paper: string;
  title: string;
  artefacts: Artefact[];
}

export const VERDICTS = ["holds", "fails", "corrected", "open"] as const;
const WORDS = { holds: "hold", fails: "fail", corrected: "corrected", open: "open" };

/** How many claims have each verdict, as in "12 hold"; none are left out. */
export function tally(artefacts: Artefact[]): { verdict: string; words: string }[] {
  const all = artefacts.flatMap((one) => one.verdicts);
  const count = (verdict: string) => all.filter((one) => one.verdict === verdict).length;
  return VERDICTS.filter(count).map((verdict) => ({ verdict, words: `${count(verdict)} ${WORDS[verdict]}` }));
}

export const capital = (words: string) => words.replace(/^./, (first) => first.toUpperCase());

/** The sentences of a text: they end with a stop before a space and a capital or a number, but not after an abbreviation. */
export const sentences = (text: string) =>
  text.split(/(?<=[^\s\d][.?!]|\d\.)(?<!\b(?:vs|Fig|Eq|Sec|Thm|Prop|al|cf|e\.g|i\.e)\.)\s+(?=[A-Z\d(])/).map((one) => one.trim()).filter(Boolean);
