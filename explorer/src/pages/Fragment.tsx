export default function Fragment(_: { id?: string }) { return null; }
