/** Files dropped anywhere on the page, for the view that takes files; one waits until that view is open. */
type Take = (file: File) => void;

let taker: Take | null = null;
let waiting: File | null = null;

export function drop(file: File) {
  if (taker) taker(file);
  else waiting = file;
}

/** Take files from now on; whether one was waiting, and how to end it. */
export function takeFiles(take: Take): { waited: boolean; end: () => void } {
  const file = waiting;
  taker = take;
  waiting = null;
  if (file) take(file);
  return { waited: file !== null, end: () => (taker = taker === take ? null : taker) };
}
