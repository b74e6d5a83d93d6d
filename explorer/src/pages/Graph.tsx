export default function Graph(_: { id?: string }) { return null; }
