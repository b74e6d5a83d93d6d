export default function Tasks(_: { id?: string }) { return null; }
