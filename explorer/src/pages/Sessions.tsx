export default function Sessions(_: { id?: string }) { return null; }
