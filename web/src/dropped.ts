/** A file that was dropped on the page and that no view has taken yet. */
export const dropped: { file: File | null } = { file: null };
