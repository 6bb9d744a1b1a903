/** The state of a view in the address, so that a link shows what its sender saw. */

/** What stands after the question mark of `#view?a=1&b=2`. */
export function readAddress(): { view: string; state: URLSearchParams } {
  const [view, query] = location.hash.slice(1).split("?");
  return { view, state: new URLSearchParams(query ?? "") };
}

/** Write the state without a new entry in the history; what is null or empty is left out. */
export function writeAddress(view: string, state: Record<string, string | number | null | undefined>) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  const words = query.toString();
  const next = `#${view}${words ? `?${words}` : ""}`;
  if (next !== location.hash) history.replaceState(null, "", next);
}
